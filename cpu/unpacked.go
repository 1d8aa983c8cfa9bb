package cpu

import (
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/flop"
)

// narrowColumns is the largest number of columns of a product for which A is not packed.
const narrowColumns = 16

// fewColumns reports whether C ← A B should be computed without packing A. In float64 A must have contiguous rows,
// because a product with a transposed A takes less time with packing.
func fewColumns[T backend.Float](a, c view[T]) bool {
	return c.cols <= narrowColumns && c.cs == 1 && (a.cs == 1 || unsafe.Sizeof(T(0)) == 4)
}

// narrowRows is the number of rows of C that one task of multiplyUnpacked computes.
const narrowRows = 96

// multiplyUnpacked computes C ← α A B + β C for a B of at most narrowColumns columns without packing A. For a
// 20,000 × 1842 matrix A in float32 and 10 columns, A B takes 6 ms without packing and 12 ms with packing; AᵀB
// takes 7 and 25 ms (AVX2, two threads, AMD EPYC of family 26, November 2026). The sums are added to C after each
// KC terms, as in queue.product, so that the results have the same bits.
func (q *queue[T]) multiplyUnpacked(alpha T, a, b view[T], beta T, c view[T]) {
	// The rows of the copy of B begin at cache lines.
	line := cacheLine / int(unsafe.Sizeof(alpha))
	ldb := panels(b.cols, line) * line
	bCopy, free := q.engine.shared(b.rows * ldb)
	defer free()
	for p := range b.rows {
		for j := range b.cols {
			bCopy[p*ldb+j] = *b.at(p, j)
		}
	}
	kc := q.engine.block.kc
	q.parallel(panels(c.rows, narrowRows), flop.Gemm(c.rows, c.cols, a.cols), func(s *scratch[T], task int) {
		i := task * narrowRows
		rows := min(narrowRows, c.rows-i)
		for p := 0; p < a.cols && !q.stopped(); p += kc {
			s.direct = ukr.Direct[T]{
				A: a.at(i, p), B: &bCopy[p*ldb], C: c.at(i, 0), M: rows, N: c.cols, K: min(kc, a.cols-p),
				Ars: a.rs, Acs: a.cs, Ldb: ldb, Ldc: c.rs, Alpha: alpha, Beta: beta,
			}
			if p > 0 {
				s.direct.Beta = 1
			}
			q.engine.ukr.GemmDirect(&s.direct)
		}
		q.count(2 * float64(rows) * float64(c.cols) * float64(a.cols))
	})
}
