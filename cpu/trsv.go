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
	for done := 0; done < n && !q.stopped(); {
		nb := min(trsvBlock, n-done)
		first, rest := done, done+nb
		if !isLower {
			first, rest = n-done-nb, 0
		}
		found, left := x[first:first+nb], n-done-nb
		solveVector(isLower, unit, a.part(first, first, nb, nb), found)
		if left > 0 {
			q.rows(left, nb, func(lo, hi int) {
				subtractProduct(x[rest+lo:rest+hi], a.part(rest+lo, first, hi-lo, nb), found)
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
func solveVector[T backend.Float](isLower, unit bool, a view[T], x []T) {
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
			x[i] -= dot(a.data[at+from:at+to], x[from:to])
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
			axpy(-x[i], a.data[at+from:at+to], x[from:to])
		}
	}
}

// subtractProduct is y ← y − A x.
func subtractProduct[T backend.Float](y []T, a view[T], x []T) {
	if a.cs == 1 {
		for i := range y {
			at := a.off + i*a.rs
			y[i] -= dot(a.data[at:at+len(x)], x)
		}
		return
	}
	for p, v := range x {
		at := a.off + p*a.cs
		axpy(-v, a.data[at:at+len(y)], y)
	}
}

// axpy is y ← y + α x.
func axpy[T backend.Float](alpha T, x, y []T) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += alpha * v
	}
}

// dot is xᵀy in four sums.
func dot[T backend.Float](x, y []T) T {
	var s0, s1, s2, s3 T
	y = y[:len(x)]
	for ; len(x) >= 4; x, y = x[4:], y[4:] {
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for i := range x {
		s0 += x[i] * y[i]
	}
	return (s0 + s1) + (s2 + s3)
}
