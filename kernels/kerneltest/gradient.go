package kerneltest

import (
	"math"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

// checkGradient checks every derivative by finite differences in the parameter, and checks that
// WithParams with the values of Params returns k.
func checkGradient(t *testing.T, k kernels.Kernel, points [][]float64) {
	params := kernels.Params(k)
	values := make([]float64, len(params))
	for i, p := range params {
		values[i] = p.Value
	}
	if unchanged, err := kernels.WithParams(k, values); err != nil || !kernels.Equal(unchanged, k) {
		t.Fatalf("WithParams of the same values is %v, %v", unchanged, err)
	}
	for i, p := range params {
		const h = 0x1p-9
		// start is the parameter's value, moved if necessary so that all values in the difference formula obey the
		// rule. shifted returns k with the parameter start + h, or start·exp(h) if Log is set.
		start := min(max(p.Value, p.Min+5*h), p.Max-5*h)
		if p.Log {
			start = min(max(p.Value, p.Min*(1+5*h)), p.Max*(1-5*h))
		}
		shifted := func(h float64) kernels.Kernel {
			if p.Log {
				h = start * math.Expm1(h)
			}
			changed := slices.Clone(values)
			changed[i] = start + h
			m, err := kernels.WithParams(k, changed)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		k := shifted(0)
		g := kernels.Gradient(k)[i]
		if err := g.Check(len(points[0])); err != nil || g.IsPSD() {
			t.Errorf("%v: Check is %v, IsPSD %v", g, err, g.IsPSD())
		}
		m1, m2, m3, m4 := shifted(-2*h), shifted(-h), shifted(h), shifted(2*h)
		c1, c2, c3, c4 := shifted(-4*h), shifted(-2*h), shifted(2*h), shifted(4*h)
		for a, x := range points {
			for b := a % 3; b <= a; b += 3 { // use a third of the pairs, including all pairs with x = z
				z := points[b]
				value := func(m kernels.Kernel) float64 { return kernels.Eval(m, x, z) }
				got := kernels.Eval(g, x, z)
				estimate := (8*(value(m3)-value(m2)) - (value(m4) - value(m1))) / (12 * h)
				coarse := (8*(value(c3)-value(c2)) - (value(c4) - value(c1))) / (24 * h)
				// The truncation error of the five-point formula is less than its change when the step is doubled.
				// Rounding adds at most 1.5/h times the largest error of a value, because the absolute coefficients add
				// up to 18/12h. The last term is the error of subnormal numbers.
				rounding := 1.5 / h * max(Rounding(m1, x, z), Rounding(m4, x, z), Rounding(k, x, z))
				tol := math.Abs(estimate-coarse) + 2*rounding + Rounding(g, x, z) + 0x1p-1022
				if !(math.Abs(got-estimate) <= tol) {
					t.Errorf("seed %d: %v of points %v and %v is %v, finite differences give %v, and the tolerance is %g", seed, g, x, z, got, estimate, tol)
				}
				if swapped := kernels.Eval(g, z, x); swapped != got {
					t.Errorf("seed %d: %v is %v, but %v after x and z are exchanged", seed, g, got, swapped)
				}
			}
		}
	}
}
