package ref

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/check"
)

func (q *queue[T]) AddDiag(d []T, a backend.Matrix[T]) {
	n := check.AddDiag(d, a)
	A := gridOf(q.dev, "AddDiag", a)
	q.addDiag(d, n, func(i int) *T { return &A.data[i*(A.rs+A.cs)] })
}

func (q *queue[T]) addDiag(d []T, n int, diagonal func(i int) *T) {
	if q.stopped() {
		return
	}
	for i := range n {
		v := diagonal(i)
		*v = T(float64(*v) + float64(d[min(i, len(d)-1)]))
	}
}

func (q *queue[T]) ColAxpy(alpha []T, x, y backend.Matrix[T]) {
	rows, cols := check.Columns("ColAxpy", alpha, x, y)
	X, Y := gridOf(q.dev, "ColAxpy", x), gridOf(q.dev, "ColAxpy", y)
	for i := range rows {
		if q.stopped() {
			return
		}
		for j := range cols {
			Y.set(i, j, Y.at(i, j)+float64(alpha[j])*X.at(i, j))
		}
	}
}

func (q *queue[T]) ColDot(dst []T, x, y backend.Matrix[T]) error {
	rows, cols := check.Columns("ColDot", dst, x, y)
	X, Y := gridOf(q.dev, "ColDot", x), gridOf(q.dev, "ColDot", y)
	for j := range cols {
		if q.stopped() {
			break
		}
		var s float64
		for i := range rows {
			s += X.at(i, j) * Y.at(i, j)
		}
		dst[j] = T(s)
	}
	return q.wait()
}
