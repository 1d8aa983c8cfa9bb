package cuda

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
)

// Products are computed by cuBLAS if it is available, and otherwise by the device functions.

func (q *queue[T]) Gemm(tA, tB backend.Trans, alpha T, a, b backend.Matrix[T], beta T, c backend.Matrix[T]) {
	check.Gemm(tA, tB, a, b, c)
	A, B, C := q.ownMatrix("Gemm", a), q.ownMatrix("Gemm", b), q.ownMatrix("Gemm", c)
	q.run("gemm", func() error { return q.gemm(tA, tB, alpha, A, B, beta, C, rounding{}) })
}

func (q *queue[T]) gemm(tA, tB backend.Trans, alpha T, a, b *matrix[T], beta T, c *matrix[T], r rounding) error {
	bl := q.engine.device.libraries.Blas
	if bl == nil || alpha == 0 || c.rows == 0 || c.cols == 0 || a.view().op(tA).cols == 0 {
		return q.product(alpha, a.view().op(tA), b.view().op(tB), beta, c.view(), whole, whole)
	}
	return q.blasGemm(bl, tA, tB, alpha, a, b, beta, c, r)
}

// cuts are the sizes at which work for the libraries is divided. Tests reduce them.
var cuts = struct {
	tile    int // products are divided at multiples of tile
	solve   int // order of the largest triangle of a solve, and of the largest block on the diagonal of a syrk
	columns int // right-hand sides of a solve are divided at multiples of columns
	// fewColumns is the largest number of right-hand sides for which the time of a solve is the time to read the
	// triangle. Up to this number, cuBLAS solves only with triangles of order at most fewOrder; the rest are products.
	fewColumns, fewOrder int
	// At most `vectors` right-hand sides are solved one at a time, each by one call with the whole triangle.
	vectors int
	symm    int // largest order of a symmetric matrix that is multiplied without halving it
	// A product with a small number of columns takes two launches instead of one if the matrix has
	// at least minThin elements.
	minThin int
	// For a product with a small number of columns, a symmetric matrix is divided into squares, of which `squares`
	// are in each row. Their partial sums take 1/100 of the bytes of the matrix.
	squares int
	// In the method gramSymv, a square has at most side × side tiles.
	side int
	// A factorization of order n in reduced precision computes the diagonal blocks of order `reduced`, about
	// 3·reduced/n of its operations, in full float32. A product whose numbers of rows, columns and terms are all
	// at least minHalf uses copies of its factors in FP16, of at most halfBytes.
	reduced, minHalf int
	halfBytes        int64
	// cuSOLVER factors triangles of order minSolver or more. The lower triangle in column-major order takes 1/1.4
	// to 1/2.2 of the time of the upper triangle (ml-explore/mlx#4208). It is factored in place if its order is at
	// most maxInPlace. An upper triangle is factored in a transposed copy if its order is at most maxCopied.
	minSolver, maxInPlace, maxCopied int
}{tile: 128, solve: 4096, columns: 256, fewColumns: 32, fewOrder: 512, vectors: 4, symm: 8192, minThin: 64 * 64, squares: 128, side: 8, reduced: 512, minHalf: 256, halfBytes: 512 << 20, minSolver: 512, maxInPlace: 16384, maxCopied: 4096}

// opOf returns the operation of cuBLAS on a row-major factor, which cuBLAS reads as its transpose.
func opOf(t backend.Trans) driver.Op {
	if t == backend.Transpose {
		return driver.T
	}
	return driver.N
}

// fillOf returns the triangle of a row-major matrix in the column-major order of the library.
func fillOf(ul backend.Uplo) driver.Fill {
	if ul == backend.Lower {
		return driver.Upper
	}
	return driver.Lower
}

// chunk divides the m × n elements of a product, each a sum of k terms, into one block for each step of the queue, and
// returns the numbers of rows and columns of a block. A square block reads the fewest elements of the two factors.
func (q *queue[T]) chunk(m, n, k int) (rows, cols int) {
	results := q.libraryStep() / (2 * float64(max(k, 1)))
	if float64(m)*float64(n) <= results {
		return m, n
	}
	side := math.Sqrt(results)
	roundDown := func(v float64, limit int) int {
		if v >= float64(limit) {
			return limit
		}
		return min(max(int(v)/cuts.tile, 1)*cuts.tile, limit)
	}
	switch {
	case float64(n) <= side:
		return roundDown(results/float64(n), m), n
	case float64(m) <= side:
		return m, roundDown(results/float64(m), n)
	}
	return roundDown(side, m), roundDown(side, n)
}

