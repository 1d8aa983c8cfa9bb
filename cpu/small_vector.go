package cpu

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// Products of small matrices and a vector, on the caller's goroutine.

// smallGemv is y ← α op(A) x + β y for an m × n matrix A in rows lda apart.
func (e *engine[T]) smallGemv(trans bool, m, n int, alpha T, a []T, lda int, x []T, beta T, y []T) {
	s := e.take()
	if trans {
		s.direct = ukr.Direct[T]{A: &x[0], B: &a[0], C: &y[0], M: 1, N: n, K: m, Ars: 1, Acs: 1, Ldb: lda, Ldc: n, Alpha: alpha, Beta: beta}
		e.ukr.GemmDirect(&s.direct)
	} else {
		v := rowMajor(a, m, n, lda)
		for i := 0; i < m; i += 4 {
			for r, d := range e.dots(s, v, i, min(4, m-i), x) {
				store(&y[i+r], alpha*d, beta)
			}
		}
	}
	e.give(s)
}

// smallSymv is y ← α A x + β y for a symmetric A of which one triangle is read.
func (e *engine[T]) smallSymv(ul backend.Uplo, alpha T, a []T, lda int, x []T, beta T, y []T) {
	n := len(x)
	s := e.take()
	sum := s.grow(n)
	clear(sum)
	if n < plainSymvOrder {
		plainSymv(ul, a, lda, x, sum)
	} else {
		v := rowMajor(a, n, n, lda)
		for i := 0; i < n; i += 4 {
			e.symvRows(s, ul, v, i, min(4, n-i), x, sum)
		}
	}
	for i, v := range sum {
		store(&y[i], alpha*v, beta)
	}
	e.give(s)
}

// plainSymvOrder is where the micro-kernels begin to pay in a Symv.
const plainSymvOrder = 40

// plainSymv adds A x to sum by the definition: an element beside the diagonal
// counts for its row and for its column.
func plainSymv[T backend.Float](ul backend.Uplo, a []T, lda int, x, sum []T) {
	for i, xi := range x {
		from, to := 0, i
		if ul == backend.Upper {
			from, to = i+1, len(x)
		}
		row := a[i*lda:][:len(x)]
		total := row[i] * xi
		beside := row[from:to]
		xs, column := x[from:][:len(beside)], sum[from:][:len(beside)]
		for j, v := range beside {
			total += v * xs[j]
			column[j] += v * xi
		}
		sum[i] += total
	}
}
