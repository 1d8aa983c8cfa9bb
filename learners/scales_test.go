package learners_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// scaled returns n samples x in overlapping classes y, and the values of a noisy linear function of x. The features
// have the correlation rho, and are then shifted by offset and multiplied by scales.
func scaled(n, classes int, scales []float64, offset, rho float64) (x, y, target *mat.Dense) {
	r := rand.New(rand.NewPCG(7, 0))
	x, y, target = mat.NewDense(n, len(scales), nil), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		shared, f := r.NormFloat64(), 0.0
		for j, scale := range scales {
			v := rho*shared + math.Sqrt(1-rho*rho)*r.NormFloat64()
			f += v * float64(j+1) * (1 - 2*float64(j%2))
			x.Set(i, j, scale*(v+offset))
		}
		target.Set(i, 0, f+0.01*r.NormFloat64())
		y.Set(i, 0, math.Mod(math.Floor(math.Abs(2*f/float64(len(scales))+r.NormFloat64())), float64(classes)))
		if classes == 2 && f+r.NormFloat64() > 0 {
			y.Set(i, 0, 1)
		} else if classes == 2 {
			y.Set(i, 0, 0)
		}
	}
	return x, y, target
}

// warned reports whether a model has a fact with the name "warning".
func warned(m learners.Model) bool {
	for _, f := range m.(learners.Describer).Facts() {
		if f.Name == "warning" {
			return true
		}
	}
	return false
}

// TestScalesDoNotEndLBFGS checks that L-BFGS ends at the minimum that Newton's method finds, for features of different
// scales, two classes and four (scikit-learn #18074, #15556). The tolerance has a factor of 100, because the two
// methods estimate the remaining decrease differently.
func TestScalesDoNotEndLBFGS(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	t.Log("seed 7")
	const tol = 1e-7
	for _, classes := range []int{2, 4} {
		for _, rho := range []float64{0, 0.999} {
			unpenalized := math.NaN() // the loss without a penalty
			for _, c := range []struct {
				scales []float64
				offset float64
			}{
				{[]float64{1, 1, 1}, 0}, {[]float64{1e5, 1e-5, 1}, 0}, {[]float64{1e8, 1, 1}, 0}, {[]float64{1e-8, 1, 1}, 0},
				{[]float64{1e-8, 1e-8, 1e-8}, 0}, {[]float64{1e10, 1e-10, 1}, 0}, {[]float64{1e5, 1e-5, 1}, 1e3}, {[]float64{1, 1, 1}, 1e6},
			} {
				x, y, _ := scaled(200, classes, c.scales, c.offset, rho)
				for _, lambda := range []float64{0, 1e-12, 1e-4} {
					name := fmt.Sprintf("%d classes, correlation %v, scales %v, offset %v, lambda %v", classes, rho, c.scales, c.offset, lambda)
					loss := map[learners.LogisticSolver]float64{}
					for _, solver := range []learners.LogisticSolver{learners.LogisticNewton, learners.LogisticLBFGS} {
						m, err := learners.Logistic{Lambda: lambda, Solver: solver}.Fit(t.Context(), dev, x, y, learners.Options{})
						if err != nil {
							t.Fatalf("%s, %s: %v", name, solver, err)
						}
						loss[solver] = fact(t, m, "loss").(float64)
						if gain := fact(t, m, "remaining decrease").(float64); warned(m) || gain > 1e-9 {
							t.Errorf("%s, %s: the remaining decrease is %v", name, solver, gain)
						}
					}
					checkClose(t, name, loss[learners.LogisticLBFGS], loss[learners.LogisticNewton], tol*loss[learners.LogisticNewton])
					if lambda == 0 {
						if unpenalized != unpenalized {
							unpenalized = loss[learners.LogisticNewton]
						}
						checkClose(t, name+": loss at other scales", loss[learners.LogisticLBFGS], unpenalized, tol*unpenalized)
					}
				}
			}
		}
	}
}

// TestScalesDoNotEndTheDiagonalMetric checks that L-BFGS reaches the minimum for more than 4096 features, where it uses
// a diagonal matrix to scale the gradient. The minimum is that of KernelLogistic with the linear kernel.
func TestScalesDoNotEndTheDiagonalMetric(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	t.Log("seed 7")
	scales := make([]float64, 4100)
	for j := range scales {
		scales[j] = []float64{1e3, 1, 1e-3}[j%3]
	}
	for _, classes := range []int{2, 4} {
		x, y, _ := scaled(40, classes, scales, 0, 0)
		for _, lambda := range []float64{10, 1e5} {
			m, err := learners.Logistic{Lambda: lambda, Solver: learners.LogisticLBFGS}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if warned(m) {
				t.Errorf("%d classes, lambda %v: %v", classes, lambda, m.Facts())
			}
			k, err := learners.KernelLogistic{Kernel: kernels.Linear{}, Lambda: lambda, Tol: 1e-8}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := fact(t, k, "loss").(float64)
			checkClose(t, fmt.Sprintf("%d classes, lambda %v", classes, lambda), fact(t, m, "loss").(float64), want, 1e-6*want)
		}
	}
}

