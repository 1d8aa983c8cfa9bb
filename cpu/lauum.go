package cpu

import "github.com/mercer-go/mercer/backend"

// lauum is the triangle of LᵀL (Lower) or UUᵀ (Upper), in place of L or U.
func (q *queue[T]) lauum(ul backend.Uplo, a view[T]) {
	if ul == backend.Upper {
		a = a.t() // U Uᵀ is LᵀL of L = Uᵀ
	}
	q.squareLower(a)
}

// squareLower is LᵀL, by halves until a block is small:
//
//	┌ L₁₁ᵀL₁₁ + L₂₁ᵀL₂₁           ┐
//	└ L₂₂ᵀL₂₁              L₂₂ᵀL₂₂ ┘
func (q *queue[T]) squareLower(a view[T]) {
	n := a.rows
	if n <= trtriBase {
		squarePlain(a)
		return
	}
	n1 := split(n, trtriBase)
	a11, a21, a22 := a.part(0, 0, n1, n1), a.part(n1, 0, n-n1, n1), a.part(n1, n1, n-n1, n-n1)
	q.squareLower(a11)
	q.syrk(backend.Lower, 1, a21.t(), 1, a11)
	q.trmm(backend.Left, backend.Lower, backend.Transpose, false, 1, a22, a21)
	if q.stopped() {
		return
	}
	q.squareLower(a22)
}

// squarePlain is LᵀL for a small triangle, row by row: row i takes the rows
// from i on, and its own diagonal element is written last.
func squarePlain[T backend.Float](a view[T]) {
	for i := range a.rows {
		for j := range i + 1 {
			var sum T
			for p := i; p < a.rows; p++ {
				sum += *a.at(p, i) * *a.at(p, j)
			}
			*a.at(i, j) = sum
		}
	}
}

// potri is the triangle of A⁻¹ in place of A's Cholesky factor. It reports
// false, with the factor as it was, when an element of its diagonal is exactly
// zero.
func (q *queue[T]) potri(ul backend.Uplo, a view[T]) bool {
	if !q.trtri(ul, false, a) {
		return false
	}
	q.lauum(ul, a)
	return true
}

// potrs is B ← A⁻¹ B for A given by its Cholesky factor.
func (q *queue[T]) potrs(ul backend.Uplo, a, b view[T]) {
	first, second := backend.NoTrans, backend.Transpose
	if ul == backend.Upper {
		first, second = second, first
	}
	q.trsm(backend.Left, ul, first, false, 1, a, b)
	q.trsm(backend.Left, ul, second, false, 1, a, b)
}
