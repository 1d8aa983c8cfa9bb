package cuda

import (
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/flop"
)

// maxThinCols is the largest number of columns for which a product reads its matrix only once. The constants must
// equal THIN and EACH of the device functions.
const (
	maxThinCols       = 4
	thinRowsPerThread = 4
)

// thinBlocks is the desired number of blocks of threads, enough to occupy every multiprocessor. The division of
// sums into shares depends only on the shapes, so that results do not depend on the device.
const thinBlocks = 4096

// tallSkinny describes how a product with an m × k matrix is divided among blocks of threads.
type tallSkinny struct {
	name              string
	lanes             int // number of threads that read neighboring elements
	rows              int // number of rows per block of threads
	shareCols, shares int // number of columns per block of threads, and number of shares
}

// tallSkinnyOf divides a product with a matrix whose columns (or, if columns is false, rows) are contiguous.
func tallSkinnyOf(m, k int, columns bool) tallSkinny {
	s := tallSkinny{name: "thin_rows", lanes: powerOfTwo(k, 4, 32)}
	s.rows = threads / s.lanes * thinRowsPerThread
	step := s.lanes // number of columns that a block of threads reads at the same time
	if columns {
		s.name, s.lanes = "thin_cols", powerOfTwo(ceil(m, thinRowsPerThread), 1, 32)
		s.rows, step = s.lanes*thinRowsPerThread, threads/s.lanes
	}
	// With about 16·step columns in a share, summing over the block's threads takes a small part of the time.
	shares := min(ceil(thinBlocks, ceil(m, s.rows)), ceil(k, 16*step))
	s.shareCols = min(ceil(ceil(k, shares), step)*step, k)
	s.shares = ceil(k, s.shareCols)
	return s
}

// powerOfTwo returns the smallest power of two ≥ n, limited to the range from minimum to maximum.
func powerOfTwo(n, minimum, maximum int) int {
	for minimum < n && minimum < maximum {
		minimum *= 2
	}
	return minimum
}

// isThin reports whether thinProduct computes C ← α A B + β C for an m × n matrix C: C has a
// small number of columns or, unless A is symmetric, a small number of rows.
func isThin(m, n, k int, sym region) bool {
	return m > 0 && n > 0 && k > 0 && max(m, n)*k >= cuts.minThin && (n <= maxThinCols || m <= maxThinCols && sym == whole)
}

// thinProduct computes C ← α A B + β C for a small number of columns or rows, and reads the elements of A once. If
// A is symmetric, sym is the triangle of A that is stored. The work is a single step of the queue, because reading all
// of a device's memory takes only about 50 ms.
func (q *queue[T]) thinProduct(alpha T, a, b view[T], beta T, c view[T], sym region) error {
	if c.cols > maxThinCols {
		a, b, c = b.t(), a.t(), c.t()
	}
	if sym == upper {
		a = a.t()
	}
	if sym != whole {
		return q.symmTriangle("thin_symm", func(args *driver.Args) { viewArg(args, a) }, alpha, b, beta, c)
	}
	m, n, k := c.rows, c.cols, b.rows
	shape := tallSkinnyOf(m, k, abs(a.rs) < abs(a.cs))
	return q.sumShares(shape.shares, k, alpha, beta, c, func(partial driver.DevicePtr) error {
		args := q.engine.device.args.Reset().Int(m).Int(n).Int(k)
		viewArg(args, a)
		viewArg(args, b)
		args.Ptr(partial).Int(shape.shareCols).Int(shape.lanes)
		return q.engine.launch(shape.name, driver.Grid{Blocks: [3]int{ceil(m, shape.rows), shape.shares, 1}, Threads: [3]int{threads, 1, 1}})
	})
}

// symmTriangle computes C ← α A B + β C by a device function that reads the lower triangle of A
// once. The function a appends the arguments that describe A.
func (q *queue[T]) symmTriangle(name string, a func(*driver.Args), alpha T, b view[T], beta T, c view[T]) error {
	m := c.rows
	side := ceil(m, tile*cuts.squares)
	squares := ceil(m, tile*side)
	return q.sumShares(squares+1, m, alpha, beta, c, func(partial driver.DevicePtr) error {
		args := q.engine.device.args.Reset().Int(m).Int(c.cols)
		a(args)
		viewArg(args, b)
		args.Ptr(partial).Int(side)
		return q.engine.launch(name, driver.Grid{Blocks: [3]int{squares, squares, 1}, Threads: [3]int{threads, 1, 1}})
	})
}

// sumShares computes C ← α A B + β C, where each element of A B is a sum of k terms. The terms are divided
// into shares. The function launch stores the sum of the terms of each share in partial.
func (q *queue[T]) sumShares(shares, k int, alpha, beta T, c view[T], launch func(partial driver.DevicePtr) error) error {
	m, n := c.rows, c.cols
	return q.scratch(int64(shares)*int64(m)*int64(n)*int64(sizeOf[T]()), func(partial driver.DevicePtr) error {
		return q.step(flop.Gemm(m, n, k), func() error {
			if err := launch(partial); err != nil {
				return err
			}
			return q.addShares(shares, partial, alpha, beta, c)
		})
	})
}

// addShares computes C ← α Σ_s P_s + β C, where P_s is matrix number s in the memory at partial.
func (q *queue[T]) addShares(shares int, partial driver.DevicePtr, alpha, beta T, c view[T]) error {
	lanes := powerOfTwo(shares, 1, 32)
	args := q.engine.device.args.Reset().Int(c.rows).Int(c.cols).Int(shares).Ptr(partial)
	scalarArg(args, alpha)
	scalarArg(args, beta)
	viewArg(args, c)
	args.Int(lanes)
	return q.engine.launch("thin_sum", line(c.rows*c.cols*lanes))
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
