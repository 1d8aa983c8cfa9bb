package mercer_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/learners"
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
		"solve: dst is missing":  func() error { return f.SolveTo(nil, y) },
		"solve: dst is missing ": func() error { return f.SolveVecTo(nil, mat.NewVecDense(2, nil)) },
	} {
		if err := call(); err == nil || err.Error() != "mercer: "+strings.TrimSpace(want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
