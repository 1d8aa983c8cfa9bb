package cpu

import (
	"math"
	"sync/atomic"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
)

func (q *queue[T]) Trsm(s backend.Side, ul backend.Uplo, t backend.Trans, alpha T, a, b backend.Matrix[T]) {
	check.Trsm(s, ul, t, a, b)
	q.trsm(s, ul, t, false, alpha, q.asMatrix("Trsm", a).view(), q.asMatrix("Trsm", b).view())
}

// trsm computes B ← α op(A)⁻¹ B or α B op(A)⁻¹ by blocks. For each block on the diagonal of A, it solves for the
// unknowns of this block. It then multiplies these unknowns by the other blocks in the same columns of A and subtracts
// the product from the remaining rows of B. X op(A) = B is solved as op(A)ᵀ Xᵀ = Bᵀ. A unit diagonal is not read.
func (q *queue[T]) trsm(side backend.Side, ul backend.Uplo, t backend.Trans, unit bool, alpha T, a, b view[T]) {
	a = a.op(t)
	isLower := (ul == backend.Lower) == (t == backend.NoTrans)
	if side == backend.Right {
		a, b, isLower = a.t(), b.t(), !isLower
	}
	if alpha == 0 {
		// Scale all of B once, so that 0·NaN is NaN in every block.
		q.chunks(b.rows, 64, copyFlops(b.rows*b.cols), func(_ *scratch[T], i, rows int) {
			for r := i; r < i+rows; r++ {
				for c := range b.cols {
					*b.at(r, c) *= 0
				}
			}
		})
		alpha = 1
	}
	if b.cols == 1 {
		q.trsv(isLower, unit, alpha, a, b)
		return
	}
	// For a triangle of order up to KC, one call of solveBlock is faster than two calls and a product.
	n, kc := b.rows, q.engine.block.kc
	if n > kc {
		kc /= 2
	}
	for solved := 0; solved < n; {
		nb := min(kc, n-solved)
		first, next := solved, solved+nb // first rows of the diagonal block and of the remaining rows
		if !isLower {
			first, next = n-solved-nb, 0
		}
		x := b.block(first, 0, nb, b.cols)
		q.solveBlock(isLower, unit, alpha, a.block(first, first, nb, nb), x)
		remaining := n - solved - nb
		if remaining > 0 {
			q.gemm(-1, a.block(next, first, remaining, nb), x, alpha, b.block(next, 0, remaining, b.cols), whole)
		}
		alpha = 1 // the first product scales the remaining rows
		solved += nb
		if q.stopped() {
			return
		}
	}
}

// solveBlock computes X ← α A⁻¹ X for a triangle A of order ≤ KC.
func (q *queue[T]) solveBlock(isLower, unit bool, alpha T, a, x view[T]) {
	e := q.engine
	if q.directBlock(e.ukr.TrsmDirect, isLower, unit, alpha, &a, &x) {
		return
	}
	n, mr, nr := a.rows, e.ukr.MR, e.ukr.NR
	steps := panels(n, mr)
	triangle, free := e.shared(mr * mr * steps * (steps + 1) / 2)
	defer free()
	invertible := q.packTriangle(triangle, a, unit)
	q.chunks(x.cols, trsmStrips*nr, flop.Trsm(n, x.cols), func(s *scratch[T], j, cols int) {
		xj := x.block(0, j, n, cols)
		if invertible {
			e.substitute(s, triangle, alpha, xj)
		} else {
			e.triangular(e.ukr.TrsmDirect, s, unit, alpha, &a, &xj)
		}
		q.count(flop.Trsm(n, cols))
	})
}

// directBlock computes X ← α A⁻¹ X or α A X by the given direct kernel, or returns false if the block is too
// large. In both cases it reverses the views of an upper triangle A and of X, so that A becomes lower.
func (q *queue[T]) directBlock(kernel func(*ukr.Direct[T]), isLower, unit bool, alpha T, a, x *view[T]) bool {
	n, e := a.rows, q.engine
	if n == 0 || x.cols == 0 {
		return true
	}
	if !isLower {
		*a, *x = a.reversed(true), x.reversed(false)
	}
	if !direct(n, x.cols) {
		return false
	}
	s := e.getScratch()
	e.triangular(kernel, s, unit, alpha, a, x)
	e.putScratch(s)
	q.count(flop.Trsm(n, x.cols))
	return true
}

