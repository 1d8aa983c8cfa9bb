package solvers_test

import (
	"fmt"
	"testing"

	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
)

// several lists kernels of different kinds.
var several = []kernels.Kernel{
	kernels.Linear{},
	kernels.Gaussian{Sigma: 2},
	kernels.Matern{Nu: 1.5, Sigma: 2},
	kernels.Sum{kernels.Polynomial{Degree: 2, C: 1}, kernels.Scaled{Weight: 0.5, Kernel: kernels.Laplacian{Sigma: 3}}},
}

func TestDual(t *testing.T) {
	solvertest.Run(t, solvertest.Suite{Method: solvers.Dual, Kernels: several})
}

// fine is a tolerance with which iterative methods meet the suite's bounds for direct methods.
const fine = 4e-14

func TestMixed(t *testing.T) {
	solvertest.Run(t, solvertest.Suite{Method: solvers.Mixed, Params: solvers.Params{Tol: fine, Operator: solvers.Unstored64}, Kernels: several[1:2]})
}

func TestCG(t *testing.T) {
	for _, test := range []struct {
		operator solvers.Operator
		rank     int // 0 means no preconditioner
		kernel   kernels.Kernel
		long     bool
	}{
		{solvers.Stored64, 0, several[3], true},
		{solvers.Stored32, 6, several[1], false},
		{solvers.Fixed16, 6, several[1], false},
		{solvers.Unstored64, 6, several[2], true},
		{solvers.Unstored32, 6, several[1], true},
	} {
		t.Run(fmt.Sprintf("%s,rank=%d", test.operator, test.rank), func(t *testing.T) {
			if test.long && testing.Short() {
				t.Skip("others cover what this one adds less")
			}
			par := solvers.Params{Tol: fine, Operator: test.operator, Rank: test.rank}
			if test.rank == 0 {
				par.Preconditioner = "none"
			}
			solvertest.Run(t, solvertest.Suite{Method: solvers.CG, Params: par, Kernels: []kernels.Kernel{test.kernel}})
		})
	}
}

// TestSparse runs the suite with sparse samples, for every way to store K.
func TestSparse(t *testing.T) {
	for _, test := range []struct {
		method   solvers.Method
		operator solvers.Operator
		rank     int
		kernel   kernels.Kernel
		long     bool
	}{
		{solvers.Dual, "", 0, several[3], true},
		{solvers.Mixed, solvers.Unstored64, 0, several[0], false},
		{solvers.Mixed, solvers.Stored64, 0, several[1], false},
		{solvers.CG, solvers.Stored64, 6, several[1], true},
		{solvers.CG, solvers.Stored32, 6, several[3], false},
		{solvers.CG, solvers.Fixed16, 6, several[1], true},
		{solvers.CG, solvers.Unstored64, 4, several[0], false},
		{solvers.CG, solvers.Unstored32, 0, several[0], true},
	} {
		t.Run(fmt.Sprintf("%s,%s,rank=%d", test.method, test.operator, test.rank), func(t *testing.T) {
			if test.long && testing.Short() {
				t.Skip("others cover what this one adds less")
			}
			par := solvers.Params{Tol: fine, Operator: test.operator, Rank: test.rank}
			if test.method == solvers.CG && test.rank == 0 {
				par.Preconditioner = "none"
			}
			if test.method == solvers.CG && test.kernel == several[0] {
				par.Tol = 8 * fine // with repeated samples, rounding the exact solution leaves a residual of up to 2.8e-13
			}
			solvertest.Run(t, solvertest.Suite{Method: test.method, Params: par, Kernels: []kernels.Kernel{test.kernel}, Sparse: true})
		})
	}
}

func TestPrimal(t *testing.T) {
	solvertest.Run(t, solvertest.Suite{Method: solvers.Primal, Kernels: []kernels.Kernel{kernels.Linear{}}})
}
