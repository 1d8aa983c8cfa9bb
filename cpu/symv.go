package cpu

import (
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/flop"
)

// Memory bandwidth limits the product of a matrix and a small number of vectors. Each element is therefore read
// once, and a symmetric matrix only in one triangle. Several rows are processed together, so that the vectors are
// read once for all these rows. The order of the additions depends only on the shape and the row stride.

// thinColumns is the largest number of columns of B for which the functions of this file compute A B. With
// more columns, packing A takes less time than reading A once for each column.
const thinColumns = 4

// symvColumns is the largest number of columns of B for which symv is used with a symmetric A of order n. A
// product in packed blocks takes 3 times as long for 10 columns, 1.2 to 4 times for 16, and 0.6 times for 32
// (float32, n = 4096, AMD EPYC of family 25, November 2026).
func symvColumns(n int) int {
	if n < 512 {
		return thinColumns
	}
	return 12
}

// thinElements is the number of elements of a matrix from which the functions of this file save time; for smaller
// matrices, copying the vectors takes longer (AMD EPYC of family 25, November 2026).
const thinElements = 32 * 32

// thinRows is the number of rows that a worker takes at a time: a multiple of both results of rowsAtOnce.
const thinRows = 48

// groups returns the number of groups of rows for a matrix of n rows, which is also the largest
// number of workers. With more groups, the sums would take much memory compared with the matrix.
func groups(n int) int { return max(1, min(n/256, 16)) }

// dot returns Σ x_i y_i.
func (e *engine[T]) dot(x, y []T) T {
	if len(x) == 0 {
		return 0
	}
	return e.ukr.Dot(len(x), &x[0], &y[0])
}

// axpy computes y ← y + a·x.
func (e *engine[T]) axpy(a T, x, y []T) {
	if len(x) > 0 {
		e.ukr.Axpy(len(x), a, &x[0], &y[0])
	}
}

// columnsOf returns contiguous copies of the columns of v.
func columnsOf[T backend.Float](v view[T], lend allocator[T]) ([][]T, func()) {
	memory, free := lend(v.rows * v.cols)
	cols := make([][]T, v.cols)
	for j := range cols {
		cols[j] = memory[j*v.rows:][:v.rows]
		if v.rs == 1 && v.rows > 0 {
			copy(cols[j], v.data[v.offset+j*v.cs:])
			continue
		}
		for i := range cols[j] {
			cols[j][i] = *v.at(i, j)
		}
	}
	return cols, free
}

// sums contains the sums of all groups. Each group has one column of sums for each column of the result.
type sums[T backend.Float] struct {
	data             []T
	rows, cols, size int // size is the number of groups
	stride           int // distance of columns in elements; each column is aligned to a cache line
}

// newSums returns sums with arbitrary contents from a pool; each group first calls clear.
func (e *engine[T]) newSums(rows, cols, size int) (sums[T], func()) {
	line := cacheLine / int(unsafe.Sizeof(T(0)))
	stride := panels(rows, line) * line
	data, free := e.sharedSums(stride * cols * size)
	return sums[T]{data, rows, cols, size, stride}, free
}

// column returns the sums of group g for column j of the result.
func (p sums[T]) column(g, j int) []T { return p.data[(g*p.cols+j)*p.stride:][:p.rows] }

// clear sets the sums of group g to zero.
func (p sums[T]) clear(g int) { clear(p.data[g*p.cols*p.stride:][:p.cols*p.stride]) }

// addTo adds the sums of all groups, in order, and computes C ← α·sum + β·C.
func (p sums[T]) addTo(q *queue[T], alpha, beta T, c view[T]) {
	q.rows(p.rows, p.cols*p.size, func(lo, hi int) {
		for j := range p.cols {
			sum := p.column(0, j)[lo:hi]
			for g := 1; g < p.size; g++ {
				q.engine.axpy(1, p.column(g, j)[lo:hi], sum)
			}
			for i, v := range sum {
				store(c.at(lo+i, j), alpha*v, beta)
			}
		}
	})
}

