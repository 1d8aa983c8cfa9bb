package solvers_test

import (
	"testing"

	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
)

func TestDual(t *testing.T) {
	solvertest.Run(t, solvertest.Suite{Method: solvers.Dual, Kernels: []kernels.Kernel{
		kernels.Linear{},
		kernels.Gaussian{Sigma: 2},
		kernels.Matern{Nu: 1.5, Sigma: 2},
		kernels.Sum{kernels.Polynomial{Degree: 2, C: 1}, kernels.Scaled{Weight: 0.5, Kernel: kernels.Laplacian{Sigma: 3}}},
	}})
}

func TestPrimal(t *testing.T) {
	solvertest.Run(t, solvertest.Suite{Method: solvers.Primal, Kernels: []kernels.Kernel{kernels.Linear{}}})
}
