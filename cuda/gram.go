package cuda

import (
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/kernels"
)

// cost returns the approximate number of instructions per pair of points.
func (p *program[T]) cost(d int) float64 {
	pair := float64(2*d + 5)
	if p.form == general {
		pair = float64((2*d+10)*max(len(p.of.Stats), 1) + 20*len(p.of.Code))
	}
	if sizeOf[T]() == 8 || p.form != exponential {
		pair += 30 // exp in float64, or by more than one instruction
	}
	return pair
}

// pairsOfStep returns the number of pairs of points in a step of about 30 ms, at half the peak
// instruction rate of the device.
func (q *queue[T]) pairsOfStep(instructions float64) float64 {
	p := q.engine.device.props
	rate := p.single() / 2
	if sizeOf[T]() == 8 {
		rate /= float64(max(p.ratio, 1))
	}
	return 0.03 * 0.5 * rate / instructions
}

// rowsOfPairs returns the number of the n rows, each with m pairs of points, that make up a
// step.
func (q *queue[T]) rowsOfPairs(n, m int, instructions float64) int {
	rows := q.pairsOfStep(instructions) / float64(max(m, 1))
	if rows >= float64(n) {
		return max(n, 1)
	}
	return max(1, int(rows)/tile) * tile
}

func (q *queue[T]) Gram(dst backend.Matrix[T], k kernels.Kernel, x, z backend.Matrix[T]) {
	check.Gram(dst, k, x, z)
	K, X, Z := q.own("Gram", dst), q.own("Gram", x), q.own("Gram", z)
	q.run("gram", func() error {
		part := whole
		if X.same(Z) {
			part = lower
		}
		return q.gram(K.view(), k, X, Z, part)
	})
}

// gram computes out ← k(X, Z) on a part of out, a range of rows at a time.
func (q *queue[T]) gram(out view[T], k kernels.Kernel, x, z *matrix[T], part region) error {
	n, m, d := x.rows, z.rows, x.cols
	if n == 0 || m == 0 {
		return nil
	}
	p, err := q.program(k, x, z)
	if err != nil {
		return err
	}
	rows := min(q.rowsOfPairs(n, m, p.cost(d)), 65535*tile)
	for i := 0; i < n && err == nil; i += rows {
		count := min(rows, n-i)
		work := flop.Gemm(count, m, d)
		if part != whole { // the square on the diagonal, and the rectangle beside it
			beside := i
			if part == upper {
				beside = m - i - count
			}
			work = flop.Gemm(count, beside, d) + flop.Syrk(count, d)
		}
		err = q.step(work, func() error {
			switch part {
			case lower:
				return q.gramRows(p, out, x, z, i, count)
			case upper:
				return q.gramTile(p, out, x, z, i, count, i, m-i, upper)
			}
			return q.gramTile(p, out, x, z, i, count, 0, m, whole)
		})
	}
	if free := p.free(); err == nil {
		err = free
	}
	return err
}

// gramRows evaluates rows i … i+rows−1 of the lower triangle.
func (q *queue[T]) gramRows(p *program[T], out view[T], x, z *matrix[T], i, rows int) error {
	if err := q.gramTile(p, out, x, z, i, rows, 0, i, whole); err != nil {
		return err
	}
	return q.gramTile(p, out, x, z, i, rows, i, rows, lower)
}

// gramTile evaluates rows i … i+rows−1 and columns j … j+cols−1; part belongs to that tile.
// Statistics of one point belong to the tile's points.
func (q *queue[T]) gramTile(p *program[T], out view[T], x, z *matrix[T], i, rows, j, cols int, part region) error {
	if rows <= 0 || cols <= 0 {
		return nil
	}
	args := q.engine.device.args.Reset().Int(rows).Int(cols).Int(x.cols).Ptr(x.at(i, 0)).Long(x.stride).Ptr(z.at(j, 0)).Long(z.stride)
	viewArg(args, out.part(i, j, rows, cols))
	args.Int(int(part)).Bytes(p.shifted(i, j))
	return q.engine.launch("gram"+p.formed(), driver.Grid{Blocks: [3]int{ceil(cols, tile), ceil(rows, tile), 1}, Threads: [3]int{threads, 1, 1}})
}

// formed returns the suffix of the names of the functions gram and gram_mul that are
// specialized for the most common programs, and "" for other programs.
func (p *program[T]) formed() string {
	if p.form == general {
		return ""
	}
	switch s := p.of.Stats[0]; {
	case s.Kind == kernels.Dot && s.Scale == nil:
		return "_dot"
	case s.Kind == kernels.SqDist && s.Scale == nil:
		return "_sqdist"
	case s.Kind == kernels.SqDist:
		return "_scaled"
	}
	return ""
}

// fewFeatures returns the numbers of features for which there are specialized functions of
// a kernel for one column.
func fewFeatures(kernel string) []int {
	if kernel == "gauss" {
		return []int{3, 4, 8, 16}
	}
	return []int{3, 8}
}

// mul returns the function for a product with t columns of points with d features, and the
// numbers of rows and columns of K that a block of threads processes at a time.
func (p *program[T]) mul(d, t int) (name string, rows, cols int) {
	low := p.form != general && p.of.Stats[0].Kind <= kernels.L1 && p.of.Stats[0].Scale == nil
	if low && p.one != "" && t == 1 {
		each := 4 // rows per thread
		if sizeOf[T]() == 8 {
			each = 2
		}
		for _, most := range fewFeatures(p.one) {
			if d <= most {
				return fmt.Sprintf("%s_mul%d", p.one, most), each * threads, threads
			}
		}
	}
	if low {
		for _, most := range []int{3, 8, 16} {
			if d <= most && (d <= 8 || p.formed() == "") {
				return fmt.Sprintf("gram_mul_low%d", most), threads, threads
			}
		}
	}
	name = "gram_mul" + p.formed()
	if t == 1 && p.formed() != "" {
		name += "1"
	}
	return name, tile, tile
}

