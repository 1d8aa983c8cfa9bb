package cuda

import (
	"errors"
	"fmt"
	"math"

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
		pair = float64((2*d+10)*max(len(p.compiled.Stats), 1) + 20*len(p.compiled.Code))
	}
	if sizeOf[T]() == 8 || p.form != exponential {
		pair += 30 // exp in float64, or a function that takes more instructions than exp
	}
	return pair
}

// blockInstructions is the largest number of float64 instructions of a block of threads, 34 ms on the slowest
// multiprocessors. It is the same for all devices, because it determines the rounding errors of K V.
const blockInstructions = 3.5e7

// tilesOfBlock returns how many tiles of K a block of threads may process, given the number of instructions per
// element. In float32 the number is constant.
func tilesOfBlock[T backend.Float](instructions float64) int {
	if sizeOf[T]() == 4 {
		return 1 << 16
	}
	return max(int(blockInstructions/(tile*tile*instructions)), 1)
}

// concurrentBlocks returns the number of blocks of threads that the device runs concurrently: two per
// multiprocessor, because the functions of Gram matrices use many registers.
func (p properties) concurrentBlocks() int { return 2 * max(p.processors, 1) }

// blocksOfStep returns how many blocks of threads, each of which executes the given number of instructions, fit in
// a step of about 30 ms. The result is a multiple of p.concurrentBlocks().
func (q *queue[T]) blocksOfStep(instructions float64) int {
	p := q.engine.device.props
	rate := p.singleRate() / 2
	if sizeOf[T]() == 8 {
		rate /= float64(max(p.ratio, 1))
	}
	waves := 0.03 * 0.5 * rate / (instructions * float64(p.concurrentBlocks()))
	return int(min(max(waves, 1), 1<<20)) * p.concurrentBlocks()
}

// stepGrid divides a grid of rows × cols blocks of threads into steps of r × c blocks, where 1 ≤ r ≤ maxRows and
// r·c ≤ maxBlocks. It minimizes the number of rounds of all steps, where a round is p.concurrentBlocks() blocks. If
// the largest possible r exceeds 16, only the upper half of the values of r is tried.
func (p properties) stepGrid(rows, cols, maxRows, maxBlocks int) (r, c int) {
	columns := func(r int) int { return min(cols, max(maxBlocks/r, 1)) }
	rounds := func(h, c int) int {
		return cols/c*ceil(h*c, p.concurrentBlocks()) + ceil(h*(cols%c), p.concurrentBlocks())
	}
	largest := max(min(rows, maxRows, max(maxBlocks/max(cols, 1), 16)), 1)
	r, minRounds := largest, math.MaxInt
	for candidate := largest; candidate > 0 && (candidate > largest/2 || largest <= 16); candidate-- {
		c := columns(candidate)
		if total := rows/candidate*rounds(candidate, c) + rounds(rows%candidate, c); total < minRounds {
			r, minRounds = candidate, total
		}
	}
	return r, columns(r)
}

func (q *queue[T]) Gram(dst backend.Matrix[T], k kernels.Kernel, x, z backend.Matrix[T]) {
	check.Gram(dst, k, x, z)
	K, X, Z := q.ownMatrix("Gram", dst), q.ownMatrix("Gram", x), q.ownMatrix("Gram", z)
	q.run("gram", func() error {
		part := whole
		if X.sameMemory(Z) {
			part = lower
		}
		return q.gram(K.view(), k, X, Z, part)
	})
}