// symv computes C ← α A B + β C for a symmetric A, given by a triangle with contiguous rows, and a small number of
// columns. A lower triangle may lack its last columns, whose elements are then taken as zero.
func (q *queue[T]) symv(ul backend.Uplo, alpha T, a, b view[T], beta T, c view[T]) {
	n, size, count := a.rows, groups(a.rows), rowsAtOnce[T](a.rs)
	x, freeX := columnsOf(b, q.engine.shared)
	defer freeX()
	groupSums, free := q.engine.newSums(n, len(x), size)
	defer free()
	q.parallel(size, flop.Gemm(n, n, len(x)), func(s *scratch[T], g int) {
		groupSums.clear(g)
		// Blocks of rows are assigned round-robin, so that all groups read about the same amount.
		for block := g * thinRows; block < n && !q.stopped(); block += size * thinRows {
			for i := block; i < min(block+thinRows, n); i += count {
				end, from, to := besideDiagonal(ul, a, i, count)
				for len(x) > 1 && to-from > symvSpan {
					// Sums are aligned to cache lines at multiples of symvSpan.
					next := (from/symvSpan + 1) * symvSpan
					for j, xj := range x {
						q.engine.symvBeside(s, a, i, end, from, next, xj, groupSums.column(g, j))
					}
					from = next
				}
				for j, xj := range x {
					q.engine.symvBeside(s, a, i, end, from, to, xj, groupSums.column(g, j))
					q.engine.symvCorner(ul, a, i, end, xj, groupSums.column(g, j))
				}
			}
		}
	})
	groupSums.addTo(q, alpha, beta, c)
	if !q.stopped() {
		q.count(flop.Symm(n, len(x)) - flop.Symm(n-a.cols, len(x)))
	}
}

// rowsAtOnce returns how many rows are processed together in a triangle with row stride ld: ukr.MaxRows, or 8 if
// all rows begin in the same set of the first-level cache, where more rows would evict each other.
func rowsAtOnce[T backend.Float](ld int) int {
	const setBytes = 64 * cacheLine // bytes after which addresses use the same cache set
	if ld*int(unsafe.Sizeof(T(0)))%setBytes == 0 {
		return 8
	}
	return ukr.MaxRows
}

// symvSpan is the number of elements of a row that are processed for all columns of B before the next elements.
const symvSpan = 1024

// symvRows adds to sum the products of rows i … i+count−1 of a triangle of A with x. An off-diagonal element
// contributes to the sum of its row and, because A is symmetric, to the sum of its column.
func (e *engine[T]) symvRows(s *scratch[T], ul backend.Uplo, a view[T], i, count int, x, sum []T) {
	end, from, to := besideDiagonal(ul, a, i, count)
	e.symvBeside(s, a, i, end, from, to, x, sum)
	e.symvCorner(ul, a, i, end, x, sum)
}

// besideDiagonal divides rows i … end−1 of a triangle, where end ≤ i + count, into the diagonal block and
// the columns beside it, which are the columns c with from ≤ c < to.
func besideDiagonal[T backend.Float](ul backend.Uplo, a view[T], i, count int) (end, from, to int) {
	end = min(i+count, a.rows)
	if ul == backend.Upper {
		return end, end, a.cols
	}
	return end, 0, min(i, a.cols)
}

// symvBeside is symvRows for columns beside the diagonal block: the columns c with from ≤ c < to.
func (e *engine[T]) symvBeside(s *scratch[T], a view[T], i, end, from, to int, x, sum []T) {
	beside := func(from, to int) {
		if from < to {
			e.dotAxpys(s, a.block(i, from, end-i, to-from), x[from:], sum[from:], x[i:], sum[i:])
		}
	}
	if line := cacheLine / int(unsafe.Sizeof(T(0))); to-from > 1024 {
		next := panels(from, line) * line // first index at which sum is aligned to a cache line
		beside(from, next)
		from = next
	}
	beside(from, to)
}

// symvCorner is symvRows for the diagonal block.
func (e *engine[T]) symvCorner(ul backend.Uplo, a view[T], i, end int, x, sum []T) {
	if end <= a.cols {
		plainSymv(ul == backend.Lower, 1, a.data[a.offset+i*a.rs+i:], a.rs, x[i:end], 1, sum[i:end])
		return
	}
	for r := i; r < end; r++ {
		row := a.data[a.offset+r*a.rs:][:a.cols]
		from, to := i, min(r, a.cols)
		if ul == backend.Upper {
			from, to = r+1, end
		}
		var d T
		for k := from; k < to; k++ {
			d += row[k] * x[k]
			sum[k] += row[k] * x[r]
		}
		if r < a.cols {
			d += row[r] * x[r]
		}
		sum[r] += d
	}
}

