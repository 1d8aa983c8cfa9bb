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

func (f *measureFn) ProcessElement(ctx context.Context, p filePiece, plan fitPlan, solved chosenModel, emit func(int, partialSums)) (err error) {
	defer markUserError(&err)
	dev, err := device(f.Params.Device)
	if err != nil {
		return err
	}
	m, err := sums.NewMeasurer(dev, f.Params.problem(&plan, solved.Candidate, solved.Lambda), &solved.Solution)
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
	emit(f.group.of(p), partialSums{s})
	return nil
}

func dropKey(_ int, p partialSums) partialSums { return p }

// judgeFn computes the residual of a solution. If Correct is set, judgeFn also corrects the
// solution.
type judgeFn struct {
	Params  Params
	Correct bool
}

func (f *judgeFn) ProcessElement(ctx context.Context, solved chosenModel, plan fitPlan, total, measured partialSums, emit func(chosenModel)) (err error) {
	defer markUserError(&err)
	dev, err := device(f.Params.Device)
	if err != nil {
		return err
	}
	problem := f.Params.problem(&plan, solved.Candidate, solved.Lambda)
	left, err := problem.Measure(ctx, dev, total.Sums, measured.Sums, &solved.Solution, f.Params.Tol)
	if err != nil {
		return fmt.Errorf("pipeline: %w", err)
	}
	if f.Correct {
		better, err := problem.Correct(ctx, dev, total.Sums, &solved.Solution, left)
		if err != nil {
			return fmt.Errorf("pipeline: %w", err)
		}
		solved.Solution = *better
		emit(solved)
		return nil
	}
	solved.Measured, solved.Residual = true, left.Residual
	solved.setMSE(left.Squares)
	if !(left.Residual <= f.Params.Tol) {
		return fmt.Errorf("pipeline: the relative residual is %.2g, above the tolerance %.2g: raise lambda, the tolerance, or the number of passes above %d", left.Residual, f.Params.Tol, f.Params.Passes)
	}
	emit(solved)
	return nil
}

// measure adds the passes over the samples. Each pass measures the residual of the solution, and
// all passes but the last correct the solution.
func measure(s beam.Scope, p Params, pieces, plan, solved, total beam.PCollection) beam.PCollection {
	for pass := range p.Passes {
		s := s.Scope(fmt.Sprintf("pass %d", pass+1))
		at := solved
		grouped := spread(s, p, pieces, func(s beam.Scope, pieces beam.PCollection) beam.PCollection {
			return beam.CombinePerKey(s, &mergeFn{}, beam.ParDo(s, &measureFn{Params: p}, pieces, beam.SideInput{Input: plan}, beam.SideInput{Input: at}))
		})
		measured := beam.Combine(s, &mergeFn{}, beam.ParDo(s, dropKey, grouped))
		solved = beam.ParDo(s, &judgeFn{p, pass < p.Passes-1}, solved,
			beam.SideInput{Input: plan}, beam.SideInput{Input: total}, beam.SideInput{Input: measured})
	}
	return solved
}
