package cuda

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/kernels"
)

// pairFlops is what a pair of points counts beside its statistics when work is
// cut into steps.
const pairFlops = 40

func (q *queue[T]) Gram(dst backend.Matrix[T], k kernels.Kernel, x, z backend.Matrix[T]) {
	backend.CheckGram(dst, k, x, z)
	K, X, Z := q.own("Gram", dst), q.own("Gram", x), q.own("Gram", z)
	q.run("gram", func() error {
		part := whole
		if X.same(Z) {
			part = lower
		}
		return q.gram(K.view(), k, X, Z, part)
	})
}

// gram is out ← k(X, Z) on a part of it, a stretch of rows at a time.
func (q *queue[T]) gram(out view[T], k kernels.Kernel, x, z *matrix[T], part region) error {
	n, m, d := x.rows, z.rows, x.cols
	if n == 0 || m == 0 {
		return nil
	}
	p, err := q.program(k, x, z)
	if err != nil {
		return err
	}
	flops := backend.GemmFlops(1, m, d*max(len(p.of.Stats), 1)+pairFlops/2)
	rows := min(q.rowsOfStep(n, flops), 65535*tile)
	for i := 0; i < n && err == nil; i += rows {
		count := min(rows, n-i)
		// What lies beside the square on the diagonal is whole, or not wanted.
		left, from := 0, 0
		cols := m
		if part == lower {
			left, cols = i, min(i+count, m)
		}
		if part == upper {
			from = min(i, m)
		}
		work := backend.GemmFlops(count, cols-from, d)
		if part != whole {
			work = backend.GemmFlops(count, m-i-count, d) + backend.SyrkFlops(count, d)
			if part == lower {
				work = backend.GemmFlops(count, i, d) + backend.SyrkFlops(count, d)
			}
		}
		err = q.step(work, func() error {
			if part == lower && left > 0 {
				if err := q.gramTile(p, out, x, z, i, count, 0, left, whole); err != nil {
					return err
				}
				return q.gramTile(p, out, x, z, i, count, left, cols-left, lower)
			}
			if part == upper && from > 0 {
				return q.gramTile(p, out, x, z, i, count, from, cols-from, upper)
			}
			return q.gramTile(p, out, x, z, i, count, 0, cols, part)
		})
	}
	if free := p.free(); err == nil {
		err = free
	}
	return err
}

// gramTile evaluates rows i … i+rows−1 and columns j … j+cols−1; part is of that
// tile. Statistics of one point are those of the tile's points.
func (q *queue[T]) gramTile(p *program[T], out view[T], x, z *matrix[T], i, rows, j, cols int, part region) error {
	if rows <= 0 || cols <= 0 {
		return nil
	}
	args := q.engine.device.args.Reset().Int(rows).Int(cols).Int(x.cols).Ptr(x.at(i, 0)).Long(x.stride).Ptr(z.at(j, 0)).Long(z.stride)
	viewArg(args, out.part(i, j, rows, cols))
	args.Int(int(part)).Bytes(p.shifted(i, j))
	return q.engine.launch("gram", driver.Grid{Blocks: [3]int{ceil(cols, tile), ceil(rows, tile), 1}, Threads: [3]int{threads, 1, 1}})
}

// lowFeatures are the numbers of features of the gram_mul_low functions.
var lowFeatures = []int{3, 8, 16}

// lowName is the function for points with few features, if there is one.
func (p *program[T]) lowName(d int) (string, bool) {
	if p.form == general || p.of.Stats[0].Kind > kernels.L1 || p.of.Stats[0].Scale != nil {
		return "", false
	}
	for i, f := range lowFeatures {
		if d <= f {
			return []string{"gram_mul_low3", "gram_mul_low8", "gram_mul_low16"}[i], true
		}
	}
	return "", false
}

func (q *queue[T]) GramMul(dst backend.Matrix[T], k kernels.Kernel, x, z, v backend.Matrix[T]) {
	backend.CheckGramMul(dst, k, x, z, v)
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

// shareTiles is how many tiles of columns a block of threads goes through at
// least, so that reading its point pays.
const shareTiles = 8

// mostBlocks is about how many blocks of threads are wanted when the rows alone
// are too few to keep a device busy. Shares follow from the shapes alone.
const mostBlocks = 1024

// gramMul is out ← k(X, Z) V for few columns, a stretch of rows at a time.
func (q *queue[T]) gramMul(p *program[T], out, x, z, v *matrix[T]) error {
	n, m, d, t := x.rows, z.rows, x.cols, v.cols
	name, low := p.lowName(d)
	side := tile
	if low {
		side = threads
	} else {
		name = "gram_mul"
	}
	tiles := ceil(m, side)
	shares := min(max(mostBlocks/ceil(n, side), 1), ceil(tiles, shareTiles))
	share := ceil(tiles, shares)
	shares = ceil(tiles, share)
	flops := backend.GemmFlops(1, m, d*max(len(p.of.Stats), 1)+pairFlops/2+t)
	rows := min(max(q.rowsOfStep(n, flops), 4*side), n)
	return q.scratch(int64(shares)*int64(rows)*int64(t)*int64(sizeOf[T]()), func(partial driver.DevicePtr) error {
		for i := 0; i < n; i += rows {
			count := min(rows, n-i)
			err := q.step(backend.GramMulFlops(count, m, d, t), func() error {
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
