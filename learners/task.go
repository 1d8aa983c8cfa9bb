package learners

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/solvers"
)

// task is one Fit of a learner that has a loop of its own.
type task struct{ *run.Task }

// newTask refuses a context that is done and work that takes more memory on the
// device than it may.
func newTask(ctx context.Context, dev backend.Device, o Options, learner string, rows int, bytes func(rows int) int64) (*task, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := solvers.Reserve(ctx, dev, o.Memory, solvers.Method(learner), rows, bytes); err != nil {
		return nil, err
	}
	t := run.NewTask(ctx, dev, nil)
	t.Progress = newProgress(o)
	return &task{t}, nil
}

func (t *task) at(stage string, fraction float64) error { return t.Step(stage, fraction) }

// Short names.
var (
	upload = backend.Copy[float64]
	aside  = run.Detached
)
