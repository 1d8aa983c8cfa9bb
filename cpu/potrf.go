package cpu

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
)

func (q *queue[T]) Potrf(ul backend.Uplo, a backend.Matrix[T]) error {
	check.Potrf(ul, a)
	v := q.asMatrix("Potrf", a).view()
	if err := q.wait(); err != nil {
		return err
	}
	err := q.potrf(ul, v)
	if waitErr := q.wait(); waitErr != nil {
		return waitErr
	}
	return err
}

// potrf factors a triangle in place, one block column after another (right-looking):
//
//	A = ┌ A₁₁     ┐   A₁₁ is factored already; A₂₁ ← A₂₁ L₁₁⁻ᵀ;
//	    └ A₂₁ A₂₂ ┘   first block column of A₂₂ ← its part of A₂₂ − A₂₁A₂₁ᵀ;
//	                  the same for the other block columns, while one worker factors
//	                  the first block on the diagonal of A₂₂ (look-ahead)
func (q *queue[T]) potrf(ul backend.Uplo, a view[T]) error {
	if ul == backend.Upper {
		a = a.t() // UᵀU = LLᵀ with L = Uᵀ
	}
	n := a.rows
	if n <= potrfBase {
		return q.factorBlock(a, 0)
	}
	nb := potrfBlock(n, q.engine.block.kc)
	err := q.factorBlock(a.block(0, 0, min(nb, n), min(nb, n)), 0)
	for j := 0; err == nil && j+nb < n && !q.stopped(); j += nb {
		remaining := n - j - nb
		next := min(nb, remaining)
		l11 := a.block(j, j, nb, nb)
		a21 := a.block(j+nb, j, remaining, nb)
		a22 := a.block(j+nb, j+nb, remaining, remaining)
		q.trsm(backend.Right, backend.Lower, backend.Transpose, false, 1, l11, a21)
		a21Top := a21.block(0, 0, next, nb)
		q.gemm(-1, a21, a21Top.t(), 1, a22.block(0, 0, remaining, next), lower)
		a21Bottom := a21.block(next, 0, remaining-next, nb)
		q.gemmLookahead(func() {
			err = q.serial().factorBlock(a22.block(0, 0, next, next), j+nb)
		}, -1, a21Bottom, a21Bottom, nb, 1, a22.block(next, next, remaining-next, remaining-next), lower)
	}
	return err
}

// potrfBlock returns the width of a block column: an eighth of the order of a large matrix and a quarter of the order
// of a small matrix. The fastest widths were 192 for n = 512, 256 for 1024 and 2048, and 512 for 4096 (float64, two
// workers, AMD EPYC of family 25, November 2026).
func potrfBlock(n, kc int) int {
	return max(12*potrfUnit, min(n/4, kc/2), min(n/8, kc)) / potrfUnit * potrfUnit
}

// Matrices of order ≤ potrfBase are factored by one worker, without block columns. At order 256,
// this reaches 46 GFLOP/s, and two workers with block columns reach 41 (float64, rows of the upper
// triangle, AMD EPYC of family 25, November 2026).
const potrfBase = 256

// factorBlock factors a lower triangle in place by recursive halving (Andersen, Gustavson and others, 2000), so
// that matrix products do most of the work. The argument first is the index of its first row in the whole matrix.
func (q *queue[T]) factorBlock(a view[T], first int) error {
	n := a.rows
	if n <= potrfBase {
		q.count(flop.Potrf(n))
		return q.engine.factorDirect(&a, first)
	}
	n1 := split(n, potrfUnit)
	a11, a21, a22 := a.block(0, 0, n1, n1), a.block(n1, 0, n-n1, n1), a.block(n1, n1, n-n1, n-n1)
	if err := q.factorBlock(a11, first); err != nil {
		return err
	}
	q.trsm(backend.Right, backend.Lower, backend.Transpose, false, 1, a11, a21)
	q.syrk(backend.Lower, -1, a21, 1, a22)
	if q.stopped() {
		return nil
	}
	return q.factorBlock(a22, first+n1)
}

// The orders of the blocks are multiples of potrfUnit.
const potrfUnit = 16

// split returns about half of n, rounded to a multiple of base.
func split(n, base int) int { return (n/2 + base - 1) / base * base }

// transposeStrip is the number of rows of a factor that are copied at a time. A factorization of
// order 256 with rows of 2 KB reaches 42 GFLOP/s, and 38 without strips.
const transposeStrip = 32

// factorDirect factors a small lower triangle without packing. If its columns are not contiguous, it works on a copy.
func (e *engine[T]) factorDirect(a *view[T], first int) error {
	n := a.rows
	if n == 0 {
		return nil
	}
	s := e.getScratch()
	d := &s.direct
	d.M, d.C, d.Ldc = n, a.at(0, 0), a.cs
	if a.rs == 1 {
		e.ukr.PotrfDirect(d)
	} else {
		// Rows that are an odd number of cache lines apart do not map to the same cache sets.
		ld := n + 8
		work := s.grow(n * ld)
		t := &s.transpose
		t.A, t.C, t.M, t.N, t.Ars, t.Ldc, t.Part = d.C, &work[0], n, n, a.rs, ld, ukr.Upper
		e.ukr.TransposeDirect(t)
		d.C, d.Ldc = &work[0], ld
		e.ukr.PotrfDirect(d)
		// Copy the factor back in strips of rows that fit in the cache even if all rows use the same cache sets.
		t.Ars, t.Ldc = ld, a.rs
		for i := 0; i < n; i += transposeStrip {
			rows := min(transposeStrip, n-i)
			if i > 0 {
				t.A, t.C, t.M, t.N, t.Part = &work[i], a.at(i, 0), i, rows, ukr.Whole
				e.ukr.TransposeDirect(t)
			}
			t.A, t.C, t.M, t.N, t.Part = &work[i*ld+i], a.at(i, i), rows, rows, ukr.Lower
			e.ukr.TransposeDirect(t)
		}
	}
	pivot := d.Flag
	e.putScratch(s)
	if pivot > 0 {
		pivot--
		return &backend.PivotError{Index: first + pivot, Value: float64(*a.at(pivot, pivot))}
	}
	return nil
}
