package cpu

import (
	"math"

	"gonum.org/v1/gonum/blas"

	"github.com/mercer-go/mercer/backend"
)

// Levels 2 and 1: vectors in one piece and long enough go to the SIMD loops,
// shared by the workers where there is a matrix to read; the rest, and every
// argument that is not right, goes to gonum.

// How many elements are worth leaving gonum's loops for: those of a vector and
// of Gemv's matrix as it is and transposed. At these sizes both take
// the same time (one core of an AMD EPYC of family 25, November 2026).
const (
	worthVector = 256
	worthDgemv  = 48 * 48
	worthDgemvT = 28 * 28
	worthSgemv  = 30 * 30
	worthSgemvT = 16 * 16
)

// How many elements of a matrix are worth the workers.
const (
	sharedGemv = 512 * 512
	sharedSymv = 1024 * 1024
)

// vectors tells whether x and y are in one piece and reach to nx and ny
// elements.
func vectors[T backend.Float](nx int, x []T, incX, ny int, y []T, incY int) bool {
	return incX == 1 && incY == 1 && nx <= len(x) && ny <= len(y)
}

func (impl BLAS) Dgemv(tA blas.Transpose, m, n int, alpha float64, a []float64, lda int, x []float64, incX int, beta float64, y []float64, incY int) {
	if m*n < worthGemv(tA, worthDgemv, worthDgemvT) || !blasGemv(impl.device().f64, tA, m, n, alpha, a, lda, x, incX, beta, y, incY) {
		impl.Implementation.Dgemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
	}
}

func (impl BLAS) Sgemv(tA blas.Transpose, m, n int, alpha float32, a []float32, lda int, x []float32, incX int, beta float32, y []float32, incY int) {
	if m*n < worthGemv(tA, worthSgemv, worthSgemvT) || !blasGemv(impl.device().f32, tA, m, n, alpha, a, lda, x, incX, beta, y, incY) {
		impl.Implementation.Sgemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
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

func (impl BLAS) Ddot(n int, x []float64, incX int, y []float64, incY int) float64 {
	if n >= worthVector && vectors(n, x, incX, n, y, incY) {
		return blasDot(impl.device().f64, x[:n], y)
	}
	return impl.Implementation.Ddot(n, x, incX, y, incY)
}

func (impl BLAS) Sdot(n int, x []float32, incX int, y []float32, incY int) float32 {
	if n >= worthVector && vectors(n, x, incX, n, y, incY) {
		return blasDot(impl.device().f32, x[:n], y)
	}
	return impl.Implementation.Sdot(n, x, incX, y, incY)
}

func (impl BLAS) Daxpy(n int, alpha float64, x []float64, incX int, y []float64, incY int) {
	if n >= worthVector && alpha != 0 && vectors(n, x, incX, n, y, incY) {
		blasAxpy(impl.device().f64, alpha, x[:n], y)
		return
	}
	impl.Implementation.Daxpy(n, alpha, x, incX, y, incY)
}

func (impl BLAS) Saxpy(n int, alpha float32, x []float32, incX int, y []float32, incY int) {
	if n >= worthVector && alpha != 0 && vectors(n, x, incX, n, y, incY) {
		blasAxpy(impl.device().f32, alpha, x[:n], y)
		return
	}
	impl.Implementation.Saxpy(n, alpha, x, incX, y, incY)
}

func (impl BLAS) Dnrm2(n int, x []float64, incX int) float64 {
	if n >= worthVector && vectors(n, x, incX, n, x, incX) {
		// Far enough from the ends of the range, no square is lost.
		if sq := blasDot(impl.device().f64, x[:n], x); sq > 0x1p-900 && sq < 0x1p1000 {
			return math.Sqrt(sq)
		}
	}
	return impl.Implementation.Dnrm2(n, x, incX)
}

func (impl BLAS) Snrm2(n int, x []float32, incX int) float32 {
	if n >= worthVector && vectors(n, x, incX, n, x, incX) {
		if sq := blasDot(impl.device().f32, x[:n], x); sq > 0x1p-80 && sq < 0x1p100 {
			return float32(math.Sqrt(float64(sq)))
		}
	}
	return impl.Implementation.Snrm2(n, x, incX)
}

func worthGemv(tA blas.Transpose, asIs, transposed int) int {
	if tA == blas.NoTrans {
		return asIs
	}
	return transposed
}

// blasGemv does the product and reports true, or leaves it to gonum.
func blasGemv[T backend.Float](e *engine[T], tA blas.Transpose, m, n int, alpha T, a []T, lda int, x []T, incX int, beta T, y []T, incY int) bool {
	if m <= 0 || n <= 0 || alpha == 0 || lda < n || len(a) < (m-1)*lda+n || tA != blas.NoTrans && tA != blas.Trans && tA != blas.ConjTrans {
		return false
	}
	rows, cols := swapIf(tA, m, n)
	if !vectors(cols, x, incX, rows, y, incY) {
		return false
	}
	if m|n < 1<<20 && m*n < sharedGemv {
		e.smallGemv(tA != blas.NoTrans, m, n, alpha, a, lda, x[:cols], beta, y[:rows])
		return true
	}
	q := &queue[T]{engine: e}
	q.gemv(alpha, rowMajor(a, m, n, lda).op(transposed(tA)), rowMajor(x, cols, 1, 1), beta, rowMajor(y, rows, 1, 1))
	return true
}

// symvFits tells whether a Symv has something to do and vectors in one piece.
func symvFits[T backend.Float](ul blas.Uplo, n int, alpha T, a []T, lda int, x []T, incX int, y []T, incY int) bool {
	return n > 0 && alpha != 0 && lda >= n && len(a) >= (n-1)*lda+n && (ul == blas.Upper || ul == blas.Lower) && vectors(n, x, incX, n, y, incY)
}

func blasSymv[T backend.Float](e *engine[T], ul blas.Uplo, n int, alpha T, a []T, lda int, x []T, beta T, y []T) {
	if n < 1<<20 && n*n < sharedSymv {
		e.smallSymv(triangle(ul), alpha, a, lda, x[:n], beta, y[:n])
		return
	}
	q := &queue[T]{engine: e}
	q.symv(triangle(ul), alpha, rowMajor(a, n, n, lda), rowMajor(x, n, 1, 1), beta, rowMajor(y, n, 1, 1))
}

func blasDot[T backend.Float](e *engine[T], x, y []T) T {
	s := e.take()
	defer e.give(s)
	return e.dot(s, x, y)
}

func blasAxpy[T backend.Float](e *engine[T], alpha T, x, y []T) {
	s := e.take()
	defer e.give(s)
	e.axpy(s, alpha, x, y)
}
