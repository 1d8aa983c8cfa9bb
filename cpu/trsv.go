package cpu

import "github.com/mercer-go/mercer/internal/flop"

// trsvBlock is the number of unknowns that are computed before the remaining right-hand side is updated.
const trsvBlock = 256

// trsv is trsm for one right-hand side; A is read once and not packed. It solves with a block on the diagonal,
// then subtracts the contribution of the solution from the remaining rows of b, in parallel.
func (q *queue[T]) trsv(isLower, unit bool, alpha T, a, b view[T]) {
	n := a.rows
	s := q.engine.getScratch()
	defer q.engine.putScratch(s)
	x := s.grow(n)
	for i := range x {
		x[i] = alpha * *b.at(i, 0)
	}
	e := q.engine
	for solved := 0; solved < n && !q.stopped(); {
		nb := min(trsvBlock, n-solved)
		first, next := solved, solved+nb
		if !isLower {
			first, next = n-solved-nb, 0
		}
		solution, remaining := x[first:first+nb], n-solved-nb
		e.solveVector(isLower, unit, a.block(first, first, nb, nb), solution)
		if remaining > 0 {
			flops := flop.Gemm(remaining, 1, nb)
			q.chunks(remaining, trsvBlock, flops, func(_ *scratch[T], i, count int) {
				e.subtractProduct(x[next+i:next+i+count], a.block(next+i, first, count, nb), solution)
			})
		}
		solved += nb
	}
	for i, v := range x {
		*b.at(i, 0) = v
	}
	q.count(flop.Trsm(n, 1))
}

// trsvOrder is the order of the triangles on the diagonal that solveTriangle solves.
const trsvOrder = 32

// solveVector computes x ← A⁻¹ x for a triangle whose rows or columns are contiguous. With contiguous rows, it
// subtracts the terms of the unknowns already computed before it solves a diagonal block; with contiguous columns,
// it subtracts the terms of each solved block from all later equations.
func (e *engine[T]) solveVector(isLower, unit bool, a view[T], x []T) {
	n := len(x)
	for solved := 0; solved < n; solved += trsvOrder {
		nb := min(trsvOrder, n-solved)
		first, firstSolved, next, remaining := solved, 0, solved+nb, n-solved-nb
		if !isLower {
			first, firstSolved, next = remaining, n-solved, 0
		}
		if a.cs == 1 && solved > 0 {
			e.subtractProduct(x[first:first+nb], a.block(first, firstSolved, nb, solved), x[firstSolved:firstSolved+solved])
		}
		diagonal := a.block(first, first, nb, nb)
		e.solveTriangle(isLower, unit, &diagonal, x[first:first+nb])
		if a.cs != 1 && remaining > 0 {
			e.subtractProduct(x[next:next+remaining], a.block(next, first, remaining, nb), x[first:first+nb])
		}
	}
}

// solveTriangle computes x ← A⁻¹ x for a small triangle. It reverses an upper triangle, which becomes lower.
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
