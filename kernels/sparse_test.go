package kernels_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

// TestEvalSparseIsEval checks that statistics of sparse points equal those of the dense points.
func TestEvalSparseIsEval(t *testing.T) {
	const d = 30
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	point := func(density float64) (x []float64, s kernels.SparsePoint[float64]) {
		x = make([]float64, d)
		for p := range x {
			if rng.Float64() < density {
				x[p] = float64(rng.IntN(4)) // some stored numbers are 0
				s.Columns, s.Values = append(s.Columns, int32(p)), append(s.Values, x[p])
			}
		}
		return x, s
	}
	scale := make([]float64, d)
	for p := range scale {
		scale[p] = rng.Float64()
	}
	inner := kernels.Sum{kernels.Gaussian{Sigma: 3}, kernels.Linear{}}
	for _, s := range []kernels.Stat{
		{Kind: kernels.Dot}, {Kind: kernels.Dot, Scale: scale}, {Kind: kernels.SqDist}, {Kind: kernels.SqDist, Scale: scale},
		{Kind: kernels.L1}, {Kind: kernels.L1, Scale: scale}, {Kind: kernels.CosSum, Freqs: []float64{1, 2.5}},
		{Kind: kernels.SinSum, Freqs: []float64{0.5}}, {Kind: kernels.Sinc}, {Kind: kernels.Chi2},
		{Kind: kernels.Entry}, {Kind: kernels.SelfX, Of: inner}, {Kind: kernels.SelfZ, Of: inner}, {Kind: kernels.RootX, Of: inner}, {Kind: kernels.RootZ, Of: inner},
	} {
		for _, density := range []float64{0, 0.1, 0.5, 1} {
			x, sx := point(density)
			z, sz := point(density)
			if s.Kind == kernels.Entry {
				x[0], sx = 3, kernels.SparsePoint[float64]{Columns: []int32{0, 5}, Values: []float64{3, x[5]}}
				for p := range x[1:] {
					if p+1 != 5 {
						x[p+1] = 0
					}
				}
			}
			got, want := kernels.EvalSparse(s, d, sx, sz), s.Eval(x, z)
			// EvalSparse adds the terms of all features that are 0 in both points as one product, and Eval one by one.
			// The results differ by at most d roundings of a sum of d terms of up to 2π.
			limit := 0.0
			if s.Kind == kernels.CosSum || s.Kind == kernels.Sinc {
				limit = d * 0x1p-53 * d * 2 * math.Pi
			}
			if s.Of != nil {
				limit = 0
			}
			if !(math.Abs(got-want) <= limit) {
				t.Errorf("%v, density %v: %v, not %v", s.Kind, density, got, want)
			}
		}
	}
}
