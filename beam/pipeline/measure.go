package pipeline

import (
	"context"
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/beam/internal/sums"
)

// measureFn sums the residuals of a solution over a piece. Its key is the group of the piece.
type measureFn struct {
	Params Params
	group  bundleGroup
}

func (f *measureFn) StartBundle(context.Context, fitPlan, chosenModel, func(int, partialSums)) {
	f.group = bundleGroup{}
}

func (f *measureFn) ProcessElement(ctx context.Context, p filePiece, plan fitPlan, chosen chosenModel, emit func(int, partialSums)) (err error) {
	defer markUserError(&err)
	dev, err := device(f.Params.Device)
	if err != nil {
		return err
	}
	m, err := sums.NewMeasurer(dev, f.Params.problem(&plan, chosen.Candidate, chosen.Lambda), &chosen.Solution)
	if err != nil {
		return err
	}
	defer m.Free()
	par := f.Params
	par.Folds = 1
	err = p.rows(ctx, par, &plan, func(x, y backend.Host[float64], _ []uint64) error {
		if err := m.Add(x, y); err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	s, err := m.Take()
	if err != nil {
		return err
	}
	partsMade.Inc(ctx, 1)
	emit(f.group.groupOf(p), partialSums{s})
	return nil
}

func dropKey(_ int, p partialSums) partialSums { return p }

// judgeFn computes the residual of a solution. If Correct is set, judgeFn also corrects the solution.
type judgeFn struct {
	Params  Params
	Correct bool
}

func (f *judgeFn) ProcessElement(ctx context.Context, chosen chosenModel, plan fitPlan, total, measured partialSums, emit func(chosenModel)) (err error) {
	defer markUserError(&err)
	dev, err := device(f.Params.Device)
	if err != nil {
		return err
	}
	problem := f.Params.problem(&plan, chosen.Candidate, chosen.Lambda)
	residual, err := problem.Measure(ctx, dev, total.Sums, measured.Sums, &chosen.Solution, f.Params.Tol)
	if err != nil {
		return fmt.Errorf("pipeline: %w", err)
	}
	if f.Correct {
		corrected, err := problem.Correct(ctx, dev, total.Sums, &chosen.Solution, residual)
		if err != nil {
			return fmt.Errorf("pipeline: %w", err)
		}
		chosen.Solution = *corrected
		emit(chosen)
		return nil
	}
	chosen.Measured, chosen.Residual = true, residual.Residual
	chosen.setMSE(residual.Squares)
	if !(residual.Residual <= f.Params.Tol) {
		return fmt.Errorf("pipeline: the relative residual is %.2g, above the tolerance %.2g: raise lambda, the tolerance, or the number of passes above %d", residual.Residual, f.Params.Tol, f.Params.Passes)
	}
	emit(chosen)
	return nil
}

// measure adds the passes over the samples to the pipeline. Each pass measures the residual of the solution, and all
// but the last pass correct the solution.
func measure(s beam.Scope, p Params, pieces, plan, chosen, total beam.PCollection) beam.PCollection {
	for pass := range p.Passes {
		s := s.Scope(fmt.Sprintf("pass %d", pass+1))
		current := chosen
		grouped := spread(s, p, pieces, func(s beam.Scope, pieces beam.PCollection) beam.PCollection {
			return beam.CombinePerKey(s, &mergeFn{}, beam.ParDo(s, &measureFn{Params: p}, pieces, beam.SideInput{Input: plan}, beam.SideInput{Input: current}))
		})
		measured := beam.Combine(s, &mergeFn{}, beam.ParDo(s, dropKey, grouped))
		chosen = beam.ParDo(s, &judgeFn{p, pass < p.Passes-1}, chosen,
			beam.SideInput{Input: plan}, beam.SideInput{Input: total}, beam.SideInput{Input: measured})
	}
	return chosen
}