// gram computes out ← k(X, Z) on the given part of out, one range of rows per step.
func (q *queue[T]) gram(out view[T], k kernels.Kernel, x, z *matrix[T], part region) error {
	n, m, d := x.rows, z.rows, x.cols
	if n == 0 || m == 0 {
		return nil
	}
	p, err := q.program(k, x, z)
	if err != nil {
		return err
	}
	rows, cols := q.engine.device.props.stepGrid(ceil(n, tile), ceil(m, tile), 65535, q.blocksOfStep(tile*tile*p.cost(d)))
	rows, cols = rows*tile, cols*tile
	for i := 0; i < n; i += rows {
		count := min(rows, n-i)
		from, to := 0, m
		switch part { // first compute the rectangle beside the square on the diagonal
		case lower:
			to = i
		case upper:
			from = i + count
		}
		if part != whole {
			err = q.step(flop.Syrk(count, d), func() error { return q.gramTile(p, out, x, z, i, count, i, count, part) })
		}
		for j := from; j < to && err == nil; j += cols {
			width := min(cols, to-j)
			err = q.step(flop.Gemm(count, width, d), func() error { return q.gramTile(p, out, x, z, i, count, j, width, whole) })
		}
		if err != nil {
			break
		}
	}
	if freeErr := p.free(); err == nil {
		err = freeErr
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

// gramTile evaluates the tile of rows i … i+rows−1 and columns j … j+cols−1 of k(X, Z), or the
// triangle of the tile that part selects.
func (q *queue[T]) gramTile(p *program[T], out view[T], x, z *matrix[T], i, rows, j, cols int, part region) error {
	if rows <= 0 || cols <= 0 {
		return nil
	}
	args := q.engine.device.args.Reset().Int(rows).Int(cols).Int(x.cols).Ptr(x.at(i, 0)).Long(x.stride).Ptr(z.at(j, 0)).Long(z.stride)
	viewArg(args, out.window(i, j, rows, cols))
	args.Int(int(part)).Bytes(p.shifted(i, j))
	return q.engine.launch("gram"+p.formed(), driver.Grid{Blocks: [3]int{ceil(cols, tile), ceil(rows, tile), 1}, Threads: [3]int{threads, 1, 1}})
}

// formed returns the suffix of the names of the functions gram and gram_mul that are specialized for the kernel's
// program, or "" if there are none.
func (p *program[T]) formed() string {
	if p.form == general {
		return ""
	}
	switch s := p.compiled.Stats[0]; {
	case s.Kind == kernels.Dot && s.Scale == nil:
		return "_dot"
	case s.Kind == kernels.SqDist && s.Scale == nil:
		return "_sqdist"
	case s.Kind == kernels.SqDist:
		return "_scaled"
	}
	return ""
}

// fewFeatures returns the numbers of features for which a kernel has specialized functions of a product K v.
func fewFeatures(kernel string) []int {
	if kernel == "gauss" {
		return []int{3, 4, 8, 16}
	}
	return []int{3, 8}
}

// mul returns the name of the device function for a product with t columns and points with d
// features, and the numbers of rows and columns of K that a block of threads processes at a time.
func (p *program[T]) mul(d, t int) (name string, rows, cols int) {
	low := p.form != general && p.compiled.Stats[0].Kind <= kernels.L1 && p.compiled.Stats[0].Scale == nil
	if low && p.vectorPrefix != "" && t == 1 {
		rowsPerThread := 4 // number of rows per thread
		if sizeOf[T]() == 8 {
			rowsPerThread = 2
		}
		for _, maxFeatures := range fewFeatures(p.vectorPrefix) {
			if d <= maxFeatures {
				return fmt.Sprintf("%s_mul%d", p.vectorPrefix, maxFeatures), rowsPerThread * threads, threads
			}
		}
	}
	if low {
		for _, maxFeatures := range []int{3, 8, 16} {
			if d <= maxFeatures && (d <= 8 || p.formed() == "") {
				return fmt.Sprintf("gram_mul_low%d", maxFeatures), threads, threads
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
	out, X, Z, V := q.ownMatrix("GramMul", dst), q.ownMatrix("GramMul", x), q.ownMatrix("GramMul", z), q.ownMatrix("GramMul", v)
	q.run("gram product", func() error { return q.gramProduct(out, k, X, Z, V) })
}

func (q *queue[T]) gramProduct(out *matrix[T], k kernels.Kernel, x, z, v *matrix[T]) error {
	n, m, t := out.rows, z.rows, out.cols
	if n == 0 || t == 0 {
		return nil
	}
	if m == 0 {
		return q.scale(0, out.view(), whole, false)
	}
	p, err := q.program(k, x, z)
	if err != nil {
		return err
	}
	if t == 1 && x.sameMemory(z) && p.formed() != "" && (sizeOf[T]() == 8 || x.cols > 16) {
		return errors.Join(q.gramSymv(p, out, x, v), p.free())
	}
	for c := 0; c < t && err == nil; c += maxMulCols {
		cols := min(maxMulCols, t-c)
		err = q.gramMul(p, out.window(0, c, n, cols), x, z, v.window(0, c, m, cols))
	}
	if freeErr := p.free(); err == nil {
		err = freeErr
	}
	return err
}

// The columns of K are divided into shares, each summed by one block of threads. A product has about targetBlocks
// blocks, or more if a share would exceed shareColumns columns. Shares depend only on the shapes, so that the sums
// are equal on all devices.
const (
	shareColumns = 4096
	targetBlocks = 4096
)

// partialBytes is the approximate limit, in bytes, of the partial sums that a step writes.
const partialBytes = 64 << 20

// gramMul computes out ← k(X, Z) V for a small number of columns of V. A step of the queue computes a range of rows
// of out or, if the rows of one row of blocks of threads exceed a step, a range of the shares of these rows.
func (q *queue[T]) gramMul(p *program[T], out, x, z, v *matrix[T]) error {
	n, m, d, t := x.rows, z.rows, x.cols, v.cols
	props, size := q.engine.device.props, sizeOf[T]()
	name, height, width := p.mul(d, t)
	tiles, cost := ceil(m, width), p.cost(d)+float64(t)
	maxTiles := min(shareColumns/width, max(tilesOfBlock[T](cost)*tile*tile/(height*width), 1)) // largest number of tiles of a share
	shares := min(max(targetBlocks/ceil(n, height), ceil(tiles, maxTiles)), tiles)
	tilesPerShare := ceil(tiles, shares)
	shares = ceil(tiles, tilesPerShare)
	step := q.blocksOfStep(float64(height*width*tilesPerShare) * cost)
	rows, cols := props.stepGrid(ceil(n, height), min(shares, 65535), partialBytes/(shares*height*t*size), step)
	rows = min(rows*height, n)
	return q.scratch(int64(shares)*int64(rows)*int64(t)*int64(size), func(partial driver.DevicePtr) error {
		for i := 0; i < n; i += rows {
			count := min(rows, n-i)
			for s := 0; s < shares; s += cols {
				shareCount := min(cols, shares-s)
				j := s * tilesPerShare * width
				points := min(shareCount*tilesPerShare*width, m-j)
				err := q.step(flop.GramMul(count, points, d, t), func() error {
					args := q.engine.device.args.Reset().Int(count).Int(points).Int(d).Ptr(x.at(i, 0)).Long(x.stride).Ptr(z.at(j, 0)).Long(z.stride)
					args.Ptr(v.at(j, 0)).Long(v.stride).Int(t).Ptr(partial + driver.DevicePtr(s*count*t*size)).Int(tilesPerShare).Bytes(p.shifted(i, j))
					return q.engine.launch(name, driver.Grid{Blocks: [3]int{ceil(count, height), shareCount, 1}, Threads: [3]int{threads, 1, 1}})
				})
				if err != nil {
					return err
				}
			}
			if err := q.addShares(shares, partial, 1, 0, out.view().window(i, 0, count, t)); err != nil {
				return err
			}
		}
		return nil
	})
}

// gramSymv computes out ← k(X, X) v for a single column v and evaluates the kernel once for each pair of points.
// For float32 and few features, gramMul is faster and used instead.
//
// A block of threads processes a square of tiles. A large K is divided into parts of at most maxSquares × maxSquares
// squares, so that the partial sums take at most partialBytes. The shape determines the order of the sums.
func (q *queue[T]) gramSymv(p *program[T], out, x, v *matrix[T]) error {
	n, d, size := x.rows, x.cols, sizeOf[T]()
	cost := p.cost(d) + 2
	side := min(ceil(n, tile*cuts.squares), cuts.side, int(math.Sqrt(float64(tilesOfBlock[T](cost)))))
	maxSquares := min(cuts.squares, int(math.Sqrt(partialBytes/float64(2*tile*side*size))))
	squares := ceil(n, tile*side)
	order := ceil(squares, ceil(squares, maxSquares)) // number of squares along a side of a part
	rows := min(order*side*tile, n)
	return q.scratch(int64(2*order)*int64(rows)*int64(size), func(partial driver.DevicePtr) error {
		for i := 0; i < n; i += rows {
			for j := 0; j <= i; j += rows {
				if err := q.gramSymvPart(p, out, x, v, partial, side, i, j, min(rows, n-i), min(rows, n-j)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// gramSymvPart multiplies one part of K, the rows i … i+n−1 and the columns j … j+m−1, by v and adds the product to
// out. If i ≠ j, it also adds the product of the transposed part with v. If j = 0, it overwrites out.
func (q *queue[T]) gramSymvPart(p *program[T], out, x, v *matrix[T], partial driver.DevicePtr, side, i, j, n, m int) error {
	height, width := ceil(n, tile*side), ceil(m, tile*side) // numbers of squares
	blocks, across, triangle := height*width, width, 0
	shares, weight := width, 2*float64(n)*float64(m) // number of shares of each row
	columns := partial + driver.DevicePtr(width*n*sizeOf[T]())
	if i == j {
		blocks, across, triangle = height*(height+1)/2, height+1, 1
		shares, weight = height+1, float64(n)*float64(n)
		columns = partial + driver.DevicePtr(n*sizeOf[T]()) // square (I, J) writes its column sums as share I + 1 of the rows of square (J, J)
	}
	work := flop.GramMul(x.rows, x.rows, x.cols, 1) * weight / (float64(x.rows) * float64(x.rows))
	step := q.blocksOfStep(float64(side*side*tile*tile) * (p.cost(x.cols) + 2))
	for first := 0; first < blocks; first += step {
		count := min(step, blocks-first)
		err := q.step(work*float64(count)/float64(blocks), func() error {
			args := q.engine.device.args.Reset().Int(n).Int(m).Int(x.cols).Ptr(x.at(i, 0)).Ptr(x.at(j, 0)).Long(x.stride)
			args.Ptr(v.at(i, 0)).Ptr(v.at(j, 0)).Long(v.stride).Ptr(partial).Ptr(columns)
			args.Int(side).Int(first).Int(across).Int(triangle).Bytes(p.bytes)
			return q.engine.launch("gram_symv"+p.formed(), driver.Grid{Blocks: [3]int{count, 1, 1}, Threads: [3]int{threads, 1, 1}})
		})
		if err != nil {
			return err
		}
	}
	beta := T(1)
	if j == 0 {
		beta = 0
	}
	err := q.addShares(shares, partial, 1, beta, out.view().window(i, 0, n, 1))
	if err == nil && i != j {
		err = q.addShares(height, columns, 1, 1, out.view().window(j, 0, m, 1))
	}
	return err
}