// TestEarlyEndsAreReported checks that an iterative learner that ends before it reaches its tolerance gives a
// warning or an error that states the remaining error.
func TestEarlyEndsAreReported(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	t.Log("seed 7")
	x, y, target := scaled(200, 2, []float64{1e5, 1e-5, 1}, 0, 0.999)
	defaults := learners.Options{}
	unitKernel := kernels.Gaussian{Sigma: 1}
	for name, c := range map[string]struct {
		fit learners.Fitter
		y   *mat.Dense
	}{
		"newton":             {fitter(learners.Logistic{Lambda: 1e-6, Solver: learners.LogisticNewton, MaxIter: 1}.Fit), y},
		"lbfgs":              {fitter(learners.Logistic{Lambda: 1e-6, Solver: learners.LogisticLBFGS, MaxIter: 1}.Fit), y},
		"auto":               {fitter(learners.Logistic{Lambda: 1e-6, MaxIter: 1}.Fit), y},
		"gradient-descent":   {fitter(learners.Logistic{Lambda: 1e-6, Solver: learners.LogisticDescent}.Fit), y},
		"sgd":                {fitter(learners.Logistic{Lambda: 1e-6, Solver: learners.LogisticSGD, MaxIter: 1}.Fit), y},
		"kernel-logistic":    {fitter(learners.KernelLogistic{Kernel: unitKernel, Lambda: 1, Tol: 1e-12, MaxIter: 1}.Fit), y},
		"coordinate-descent": {fitter(learners.Lasso{Lambda: 1e-3, MaxIter: 1}.Fit), target},
		"fista":              {fitter(learners.Lasso{Lambda: 0, Method: learners.FISTA}.Fit), target},
		"ista":               {fitter(learners.Lasso{Lambda: 0, Method: learners.ISTA}.Fit), target},
		"fista, penalty":     {fitter(learners.Lasso{Lambda: 1e-6, Method: learners.FISTA}.Fit), target},
		"rvm":                {fitter(learners.RVM{Kernel: unitKernel, MaxIter: 1}.Fit), target},
		"rvc":                {fitter(learners.RVC{Kernel: unitKernel, MaxIter: 1, Tol: 1e-9}.Fit), y},
		"svc":                {fitter(learners.SVC{Kernel: unitKernel, C: 1e3, Tol: 1e-9, MaxIter: 1}.Fit), y},
		"svr":                {fitter(learners.SVR{Kernel: unitKernel, C: 1e3, Tol: 1e-9, MaxIter: 1, NoStandardize: true}.Fit), target},
		"bayes-ridge":        {fitter(learners.BayesRidge{MaxIter: 1, Tol: 1e-12}.Fit), target},
	} {
		m, err := c.fit(t.Context(), dev, x, c.y, defaults)
		if err == nil && !warned(m) {
			t.Errorf("%s: ended early without a warning: %v", name, m.(learners.Describer).Facts())
		}
		if err != nil && !strings.Contains(err.Error(), "not optimal after") && !strings.Contains(err.Error(), "after 1 step") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLassoWithoutPenaltyIsLeastSquares checks that the squared error of lasso without a penalty exceeds its minimum by
// at most the default tolerance, 1e-7 of Σ(y − ȳ)², or that the model has a warning.
func TestLassoWithoutPenaltyIsLeastSquares(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	t.Log("seed 7")
	for _, rho := range required.Subset(2, []float64{0, 0.9, 0.999, 0.99999}) {
		for _, scales := range [][]float64{{1, 1, 1}, {1e5, 1e-5, 1}, {1e8, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}} {
			x, _, y := scaled(200, 2, scales, 0, rho)
			unbounded, err := learners.LeastSquares{}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := squaredError(t, dev, unbounded, x, y)
			total := 0.0
			mean := mat.Sum(y) / 200
			for i := range 200 {
				total += (y.At(i, 0) - mean) * (y.At(i, 0) - mean)
			}
			for _, method := range []learners.LassoMethod{learners.CoordinateDescent, learners.FISTA, learners.ISTA} {
				m, err := learners.Lasso{Method: method}.Fit(t.Context(), dev, x, y, learners.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if got := squaredError(t, dev, m, x, y); !warned(m) && got > want+1e-7*total+1e-12*total {
					t.Errorf("correlation %v, scales %v, %s: the squared error is %v, at the minimum %v, and there is no warning", rho, scales, method, got, want)
				}
			}
		}
	}
}

func squaredError(t *testing.T, dev backend.Device, m learners.Model, x, y *mat.Dense) (sum float64) {
	t.Helper()
	f, err := m.Predict(t.Context(), dev, x)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := y.Dims()
	for i := range n {
		e := f.At(i, 0) - y.At(i, 0)
		sum += e * e
	}
	return sum
}

// TestSVRInSmallUnits checks that a fit with y, ε and C in another unit gives the same f in this
// unit, also if all targets are smaller than the tolerance.
func TestSVRInSmallUnits(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	t.Log("seed 7")
	x, _, y := scaled(80, 2, []float64{1, 1}, 0, 0)
	predict := func(unit float64) *mat.Dense {
		t.Helper()
		scaled := mat.DenseCopyOf(y)
		scaled.Scale(unit, y)
		m, err := learners.SVR{Kernel: kernels.Gaussian{Sigma: 1}, C: 2 * unit, Epsilon: 0.1 * unit, Tol: svmTol, NoStandardize: true}.Fit(t.Context(), dev, x, scaled, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	want := predict(1)
	for _, unit := range []float64{1e-3, 1e-6, 1e-9, 1e-12} {
		f := predict(unit)
		for i := range 80 {
			// The tolerance is relative to the range of y, which is below 100 in the original unit.
			checkClose(t, fmt.Sprintf("unit %v", unit), f.At(i, 0)/unit, want.At(i, 0), 100*svmTol*svmCondition)
		}
	}
}
