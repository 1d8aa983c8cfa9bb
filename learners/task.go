package learners

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/solvers"
)

// newTask returns the task of a Fit with a loop of its own. It refuses a context that is
// done and work that takes more memory on the device than it may.
func newTask(ctx context.Context, dev backend.Device, o Options, learner string, rows int, bytes func(rows int) int64) (*run.Task, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := solvers.Reserve(ctx, dev, o.Memory, solvers.Method(learner), rows, bytes); err != nil {
		return nil, err
	}
	t := run.NewTask(ctx, dev, nil)
	t.Progress, t.Trace = newProgress(o), o.Trace
	return t, nil
}

// newProgress reports to o.Progress fractions that the caller knows.
func newProgress(o Options) *run.Progress {
	var notify func(stage string, fraction float64)
	if o.Progress != nil {
		notify = func(stage string, fraction float64) { o.Progress(solvers.Progress{Stage: stage, Fraction: fraction}) }
	}
	return run.NewProgress(notify, nil, 1)
}
