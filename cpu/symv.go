package cpu

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// Products of a matrix and a few vectors run at the speed of the memory that
// holds the matrix: each element is read once, and half of a symmetric matrix
// not at all. What columns of sums are added to each other, and in which order,
// follows from the shape: rows are dealt to a fixed number of groups, each with
// sums of its own.

// thinColumns is up to how many columns a product is done this way. With more,
// packing the matrix costs less than going through it again in the cache.
const thinColumns = 4

// thinRows rows are gone over together, thinStretch columns at a time: the
// vectors' part of that is in the first-level cache.
const (
	thinRows    = 32
	thinStretch = 1024
)

// groups is the number of groups of rows for a matrix of n rows: enough for as
// many workers, few enough that their sums are small beside the matrix.
func groups(n int) int { return max(1, min(n/256, 16)) }

// dot is Σ x_i y_i.
func (e *engine[T]) dot(s *scratch[T], x, y []T) T {
	if len(x) == 0 {
		return 0
	}
	s.span = ukr.Span[T]{X: &x[0], Y: &y[0], N: len(x)}
	e.ukr.Dot(&s.span)
	return s.span.A
}

// axpy is y ← y + a·x.
func (e *engine[T]) axpy(s *scratch[T], a T, x, y []T) {
	if len(x) == 0 {
		return
	}
	s.span = ukr.Span[T]{X: &y[0], Y: &x[0], N: len(x), A: a}
	e.ukr.Axpy(&s.span)
}

// columnsOf is the columns of v, each in one piece.
func columnsOf[T backend.Float](v view[T]) [][]T {
	cols := make([][]T, v.cols)
	for j := range cols {
		cols[j] = make([]T, v.rows)
		for i := range cols[j] {
			cols[j][i] = *v.at(i, j)
		}
	}
	return cols
}

// sums holds the sums of the groups, column by column: group g's part of
// column j begins at (g·cols + j)·rows.
type sums[T backend.Float] struct {
	data             []T
	rows, cols, size int // size is the number of groups
}

func newSums[T backend.Float](rows, cols, size int) sums[T] {
	return sums[T]{make([]T, rows*cols*size), rows, cols, size}
}

func (p sums[T]) column(g, j int) []T { return p.data[(g*p.cols+j)*p.rows:][:p.rows] }

// addTo is C ← α·sums + β·C, group after group.
func (p sums[T]) addTo(q *queue[T], alpha, beta T, c view[T]) {
	q.rows(p.rows, p.cols*p.size, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := range p.cols {
				var sum T
				for g := range p.size {
					sum += p.column(g, j)[i]
				}
				store(c.at(i, j), alpha*sum, beta)
			}
		}
	})
}

// symv is C ← α A B + β C for a symmetric A, given by a triangle whose rows lie
// in one piece, and a few columns.
func (q *queue[T]) symv(ul backend.Uplo, alpha T, a, b view[T], beta T, c view[T]) {
	n, size := a.rows, groups(a.rows)
	x := columnsOf(b)
	part := newSums[T](n, len(x), size)
	e := q.engine
	q.tasks(size, backend.GemmFlops(n, n, len(x)), func(s *scratch[T], g int) {
		// Blocks of rows are dealt in turns, so that all groups have as much to
		// read. Within a block a stretch of x and of the sums stays in the
		// first-level cache while all rows go over it.
		for i0 := g * thinRows; i0 < n && !q.stopped(); i0 += size * thinRows {
			i1 := min(i0+thinRows, n)
			begin, end := 0, i1
			if ul == backend.Upper {
				begin, end = i0, n
			}
			for p := begin; p < end; p += thinStretch {
				for j, xj := range x {
					sum := part.column(g, j)
					for i := i0; i < i1; i++ {
						from, to := p, min(p+thinStretch, i)
						if ul == backend.Upper {
							from, to = max(p, i+1), min(p+thinStretch, n)
						}
						if p <= i && i < p+thinStretch {
							sum[i] += *a.at(i, i) * xj[i]
						}
						if from >= to {
							continue
						}
						s.span = ukr.Span[T]{X: &sum[from], Y: &xj[from], Z: a.at(i, from), N: to - from, A: xj[i]}
						e.ukr.DotAxpy(&s.span)
						sum[i] += s.span.B
					}
				}
			}
		}
	})
	part.addTo(q, alpha, beta, c)
	if !q.stopped() {
		q.count(backend.SymmFlops(n, len(x)))
	}
}

// gemv is C ← α A B + β C for a few columns, where the rows or the columns of
// A lie in one piece.
func (q *queue[T]) gemv(alpha T, a, b view[T], beta T, c view[T]) {
	e, x := q.engine, columnsOf(b)
	flops := backend.GemmFlops(a.rows, len(x), a.cols)
	if a.cs == 1 {
		q.pieces(a.rows, thinRows, flops, func(s *scratch[T], first, count int) {
			total := s.grow(count * len(x))
			clear(total)
			for p := 0; p < a.cols; p += thinStretch {
				to := min(p+thinStretch, a.cols)
				for j, xj := range x {
					for i := range count {
						row := a.data[a.off+(first+i)*a.rs:]
						total[i*len(x)+j] += e.dot(s, row[p:to], xj[p:to])
					}
				}
			}
			for i := range count {
				for j := range x {
					store(c.at(first+i, j), alpha*total[i*len(x)+j], beta)
				}
			}
			q.count(backend.GemmFlops(count, len(x), a.cols))
		})
		return
	}
	size := groups(a.cols)
	part := newSums[T](a.rows, len(x), size)
	q.tasks(size, flops, func(s *scratch[T], g int) {
		first, last := g*a.cols/size, (g+1)*a.cols/size
		for p0 := first; p0 < last && !q.stopped(); p0 += thinRows {
			for i := 0; i < a.rows; i += thinStretch {
				to := min(i+thinStretch, a.rows)
				for j, xj := range x {
					sum := part.column(g, j)[i:to]
					for p := p0; p < min(p0+thinRows, last); p++ {
						e.axpy(s, xj[p], a.data[a.off+p*a.cs:][i:to], sum)
					}
				}
			}
		}
		q.count(backend.GemmFlops(a.rows, len(x), last-first))
	})
	part.addTo(q, alpha, beta, c)
}
