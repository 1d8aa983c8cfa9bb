package solvers_test

import (
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/precision"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// shape returns a problem whose data are zeros; a plan depends only on the sizes.
func shape(k kernels.Kernel, n, d int) solvers.Problem {
	return solvers.Problem{Kernel: k, X: backend.NewHost[float64](n, d), Y: backend.NewHost[float64](n, 1), Lambda: 1}
}

func TestChoice(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	for _, test := range []struct {
		name   string
		p      solvers.Problem
		want   solvers.Method
		reason string
	}{
		{"more samples than features", shape(kernels.Linear{}, 1000, 10), solvers.Primal, "(n²d + n³/3), primal"},
		{"more features than samples", shape(kernels.Linear{}, 10, 1000), solvers.Dual, "cheapest: dual"},
		{"another kernel", shape(kernels.Matern{Nu: 0.5, Sigma: 1}, 1000, 10), solvers.Dual, "a direct method is the fastest for few rows"},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan, err := solvers.MakePlan(dev, test.p, solvers.Params{})
			if err != nil {
				t.Fatal(err)
			}
			if plan.Method != test.want || !strings.Contains(plan.Reason, test.reason) {
				t.Errorf("got %s because %q, want %s because %q", plan.Method, plan.Reason, test.want, test.reason)
			}
			for _, m := range []solvers.Method{solvers.Dual, solvers.Primal} {
				if m == solvers.Primal && test.p.Kernel != (kernels.Linear{}) {
					continue
				}
				if plan, err := solvers.MakePlan(dev, test.p, solvers.Params{Method: m}); err != nil || plan.Method != m || plan.Reason != "requested" {
					t.Errorf("asked for %s: got %+v, %v", m, plan, err)
				}
			}
		})
	}
	p := shape(kernels.Linear{}, 10, 1000)
	p.Lambda, p.Intercept = 0, true
	if plan, err := solvers.MakePlan(dev, p, solvers.Params{}); err != nil || plan.Method != solvers.Primal {
		t.Errorf("lambda 0 with an intercept: got %+v, %v", plan, err)
	}
}

// TestChoicesAreUsed checks that Auto chooses a method that uses the requested rank or preconditioner, and that
// other methods return an error.
func TestChoicesAreUsed(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	p := shape(kernels.Gaussian{Sigma: 1}, 30, 2)
	for i := range p.X.Data {
		p.X.Data[i] = float64(i * i % 17)
	}
	for i := range p.Y.Data {
		p.Y.Data[i] = float64(i % 5)
	}
	for name, par := range map[string]solvers.Params{"rank": {Rank: 7}, "preconditioner": {Preconditioner: "rpcholesky", Rank: 5}} {
		res, err := solvers.Solve(t.Context(), dev, p, par)
		if err != nil || res.Method != solvers.CG || res.Rank != par.Rank || res.Iters == 0 {
			t.Errorf("%s: got %+v, %v", name, res, err)
		}
	}
	for name, test := range map[string]struct {
		par  solvers.Params
		want string
	}{
		"rank of dual":   {solvers.Params{Method: solvers.Dual, Rank: 7}, "rank: the method dual has no rank: leave it out, or use cg"},
		"preconditioner": {solvers.Params{Method: solvers.Mixed, Preconditioner: "taylor"}, "preconditioner: the method mixed has no preconditioner: leave it out, or use cg"},
		"no rank":        {solvers.Params{Preconditioner: "none", Rank: 7}, "the rank is 7, but the preconditioner \"none\" has no rank: leave one of the two out"},
	} {
		if _, err := solvers.MakePlan(dev, p, test.par); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// TestCrossover checks that Auto switches between Primal and Dual only once as features are added, and chooses the
// method with fewer operations if their numbers differ much.
func TestCrossover(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	const n = 200
	changes, last := 0, solvers.Primal
	for d := 10; d <= 1000; d += 10 {
		p := shape(kernels.Linear{}, n, d)
		plan, err := solvers.MakePlan(dev, p, solvers.Params{})
		if err != nil {
			t.Fatal(err)
		}
		if plan.Method != last {
			changes++
			last = plan.Method
			if d < n/3 || d > 3*n {
				t.Errorf("the choice changes at %d features for %d samples", d, n)
			}
		}
		primal, err := solvers.MakePlan(dev, p, solvers.Params{Method: solvers.Primal})
		if err != nil {
			t.Fatal(err)
		}
		dual, err := solvers.MakePlan(dev, p, solvers.Params{Method: solvers.Dual})
		if err != nil {
			t.Fatal(err)
		}
		// The rates of the two methods differ by less than a factor of 7.
		if primal.Flops > 7*dual.Flops && plan.Method != solvers.Dual || dual.Flops > 7*primal.Flops && plan.Method != solvers.Primal {
			t.Errorf("%d features: primal %.3g, dual %.3g operations, chosen: %s", d, primal.Flops, dual.Flops, plan.Method)
		}
	}
	if changes != 1 {
		t.Errorf("the choice changes %d times", changes)
	}
}

// TestReducedPrecisionIsNotReplaced requires an error from a device without products of reduced precision.
func TestReducedPrecisionIsNotReplaced(t *testing.T) {
	defer precision.Force(precision.Reduced)()
	x, y := backendtest.Normal(1, 50, 3), backendtest.Normal(2, 50, 1)
	_, err := solvers.Solve(t.Context(), backendtest.Device(t, "ref"), solvers.Problem{Kernel: kernels.Gaussian{Sigma: 1}, X: x, Y: y, Lambda: 1}, solvers.Params{Method: solvers.Mixed})
	if err == nil || !strings.Contains(err.Error(), "has no products of reduced precision") {
		t.Errorf("got %v", err)
	}
}
