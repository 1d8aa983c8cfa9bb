package backendtest

import (
	"fmt"

	"github.com/mercer-go/mercer/backend"
)

// testViews factors a matrix in blocks, which are views. The result must equal that of a single Potrf exactly.
func testViews[T backend.Float](r *rig[T]) {
	const lower, noTrans, trans = backend.Lower, backend.NoTrans, backend.Transpose
	for _, s := range [][2]int{{1, 1}, {10, 3}, {40, 7}, {65, 16}, {130, 33}, {200, 64}} {
		n, block := s[0], s[1]
		label := fmt.Sprintf("Cholesky of order %d in views of %d", n, block)
		factor := r.exactTriangle(n, 12, true)
		got := r.mustCall(label, func(b backend.Backend[T], m []backend.Matrix[T]) error {
			a := m[0]
			for j := 0; j < n; j += block {
				k := min(block, n-j)
				remaining := n - j - k
				if err := b.Potrf(lower, a.View(j, j, k, k)); err != nil {
					return err
				}
				panel, trailing := a.View(j+k, j, remaining, k), a.View(j+k, j+k, remaining, remaining)
				b.Trsm(backend.Right, lower, trans, 1, a.View(j, j, k, k), panel)
				// Syrk updates the next diagonal block, and Gemm the elements below it.
				next := min(block, remaining)
				b.Syrk(lower, noTrans, -1, panel.View(0, 0, next, k), 1, trailing.View(0, 0, next, next))
				b.Gemm(noTrans, trans, -1, panel.View(next, 0, remaining-next, k), panel.View(0, 0, next, k), 1, trailing.View(next, 0, remaining-next, next))
				last := remaining - next
				b.Syrk(lower, noTrans, -1, panel.View(next, 0, last, k), 1, trailing.View(next, next, last, last))
			}
			return nil
		}, potrfOperand(lower, mul(factor, transpose(factor))))
		r.requireEqual(label, got, potrfOperand(lower, factor))
	}
}

// testSharedInputs passes one matrix as several inputs, and several inputs that overlap.
func testSharedInputs[T backend.Float](r *rig[T]) {
	const noTrans, trans = backend.NoTrans, backend.Transpose
	for _, n := range []int{1, 5, 17, 64, 130} {
		a := r.integers(n+1, n+2, 8)
		corner := a.View(0, 0, n, n)
		shifted := a.View(1, 2, n, n)
		label := fmt.Sprintf("Gemm of a matrix and itself, n=%d", n)
		got := r.mustCall(label, func(b backend.Backend[T], m []backend.Matrix[T]) error {
			v := m[0].View(0, 0, n, n)
			b.Gemm(noTrans, trans, 1, v, v, 0, m[1])
			b.Gemm(trans, noTrans, 2, v, m[0].View(1, 2, n, n), 1, m[1])
			return nil
		}, a, filled(n, n, sentinel))
		want := combine(1, mul(corner, transpose(corner)), 2, mul(transpose(corner), shifted))
		r.requireEqual(label, got, want)

		label = fmt.Sprintf("Symm of a matrix and itself, n=%d", n)
		got = r.mustCall(label, func(b backend.Backend[T], m []backend.Matrix[T]) error {
			v := m[0].View(0, 0, n, n)
			b.Symm(backend.Upper, 1, v, v, 0, m[1])
			return nil
		}, a, filled(n, n, sentinel))
		r.requireEqual(label, got, mul(mirror(backend.Upper, corner), corner))

		// A backend must not mistake overlapping sets of points for the same matrix.
		label = fmt.Sprintf("Gram of overlapping sets, n=%d", n)
		x := r.normals(n+1, 3)
		k := distanceKernels(3, 1)[n%7]
		run := func(b backend.Backend[T], m []backend.Matrix[T]) error {
			b.Gram(m[1], k, m[0].View(0, 0, n, 3), m[0].View(1, 0, n, 3))
			return nil
		}
		dst := filled(n, n, sentinel)
		r.requireWithin(label, r.mustCall(label, run, x, dst), r.callOracle(label, run, x, dst), kernelBounds[T](k, x.View(0, 0, n, 3), x.View(1, 0, n, 3)))
		// X and Z have the same first element, but different numbers of rows.
		run = func(b backend.Backend[T], m []backend.Matrix[T]) error {
			b.Gram(m[1], k, m[0], m[0].View(0, 0, n, 3))
			return nil
		}
		dst = filled(n+1, n, sentinel)
		r.requireWithin(label, r.mustCall(label, run, x, dst), r.callOracle(label, run, x, dst), kernelBounds[T](k, x, x.View(0, 0, n, 3)))
	}
}
