package cpu

import "github.com/mercer-go/mercer/backend"

// trsvBlock is how many unknowns are found before the others are told.
const trsvBlock = 256

// trsv is trsm for one right-hand side: A is read once, as it lies, and not
// packed. It solves with a block on the diagonal, then subtracts its part from
// what is left of b, in parallel.
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
		e.solveVector(s, isLower, unit, a.part(first, first, nb, nb), found)
		if left > 0 {
			flops := backend.GemmFlops(left, 1, nb)
			q.pieces(left, trsvBlock, flops, func(s *scratch[T], i, count int) {
				e.subtractProduct(s, x[rest+i:rest+i+count], a.part(rest+i, first, count, nb), found)
			})
		}
		done += nb
	}
	for i, v := range x {
		*b.at(i, 0) = v
	}
	q.count(backend.TrsmFlops(n, 1))
}

// solveVector is x ← A⁻¹ x for a triangle whose rows or columns lie in one
// piece: row by row by dot products, or column by column.
func (e *engine[T]) solveVector(s *scratch[T], isLower, unit bool, a view[T], x []T) {
	n := len(x)
	for step := range n {
		i := step
		if !isLower {
			i = n - 1 - step
		}
		from, to := 0, i // the unknowns that are known
		if !isLower {
			from, to = i+1, n
		}
		if a.cs == 1 {
			at := a.off + i*a.rs
			x[i] -= e.dot(s, a.data[at+from:at+to], x[from:to])
		}
		if !unit {
			x[i] /= *a.at(i, i)
		}
		if a.cs != 1 {
			at := a.off + i*a.cs
			from, to = i+1, n // those that are not
			if !isLower {
				from, to = 0, i
			}
			e.axpy(s, -x[i], a.data[at+from:at+to], x[from:to])
		}
	}
}

// subtractProduct is y ← y − A x.
func (e *engine[T]) subtractProduct(s *scratch[T], y []T, a view[T], x []T) {
	if a.cs == 1 {
		for i := 0; i < len(y); i += 4 {
			for r, v := range e.dots(s, a, i, min(4, len(y)-i), x) {
				y[i+r] -= v
			}
		}
		return
	}
	for p, v := range x {
		at := a.off + p*a.cs
		e.axpy(s, -v, a.data[at:at+len(y)], y)
	}
}
