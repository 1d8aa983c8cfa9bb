package learners

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
)

// task is one Fit of a learner that has a loop of its own.
type task struct {
	run.Frame
	reported float64
}

// newTask refuses a context that is done and work that takes more memory on the
// device than it may.
func newTask(ctx context.Context, dev backend.Device, o Options, learner string, rows int, bytes func(rows int) int64) (*task, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := budget(ctx, dev, o, learner, rows, bytes); err != nil {
		return nil, err
	}
	t := &task{Frame: run.New(ctx, dev, nil), reported: -1}
	t.Progress = newProgress(o)
	return t, nil
}

// at says that the work has come to a fraction of the whole, a thousand times
// at most, and returns why it must stop, if it must.
func (t *task) at(stage string, fraction float64) error {
	if fraction >= t.reported+1e-3 || fraction == 1 {
		t.reported = fraction
		t.Progress.Report(stage, fraction)
	}
	if t.Ctx.Err() != nil {
		return context.Cause(t.Ctx)
	}
	return nil
}

// aside runs f, which cannot be stopped, on another goroutine, and does not wait
// for it once ctx is done. What f writes must not be used then. A panic of f is one
// of the caller's, who may be able to recover.
func aside(ctx context.Context, f func() bool) (bool, error) {
	type outcome struct {
		ok    bool
		fault any
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.fault = recover()
			done <- o
		}()
		o.ok = f()
	}()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case o := <-done:
		if o.fault != nil {
			panic(o.fault)
		}
		return o.ok, nil
	}
}
