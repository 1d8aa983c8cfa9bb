package learners_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// TestConstantTarget fits a target that is constant, exactly or up to rounding, with every regression learner that
// has an intercept or a mean. The model must predict the constant, and its facts must name this target.
func TestConstantTarget(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed = 20261128
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	settings := map[string][]map[string]string{
		"ridge":            {{"lambda": "1"}, {"lambda": "1e-10"}, {"lambda": "1e10"}, {"lambda": "1", "solver": "dual"}},
		"kernel-ridge":     {nil, {"solver": "cg"}, {"solver": "mixed"}, {"kernel": "linear()"}, {"lambda": "1e-6"}, {"lambda": "1e6"}},
		"nystrom-ridge":    {nil, {"kernel": "linear()"}, {"solver": "falkon"}, {"solver": "normal"}, {"std": "true"}},
		"fourier-ridge":    {nil, {"std": "true"}},
		"gaussian-process": {nil, {"kernel": "linear()"}, {"optimize": "false"}, {"scale": "false"}, {"kernel": "polynomial(degree=3,c=1)"}},
		"lasso":            {nil, {"lambda": "1e-6"}, {"method": "fista"}, {"theta": "1"}},
		"l0":               {nil, {"support": "1"}},
		"rvm":              {nil, {"method": "fixed-point"}, {"kernel": "linear()"}, {"basis": "features"}},
	}
	for trial, c := range required.Subset(5, []float64{0, 1, -3, 0.1, 0.3, 1.0 / 3, 1e8 + 0.3, -1e-8, 1e-100, 1e100, 2.5e6, math.Pi}) {
		for _, rounded := range []bool{false, true} {
			n, d := 5+r.IntN(40), 1+r.IntN(4)
			x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
			for i := range n {
				for j := range d {
					x.Set(i, j, r.NormFloat64())
				}
				y.Set(i, 0, c)
				if rounded && i%3 == 1 && c != 0 {
					y.Set(i, 0, math.Nextafter(c, 2*c))
				}
			}
			var weights []float64
			if trial%2 == 1 {
				for range n {
					weights = append(weights, r.ExpFloat64())
				}
			}
			for _, l := range learners.Catalogue() {
				if !l.Supports(learners.Regression) {
					continue
				}
				list := settings[l.Name]
				if list == nil {
					list = []map[string]string{nil}
				}
				for _, g := range list {
					name := fmt.Sprintf("%s %v, %v, rounded %t", l.Name, g, c, rounded)
					m := degenerateFit(t, l.Name, g, x, y, weights)
					if m == nil {
						t.Errorf("%s: no model", name)
						continue
					}
					// The bound is for n rounding errors of the target c in sums and in kernel values, times a factor
					// of 1000 for a division by λ.
					bound := 1e3 * float64(n) * 0x1p-52 * math.Abs(c)
					f := labels(t, dev, m, x)
					for i := range n {
						if diff := math.Abs(f.At(i, 0) - c); !(diff <= bound) {
							t.Errorf("%s: %v at row %d, off by %.3g, more than %.3g", name, f.At(i, 0), i+1, diff, bound)
							break
						}
					}
					if !strings.Contains(fmt.Sprint(m.(learners.Describer).Facts()), "the target is constant: no feature can explain it") {
						t.Errorf("%s: the facts %v do not say that the target is constant", name, m.(learners.Describer).Facts())
					}
					if u, ok := learners.As[learners.Uncertain](m); ok {
						v, err := u.Variance(t.Context(), dev, x)
						if err != nil {
							t.Errorf("%s: variance: %v", name, err)
							continue
						}
						if w := v.At(0, 0); !(w >= 0) || l.Name == "gaussian-process" && !(w > 0 && w < 1e3*float64(n)) {
							t.Errorf("%s: variance %v", name, w)
						}
					}
				}
			}
		}
	}
}

// TestConstantTargetOfGaussianProcess checks that the scale of a constant target is 1, with variances computed by hand.
// It also checks that a constant target does not change the predictions of a second target.
func TestConstantTargetOfGaussianProcess(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	fit := func(name map[string]string, x, y *mat.Dense) learners.Model {
		m := degenerateFit(t, "gaussian-process", name, x, y, nil)
		if m == nil {
			t.FailNow()
		}
		return m
	}
	m := fit(map[string]string{"kernel": "gaussian(sigma=1)", "lambda": "0.1"}, mat.NewDense(2, 1, []float64{0, 1e3}), mat.NewDense(2, 1, []float64{0.3, 0.3}))
	v, err := m.(learners.Uncertain).Variance(t.Context(), dev, mat.NewDense(2, 1, []float64{0, 500}))
	if err != nil {
		t.Fatal(err)
	}
	checkClose(t, "variance at a sample", v.At(0, 0), 1-1/1.1+0.1, 8*0x1p-52)
	checkClose(t, "variance far from samples", v.At(1, 0), 1.1, 8*0x1p-52)

	x, y := gaussians(t, 30, 2, 20261129)
	targets := mat.NewDense(30, 2, nil)
	for i := range 30 {
		targets.SetRow(i, []float64{0.1, y.At(i, 0)})
	}
	single, joint := labels(t, dev, fit(nil, x, y), x), labels(t, dev, fit(nil, x, targets), x)
	for i := range 30 {
		checkClose(t, "the other target", joint.At(i, 1), single.At(i, 0), 1e-7*mat.Norm(y, 2)) // the residual of each fit is 1e-8
		checkClose(t, "the constant target", joint.At(i, 0), 0.1, 30*0x1p-52)
	}
}

