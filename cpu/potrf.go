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
	err := q.potrf(ul, v)
	if stopped := q.wait(); stopped != nil {
		return stopped
	}
	return err
}

// potrf factors a triangle in place. Block column by block column (right
// looking):
//
//	A = ┌ A₁₁     ┐   A₁₁ is factored already; A₂₁ ← A₂₁ L₁₁⁻ᵀ;
//	    └ A₂₁ A₂₂ ┘   A₂₂ ← A₂₂ − A₂₁A₂₁ᵀ, its first block column first;
//	                  then, beside the rest of A₂₂, its first block is factored
//
// so that the factorisation of the blocks on the diagonal, which one worker
// does alone, is hidden behind products (look-ahead).
func (q *queue[T]) potrf(ul backend.Uplo, a view[T]) error {
	if ul == backend.Upper {
		a = a.t() // UᵀU is LLᵀ of L = Uᵀ
	}
	n := a.rows
	nb := potrfBlock(n, q.engine.block.kc)
	err := q.factorBlock(a.part(0, 0, min(nb, n), min(nb, n)), 0)
	for done := 0; err == nil && done+nb < n && !q.stopped(); done += nb {
		rest := n - done - nb
		next := min(nb, rest)
		l11 := a.part(done, done, nb, nb)
		a21 := a.part(done+nb, done, rest, nb)
		a22 := a.part(done+nb, done+nb, rest, rest)
		q.trsm(backend.Right, backend.Lower, backend.Transpose, false, 1, l11, a21)
		top := a21.part(0, 0, next, nb)
		q.gemm(-1, a21, top.t(), 1, a22.part(0, 0, rest, next), lower)
		below := a21.part(next, 0, rest-next, nb)
		q.productBeside(func() {
			err = q.single().factorBlock(a22.part(0, 0, next, next), done+nb)
		}, -1, below, below, nb, 1, a22.part(next, next, rest-next, rest-next), lower)
	}
	return err
}

// potrfBlock is the width of a block column: an eighth of a large matrix, so
// that there is enough to look ahead behind, a quarter of a small one, so that
// products are deep enough (measured best, float64, two workers, AMD EPYC of
// family 25, November 2026: 192 at n = 512, 256 at 1024 and 2048, 512 at 4096).
func potrfBlock(n, kc int) int {
	return max(12*potrfBase, min(n/4, kc/2), min(n/8, kc)) / potrfBase * potrfBase
}

// potrfBase is the order at which the recursion of factorBlock ends.
const potrfBase = 16

// factorBlock factors a lower triangle in place, first being the index of its
// first row. It halves the matrix until a block is small, so that most work is
// in products (Andersen, Gustavson and others, recursive Cholesky, 2000).
func (q *queue[T]) factorBlock(a view[T], first int) error {
	n := a.rows
	if n <= potrfBase {
		q.count(backend.PotrfFlops(n))
		return potrfPlain(a, first)
	}
	n1 := split(n, potrfBase)
	a11, a21, a22 := a.part(0, 0, n1, n1), a.part(n1, 0, n-n1, n1), a.part(n1, n1, n-n1, n-n1)
	if err := q.factorBlock(a11, first); err != nil {
		return err
	}
	q.trsm(backend.Right, backend.Lower, backend.Transpose, false, 1, a11, a21)
	q.syrk(backend.Lower, -1, a21, 1, a22)
	if q.stopped() {
		return nil
	}
	return q.factorBlock(a22, first+n1)
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
