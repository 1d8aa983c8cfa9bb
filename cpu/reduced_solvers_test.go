package cpu_test

import (
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/backend/ref"
	"github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/precision"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
)

// TestMixedReduced runs the suite of package solvertest for the method Mixed, with a factor of
// reduced precision and matrices of many blocks.
func TestMixedReduced(t *testing.T) {
	cpu.NeedReduced(t)
	cpu.SmallReducedBlocks(t)
	t.Cleanup(precision.Force(precision.Reduced))
	solvertest.Run(t, solvertest.Suite{
		Method:  solvers.Mixed,
		Device:  "cpu",
		Params:  solvers.Params{Tol: 4e-14, Operator: solvers.Unstored64},
		Kernels: []kernels.Kernel{kernels.Gaussian{Sigma: 2}},
	})
}

// TestReducedHopeless checks that if a factor in float32 is not precise enough, the solver does not
// first compute a factor of reduced precision, which is even less precise.
func TestReducedHopeless(t *testing.T) {
	cpu.NeedReduced(t)
	dev, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	p := solvers.Problem{Kernel: kernels.Linear{}, X: backend.NewHost[float64](600, 1), Y: backend.NewHost[float64](600, 1), Lambda: 1e-6}
	for i := range p.X.Data {
		p.X.Data[i] = float64(i) * 1e6
	}
	plan, err := solvers.MakePlan(dev, p, solvers.Params{Method: solvers.Mixed})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plan.Reason, "reduced") {
		t.Errorf("the plan is %q", plan.Reason)
	}
}
