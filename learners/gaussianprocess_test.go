package learners_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

func processTerms(model learners.Model, x []float64, j int) (float64, int) {
	m := model.(*learners.GaussianProcessModel)
	s := m.State()
	h, alpha := s.Arrays["centers"], s.Arrays["alpha"]
	sum := math.Abs(s.Arrays["intercept"].Row(0)[j])
	for i := range h.Rows {
		sum += math.Abs(alpha.Row(i)[j] * kernels.Eval(m.Kernel(), h.Row(i), x))
	}
	return sum, h.Rows
}

func TestGaussianProcess(t *testing.T) {
	for name, l := range map[string]learners.GaussianProcess{
		"fixed": {Kernel: kernels.Matern{Nu: 2.5, Sigma: 3}, Lambda: 0.1, Fixed: true},
		"unit":  {Kernel: kernels.Gaussian{Sigma: 2}, Lambda: 0.1, Fixed: true, UnitScale: true, NoIntercept: true},
	} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner: "gaussian-process", Fit: fitter(l.Fit), Terms: processTerms,
				Condition: 1000, // a bound on ‖W^½KW^½‖/λ with ‖K‖ ≤ 30 and weights up to 2
				Unfitted:  []learners.Model{&learners.GaussianProcessModel{}},
			})
		})
	}
}

// processData returns n samples of three features, and targets that are a smooth function of the
// first two features plus noise of standard deviation 0.1. The third feature has no effect.
func processData(seed uint64, n int) (x, y *mat.Dense) {
	r := rand.New(rand.NewPCG(seed, 0))
	x, y = mat.NewDense(n, 3, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		for j := range 3 {
			x.Set(i, j, 2*r.NormFloat64())
		}
		y.Set(i, 0, 4+3*math.Sin(x.At(i, 0))+0.3*x.At(i, 1)+0.1*r.NormFloat64())
	}
	return x, y
}

