package solvers_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// noiseless is a linear problem without noise, y = Xw + 3, as in scikit-learn's make_regression.
func noiseless(t *testing.T, n, d int) (p solvers.Problem, w []float64) {
	rng := pathRandom(t)
	p = solvers.Problem{Kernel: kernels.Linear{}, X: normals(rng, n, d), Y: backend.NewHost[float64](n, 1), Intercept: true}
	w = make([]float64, d)
	for j := range w {
		if j < 10 {
			w[j] = 100 * rng.Float64()
		}
	}
	for i := range n {
		p.Y.Data[i] = 3
		for j, v := range p.X.Row(i) {
			p.Y.Data[i] += v * w[j]
		}
	}
	return p, w
}

// TestPathTinyLambda uses the data of scikit-learn's issue 32459: 100 samples, 50 features, no noise, alphas of 1e-15
// and 1e-14. The relative error of the coefficients must be near the condition number of XᵀX times the unit roundoff,
// about 1e-13. Relative to y, the leave-one-out errors must be as small.
func TestPathTinyLambda(t *testing.T) {
	p, w := noiseless(t, 100, 50)
	for _, large := range []bool{false, true} {
		if large { // large weights, as in scikit-learn's issue 26848
			p.Weights = make([]float64, p.X.Rows)
			for i := range p.Weights {
				p.Weights[i] = 1e10
			}
		}
		for _, method := range []solvers.Method{"", solvers.Primal} {
			points, err := solvers.SolvePath(context.Background(), backendtest.Device(t, "cpu"), p, []float64{0, 1e-15, 1e-14}, solvers.PathParams{Method: method, LeaveOneOut: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, point := range points {
				if point.Err != nil {
					t.Fatal(point.Err)
				}
				for j, v := range w {
					if got := point.Coef.Row(j)[0]; !(math.Abs(got-v) <= 1e-10*100) {
						t.Errorf("λ=%g: coefficient %d is %v, want %v", point.Lambda, j+1, got, v)
					}
				}
				if math.Abs(point.Intercept[0]-3) > 1e-8 || !(point.LOO[0] < 1e-18*1e4) || math.Abs(point.DegreesOfFreedom-51) > 1e-9 {
					t.Errorf("λ=%g: intercept %v, LOO %g, freedom %v; want 3, 0 and 51", point.Lambda, point.Intercept, point.LOO, point.DegreesOfFreedom)
				}
			}
		}
	}
}

// TestPathTinyLambdaWide compares leave-one-out errors with separate fits, for more features than samples and an
// intercept, where the matrix of centered samples is singular for λ = 0.
func TestPathTinyLambdaWide(t *testing.T) {
	p, _ := noiseless(t, 20, 50)
	for _, method := range []solvers.Method{solvers.Band, solvers.Dual} {
		points, err := solvers.SolvePath(context.Background(), backendtest.Device(t, "cpu"), p, []float64{1e-13, 1e-15}, solvers.PathParams{Method: method, LeaveOneOut: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, point := range points {
			if point.Err != nil {
				t.Fatal(point.Err)
			}
			for i := range p.X.Rows {
				// With an intercept, a constant in the kernel makes the direct solver's system nonsingular, but
				// does not change the fit.
				q := p
				q.Kernel = kernels.Sum{p.Kernel, kernels.Constant{Value: 50}}
				want := leftOut(t, q, i, point.Lambda)
				if got := point.Errors.Row(i)[0]; !(math.Abs(got-want) <= 1e-9*(math.Abs(want)+100)) {
					t.Errorf("%s λ=%g: error %d is %v, want %v", method, point.Lambda, i+1, got, want)
				}
			}
		}
	}
}

// leftOut returns the error at sample i of a fit without sample i.
func leftOut(t *testing.T, p solvers.Problem, i int, lambda float64) float64 {
	t.Helper()
	weights := make([]float64, p.X.Rows)
	for j := range weights {
		weights[j] = 1
		if p.Weights != nil {
			weights[j] = p.Weights[j]
		}
	}
	weights[i] = 0
	q := p
	q.Weights, q.Lambda = weights, lambda
	r, err := solvers.Solve(context.Background(), backendtest.Device(t, "cpu"), q, solvers.Params{Method: solvers.Dual})
	if err != nil {
		t.Fatal(err)
	}
	f := r.Intercept[0]
	for j := range p.X.Rows {
		f += r.Alpha.Row(j)[0] * kernels.Eval(p.Kernel, p.X.Row(j), p.X.Row(i))
	}
	return p.Y.Row(i)[0] - f
}

// TestPathLeavesOut compares leave-one-out errors with errors of separate fits by a direct solver.
func TestPathLeavesOut(t *testing.T) {
	rng := pathRandom(t)
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 1.5}, X: normals(rng, 80, 3), Y: normals(rng, 80, 1), Intercept: true, Weights: make([]float64, 80)}
	for i := range p.Weights {
		p.Weights[i] = 0.5 + rng.Float64()
	}
	lambdas := solvers.Lambdas(0.01, 10, 7)
	points, err := solvers.SolvePath(context.Background(), backendtest.Device(t, "cpu"), p, lambdas, solvers.PathParams{LeaveOneOut: true})
	if err != nil {
		t.Fatal(err)
	}
	for k, point := range points {
		for i := 0; i < 80; i += 11 {
			// The tolerance is the condition number n/λ times about √n rounding errors times a margin of 100.
			tol := 100 * 0x1p-52 * 80 / lambdas[k] * 10
			if want := leftOut(t, p, i, point.Lambda); math.Abs(point.Errors.Row(i)[0]-want) > tol {
				t.Errorf("λ=%g: error %d is %v, want %v ± %.1g", point.Lambda, i+1, point.Errors.Row(i)[0], want, tol)
			}
		}
	}
}

// TestPathHopelessLambda checks that a λ that is too small gives an error only in its own point.
func TestPathHopelessLambda(t *testing.T) {
	rng := pathRandom(t)
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 30}, X: normals(rng, 150, 2), Y: normals(rng, 150, 1)}
	valid := []float64{0.1, 1}
	for _, method := range []solvers.Method{solvers.Band, solvers.Dual} {
		for _, loo := range []bool{false, true} {
			par := solvers.PathParams{Method: method, LeaveOneOut: loo}
			mixed, err := solvers.SolvePath(context.Background(), backendtest.Device(t, "cpu"), p, []float64{1e-25, 0.1, 0, 1}, par)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range []int{0, 2} {
				point := mixed[i]
				if !errors.Is(point.Err, backend.ErrNotPosDef) || !strings.Contains(point.Err.Error(), "raise lambda") || point.GCV != nil || point.Alpha.Data != nil || !math.IsNaN(point.Score()) {
					t.Errorf("λ=%g: %+v", point.Lambda, point)
				}
			}
			single, err := solvers.SolvePath(context.Background(), backendtest.Device(t, "cpu"), p, valid, par)
			if err != nil {
				t.Fatal(err)
			}
			for i, point := range single {
				// The two paths have groups of different sizes, which changes the rounding errors of products.
				if got := mixed[2*i+1]; math.Abs(got.GCV[0]-point.GCV[0]) > 1e-9*point.GCV[0] {
					t.Errorf("λ=%g: GCV %v beside hopeless ones, %v alone", point.Lambda, got.GCV[0], point.GCV[0])
				}
			}
		}
	}
}

