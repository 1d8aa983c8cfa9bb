package learners

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/solvers"
)

// each returns the λ of the targets: lambda alone where there is no list.
func each(lambda float64, lambdas []float64) []float64 {
	if len(lambdas) == 0 {
		return []float64{lambda}
	}
	return lambdas
}

// solveEach is solvers.Solve, or solvers.SolveEach where each target has its own λ.
func solveEach(ctx context.Context, dev backend.Device, p solvers.Problem, lambdas []float64, par solvers.Params) (*solvers.Result, error) {
	if len(lambdas) == 0 {
		return solvers.Solve(ctx, dev, p, par)
	}
	return solvers.SolveEach(ctx, dev, p, lambdas, par)
}
