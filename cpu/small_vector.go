package cpu

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// The functions of this file multiply small matrices by a vector on the caller's goroutine.

// smallSymv computes y ← α A x + β y for a symmetric A, of which it reads one triangle.
func (e *engine[T]) smallSymv(ul backend.Uplo, alpha T, a []T, lda int, x []T, beta T, y []T) {
	n := len(x)
	s := e.getScratch()
	sum := s.grow(n)
	clear(sum)
	v := rowMajor(a, n, n, lda)
	for i, count := 0, rowsAtOnce[T](lda); i < n; i += count {
		e.symvRows(s, ul, v, i, count, x, sum)
	}
	for i, v := range sum {
		store(&y[i], alpha*v, beta)
	}
	e.putScratch(s)
}

// For orders below plainSymvOrder, Symv uses plain loops instead of micro-kernels. Plain loops take 0.38 µs at
// n = 40 and 0.79 µs at n = 60; micro-kernels take 0.44 and 0.67 µs (AMD EPYC of family 25, November 2026).
const plainSymvOrder = 52

// plainSymv is smallSymv in plain loops over two rows of A at a time. It begins at the shortest row of the
// triangle, so that row i adds only to elements of y whose rows are finished.
func plainSymv[T backend.Float](lower bool, alpha T, a []T, lda int, x []T, beta T, y []T) {
	n := len(x)
	y = y[:n]
	i, step := 0, 2
	if !lower {
		i, step = n-2, -2
	}
	if n%2 == 1 {
		if lower {
			store(&y[0], alpha*(a[0]*x[0]), beta)
			i = 1
		} else {
			store(&y[n-1], alpha*(a[(n-1)*lda+n-1]*x[n-1]), beta)
			i = n - 3
		}
	}
	for ; i >= 0 && i < n; i += step {
		row0, row1 := a[i*lda:][:n], a[(i+1)*lda:][:n]
		x0, x1 := x[i], x[i+1]
		from, to, offDiagonal := 0, i, row1[i]
		if !lower {
			from, to, offDiagonal = i+2, n, row0[i+1]
		}
		total0 := row0[i]*x0 + offDiagonal*x1
		total1 := offDiagonal*x0 + row1[i+1]*x1
		segment0 := row0[from:to]
		segment1, xs, ys := row1[from:to][:len(segment0)], x[from:to][:len(segment0)], y[from:to][:len(segment0)]
		x0 *= alpha
		x1 *= alpha
		for j, v := range segment0 {
			w, xj := segment1[j], xs[j]
			total0 += v * xj
			total1 += w * xj
			ys[j] += v*x0 + w*x1
		}
		store(&y[i], alpha*total0, beta)
		store(&y[i+1], alpha*total1, beta)
	}
}

// smallTrsv computes x ← op(A)⁻¹ x by forward substitution. It reverses an upper op(A), which becomes lower.
func smallTrsv[T backend.Float](k *ukr.Kernels[T], lower, trans, unit bool, n int, a []T, lda int, x []T) {
	ars, acs, inc, first := lda, 1, 1, 0
	if trans {
		ars, acs = 1, lda
	}
	if lower == trans {
		first = n - 1
		ars, acs, inc = -ars, -acs, -1
	}
	k.Trsv(n, unit, &a[first*lda+first], ars, acs, &x[first], inc)
}