// TestPathWorkersAndMemory checks that the number of workers does not change a bit of the result, that the memory in
// use is near the planned memory, and that Close frees it.
func TestPathWorkersAndMemory(t *testing.T) {
	rng := pathRandom(t)
	for _, c := range []struct {
		k      kernels.Kernel
		n, d   int
		method solvers.Method
	}{{kernels.Gaussian{Sigma: 2}, 300, 5, solvers.Band}, {kernels.Linear{}, 500, 90, solvers.Primal}, {kernels.Matern{Nu: 1.5, Sigma: 2}, 200, 3, solvers.Dual}} {
		p := solvers.Problem{Kernel: c.k, X: normals(rng, c.n, c.d), Y: normals(rng, c.n, 2), Intercept: true}
		for _, loo := range []bool{false, true} {
			var first []solvers.PathPoint
			for _, threads := range []int{1, 3} {
				dev, err := backend.Open("cpu", backend.Config{Threads: threads})
				if err != nil {
					t.Fatal(err)
				}
				par := solvers.PathParams{Method: c.method, LeaveOneOut: loo, Lambdas: 10}
				path, err := solvers.NewPath(context.Background(), dev, p, par)
				if err != nil {
					t.Fatal(err)
				}
				points, err := path.At(context.Background(), solvers.Lambdas(0.01, 10, 10))
				if err != nil {
					t.Fatal(err)
				}
				if got, plan := path.Bytes(), path.PlannedBytes(); got > plan || float64(got) < 0.9*float64(plan) {
					t.Errorf("%s loo=%v: took %d bytes, planned %d", c.method, loo, got, plan)
				}
				path.Close()
				if now, _ := dev.InUse(); now != 0 {
					t.Errorf("%s: %d bytes are left", c.method, now)
				}
				if first == nil {
					first = points
				}
				for i, point := range points {
					if point.Score() != first[i].Score() || point.Residual != first[i].Residual || point.DegreesOfFreedom != first[i].DegreesOfFreedom {
						t.Errorf("%s λ=%g: %d workers give other bits", c.method, point.Lambda, threads)
					}
				}
				dev.Close()
			}
		}
	}
}

