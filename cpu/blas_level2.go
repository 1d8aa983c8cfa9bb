package cpu

import (
	"math"

	"gonum.org/v1/gonum/blas"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// This file implements levels 2 and 1 of BLAS. Calls with contiguous vectors use the micro-kernels and, above a
// minimum size, several workers. All other calls, including those with invalid arguments, go to gonum.

// The constants sharedGemv, sharedSymv (elements of the matrix) and sharedVector (elements of a vector) are the sizes
// from which several workers are faster than one. vectorPiece is the number of elements of a vector in one task.
const (
	sharedGemv = 512 * 512
	sharedSymv = 1024 * 1024

	sharedVector = 1 << 18
	vectorPiece  = 1 << 15
)

// ranges reports whether x and y are contiguous and have at least nx and ny elements, respectively.
func ranges(lenX, incX, nx, lenY, incY, ny int) bool {
	return incX == 1 && incY == 1 && nx <= lenX && ny <= lenY
}

// fitsOneWorker reports whether the m × n matrix is valid, not empty, and needs no second worker.
func fitsOneWorker(m, n, lenA, lda int) bool {
	return uint(m-1)|uint(n-1) < 1<<20-1 && m*n < sharedGemv && lda >= n && lenA >= (m-1)*lda+n
}

func (impl BLAS) Dgemv(tA blas.Transpose, m, n int, alpha float64, a []float64, lda int, x []float64, incX int, beta float64, y []float64, incY int) {
	switch {
	case tA == blas.NoTrans && alpha != 0 && fitsOneWorker(m, n, len(a), lda) && ranges(len(x), incX, n, len(y), incY, m):
		impl.tier().F64.Gemv(m, n, alpha, &a[0], lda, &x[0], beta, &y[0])
	case tA == blas.Trans && alpha != 0 && fitsOneWorker(m, n, len(a), lda) && ranges(len(x), incX, m, len(y), incY, n):
		impl.tier().F64.GemvT(m, n, alpha, &a[0], lda, &x[0], beta, &y[0])
	case !blasGemv(impl.device().f64, tA, m, n, alpha, a, lda, x, incX, beta, y, incY):
		impl.Implementation.Dgemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
	}
}

func (impl BLAS) Sgemv(tA blas.Transpose, m, n int, alpha float32, a []float32, lda int, x []float32, incX int, beta float32, y []float32, incY int) {
	switch {
	case tA == blas.NoTrans && alpha != 0 && fitsOneWorker(m, n, len(a), lda) && ranges(len(x), incX, n, len(y), incY, m):
		impl.tier().F32.Gemv(m, n, alpha, &a[0], lda, &x[0], beta, &y[0])
	case tA == blas.Trans && alpha != 0 && fitsOneWorker(m, n, len(a), lda) && ranges(len(x), incX, m, len(y), incY, n):
		impl.tier().F32.GemvT(m, n, alpha, &a[0], lda, &x[0], beta, &y[0])
	case !blasGemv(impl.device().f32, tA, m, n, alpha, a, lda, x, incX, beta, y, incY):
		impl.Implementation.Sgemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
	}
}

func (impl BLAS) Dger(m, n int, alpha float64, x []float64, incX int, y []float64, incY int, a []float64, lda int) {
	switch {
	case alpha != 0 && fitsOneWorker(m, n, len(a), lda) && ranges(len(x), incX, m, len(y), incY, n):
		impl.tier().F64.Ger(m, n, alpha, &x[0], &y[0], &a[0], lda)
	case !blasGer(impl.device().f64, m, n, alpha, x, incX, y, incY, a, lda):
		impl.Implementation.Dger(m, n, alpha, x, incX, y, incY, a, lda)
	}
}

func (impl BLAS) Sger(m, n int, alpha float32, x []float32, incX int, y []float32, incY int, a []float32, lda int) {
	switch {
	case alpha != 0 && fitsOneWorker(m, n, len(a), lda) && ranges(len(x), incX, m, len(y), incY, n):
		impl.tier().F32.Ger(m, n, alpha, &x[0], &y[0], &a[0], lda)
	case !blasGer(impl.device().f32, m, n, alpha, x, incX, y, incY, a, lda):
		impl.Implementation.Sger(m, n, alpha, x, incX, y, incY, a, lda)
	}
}

func (impl BLAS) Dsymv(ul blas.Uplo, n int, alpha float64, a []float64, lda int, x []float64, incX int, beta float64, y []float64, incY int) {
	switch {
	case !symvFits(ul, n, alpha, a, lda, x, incX, y, incY):
		impl.Implementation.Dsymv(ul, n, alpha, a, lda, x, incX, beta, y, incY)
	case n < plainSymvOrder:
		plainSymv(ul == blas.Lower, alpha, a, lda, x[:n], beta, y)
	default:
		blasSymv(impl.device().f64, ul, n, alpha, a, lda, x, beta, y)
	}
}

func (impl BLAS) Ssymv(ul blas.Uplo, n int, alpha float32, a []float32, lda int, x []float32, incX int, beta float32, y []float32, incY int) {
	switch {
	case !symvFits(ul, n, alpha, a, lda, x, incX, y, incY):
		impl.Implementation.Ssymv(ul, n, alpha, a, lda, x, incX, beta, y, incY)
	case n < plainSymvOrder:
		plainSymv(ul == blas.Lower, alpha, a, lda, x[:n], beta, y)
	default:
		blasSymv(impl.device().f32, ul, n, alpha, a, lda, x, beta, y)
	}
}

func (impl BLAS) Dtrsv(ul blas.Uplo, tA blas.Transpose, d blas.Diag, n int, a []float64, lda int, x []float64, incX int) {
	switch {
	case !trsvFits(ul, tA, d, n, len(a), lda, len(x), incX):
		impl.Implementation.Dtrsv(ul, tA, d, n, a, lda, x, incX)
	case n <= trsvOrder:
		smallTrsv(&impl.tier().F64, ul == blas.Lower, tA != blas.NoTrans, d == blas.Unit, n, a, lda, x)
	default:
		blasTrsv(impl.device().f64, ul == blas.Lower, tA != blas.NoTrans, d == blas.Unit, n, a, lda, x)
	}
}

func (impl BLAS) Strsv(ul blas.Uplo, tA blas.Transpose, d blas.Diag, n int, a []float32, lda int, x []float32, incX int) {
	switch {
	case !trsvFits(ul, tA, d, n, len(a), lda, len(x), incX):
		impl.Implementation.Strsv(ul, tA, d, n, a, lda, x, incX)
	case n <= trsvOrder:
		smallTrsv(&impl.tier().F32, ul == blas.Lower, tA != blas.NoTrans, d == blas.Unit, n, a, lda, x)
	default:
		blasTrsv(impl.device().f32, ul == blas.Lower, tA != blas.NoTrans, d == blas.Unit, n, a, lda, x)
	}
}

func (impl BLAS) Ddot(n int, x []float64, incX int, y []float64, incY int) float64 {
	switch {
	case n <= 0 || !ranges(len(x), incX, n, len(y), incY, n):
		return impl.Implementation.Ddot(n, x, incX, y, incY)
	case n <= ukr.ShortBytes/8 && impl.tier().Short:
		return ukr.ShortDotF64(n, &x[0], &y[0])
	case n < sharedVector:
		return impl.tier().F64.Dot(n, &x[0], &y[0])
	}
	return blasDot(impl.device().f64, x[:n], y)
}

func (impl BLAS) Sdot(n int, x []float32, incX int, y []float32, incY int) float32 {
	switch {
	case n <= 0 || !ranges(len(x), incX, n, len(y), incY, n):
		return impl.Implementation.Sdot(n, x, incX, y, incY)
	case n <= ukr.ShortBytes/4 && impl.tier().Short:
		return ukr.ShortDotF32(n, &x[0], &y[0])
	case n < sharedVector:
		return impl.tier().F32.Dot(n, &x[0], &y[0])
	}
	return blasDot(impl.device().f32, x[:n], y)
}

func (impl BLAS) Daxpy(n int, alpha float64, x []float64, incX int, y []float64, incY int) {
	switch {
	case n <= 0 || alpha == 0 || !ranges(len(x), incX, n, len(y), incY, n):
		impl.Implementation.Daxpy(n, alpha, x, incX, y, incY)
	case n <= ukr.ShortBytes/8 && impl.tier().Short:
		ukr.ShortAxpyF64(n, alpha, &x[0], &y[0])
	case n < sharedVector:
		impl.tier().F64.Axpy(n, alpha, &x[0], &y[0])
	default:
		blasAxpy(impl.device().f64, alpha, x[:n], y)
	}
}

func (impl BLAS) Saxpy(n int, alpha float32, x []float32, incX int, y []float32, incY int) {
	switch {
	case n <= 0 || alpha == 0 || !ranges(len(x), incX, n, len(y), incY, n):
		impl.Implementation.Saxpy(n, alpha, x, incX, y, incY)
	case n <= ukr.ShortBytes/4 && impl.tier().Short:
		ukr.ShortAxpyF32(n, alpha, &x[0], &y[0])
	case n < sharedVector:
		impl.tier().F32.Axpy(n, alpha, &x[0], &y[0])
	default:
		blasAxpy(impl.device().f32, alpha, x[:n], y)
	}
}

func (impl BLAS) Dnrm2(n int, x []float64, incX int) float64 {
	if n > 1 && incX == 1 && n <= len(x) {
		// A sum of squares in this range was not affected by overflow or underflow.
		if sq := impl.Ddot(n, x, 1, x, 1); sq > 0x1p-900 && sq < 0x1p1000 {
			return math.Sqrt(sq)
		}
	}
	return impl.Implementation.Dnrm2(n, x, incX)
}

func (impl BLAS) Snrm2(n int, x []float32, incX int) float32 {
	if n > 1 && incX == 1 && n <= len(x) {
		if sq := impl.Sdot(n, x, 1, x, 1); sq > 0x1p-80 && sq < 0x1p100 {
			return float32(math.Sqrt(float64(sq)))
		}
	}
	return impl.Implementation.Snrm2(n, x, incX)
}

// blasGemv computes a product of any size and returns true, or returns false if gonum has to compute it.
func blasGemv[T backend.Float](e *engine[T], tA blas.Transpose, m, n int, alpha T, a []T, lda int, x []T, incX int, beta T, y []T, incY int) bool {
	if m <= 0 || n <= 0 || alpha == 0 || lda < n || len(a) < (m-1)*lda+n || tA != blas.NoTrans && tA != blas.Trans && tA != blas.ConjTrans {
		return false
	}
	rows, cols := swapIf(tA, m, n)
	if !ranges(len(x), incX, cols, len(y), incY, rows) {
		return false
	}
	q := &queue[T]{engine: e}
	q.gemv(alpha, rowMajor(a, m, n, lda).op(transposed(tA)), rowMajor(x, cols, 1, 1), beta, rowMajor(y, rows, 1, 1))
	return true
}

// blasGer computes an update of any size and returns true, or returns false if gonum has to compute it.
func blasGer[T backend.Float](e *engine[T], m, n int, alpha T, x []T, incX int, y []T, incY int, a []T, lda int) bool {
	if m <= 0 || n <= 0 || alpha == 0 || lda < n || len(a) < (m-1)*lda+n || !ranges(len(x), incX, m, len(y), incY, n) {
		return false
	}
	q := &queue[T]{engine: e}
	q.rows(m, n, func(lo, hi int) { e.ukr.Ger(hi-lo, n, alpha, &x[lo], &y[0], &a[lo*lda], lda) })
	return true
}

// symvFits reports whether a Symv is not empty and has contiguous vectors.
func symvFits[T backend.Float](ul blas.Uplo, n int, alpha T, a []T, lda int, x []T, incX int, y []T, incY int) bool {
	return n > 0 && alpha != 0 && lda >= n && len(a) >= (n-1)*lda+n && (ul == blas.Upper || ul == blas.Lower) && ranges(len(x), incX, n, len(y), incY, n)
}

// trsvFits reports whether a Trsv is not empty, has a contiguous vector, and has valid arguments.
func trsvFits(ul blas.Uplo, tA blas.Transpose, d blas.Diag, n, lenA, lda, lenX, incX int) bool {
	return n > 0 && lda >= n && lenA >= (n-1)*lda+n && incX == 1 && lenX >= n && (ul == blas.Upper || ul == blas.Lower) &&
		(tA == blas.NoTrans || tA == blas.Trans || tA == blas.ConjTrans) && (d == blas.Unit || d == blas.NonUnit)
}

// blasTrsv solves op(A) x = b in place by substitution; op(A) is lower triangular if lower != trans.
func blasTrsv[T backend.Float](e *engine[T], lower, trans, unit bool, n int, a []T, lda int, x []T) {
	v := rowMajor(a, n, n, lda)
	if trans {
		v = v.t()
	}
	if n <= trsvBlock {
		e.solveVector(lower != trans, unit, v, x[:n])
		return
	}
	q := &queue[T]{engine: e}
	q.trsv(lower != trans, unit, 1, v, rowMajor(x, n, 1, 1))
}

func blasSymv[T backend.Float](e *engine[T], ul blas.Uplo, n int, alpha T, a []T, lda int, x []T, beta T, y []T) {
	if n < 1<<20 && n*n < sharedSymv {
		e.smallSymv(triangle(ul), alpha, a, lda, x[:n], beta, y[:n])
		return
	}
	q := &queue[T]{engine: e}
	q.symv(triangle(ul), alpha, rowMajor(a, n, n, lda), rowMajor(x, n, 1, 1), beta, rowMajor(y, n, 1, 1))
}

// blasDot and blasAxpy use several workers, in tasks that do not depend on the number of workers.

func blasDot[T backend.Float](e *engine[T], x, y []T) T {
	q := &queue[T]{engine: e}
	parts := make([]T, panels(len(x), vectorPiece))
	q.chunks(len(x), vectorPiece, copyFlops(2*len(x)), func(_ *scratch[T], i, count int) {
		parts[i/vectorPiece] = e.dot(x[i:i+count], y[i:])
	})
	var sum T
	for _, part := range parts {
		sum += part
	}
	return sum
}

func blasAxpy[T backend.Float](e *engine[T], alpha T, x, y []T) {
	q := &queue[T]{engine: e}
	q.chunks(len(x), vectorPiece, copyFlops(3*len(x)), func(_ *scratch[T], i, count int) {
		e.axpy(alpha, x[i:i+count], y[i:])
	})
}