func (q *queue[T]) GramMul(dst backend.Matrix[T], k kernels.Kernel, x, z, v backend.Matrix[T]) {
	check.GramMul(dst, k, x, z, v)
	out, X, Z, V := q.own("GramMul", dst), q.own("GramMul", x), q.own("GramMul", z), q.own("GramMul", v)
	q.run("gram product", func() error {
		n, m, t := out.rows, Z.rows, out.cols
		if n == 0 || t == 0 {
			return nil
		}
		if m == 0 {
			return q.scale(0, out.view(), whole, false)
		}
		p, err := q.program(k, X, Z)
		if err != nil {
			return err
		}
		if t == 1 && X.same(Z) && p.formed() != "" && (sizeOf[T]() == 8 || X.cols > 16) {
			return errors.Join(q.gramSymv(p, out, X, V), p.free())
		}
		for c := 0; c < t && err == nil; c += wide {
			cols := min(wide, t-c)
			err = q.gramMul(p, out.View(0, c, n, cols).(*matrix[T]), X, Z, V.View(0, c, m, cols).(*matrix[T]))
		}
		if free := p.free(); err == nil {
			err = free
		}
		return err
	})
}

// The columns of K are divided into shares, one per block of threads. A share has at least
// shareTiles tiles, so that reading the rows pays, and at most shareColumns columns, so
// that a step has enough blocks to occupy a device. Between these limits, mostBlocks blocks
// are used. Shares depend only on the shapes, so that the sums do not depend on the device.
const (
	shareTiles   = 2
	shareColumns = 4096
	mostBlocks   = 1024
)

// gramMul computes out ← k(X, Z) V for a small number of columns, a range of rows at a
// time.
func (q *queue[T]) gramMul(p *program[T], out, x, z, v *matrix[T]) error {
	n, m, d, t := x.rows, z.rows, x.cols, v.cols
	name, side, width := p.mul(d, t)
	tiles := ceil(m, width)
	shares := min(max(mostBlocks/ceil(n, side), ceil(m, shareColumns)), max(tiles/shareTiles, 1), 65535)
	share := ceil(tiles, shares)
	shares = ceil(tiles, share)
	rows := min(max(q.rowsOfPairs(n, m, p.cost(d)+float64(t)), side), n)
	return q.scratch(int64(shares)*int64(rows)*int64(t)*int64(sizeOf[T]()), func(partial driver.DevicePtr) error {
		for i := 0; i < n; i += rows {
			count := min(rows, n-i)
			err := q.step(flop.GramMul(count, m, d, t), func() error {
				args := q.engine.device.args.Reset().Int(count).Int(m).Int(d).Ptr(x.at(i, 0)).Long(x.stride).Ptr(z.ptr).Long(z.stride)
				args.Ptr(v.ptr).Long(v.stride).Int(t).Ptr(partial).Int(share).Bytes(p.shifted(i, 0))
				grid := driver.Grid{Blocks: [3]int{ceil(count, side), shares, 1}, Threads: [3]int{threads, 1, 1}}
				if err := q.engine.launch(name, grid); err != nil {
					return err
				}
				q.engine.device.args.Reset().Int(count).Int(t).Int(shares).Ptr(partial).Ptr(out.at(i, 0)).Long(out.stride)
				return q.engine.launch("sum_shares", line(count*t))
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// symvBytes is the approximate size of the sums of gramSymv, which have one more share than
// there are squares along a side of K.
const symvBytes = 64 << 20

// gramSymv computes out ← k(X, X) v for one column, evaluating each pair of points once,
// some rows of squares at a time. It is not used if there is a specialized function in
// float32 for the number of features: evaluating a pair twice there takes fewer
// instructions than summing over the threads of a block.
func (q *queue[T]) gramSymv(p *program[T], out, x, v *matrix[T]) error {
	n, d := x.rows, x.cols
	wanted := min(max(symvBytes/(n*sizeOf[T]()), 32), cuts.squares)
	side := ceil(n, tile*wanted)
	squares := ceil(n, tile*side)
	most := q.pairsOfStep(p.cost(d)+2) / float64(tile*side*tile*side) // squares per step
	return q.scratch(int64(squares+1)*int64(n)*int64(sizeOf[T]()), func(partial driver.DevicePtr) error {
		for first := 0; first < squares; {
			rows := 1
			for first+rows < squares && float64(rows+1)*float64(first+rows+1) <= most {
				rows++
			}
			done := float64(first+rows)/float64(squares) + float64(first)/float64(squares)
			err := q.step(flop.GramMul(n, n, d, 1)*done*float64(rows)/float64(squares), func() error {
				args := q.engine.device.args.Reset().Int(n).Int(d).Ptr(x.ptr).Long(x.stride).Ptr(v.ptr).Long(v.stride)
				args.Ptr(partial).Int(side).Int(first).Bytes(p.bytes)
				return q.engine.launch("gram_symv"+p.formed(), driver.Grid{Blocks: [3]int{first + rows, rows, 1}, Threads: [3]int{threads, 1, 1}})
			})
			if err != nil {
				return err
			}
			first += rows
		}
		q.engine.device.args.Reset().Int(n).Int(1).Int(squares + 1).Ptr(partial).Ptr(out.ptr).Long(out.stride)
		return q.engine.launch("sum_shares", line(n))
	})
}
