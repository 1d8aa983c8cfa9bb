package cpu

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

func (q *queue[T]) Trsm(s backend.Side, ul backend.Uplo, t backend.Trans, alpha T, a, b backend.Matrix[T]) {
	backend.CheckTrsm(s, ul, t, a, b)
	q.trsm(s, ul, t, false, alpha, q.own("Trsm", a).view(), q.own("Trsm", b).view())
}

// trsm is B ← α op(A)⁻¹ B or α B op(A)⁻¹, block by block of the triangle:
// solve with a block on the diagonal, then subtract its part from what is left
// of B, which is a product.
//
// On the right, X op(A) = B is op(A)ᵀ Xᵀ = Bᵀ; so both sides are one code on a
// triangle and a view of B. A unit diagonal counts as ones and is not read.
func (q *queue[T]) trsm(side backend.Side, ul backend.Uplo, t backend.Trans, unit bool, alpha T, a, b view[T]) {
	a = a.op(t)
	isLower := (ul == backend.Lower) == (t == backend.NoTrans)
	if side == backend.Right {
		a, b, isLower = a.t(), b.t(), !isLower
	}
	if alpha == 0 {
		// Once over all of B, so that 0·NaN is NaN in every block.
		q.pieces(b.rows, 64, func(_ *scratch[T], i, rows int) {
			for r := i; r < i+rows; r++ {
				for c := range b.cols {
					*b.at(r, c) *= 0
				}
			}
		})
		alpha = 1
	}
	n, kc := b.rows, q.engine.block.kc
	for done := 0; done < n; {
		nb := min(kc, n-done)
		first := done // of the block on the diagonal; from the end if upper
		rest := done + nb
		if !isLower {
			first, rest = n-done-nb, 0
		}
		x := b.part(first, 0, nb, b.cols)
		q.solveBlock(isLower, unit, alpha, a.part(first, first, nb, nb), x)
		left := n - done - nb
		q.gemm(-1, a.part(rest, first, left, nb), x, alpha, b.part(rest, 0, left, b.cols), whole)
		alpha = 1 // the first product has scaled the rest
		done += nb
		if q.stopped() {
			return
		}
	}
}

// solveBlock is X ← α A⁻¹ X for a triangle that is at most KC large. An upper
// triangle is a lower one in reverse order.
func (q *queue[T]) solveBlock(isLower, unit bool, alpha T, a, x view[T]) {
	n := a.rows
	if n == 0 || x.cols == 0 {
		return
	}
	if !isLower {
		a, x = a.reversed(true), x.reversed(false)
	}
	e := q.engine
	mr, nr := e.ukr.MR, e.ukr.NR
	steps := panels(n, mr)
	triangle, free := e.shared(mr * mr * steps * (steps + 1) / 2)
	defer free()
	invertible := packTriangle(triangle, a, mr, unit)
	q.tasks(panels(x.cols, nr), func(s *scratch[T], strip int) {
		j := strip * nr
		part := x.part(0, j, n, min(nr, x.cols-j))
		if invertible {
			work := s.grow(steps * mr * nr)
			e.packerB(s).view(work, part.t())
			clear(work[n*nr:])
			scaleSlice(alpha, work[:n*nr])
			e.substitute(s, triangle, work, steps)
			unpackPanel(part, work, nr)
		} else {
			substitutePlain(unit, alpha, a, part)
		}
		q.count(backend.TrsmFlops(n, part.cols))
	})
}

// substitute solves one packed strip of right-hand sides.
func (e *engine[T]) substitute(s *scratch[T], triangle, work []T, steps int) {
	mr := e.ukr.MR
	at := 0
	for r := range steps {
		s.tile = ukr.Tile[T]{A: &triangle[at], B: &work[0], K: r * mr}
		e.ukr.Trsm(&s.tile)
		at += mr * mr * (r + 1)
	}
}

// packTriangle writes a lower triangle as panels of w rows for Kernels.Trsm:
// panel r has (r+1)·w columns; the diagonal is inverted, and continued by ones
// to whole panels. It reports false when an inverse is out of range although
// the element is not zero, so that one must divide.
func packTriangle[T backend.Float](dst []T, a view[T], w int, unit bool) bool {
	for r := 0; r < a.rows; r += w {
		rows := min(w, a.rows-r)
		cols := r + w
		clear(dst[:cols*w])
		for i := range w {
			if i >= rows {
				dst[(r+i)*w+i] = 1
				continue
			}
			for p := range r + i {
				dst[p*w+i] = *a.at(r+i, p)
			}
			d := T(1)
			if !unit {
				d = *a.at(r+i, r+i)
			}
			inverse := 1 / d
			if math.IsInf(float64(inverse), 0) && d != 0 {
				return false
			}
			dst[(r+i)*w+i] = inverse
		}
		dst = dst[cols*w:]
	}
	return true
}

// unpackPanel writes a packed strip of columns back.
func unpackPanel[T backend.Float](x view[T], work []T, w int) {
	for p := range x.rows {
		row := work[p*w : p*w+x.cols]
		at := x.off + p*x.rs
		if x.cs == 1 {
			copy(x.data[at:at+x.cols], row)
			continue
		}
		for j, v := range row {
			x.data[at+j*x.cs] = v
		}
	}
}

// substitutePlain is X ← α A⁻¹ X for a lower triangle by divisions.
func substitutePlain[T backend.Float](unit bool, alpha T, a, x view[T]) {
	for j := range x.cols {
		for i := range x.rows {
			sum := alpha * *x.at(i, j)
			for p := range i {
				sum -= *a.at(i, p) * *x.at(p, j)
			}
			if !unit {
				sum /= *a.at(i, i)
			}
			*x.at(i, j) = sum
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
