package cpu

import "github.com/mercer-go/mercer/backend"

// lauum replaces L by the triangle of LᵀL (Lower), or U by the triangle of UUᵀ (Upper).
func (q *queue[T]) lauum(ul backend.Uplo, a view[T]) {
	if ul == backend.Upper {
		a = a.t() // U Uᵀ = LᵀL with L = Uᵀ
	}
	q.squareLower(a)
}

// squareLower computes LᵀL recursively, halving until a block is small:
//
//	┌ L₁₁ᵀL₁₁ + L₂₁ᵀL₂₁           ┐
//	└ L₂₂ᵀL₂₁              L₂₂ᵀL₂₂ ┘
func (q *queue[T]) squareLower(a view[T]) {
	n := a.rows
	if n <= triangleBase {
		q.squareBlock(a)
		return
	}
	n1 := split(n, triangleBase/2)
	a11, a21, a22 := a.block(0, 0, n1, n1), a.block(n1, 0, n-n1, n1), a.block(n1, n1, n-n1, n-n1)
	q.squareLower(a11)
	q.syrk(backend.Lower, 1, a21.t(), 1, a11)
	q.trmm(backend.Left, backend.Lower, backend.Transpose, false, 1, a22, a21)
	if q.stopped() {
		return
	}
	q.squareLower(a22)
}

// squareBlock computes LᵀL for a small triangle L. It uses the definition if L has NaN or Inf, and
// otherwise a product of full matrices, with zeros above the diagonal of L.
func (q *queue[T]) squareBlock(a view[T]) {
	n := a.rows
	if n <= squareBase || !a.finiteLower() {
		squarePlain(&a)
		return
	}
	e := q.engine
	s := e.getScratch()
	defer e.putScratch(s)
	full := rowMajor(s.grow(n*n), n, n, n)
	clear(full.data)
	for i := range n {
		for j := range i + 1 {
			*full.at(i, j) = *a.at(i, j)
		}
	}
	q.gemm(1, full.t(), full, 0, a, lower)
}

// Up to the order squareBase, squarePlain is faster than a matrix product.
const squareBase = 12

// squarePlain computes LᵀL for a small triangle, row by row. Row i of the result depends on rows i,
// i+1, … of L. The diagonal element, a factor in all elements of row i, is overwritten last.
func squarePlain[T backend.Float](a *view[T]) {
	for i := range a.rows {
		for j := range i + 1 {
			var sum T
			p0, p1 := a.offset+i*(a.rs+a.cs), a.offset+i*a.rs+j*a.cs
			for range a.rows - i {
				sum += a.data[p0] * a.data[p1]
				p0, p1 = p0+a.rs, p1+a.rs
			}
			*a.at(i, j) = sum
		}
	}
}

// potri replaces A's Cholesky factor by the triangle of A⁻¹. If an element of the factor's
// diagonal is exactly zero it returns false and does not change the factor.
func (q *queue[T]) potri(ul backend.Uplo, a view[T]) bool {
	if !q.trtri(ul, false, a) {
		return false
	}
	q.lauum(ul, a)
	return true
}