// trsmStrips is the number of panels of right-hand sides that a worker solves in one pass over the triangle.
const trsmStrips = 4

// substitute solves for the right-hand sides x with a packed triangle. x has at most trsmStrips panels of columns.
func (e *engine[T]) substitute(s *scratch[T], triangle []T, alpha T, x view[T]) {
	mr, nr := e.ukr.MR, e.ukr.NR
	n, steps := x.rows, panels(x.rows, mr)
	size := steps * mr * nr // elements of a packed strip, padded to whole tiles
	strips := panels(x.cols, nr)
	work := s.grow(strips * size)
	for j := range strips {
		strip := work[j*size:][:size]
		e.packerB(s).view(strip, x.block(0, j*nr, n, min(nr, x.cols-j*nr)).t())
		clear(strip[n*nr:])
		scaleSlice(alpha, strip[:n*nr])
	}
	offset := 0
	for r := range steps {
		for j := range strips {
			s.tile = ukr.Tile[T]{A: &triangle[offset], B: &work[j*size], K: r * mr}
			e.ukr.Trsm(&s.tile)
		}
		offset += mr * mr * (r + 1)
	}
	for j := range strips {
		e.unpack(s, x.block(0, j*nr, n, min(nr, x.cols-j*nr)), work[j*size:])
	}
}

// packTriangle writes a lower triangle as panels of MR rows for Kernels.Trsm: panel r has (r+1)·MR columns. The
// diagonal is stored inverted, and padded with ones to whole panels. packTriangle returns false if the inverse of
// a nonzero element overflows, so that the caller must divide by the diagonal.
func (q *queue[T]) packTriangle(dst []T, a view[T], unit bool) bool {
	w := q.engine.ukr.MR
	var failed atomic.Bool
	q.chunks(panels(a.rows, w), 8, copyFlops(a.rows*a.rows/2), func(s *scratch[T], first, count int) {
		for r := first; r < first+count; r++ {
			i := r * w
			rows := min(w, a.rows-i)
			panel := dst[w*w*r*(r+1)/2:][:w*(i+w)]
			q.engine.packerA(s).view(panel, a.block(i, 0, rows, i))
			if !packCorner(panel[w*i:], a.block(i, i, rows, rows), w, unit) {
				failed.Store(true)
			}
		}
	})
	return !failed.Load()
}

// packCorner writes the w × w block on the diagonal of a panel. It returns false in the same case as packTriangle.
func packCorner[T backend.Float](dst []T, a view[T], w int, unit bool) bool {
	clear(dst)
	for p := range w {
		inverse := T(1)
		if p < a.rows && !unit {
			d := *a.at(p, p)
			inverse = 1 / d
			if math.IsInf(float64(inverse), 0) && d != 0 {
				return false
			}
		}
		dst[p*w+p] = inverse
		for i := p + 1; i < a.rows; i++ {
			dst[p*w+i] = *a.at(i, p)
		}
	}
	return true
}

// unpack writes a packed panel of NR columns back to x.
func (e *engine[T]) unpack(s *scratch[T], x view[T], work []T) {
	w, blockRows := e.ukr.NR, 0
	if x.rs == 1 && x.cols == w && x.rows >= 8 {
		blockRows = x.rows / 8 * 8
		s.tile = ukr.Tile[T]{A: &work[0], C: x.at(0, 0), K: blockRows, Ldc: x.cs}
		e.ukr.UnpackB(&s.tile)
	}
	for p := blockRows; p < x.rows; p++ {
		row := work[p*w : p*w+x.cols]
		if x.cs == 1 {
			start := x.offset + p*x.rs
			copy(x.data[start:start+x.cols], row)
			continue
		}
		for j, v := range row {
			*x.at(p, j) = v
		}
	}
}

func scaleSlice[T backend.Float](alpha T, x []T) {
	if alpha == 1 {
		return
	}
	for i := range x {
		x[i] *= alpha
	}
}
