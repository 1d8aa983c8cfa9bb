package cpu

import "github.com/mercer-go/mercer/internal/flop"

// trsvBlock is the number of unknowns that are computed before the remaining right-hand side is
// updated.
const trsvBlock = 256

// trsv is trsm for one right-hand side; A is read once and not packed. It solves with a block on
// the diagonal, then subtracts the contribution of the solution from the remaining rows of b, in
// parallel.
func (q *queue[T]) trsv(isLower, unit bool, alpha T, a, b view[T]) {
	n := a.rows
	s := q.engine.take()
	defer q.engine.give(s)
	x := s.grow(n)
	for i := range x {
		x[i] = alpha * *b.at(i, 0)
	}
	e := q.engine
	for done := 0; done < n && !q.stopped(); {
		nb := min(trsvBlock, n-done)
		first, rest := done, done+nb
		if !isLower {
			first, rest = n-done-nb, 0
		}
		found, left := x[first:first+nb], n-done-nb
		e.solveVector(isLower, unit, a.part(first, first, nb, nb), found)
		if left > 0 {
			flops := flop.Gemm(left, 1, nb)
			q.chunks(left, trsvBlock, flops, func(_ *scratch[T], i, count int) {
				e.subtractProduct(x[rest+i:rest+i+count], a.part(rest+i, first, count, nb), found)
			})
		}
		done += nb
	}
	for i, v := range x {
		*b.at(i, 0) = v
	}
	q.count(flop.Trsm(n, 1))
}

// trsvOrder is the order of the triangles on the diagonal that solveTriangle solves.
const trsvOrder = 32

// solveVector computes x ← A⁻¹ x for a triangle whose rows or columns are contiguous. With
// contiguous rows, it subtracts the terms of the unknowns already computed before it solves a
// diagonal block; with contiguous columns, it subtracts the terms of each solved block from all
// later equations.
func (e *engine[T]) solveVector(isLower, unit bool, a view[T], x []T) {
	n := len(x)
	for done := 0; done < n; done += trsvOrder {
		nb := min(trsvOrder, n-done)
		first, known, rest, left := done, 0, done+nb, n-done-nb
		if !isLower {
			first, known, rest = left, n-done, 0
		}
		if a.cs == 1 && done > 0 {
			e.subtractProduct(x[first:first+nb], a.part(first, known, nb, done), x[known:known+done])
		}
		diagonal := a.part(first, first, nb, nb)
		e.solveTriangle(isLower, unit, &diagonal, x[first:first+nb])
		if a.cs != 1 && left > 0 {
			e.subtractProduct(x[rest:rest+left], a.part(rest, first, left, nb), x[first:first+nb])
		}
	}
}

// solveTriangle computes x ← A⁻¹ x for a small triangle. An upper triangle is passed in reverse
// order as a lower triangle.
func (e *engine[T]) solveTriangle(isLower, unit bool, a *view[T], x []T) {
	if isLower {
		e.ukr.Trsv(len(x), unit, a.at(0, 0), a.rs, a.cs, &x[0], 1)
		return
	}
	last := len(x) - 1
	e.ukr.Trsv(len(x), unit, a.at(last, last), -a.rs, -a.cs, &x[last], -1)
}

// subtractProduct computes y ← y − A x for a matrix whose rows or columns are contiguous.
func (e *engine[T]) subtractProduct(y []T, a view[T], x []T) {
	if a.cs == 1 {
		e.ukr.Gemv(len(y), len(x), -1, a.at(0, 0), a.rs, &x[0], 1, &y[0])
		return
	}
	e.ukr.GemvT(len(x), len(y), -1, a.at(0, 0), a.cs, &x[0], 1, &y[0])
}
