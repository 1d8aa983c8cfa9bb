package solvers

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/krylov"
	"github.com/mercer-go/mercer/kernels"
)

// TestReviewComparesWithThePlan checks that a solve is stopped only if it takes more than twice the
// planned iterations and the rest would take more time than the factor in float64.
func TestReviewComparesWithThePlan(t *testing.T) {
	w := &work{plan: Plan{its: 40, step: 2}}
	if w.review(1) != nil {
		t.Error("there is a review without a factor in float64")
	}
	w.takeover = 100
	for _, c := range []struct {
		solves, remaining float64
		want              string
	}{
		{1, 51, ""}, // as planned
		{1, 70, ""}, // 70 is twice the planned number
		{1, 71, "after 10 iterations, about 71 more are needed, and the plan was for 40"},
		{2, 49, "after 10 iterations, about 98 more are needed, and the plan was for 40"},
		{1, math.Inf(1), "after 10 iterations, the residual does not decrease, and the plan was for 40 iterations"},
	} {
		if got := w.review(c.solves)(10, c.remaining); got != c.want {
			t.Errorf("%g solves, %g remaining: %q, want %q", c.solves, c.remaining, got, c.want)
		}
	}
	w.takeover = 142
	if got := w.review(1)(10, 71); got != "" {
		t.Errorf("given up for a factor that costs as much: %q", got)
	}
}

// TestGivesUpForDual checks that after a solve that is stopped, Dual is the next fallback, even if
// the list has others before it, and that the result says why.
func TestGivesUpForDual(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	const n = 80
	x := backendtest.Normal(3, n, 3)
	p := Problem{Kernel: kernels.Gaussian{Sigma: 2}, X: x, Y: backend.Host[float64]{Rows: n, Cols: 1, Stride: 3, Data: x.Data}, Lambda: 1e-4}
	plan, err := MakePlan(dev, p, Params{Method: CG})
	if err != nil {
		t.Fatal(err)
	}
	w := newWork(t.Context(), dev, p, Params{}, plan)
	defer w.Mem.FreeAll()
	placed, err := w.placeX()
	if err != nil {
		t.Fatal(err)
	}
	slow := fallback{method: CG, make: func() (inner, error) {
		a, err := operatorOf(w, w.B, Stored64, placed)
		if err != nil {
			return nil, err
		}
		return newConjugate(w, w.B, a, nil, krylov.Params{Patience: patience, Review: func(int, float64) string { return "too slow" }})
	}}
	never := fallback{method: CG, make: func() (inner, error) {
		t.Error("the second fallback was made")
		return nil, &accuracyError{}
	}}
	if err := w.refine(placed, slow, never, w.direct(placed, false)); err != nil {
		t.Fatal(err)
	}
	if w.res.Method != Dual || w.res.Iters != 10 || !(w.res.Residual <= 1e-8) || w.res.Fallback != "cg: too slow; went on with the factor in float64" {
		t.Errorf("method %s after %d iterations, residual %g, fallback %q", w.res.Method, w.res.Iters, w.res.Residual, w.res.Fallback)
	}
}
