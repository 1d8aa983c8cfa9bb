package solvers_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// three is a valid problem of three samples, two features and one output.
func three() solvers.Problem {
	return solvers.Problem{
		Kernel: kernels.Gaussian{Sigma: 1},
		X:      backend.Host[float64]{Rows: 3, Cols: 2, Stride: 2, Data: []float64{1, 2, 3, 4, 5, 6}},
		Y:      backend.Host[float64]{Rows: 3, Cols: 1, Stride: 1, Data: []float64{1, 2, 3}},
		Lambda: 1,
	}
}

// linearWith returns a change of a problem: it sets a linear kernel, an intercept, and element i of X to v.
func linearWith(i int, v float64) func(*solvers.Problem, *solvers.Params) {
	return func(p *solvers.Problem, _ *solvers.Params) {
		p.Kernel, p.Intercept, p.X.Data[i] = kernels.Linear{}, true, v
	}
}

// TestRefusals checks that Solve rejects each invalid problem by an error of one line that names the invalid value.
func TestRefusals(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, test := range []struct {
		name   string
		change func(*solvers.Problem, *solvers.Params)
		want   string
	}{
		{"no kernel", func(p *solvers.Problem, _ *solvers.Params) { p.Kernel = nil }, "solvers: the kernel is missing"},
		{"bad kernel", func(p *solvers.Problem, _ *solvers.Params) { p.Kernel = kernels.Gaussian{} }, "solvers: kernels: gaussian: sigma must be a finite number > 0, got 0"},
		{"kernel of other features", func(p *solvers.Problem, _ *solvers.Params) {
			p.Kernel = kernels.Gaussian{Sigmas: []float64{1, 2, 3}}
		}, "3 entries for 2 features"},
		{"no x", func(p *solvers.Problem, _ *solvers.Params) { p.X = backend.Host[float64]{} }, "solvers: x is empty: 0 rows, 0 columns"},
		{"no y", func(p *solvers.Problem, _ *solvers.Params) { p.Y = backend.Host[float64]{Rows: 3} }, "solvers: y is empty: 3 rows, 0 columns"},
		{"negative size", func(p *solvers.Problem, _ *solvers.Params) { p.X.Rows = -1 }, "solvers: x is empty: -1 rows, 2 columns"},
		{"short data", func(p *solvers.Problem, _ *solvers.Params) { p.X.Data = p.X.Data[:5] }, "solvers: x: a 3×2 matrix with stride 2 does not fit in 5 elements"},
		{"bad stride", func(p *solvers.Problem, _ *solvers.Params) { p.X.Stride = 1 }, "solvers: x: a 3×2 matrix with stride 1 does not fit in 6 elements"},
		{"other length", func(p *solvers.Problem, _ *solvers.Params) { p.Y.Rows = 2 }, "solvers: x has 3 rows, y has 2"},
		{"NaN in x", func(p *solvers.Problem, _ *solvers.Params) { p.X.Data[5] = nan }, "solvers: x: row 3, column 2 is NaN"},
		{"Inf in x", func(p *solvers.Problem, _ *solvers.Params) { p.X.Data[0] = inf }, "solvers: x: row 1, column 1 is +Inf"},
		{"two infinities", func(p *solvers.Problem, _ *solvers.Params) { p.X.Data[2], p.X.Data[3] = inf, -inf }, "solvers: x: row 2, column 1 is +Inf"},
		{"NaN in x with an intercept", linearWith(5, nan), "solvers: x: row 3, column 2 is NaN"},
		{"Inf in x with an intercept", linearWith(0, -inf), "solvers: x: row 1, column 1 is -Inf"},
		{"NaN in y with an intercept", func(p *solvers.Problem, _ *solvers.Params) {
			p.Kernel, p.Intercept, p.Y.Data[1] = kernels.Linear{}, true, nan
		}, "solvers: y: row 2, column 1 is NaN"},
		{"NaN in y", func(p *solvers.Problem, _ *solvers.Params) { p.Y.Data[1] = nan }, "solvers: y: row 2, column 1 is NaN"},
		{"negative lambda", func(p *solvers.Problem, _ *solvers.Params) { p.Lambda = -1 }, "solvers: lambda must be a finite number ≥ 0, got -1"},
		{"NaN lambda", func(p *solvers.Problem, _ *solvers.Params) { p.Lambda = nan }, "solvers: lambda must be a finite number ≥ 0, got NaN"},
		{"infinite lambda", func(p *solvers.Problem, _ *solvers.Params) { p.Lambda = inf }, "solvers: lambda must be a finite number ≥ 0, got +Inf"},
		{"few weights", func(p *solvers.Problem, _ *solvers.Params) { p.Weights = []float64{1, 2} }, "solvers: 2 weights for 3 rows"},
		{"no weights", func(p *solvers.Problem, _ *solvers.Params) { p.Weights = []float64{} }, "solvers: 0 weights for 3 rows"},
		{"negative weight", func(p *solvers.Problem, _ *solvers.Params) { p.Weights = []float64{1, -2, 1} }, "solvers: weights: row 2: must be a finite number ≥ 0, got -2"},
		{"NaN weight", func(p *solvers.Problem, _ *solvers.Params) { p.Weights = []float64{1, 1, nan} }, "solvers: weights: row 3: must be a finite number ≥ 0, got NaN"},
		{"zero weights", func(p *solvers.Problem, _ *solvers.Params) { p.Weights = make([]float64, 3) }, "solvers: weights: all are 0, so that no sample remains"},
		{"tiny weight", func(p *solvers.Problem, _ *solvers.Params) { p.Weights = []float64{1, 5e-324, 1} }, "solvers: weights: row 2: 5e-324 is too small for lambda 1"},
		{"huge weights", func(p *solvers.Problem, _ *solvers.Params) { p.Weights = []float64{1e308, 1e308, 1} }, "solvers: weights: their sum is not a finite number"},
		{"negative memory", func(_ *solvers.Problem, q *solvers.Params) { q.Memory = -1 }, "solvers: memory must be ≥ 0 bytes, got -1"},
		{"negative tol", func(_ *solvers.Problem, q *solvers.Params) { q.Tol = -1 }, "solvers: tol must be a finite number ≥ 0, got -1"},
		{"NaN tol", func(_ *solvers.Problem, q *solvers.Params) { q.Tol = nan }, "solvers: tol must be a finite number ≥ 0, got NaN"},
		{"negative iterations", func(_ *solvers.Problem, q *solvers.Params) { q.MaxIter = -1 }, "solvers: the number of iterations must be ≥ 0, got -1"},
		{"negative rank", func(_ *solvers.Problem, q *solvers.Params) { q.Rank = -1 }, "solvers: the rank of the preconditioner must be ≥ 0, got -1"},
		{"unknown preconditioner", func(_ *solvers.Problem, q *solvers.Params) { q.Preconditioner = "ilu" }, `solvers: no preconditioner is called "ilu"; the preconditioners are `},
		{"unknown operator", func(_ *solvers.Problem, q *solvers.Params) { q.Operator = "float16" }, `solvers: no operator is called "float16"; the operators are "float64"`},
		{"unknown method", func(_ *solvers.Problem, q *solvers.Params) { q.Method = "qr" }, `solvers: no method is called "qr"; the methods are "dual", "primal"`},
		{"primal, not linear", func(_ *solvers.Problem, q *solvers.Params) { q.Method = solvers.Primal }, "solvers: primal: needs the kernel linear(), got gaussian(sigma=1): use the method dual"},
		{"dual, singular", func(p *solvers.Problem, q *solvers.Params) {
			p.Kernel, p.Lambda, p.Intercept, q.Method = kernels.Linear{}, 0, true, solvers.Dual
		}, "lambda must be > 0"},
		{"overflow in K", func(p *solvers.Problem, _ *solvers.Params) {
			p.Kernel, p.X.Data[2] = kernels.Polynomial{Degree: 3}, 1e200
		}, "solvers: dual: K + λI is not finite at row 2"},
		{"overflow in XᵀX", func(p *solvers.Problem, q *solvers.Params) {
			p.Kernel, p.X.Data[2], q.Method = kernels.Linear{}, 1e200, solvers.Primal
		}, "solvers: primal: XᵀX overflows at column 1"},
		{"duplicate rows", func(p *solvers.Problem, _ *solvers.Params) {
			p.Lambda, p.X.Data[2], p.X.Data[3] = 0, 1, 2
		}, "solvers: dual: K + λI is not positive definite at row 2 (pivot 0): raise lambda above 3.1e-15"},
		{"duplicate columns", func(p *solvers.Problem, _ *solvers.Params) {
			p.Kernel, p.Lambda, p.X.Data = kernels.Linear{}, 0, []float64{1, 1, 2, 2, 3, 3}
		}, "solvers: primal: x does not have full rank: column 2 is a linear combination of the columns before it"},
		{"zero column", func(p *solvers.Problem, _ *solvers.Params) {
			p.Kernel, p.Lambda, p.X.Data = kernels.Linear{}, 0, []float64{0, 1, 0, 2, 0, 3}
		}, "column 1 is zero (pivot 0): remove the column or raise lambda"},
		{"constant column", func(p *solvers.Problem, _ *solvers.Params) {
			p.Kernel, p.Lambda, p.Intercept, p.X.Data = kernels.Linear{}, 0, true, []float64{.1, 1, .1, 2, .1, 3}
		}, "column 1 is constant (pivot"},
		{"too few samples", func(p *solvers.Problem, _ *solvers.Params) {
			p.Kernel, p.Lambda, p.Intercept = kernels.Linear{}, 0, true
			p.X.Cols, p.X.Rows, p.X.Stride, p.Y.Rows = 3, 2, 3, 2
		}, "because x has only 2 samples"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dev := backendtest.Device(t, "ref")
			p, par := three(), solvers.Params{}
			test.change(&p, &par)
			res, err := solvers.Solve(t.Context(), dev, p, par)
			if err == nil || res != nil {
				t.Fatalf("got %+v, error %v", res, err)
			}
			if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %q\nwant %q", err, test.want)
			}
			if now, _ := dev.InUse(); now != 0 {
				t.Errorf("%d bytes are left on the device", now)
			}
		})
	}
	if _, err := solvers.Solve(t.Context(), nil, three(), solvers.Params{}); err == nil {
		t.Error("solved without a device")
	}
}

