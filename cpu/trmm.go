package cpu

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/flop"
)

// trmm computes B ← α op(A) B or α B op(A) with A triangular, in place; B op(A) is computed as op(A)ᵀ Bᵀ. A unit
// diagonal is not read. If op(A) is lower triangular, row i of op(A) B depends on the rows of B up to row i, and
// blocks of rows are computed from the last to the first; for an upper triangle, in the opposite order.
func (q *queue[T]) trmm(side backend.Side, ul backend.Uplo, t backend.Trans, unit bool, alpha T, a, b view[T]) {
	a = a.op(t)
	isLower := (ul == backend.Lower) == (t == backend.NoTrans)
	if side == backend.Right {
		a, b, isLower = a.t(), b.t(), !isLower
	}
	n, kc := b.rows, q.engine.block.kc
	for remaining := n; remaining > 0; {
		nb := min(kc, remaining)
		remaining -= nb
		first, next := remaining, 0 // first rows of the diagonal block and of the remaining rows of B
		if !isLower {
			first = n - remaining - nb
			next = n - remaining
		}
		x := b.block(first, 0, nb, b.cols)
		q.multiplyBlock(isLower, unit, alpha, a.block(first, first, nb, nb), x)
		if remaining > 0 {
			q.gemm(alpha, a.block(first, next, nb, remaining), b.block(next, 0, remaining, b.cols), 1, x, whole)
		}
		if q.stopped() {
			return
		}
	}
}

// multiplyBlock computes X ← α A X for a triangle A of order ≤ KC.
func (q *queue[T]) multiplyBlock(isLower, unit bool, alpha T, a, x view[T]) {
	e := q.engine
	if q.directBlock(e.ukr.TrmmDirect, isLower, unit, alpha, &a, &x) {
		return
	}
	n, mr, nr := a.rows, e.ukr.MR, e.ukr.NR
	steps := panels(n, mr)
	triangle, free := e.shared(mr * mr * steps * (steps + 1) / 2)
	defer free()
	s := e.getScratch()
	packLower(e.packerA(s), triangle, a, unit)
	e.putScratch(s)
	q.parallel(panels(x.cols, nr), flop.Trsm(n, x.cols), func(s *scratch[T], strip int) {
		j := strip * nr
		xj := x.block(0, j, n, min(nr, x.cols-j))
		size := steps * mr * nr
		work := s.grow(2 * size)
		in, out := work[:size], work[size:]
		e.packerB(s).view(in, xj.t())
		clear(in[n*nr:])
		if finite(in) {
			e.multiplyTriangle(s, alpha, triangle, in, out, steps)
			e.unpack(s, xj, out)
		} else {
			// The zeros above the diagonal must not be multiplied with NaN or Inf.
			e.triangular(e.ukr.TrmmDirect, s, unit, alpha, &a, &xj)
		}
		q.count(flop.Trsm(n, xj.cols))
	})
}

// multiplyTriangle stores α L B in the slice out. L is a packed triangle, and the slice in holds B, a packed strip of
// columns.
func (e *engine[T]) multiplyTriangle(s *scratch[T], alpha T, triangle, in, out []T, steps int) {
	mr, nr := e.ukr.MR, e.ukr.NR
	offset := 0
	for r := range steps {
		k := (r + 1) * mr
		s.tile = ukr.Tile[T]{
			A: &triangle[offset], B: &in[0], C: &out[r*mr*nr],
			K: k, M: mr, N: nr, Ldc: nr, Lda: mr * k,
			Alpha: alpha,
		}
		e.ukr.Gemm(&s.tile)
		offset += mr * k
	}
}

// packLower writes a lower triangle, with zeros above it, as panels of w rows; panel r has (r+1)·w columns.
func packLower[T backend.Float](to packer[T], dst []T, a view[T], unit bool) {
	w := to.Width
	for r := 0; r < a.rows; r += w {
		rows := min(w, a.rows-r)
		to.view(dst, a.block(r, 0, rows, r))
		corner := dst[r*w : (r+w)*w]
		clear(corner)
		for i := range rows {
			for p := range i {
				corner[p*w+i] = *a.at(r+i, r+p)
			}
			corner[i*w+i] = 1
			if !unit {
				corner[i*w+i] = *a.at(r+i, r+i)
			}
		}
		dst = dst[(r+w)*w:]
	}
}

// finite reports whether no element is NaN or Inf.
func finite[T backend.Float](x []T) bool {
	var s0, s1, s2, s3 T
	for ; len(x) >= 4; x = x[4:] {
		s0 += x[0] - x[0]
		s1 += x[1] - x[1]
		s2 += x[2] - x[2]
		s3 += x[3] - x[3]
	}
	for _, v := range x {
		s0 += v - v
	}
	return (s0+s1)+(s2+s3) == 0
}
