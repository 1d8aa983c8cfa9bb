package cpu

import (
	"math"

	"github.com/mercer-go/mercer/backend"
)

func (q *queue[T]) Potrf(ul backend.Uplo, a backend.Matrix[T]) error {
	backend.CheckPotrf(ul, a)
	v := q.own("Potrf", a).view()
	if err := q.wait(); err != nil {
		return err
	}
	err := q.potrf(ul, v, 0)
	if stopped := q.wait(); stopped != nil {
		return stopped
	}
	if err != nil {
		return err
	}
	return nil
}

// potrfBase is the order at which the recursion of potrf ends.
const potrfBase = 16

// potrf factors a triangle in place, first being the index of its first row.
// It halves the matrix until a block is small:
//
//	A = ┌ A₁₁     ┐   factor A₁₁; A₂₁ ← A₂₁ L₁₁⁻ᵀ; A₂₂ ← A₂₂ − A₂₁A₂₁ᵀ; factor A₂₂
//	    └ A₂₁ A₂₂ ┘
//
// so that nearly all work is in trsm and syrk of large blocks (Andersen,
// Gustavson and others, recursive Cholesky, 2000).
func (q *queue[T]) potrf(ul backend.Uplo, a view[T], first int) error {
	n := a.rows
	if n <= potrfBase {
		if ul == backend.Upper {
			a = a.t()
		}
		q.count(backend.PotrfFlops(n))
		return potrfPlain(a, first)
	}
	n1 := split(n, potrfBase)
	a11, a22 := a.part(0, 0, n1, n1), a.part(n1, n1, n-n1, n-n1)
	if err := q.potrf(ul, a11, first); err != nil {
		return err
	}
	if ul == backend.Lower {
		a21 := a.part(n1, 0, n-n1, n1)
		q.trsm(backend.Right, backend.Lower, backend.Transpose, false, 1, a11, a21)
		q.syrk(backend.Lower, -1, a21, 1, a22)
	} else {
		a12 := a.part(0, n1, n1, n-n1)
		q.trsm(backend.Left, backend.Upper, backend.Transpose, false, 1, a11, a12)
		q.syrk(backend.Upper, -1, a12.t(), 1, a22)
	}
	if q.stopped() {
		return nil
	}
	return q.potrf(ul, a22, first+n1)
}

// split is about half of n, a multiple of base.
func split(n, base int) int { return (n/2 + base - 1) / base * base }

// potrfPlain factors a small lower triangle, row by row.
func potrfPlain[T backend.Float](a view[T], first int) error {
	for j := range a.rows {
		sum := *a.at(j, j)
		for p := range j {
			sum -= *a.at(j, p) * *a.at(j, p)
		}
		if !(sum > 0) || math.IsInf(float64(sum), 1) {
			*a.at(j, j) = sum
			return &backend.PivotError{Index: first + j, Value: float64(sum)}
		}
		pivot := T(math.Sqrt(float64(sum)))
		*a.at(j, j) = pivot
		for i := j + 1; i < a.rows; i++ {
			sum := *a.at(i, j)
			for p := range j {
				sum -= *a.at(i, p) * *a.at(j, p)
			}
			*a.at(i, j) = sum / pivot
		}
	}
	return nil
}
