package learners_test

import (
	"math"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// TestMarginOfSVC checks that the margin of two separable samples is half of their distance in the feature space of the
// kernel, that a soft margin is 1/‖f‖, and that a model of three classes reports no margin.
func TestMarginOfSVC(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	two := mat.NewDense(2, 2, []float64{0, 0, 3, 4})
	plane := mat.NewDense(4, 2, []float64{-1, 0, -1, 5, 2, 1, 2, 9}) // the first feature is −1 in one class and 2 in the other
	for _, c := range []struct {
		x      *mat.Dense
		y      []float64
		kernel kernels.Kernel
		c      float64
		want   float64
	}{
		{two, []float64{0, 1}, kernels.Linear{}, 100, 2.5},
		{two, []float64{0, 1}, kernels.Polynomial{Degree: 2, C: 1}, 100, math.Sqrt(1+26*26-2) / 2},
		{two, []float64{0, 1}, kernels.Gaussian{Sigma: 5}, 100, math.Sqrt(2-2*math.Exp(-0.5)) / 2},
		{plane, []float64{0, 0, 1, 1}, kernels.Linear{}, 100, 1.5},
		// C = 0.01 bounds both α: f = 0.01(x₂ − x₁)ᵀx + b.
		{two, []float64{0, 1}, kernels.Linear{}, 0.01, 1 / 0.05},
	} {
		m, err := learners.SVC{Kernel: c.kernel, C: c.c, Tol: 1e-10}.Fit(t.Context(), dev, c.x, mat.NewDense(len(c.y), 1, c.y), learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// The error of α changes f by at most Tol = 1e-10.
		if got, ok := fact(t, m, "margin").(float64); !ok || math.Abs(got/c.want-1) > 1e-8 {
			t.Errorf("%v, C = %v: margin %v, want %v", c.kernel, c.c, got, c.want)
		}
	}
}

// TestNegativeNormIsExplained checks that the facts give a reason for ‖f‖² < 0, and contain no margin, if the
// kernel is not positive definite on the samples.
func TestNegativeNormIsExplained(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x := mat.NewDense(4, 1, []float64{-2, -1, 1, 2})
	y := mat.NewDense(4, 1, []float64{0, 0, 1, 1})
	kernel := kernels.Sigmoid{A: -1, C: -1} // tanh(−xz − 1) is negative where x and z have the same sign
	for name, fit := range map[string]func() (learners.Describer, error){
		"svc": func() (learners.Describer, error) {
			return learners.SVC{Kernel: kernel, C: 1}.Fit(t.Context(), dev, x, y, learners.Options{})
		},
		"svr": func() (learners.Describer, error) {
			return learners.SVR{Kernel: kernel, C: 1, NoStandardize: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		},
	} {
		m, err := fit()
		if err != nil {
			t.Fatal(err)
		}
		facts := map[string]any{}
		for _, f := range m.Facts() {
			facts[f.Name] = f.Value
		}
		square, _ := facts["squared norm"].(float64)
		warning, _ := facts["warning"].(string)
		if _, margin := facts["margin"]; !(square < 0) || !strings.Contains(warning, "not positive definite") || margin {
			t.Errorf("%s: %v", name, facts)
		}
	}
}
