package solvers_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
)

// markovian are kernels of each kind that Kalman accepts.
var markovian = []kernels.Kernel{
	kernels.Matern{Nu: 2.5, Sigma: 2},
	kernels.Sum{kernels.Scaled{Weight: 2, Kernel: kernels.Matern{Nu: 1.5, Sigma: 0.3}}, kernels.Constant{Value: 0.5}, kernels.Product{kernels.Constant{Value: 0.5}, kernels.Laplacian{Sigma: 3}}},
	kernels.Matern{Nu: 0.5, Sigma: 0.4},
	kernels.Matern{Nu: 1.5, Sigma: 2},
}

func TestKalman(t *testing.T) {
	solvertest.Run(t, solvertest.Suite{Method: solvers.Kalman, Features: 1, Kernels: markovian})
}

// withZeros returns x with a second feature that is always 0. Solve then stores K, because Kalman needs one feature.
func withZeros(x backend.Host[float64]) backend.Host[float64] {
	padded := backend.NewHost[float64](x.Rows, 2)
	for i := range x.Rows {
		padded.Row(i)[0] = x.Row(i)[0]
	}
	return padded
}

// series returns n samples of one feature in random order, some of them equal and some of weight 0.
func series(k kernels.Kernel, n int) solvers.Problem {
	r := rand.New(rand.NewPCG(7, 0))
	p := solvers.Problem{Kernel: k, X: backend.NewHost[float64](n, 1), Y: backend.NewHost[float64](n, 2), Weights: make([]float64, n), Lambda: 0.01}
	for i := range n {
		x := 20 * r.Float64()
		if i%50 == 1 {
			x = p.X.Data[i-1]
		}
		p.X.Data[i] = x
		p.Y.Row(i)[0], p.Y.Row(i)[1] = math.Sin(x)+0.1*r.NormFloat64(), math.Cos(3*x)+x
		p.Weights[i] = float64(i%7) / 2
	}
	return p
}

// TestKalmanMatchesStored compares a Kalman filter with a stored factor for the samples of withZeros.
func TestKalmanMatchesStored(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n = 1500 // enough samples for Auto to choose a filter
	near := func(name string, got, want, scale float64) {
		t.Helper()
		// The condition number of K + λW⁻¹ is at most n·k(0)/λ = 10⁶, or 3·10⁶ for the weights up to 3.
		if d := math.Abs(got - want); !(d <= 3e6*n*0x1p-52*scale) {
			t.Errorf("%s: got %v, want %v: difference %.3g", name, got, want, d)
		}
	}
	for _, k := range required.Subset(2, markovian) {
		t.Run(k.String(), func(t *testing.T) {
			p := series(k, n)
			wide := p
			wide.X = withZeros(p.X)
			for _, scale := range []bool{false, true} {
				par := solvers.EvidenceParams{FitScale: scale, Gradient: true}
				got, err := solvers.LogEvidence(t.Context(), dev, p, par)
				if err != nil {
					t.Fatal(err)
				}
				want, err := solvers.LogEvidence(t.Context(), dev, wide, par)
				if err != nil {
					t.Fatal(err)
				}
				size := math.Abs(want.Log) + n
				near("log evidence", got.Log, want.Log, size)
				for i := range want.Gradient {
					near(fmt.Sprintf("gradient %d", i), got.Gradient[i], want.Gradient[i], size)
				}
				for j := range want.Scale {
					near("scale", got.Scale[j], want.Scale[j], want.Scale[j])
				}
			}
			z := backend.NewHost[float64](40, 1)
			for i := range z.Rows {
				z.Data[i] = float64(i) - 10
			}
			z.Data[0], z.Data[1] = p.X.Data[3], p.X.Data[1] // samples
			u, err := solvers.NewUncertainty(t.Context(), dev, p, 0)
			if err != nil {
				t.Fatal(err)
			}
			v, err := solvers.NewUncertainty(t.Context(), dev, wide, 0)
			if err != nil {
				t.Fatal(err)
			}
			got, err := u.Variance(t.Context(), dev, z, 0)
			if err != nil {
				t.Fatal(err)
			}
			want, err := v.Variance(t.Context(), dev, withZeros(z), 0)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				near(fmt.Sprintf("variance at %v", z.Data[i]), got[i], want[i], kernels.Diag(k, []float64{0}))
			}
			rows := 0
			for _, w := range p.Weights {
				if w > 0 {
					rows++
				}
			}
			a, b := backend.NewHost[float64](rows, 1), backend.NewHost[float64](rows, 1)
			for i := range a.Data {
				a.Data[i], b.Data[i] = math.Sin(float64(i)), math.Sin(float64(i))
			}
			if err := u.Solve(t.Context(), dev, a, 0); err != nil {
				t.Fatal(err)
			}
			if err := v.Solve(t.Context(), dev, b, 0); err != nil {
				t.Fatal(err)
			}
			for i := range b.Data {
				near("solution", a.Data[i], b.Data[i], 3/p.Lambda)
			}
			for _, intercept := range []bool{false, true} {
				p.Intercept, wide.Intercept = intercept, intercept
				compareFits(t, dev, p, wide)
				compareLeaveOneOut(t, dev, p, wide, near)
				comparePaths(t, dev, p, wide, near)
			}
		})
	}
}

