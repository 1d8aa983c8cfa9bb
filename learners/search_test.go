package learners_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// TestSearchEndsWhereSolveSucceeds checks that the search of a Gaussian process for noiseless targets ends at
// parameters for which the system can be solved (GPy #642, scikit-learn #8384, caret #871).
func TestSearchEndsWhereSolveSucceeds(t *testing.T) {
	const seed = 20261130
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	functions := []func(float64) float64{
		func(x float64) float64 { return 1000*x + 5 },
		func(x float64) float64 { return x * x },
		math.Sin,
		func(x float64) float64 { return 3 },
		math.Exp,
	}
	for trial := range 60 {
		n := 4 + r.IntN(25)
		x, y := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
		for i := range n {
			x.Set(i, 0, 5*r.Float64())
			y.Set(i, 0, functions[trial%len(functions)](x.At(i, 0)))
		}
		k := fmt.Sprintf("polynomial(degree=%d,c=1)", 1+r.IntN(7))
		if trial%4 == 3 {
			k = "gaussian(sigma=3)"
		}
		if m := degenerateFit(t, "gaussian-process", map[string]string{"kernel": k}, x, y, nil); m == nil {
			t.Errorf("%s, function %d: no model", k, trial%len(functions))
		}
	}
}

// TestSearchNamesThePointsThatAreRefused checks that a Gaussian process whose solver fails at parameters with a
// larger likelihood states these parameters, and the parameters that it was fitted with.
func TestSearchNamesThePointsThatAreRefused(t *testing.T) {
	x, y := mat.NewDense(30, 2, nil), mat.NewDense(30, 1, nil)
	for i := range 30 {
		x.SetRow(i, []float64{5 * float64(i) / 30, math.Cos(float64(i))})
		y.Set(i, 0, 1000*x.At(i, 0)+5)
	}
	warnings := 0
	for _, settings := range []map[string]string{
		{"kernel": "polynomial(degree=6,c=1)"},
		{"kernel": "polynomial(degree=3,c=1)"},
		{"kernel": "polynomial(degree=60,c=1)"},
		{"kernel": "polynomial(degree=160,c=1)"},
		{"kernel": "polynomial(degree=2,c=1)", "lambda": "1e-14"},
		{"kernel": "gaussian(sigma=10)", "lambda": "1e-300"},
		{"ard": "true"},
	} {
		m := degenerateFit(t, "gaussian-process", settings, x, y, nil)
		if m == nil {
			t.Errorf("%v: no model", settings)
			continue
		}
		text := fmt.Sprint(m.(learners.Describer).Facts())
		if !strings.Contains(text, "was refused") {
			continue
		}
		warnings++
		p := m.State().Params
		if point := fmt.Sprintf("kernel %v, lambda %.4g", p["kernel"], p["lambda"]); !strings.Contains(text, point) {
			t.Errorf("%v: the warning does not name the point of the model, %s: %s", settings, point, text)
		}
	}
	if warnings == 0 {
		t.Error("no point was refused: the test shows nothing")
	}
}

// TestRVMWithoutNoise checks that a fit to targets without noise ends, with a model, when the next basis function
// would be linearly dependent on the others in working precision.
func TestRVMWithoutNoise(t *testing.T) {
	for name, f := range map[string]func(float64) float64{
		"square": func(x float64) float64 { return x * x },
		"cubic":  func(x float64) float64 { return x * x * x },
		"sine":   func(x float64) float64 { return math.Sin(6 * x) },
		"exp":    math.Exp,
		"line":   func(x float64) float64 { return 2*x + 1 },
	} {
		for _, n := range []int{20, 80, 150} {
			for _, method := range []string{"sequential", "fixed-point"} {
				x, y := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
				for i := range n {
					x.Set(i, 0, float64(i)/float64(n))
					y.Set(i, 0, f(x.At(i, 0)))
				}
				if m := degenerateFit(t, "rvm", map[string]string{"method": method}, x, y, nil); m == nil {
					t.Errorf("%s of %d rows, %s: no model", name, n, method)
				}
			}
		}
	}
}

// TestSearchThatEndsEarlyWarns checks that a model whose search ended at the limit of evaluations has a warning
// with the slope of the log likelihood. Otherwise the slope, computed by differences between fits, must be small.
func TestSearchThatEndsEarlyWarns(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed, n = 20261201, 60
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	warned := 0
	for _, d := range []int{1, 2, 5, 40} {
		x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
		for i := range n {
			sum := 0.0
			for j := range d {
				x.Set(i, j, r.NormFloat64())
				sum += x.At(i, j) / float64(j+1)
			}
			y.Set(i, 0, math.Sin(2*sum)+0.3*r.NormFloat64())
		}
		m, err := learners.GaussianProcess{Lambda: 0.1, ARD: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(m.Facts())
		if strings.Contains(text, "a local search has not converged within 150 evaluations: the log likelihood still changes by ") {
			warned++
			continue
		}
		likelihood := func(lambda float64) float64 {
			f, err := learners.GaussianProcess{Kernel: m.Kernel(), Lambda: lambda, Fixed: true}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return f.LogLikelihood()
		}
		const h = 1e-4
		slope := math.Abs(likelihood(m.Lambda()*math.Exp(h))-likelihood(m.Lambda()*math.Exp(-h))) / (2 * h)
		// The last step may raise the likelihood by up to 1e-7. The second derivative is at most n.
		if bound := math.Sqrt(2e-7 * n); slope > bound {
			t.Errorf("%d features: the slope is %.2g, more than %.2g, and there is no warning: %s", d, slope, bound, text)
		}
	}
	if warned == 0 {
		t.Error("no search ended early: the test shows nothing")
	}
}

// TestLassoCountsItsSteps checks the singular and the plural in the warning about the limit of steps.
func TestLassoCountsItsSteps(t *testing.T) {
	x, y := mat.NewDense(6, 2, []float64{1, 2, 2, 1, 3, 5, 4, 4, 5, 9, 6, 7}), mat.NewDense(6, 1, []float64{1, 3, 2, 5, 4, 8})
	for method, want := range map[string]string{"coordinate-descent": "after 1 sweep the duality gap is", "fista": "after 1 step the duality gap is"} {
		m := degenerateFit(t, "lasso", map[string]string{"lambda": "0.01", "method": method, "iterations": "1"}, x, y, nil)
		if text := fmt.Sprint(m.(learners.Describer).Facts()); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in %s", method, want, text)
		}
	}
}
