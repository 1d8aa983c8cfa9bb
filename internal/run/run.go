// Package run provides the frame of a long call: its context, the queues of the device with this
// context, its device memory, and its progress.
package run

import (
	"context"
	"math"
	"sort"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/planned"
)

// Frame holds the context, the device, the queues, the memory and the progress of a call.
type Frame struct {
	Ctx      context.Context
	Dev      backend.Device
	B        backend.Backend[float64] // queue that has the context Ctx and counts operations for the progress
	B32      backend.Backend[float32] // like B, for float32
	Mem      *Arena
	Progress *Progress
}

// New returns the frame of a call on dev; progress may be nil.
func New(ctx context.Context, dev backend.Device, progress *Progress) Frame {
	var countFlops func(flops float64)
	if progress != nil {
		countFlops = progress.Done
	}
	f := Frame{Ctx: ctx, Dev: dev, B: dev.F64().With(ctx, countFlops), B32: dev.F32().With(ctx, countFlops), Progress: progress}
	f.Mem = NewArena(dev, f.B)
	return f
}

// Timed runs one stage. It waits for the work of the stage and adds the time of the stage to seconds.
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

// Arena allocates matrices on the device and measures the memory that they take. It records them,
// so that one deferred call frees all of them.
type Arena struct {
	dev               backend.Device
	b                 backend.Backend[float64]
	allocated         []Releaser
	bytesBefore, peak int64 // bytesBefore: bytes in use when the work began; peak: largest increase measured since then
	peakBefore        int64 // the peak of the device's memory use when the work began
}

// Releaser is a matrix of any precision and storage.
type Releaser interface{ Free() }

// NewArena returns an arena for matrices of b. The arena does not count the memory that is already in use on dev.
func NewArena(dev backend.Device, b backend.Backend[float64]) *Arena {
	inUse, peak := dev.InUse()
	return &Arena{dev: dev, b: b, bytesBefore: inUse, peakBefore: peak}
}

// New returns a matrix of zeros in float64.
func (m *Arena) New(rows, cols int) (backend.Matrix[float64], error) {
	return NewMatrix(m, m.b, rows, cols)
}

// NewMatrix is Arena.New in the precision of b.
func NewMatrix[T backend.Float](m *Arena, b backend.Backend[T], rows, cols int) (backend.Matrix[T], error) {
	a, err := b.New(rows, cols)
	if err != nil {
		return nil, err
	}
	m.Keep(a)
	return a, nil
}

// Place returns h as a matrix on the device for reading, without a copy if possible.
func (m *Arena) Place(h backend.Host[float64]) (backend.Matrix[float64], error) {
	a, err := backend.Place(m.b, h)
	if err != nil {
		return nil, err
	}
	m.Keep(a)
	return a, nil
}

// Keep records a until it is freed.
func (m *Arena) Keep(a Releaser) {
	m.allocated = append(m.allocated, a)
	inUse, _ := m.dev.InUse()
	m.peak = max(m.peak, inUse-m.bytesBefore)
}

// Free frees a before the end of the work. a may be nil.
func (m *Arena) Free(a Releaser) {
	for i, l := range m.allocated {
		if l == a {
			m.allocated = append(m.allocated[:i], m.allocated[i+1:]...)
			a.Free()
			return
		}
	}
}

// FreeAll frees all recorded matrices.
func (m *Arena) FreeAll() {
	for _, a := range m.allocated {
		a.Free()
	}
	m.allocated = nil
}

// PeakBytes returns the peak device memory of the work, in bytes. The result is exact if the work has increased
// the peak of the device's memory use. Otherwise it is the largest use that was measured after an allocation.
func (m *Arena) PeakBytes() int64 {
	if _, peak := m.dev.InUse(); peak > m.peakBefore {
		return max(m.peak, peak-m.bytesBefore)
	}
	return m.peak
}

// Available returns the number of bytes that a call may take on dev: the free memory, but at most limit if limit > 0.
func Available(dev backend.Device, limit int64) int64 {
	inUse, _ := dev.InUse()
	available := max(dev.Info().Memory-inUse, 0)
	if limit > 0 {
		available = min(available, limit)
	}
	return available
}

// Allowed returns the memory budget, in bytes, for the choice of a method. For most devices it is the result of
// Available. For a device with reproducible results it is limit, because the choice must not depend on the memory
// of the machine.
func Allowed(dev backend.Device, limit int64) int64 {
	switch {
	case !dev.Info().Reproducible:
		return Available(dev, limit)
	case limit > 0:
		return limit
	}
	return math.MaxInt64
}

// Largest returns the largest number of rows from 0 to rows for which bytesOf is at most available.
// bytesOf must not decrease with the number of rows.
func Largest(rows int, bytesOf func(rows int) int64, available int64) int {
	return sort.Search(rows, func(n int) bool { return bytesOf(n+1) > available })
}

// ReportPlan reports, through ctx, that a call will take the given number of bytes on dev in
// addition to the bytes in use.
func ReportPlan(ctx context.Context, dev backend.Device, bytes int64) {
	inUse, _ := dev.InUse()
	if bytes > math.MaxInt64-inUse {
		bytes = math.MaxInt64 - inUse
	}
	planned.Report(ctx, inUse+bytes)
}

// Packing returns a context for work that evaluates a kernel at n dense points of d features. Plans
// that are reported through this context include the memory in which dev packs the points.
func Packing(ctx context.Context, dev backend.Device, n, d int) context.Context {
	if p, ok := dev.(interface{ PackedBytes(n, d int) int64 }); ok {
		return planned.Workspace(ctx, p.PackedBytes(n, d))
	}
	return ctx
}

// Beside returns a context for work during which other arrays take the given number of bytes. Plans
// that are reported through this context include these bytes.
func Beside(ctx context.Context, bytes int64) context.Context { return planned.Beside(ctx, bytes) }
