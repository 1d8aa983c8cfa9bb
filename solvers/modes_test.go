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
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
)

// field returns n samples of d features in a box, with two smooth targets and noise.
func field(k kernels.Kernel, n, d int, lambda float64) solvers.Problem {
	r := rand.New(rand.NewPCG(7, 0))
	p := solvers.Problem{Kernel: k, X: backend.NewHost[float64](n, d), Y: backend.NewHost[float64](n, 2), Lambda: lambda}
	for i := range n {
		sum := 0.0
		for a := range d {
			p.X.Row(i)[a] = r.Float64()*float64(a+1) - 5
			sum += float64(a+3) * p.X.Row(i)[a]
		}
		p.Y.Row(i)[0], p.Y.Row(i)[1] = math.Sin(sum)+0.3*r.NormFloat64(), math.Cos(2*sum)+3
	}
	return p
}

// TestModes runs the complete suite for one feature, and only the comparisons with the oracle for two and three
// features, which take longer. A memory limit excludes the many modes of a Matérn kernel with the smallest λ.
func TestModes(t *testing.T) {
	for d, k := range []kernels.Kernel{kernels.Matern{Nu: 2.5, Sigma: 2}, kernels.Gaussian{Sigma: 2}, kernels.Gaussian{Sigma: 3}} {
		suite := solvertest.Suite{Method: solvers.Modes, Params: solvers.Params{Tol: fine, Memory: 1 << 26}, Features: d + 1, Kernels: []kernels.Kernel{k}}
		if d > 0 {
			suite.Device, suite.Tests = "cpu", []string{"Oracle", "OneSample", "DuplicateRows"}
		}
		if testing.Short() {
			suite.Device = "cpu"
		}
		if required.FewCases() && d == 0 {
			suite.Tests = []string{"Oracle", "OneSample", "Residual", "PermutedRows", "ZeroWeights", "Outputs", "SameBits", "Singular", "Memory", "Budget", "Canceled"}
		}
		t.Run(fmt.Sprintf("%d features", d+1), func(t *testing.T) { solvertest.Run(t, suite) })
	}
}

// TestModesSolvesTheSystem checks the residuals that Modes reports, and compares its solutions with other methods.
func TestModesSolvesTheSystem(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	mixed := kernels.Sum{kernels.Scaled{Weight: 2, Kernel: kernels.Matern{Nu: 1.5, Sigma: 1}}, kernels.Constant{Value: 0.5}, kernels.Product{kernels.Constant{Value: 0.5}, kernels.Gaussian{Sigma: 0.5}}}
	equal := func(p *solvers.Problem) {
		for i := range p.X.Rows {
			copy(p.X.Row(i), p.X.Row(i%3))
		}
	}
	weights := func(p *solvers.Problem) {
		p.Weights = make([]float64, p.X.Rows)
		for i := range p.Weights {
			p.Weights[i] = float64(i%5) / 2
		}
		p.Intercept = true
	}
	clustered := func(p *solvers.Problem) { // the density of samples increases toward a corner
		for i := range p.X.Rows {
			for j, v := range p.X.Row(i) {
				p.X.Row(i)[j] = math.Pow((v+5)/float64(j+1), 6)
			}
		}
	}
	for i, c := range []struct {
		name   string
		p      solvers.Problem
		tol    float64
		change func(p *solvers.Problem)
	}{
		{"gaussian", field(kernels.Gaussian{Sigma: 0.3}, 400, 2, 0.1), 1e-10, nil},
		{"one feature", field(kernels.Matern{Nu: 2.5, Sigma: 0.3}, 400, 1, 0.01), 1e-10, nil},
		{"laplacian", field(kernels.Laplacian{Sigma: 3}, 100, 1, 0.5), 1e-8, nil},
		{"exponential", field(kernels.Matern{Nu: 0.5, Sigma: 2}, 100, 2, 1), 1e-8, nil},
		{"three features", field(kernels.Gaussian{Sigma: 1}, 300, 3, 0.1), 1e-8, nil},
		{"sum with weights", field(mixed, 200, 2, 0.5), 1e-8, weights},
		{"equal rows", field(kernels.Matern{Nu: 1.5, Sigma: 1}, 200, 2, 0.5), 1e-8, equal},
		{"clustered", field(kernels.Matern{Nu: 1.5, Sigma: 0.5}, 1500, 2, 0.1), 1e-6, clustered},
		{"wide modes", field(kernels.Gaussian{Sigma: 0.3}, 9000, 1, 1), 1e-6, weights},
	} {
		if required.FewCases() && i%2 != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			p, tol := c.p, c.tol
			if c.change != nil {
				c.change(&p)
			}
			res, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.Modes, Tol: tol})
			if err != nil {
				t.Fatal(err)
			}
			wide := strings.Contains(res.Plan.Reason, "checked")
			if res.Residual > tol || res.Method != solvers.Modes || wide != (c.name == "wide modes") || wide != (len(res.Notes) == 1) {
				t.Errorf("residual %v, method %s, %s, notes %v", res.Residual, res.Method, res.Plan.Reason, res.Notes)
			}
			other := solvers.Params{Method: solvers.Dual, Tol: tol / 100}
			if wide {
				other.Method = solvers.CG // faster than a factor of 9,000 rows
			}
			want, err := solvers.Solve(t.Context(), dev, p, other)
			if err != nil {
				t.Fatal(err)
			}
			// The error is at most ‖A⁻¹‖ ≤ max w/λ times the residual. The factor 2 allows for estimated residuals.
			largest := 1.0
			for _, w := range p.Weights {
				largest = max(largest, w)
			}
			for j := range 2 {
				diff, size := 0.0, 0.0
				for i := range p.X.Rows {
					diff = math.Hypot(diff, res.Alpha.Row(i)[j]-want.Alpha.Row(i)[j])
					size = math.Hypot(size, p.Y.Row(i)[j])
				}
				if bound := 2 * tol * size * largest / p.Lambda; !(diff <= bound) || size == 0 {
					t.Errorf("output %d: solutions differ by %.3g, allowed %.3g", j, diff, bound)
				}
			}
		})
	}
}

