package learners_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestSearchEndsWhereSolveSucceeds: the search of a Gaussian process ends at a point that can be
// solved, also where noiseless targets lie in the span of a polynomial kernel, so that the
// likelihood grows until rounding dominates (GPy #642, scikit-learn #8384, caret #871).
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
	for try := range 60 {
		n := 4 + r.IntN(25)
		x, y := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
		for i := range n {
			x.Set(i, 0, 5*r.Float64())
			y.Set(i, 0, functions[try%len(functions)](x.At(i, 0)))
		}
		k := fmt.Sprintf("polynomial(degree=%d,c=1)", 1+r.IntN(7))
		if try%4 == 3 {
			k = "gaussian(sigma=3)"
		}
		if m := degenerateFit(t, "gaussian-process", map[string]string{"kernel": k}, x, y, nil); m == nil {
			t.Errorf("%s, function %d: no model", k, try%len(functions))
		}
	}
}

// TestRVMWithoutNoise: targets without noise are fitted until a further function would be
// dependent on the others to working precision, and the model before it is kept.
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
