package mercer_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

// TestMisuse: what is missing or not a number is an error of one line, neither a
// panic nor a solution.
func TestMisuse(t *testing.T) {
	ctx, o := context.Background(), mercer.Options{}
	k := mat.NewSymDense(2, []float64{1, 0, 0, 1})
	y := mat.NewDense(2, 1, []float64{1, 2})
	f, err := mercer.NewFactor(ctx, k, 1, o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for want, call := range map[string]func() error{
		"fit: the learner is missing": func() error {
			_, err := mercer.Fit[*learners.RidgeModel](ctx, nil, y, y, o)
			return err
		},
		"factor: k is missing": func() error {
			_, err := mercer.Solve(ctx, (*mat.SymDense)(nil), 1, y, o)
			return err
		},
		"solve: y: row 2, column 1 is NaN": func() error {
			_, err := mercer.Solve(ctx, k, 1, mat.NewDense(2, 1, []float64{1, math.NaN()}), o)
			return err
		},
		"solve: dst is missing":  func() error { return f.SolveTo(ctx, nil, y) },
		"solve: dst is missing ": func() error { return f.SolveVecTo(ctx, nil, mat.NewVecDense(2, nil)) },
	} {
		if err := call(); err == nil || err.Error() != "mercer: "+strings.TrimSpace(want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// An option is used or refused: SolveKernel's weights change the equation to
// (K + λW⁻¹)α = y, and calls that have no use for an option say so.
func TestOptionsAreUsedOrRefused(t *testing.T) {
	ctx := t.Context()
	k := mat.NewSymDense(2, []float64{2, 1, 1, 2})
	x, y := mat.NewDense(2, 1, []float64{0, 1}), mat.NewDense(2, 1, []float64{1, 2})
	given := map[string]learners.Options{
		"Weights":    {Weights: []float64{1, 2}},
		"Classes":    {Classes: []string{"a", "b"}},
		"Memory":     {Memory: 1 << 30},
		"Progress":   {Progress: func(solvers.Progress) {}},
		"Checkpoint": {Checkpoint: solvers.Checkpoint{Dir: t.TempDir()}},
	}
	for option, l := range given {
		o := mercer.Options{Options: l}
		want := "Options." + option + " is not used here"
		calls := map[string]func() error{
			"Solve":           func() error { _, err := mercer.Solve(ctx, k, 1, y, o); return err },
			"NewFactor":       func() error { _, err := mercer.NewFactor(ctx, k, 1, o); return err },
			"NewKernelFactor": func() error { _, err := mercer.NewKernelFactor(ctx, kernels.Linear{}, 1, x, o); return err },
			"Load":            func() error { _, err := mercer.Load("none.safetensors", o); return err },
		}
		if option == "Classes" {
			calls["SolveKernel"] = func() error { _, err := mercer.SolveKernel(ctx, kernels.Linear{}, 1, x, y, o); return err }
		}
		for name, call := range calls {
			if err := call(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %s: %v", name, option, err)
			}
		}
	}
	// K = xxᵀ + 1 = (1 1; 1 2), W = diag(1, 2), λ = 1: (2 1; 1 2.5)α = (1, 2) has
	// α = (0.5/4, 3/4).
	res, err := mercer.SolveKernel(ctx, kernels.Polynomial{Degree: 1, C: 1}, 1, x, y, mercer.Options{Options: given["Weights"]})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.125, 0.75} {
		if got := res.Alpha.Data[i]; math.Abs(got-want) > 1e-15 {
			t.Errorf("alpha %d is %v, want %v", i, got, want)
		}
	}
}
