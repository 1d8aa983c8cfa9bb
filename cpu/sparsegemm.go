package cpu

import (
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/flop"
)

// minAxpyColumns is the minimum number of columns of B for which the micro-kernel axpy adds the rows of B.
const minAxpyColumns = 8

// gemmSparse computes C ← α op(A) B + β C with the sparse matrix A given as x. Row i of C is a linear combination
// of rows of B, whose coefficients are the nonzeros of row i of op(A). The rows of Aᵀ are the lists of nonzeros
// that A keeps for each column.
func (q *queue[T]) gemmSparse(t backend.Trans, alpha T, x *sparseMatrix[T], mb *matrix[T], beta T, mc *matrix[T]) {
	m, n, k := mc.rows, mc.cols, mb.rows
	if m == 0 || n == 0 {
		return
	}
	nonfinite := findNotFinite(mb)
	if t == backend.Transpose && n == 1 && nonfinite.total == nil {
		q.transposedVector(alpha, x.csr, mb, beta, mc)
		return
	}
	// grain is the minimum number of rows of a task.
	grain := max(1, 1<<16/(1+x.csr.NNZ()/m*n))
	q.chunks(m, grain, 16*float64(x.csr.NNZ())*float64(n), func(s *scratch[T], first, count int) {
		sum, nonfiniteCount := s.grow(n), make([]int, len(nonfinite.total))
		for i := first; i < first+count && !q.stopped(); i++ {
			clear(sum)
			clear(nonfiniteCount)
			if t == backend.NoTrans {
				columns, values := x.csr.Row(i)
				addRows(q.engine, sum, columns, values, 0, mb)
				countNonfinite(nonfinite, nonfiniteCount, columns, 0)
			} else {
				for w := range x.windows() {
					rows, values, from := x.list(w, i)
					addRows(q.engine, sum, rows, values, from, mb)
					countNonfinite(nonfinite, nonfiniteCount, rows, from)
				}
			}
			for j, n := range nonfiniteCount {
				if n < nonfinite.total[j] {
					sum[j] = T(math.NaN())
				}
			}
			row := mc.row(i)
			for j, v := range sum {
				store(&row[j], alpha*v, beta)
			}
		}
		q.count(flop.Gemm(count, n, k))
	})
}

// transposedVector is gemmSparse for Aᵀ and a B with a single column of finite elements. Each task goes through
// all rows of A and adds the terms in its range of columns, in the order of gemmSparse. For short columns, this
// is faster than reading the list of each column.
func (q *queue[T]) transposedVector(alpha T, x backend.CSR[T], mb *matrix[T], beta T, mc *matrix[T]) {
	grain := max(4096, panels(x.Cols, 4))
	q.chunks(x.Cols, grain, 16*float64(x.NNZ()), func(s *scratch[T], first, count int) {
		sum := s.grow(count)
		clear(sum)
		for i := range x.Rows {
			columns, values := x.Row(i)
			if count < x.Cols {
				from, _ := slices.BinarySearch(columns, int32(first))
				to, _ := slices.BinarySearch(columns, int32(first+count))
				columns, values = columns[from:to], values[from:to]
			}
			b := mb.data[i*mb.stride]
			for p, c := range columns {
				sum[int(c)-first] += values[p] * b
			}
		}
		for i, v := range sum {
			store(&mc.data[(first+i)*mc.stride], alpha*v, beta)
		}
		q.count(flop.Gemm(count, 1, mb.rows))
	})
}

// addRows adds values[p] times row from + indices[p] of b to sum, for all p.
func addRows[T backend.Float, N int32 | uint16](e *engine[T], sum []T, indices []N, values []T, from int, b *matrix[T]) {
	values = values[:len(indices)]
	switch {
	case len(sum) == 1:
		total, data := sum[0], b.data
		for p, i := range indices {
			total += values[p] * data[(from+int(i))*b.stride]
		}
		sum[0] = total
	case len(sum) < minAxpyColumns:
		for p, i := range indices {
			v, row := values[p], b.row(from + int(i))[:len(sum)]
			for j := range sum {
				sum[j] += v * row[j]
			}
		}
	default:
		for p, i := range indices {
			e.axpy(values[p], b.row(from+int(i)), sum)
		}
	}
}

// windows yields the indices of the windows that contain rows of x.
func (x *sparseMatrix[T]) windows() func(yield func(w int) bool) {
	return func(yield func(w int) bool) {
		for w := x.first / x.lists.window; w*x.lists.window < x.first+x.csr.Rows; w++ {
			if !yield(w) {
				return
			}
		}
	}
}

// list returns the elements that x stores in a column, in the rows of window w. Element p is in row
// from + rows[p] of x and has the value values[p].
func (x *sparseMatrix[T]) list(w, column int) (rows []uint16, values []T, from int) {
	l := x.lists
	ends, start, first := l.ends[w*(l.cols+1)+column:][:2], l.starts[w], w*l.window
	rows, values = l.localRows[start+int(ends[0]):start+int(ends[1])], l.values[start+int(ends[0]):start+int(ends[1])]
	if first < x.first || min(first+l.window, l.rows) > x.first+x.csr.Rows {
		a, b := bounds(rows, x.first-first, x.first+x.csr.Rows-first)
		rows, values = rows[a:b], values[a:b]
	}
	return rows, values, first - x.first
}

// bounds returns the range of an ascending list in which the elements lie in lo … hi−1.
func bounds(list []uint16, lo, hi int) (from, to int) {
	find := func(v int) int {
		pos, _ := slices.BinarySearchFunc(list, v, func(a uint16, b int) int { return int(a) - b })
		return pos
	}
	return find(lo), find(hi)
}

// nonfinitePositions holds the positions of the elements of B that are not finite. The product of
// such an element and a 0 of A, which is not stored, is NaN.
type nonfinitePositions struct {
	columns map[int][]int // for each row, the columns of its elements that are not finite
	total   []int         // number of elements that are not finite in each column; nil if all elements are finite
}

func findNotFinite[T backend.Float](b *matrix[T]) nonfinitePositions {
	var o nonfinitePositions
	for i := range b.rows {
		for j, v := range b.row(i) {
			if v-v == 0 {
				continue
			}
			if o.total == nil {
				o = nonfinitePositions{map[int][]int{}, make([]int, b.cols)}
			}
			o.columns[i] = append(o.columns[i], j)
			o.total[j]++
		}
	}
	return o
}

// countNonfinite adds to count[j], for each column j of B, the number of elements that are not
// finite in the rows from+i of B, for each i in indices.
func countNonfinite[N int32 | uint16](o nonfinitePositions, count []int, indices []N, from int) {
	if o.total == nil {
		return
	}
	for _, i := range indices {
		for _, j := range o.columns[from+int(i)] {
			count[j]++
		}
	}
}
