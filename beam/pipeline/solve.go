package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/beam/internal/sums"
	"github.com/mercer-go/mercer/solvers"
)

// Score is the cross-validated error of a candidate.
type Score struct {
	Kernel string  `json:"kernel,omitempty"`
	Lambda float64 `json:"lambda"`
	// MSE is the mean of (y − f(x))² over the rows and over the columns of y, where f is the model that was fitted
	// to the other folds.
	MSE float64 `json:"mse"`
	// Fault is the reason why there is no score, such as singular equations.
	Fault string `json:"fault,omitempty"`
}

// chosenModel is the model that was chosen, with the scores that led to the choice.
type chosenModel struct {
	Candidate int // index of the kernel in fitPlan.Bases
	Lambda    float64
	Solution  sums.Solution
	Rows      int64
	Scores    []Score // empty if there was one candidate
	Measured  bool    // whether Residual and MSE come from a pass over the samples, not from the sums
	Residual  float64
	MSE       []float64 // mean squared error of each column of y over the training rows
}

func (p Params) problem(plan *fitPlan, candidate int, lambda float64) sums.Problem {
	return sums.Problem{Basis: plan.Bases[candidate], Targets: plan.Targets, TargetShift: plan.TargetShift, Lambda: lambda, Intercept: p.Intercept}
}

// solveFn chooses a candidate and solves it for all rows.
type solveFn struct{ Params Params }

func (f *solveFn) ProcessElement(ctx context.Context, _ []byte, plan fitPlan, next func(*int, *partialSums) bool, emit func(chosenModel), emitTotal func(partialSums)) (err error) {
	defer markUserError(&err)
	dev, err := device(f.Params.Device)
	if err != nil {
		return err
	}
	parts := make([]*sums.Sums, f.Params.slots(&plan))
	var slot int
	for part := (partialSums{}); next(&slot, &part); part = (partialSums{}) {
		if slot < 0 || slot >= len(parts) || parts[slot] != nil {
			return fmt.Errorf("pipeline: the sums of slot %d of %d arrived twice or belong to another plan", slot, len(parts))
		}
		parts[slot] = part.Sums
	}
	chosen, total, err := f.Params.solve(ctx, dev, &plan, parts)
	if err != nil {
		return err
	}
	emit(*chosen)
	emitTotal(partialSums{total})
	return nil
}

// solve implements solveFn, given the sums of all slots. An element of parts is nil if its fold has no rows.
func (p Params) solve(ctx context.Context, dev backend.Device, plan *fitPlan, parts []*sums.Sums) (*chosenModel, *sums.Sums, error) {
	best, lambda := 0, p.Lambdas[0]
	var scores []Score
	if len(plan.Bases)*len(p.Lambdas) > 1 {
		minMSE := math.Inf(1)
		for i := range plan.Bases {
			list, err := p.validate(ctx, dev, plan, i, parts[i*p.Folds:(i+1)*p.Folds])
			if err != nil {
				return nil, nil, err
			}
			for _, s := range list {
				if s.Fault == "" && s.MSE < minMSE {
					best, lambda, minMSE = i, s.Lambda, s.MSE
				}
			}
			scores = append(scores, list...)
		}
		if math.IsInf(minMSE, 1) {
			return nil, nil, fmt.Errorf("pipeline: no candidate could be solved; the error of the first candidate: %s", scores[0].Fault)
		}
	}
	total, err := mergeFolds(parts[best*p.Folds:(best+1)*p.Folds], -1)
	if err != nil {
		return nil, nil, err
	}
	if total.Rows != plan.Rows {
		return nil, nil, fmt.Errorf("pipeline: the files have changed between two passes: they had %d rows, then %d", plan.Rows, total.Rows)
	}
	sol, err := p.problem(plan, best, lambda).Solve(ctx, dev, total, solvers.StreamParams{Tol: p.Tol})
	if err != nil {
		return nil, nil, fmt.Errorf("pipeline: %w", err)
	}
	chosen := &chosenModel{Candidate: best, Lambda: lambda, Solution: *sol, Rows: total.Rows, Scores: scores, Residual: sol.Residual}
	chosen.setMSE(sol.Squares)
	return chosen, total, nil
}

// posterior returns the posterior of the model, given the sums over all rows.
func (p Params) posterior(ctx context.Context, plan *fitPlan, s *chosenModel, total *sums.Sums) (*solvers.Posterior, error) {
	dev, err := device(p.Device)
	if err != nil {
		return nil, err
	}
	squares := make([]float64, len(s.MSE))
	for j, v := range s.MSE {
		squares[j] = v * float64(s.Rows)
	}
	q, err := p.problem(plan, s.Candidate, s.Lambda).Posterior(ctx, dev, total, &s.Solution, squares, p.UnitScale)
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	return q, nil
}

func (s *chosenModel) setMSE(squares []float64) {
	s.MSE = make([]float64, len(squares))
	for j, v := range squares {
		s.MSE[j] = v / float64(s.Rows)
	}
}

// mergeFolds merges the sums of all folds except one.
func mergeFolds(folds []*sums.Sums, excluded int) (*sums.Sums, error) {
	total := &sums.Sums{}
	for k, s := range folds {
		if s == nil || k == excluded {
			continue
		}
		if err := total.Merge(s); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// validate scores every λ for one kernel, by the squared errors that the sums over a fold determine.
func (p Params) validate(ctx context.Context, dev backend.Device, plan *fitPlan, candidate int, folds []*sums.Sums) ([]Score, error) {
	scores := make([]Score, len(p.Lambdas))
	for i, lambda := range p.Lambdas {
		scores[i] = Score{Kernel: plan.Kernels[candidate], Lambda: lambda}
	}
	for k, heldOut := range folds {
		if heldOut == nil {
			continue
		}
		train, err := mergeFolds(folds, k)
		if err != nil {
			return nil, err
		}
		if train.Rows == 0 {
			return nil, errors.New("pipeline: all rows fell into one fold: there are too few distinct rows for cross-validation")
		}
		for i := range scores {
			problem := p.problem(plan, candidate, scores[i].Lambda)
			sol, err := problem.Solve(ctx, dev, train, solvers.StreamParams{Tol: p.Tol})
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			var squares []float64
			if err == nil {
				squares, err = problem.Squares(heldOut, sol)
			}
			if err != nil {
				scores[i].Fault = err.Error()
				continue
			}
			for _, v := range squares {
				scores[i].MSE += v / float64(plan.Rows) / float64(plan.Targets)
			}
		}
	}
	return scores, nil
}
