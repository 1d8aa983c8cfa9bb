//go:build cuda

package cuctx

import (
	"errors"
	"fmt"
	"runtime"

	"gorgonia.org/cu"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda"
)

// Open returns a Mercer device that works in ctx, a context that something else
// has made and goes on using, with a stream of its own. ctx is kept from the
// garbage collector, which would destroy it, as long as the device or anything
// made by it is reachable, and must not be closed before the device is.
//
// ctx must be running its work: NewContext sees to that, others need Run.
func Open(ctx *cu.Ctx, c backend.Config) (backend.Device, error) {
	if ctx == nil {
		return nil, errors.New("cuctx: open: the context is nil")
	}
	var dev backend.Device
	err := ctx.Do(func() error { // on the context's own thread
		number, err := cu.CurrentDevice()
		if err != nil {
			return fmt.Errorf("cuctx: open: %w", err)
		}
		dev, err = cuda.OpenCurrent(int(number), ctx, c)
		return err
	})
	runtime.KeepAlive(ctx)
	return dev, err
}

// Matrix returns the row-major matrix at ptr, rows stride elements apart, in the
// memory of the context that Open was given; nothing is copied, and Free does
// nothing. It waits until all that was queued in the context so far is done. The
// caller calls dev.Sync before something else reads what Mercer has written, and
// keeps the memory until then.
func Matrix[T backend.Float](dev backend.Device, ptr cu.DevicePtr, rows, cols, stride int) (backend.Matrix[T], error) {
	return cuda.Wrap[T](dev, uintptr(ptr), rows, cols, stride)
}
