package ref

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
)

func (q *queue[T]) Gemm(tA, tB backend.Trans, alpha T, a, b backend.Matrix[T], beta T, c backend.Matrix[T]) {
	m, n, k := check.Gemm(tA, tB, a, b, c)
	A, B, C := gridOf(q.dev, "Gemm", a).op(tA), gridOf(q.dev, "Gemm", b).op(tB), gridOf(q.dev, "Gemm", c)
	progress := q.meter(flop.Gemm(m, n, k), m)
	for i := range m {
		if q.stopped() {
			return
		}
		for j := range n {
			var s float64
			for p := range k {
				s += A.at(i, p) * B.at(p, j)
			}
			C.update(i, j, float64(alpha), s, float64(beta))
		}
		progress.step()
	}
}

func (q *queue[T]) Syrk(ul backend.Uplo, t backend.Trans, alpha T, a backend.Matrix[T], beta T, c backend.Matrix[T]) {
	n, k := check.Syrk(ul, t, a, c)
	A, C := gridOf(q.dev, "Syrk", a).op(t), gridOf(q.dev, "Syrk", c)
	progress := q.meter(flop.Syrk(n, k), n)
	for i := range n {
		if q.stopped() {
			return
		}
		first, end := 0, i+1
		if ul == backend.Upper {
			first, end = i, n
		}
		for j := first; j < end; j++ {
			var s float64
			for p := range k {
				s += A.at(i, p) * A.at(j, p)
			}
			C.update(i, j, float64(alpha), s, float64(beta))
		}
		progress.step()
	}
}

func (q *queue[T]) Symm(ul backend.Uplo, alpha T, a, b backend.Matrix[T], beta T, c backend.Matrix[T]) {
	check.Symm(ul, a, b, c)
	q.symm(ul, alpha, gridOf(q.dev, "Symm", a), gridOf(q.dev, "Symm", b), beta, gridOf(q.dev, "Symm", c))
}

func (q *queue[T]) symm(ul backend.Uplo, alpha T, A, B grid[T], beta T, C grid[T]) {
	progress := q.meter(flop.Symm(C.rows, C.cols), C.rows)
	for i := range C.rows {
		if q.stopped() {
			return
		}
		for j := range C.cols {
			var s float64
			for p := range C.rows {
				if (p < i) == (ul == backend.Lower) {
					s += A.at(i, p) * B.at(p, j)
				} else {
					s += A.at(p, i) * B.at(p, j)
				}
			}
			C.update(i, j, float64(alpha), s, float64(beta))
		}
		progress.step()
	}
}

// Trsm solves op(A) X = αB by substitution, and X op(A) = αB by the same loops over transposed grids.
func (q *queue[T]) Trsm(s backend.Side, ul backend.Uplo, t backend.Trans, alpha T, a, b backend.Matrix[T]) {
	check.Trsm(s, ul, t, a, b)
	A, B := gridOf(q.dev, "Trsm", a).op(t), gridOf(q.dev, "Trsm", b)
	lower := (ul == backend.Lower) == (t == backend.NoTrans)
	if s == backend.Right {
		A, B, lower = A.transpose(), B.transpose(), !lower
	}
	q.trsm(lower, alpha, A, B)
}

// trsm is Trsm for Left and NoTrans.
func (q *queue[T]) trsm(lower bool, alpha T, A, B grid[T]) {
	m, n := B.rows, B.cols
	progress := q.meter(flop.Trsm(m, n), m)
	for step := range m {
		if q.stopped() {
			return
		}
		i, first, end := step, 0, step
		if !lower {
			i = m - 1 - step
			first, end = i+1, m
		}
		for j := range n {
			v := float64(alpha) * B.at(i, j)
			for p := first; p < end; p++ {
				v -= A.at(i, p) * B.at(p, j)
			}
			B.set(i, j, v/A.at(i, i))
		}
		progress.step()
	}
}