// TestGaussianProcessAgainstScikitLearn compares the mean, the standard deviation and the likelihood with
// scikit-learn's GaussianProcessRegressor, for given parameters and at the maxima that both searches find.
func TestGaussianProcessAgainstScikitLearn(t *testing.T) {
	x, y := processData(7, 90)
	queries, _ := processData(8, 40)
	var want struct {
		Mean, Std []float64
		Log, Best float64
		Kernel    string
	}
	rows := func(m *mat.Dense) (list [][]float64) {
		n, _ := m.Dims()
		for i := range n {
			list = append(list, m.RawRowView(i))
		}
		return list
	}
	scikit(t, map[string]any{"x": rows(x), "y": mat.Col(nil, 0, y), "ask": rows(queries)}, `
from sklearn.gaussian_process import GaussianProcessRegressor as GP
from sklearn.gaussian_process.kernels import RBF, WhiteKernel as W, ConstantKernel as C
y = a["y"] - a["y"].mean()
g = GP(C(2.5) * RBF([1.5, 2.0, 3.0]) + W(0.2), alpha=0.0, optimizer=None).fit(a["x"], y)
out["mean"], out["std"] = g.predict(a["ask"], return_std=True)
out["mean"] = out["mean"] + a["y"].mean()
out["log"] = g.log_marginal_likelihood_value_
g = GP(C(1.0) * RBF([3.0, 3.0, 3.0]) + W(0.1), alpha=0.0, n_restarts_optimizer=3, random_state=0).fit(a["x"], y)
out["best"], out["kernel"] = g.log_marginal_likelihood_value_, str(g.kernel_)
`, &want)
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		k, err := kernels.Parse("2.5*gaussian(sigma=[1.5,2,3])")
		if err != nil {
			t.Fatal(err)
		}
		m, err := learners.GaussianProcess{Kernel: k, Lambda: 0.2, Fixed: true, UnitScale: true}.Fit(context.Background(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// The tolerance is 100 times the unit roundoff times the condition number of the matrix.
		tol := 100 * 0x1p-52 * 90 * 2.5 / 0.2
		checkClose(t, "log likelihood", m.LogLikelihood(), want.Log, tol*math.Abs(want.Log))
		mean, err := m.Predict(context.Background(), dev, queries)
		if err != nil {
			t.Fatal(err)
		}
		variance, err := m.Variance(context.Background(), dev, queries)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Mean {
			checkClose(t, "mean", mean.At(i, 0), want.Mean[i], tol*10)
			checkClose(t, "variance", variance.At(i, 0), want.Std[i]*want.Std[i], tol*10)
		}

		if strings.HasPrefix(dev.Info().Device, "ref") {
			return // plain loops would take too long for hundreds of factorizations
		}
		// The search starts from other points than scikit-learn's, but must find the same maximum.
		k = kernels.Gaussian{Sigmas: []float64{1, 1, 1}}
		m, err = learners.GaussianProcess{Kernel: k, Lambda: 0.1, Restarts: 1}.Fit(context.Background(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("found %v, λ %v, scale %v, log likelihood %v in %v; scikit-learn: %v in %s", m.Kernel(), m.Lambda(), m.Scale(), m.LogLikelihood(), m.Facts(), want.Best, want.Kernel)
		if m.LogLikelihood() < want.Best-1e-3 { // a log likelihood lower by at most 1e-3 counts as equal
			t.Errorf("the likelihood found is %v, scikit-learn's %v", m.LogLikelihood(), want.Best)
		}
	})
}

// TestGaussianProcessFinds checks that the search enlarges the length scale of the third feature, which has no
// effect, and that about 95 % of new targets lie within two standard deviations of their means.
func TestGaussianProcessFinds(t *testing.T) {
	x, y := processData(3, 150)
	queries, truth := processData(4, 400)
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		reported := 0.0
		m, err := learners.GaussianProcess{Lambda: 0.1, ARD: true, Seed: 1}.Fit(context.Background(), dev, x, y, learners.Options{Progress: func(p solvers.Progress) {
			if p.Fraction < reported {
				t.Errorf("progress falls from %v to %v", reported, p.Fraction)
			}
			reported = p.Fraction
		}})
		if err != nil {
			t.Fatal(err)
		}
		sigmas := m.Kernel().(kernels.Gaussian).Sigmas
		second, err := learners.GaussianProcess{Lambda: 0.1, ARD: true, Seed: 1}.Fit(context.Background(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !kernels.Equal(m.Kernel(), second.Kernel()) || m.Lambda() != second.Lambda() {
			t.Errorf("found %v and %v, and again %v and %v", m.Kernel(), m.Lambda(), second.Kernel(), second.Lambda())
		}
		if noise := math.Sqrt(m.Lambda() * m.Scale()[0]); sigmas[2] < 5*sigmas[0] || math.Abs(noise-0.1) > 0.03 || reported != 1 {
			t.Errorf("length scales %v, deviation of the noise %v (true: 0.1), progress to %v", sigmas, noise, reported)
		}
		mean, err := m.Predict(context.Background(), dev, queries)
		if err != nil {
			t.Fatal(err)
		}
		variance, err := m.Variance(context.Background(), dev, queries)
		if err != nil {
			t.Fatal(err)
		}
		covered := 0
		for i := range 400 {
			if math.Abs(mean.At(i, 0)-truth.At(i, 0)) <= 2*math.Sqrt(variance.At(i, 0)) {
				covered++
			}
		}
		if covered < 400*88/100 { // 95 % are expected
			t.Errorf("%d of 400 targets are within two deviations", covered)
		}
	}, "ref") // plain loops would take too long for hundreds of factorizations
}

// TestGaussianProcessWeighsGroups searches for the weights and the length scales of kernels on groups of columns.
// The likelihood must be at least the largest that scipy finds for the same kernels of scikit-learn, and the group
// without effect must have the smallest weight.
func TestGaussianProcessWeighsGroups(t *testing.T) {
	x, y := processData(11, 80)
	var want struct{ Best float64 }
	scikit(t, map[string]any{"x0": mat.Col(nil, 0, x), "x1": mat.Col(nil, 1, x), "x2": mat.Col(nil, 2, x), "y": mat.Col(nil, 0, y)}, `
import numpy as np
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import RBF
y = np.asarray(a["y"]) - np.mean(a["y"])
groups = [np.reshape(a[name], (-1, 1)) for name in ("x0", "x1", "x2")]
def loss(p):
    K = sum(np.exp(p[i]) * RBF(np.exp(p[3 + i]))(g) for i, g in enumerate(groups)) + np.exp(p[6]) * np.eye(len(y))
    return 0.5 * (y @ np.linalg.solve(K, y) + np.linalg.slogdet(K)[1] + len(y) * np.log(2 * np.pi))
box = [(-12, 8)] * 3 + [(-3, 5)] * 3 + [(-10, 3)]
out["best"] = -min(minimize(loss, start, bounds=box, method="L-BFGS-B").fun for start in ([0] * 6 + [-3], [1, 1, -4, 0, 2, 0, -4]))
`, &want)
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		if strings.HasPrefix(dev.Info().Device, "ref") {
			return // plain loops would take too long for hundreds of factorizations
		}
		k, err := kernels.Parse("1*columns(0,gaussian(sigma=1)) + 1*columns(1,gaussian(sigma=1)) + 1*columns(2,gaussian(sigma=1))")
		if err != nil {
			t.Fatal(err)
		}
		m, err := learners.GaussianProcess{Kernel: k, Lambda: 0.1, Restarts: 2}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var weights []float64
		for _, term := range m.Kernel().(kernels.Sum) {
			weights = append(weights, term.(kernels.Scaled).Weight)
		}
		t.Logf("found %v, log likelihood %v; scipy: %v", m.Kernel(), m.LogLikelihood(), want.Best)
		if m.LogLikelihood() < want.Best-1e-3 { // a log likelihood lower by at most 1e-3 counts as equal
			t.Errorf("the likelihood found is %v, scipy's %v", m.LogLikelihood(), want.Best)
		}
		if !(weights[2] < 0.1*min(weights[0], weights[1])) {
			t.Errorf("the weights are %v", weights)
		}
	})
}

