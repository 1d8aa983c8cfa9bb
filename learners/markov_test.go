package learners_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

// TestOneFeatureAtScale fits 100,000 samples of one feature, and compares predictions, bounds and variances with
// those of a fit to the 3,000 samples nearest to the predicted points. The kernel of the other samples is at most
// exp(−60).
func TestOneFeatureAtScale(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n, subsetRows = 100_000, 3000
	r := rand.New(rand.NewPCG(11, 0))
	x, y := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		x.Set(i, 0, float64(i)/10+0.05*r.Float64())
		y.Set(i, 0, math.Sin(x.At(i, 0))+0.1*r.NormFloat64())
	}
	kernel := kernels.Matern{Nu: 1.5, Sigma: 2}
	z := mat.NewDense(2000, 1, nil)
	for i := range z.RawMatrix().Data {
		z.Set(i, 0, 5000+float64(i%200-100)/10+0.03)
	}
	subset := mat.NewDense(subsetRows, 2, nil) // a second feature, all zeros, leads to a stored matrix
	for i := range subsetRows {
		subset.Set(i, 0, x.At(n/2-subsetRows/2+i, 0))
	}
	padded := mat.NewDense(2000, 2, nil)
	padded.Slice(0, 2000, 0, 1).(*mat.Dense).Copy(z)
	targets := y.Slice(n/2-subsetRows/2, n/2+subsetRows/2, 0, 1)

	gp := learners.GaussianProcess{Kernel: kernel, Lambda: 0.01, Fixed: true, UnitScale: true, NoIntercept: true}
	m, err := gp.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Solved().Method; got != solvers.Kalman {
		t.Fatalf("the method is %s", got)
	}
	want, err := gp.Fit(t.Context(), dev, subset, targets, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	compare := func(name string, f func(m *learners.GaussianProcessModel, z mat.Matrix) (*mat.Dense, error)) {
		a, err := f(m, z)
		if err != nil {
			t.Fatal(err)
		}
		b, err := f(want, padded)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range a.RawMatrix().Data {
			// Both residuals are at most 1e-8 times ‖y‖ ≈ 220, and are divided by √λ.
			if d := math.Abs(v - b.At(i, 0)); !(d <= 3e-5) {
				t.Fatalf("%s %d: got %v, want %v", name, i, v, b.At(i, 0))
			}
		}
	}
	compare("prediction", func(m *learners.GaussianProcessModel, z mat.Matrix) (*mat.Dense, error) {
		return m.Predict(t.Context(), dev, z)
	})
	compare("variance", func(m *learners.GaussianProcessModel, z mat.Matrix) (*mat.Dense, error) {
		return m.Variance(t.Context(), dev, z)
	})
	values, bounds, err := m.PredictBound(t.Context(), dev, z)
	if err != nil {
		t.Fatal(err)
	}
	exact, err := want.Predict(t.Context(), dev, padded)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range bounds.RawMatrix().Data {
		if d := math.Abs(values.At(i, 0) - exact.At(i, 0)); !(d <= b) {
			t.Errorf("prediction %d differs by %.3g, the bound is %.3g", i, d, b)
		}
	}

	// Kernel ridge regression has the predictions of the Gaussian process.
	ridge, err := learners.KernelRidge{Kernel: kernel, Lambda: 0.01, NoIntercept: true}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := ridge.Solved().Method; got != solvers.Kalman {
		t.Errorf("the method of kernel-ridge is %s", got)
	}
	f, err := ridge.Predict(t.Context(), dev, z)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range f.RawMatrix().Data {
		if v != values.At(i, 0) {
			t.Fatalf("prediction %d of kernel-ridge: got %v, want %v", i, v, values.At(i, 0))
		}
	}
}
