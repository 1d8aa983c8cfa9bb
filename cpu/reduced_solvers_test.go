package cpu_test

import (
	"testing"

	_ "github.com/mercer-go/mercer/backend/ref"
	"github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
)

// TestMixedReduced is solvers' TestMixed with a factor of reduced precision, on matrices of
// many blocks.
func TestMixedReduced(t *testing.T) {
	cpu.NeedReduced(t)
	cpu.SmallReducedBlocks(t)
	solvertest.Run(t, solvertest.Suite{
		Method:  solvers.Mixed,
		Device:  "cpu",
		Params:  solvers.Params{Tol: 4e-14, Operator: solvers.Unstored64, Precision: solvers.PrecisionReduced},
		Kernels: []kernels.Kernel{kernels.Gaussian{Sigma: 2}},
	})
}
