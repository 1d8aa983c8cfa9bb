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

// Open returns a Mercer device that works in ctx. Other code has created ctx and may continue to
// use it. The device has its own stream. The device and the objects that it makes prevent the
// garbage collector from destroying ctx. The program must close the device before ctx.
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

// Matrix returns the row-major matrix at ptr, in memory of the context that was passed to Open. Its rows begin
// stride elements apart. Nothing is copied, and Free has no effect. Matrix waits for all work queued in the context
// so far. The caller must call dev.Sync before other code reads Mercer's results and before the memory is freed.
func Matrix[T backend.Float](dev backend.Device, ptr cu.DevicePtr, rows, cols, stride int) (backend.Matrix[T], error) {
	return cuda.Wrap[T](dev, uintptr(ptr), rows, cols, stride)
}
