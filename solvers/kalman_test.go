package solvers_test

import (
	"testing"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
)

// markovian are kernels of each kind that Kalman accepts.
var markovian = []kernels.Kernel{
	kernels.Matern{Nu: 2.5, Sigma: 2},
	kernels.Sum{kernels.Scaled{Weight: 2, Kernel: kernels.Matern{Nu: 1.5, Sigma: 0.3}}, kernels.Constant{Value: 0.5}, kernels.Product{kernels.Constant{Value: 0.5}, kernels.Laplacian{Sigma: 3}}},
	kernels.Matern{Nu: 0.5, Sigma: 0.4},
	kernels.Matern{Nu: 1.5, Sigma: 2},
}

func TestKalman(t *testing.T) {
	solvertest.Run(t, solvertest.Suite{Method: solvers.Kalman, Features: 1, Kernels: markovian})
}
