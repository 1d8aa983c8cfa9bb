package cpu

import "github.com/mercer-go/mercer/backend"

// triangleBase is the order at which the recursions of trtri and lauum end.
const triangleBase = 64

// plainInverse is the order up to which invertPlain is faster than solving L X = I.
const plainInverse = 24

// trtri computes A ← A⁻¹ for a triangle, in place; a unit diagonal is taken as ones and is neither read nor
// written. If an element of the diagonal is exactly zero it returns false and does not change A.
func (q *queue[T]) trtri(ul backend.Uplo, unit bool, a view[T]) bool {
	if !unit && !nonsingular(a) {
		return false
	}
	if ul == backend.Upper {
		a = a.t() // the inverse of the transpose
	}
	q.invertLower(unit, a)
	return true
}

// nonsingular reports whether no element of the diagonal is exactly zero.
func nonsingular[T backend.Float](a view[T]) bool {
	for i := range a.rows {
		if *a.at(i, i) == 0 {
			return false
		}
	}
	return true
}

// invertLower inverts a lower triangle by recursive halving:
//
//	┌ L₁₁     ┐⁻¹   ┌ L₁₁⁻¹                     ┐
//	└ L₂₁ L₂₂ ┘   = └ −L₂₂⁻¹ L₂₁ L₁₁⁻¹   L₂₂⁻¹ ┘
//
// The lower left block is computed by two solves, which is more accurate than products with the inverses.
func (q *queue[T]) invertLower(unit bool, a view[T]) {
	n := a.rows
	if n <= triangleBase {
		q.invertBlock(unit, a)
		return
	}
	n1 := split(n, triangleBase/2)
	a11, a21, a22 := a.block(0, 0, n1, n1), a.block(n1, 0, n-n1, n1), a.block(n1, n1, n-n1, n-n1)
	q.trsm(backend.Left, backend.Lower, backend.NoTrans, unit, -1, a22, a21)
	q.trsm(backend.Right, backend.Lower, backend.NoTrans, unit, 1, a11, a21)
	if q.stopped() {
		return
	}
	q.invertLower(unit, a11)
	q.invertLower(unit, a22)
}

// invertBlock inverts a small lower triangle L: by invertPlain, or as the solution of L X = I. It
// calls invertPlain if L has NaN or Inf, which must not be multiplied with the zeros of I.
func (q *queue[T]) invertBlock(unit bool, a view[T]) {
	n := a.rows
	if n <= plainInverse || !a.finiteLower() {
		invertPlain(unit, &a)
		return
	}
	e := q.engine
	s := e.getScratch()
	defer e.putScratch(s)
	x := rowMajor(s.grow(n*n), n, n, n)
	clear(x.data)
	for i := range n {
		*x.at(i, i) = 1
	}
	q.trsm(backend.Left, backend.Lower, backend.NoTrans, unit, 1, a, x)
	for i := range n {
		last := i
		if unit {
			last-- // the elements of a unit diagonal are not stored
		}
		for j := range last + 1 {
			*a.at(i, j) = *x.at(i, j)
		}
	}
}

// finiteLower reports whether no element of the lower triangle is NaN or Inf.
func (v *view[T]) finiteLower() bool {
	var sum T
	for i := range v.rows {
		index := v.offset + i*v.rs
		for range i + 1 {
			x := v.data[index]
			sum += x - x
			index += v.cs
		}
	}
	return sum == 0
}

// invertPlain inverts a small lower triangle, from the last column to the first. Below the
// diagonal, column j of the inverse is −M l/L_jj, where l is column j of L below the diagonal, and
// M is the inverse of the triangle of the rows and columns after j.
func invertPlain[T backend.Float](unit bool, a *view[T]) {
	for j := a.rows - 1; j >= 0; j-- {
		pivot := T(1)
		if !unit {
			pivot = 1 / *a.at(j, j)
			*a.at(j, j) = pivot
		}
		for i := a.rows - 1; i > j; i-- {
			sum := *a.at(i, j)
			if !unit {
				sum *= *a.at(i, i)
			}
			p0, p1 := a.offset+i*a.rs+(j+1)*a.cs, a.offset+(j+1)*a.rs+j*a.cs
			for range i - j - 1 {
				sum += a.data[p0] * a.data[p1]
				p0, p1 = p0+a.cs, p1+a.rs
			}
			*a.at(i, j) = -pivot * sum
		}
	}
}
