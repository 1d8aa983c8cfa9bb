package cuda_test

import (
	"strings"
	"testing"

	"github.com/mercer-go/mercer/cuda"
	"github.com/mercer-go/mercer/internal/precision"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
)

// TestSolvers runs the solvers' suite on the device.
func TestSolvers(t *testing.T) {
	cuda.Need(t)
	// The tolerance makes an iterative solution as accurate as the suite requires of a
	// direct one.
	const fine = 4e-14
	gaussian := []kernels.Kernel{kernels.Gaussian{Sigma: 2}}
	suites := []struct {
		solvertest.Suite
		factor precision.Precision
	}{
		{Suite: solvertest.Suite{Method: solvers.Dual, Kernels: gaussian}},
		{Suite: solvertest.Suite{Method: solvers.Dual, Params: solvers.Params{Operator: solvers.Stored64}, Kernels: gaussian}},
		{Suite: solvertest.Suite{Method: solvers.Primal, Kernels: []kernels.Kernel{kernels.Linear{}}}},
		{Suite: solvertest.Suite{Method: solvers.Mixed, Params: solvers.Params{Tol: fine, Operator: solvers.Unstored64}, Kernels: gaussian}},
		{Suite: solvertest.Suite{Method: solvers.Mixed, Params: solvers.Params{Tol: fine, Operator: solvers.Unstored64}, Kernels: gaussian}, factor: precision.Reduced},
		{Suite: solvertest.Suite{Method: solvers.OutOfCore, Able: true, Kernels: gaussian}},
		{Suite: solvertest.Suite{Method: solvers.OutOfCore, Able: true, Params: solvers.Params{Tol: fine}, Kernels: gaussian}, factor: precision.Single},
		{Suite: solvertest.Suite{Method: solvers.CG, Params: solvers.Params{Tol: fine, Operator: solvers.Stored32, Rank: 6}, Kernels: gaussian}},
		{Suite: solvertest.Suite{Method: solvers.CG, Params: solvers.Params{Tol: fine, Operator: solvers.Fixed16, Rank: 6}, Kernels: gaussian}},
	}
	if testing.Short() { // one suite per kind of storage; the others take half a minute
		suites = suites[:3]
	}
	for _, suite := range suites {
		t.Run(strings.Join([]string{string(suite.Method), string(suite.Params.Operator), []string{"", "float32", "reduced"}[suite.factor]}, " "), func(t *testing.T) {
			if suite.factor == precision.Reduced || suite.Method == solvers.OutOfCore {
				cuda.SmallCuts(t)
			}
			t.Cleanup(precision.Force(suite.factor))
			suite.Device = "cuda/0"
			solvertest.Run(t, suite.Suite)
		})
	}
}
