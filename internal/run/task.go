package run

import (
	"context"

	"github.com/mercer-go/mercer/backend"
)

// Task is a Frame for a call that runs a loop on the host and reports its progress by the method Step.
type Task struct {
	Frame
	Trace    func(Epoch) // called after each epoch; may be nil
	reported float64
	traced   int // number of the last traced epoch
}

// Epoch is the state of a fit after a pass over the samples or a step of its solver.
type Epoch struct {
	Number   int     `json:"epoch"`              // number of the epoch; 0 is the state before the first epoch
	Mistakes *int    `json:"mistakes,omitempty"` // mistakes of the epoch; nil for learners that do not count them
	Loss     float64 `json:"loss"`               // the objective at the end of the epoch
}

// Traced passes e to Trace if e.Number exceeds the number of the last traced epoch.
func (t *Task) Traced(e Epoch) {
	if t.Trace != nil && e.Number > t.traced {
		t.traced = e.Number
		t.Trace(e)
	}
}

// NewTask returns the task of a call on dev. It reports the progress to notify, which may be nil.
func NewTask(ctx context.Context, dev backend.Device, notify func(stage string, fraction float64)) *Task {
	t := &Task{Frame: New(ctx, dev, nil), reported: -1, traced: -1}
	t.Progress = NewProgress(notify, nil, 1)
	return t
}

// Step reports the completed fraction of the work, at most a thousand times in all, and returns an
// error if the work must stop.
func (t *Task) Step(stage string, fraction float64) error {
	if fraction >= t.reported+1e-3 || fraction == 1 {
		t.reported = fraction
		t.Progress.Report(stage, fraction)
	}
	return t.Stopped()
}

// Stopped returns an error if the work must stop.
func (t *Task) Stopped() error {
	if t.Ctx.Err() != nil {
		return context.Cause(t.Ctx)
	}
	return nil
}

// Detached runs f, which cannot be stopped, on another goroutine. If ctx is done first, Detached returns without
// waiting, and the results of f must not be used. A panic of f is raised again in the caller.
func Detached(ctx context.Context, f func() bool) (bool, error) {
	type outcome struct {
		ok         bool
		panicValue any
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicValue = recover()
			done <- o
		}()
		o.ok = f()
	}()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case o := <-done:
		if o.panicValue != nil {
			panic(o.panicValue)
		}
		return o.ok, nil
	}
}

// Placed calls f with x and y as matrices on the device, and waits for the work that f has queued.
func Placed(b backend.Backend[float64], x, y backend.Host[float64], f func(x, y backend.Matrix[float64]) error) error {
	mx, err := backend.Place(b, x)
	if err != nil {
		return err
	}
	defer mx.Free()
	my, err := backend.Place(b, y)
	if err != nil {
		return err
	}
	defer my.Free()
	if err := f(mx, my); err != nil {
		return err
	}
	return b.Sync()
}