// TestConstantTargetWithoutIntercept checks that without an intercept a constant target is fitted like any other:
// ridge of the target 1 on one feature is f(x) = x Σx/(Σx² + λ). The facts state that the target is constant.
func TestConstantTargetWithoutIntercept(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := mat.NewDense(4, 1, []float64{1, 2, 3, 4}), mat.NewDense(4, 1, []float64{1, 1, 1, 1})
	m := degenerateFit(t, "ridge", map[string]string{"lambda": "2", "intercept": "false"}, x, y, nil)
	if m == nil {
		return
	}
	checkClose(t, "f(4)", labels(t, dev, m, x).At(3, 0), 4*10.0/32, 8*0x1p-52)
	if !strings.Contains(fmt.Sprint(m.(learners.Describer).Facts()), "the target is constant") {
		t.Errorf("the facts %v do not say that the target is constant", m.(learners.Describer).Facts())
	}
}

// TestConstantColumns checks that columns that are constant, or vary only by rounding, get weights of 0 and do not
// change the other weights. A column of numbers far from 0 that differ by more than rounding must have the correct
// nonzero weight.
func TestConstantColumns(t *testing.T) {
	const seed, n = 3, 400
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	features, y := mat.NewDense(n, 5, nil), mat.NewDense(n, 1, nil)
	weights := make([]float64, n)
	for i := range n {
		a, b := r.NormFloat64(), 1e8+float64(r.IntN(9))
		features.SetRow(i, []float64{0.1, a, 1e6 / 3.0, b, math.Nextafter(0.7, float64(i%2))})
		y.Set(i, 0, 2*a-b+r.NormFloat64())
		weights[i] = float64(1 + i%3)
	}
	selectColumns := func(columns ...int) *mat.Dense {
		x := mat.NewDense(n, len(columns), nil)
		for j, c := range columns {
			x.SetCol(j, mat.Col(nil, c, features))
		}
		return x
	}
	dev := backendtest.Device(t, "ref")
	fits := map[string]func(x mat.Matrix, w []float64) (interface{ Coef() *mat.Dense }, error){
		"least-squares": func(x mat.Matrix, w []float64) (interface{ Coef() *mat.Dense }, error) {
			return learners.LeastSquares{}.Fit(t.Context(), dev, x, y, learners.Options{Weights: w})
		},
		"ridge-constrained": func(x mat.Matrix, w []float64) (interface{ Coef() *mat.Dense }, error) {
			return learners.RidgeConstrained{Theta: 100}.Fit(t.Context(), dev, x, y, learners.Options{Weights: w})
		},
	}
	for _, c := range []struct{ columns, varying []int }{{[]int{0, 1}, []int{1}}, {[]int{1, 2}, []int{1}}, {[]int{4, 1, 2}, []int{1}}, {[]int{0, 1, 2, 3, 4}, []int{1, 3}}} {
		for name, fit := range fits {
			for _, w := range [][]float64{nil, weights} {
				got, err := fit(selectColumns(c.columns...), w)
				if err != nil {
					t.Fatal(name, c.columns, err)
				}
				want, err := fit(selectColumns(c.varying...), w)
				if err != nil {
					t.Fatal(name, c.varying, err)
				}
				size := mat.Norm(want.Coef(), 2)
				for j, column := range c.columns {
					v := 0.0
					if index := slices.Index(c.varying, column); index >= 0 {
						v = want.Coef().At(index, 0)
					}
					// The bound is for the rounding errors of values near 1e8, relative to their deviation 2.6, and of
					// sums of n products.
					if bound := n * (1e8/2.6*0x1p-53 + 0x1p-52) * size; !(math.Abs(got.Coef().At(j, 0)-v) <= bound) {
						t.Errorf("%s, columns %d: weight %d is %v, want %v, allowed %.2g", name, c.columns, j, got.Coef().At(j, 0), v, bound)
					}
				}
			}
		}
	}
}
