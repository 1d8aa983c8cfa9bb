package solvers_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// column returns one column of h.
func column(h backend.Host[float64], j int) backend.Host[float64] {
	c := backend.NewHost[float64](h.Rows, 1)
	for i := range h.Rows {
		c.Data[i] = h.Row(i)[j]
	}
	return c
}

// TestSolveEach compares the solution of each output with a separate Solve for that output.
func TestSolveEach(t *testing.T) {
	rng := pathRandom(t)
	for _, name := range pathDevices {
		dev := backendtest.Device(t, name)
		for _, test := range []struct {
			name    string
			p       solvers.Problem
			lambdas []float64
			par     solvers.Params
			method  string
		}{
			{"two of three", solvers.Problem{Kernel: kernels.Gaussian{Sigma: 2}}, []float64{0.1, 3, 0.1}, solvers.Params{}, "dual"},
			{"all the same", solvers.Problem{Kernel: kernels.Gaussian{Sigma: 2}}, []float64{0.1, 0.1}, solvers.Params{}, "dual"},
			{"intercept and weights", solvers.Problem{Kernel: kernels.Matern{Nu: 1.5, Sigma: 2}, Intercept: true, Weights: weighted(60)}, []float64{1, 2, 3}, solvers.Params{Method: solvers.Dual}, "dual"},
			{"many", solvers.Problem{Kernel: kernels.Gaussian{Sigma: 2}, Intercept: true}, []float64{0.01, 0.1, 1, 10, 100}, solvers.Params{}, "dual"},
			{"linear", solvers.Problem{Kernel: kernels.Linear{}, Intercept: true}, []float64{0, 1, 20}, solvers.Params{}, "primal"},
			{"iterative", solvers.Problem{Kernel: kernels.Gaussian{Sigma: 2}}, []float64{0.5, 3}, solvers.Params{Method: solvers.CG, Tol: 1e-12}, "cg"},
		} {
			p, n := test.p, 60
			p.X, p.Y = normals(rng, n, 3), normals(rng, n, len(test.lambdas))
			reported := 0.0
			test.par.Progress = func(q solvers.Progress) {
				if q.Fraction < reported {
					t.Errorf("%s: progress falls from %v to %v", test.name, reported, q.Fraction)
				}
				reported = q.Fraction
			}
			got, err := solvers.SolveEach(context.Background(), dev, p, test.lambdas, test.par)
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			if reported != 1 || string(got.Method) != test.method || !(got.Residual <= 1e-11) || got.Plan.Bytes <= 0 || got.Bytes > got.Plan.Bytes {
				t.Errorf("%s %s: progress to %v, method %s, residual %g, plan %d, bytes %d", name, test.name, reported, got.Method, got.Residual, got.Plan.Bytes, got.Bytes)
			}
			for j, lambda := range test.lambdas {
				one := p
				one.Y, one.Lambda = column(p.Y, j), lambda
				want, err := solvers.Solve(context.Background(), dev, one, solvers.Params{Tol: 1e-11})
				if err != nil {
					t.Fatal(err)
				}
				// Both residuals are below 1e-11·‖y‖. The eigenvalues are above 0.01, and about λ/2 or more.
				tol := 1e-11 * math.Sqrt(float64(n)) * 4 / math.Max(lambda/2, 1e-2)
				for _, part := range [][2]backend.Host[float64]{{got.Alpha, want.Alpha}, {got.Coef, want.Coef}} {
					if part[1].Rows == 0 || part[0].Rows == 0 {
						continue
					}
					for i := range part[1].Rows {
						if d := math.Abs(part[0].Row(i)[j] - part[1].Row(i)[0]); !(d <= tol) {
							t.Fatalf("%s %s: output %d, row %d: differs by %g, allowed %g", name, test.name, j, i, d, tol)
						}
					}
				}
				if d := math.Abs(got.Intercept[j] - want.Intercept[0]); !(d <= tol) {
					t.Errorf("%s %s: intercept %d differs by %g", name, test.name, j, d)
				}
			}
			if now, _ := dev.InUse(); now != 0 {
				t.Errorf("%s: %d bytes are left", test.name, now)
			}
		}
	}
}

// weighted returns n weights, one of which is 0.
func weighted(n int) []float64 {
	w := constant(n, 1)
	for i := range w {
		w[i] = 0.5 + float64(i%3)
	}
	w[n/2] = 0
	return w
}

func TestSolveEachRefuses(t *testing.T) {
	rng, dev := pathRandom(t), backendtest.Device(t, "cpu")
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 2}, X: normals(rng, 50, 2), Y: normals(rng, 50, 2)}
	for _, c := range []struct {
		lambdas []float64
		par     solvers.Params
		want    string
	}{
		{[]float64{1}, solvers.Params{}, "solvers: y has 2 columns, but lambda has 1 value: each column needs one value"},
		{[]float64{1, -1}, solvers.Params{}, "solvers: lambda of column 2 must be a finite number ≥ 0, got -1"},
		{[]float64{1, math.NaN()}, solvers.Params{}, "solvers: lambda of column 2 must be a finite number ≥ 0, got NaN"},
		{[]float64{1, 2}, solvers.Params{Checkpoint: solvers.Checkpoint{Dir: t.TempDir()}}, "solvers: a checkpoint holds the state of one lambda: give all outputs the same lambda, or no checkpoint"},
		{[]float64{1, 2}, solvers.Params{Method: "nothing"}, "no method is called"},
		{[]float64{1, 2}, solvers.Params{Memory: 100}, "(lambda 1)"},
	} {
		_, err := solvers.SolveEach(context.Background(), dev, p, c.lambdas, c.par)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	var pivot *backend.PivotError
	p.Kernel = kernels.Gaussian{Sigma: 1e4}
	if _, err := solvers.SolveEach(context.Background(), dev, p, []float64{1, 1e-20}, solvers.Params{Method: solvers.Dual}); !errors.As(err, &pivot) || !strings.Contains(err.Error(), "(lambda 1e-20)") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, m := range []solvers.Method{solvers.Auto, solvers.Dual} {
		if _, err := solvers.SolveEach(ctx, dev, p, []float64{1, 2}, solvers.Params{Method: m}); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
	}
}
