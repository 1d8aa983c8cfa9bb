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

// Open returns a Mercer device that works in ctx, a context that other code has created and
// continues to use. The device has its own stream. As long as the device or an object made by it is
// reachable, the garbage collector does not destroy ctx. ctx must not be closed before the device.
//
// ctx must be running: cu.NewContext starts a context; other contexts need a call of Run.
func Open(ctx *cu.Ctx, c backend.Config) (backend.Device, error) {
	if ctx == nil {
		return nil, errors.New("cuctx: open: the context is nil")
	}
	var dev backend.Device
	err := ctx.Do(func() error { // runs on the context's own thread
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

// Matrix returns the row-major matrix at ptr, with rows stride elements apart, in the memory of the
// context passed to Open. Nothing is copied, and Free does nothing. Matrix waits for all work
// queued in the context so far. The caller must call dev.Sync before other code reads results of
// Mercer, and before the memory is freed.
func Matrix[T backend.Float](dev backend.Device, ptr cu.DevicePtr, rows, cols, stride int) (backend.Matrix[T], error) {
	return cuda.Wrap[T](dev, uintptr(ptr), rows, cols, stride)
}
