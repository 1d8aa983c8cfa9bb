// Package run is the frame of a long call: its context, the queues of the device
// under that context, the memory that it takes, and its progress.
package run

import (
	"context"
	"time"

	"github.com/mercer-go/mercer/backend"
)

// Frame is one call in progress.
type Frame struct {
	Ctx      context.Context
	Dev      backend.Device
	B        backend.Backend[float64] // under Ctx, counting progress
	B32      backend.Backend[float32] // the same
	Mem      *Arena
	Progress *Progress
}

// New returns the frame of a call on dev; progress may be nil.
func New(ctx context.Context, dev backend.Device, progress *Progress) Frame {
	var done func(flops float64)
	if progress != nil {
		done = progress.Done
	}
	f := Frame{Ctx: ctx, Dev: dev, B: dev.F64().With(ctx, done), B32: dev.F32().With(ctx, done), Progress: progress}
	f.Mem = NewArena(dev, f.B)
	return f
}

// Timed runs one stage: it waits for the stage's work and adds its time to seconds.
func (f *Frame) Timed(stage string, seconds *float64, body func() error) error {
	start := time.Now()
	f.Progress.Enter(stage)
	err := body()
	if err == nil {
		err = f.B.Sync()
	}
	if err == nil {
		err = f.B32.Sync()
	}
	*seconds += time.Since(start).Seconds()
	return err
}