// TestPivotRow checks that the error gives the row's number in X, which counts rows of weight 0.
func TestPivotRow(t *testing.T) {
	p := three()
	p.Lambda, p.X.Data = 0, []float64{9, 9, 5, 6, 5, 6}
	p.Weights = []float64{0, 1, 1}
	_, err := solvers.Solve(t.Context(), backendtest.Device(t, "ref"), p, solvers.Params{})
	if !errors.Is(err, backend.ErrNotPosDef) || !strings.Contains(err.Error(), "at row 3 ") {
		t.Error(err)
	}
}

// TestZeroTargets checks that zero targets give α = 0 and the residual 0, not NaN.
func TestZeroTargets(t *testing.T) {
	for _, k := range []kernels.Kernel{kernels.Linear{}, kernels.Gaussian{Sigma: 1}} {
		for _, intercept := range []bool{false, true} {
			p := three()
			p.Kernel, p.Intercept, p.Y.Data = k, intercept, make([]float64, 3)
			res, err := solvers.Solve(t.Context(), backendtest.Device(t, "ref"), p, solvers.Params{})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range append(append(res.Alpha.Data, res.Coef.Data...), append(res.Intercept, res.Residual)...) {
				if v != 0 {
					t.Errorf("%v, intercept %v: %+v", k, intercept, res)
				}
			}
		}
	}
}

