package cpu

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// LAPACK implements gonum's lapack.Float64 on the best tier of this machine:
//
//	blas64.Use(cpu.BLAS{})
//	lapack64.Use(cpu.LAPACK{})
//
// Mercer implements the routines on Cholesky factors and triangles: Dpotrf, Dpotrs, Dpotri, Dtrtri, Dlauum,
// Dtrtrs, and in float32 Spotrf, Spotrs, Spotri, which gonum does not have. All other routines are gonum's, on the
// implementation that blas64 uses. Arguments are checked as gonum checks them, with the same panics.
//
// The zero value is ready to use. Several goroutines may use it at the same time.
type LAPACK struct {
	gonum.Implementation
	bound *device // device that computes, or nil for the best device
}

var _ lapack.Float64 = LAPACK{}

// newLAPACK returns a LAPACK bound to a tier, which the machine must support.
func newLAPACK(t *ukr.Tier) LAPACK { return LAPACK{bound: newDevice(t, 0, cacheSizes{})} }

func (impl LAPACK) device() *device { return BLAS{bound: impl.bound}.device() }

// minPotrfOrder is the smallest order for Mercer's Dpotrf: gonum's tests compare a factor of order 3 bit by bit.
const minPotrfOrder = 4

// unblockedOrder is the largest order for which gonum's unblocked Dlauum (matrix-vector
// products in SSE2) is faster than recursion (AMD EPYC of family 25, November 2026).
const unblockedOrder = 64

// Dpotrf factors A = LLᵀ (blas.Lower) or UᵀU (blas.Upper) and stores the factor in place of
// the triangle. It returns false when A is not positive definite.
func (impl LAPACK) Dpotrf(ul blas.Uplo, n int, a []float64, lda int) (ok bool) {
	if n < minPotrfOrder {
		return impl.Implementation.Dpotrf(ul, n, a, lda)
	}
	return lapackPotrf(impl.device().f64, ul, n, a, lda)
}

// Spotrf is Dpotrf in float32.
func (impl LAPACK) Spotrf(ul blas.Uplo, n int, a []float32, lda int) (ok bool) {
	return lapackPotrf(impl.device().f32, ul, n, a, lda)
}

// Dpotrs computes B ← A⁻¹ B for an n × nrhs matrix B, with A given by its factor from Dpotrf.
func (impl LAPACK) Dpotrs(ul blas.Uplo, n, nrhs int, a []float64, lda int, b []float64, ldb int) {
	lapackPotrs(impl.device().f64, ul, n, nrhs, a, lda, b, ldb)
}

// Spotrs is Dpotrs in float32.
func (impl LAPACK) Spotrs(ul blas.Uplo, n, nrhs int, a []float32, lda int, b []float32, ldb int) {
	lapackPotrs(impl.device().f32, ul, n, nrhs, a, lda, b, ldb)
}

// Dpotri replaces A's factor from Dpotrf by the triangle of A⁻¹. If the factor is singular,
// Dpotri returns false and leaves the factor unchanged.
func (impl LAPACK) Dpotri(ul blas.Uplo, n int, a []float64, lda int) (ok bool) {
	lapackTriangle(ul, n, len(a), lda)
	if !impl.Dtrtri(ul, blas.NonUnit, n, a, lda) {
		return false
	}
	impl.Dlauum(ul, n, a, lda)
	return true
}

// Spotri is Dpotri in float32.
func (impl LAPACK) Spotri(ul blas.Uplo, n int, a []float32, lda int) (ok bool) {
	lapackTriangle(ul, n, len(a), lda)
	q := &queue[float32]{engine: impl.device().f32}
	return q.potri(triangle(ul), rowMajor(a, n, n, lda))
}

// Dtrtri computes A ← A⁻¹ in place for a triangular A. If an element of the diagonal is zero,
// Dtrtri returns false and leaves A unchanged.
func (impl LAPACK) Dtrtri(ul blas.Uplo, d blas.Diag, n int, a []float64, lda int) (ok bool) {
	must(ul == blas.Upper || ul == blas.Lower, lapackUplo)
	must(d == blas.NonUnit || d == blas.Unit, lapackDiag)
	lapackTriangle(ul, n, len(a), lda)
	v := rowMajor(a, n, n, lda)
	if n <= plainInverse {
		if d == blas.NonUnit && !nonsingular(v) {
			return false
		}
		if ul == blas.Upper {
			v = v.t()
		}
		invertPlain(d == blas.Unit, &v)
		return true
	}
	q := &queue[float64]{engine: impl.device().f64}
	return q.trtri(triangle(ul), d == blas.Unit, v)
}

