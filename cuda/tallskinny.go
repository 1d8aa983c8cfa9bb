package cuda

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
)

// thinMost is the most columns of a product that reads its matrix once, thinEach the
// rows of a thread: THIN and EACH of the device functions.
const (
	thinMost = 4
	thinEach = 4
)

// thinBlocks blocks of threads are wanted, so that some are always on every
// multiprocessor. Shares follow from the shapes alone, so that the sums do not depend
// on the device.
const thinBlocks = 4096

// tallSkinny is how a product of an m × k matrix is divided.
type tallSkinny struct {
	name          string
	lanes         int // threads that read neighbouring elements
	rows          int // of a block
	share, shares int // columns of a block, and how many have them all
}

// tallSkinnyOf is for a matrix whose columns lie in one piece, or its rows.
func tallSkinnyOf(m, k int, columns bool) tallSkinny {
	s := tallSkinny{name: "thin_rows", lanes: powerOfTwo(k, 4, 32)}
	s.rows = threads / s.lanes * thinEach
	step := s.lanes // columns that a block reads at once
	if columns {
		s.name, s.lanes = "thin_cols", powerOfTwo(ceil(m, thinEach), 1, 32)
		s.rows, step = s.lanes*thinEach, threads/s.lanes
	}
	// A share is long enough that adding its threads up costs little.
	shares := min(ceil(thinBlocks, ceil(m, s.rows)), ceil(k, 16*step))
	s.share = min(ceil(ceil(k, shares), step)*step, k)
	s.shares = ceil(k, s.share)
	return s
}

// powerOfTwo is the least one ≥ n, from least to most.
func powerOfTwo(n, least, most int) int {
	for least < n && least < most {
		least *= 2
	}
	return least
}

// isThin reports whether C ← α A B + β C, C m × n, is left to thin: few columns or,
// where A may be transposed, few rows.
func isThin(m, n, k int, sym region) bool {
	return m > 0 && n > 0 && k > 0 && max(m, n)*k >= cuts.read && (n <= thinMost || m <= thinMost && sym == whole)
}

// thin is C ← α A B + β C for few columns or rows; sym says that A is symmetric and
// which part is given. The elements of A are read once, or of a symmetric A those of
// the triangle twice: as they are, and as those of the transpose. No step is long,
// since to read all of a device's memory takes some 50 ms.
func (q *queue[T]) thin(alpha T, a, b view[T], beta T, c view[T], sym region) error {
	if c.cols > thinMost {
		a, b, c = b.t(), a.t(), c.t()
	}
	m, n, k := c.rows, c.cols, b.rows
	type pass struct {
		a      view[T]
		part   region
		strict int
		shape  tallSkinny
		slot   int // where its shares are
	}
	passes := []pass{{a: a, part: sym}}
	if sym == lower {
		passes = append(passes, pass{a: a.t(), part: upper, strict: 1})
	} else if sym == upper {
		passes = append(passes, pass{a: a.t(), part: lower, strict: 1})
	}
	slots := 0
	for i := range passes {
		p := &passes[i]
		p.shape, p.slot = tallSkinnyOf(m, k, abs(p.a.rs) < abs(p.a.cs)), slots
		slots += p.shape.shares
	}
	size := sizeOf[T]()
	return q.scratch(int64(slots)*int64(m)*int64(n)*int64(size), func(partial driver.DevicePtr) error {
		for i, p := range passes {
			err := q.step(backend.GemmFlops(m, n, k)/float64(len(passes)), func() error {
				args := q.engine.device.args.Reset().Int(m).Int(n).Int(k)
				viewArg(args, p.a)
				viewArg(args, b)
				args.Ptr(partial + driver.DevicePtr(p.slot*m*n*size)).Int(p.shape.share).Int(p.shape.lanes).Int(int(p.part)).Int(p.strict)
				grid := driver.Grid{Blocks: [3]int{ceil(m, p.shape.rows), p.shape.shares, 1}, Threads: [3]int{threads, 1, 1}}
				if err := q.engine.launch(p.shape.name, grid); err != nil || i < len(passes)-1 {
					return err
				}
				lanes := powerOfTwo(slots, 1, 32)
				args = q.engine.device.args.Reset().Int(m).Int(n).Int(slots).Ptr(partial)
				scalarArg(args, alpha)
				scalarArg(args, beta)
				viewArg(args, c)
				args.Int(lanes)
				return q.engine.launch("thin_sum", line(m*n*lanes))
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
