package learners

import (
	"context"
	"fmt"

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

func saveLambdas(s State, lambdas []float64) {
	if len(lambdas) > 0 {
		s.Arrays["lambdas"] = rowOf(lambdas)
	}
}

// restoreLambdas returns the array "lambdas" of a model with so many targets, nil
// where there is none.
func restoreLambdas(s State, targets int) ([]float64, error) {
	if _, ok := s.Arrays["lambdas"]; !ok {
		return nil, nil
	}
	h, err := s.array("lambdas", 1, targets)
	if err != nil {
		return nil, err
	}
	for j, v := range h.Row(0) {
		if err := nonNegative.check(v); err != nil {
			return nil, fmt.Errorf("array \"lambdas\": column %d %w", j+1, err)
		}
	}
	return h.Row(0), nil
}
