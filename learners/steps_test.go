package learners_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/learners"
)

// TestGradientDescentSteps compares models after a given number of steps with the textbook iteration w ← w − η(g +
// λw/n), where g is the mean gradient of n samples. The warning must state the fraction by which the loss may still
// decrease.
func TestGradientDescentSteps(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	corners := []float64{0, 0, 0, 1, 1, 0, 1, 1}
	for name, c := range map[string]struct {
		x            []float64
		y            []float64
		lambda, rate float64
		noIntercept  bool
	}{
		"AND":               {corners, []float64{0, 0, 0, 1}, 0, 1, false},
		"OR":                {corners, []float64{0, 1, 1, 1}, 0, 0.5, false},
		"XOR":               {corners, []float64{0, 1, 1, 0}, 0, 1, false},
		"AND, penalized":    {corners, []float64{0, 0, 0, 1}, 0.2, 1, false},
		"through 0":         {corners, []float64{0, 1, 1, 1}, 0, 1, true},
		"far from 0":        {[]float64{10, 3, 11, 3, 12, 5, 14, 4}, []float64{0, 1, 0, 1}, 0, 0.01, false},
		"far and separable": {[]float64{10, 3, 11, 3, 12, 5, 14, 4}, []float64{0, 0, 1, 1}, 0, 0.01, false},
	} {
		t.Run(name, func(t *testing.T) {
			x, y := mat.NewDense(4, 2, c.x), mat.NewDense(4, 1, c.y)
			w, b, size := [2]float64{}, 0.0, 0.0
			for step := 1; step <= 40; step++ {
				g, h := [2]float64{}, 0.0
				for i := range 4 {
					r := 1/(1+math.Exp(-b-w[0]*x.At(i, 0)-w[1]*x.At(i, 1))) - y.At(i, 0)
					g[0], g[1], h = g[0]+r*x.At(i, 0)/4, g[1]+r*x.At(i, 1)/4, h+r/4
				}
				for j := range w {
					w[j] -= c.rate * (g[j] + c.lambda*w[j]/4)
				}
				if !c.noIntercept {
					b -= c.rate * h
				}
				size = max(size, math.Abs(b)+14*(math.Abs(w[0])+math.Abs(w[1])))
				if step != 1 && step != 5 && step != 40 {
					continue
				}
				m, err := learners.Logistic{Solver: learners.LogisticDescent, Lambda: c.lambda, Rate: c.rate, MaxIter: step, NoIntercept: c.noIntercept}.Fit(t.Context(), dev, x, y, learners.Options{})
				if err != nil {
					t.Fatal(err)
				}
				// Each step adds a few rounding errors of f. The value size bounds |f|.
				bound := float64(16*step) * 0x1p-52 * (1 + size) * 14
				coef := m.Coef()
				for j := range w {
					if d := math.Abs(coef.At(j, 0) - w[j]); !(d <= bound) {
						t.Errorf("after %d steps w%d is %v, want %v", step, j+1, coef.At(j, 0), w[j])
					}
				}
				if d := math.Abs(m.Intercept()[0] - b); !(d <= bound) {
					t.Errorf("after %d steps b is %v, want %v", step, m.Intercept()[0], b)
				}
				// On XOR the gradient at w = 0 is 0.
				if text := warningOf(m); (name == "XOR") == strings.Contains(text, "may still fall by about") {
					t.Errorf("after %d steps the warning is %q", step, text)
				}
			}
		})
	}
}

// TestGivenIterations checks that a fit that ends at a given number of iterations returns a model with a warning,
// also for separable classes.
func TestGivenIterations(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := mat.NewDense(4, 2, []float64{0, 0, 0, 1, 1, 0, 1, 1}), mat.NewDense(4, 1, []float64{0, 0, 0, 1})
	three := mat.NewDense(4, 1, []float64{0, 1, 2, 2})
	for _, solver := range []learners.LogisticSolver{"", learners.LogisticNewton, learners.LogisticLBFGS, learners.LogisticDescent} {
		for _, labels := range []*mat.Dense{y, three} {
			for _, steps := range []int{1, 2, 100, 3000} {
				m, err := learners.Logistic{Solver: solver, MaxIter: steps}.Fit(t.Context(), dev, x, labels, learners.Options{})
				if err != nil {
					t.Errorf("%s, %d steps: %v", solver, steps, err)
				} else if text := warningOf(m); !strings.Contains(text, "may still fall by about") {
					t.Errorf("%s, %d steps: the warning is %q", solver, steps, text)
				}
			}
			if _, err := (learners.Logistic{Solver: solver}).Fit(t.Context(), dev, x, labels, learners.Options{}); err == nil {
				t.Errorf("%s: no error", solver)
			}
		}
	}
}

func warningOf(m learners.Describer) string {
	for _, fact := range m.Facts() {
		if fact.Name == "warning" {
			return fmt.Sprint(fact.Value)
		}
	}
	return ""
}

// TestGivenIterationsOfMachines checks that the fit of a support vector machine with a given number
// of steps returns a model, and that the model has a warning only if the steps are too few.
func TestGivenIterationsOfMachines(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	t.Log("seed 9")
	x, y := rings(120, 0.5, 9)
	for name, fit := range map[string]func(steps int) (learners.Model, error){
		"svc": func(steps int) (learners.Model, error) {
			return learners.SVC{C: 1e3, MaxIter: steps}.Fit(t.Context(), dev, x, y, learners.Options{})
		},
		"svr": func(steps int) (learners.Model, error) {
			return learners.SVR{C: 1e3, MaxIter: steps, NoStandardize: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		},
		"one-class-svm": func(steps int) (learners.Model, error) {
			return learners.OneClassSVM{Nu: 0.2, MaxIter: steps, Tol: 1e-6}.Fit(t.Context(), dev, x, nil, learners.Options{})
		},
	} {
		for _, steps := range []int{1, 0, 10_000_000} {
			m, err := fit(steps)
			if err != nil {
				t.Errorf("%s, %d steps: %v", name, steps, err)
				continue
			}
			if text := warningOf(m.(learners.Describer)); (steps == 1) != strings.Contains(text, "not optimal after") {
				t.Errorf("%s, %d steps: the warning is %q", name, steps, text)
			}
		}
	}
}