// TestAutoChoosesModes checks the choice of Auto for spread, clustered and equal rows.
func TestAutoChoosesModes(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	gauss := kernels.Gaussian{Sigma: 0.3}
	equal := field(gauss, 4000, 2, 0.1)
	for i := range equal.X.Rows {
		copy(equal.X.Row(i), equal.X.Row(i%3))
	}
	clustered := field(gauss, 4000, 2, 0.1)
	for i := 5; i < clustered.X.Rows; i++ {
		for j, v := range clustered.X.Row(i) {
			clustered.X.Row(i)[j] = clustered.X.Row(i % 5)[j] + v*1e-3
		}
	}
	for _, c := range []struct {
		name     string
		p        solvers.Problem
		residual bool           // Params.NeedsResiduals
		planned  solvers.Method // "" means a method other than Modes
	}{
		{"spread", field(gauss, 4000, 2, 0.1), false, solvers.Modes},
		{"spread, with residuals", field(gauss, 4000, 2, 0.1), true, solvers.Modes},
		{"equal", equal, false, solvers.Modes},
		{"clustered", clustered, false, solvers.Modes},
		{"small", field(gauss, 500, 2, 0.1), false, solvers.Dual},
		{"four features", field(gauss, 500, 4, 0.1), false, solvers.Dual},
		{"rough", field(kernels.Matern{Nu: 0.5, Sigma: 0.1}, 3000, 2, 0.01), false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			const tol = 1e-5
			par := solvers.Params{Tol: tol, NeedsResiduals: c.residual}
			plan, err := solvers.MakePlan(dev, c.p, par)
			if err != nil {
				t.Fatal(err)
			}
			if c.planned == "" {
				if plan.Method == solvers.Modes || !strings.Contains(plan.Reason, "modes") {
					t.Errorf("%s: %s", plan.Method, plan.Reason)
				}
				return
			}
			if plan.Method != c.planned || c.planned == solvers.Modes && !strings.Contains(plan.Reason, "modes, residuals by") {
				t.Errorf("planned %s: %s", plan.Method, plan.Reason)
			}
			last := 0.0
			par.Progress = func(q solvers.Progress) {
				if q.Fraction < last {
					t.Errorf("progress decreases from %v to %v", last, q.Fraction)
				}
				last = q.Fraction
			}
			res, err := solvers.Solve(t.Context(), dev, c.p, par)
			if err != nil {
				t.Fatal(err)
			}
			if last != 1 || !(res.Residual <= tol) || c.residual && res.Residuals.Rows == 0 {
				t.Errorf("progress ends with %v, the residual is %v", last, res.Residual)
			}
			if res.Method != c.planned || res.Fallback != "" {
				t.Errorf("method %s, fallback %q", res.Method, res.Fallback)
			}
			if now, _ := dev.InUse(); now != 0 {
				t.Errorf("%d bytes are left on the device", now)
			}
		})
	}
}

