package cpu

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/check"
)

func (q *queue[T]) AddDiag(d []T, a backend.Matrix[T]) {
	n := check.AddDiag(d, a)
	v := q.asMatrix("AddDiag", a).view()
	if q.stopped() {
		return
	}
	for i := range n {
		*v.at(i, i) += d[min(i, len(d)-1)]
	}
}

func (q *queue[T]) ColAxpy(alpha []T, x, y backend.Matrix[T]) {
	rows, cols := check.Columns("ColAxpy", alpha, x, y)
	mx, my := q.asMatrix("ColAxpy", x), q.asMatrix("ColAxpy", y)
	q.rows(rows, cols, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			to := my.row(i)
			for j, v := range mx.row(i) {
				to[j] += alpha[j] * v
			}
		}
	})
}

// ColDot sums in float64. The division of the sums into parts depends only on the shape.
func (q *queue[T]) ColDot(dst []T, x, y backend.Matrix[T]) error {
	rows, cols := check.Columns("ColDot", dst, x, y)
	mx, my := q.asMatrix("ColDot", x), q.asMatrix("ColDot", y)
	grain := rowGrain(cols)
	partial := make([]float64, panels(rows, grain)*cols)
	q.rows(rows, cols, func(lo, hi int) {
		sums := partial[lo/grain*cols:][:cols]
		for i := lo; i < hi; i++ {
			yRow := my.row(i)
			for j, v := range mx.row(i) {
				sums[j] += float64(v) * float64(yRow[j])
			}
		}
	})
	for j := range dst {
		sum := 0.0
		for k := j; k < len(partial); k += cols {
			sum += partial[k]
		}
		dst[j] = T(sum)
	}
	return q.wait()
}