// TestExtremeTargets checks that targets near 1e300 or 1e-300 cause no overflow or underflow.
func TestExtremeTargets(t *testing.T) {
	for _, scale := range []float64{1e300, 1e-300} {
		p := three()
		p.Y.Data = []float64{1 * scale, -2 * scale, 3 * scale}
		res, err := solvers.Solve(t.Context(), backendtest.Device(t, "ref"), p, solvers.Params{})
		if err != nil {
			t.Fatal(err)
		}
		// 16 rounding errors are a safe bound for 3 samples and a condition number below 4.
		if !(res.Residual <= 16*0x1p-52) {
			t.Errorf("targets near %g: residual %g", scale, res.Residual)
		}
	}
}

func TestBudgetMessage(t *testing.T) {
	for _, test := range []struct {
		err  solvers.BudgetError
		want string
	}{
		{solvers.BudgetError{Method: solvers.Dual, Rows: 40000, Needed: 12_800_000_000, Available: 8 << 30, Largest: 32000},
			"solvers: dual: 40000 rows need 11.92 GiB of memory, but only 8 GiB may be used: use at most 32000 rows or allow more memory"},
		{solvers.BudgetError{Method: solvers.Primal, Rows: 10, Needed: 3000, Available: 1000},
			"solvers: primal: 10 rows need 2.93 KiB of memory, but only 1000 B may be used: allow more memory, or use fewer features or outputs"},
		{solvers.BudgetError{Method: solvers.Dual, Rows: 1 << 40, Needed: math.MaxInt64, Available: 1, Largest: 1},
			"solvers: dual: 1099511627776 rows need 8 EiB of memory, but only 1 B may be used: use at most 1 row or allow more memory"},
		{solvers.BudgetError{Method: solvers.Dual, Rows: 1, Needed: 8, Available: 7},
			"solvers: dual: 1 row needs 8 B of memory, but only 7 B may be used: allow more memory, or use fewer features or outputs"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got  %q\nwant %q", got, test.want)
		}
	}
}

