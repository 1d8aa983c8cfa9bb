package backend

import (
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/host"
)

var (
	// ErrNotPosDef matches every *PivotError in errors.Is.
	ErrNotPosDef = errors.New("backend: matrix is not positive definite")
	// ErrUnavailable matches, in errors.Is, the error of Open for a device that the machine lacks.
	ErrUnavailable = errors.New("backend: device is not available")
	// ErrMemory matches every *MemoryError in errors.Is.
	ErrMemory = host.ErrMemory
)

// PivotError reports a pivot of a Cholesky factorization that is not a positive finite number.
type PivotError struct {
	Index int     // index of the pivot's row, from 0
	Value float64 // the computed square of the factor's diagonal element
}

func (e *PivotError) Error() string {
	return fmt.Sprintf("backend: matrix is not positive definite: the pivot of index %d is %g", e.Index, e.Value)
}

// Is makes errors.Is(err, ErrNotPosDef) true.
func (e *PivotError) Is(target error) bool { return target == ErrNotPosDef }

// MemoryError reports that a matrix does not fit in the remaining memory of the device.
type MemoryError struct {
	Device          string
	Requested, Free int64 // in bytes
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("backend: out of memory: %s: a matrix of %d bytes was requested, %d bytes are free, enough for a square float64 matrix of order %d, or of order %d in packed storage",
		e.Device, e.Requested, e.Free, e.Order(), e.PackedOrder())
}

// Order returns the largest order of a square float64 matrix that fits in the free memory.
func (e *MemoryError) Order() int { return int(math.Sqrt(float64(max(e.Free, 0) / 8))) }

// PackedOrder returns the approximate order of the largest symmetric float64 matrix that fits in packed storage.
func (e *MemoryError) PackedOrder() int {
	const padding = 16 // elements of padding per row
	b := 0.5 + padding
	return int(math.Sqrt(b*b+float64(max(e.Free, 0)/8)*2) - b)
}

// Is makes errors.Is(err, ErrMemory) true.
func (e *MemoryError) Is(target error) bool { return target == ErrMemory }

// RangeError reports a kernel value outside the range of a matrix with 16 bits per element.
type RangeError struct {
	I, J      int // indices of the two points, from 0
	Value     float64
	Low, High float64
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("backend: k(x_i, x_j) for i = %d and j = %d is %v, outside the range from %v to %v: it cannot be stored in 16 bits", e.I, e.J, e.Value, e.Low, e.High)
}