// blasGemm computes C ← α op(A) op(B) + β C by cuBLAS; no dimension may be 0.
func (q *queue[T]) blasGemm(bl *driver.Blas, tA, tB backend.Trans, alpha T, a, b *matrix[T], beta T, c *matrix[T], r rounding) error {
	k := a.view().op(tA).cols
	if c.cols == 1 {
		return q.blasGemv(bl, tA, alpha, a, b.view().op(tB), beta, c)
	}
	if r.scale > 0 && min(c.rows, c.cols, k) >= cuts.minHalf {
		return q.halfGemm(bl, tA, tB, alpha, a, b, beta, c, r)
	}
	rows, cols := q.chunk(c.rows, c.cols, k)
	for i := 0; i < c.rows; i += rows {
		count := min(rows, c.rows-i)
		left := a.view().op(tA).window(i, 0, count, k).ptr
		for j := 0; j < c.cols; j += cols {
			width := min(cols, c.cols-j)
			right := b.view().op(tB).window(0, j, k, width).ptr
			err := q.step(flop.Gemm(count, width, k), func() error {
				if err := q.engine.device.setTF32(r.reduced); err != nil {
					return err
				}
				return driver.Gemm(bl, opOf(tB), opOf(tA), width, count, k, alpha, right, b.stride, left, a.stride, beta, c.at(i, j), c.stride)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// blasGemv computes y ← α op(A) x + β y by cuBLAS in full precision.
func (q *queue[T]) blasGemv(bl *driver.Blas, t backend.Trans, alpha T, a *matrix[T], x view[T], beta T, y *matrix[T]) error {
	op := driver.T // cuBLAS is column-major: its columns are the rows of A
	if t == backend.Transpose {
		op = driver.N
	}
	rows, _ := q.chunk(y.rows, 1, x.rows)
	for i := 0; i < y.rows; i += rows {
		count := min(rows, y.rows-i)
		aRows := a.view().op(t).window(i, 0, count, x.rows)
		m, n := x.rows, count // dimensions of A in column-major order
		if t == backend.Transpose {
			m, n = count, x.rows
		}
		err := q.step(flop.Gemm(count, 1, x.rows), func() error {
			if err := q.engine.device.setTF32(false); err != nil {
				return err
			}
			return driver.Gemv(bl, op, m, n, alpha, aRows.ptr, a.stride, x.ptr, x.rs, beta, y.at(i, 0), y.stride)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// setTF32 sets whether cuBLAS rounds the factors of float32 products to TF32.
func (d *device) setTF32(reduced bool) error {
	if d.reduced == reduced {
		return nil
	}
	err := d.libraries.Blas.SetTF32(reduced)
	if err == nil {
		d.reduced = reduced
	}
	return err
}

func (q *queue[T]) Syrk(ul backend.Uplo, t backend.Trans, alpha T, a backend.Matrix[T], beta T, c backend.Matrix[T]) {
	check.Syrk(ul, t, a, c)
	A, C := q.ownMatrix("Syrk", a), q.ownMatrix("Syrk", c)
	q.run("syrk", func() error { return q.syrk(ul, t, alpha, A, beta, C, rounding{}) })
}

// syrk computes C ← α op(A) op(A)ᵀ + β C on a triangle, block by block along the diagonal. The elements beside each
// block are computed by a product, which may be in reduced precision. The diagonal blocks are in full precision.
func (q *queue[T]) syrk(ul backend.Uplo, t backend.Trans, alpha T, a *matrix[T], beta T, c *matrix[T], r rounding) error {
	op := a.view().op(t)
	n, k := op.rows, op.cols
	bl := q.engine.device.libraries.Blas
	if bl == nil || alpha == 0 || k == 0 || n == 0 {
		return q.product(alpha, op, op.t(), beta, c.view(), regionOf(ul), whole)
	}
	size, _ := q.chunk(n, n, k)
	size = max(min(size, cuts.solve), cuts.columns)
	if r.reduced {
		size = min(size, cuts.reduced)
	}
	rowsOf := func(i, count int) *matrix[T] { // rowsOf returns rows i … i+count−1 of op(A)
		if t == backend.Transpose {
			return a.window(0, i, k, count)
		}
		return a.window(i, 0, count, k)
	}
	for i := 0; i < n; i += size {
		count := min(size, n-i)
		rows := rowsOf(i, count)
		err := q.step(flop.Syrk(count, k), func() error {
			if err := q.engine.device.setTF32(false); err != nil {
				return err
			}
			// cuBLAS reads the stored rows as the transpose of op(A).
			return driver.Syrk(bl, fillOf(ul), opOf(1-t), count, k, alpha, rows.ptr, a.stride, beta, c.at(i, i), c.stride)
		})
		if err == nil && i > 0 && r.scale == 0 {
			if ul == backend.Lower {
				err = q.blasGemm(bl, t, 1-t, alpha, rows, rowsOf(0, i), beta, c.window(i, 0, count, i), r)
			} else {
				err = q.blasGemm(bl, t, 1-t, alpha, rowsOf(0, i), rows, beta, c.window(0, i, i, count), r)
			}
		}
		if err != nil {
			return err
		}
	}
	if r.scale > 0 && n > size {
		return q.halfSyrk(bl, ul, t, alpha, a, beta, c, size, r)
	}
	return nil
}

func (q *queue[T]) Symm(ul backend.Uplo, alpha T, a, b backend.Matrix[T], beta T, c backend.Matrix[T]) {
	check.Symm(ul, a, b, c)
	A, B, C := q.ownMatrix("Symm", a), q.ownMatrix("Symm", b), q.ownMatrix("Symm", c)
	q.run("symm", func() error { return q.symm(ul, alpha, A, B, beta, C) })
}

// symm computes C ← α A B + β C. It halves a large A, whose off-diagonal square takes two ordinary products. For a
// small number of columns it uses a device function, which reads A once.
func (q *queue[T]) symm(ul backend.Uplo, alpha T, a, b *matrix[T], beta T, c *matrix[T]) error {
	bl := q.engine.device.libraries.Blas
	n := a.rows
	if bl == nil || alpha == 0 || c.rows == 0 || c.cols <= maxThinCols {
		return q.product(alpha, a.view(), b.view(), beta, c.view(), whole, regionOf(ul))
	}
	if n <= cuts.symm && flop.Symm(n, c.cols) <= q.libraryStep() || n <= 2*block {
		return q.step(flop.Symm(n, c.cols), func() error {
			if err := q.engine.device.setTF32(false); err != nil {
				return err
			}
			return driver.Symm(bl, driver.Right, fillOf(ul), c.cols, c.rows, alpha, a.ptr, a.stride, b.ptr, b.stride, beta, c.ptr, c.stride)
		})
	}
	n1 := halfOrder(n)
	b1, b2 := b.window(0, 0, n1, b.cols), b.window(n1, 0, n-n1, b.cols)
	c1, c2 := c.window(0, 0, n1, c.cols), c.window(n1, 0, n-n1, c.cols)
	offDiagonal, t := a.window(n1, 0, n-n1, n1), backend.NoTrans // A₂₁
	if ul == backend.Upper {
		offDiagonal, t = a.window(0, n1, n1, n-n1), backend.Transpose
	}
	if err := q.symm(ul, alpha, a.window(0, 0, n1, n1), b1, beta, c1); err != nil {
		return err
	}
	if err := q.blasGemm(bl, 1-t, backend.NoTrans, alpha, offDiagonal, b2, 1, c1, rounding{}); err != nil {
		return err
	}
	if err := q.symm(ul, alpha, a.window(n1, n1, n-n1, n-n1), b2, beta, c2); err != nil {
		return err
	}
	return q.blasGemm(bl, t, backend.NoTrans, alpha, offDiagonal, b1, 1, c2, rounding{})
}