// Dlauum replaces a triangular factor by the triangle of UUᵀ (blas.Upper) or LᵀL (blas.Lower).
func (impl LAPACK) Dlauum(ul blas.Uplo, n int, a []float64, lda int) {
	if n <= unblockedOrder {
		impl.Implementation.Dlauum(ul, n, a, lda)
		return
	}
	lapackTriangle(ul, n, len(a), lda)
	q := &queue[float64]{engine: impl.device().f64}
	q.lauum(triangle(ul), rowMajor(a, n, n, lda))
}

// Dtrtrs computes B ← op(A)⁻¹ B for a triangular A and an n × nrhs matrix B. If an element of
// A's diagonal is zero, Dtrtrs returns false and leaves B unchanged.
func (impl LAPACK) Dtrtrs(ul blas.Uplo, t blas.Transpose, d blas.Diag, n, nrhs int, a []float64, lda int, b []float64, ldb int) (ok bool) {
	must(ul == blas.Upper || ul == blas.Lower, lapackUplo)
	must(t == blas.NoTrans || t == blas.Trans || t == blas.ConjTrans, lapackTrans)
	must(d == blas.NonUnit || d == blas.Unit, lapackDiag)
	must(n >= 0, lapackN)
	must(nrhs >= 0, lapackRHS)
	must(lda >= max(1, n), lapackLdA)
	must(ldb >= max(1, nrhs), lapackLdB)
	if n == 0 {
		return true
	}
	must(holdsMatrix(len(a), n, n, lda), lapackShortA)
	must(holdsMatrix(len(b), n, nrhs, ldb), lapackShortB)

	if d == blas.NonUnit && !nonsingular(rowMajor(a, n, n, lda)) {
		return false
	}
	solve(impl.device().f64, ul, t, d == blas.Unit, n, nrhs, a, lda, b, ldb)
	return true
}

func lapackPotrf[T backend.Float](e *engine[T], ul blas.Uplo, n int, a []T, lda int) bool {
	lapackTriangle(ul, n, len(a), lda)
	if n <= plainPotrfOrder {
		return plainPotrf(ul == blas.Lower, n, a, lda)
	}
	v := rowMajor(a, n, n, lda)
	if n <= potrfBase {
		if ul == blas.Upper {
			v = v.t()
		}
		return e.factorDirect(&v, 0) == nil
	}
	q := &queue[T]{engine: e}
	return q.potrf(triangle(ul), v) == nil
}

func lapackPotrs[T backend.Float](e *engine[T], ul blas.Uplo, n, nrhs int, a []T, lda int, b []T, ldb int) {
	must(ul == blas.Upper || ul == blas.Lower, lapackUplo)
	must(n >= 0, lapackN)
	must(nrhs >= 0, lapackRHS)
	must(lda >= max(1, n), lapackLdA)
	must(ldb >= max(1, nrhs), lapackLdB)
	if n == 0 || nrhs == 0 {
		return
	}
	must(holdsMatrix(len(a), n, n, lda), lapackShortA)
	must(holdsMatrix(len(b), n, nrhs, ldb), lapackShortB)
	first, second := blas.NoTrans, blas.Trans
	if ul == blas.Upper {
		first, second = second, first
	}
	solve(e, ul, first, false, n, nrhs, a, lda, b, ldb)
	solve(e, ul, second, false, n, nrhs, a, lda, b, ldb)
}

// These constants are the texts of gonum's panics. gonum does not export them.
const (
	lapackUplo   = "lapack: bad Uplo"
	lapackTrans  = "lapack: bad Trans"
	lapackDiag   = "lapack: bad Diag"
	lapackN      = "lapack: n < 0"
	lapackRHS    = "lapack: nrhs < 0"
	lapackLdA    = "lapack: bad leading dimension of A"
	lapackLdB    = "lapack: bad leading dimension of B"
	lapackShortA = "lapack: insufficient length of a"
	lapackShortB = "lapack: insufficient length of b"
)

// lapackTriangle checks the arguments of a routine that works on a triangle.
func lapackTriangle(ul blas.Uplo, n, length, lda int) {
	must(ul == blas.Upper || ul == blas.Lower, lapackUplo)
	must(n >= 0, lapackN)
	must(lda >= max(1, n), lapackLdA)
	must(n == 0 || holdsMatrix(length, n, n, lda), lapackShortA)
}