// compareFits compares two solutions of the same problem: by a Kalman filter for p, and by a Cholesky factor for wide.
// A residual r of at most 3e-12‖y‖ changes the fitted values y − λW⁻¹α by at most √(max w/min w)‖r‖ ≤ 3‖r‖, and by 9‖r‖
// with an intercept.
func compareFits(t *testing.T, dev backend.Device, p, wide solvers.Problem) {
	t.Helper()
	const tol = 3e-12
	a, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.Kalman, Tol: tol})
	if err != nil {
		t.Fatal(err)
	}
	b, err := solvers.Solve(t.Context(), dev, wide, solvers.Params{Method: solvers.Dual, Tol: tol})
	if err != nil {
		t.Fatal(err)
	}
	for j := range p.Y.Cols {
		size, diff := 0.0, 0.0
		for i, w := range p.Weights {
			size = math.Hypot(size, p.Y.Row(i)[j])
			if w > 0 {
				diff = math.Hypot(diff, p.Lambda/w*(a.Alpha.Row(i)[j]-b.Alpha.Row(i)[j]))
			}
		}
		if !(diff <= 1e-10*size) {
			t.Errorf("output %d: the functions at the samples differ by %.3g of ‖y‖, want 1e-10", j, diff/size)
		}
	}
}

// compareLeaveOneOut compares errors and influences by a filter for p with those by a stored factor for wide.
func compareLeaveOneOut(t *testing.T, dev backend.Device, p, wide solvers.Problem, near func(name string, got, want, scale float64)) {
	t.Helper()
	rows := 0
	for _, w := range p.Weights {
		if w > 0 {
			rows++
		}
	}
	alpha := backend.NewHost[float64](rows, 1)
	for i := range alpha.Data {
		alpha.Data[i] = math.Cos(float64(i))
	}
	var errs, influence [2]backend.Host[float64]
	for k, q := range []solvers.Problem{p, wide} {
		l, err := solvers.NewLeaveOneOut(t.Context(), dev, q, 0)
		if err != nil {
			t.Fatal(err)
		}
		if errs[k], err = l.Errors(alpha); err != nil {
			t.Fatal(err)
		}
		z := backend.NewHost[float64](3, q.X.Cols)
		z.Row(0)[0], z.Row(1)[0], z.Row(2)[0] = -1, p.X.Data[7], 30
		influence[k] = backend.NewHost[float64](rows, 3)
		err = l.Influence(t.Context(), dev, z, 0, func(first int, b backend.Host[float64]) error {
			for i := range b.Rows {
				copy(influence[k].Row(i)[first:], b.Row(i))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range rows {
		near("leave-one-out error", errs[0].Row(i)[0], errs[1].Row(i)[0], math.Abs(errs[1].Row(i)[0]))
		for j := range 3 {
			near("influence", influence[0].Row(i)[j], influence[1].Row(i)[j], 1)
		}
	}
}

// comparePaths compares the path that filters compute for p with the path that stored factors compute for wide.
func comparePaths(t *testing.T, dev backend.Device, p, wide solvers.Problem, near func(name string, got, want, scale float64)) {
	t.Helper()
	lambdas := []float64{0.01, 0.1, 10}
	path, err := solvers.NewPath(t.Context(), dev, p, solvers.PathParams{Lambdas: 3, LeaveOneOut: true})
	if err != nil {
		t.Fatal(err)
	}
	defer path.Close()
	if path.Method != solvers.Kalman || !strings.Contains(path.Reason, "O(n)") {
		t.Errorf("the method of the path is %s: %s", path.Method, path.Reason)
	}
	got, err := path.At(t.Context(), lambdas)
	if err != nil {
		t.Fatal(err)
	}
	want, err := solvers.SolvePath(t.Context(), dev, wide, lambdas, solvers.PathParams{Method: solvers.Dual, LeaveOneOut: true})
	if err != nil {
		t.Fatal(err)
	}
	for l, w := range want {
		g := got[l]
		if g.Err != nil || w.Err != nil {
			t.Fatal(g.Err, w.Err)
		}
		n := float64(p.X.Rows)
		near("freedom", g.DegreesOfFreedom, w.DegreesOfFreedom, n)
		if !p.Intercept {
			near("evidence", g.Evidence, w.Evidence, math.Abs(w.Evidence)+n)
		}
		if !(g.Residual <= 1e-8) {
			t.Errorf("residual %g", g.Residual)
		}
		for j := range p.Y.Cols {
			near("GCV", g.GCV[j], w.GCV[j], w.GCV[j])
			near("LOO", g.LOO[j], w.LOO[j], w.LOO[j])
			near("intercept", g.Intercept[j], w.Intercept[j], 20)
			for i := range p.X.Rows {
				near("alpha", g.Alpha.Row(i)[j], w.Alpha.Row(i)[j], 60/w.Lambda) // |y| ≤ 20 and weights ≤ 3 bound α by 60/λ
				near("error", g.Errors.Row(i)[j], w.Errors.Row(i)[j], 20)
			}
		}
	}
}

// TestKalmanMatchesScikitLearn compares the results with values that scikit-learn 1.2.1 computes
// with its GaussianProcessRegressor:
//
//	n = 1200
//	i = np.arange(n)
//	x = (20 * (i * 0.6180339887498949 % 1))[:, None]
//	x[7::100] = x[3::100]
//	y = np.sin(x[:, 0]) + 0.1 * np.cos(7.0 * i)
//	z = np.array([[-1.0], [10.0], [x[3, 0]], [25.0]])
//	for nu in [0.5, 1.5, 2.5]:
//	    gp = GP(Matern(0.7, nu=nu) + WhiteKernel(0.05), alpha=0, optimizer=None).fit(x, y)
//	    lml, grad = gp.log_marginal_likelihood(gp.kernel_.theta, eval_gradient=True)
//	    mean, std = GP(Matern(0.7, nu=nu), alpha=0.05, optimizer=None).fit(x, y).predict(z, return_std=True)
//	    inverse = np.linalg.inv(gp.kernel_(x))
//	    loo = inverse @ y / inverse.diagonal()
//	    print(nu, lml, grad, mean, std**2, (loo**2).mean(), loo[[0, 7, 1199]])
func TestKalmanMatchesScikitLearn(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n, lambda = 1200, 0.05
	p := solvers.Problem{X: backend.NewHost[float64](n, 1), Y: backend.NewHost[float64](n, 1), Lambda: lambda}
	for i := range n {
		p.X.Data[i] = 20 * math.Mod(float64(i)*0.6180339887498949, 1)
	}
	for i := 7; i < n; i += 100 {
		p.X.Data[i] = p.X.Data[i-4]
	}
	for i, x := range p.X.Data {
		p.Y.Data[i] = math.Sin(x) + 0.1*math.Cos(7*float64(i))
	}
	z := backend.NewHost[float64](4, 1)
	copy(z.Data, []float64{-1, 10, p.X.Data[3], 25})
	for _, want := range []struct {
		nu, log                  float64
		gradient, mean, variance []float64
		loo                      float64
		errors                   []float64 // leave-one-out errors of rows 0, 7 and 1199
	}{
		{0.5, 103.12068111278609, []float64{233.93614498066256, -311.8773173946726}, []float64{0.0102797373232624, -0.5349092323525411, -0.9657136794971057, 0.0006829586962888723}, []float64{0.9442642970203362, 0.030431986655629965, 0.014034892958205591, 0.9999994090751243}, 0.007663596747322637, []float64{0.1395961202961742, 0.020937024418193742, 0.0001155293590959465}},
		{1.5, 443.7759219479492, []float64{128.20847249946678, -483.0800132926142}, []float64{-0.05042164702431823, -0.539337990916192, -0.9794184685190501, 4.96050305138852e-05}, []float64{0.9013223571606351, 0.0048218919594964485, 0.0042821243480462, 0.9999999960116139}, 0.006047089509031828, []float64{0.11057543587311258, 0.031459068360565334, 0.022501942793683838}},
		{2.5, 488.59633803213114, []float64{104.81619289663634, -503.48495560022843}, []float64{-0.08144625178798534, -0.5400118024361591, -0.9817213807941645, 1.1293146209523995e-05}, []float64{0.8675467309352579, 0.0030603891992104777, 0.002811237415675349, 0.9999999997588058}, 0.005659151118813934, []float64{0.1002222805515029, 0.03291858705585625, 0.02349061025116758}},
	} {
		t.Run(fmt.Sprint(want.nu), func(t *testing.T) {
			near := func(name string, got, want, scale float64) {
				t.Helper()
				// The condition number is at most n/λ. The factor 2 is for the rounding errors of the reference values.
				if d := math.Abs(got - want); !(d <= 2*n/lambda*n*0x1p-52*scale) {
					t.Errorf("%s: got %v, want %v: difference %.3g", name, got, want, d)
				}
			}
			p.Kernel = kernels.Matern{Nu: want.nu, Sigma: 0.7}
			e, err := solvers.LogEvidence(t.Context(), dev, p, solvers.EvidenceParams{Gradient: true})
			if err != nil {
				t.Fatal(err)
			}
			near("log evidence", e.Log, want.log, n)
			near("∂ ln σ", e.Gradient[0], want.gradient[0], n)
			near("∂ ln λ", e.Gradient[1], want.gradient[1], n)
			u, err := solvers.NewUncertainty(t.Context(), dev, p, 0)
			if err != nil {
				t.Fatal(err)
			}
			variance, err := u.Variance(t.Context(), dev, z, 0)
			if err != nil {
				t.Fatal(err)
			}
			path, err := solvers.NewPath(t.Context(), dev, p, solvers.PathParams{LeaveOneOut: true})
			if err != nil {
				t.Fatal(err)
			}
			defer path.Close()
			points, err := path.At(t.Context(), []float64{lambda})
			if err != nil || path.Method != solvers.Kalman {
				t.Fatal(err, path.Method)
			}
			point := points[0]
			near("LOO", point.LOO[0], want.loo, want.loo)
			for k, i := range []int{0, 7, 1199} {
				near("error", point.Errors.Data[i], want.errors[k], 1)
			}
			for i, v := range variance {
				near("variance", v, want.variance[i], 1)
				mean := 0.0
				for q, a := range point.Alpha.Data {
					mean += a * kernels.Eval(p.Kernel, z.Row(i), p.X.Row(q))
				}
				near("mean", mean, want.mean[i], 1)
			}
		})
	}
}

// TestKalmanExtremes compares Solve and a path with closed forms. Equal points have K = 11ᵀ and the fit Σ w_i
// y_i/(λ + Σ w_i), also without sample i. Distant points have K = I.
func TestKalmanExtremes(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const lambda = 0.5
	y, weights := []float64{3, -1, 0.25, 2}, []float64{2, 1, 0.5, 3}
	for name, x := range map[string][]float64{
		"one sample":   {1.5},
		"equal":        {-7, -7, -7, -7},
		"equal, large": {1e150, 1e150, 1e150, 1e150},
		"far apart":    {1e150, -1e150, 0, 1e100},
	} {
		for _, k := range markovian[2:] { // kernels with k(0) = 1
			t.Run(fmt.Sprintf("%s, %v", name, k), func(t *testing.T) {
				n := len(x)
				p := solvers.Problem{
					Kernel: k, X: backend.Host[float64]{Rows: n, Cols: 1, Stride: 1, Data: x},
					Y: backend.Host[float64]{Rows: n, Cols: 1, Stride: 1, Data: y[:n]}, Weights: weights[:n], Lambda: lambda,
				}
				fit, left := make([]float64, n), make([]float64, n)
				for i := range n {
					if name == "far apart" {
						fit[i], left[i] = y[i]*weights[i]/(weights[i]+lambda), y[i]
						continue
					}
					var sum, total float64
					for j := range n {
						sum, total = sum+weights[j]*y[j], total+weights[j]
					}
					fit[i] = sum / (lambda + total)
					left[i] = y[i] - (sum-weights[i]*y[i])/(lambda+total-weights[i])
				}
				res, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.Kalman, Tol: 1e-14})
				if err != nil {
					t.Fatal(err)
				}
				points, err := solvers.SolvePath(t.Context(), dev, p, []float64{lambda}, solvers.PathParams{Method: solvers.Kalman, LeaveOneOut: true})
				if err != nil || points[0].Err != nil {
					t.Fatal(err, points[0].Err)
				}
				// With weights from 0.5 to 3 and ‖K‖ ≤ 4, the condition number is at most 30. The computation has fewer
				// than 64 roundings.
				const tol = 30 * 64 * 0x1p-53 * 3
				for i := range n {
					alpha := (y[i] - fit[i]) * weights[i] / lambda
					for _, got := range []float64{res.Alpha.Data[i], points[0].Alpha.Data[i]} {
						if !(math.Abs(got-alpha) <= tol*3/lambda) {
							t.Errorf("α of row %d is %v, want %v", i, got, alpha)
						}
					}
					if got := points[0].Errors.Data[i]; !(math.Abs(got-left[i]) <= tol*3) {
						t.Errorf("error of row %d is %v, want %v", i, got, left[i])
					}
				}
			})
		}
	}
}

// TestKalmanPathRefuses checks the errors of a path by Kalman filters.
func TestKalmanPathRefuses(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	p := series(markovian[3], 60)
	wide := p
	wide.X = withZeros(p.X)
	gauss := p
	gauss.Kernel = kernels.Gaussian{Sigma: 1}
	for _, q := range []solvers.Problem{wide, gauss} {
		_, err := solvers.SolvePath(t.Context(), dev, q, []float64{1}, solvers.PathParams{Method: solvers.Kalman})
		if err == nil || !strings.Contains(err.Error(), "kalman needs one feature and a kernel such as") {
			t.Errorf("got %v", err)
		}
	}
	// Equal points make the system singular for λ = 0, but not for λ = 1.
	points, err := solvers.SolvePath(t.Context(), dev, p, []float64{0, 1}, solvers.PathParams{Method: solvers.Kalman})
	if err != nil {
		t.Fatal(err)
	}
	if point := points[0]; point.Err == nil || !errors.Is(point.Err, backend.ErrNotPosDef) || point.Alpha.Data != nil {
		t.Errorf("λ = 0: %+v", point)
	}
	if points[1].Err != nil {
		t.Error(points[1].Err)
	}
	if _, err := solvers.SolvePath(t.Context(), dev, p, []float64{1}, solvers.PathParams{Method: solvers.Kalman, Memory: 1000}); !errors.As(err, new(*solvers.BudgetError)) {
		t.Errorf("not refused as too large: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := solvers.SolvePath(ctx, dev, p, []float64{1}, solvers.PathParams{Method: solvers.Kalman}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
