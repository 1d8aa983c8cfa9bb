package solvers

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/krylov"
	"github.com/mercer-go/mercer/kernels"
)

// TestReviewComparesWithThePlan checks that a solve is stopped after more than twice the planned iterations if its
// remaining iterations would take more time than the factor in float64.
func TestReviewComparesWithThePlan(t *testing.T) {
	w := &work{plan: Plan{iterations: 40, step: 2}}
	if w.review(1) != nil {
		t.Error("there is a review without a factor in float64")
	}
	w.takeover = 100
	for _, c := range []struct {
		solves, remaining float64
		want              string
	}{
		{1, 51, ""}, // less than twice the planned number in total
		{1, 70, ""}, // 10 + 70 is twice the planned number
		{1, 71, "after 10 iterations, the residual needs about 71 more, but the plan was 40 in total"},
		{2, 49, "after 10 iterations, the residual needs about 98 more, but the plan was 40 in total"},
		{1, math.Inf(1), "after 10 iterations, the residual does not decrease, but the plan was 40 iterations in total"},
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

// TestGivesUpForDual checks that Dual is the next fallback after a review ends a solve, although another fallback
// precedes it in the list, and that the result gives the reason.
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
	unused := fallback{method: CG, make: func() (inner, error) {
		t.Error("the second fallback was made")
		return nil, &accuracyError{}
	}}
	if err := w.refine(placed, slow, unused, w.direct(placed, false)); err != nil {
		t.Fatal(err)
	}
	if w.res.Method != Dual || w.res.Iters != 10 || !(w.res.Residual <= 1e-8) || w.res.Fallback != "cg: too slow; went on with the factor in float64" {
		t.Errorf("method %s after %d iterations, residual %g, fallback %q", w.res.Method, w.res.Iters, w.res.Residual, w.res.Fallback)
	}
}

// TestModesAreReplaced gives Modes too few inner or outer modes. Solve must continue with another method.
func TestModesAreReplaced(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n = 3000
	p := Problem{Kernel: kernels.Gaussian{Sigma: 0.3}, X: backend.NewHost[float64](n, 2), Y: backend.NewHost[float64](n, 1), Lambda: 0.1}
	for i := range n {
		p.X.Row(i)[0], p.X.Row(i)[1] = math.Mod(float64(i)*0.754877666, 1), math.Mod(float64(i)*0.569840291, 1)
		p.Y.Data[i] = math.Sin(float64(i))
	}
	par := Params{Tol: 1e-5}
	for name, change := range map[string]func(c *modesChoice){
		"too few inner modes": func(c *modesChoice) { c.inner[1], c.inner[2] = c.inner[1]/2, c.inner[2]/2 },
		"too few outer modes": func(c *modesChoice) { c.outer.m[1], c.outer.m[2] = c.inner[1]/2, c.inner[2]/2 },
	} {
		plan, err := makePlan(t.Context(), dev, p, par)
		if err != nil {
			t.Fatal(err)
		}
		last, ok := plan.settings.(modesChoice)
		if !ok || plan.otherCost == 0 {
			t.Fatalf("the plan is %+v", plan)
		}
		choice, err := plan.sizes.modes(last.Density, par, plan.sizes.box(), false, 0)
		if err != nil {
			t.Fatal(err)
		}
		change(&choice)
		for a := 1; a < 3; a++ {
			choice.inner[a] = min(choice.inner[a], choice.outer.m[a])
		}
		choice.order = choice.lowOrder(choice.cutoff, lowUnknowns)
		w := newWork(t.Context(), dev, p, par, plan)
		err = choice.run(w)
		w.Mem.FreeAll()
		var inaccurate *ConvergenceError
		if !errors.As(err, &inaccurate) || inaccurate.Result.Method != Modes {
			t.Fatalf("%s: got %v", name, err)
		}
		res, err := solveAgain(t.Context(), dev, p, par, time.Now(), inaccurate)
		if err != nil {
			t.Fatal(err)
		}
		if res.Method == Modes || !(res.Residual <= par.Tol) || !strings.HasPrefix(res.Fallback, "solvers: modes: ") || !strings.Contains(res.Fallback, "; went on with "+string(res.Method)) {
			t.Errorf("%s: method %s, residual %v, fallback %q", name, res.Method, res.Residual, res.Fallback)
		}
	}
}

// TestConcentration compares box.concentrated with its expected value. If clustered is true, half of the n samples are
// in a cell of side 1/8 of the unit square, and half are spread over the square: the cell has n(1/2 + 1/128) samples
// instead of n/64. The estimate has a standard deviation of about 1 %.
func TestConcentration(t *testing.T) {
	const n, cell = 40000, 1. / 8
	r := rand.New(rand.NewPCG(5, 0))
	for _, clustered := range []bool{false, true} {
		x := backend.NewHost[float64](n, 2)
		for i := range n {
			length := 1.
			if clustered && i%4 < 2 {
				length = cell
			}
			x.Row(i)[0], x.Row(i)[1] = length*r.Float64(), length*r.Float64()
		}
		z := &sizes{n: n, d: 2, p: Problem{X: x}}
		want := 1.
		if clustered {
			dense, other := 0.5+0.5*cell*cell, 0.5*cell*cell
			want = (dense*dense + 63*other*other) / (cell * cell)
		}
		if got := z.box().concentrated(cell); !(math.Abs(got-want) <= 0.1*want) {
			t.Errorf("clustered %v: the concentration is %v, want %v", clustered, got, want)
		}
		if got := z.box().concentrated(2); got != 1 {
			t.Errorf("the concentration in a cell larger than the box is %v", got)
		}
	}
	for i := range 3 {
		z := &sizes{n: i, d: 1, p: Problem{X: backend.NewHost[float64](i, 1)}}
		if got := z.box().concentrated(1); got != 1 {
			t.Errorf("the concentration of %d equal samples is %v", i, got)
		}
	}
}
