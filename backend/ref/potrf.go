package ref

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
)

// Potrf computes L row by row (Cholesky–Banachiewicz):
//
//	L_ij = (A_ij − Σ_{p<j} L_ip L_jp) / L_jj          j < i
//	L_ii = √(A_ii − Σ_{p<i} L_ip²)
//
// The same loops on the transposed grid compute UᵀU.
func (q *queue[T]) Potrf(ul backend.Uplo, a backend.Matrix[T]) error {
	check.Potrf(ul, a)
	L := gridOf(q.dev, "Potrf", a)
	if ul == backend.Upper {
		L = L.transpose()
	}
	return q.potrf(L)
}

// potrf implements Potrf for a lower triangle.
func (q *queue[T]) potrf(L grid[T]) error {
	progress := q.meter(flop.Potrf(L.rows), L.rows)
	for i := range L.rows {
		if q.stopped() {
			break
		}
		for j := range i {
			v := L.at(i, j)
			for p := range j {
				v -= L.at(i, p) * L.at(j, p)
			}
			L.set(i, j, v/L.at(j, j))
		}
		v := L.at(i, i)
		for p := range i {
			v -= L.at(i, p) * L.at(i, p)
		}
		// Round the pivot to T before the test.
		if pivot := float64(T(v)); !(pivot > 0) || math.IsInf(pivot, 1) {
			return &backend.PivotError{Index: i, Value: v}
		}
		L.set(i, i, math.Sqrt(v))
		progress.step()
	}
	return q.wait()
}
