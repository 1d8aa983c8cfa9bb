package cpu

import (
	"gonum.org/v1/gonum/blas"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// This file implements level 3 of BLAS, generic in the precision.

func (impl BLAS) Dgemm(tA, tB blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	blasGemm(impl.device().f64, tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

func (impl BLAS) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	blasGemm(impl.device().f32, tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

func (impl BLAS) Dsymm(s blas.Side, ul blas.Uplo, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	blasSymm(impl.device().f64, s, ul, m, n, alpha, a, lda, b, ldb, beta, c, ldc)
}

func (impl BLAS) Ssymm(s blas.Side, ul blas.Uplo, m, n int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	blasSymm(impl.device().f32, s, ul, m, n, alpha, a, lda, b, ldb, beta, c, ldc)
}

func (impl BLAS) Dsyrk(ul blas.Uplo, t blas.Transpose, n, k int, alpha float64, a []float64, lda int, beta float64, c []float64, ldc int) {
	blasSyrk(impl.device().f64, ul, t, n, k, alpha, a, lda, beta, c, ldc)
}

func (impl BLAS) Ssyrk(ul blas.Uplo, t blas.Transpose, n, k int, alpha float32, a []float32, lda int, beta float32, c []float32, ldc int) {
	blasSyrk(impl.device().f32, ul, t, n, k, alpha, a, lda, beta, c, ldc)
}

func (impl BLAS) Dsyr2k(ul blas.Uplo, t blas.Transpose, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	blasSyr2k(impl.device().f64, ul, t, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

func (impl BLAS) Ssyr2k(ul blas.Uplo, t blas.Transpose, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	blasSyr2k(impl.device().f32, ul, t, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

func (impl BLAS) Dtrmm(s blas.Side, ul blas.Uplo, t blas.Transpose, d blas.Diag, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int) {
	blasTriangular(impl.device().f64, false, s, ul, t, d, m, n, alpha, a, lda, b, ldb)
}

func (impl BLAS) Strmm(s blas.Side, ul blas.Uplo, t blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32, lda int, b []float32, ldb int) {
	blasTriangular(impl.device().f32, false, s, ul, t, d, m, n, alpha, a, lda, b, ldb)
}

func (impl BLAS) Dtrsm(s blas.Side, ul blas.Uplo, t blas.Transpose, d blas.Diag, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int) {
	blasTriangular(impl.device().f64, true, s, ul, t, d, m, n, alpha, a, lda, b, ldb)
}

func (impl BLAS) Strsm(s blas.Side, ul blas.Uplo, t blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32, lda int, b []float32, ldb int) {
	blasTriangular(impl.device().f32, true, s, ul, t, d, m, n, alpha, a, lda, b, ldb)
}

func blasGemm[T backend.Float](e *engine[T], tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	mustTranspose(tA)
	mustTranspose(tB)
	must(m >= 0, mLT0)
	must(n >= 0, nLT0)
	must(k >= 0, kLT0)
	aRows, aCols := swapIf(tA, m, k)
	bRows, bCols := swapIf(tB, k, n)
	must(lda >= max(1, aCols), badLdA)
	must(ldb >= max(1, bCols), badLdB)
	must(ldc >= max(1, n), badLdC)
	if m == 0 || n == 0 {
		return
	}
	must(holdsMatrix(len(a), aRows, aCols, lda), shortA)
	must(holdsMatrix(len(b), bRows, bCols, ldb), shortB)
	must(holdsMatrix(len(c), m, n, ldc), shortC)

	if alpha == 0 || k == 0 {
		rescale(e, beta, rowMajor(c, m, n, ldc), whole)
		return
	}
	if isSmall(m, n, k) {
		e.directProduct(ukr.Whole, tA != blas.NoTrans, tB != blas.NoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	opA, opBT := rowMajor(a, m, k, lda), rowMajor(b, n, k, ldb)
	opA.storedAs(tA != blas.NoTrans, lda)
	opBT.storedAs(tB == blas.NoTrans, ldb)
	to := rowMajor(c, m, n, ldc)
	q := &queue[T]{engine: e}
	q.gemm(alpha, opA, opBT.t(), beta, to, whole)
}

func blasSymm[T backend.Float](e *engine[T], s blas.Side, ul blas.Uplo, m, n int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	mustSide(s)
	mustUplo(ul)
	must(m >= 0, mLT0)
	must(n >= 0, nLT0)
	k := n
	if s == blas.Left {
		k = m
	}
	must(lda >= max(1, k), badLdA)
	must(ldb >= max(1, n), badLdB)
	must(ldc >= max(1, n), badLdC)
	if m == 0 || n == 0 {
		return
	}
	must(holdsMatrix(len(a), k, k, lda), shortA)
	must(holdsMatrix(len(b), m, n, ldb), shortB)
	must(holdsMatrix(len(c), m, n, ldc), shortC)

	if alpha == 0 {
		rescale(e, beta, rowMajor(c, m, n, ldc), whole)
		return
	}
	if isSmall(m, n, k) {
		e.directSymm(s == blas.Right, partOf(ul), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	q := &queue[T]{engine: e}
	q.symm(sideOf(s), triangle(ul), alpha, rowMajor(a, k, k, lda), rowMajor(b, m, n, ldb), beta, rowMajor(c, m, n, ldc))
}

// hasRankUpdate checks the arguments of Syrk and Syr2k and reports whether they add a product to C.
// If they do not, it computes C ← β C. Syrk passes A as B.
func hasRankUpdate[T backend.Float](e *engine[T], ul blas.Uplo, t blas.Transpose, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) bool {
	mustUplo(ul)
	mustTranspose(t)
	must(n >= 0, nLT0)
	must(k >= 0, kLT0)
	rows, cols := swapIf(t, n, k)
	must(lda >= max(1, cols), badLdA)
	must(ldb >= max(1, cols), badLdB)
	must(ldc >= max(1, n), badLdC)
	if n == 0 {
		return false
	}
	must(holdsMatrix(len(a), rows, cols, lda), shortA)
	must(holdsMatrix(len(b), rows, cols, ldb), shortB)
	must(holdsMatrix(len(c), n, n, ldc), shortC)

	if alpha == 0 || k == 0 {
		rescale(e, beta, rowMajor(c, n, n, ldc), uploOf(ul))
		return false
	}
	return true
}

func blasSyrk[T backend.Float](e *engine[T], ul blas.Uplo, t blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T, ldc int) {
	if !hasRankUpdate(e, ul, t, n, k, alpha, a, lda, a, lda, beta, c, ldc) {
		return
	}
	if isSmall(n, n, k) {
		e.directProduct(partOf(ul), t != blas.NoTrans, t == blas.NoTrans, n, n, k, alpha, a, lda, a, lda, beta, c, ldc)
		return
	}
	opA, to := rowMajor(a, n, k, lda), rowMajor(c, n, n, ldc)
	opA.storedAs(t != blas.NoTrans, lda)
	q := &queue[T]{engine: e}
	q.gemm(alpha, opA, opA.t(), beta, to, uploOf(ul))
}

func blasSyr2k[T backend.Float](e *engine[T], ul blas.Uplo, t blas.Transpose, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	if !hasRankUpdate(e, ul, t, n, k, alpha, a, lda, b, ldb, beta, c, ldc) {
		return
	}
	if isSmall(n, n, k) {
		if t == blas.NoTrans && n <= rank2Order {
			e.ukr.Syr2k(ul == blas.Lower, n, k, alpha, &a[0], lda, &b[0], ldb, beta, &c[0], ldc)
			return
		}
		e.directRank2(partOf(ul), t != blas.NoTrans, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	region, to := uploOf(ul), rowMajor(c, n, n, ldc)
	opA, opB := rowMajor(a, n, k, lda), rowMajor(b, n, k, ldb)
	opA.storedAs(t != blas.NoTrans, lda)
	opB.storedAs(t != blas.NoTrans, ldb)
	q := &queue[T]{engine: e}
	q.gemm(alpha, opA, opB.t(), beta, to, region)
	q.gemm(alpha, opB, opA.t(), 1, to, region)
}

// blasTriangular implements Trsm if solve is true, and Trmm otherwise.
func blasTriangular[T backend.Float](e *engine[T], solve bool, s blas.Side, ul blas.Uplo, t blas.Transpose, d blas.Diag, m, n int, alpha T, a []T, lda int, b []T, ldb int) {
	mustSide(s)
	mustUplo(ul)
	mustTranspose(t)
	mustDiag(d)
	must(m >= 0, mLT0)
	must(n >= 0, nLT0)
	k := n
	if s == blas.Left {
		k = m
	}
	must(lda >= max(1, k), badLdA)
	must(ldb >= max(1, n), badLdB)
	if m == 0 || n == 0 {
		return
	}
	must(holdsMatrix(len(a), k, k, lda), shortA)
	must(holdsMatrix(len(b), m, n, ldb), shortB)

	if alpha == 0 {
		rescale(e, 0, rowMajor(b, m, n, ldb), whole)
		return
	}
	if direct(k, m*n/k) {
		kernel := e.ukr.TrmmDirect
		if solve {
			kernel = e.ukr.TrsmDirect
		}
		// The micro-kernel applies op(A) from the left. If A is on the right, it applies op(A)ᵀ to
		// the transposed B. flipped means that this matrix, op(A) or op(A)ᵀ, is Aᵀ.
		flipped := (t != blas.NoTrans) != (s == blas.Right)
		e.directTriangle(kernel, s == blas.Right, flipped, (ul == blas.Lower) != flipped, d == blas.Unit, m, n, k, alpha, a, lda, b, ldb)
		return
	}
	from, to := rowMajor(a, k, k, lda), rowMajor(b, m, n, ldb)
	side, tri, op, unit := sideOf(s), triangle(ul), transposed(t), d == blas.Unit
	q := &queue[T]{engine: e}
	if solve {
		q.trsm(side, tri, op, unit, alpha, from, to)
	} else {
		q.trmm(side, tri, op, unit, alpha, from, to)
	}
}

// storedAs sets the strides of v, if transposed is true, to those of a transposed matrix with row stride ld.
func (v *view[T]) storedAs(transposed bool, ld int) {
	if transposed {
		v.rs, v.cs = 1, ld
	}
}

// solve computes B ← op(A)⁻¹ B for an n × n triangle A and cols ≥ 0 columns of B.
func solve[T backend.Float](e *engine[T], ul blas.Uplo, t blas.Transpose, unit bool, n, cols int, a []T, lda int, b []T, ldb int) {
	if cols == 0 {
		return
	}
	if direct(n, cols) {
		transposed := t != blas.NoTrans
		e.directTriangle(e.ukr.TrsmDirect, false, transposed, (ul == blas.Lower) != transposed, unit, n, cols, n, 1, a, lda, b, ldb)
		return
	}
	q := &queue[T]{engine: e}
	q.trsm(backend.Left, triangle(ul), transposed(t), unit, 1, rowMajor(a, n, n, lda), rowMajor(b, n, cols, ldb))
}

// rescale computes C ← β C on the given region of C.
func rescale[T backend.Float](e *engine[T], beta T, c view[T], region uplo) {
	if beta != 1 {
		q := &queue[T]{engine: e}
		q.scale(beta, c, region)
	}
}

func uploOf(ul blas.Uplo) uplo {
	if ul == blas.Upper {
		return upper
	}
	return lower
}

func partOf(ul blas.Uplo) ukr.Part {
	if ul == blas.Upper {
		return ukr.Upper
	}
	return ukr.Lower
}
