package backendtest

import (
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
)

func potrfCall[T backend.Float](ul backend.Uplo) call[T] {
	return func(b backend.Backend[T], m []backend.Matrix[T]) error { return b.Potrf(ul, m[0]) }
}

// potrfOperand returns h, a lower triangular or symmetric matrix, or its transpose if ul is Upper, with sentinels
// in the other triangle.
func potrfOperand(ul backend.Uplo, h host) host {
	if ul == backend.Upper {
		h = transpose(h)
	}
	return triangle(ul, h)
}

func testPotrfExact[T backend.Float](r *rig[T]) {
	factor := func(n int) {
		low := r.exactTriangle(n, 12, true)
		a := mulSparse(low, transpose(low))
		for _, ul := range bothUplos {
			label := fmt.Sprintf("Potrf %v n=%d", ul, n)
			r.requireEqual(label, r.mustCall(label, potrfCall[T](ul), potrfOperand(ul, a)), potrfOperand(ul, low))
		}
	}
	for n := range 70 {
		if n < 10 || r.included() {
			factor(n)
		}
	}
	for _, n := range r.upToLarge(blockSizes...) {
		if r.included() {
			factor(n)
		}
	}
	if !short() {
		for _, n := range r.upToLarge(385, 511, 512, 513) {
			factor(n)
		}
	}
}

// testPotrfResidual factors random matrices with condition numbers of about 10 and 10⁴. It requires |LLᵀ − A| ≤
// γ_{n+1}|L||Lᵀ| (Higham, theorem 10.3), plus one rounding for a reciprocal of the pivot and the error of LLᵀ in
// float64.
func testPotrfResidual[T backend.Float](r *rig[T]) {
	for trial := range r.reduced(40) {
		n := 1 + r.rng.IntN(200)
		g := r.normals(n, n)
		a := mul(g, transpose(g))
		shift := float64(n) / 2
		if trial%2 == 1 {
			shift = float64(n) * 4e-4 // ‖GGᵀ‖ ≈ 4n: the condition number is about 10⁴
		}
		a = fromFunc(n, n, func(i, j int) float64 {
			v := a.Row(i)[j]
			if i == j {
				v += shift
			}
			return float64(T(v))
		})
		for _, ul := range bothUplos {
			label := fmt.Sprintf("Potrf %v n=%d shift=%g", ul, n, shift)
			factor := r.mustCall(label, potrfCall[T](ul), potrfOperand(ul, a))
			if ul == backend.Upper {
				factor = transpose(factor)
			}
			low := fromFunc(n, n, func(i, j int) float64 {
				if j > i {
					return 0
				}
				return factor.Row(i)[j]
			})
			relative := gamma[T](n+2) + gamma[float64](n+1)
			size := mul(abs(low), transpose(abs(low)))
			r.requireWithin(label, mul(low, transpose(low)), a, scale(relative, size))
		}
	}
	r.report()
}

// testPotrfFailure makes one element of a matrix with an exact factor invalid. The PivotError must have the index
// and value of the first pivot that depends on it, the factor before this pivot must be correct, and the other
// triangle must not change.
func testPotrfFailure[T backend.Float](r *rig[T]) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, n := range r.upToLarge(1, 2, 9, 34, 130, 258) {
		if n > 130 && short() {
			break
		}
		low := r.exactTriangle(n, 12, true)
		valid := mulSparse(low, transpose(low))
		for _, p := range []int{0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 95, 96, 127, 128, 129, 191, 192, 255, 256, 257} {
			if p >= n || p > 8 && !r.included() {
				continue
			}
			q := r.rng.IntN(p + 1) // a random column of row p
			square := low.Row(p)[p] * low.Row(p)[p]
			for _, c := range []struct {
				name  string
				col   int
				value float64 // the invalid value of element (p, col)
				pivot float64 // expected PivotError.Value
			}{
				{"zero", p, valid.Row(p)[p] - square, 0},
				{"negative", p, valid.Row(p)[p] - square - 3, -3},
				{"NaN on the diagonal", p, nan, nan},
				{"NaN in the row", q, nan, nan},
				{"Inf on the diagonal", p, inf, inf},
			} {
				bad := fromFunc(n, n, func(i, j int) float64 {
					if i == p && j == c.col || j == p && i == c.col {
						return c.value
					}
					return valid.Row(i)[j]
				})
				for _, ul := range bothUplos {
					label := fmt.Sprintf("Potrf %v n=%d, %s at (%d, %d)", ul, n, c.name, p, c.col)
					out, err := r.tryCall(label, potrfCall[T](ul), potrfOperand(ul, bad))
					r.requirePivotError(label, err, p, c.pivot)
					if ul == backend.Upper {
						out = transpose(out)
					}
					r.requireEqual(label+": leading factor", out.View(0, 0, p, p), triangle(backend.Lower, low.View(0, 0, p, p)))
					r.requireUntouched(label, out)
				}
			}
		}
	}
}

// requirePivotError requires err to be a *PivotError with the given index and value.
func (r *rig[T]) requirePivotError(label string, err error, index int, value float64) {
	r.Helper()
	var e *backend.PivotError
	if !errors.As(err, &e) || !errors.Is(err, backend.ErrNotPosDef) {
		r.Fatalf("%s: error is %v, want a *PivotError", label, err)
	}
	if e.Index != index || e.Value != value && !(math.IsNaN(e.Value) && math.IsNaN(value)) {
		r.Fatalf("%s: pivot %d with value %g, want pivot %d with value %g", label, e.Index, e.Value, index, value)
	}
}