// TestAutoChoosesModesForManyRows plans solutions for the samples of bench/spatial_mgcv.R, for which Modes is
// faster than conjugate gradients (bench/results/solvers.md), and for clustered samples, for which it is slower.
// Auto must choose the faster method.
func TestAutoChoosesModesForManyRows(t *testing.T) {
	dev := ratedDevice{backendtest.Device(t, "ref", backend.Config{Memory: 16 << 30}), flop.Rates{Single: 2, Values: 1.5}}
	for _, c := range []struct {
		n         int
		clustered bool
		want      solvers.Method
	}{{18000, false, solvers.Modes}, {90000, false, solvers.Modes}, {18000, true, solvers.CG}} {
		p := field(kernels.Matern{Nu: 1.5, Sigma: 0.3}, c.n, 2, 0.09)
		for i := range c.n {
			p.X.Row(i)[0], p.X.Row(i)[1] = p.X.Row(i)[0]+5, (p.X.Row(i)[1]+5)/2
			for j, v := range p.X.Row(i) {
				if c.clustered {
					p.X.Row(i)[j] = math.Pow(v, 8)
				}
			}
		}
		p.Y, p.Intercept = p.Y.View(0, 0, c.n, 1), true
		plan, err := solvers.MakePlan(dev, p, solvers.Params{Tol: 1e-6})
		if err != nil {
			t.Fatal(err)
		}
		if plan.Method != c.want || c.want == solvers.Modes && !strings.Contains(plan.Reason, "residuals by the exact K") {
			t.Errorf("%d rows, clustered %v: planned %s: %s", c.n, c.clustered, plan.Method, plan.Reason)
		}
	}
}

// TestModesOfOneSample compares the solution for one sample, also far from the origin, with α = y/(k(0) + λ/w).
func TestModesOfOneSample(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	for _, x := range []float64{1.5, -1e150} {
		p := solvers.Problem{
			Kernel: kernels.Matern{Nu: 1.5, Sigma: 2}, X: backend.Host[float64]{Rows: 1, Cols: 2, Stride: 2, Data: []float64{x, 3}},
			Y: backend.Host[float64]{Rows: 1, Cols: 1, Stride: 1, Data: []float64{3}}, Weights: []float64{2}, Lambda: 0.5,
		}
		res, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.Modes})
		if err != nil {
			t.Fatal(err)
		}
		if want := 3 / 1.25; !(math.Abs(res.Alpha.Data[0]-want) <= 1e-8*3/0.25) {
			t.Errorf("x = %v: α is %v, want %v", x, res.Alpha.Data[0], want)
		}
	}
}

// TestModesRefuses checks the errors of problems that Modes does not solve.
func TestModesRefuses(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	gauss := kernels.Gaussian{Sigma: 1}
	distant := field(gauss, 20, 2, 1)
	distant.X.Row(3)[1] = 1e9
	missing := field(gauss, 20, 2, 1)
	missing.X.Row(3)[1] = math.NaN()
	for _, c := range []struct {
		p    solvers.Problem
		text string
	}{
		{field(gauss, 20, 4, 1), "modes: needs one to three features and a kernel such as gaussian, matern32 or matern52 with one sigma, or a sum of them, got 4 features and gaussian(sigma=1)"},
		{field(kernels.Linear{}, 20, 2, 1), "got 2 features and linear()"},
		{field(kernels.Constant{Value: 1}, 20, 2, 1), "got 2 features and 1"},
		{field(kernels.Laplacian{Sigma: 1}, 20, 2, 1), "got 2 features and laplacian(sigma=1)"},
		{field(kernels.Gaussian{Sigmas: []float64{1, 2}}, 20, 2, 1), "with one sigma"},
		{field(gauss, 20, 2, 0), "lambda must be > 0, got 0"},
		{missing, "x: row 4"},
		{distant, "more than 1048576 Fourier modes are needed for a feature of range 1e+09 and gaussian(sigma=1)"},
	} {
		if _, err := solvers.Solve(t.Context(), dev, c.p, solvers.Params{Method: solvers.Modes}); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("got %v, want %q", err, c.text)
		}
	}
	p := field(gauss, 200, 2, 1)
	plan, err := solvers.MakePlan(dev, p, solvers.Params{Method: solvers.Modes})
	if err != nil {
		t.Fatal(err)
	}
	var budget *solvers.BudgetError
	if _, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.Modes, Memory: plan.Bytes / 10}); !errors.As(err, &budget) {
		t.Errorf("not refused as too large: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := fmt.Errorf("the reason")
	_, err = solvers.Solve(ctx, dev, p, solvers.Params{Method: solvers.Modes, Progress: func(s solvers.Progress) {
		if s.Stage == "solve" {
			cancel(cause)
		}
	}})
	if now, _ := dev.InUse(); !errors.Is(err, cause) || now != 0 {
		t.Errorf("canceled: %v, %d bytes are left", err, now)
	}
}