func TestPathRefuses(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	rng := pathRandom(t)
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 2}, X: normals(rng, 50, 2), Y: normals(rng, 50, 1)}
	nan := p
	nan.Y = normals(rng, 50, 1)
	nan.Y.Row(6)[0] = math.NaN()
	for _, c := range []struct {
		p       solvers.Problem
		lambdas []float64
		par     solvers.PathParams
		want    string
	}{
		{p, []float64{1, -1}, solvers.PathParams{}, "lambda 2 must be a finite number ≥ 0, got -1"},
		{p, []float64{1}, solvers.PathParams{Method: "fast"}, `no method is called "fast"`},
		{p, []float64{1}, solvers.PathParams{Method: solvers.Primal}, "needs the kernel linear()"},
		{p, []float64{1}, solvers.PathParams{Memory: 1000}, "1000 B may be used"},
		{nan, []float64{1}, solvers.PathParams{}, "y: row 7, column 1 is NaN"},
		{solvers.Problem{}, nil, solvers.PathParams{}, "the kernel is missing"},
	} {
		if _, err := solvers.SolvePath(context.Background(), dev, c.p, c.lambdas, c.par); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if now, _ := dev.InUse(); now != 0 {
		t.Errorf("%d bytes are left", now)
	}
}

// TestPathCancel checks that a path stops soon after its context is done.
func TestPathCancel(t *testing.T) {
	rng := pathRandom(t)
	dev := backendtest.Device(t, "cpu")
	n := 1500
	if testing.Short() {
		n = 600
	}
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 2}, X: normals(rng, n, 4), Y: normals(rng, n, 1)}
	stop := errors.New("enough")
	for _, fraction := range []float64{0.05, 0.5} {
		ctx, cancel := context.WithCancelCause(context.Background())
		var canceledAt time.Time
		_, err := solvers.SolvePath(ctx, dev, p, solvers.Lambdas(0.1, 1, 40), solvers.PathParams{LeaveOneOut: true, Progress: func(q solvers.Progress) {
			if canceledAt.IsZero() && q.Fraction >= fraction {
				canceledAt = time.Now()
				cancel(stop)
			}
		}})
		if !errors.Is(err, stop) {
			t.Errorf("at %v: %v", fraction, err)
		}
		t.Logf("stopped %v after the call at %v", time.Since(canceledAt), fraction)
		if now, _ := dev.InUse(); now != 0 {
			t.Errorf("at %v: %d bytes are left", fraction, now)
		}
		cancel(nil)
	}
}
