package cuda

import (
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
)

// OpenCurrent opens device number ordinal in the context that is current on the calling thread, which the program
// has created with the driver's or the runtime's API, in Go or in another language. The caller must lock its
// goroutine to the thread for this call. Afterwards the device works in that context on its own thread and stream,
// and allocates its memory there, so that the device and the program can share memory (see Wrap).
//
// The device does not own the context: the context must live until the device has been closed, and
// Close does not destroy it. The device and its objects refer to owner, so that Go's garbage
// collector does not free owner while they are reachable; owner may be nil.
func OpenCurrent(ordinal int, owner any, c backend.Config) (backend.Device, error) {
	api, err := library()
	if err != nil {
		return nil, fmt.Errorf("%w: cuda: %w", backend.ErrUnavailable, err)
	}
	context, err := api.Current()
	if err == nil && context == 0 {
		err = errors.New("no context is current on this thread")
	}
	if err != nil {
		return nil, unavailable(ordinal, err)
	}
	p, err := probe(api, ordinal)
	if err != nil {
		return nil, unavailable(ordinal, err)
	}
	d, err := openIn(api, p, ordinal, context, c)
	if err != nil {
		return nil, unavailable(ordinal, err)
	}
	d.borrowed, d.owner = true, owner
	if err := d.prepare(ordinal, c); err != nil {
		return nil, err
	}
	return d, nil
}

// Wrap returns a rows × cols row-major matrix in memory that the program has allocated at the
// address ptr of dev's context. Consecutive rows are stride elements apart. Free does nothing.
//
// Wrap waits for all work that is queued in the context so far, because streams do not wait for
// each other. If the caller queues work later, it must wait for that work before it passes the
// matrix to Mercer, and must call dev.Sync before it reads results that Mercer has written.
func Wrap[T backend.Float](dev backend.Device, ptr uintptr, rows, cols, stride int) (backend.Matrix[T], error) {
	d, ok := dev.(*device)
	switch {
	case !ok:
		return nil, fmt.Errorf("cuda: wrap: %T is not a device of this package", dev)
	case d.closed.Load():
		return nil, fmt.Errorf("cuda: wrap: %s has been closed", d.name)
	case rows < 0 || cols < 0 || stride < max(cols, 1) || max(rows, stride) > math.MaxInt32:
		return nil, fmt.Errorf("cuda: wrap: bad matrix: %d×%d with stride %d", rows, cols, stride)
	case rows > 0 && cols > 0 && ptr == 0:
		return nil, errors.New("cuda: wrap: the address is 0")
	case ptr%uintptr(sizeOf[T]()) != 0:
		return nil, fmt.Errorf("cuda: wrap: the address %#x is not a multiple of the element size, %d bytes", ptr, sizeOf[T]())
	}
	var err error
	d.exec.do(func() { err = d.api.Synchronize() })
	if err != nil {
		return nil, d.checked("wrap", err)
	}
	return &matrix[T]{device: d, ptr: driver.DevicePtr(ptr), rows: rows, cols: cols, stride: stride}, nil
}
