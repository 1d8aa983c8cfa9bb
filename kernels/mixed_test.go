package kernels_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

// TestMixedDerivatives compares ∂²k/∂x_p∂z_p with differences of the derivatives of EvalGrad.
func TestMixedDerivatives(t *testing.T) {
	const seed, d, step = 31, 3, 0x1p-9
	r := rand.New(rand.NewPCG(seed, 0))
	texts := []string{
		"gaussian(sigma=[1,2,0.7])", "0.5*gaussian(sigma=1)*linear() + 2*matern52(sigma=1) + 3", "exp(0.2*linear())",
		"normalize(polynomial(degree=2,c=1))", "normalize(polynomial(degree=3,c=1))*matern32(sigma=2)", "columns(0,matern32(sigma=1))*columns([1,2],gaussian(sigma=1))", "polynomial(degree=1,c=1)",
	}
	for _, e := range kernels.Catalogue() {
		texts = append(texts, e.Example)
	}
	tested := 0
	for _, text := range texts {
		k, err := kernels.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		m, err := kernels.NewMixed(k, d)
		if err != nil {
			continue
		}
		tested++
		for _, width := range []float64{1, 0.01, 0} {
			x, z := make([]float64, d), make([]float64, d)
			for p := range d {
				x[p] = 0.5 + r.Float64()
				z[p] = x[p] + width*(r.Float64()-0.5)
			}
			px, err := m.Point(x)
			if err != nil {
				t.Fatal(err)
			}
			pz, err := m.Point(z)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]float64, d)
			m.AddRow(got, px, []kernels.MixedPoint{pz, pz, px}, []float64{0.75, 0.25, 0})
			for p := range d {
				value := func(h float64) float64 {
					v, dx := slices.Clone(z), make([]float64, d)
					v[p] += h
					if err := kernels.EvalGrad(k, x, v, dx, nil); err != nil {
						t.Fatal(err)
					}
					return dx[p]
				}
				// The tolerance is the change of the difference quotient when the step is halved, and rounding errors.
				difference := func(h float64) float64 { return (value(h) - value(-h)) / (2 * h) }
				estimate, coarse := difference(step), difference(2*step)
				size := max(math.Abs(value(step)), math.Abs(value(-step)), math.Abs(estimate), 1)
				if tol := 2*math.Abs(estimate-coarse) + 64*0x1p-52*size/step; !(math.Abs(got[p]-estimate) <= tol) || tol > 0.05*size {
					t.Errorf("seed %d: %s, z − x of %g: feature %d: %v, by differences %v, allowed %g", seed, text, width, p+1, got[p], estimate, tol)
				}
			}
		}
	}
	if tested < 18 {
		t.Errorf("only %d kernels have been tested", tested)
	}
	for text, want := range map[string]string{
		"exponential(sigma=1)":          "kernels: exponential(sigma=1) has no second derivative where points coincide",
		"laplacian(sigma=1) + linear()": "kernels: laplacian(sigma=1) + linear() has no second derivative where points coincide",
	} {
		k, err := kernels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = kernels.NewMixed(k, d)
		checkError(t, text, err, want)
	}
}