// dotAxpys computes t ← t + Z y and x ← x + Zᵀ a, where the rows of Z are contiguous.
func (e *engine[T]) dotAxpys(s *scratch[T], z view[T], y, x, a, t []T) {
	maxRows := rowsAtOnce[T](z.rs)
	s.rows.X, s.rows.Y, s.rows.N, s.rows.Ldz = &x[0], &y[0], z.cols, z.rs
	for r := 0; r < z.rows; {
		s.rows.Z = z.at(r, 0)
		copy(s.rows.A[:], a[r:z.rows])
		count := min(maxRows, z.rows-r)
		switch {
		case count == ukr.MaxRows:
			e.ukr.DotAxpy12(&s.rows)
		case count >= 8:
			count = 8
			e.ukr.DotAxpy8(&s.rows)
		case count >= 4:
			count = 4
			e.ukr.Dot4(&s.rows)
			e.ukr.Axpy4(&s.rows)
		default:
			count = 1
			s.span = ukr.Span[T]{X: &x[0], Y: &y[0], Z: s.rows.Z, N: z.cols, A: a[r]}
			e.ukr.DotAxpy(&s.span)
			s.rows.B[0] = s.span.B
		}
		for k, d := range s.rows.B[:count] {
			t[r+k] += d
		}
		r += count
	}
}

// gemv computes C ← α A B + β C for a small number of columns, where the rows or the columns of A are contiguous.
func (q *queue[T]) gemv(alpha T, a, b view[T], beta T, c view[T]) {
	e := q.engine
	x, freeX := columnsOf(b, e.shared)
	defer freeX()
	// Count at least one operation for each byte of A, because reading a large A takes longer than waking a worker.
	flops := max(flop.Gemm(a.rows, len(x), a.cols), float64(a.rows)*float64(a.cols)*float64(unsafe.Sizeof(alpha)))
	if a.cs == 1 {
		q.chunks(a.rows, thinRows, flops, func(s *scratch[T], first, count int) {
			for i := first; i < first+count; i += 4 {
				for j, xj := range x {
					for r, d := range e.dots(s, a, i, min(4, first+count-i), xj) {
						store(c.at(i+r, j), alpha*d, beta)
					}
				}
			}
			q.count(flop.Gemm(count, len(x), a.cols))
		})
		return
	}
	aT, size := a.t(), groups(a.cols)
	groupSums, free := e.newSums(a.rows, len(x), size)
	defer free()
	q.parallel(size, flops, func(s *scratch[T], g int) {
		groupSums.clear(g)
		first, last := g*aT.rows/size, (g+1)*aT.rows/size
		for p := first; p < last && !q.stopped(); p += 4 {
			for j, xj := range x {
				e.axpys(s, aT, p, min(4, last-p), xj, groupSums.column(g, j))
			}
		}
		q.count(flop.Gemm(a.rows, len(x), last-first))
	})
	groupSums.addTo(q, alpha, beta, c)
}

// dots returns the dot products of x with rows i … i+count−1 of a, where count ≤ 4.
func (e *engine[T]) dots(s *scratch[T], a view[T], i, count int, x []T) []T {
	if count == 4 {
		s.rows = ukr.Rows[T]{Z: a.at(i, 0), Y: &x[0], N: a.cols, Ldz: a.rs}
		e.ukr.Dot4(&s.rows)
		return s.rows.B[:4]
	}
	for r := range count {
		s.rows.B[r] = e.dot(a.data[a.offset+(i+r)*a.rs:][:a.cols], x)
	}
	return s.rows.B[:count]
}

// axpys adds x_r times row r of a to sum for r = i … i+count−1, where count ≤ 4.
func (e *engine[T]) axpys(s *scratch[T], a view[T], i, count int, x, sum []T) {
	if count == 4 {
		s.rows = ukr.Rows[T]{Z: a.at(i, 0), X: &sum[0], N: a.cols, Ldz: a.rs, A: [ukr.MaxRows]T{x[i], x[i+1], x[i+2], x[i+3]}}
		e.ukr.Axpy4(&s.rows)
		return
	}
	for r := i; r < i+count; r++ {
		e.axpy(x[r], a.data[a.offset+r*a.rs:][:a.cols], sum)
	}
}
