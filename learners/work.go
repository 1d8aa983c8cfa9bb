package learners

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/solvers"
)

// budget reports the plan, or returns a *solvers.BudgetError when the learner's matrices take more
// than o.Memory or than the device has free. bytes is what it takes for a number
// of rows, and never falls as rows are added.
func budget(ctx context.Context, dev backend.Device, o Options, learner string, rows int, bytes func(rows int) int64) error {
	available, needed := run.Available(dev, o.Memory), bytes(rows)
	if needed <= available {
		run.ReportPlan(ctx, dev, needed)
		return nil
	}
	return &solvers.BudgetError{Method: solvers.Method(learner), Rows: rows, Needed: needed, Available: available, Largest: run.Largest(rows, bytes, available)}
}

// newProgress reports to o.Progress fractions that the caller knows.
func newProgress(o Options) *run.Progress {
	var notify func(stage string, fraction float64)
	if o.Progress != nil {
		notify = func(stage string, fraction float64) { o.Progress(solvers.Progress{Stage: stage, Fraction: fraction}) }
	}
	return run.NewProgress(notify, nil, 1)
}