// TestAdviceOfIndefiniteMatrix checks that the error advises a larger lambda for a singular K, but not for a K with
// a negative eigenvalue or with values that overflow.
func TestAdviceOfIndefiniteMatrix(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	k := [][]float64{{1, 2, 0}, {2, 1, 0}, {0, 0, 1}}
	_, err := solvers.NewCholesky(t.Context(), dev, 3, func(i int, dst []float64) { copy(dst, k[i]) }, 1e-3)
	if !errors.Is(err, backend.ErrNotPosDef) || strings.Contains(err.Error(), "raise lambda") || !strings.Contains(err.Error(), "negative eigenvalue") {
		t.Errorf("factor of an indefinite matrix: %v", err)
	}
	k[0], k[1] = []float64{1, 1, 0}, []float64{1, 1, 0}
	_, err = solvers.NewCholesky(t.Context(), dev, 3, func(i int, dst []float64) { copy(dst, k[i]) }, 0)
	if !errors.Is(err, backend.ErrNotPosDef) || !strings.Contains(err.Error(), "raise lambda") {
		t.Errorf("factor of a singular matrix: %v", err)
	}
	x := backend.NewHost[float64](3, 1)
	copy(x.Data, []float64{1, -2, 3})
	y := backend.Host[float64]{Rows: 3, Cols: 1, Stride: 1, Data: []float64{1, 2, 4}}
	// The sigmoid kernel is not positive definite: k(x, x) = tanh(xᵀx − 2) < 0 for the first sample.
	p := solvers.Problem{Kernel: kernels.Sigmoid{A: 1, C: -2}, X: x, Y: y, Lambda: 1e-3}
	for _, m := range []solvers.Method{solvers.Dual, solvers.CG} {
		if _, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: m}); err == nil || !strings.Contains(err.Error(), "use a positive definite kernel") {
			t.Errorf("%s with an indefinite kernel: %v", m, err)
		}
	}
	x.Data[1] = 1e155
	p.Kernel = kernels.Gaussian{Sigma: 1}
	if _, err := solvers.Solve(t.Context(), dev, p, solvers.Params{}); err == nil || !strings.Contains(err.Error(), "x: row 2: kernels: sqdist: feature 1 is 1e+155") {
		t.Errorf("distances that overflow: %v", err)
	}
}
