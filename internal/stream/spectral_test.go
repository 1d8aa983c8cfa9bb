package stream

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
)

// TestSpectral checks that the mean of cos(ωᵀ(x−z)) over many frequencies approximates the kernel.
func TestSpectral(t *testing.T) {
	const seed, count, d = 23, 40000, 3
	t.Log("seed", seed)
	x := backendtest.Normal(seed, 6, d)
	for _, k := range []kernels.Kernel{
		kernels.Gaussian{Sigma: 1.5},
		kernels.Gaussian{Sigmas: []float64{0.5, 2, 10}},
		kernels.Laplacian{Sigma: 2},
		kernels.Matern{Nu: 0.5, Sigma: 2},
		kernels.Matern{Nu: 1.5, Sigma: 2},
		kernels.Matern{Nu: 2.5, Sigma: 1},
		kernels.RationalQuadratic{A: 0.4, Sigma: 1},
		kernels.RationalQuadratic{A: 3, Sigma: 1},
		kernels.Product{kernels.Gaussian{Sigma: 2}, kernels.Laplacian{Sigma: 3}, kernels.Constant{Value: 2}},
		kernels.Product{kernels.Columns{Indices: []int{0, 2}, Kernel: kernels.Gaussian{Sigmas: []float64{1, 3}}}, kernels.Columns{Indices: []int{1}, Kernel: kernels.Laplacian{Sigma: 3}}},
		kernels.Sum{kernels.Scaled{Weight: 0.3, Kernel: kernels.Gaussian{Sigma: 1}}, kernels.Matern{Nu: 1.5, Sigma: 4}},
	} {
		s, err := spectralOf(k, d)
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.frequencies(t.Context(), rand.New(rand.NewPCG(seed, 0)), count, d, backend.Host[float64]{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range x.Rows {
			for j := range i + 1 {
				mean := 0.0
				for l := range list.Rows {
					arg := 0.0
					for p, w := range list.Row(l) {
						arg += w * (x.Row(i)[p] - x.Row(j)[p])
					}
					mean += s.height * math.Cos(arg) / count
				}
				// The tolerance is five standard deviations of the mean, and rounding.
				want := kernels.Eval(k, x.Row(i), x.Row(j))
				if d := math.Abs(mean - want); d > 5*s.height/math.Sqrt(count)+1e-12 {
					t.Errorf("%v: the mean of the cosines is %v, the kernel %v", k, mean, want)
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

// TestFrequenciesCanceled checks that frequencies returns soon after its context is canceled.
func TestFrequenciesCanceled(t *testing.T) {
	s, err := spectralOf(kernels.Gaussian{Sigma: 1}, 300)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.frequencies(ctx, rand.New(rand.NewPCG(1, 0)), 5000, 300, backend.Host[float64]{}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
