package kernels_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

// TestBounds checks the bounds of common kernels, and that Bounds returns ok = false for unbounded kernels.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		k         kernels.Kernel
		low, high float64
	}{
		{kernels.Gaussian{Sigma: 2}, 0, 1},
		{kernels.Gaussian{Sigmas: []float64{1, 2, 3}}, 0, 1},
		{kernels.Laplacian{Sigma: 2}, 0, 1},
		{kernels.Matern{Nu: 0.5, Sigma: 2}, 0, 1},
		{kernels.Matern{Nu: 1.5, Sigma: 2}, 0, 1},
		{kernels.Matern{Nu: 2.5, Sigma: 2}, 0, 1},
		{kernels.RationalQuadratic{A: 1.5, Sigma: 2}, 0, 1},
		{kernels.CosineSimilarity{}, -1, 1},
		{kernels.Sum{kernels.Gaussian{Sigma: 1}, kernels.Laplacian{Sigma: 1}}, 0, 2},
		{kernels.Product{kernels.Gaussian{Sigma: 1}, kernels.Laplacian{Sigma: 1}}, 0, 1},
		{kernels.Scaled{Weight: 3, Kernel: kernels.Gaussian{Sigma: 1}}, 0, 3},
	} {
		low, high, ok := kernels.Bounds(c.k, 3)
		if !ok || math.Abs(low-c.low) > 1e-15 || math.Abs(high-c.high) > 1e-15 {
			t.Errorf("%v: from %v to %v, %t; want from %v to %v", c.k, low, high, ok, c.low, c.high)
		}
	}
	for _, k := range []kernels.Kernel{kernels.Linear{}, kernels.Polynomial{Degree: 2, C: 1}, kernels.ExpOf{Kernel: kernels.Linear{}}} {
		if low, high, ok := kernels.Bounds(k, 3); ok {
			t.Errorf("%v: from %v to %v", k, low, high)
		}
	}
}

// TestValuesAreWithinBounds checks that the values of every kernel of the catalogue are within its
// bounds, at points near each other and far apart.
func TestValuesAreWithinBounds(t *testing.T) {
	const seed, d = 7, 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	bounded := 0
	for _, info := range kernels.Catalogue() {
		k, err := kernels.Parse(info.Example)
		if err != nil {
			t.Fatal(err)
		}
		if k.Check(d) != nil {
			continue
		}
		low, high, ok := kernels.Bounds(k, d)
		if !ok {
			continue
		}
		bounded++
		for range 2000 {
			x, z := make([]float64, d), make([]float64, d)
			distance := math.Exp(6 * rng.NormFloat64())
			for p := range x {
				x[p] = math.Abs(rng.NormFloat64())
				z[p] = math.Abs(x[p] + distance*rng.NormFloat64())
			}
			// The tolerance allows 64 roundings in each of the d terms and in the program.
			slack := 64 * (d + 1) * 0x1p-53 * max(math.Abs(low), math.Abs(high))
			if v := kernels.Eval(k, x, z); !(v >= low-slack && v <= high+slack) {
				t.Fatalf("%v of %v and %v is %v, not from %v to %v", k, x, z, v, low, high)
			}
		}
	}
	if bounded < 10 {
		t.Errorf("%d kernels have bounds", bounded)
	}
}