func TestGaussianProcessRefuses(t *testing.T) {
	x, y := processData(3, 30)
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		for _, c := range []struct {
			l    learners.GaussianProcess
			y    *mat.Dense
			want string
		}{
			{learners.GaussianProcess{}, y, "learners: gaussian-process: lambda must be a finite number > 0, got 0"},
			{learners.GaussianProcess{Lambda: 1, Restarts: -1}, y, "learners: gaussian-process: restarts must be an integer ≥ 0, got -1"},
			{learners.GaussianProcess{Lambda: 1, Kernel: kernels.Constant{}}, y, "learners: gaussian-process: the search needs a kernel with a finite mean of k(x, x) > 0; it is 0 for 0"},
		} {
			if _, err := c.l.Fit(context.Background(), dev, x, c.y, learners.Options{}); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		}
		m, err := learners.GaussianProcess{Lambda: 1, Fixed: true}.Fit(context.Background(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Variance(context.Background(), dev, mat.NewDense(2, 2, nil)); err == nil || err.Error() != "learners: gaussian-process: variance: x has 2 columns, but the model was fitted to 3 columns" {
			t.Error(err)
		}
		stop := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		evaluations := 0
		_, err = learners.GaussianProcess{Lambda: 1}.Fit(ctx, dev, x, y, learners.Options{Progress: func(p solvers.Progress) {
			if evaluations++; evaluations == 3 {
				cancel(stop)
			}
		}})
		if !errors.Is(err, stop) {
			t.Errorf("canceled: %v", err)
		}
	})
}

// TestGaussianProcessObeysTheRulesOfParameters checks that the search stays within the values of sigma that the
// kernel accepts, for a linear target, whose likelihood still increases at the largest sigma.
func TestGaussianProcessObeysTheRulesOfParameters(t *testing.T) {
	x, y := mat.NewDense(12, 1, nil), mat.NewDense(12, 1, nil)
	for i := range 12 {
		x.Set(i, 0, float64(i-6)*1e152)
		y.Set(i, 0, float64(i-6))
	}
	dev := backendtest.Device(t, "ref")
	start := kernels.Gaussian{Sigma: 5e152}
	m, err := learners.GaussianProcess{Kernel: start, Lambda: 1e-3}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := kernels.Params(m.Kernel())[0]
	t.Logf("%v, likelihood %v", m.Kernel(), m.LogLikelihood())
	if p.Value < 0.99*p.Max || p.Value > p.Max {
		t.Errorf("sigma is %v, want the largest allowed, %v", p.Value, p.Max)
	}
}
