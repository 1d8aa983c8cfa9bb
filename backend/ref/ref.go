// Package ref is a complete backend in plain loops: the oracle with which other backends are compared, and the
// template for a new backend.
//
// ref is slow and simple. Three choices make it an oracle:
//
//   - sums are accumulated in float64 in both precisions: a float32 element is
//     rounded once, when it is stored;
//   - distances are sums of squared or absolute differences, feature by
//     feature, and never ‖x‖² + ‖z‖² − 2xᵀz: nothing cancels;
//   - every loop runs in the order of the formula in the interface's comment.
//
// Importing package ref registers the driver "ref" with one device, "ref". Open opens it only by its name. Methods
// do all work in the caller's goroutine before they return. The queue records only canceled contexts and
// *backend.RangeErrors as failures.
package ref

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/check"
)

// defaultMemory is the limit of a device with Config.Memory 0.
const defaultMemory = 1 << 30

const name = "ref"

func init() { backend.Register(driver{}, backend.NotAutomatic) }

type driver struct{}

func (driver) Name() string { return name }

func (driver) Candidates() []backend.Candidate {
	return []backend.Candidate{{Info: info(defaultMemory)}}
}

// Open opens the device. Config.Threads is not used: ref has no workers.
func (driver) Open(suffix string, c backend.Config) (backend.Device, error) {
	if suffix != "" {
		return nil, fmt.Errorf("%w: %s has no device %q", backend.ErrUnavailable, name, suffix)
	}
	limit := c.Memory
	if limit == 0 {
		limit = defaultMemory
	}
	d := &device{limit: limit}
	d.f32 = &queue[float32]{dev: d, work: &work{}}
	d.f64 = &queue[float64]{dev: d, work: &work{}}
	return d, nil
}

func info(limit int64) backend.Info {
	return backend.Info{
		Device:      name,
		Processor:   runtime.GOARCH,
		Instruction: "plain Go",
		Threads:     1,
		Memory:      limit,
	}
}

// device implements backend.Device. Its mutex guards the counts of bytes.
type device struct {
	limit       int64
	f32         *queue[float32]
	f64         *queue[float64]
	mu          sync.Mutex
	inUse, peak int64 // bytes in use, and their maximum so far
	closed      bool
}

func (d *device) Info() backend.Info            { return info(d.limit) }
func (d *device) F32() backend.Backend[float32] { return d.f32 }
func (d *device) F64() backend.Backend[float64] { return d.f64 }

func (d *device) Narrow(dst backend.Matrix[float32], src backend.Matrix[float64]) {
	convert(d, "Narrow", dst, src)
}

func (d *device) Widen(dst backend.Matrix[float64], src backend.Matrix[float32]) {
	convert(d, "Widen", dst, src)
}

func convert[D, S backend.Float](d *device, op string, dst backend.Matrix[D], src backend.Matrix[S]) {
	check.SameDims(op, dst, src)
	to, from := gridOf(d, op, dst), gridOf(d, op, src)
	for i := range to.rows {
		for j := range to.cols {
			to.data[i*to.rs+j] = D(from.data[i*from.rs+j])
		}
	}
}

func (d *device) InUse() (inUse, peak int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inUse, d.peak
}

// Sync returns nil: all work is finished, and a canceled context concerns only its caller.
func (d *device) Sync() error { return nil }

func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed, d.inUse = true, 0
	return nil
}

var errClosed = errors.New("backend: ref: new matrix: the device has been closed")

// reserve adds the bytes of a matrix to the bytes in use, and returns the matrix's bytes.
func (d *device) reserve(rows, cols int, size int64) (int64, error) {
	// rows·cols·size may overflow int64; comparing with the quotient avoids the overflow.
	bytes := int64(math.MaxInt64)
	if cols == 0 || int64(rows) <= math.MaxInt64/size/int64(cols) {
		bytes = int64(rows) * int64(cols) * size
	}
	return bytes, d.reserveBytes(bytes)
}

// reserveBytes adds bytes to the bytes in use. It fails if their sum exceeds the limit.
func (d *device) reserveBytes(bytes int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errClosed
	}
	if free := d.limit - d.inUse; bytes > free {
		return &backend.MemoryError{Device: name, Requested: bytes, Free: free}
	}
	d.inUse += bytes
	d.peak = max(d.peak, d.inUse)
	return nil
}

func (d *device) release(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.inUse -= bytes
	}
}

func sizeof[T backend.Float]() int64 {
	var t T
	return int64(unsafe.Sizeof(t))
}
