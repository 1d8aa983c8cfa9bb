package stream

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// The mean of cos(ωᵀ(x−z)) over many frequencies is the kernel.
func TestSpectral(t *testing.T) {
	const seed, count, d = 23, 40000, 3
	t.Log("seed", seed)
	x := backendtest.Normal(seed, 6, d)
	for _, test := range []struct {
		kernel     kernels.Kernel
		orthogonal bool
	}{
		{kernels.Gaussian{Sigma: 1.5}, false},
		{kernels.Gaussian{Sigma: 1.5}, true},
		{kernels.Gaussian{Sigmas: []float64{0.5, 2, 10}}, false},
		{kernels.Gaussian{Sigmas: []float64{0.5, 2, 10}}, true},
		{kernels.Laplacian{Sigma: 2}, false},
		{kernels.Matern{Nu: 0.5, Sigma: 2}, false},
		{kernels.Matern{Nu: 1.5, Sigma: 2}, true},
		{kernels.Matern{Nu: 2.5, Sigma: 1}, false},
		{kernels.RationalQuadratic{A: 0.4, Sigma: 1}, false},
		{kernels.RationalQuadratic{A: 3, Sigma: 1}, true},
		{kernels.Product{kernels.Gaussian{Sigma: 2}, kernels.Laplacian{Sigma: 3}, kernels.Constant{Value: 2}}, false},
		{kernels.Sum{kernels.Scaled{Weight: 0.3, Kernel: kernels.Gaussian{Sigma: 1}}, kernels.Matern{Nu: 1.5, Sigma: 4}}, false},
	} {
		s, err := spectralOf(test.kernel, d)
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.frequencies(t.Context(), rand.New(rand.NewPCG(seed, 0)), count, d, test.orthogonal)
		if err != nil {
			t.Fatal(err)
		}
		for i := range x.Rows {
			for j := range i + 1 {
				mean := 0.0
				for _, omega := range list {
					arg := 0.0
					for p, w := range omega {
						arg += w * (x.Row(i)[p] - x.Row(j)[p])
					}
					mean += s.height * math.Cos(arg) / count
				}
				// The variance of a cosine is at most 1. The tolerance is five standard deviations of the mean,
				// and rounding errors.
				want := kernels.Eval(test.kernel, x.Row(i), x.Row(j))
				if d := math.Abs(mean - want); d > 5*s.height/math.Sqrt(count)+1e-12 {
					t.Errorf("%v, orthogonal %v: the mean of the cosines is %v, the kernel %v", test.kernel, test.orthogonal, mean, want)
				}
			}
		}
	}
	for _, k := range []kernels.Kernel{kernels.Linear{}, kernels.Sum{kernels.Gaussian{Sigma: 1}, kernels.Linear{}}, kernels.Product{kernels.Constant{Value: 1}}} {
		if _, err := spectralOf(k, d); err == nil {
			t.Errorf("%v has frequencies", k)
		}
	}
}

// TestOrthogonalFrequencies checks that frequencies in a group are orthogonal, and that they
// approximate the kernel better than independent frequencies.
func TestOrthogonalFrequencies(t *testing.T) {
	const d, count, draws = 8, 16, 300
	k := kernels.Gaussian{Sigma: 3}
	s, err := spectralOf(k, d)
	if err != nil {
		t.Fatal(err)
	}
	x := backendtest.Normal(1, 2, d)
	want := kernels.Eval(k, x.Row(0), x.Row(1))
	squares := map[bool]float64{}
	for seed := range uint64(draws) {
		for _, orthogonal := range []bool{false, true} {
			list, err := s.frequencies(t.Context(), rand.New(rand.NewPCG(seed, 0)), count, d, orthogonal)
			if err != nil {
				t.Fatal(err)
			}
			mean := 0.0
			for _, omega := range list {
				arg := 0.0
				for p, w := range omega {
					arg += w * (x.Row(0)[p] - x.Row(1)[p])
				}
				mean += math.Cos(arg) / count
			}
			squares[orthogonal] += (mean - want) * (mean - want)
			for i := range list {
				for j := range i {
					dot, a, b := 0.0, 0.0, 0.0
					for p := range d {
						dot += list[i][p] * list[j][p]
						a += list[i][p] * list[i][p]
						b += list[j][p] * list[j][p]
					}
					// Orthogonalizing twice suffices (Giraud, Langou, Rozložník 2005): only the rounding errors of
					// d products remain.
					if orthogonal && i/d == j/d && math.Abs(dot) > 8*d*numeric.Epsilon*math.Sqrt(a*b) {
						t.Fatalf("frequencies %d and %d: cosine %.3g", i, j, dot/math.Sqrt(a*b))
					}
				}
			}
		}
	}
	// 300 draws suffice to distinguish variances that differ by a quarter.
	if squares[true] > 0.75*squares[false] {
		t.Errorf("mean squared error %.3g with orthogonal directions, %.3g without", squares[true]/draws, squares[false]/draws)
	}
}

// Drawing frequencies in many dimensions, which takes a long time, stops soon after its context is
// canceled.
func TestFrequenciesCanceled(t *testing.T) {
	s, err := spectralOf(kernels.Gaussian{Sigma: 1}, 300)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, orthogonal := range []bool{false, true} {
		if _, err := s.frequencies(ctx, rand.New(rand.NewPCG(1, 0)), 5000, 300, orthogonal); !errors.Is(err, context.Canceled) {
			t.Errorf("orthogonal %v: %v", orthogonal, err)
		}
	}
}
