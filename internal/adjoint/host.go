package adjoint

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// These are short names for the matrix types of this package.
type (
	host   = backend.Host[float64]
	matrix = backend.Matrix[float64]
)

type work struct{ run.Frame }

func newWork(ctx context.Context, dev backend.Device) (*work, error) {
	if dev == nil {
		return nil, fmt.Errorf("no device was given")
	}
	return &work{run.New(ctx, dev, nil)}, nil
}

// A buffer is a matrix that both the host and the device use. If the device uses Go memory, they share one copy.
type buffer struct {
	w      *work
	host   host
	m      matrix
	shared bool
}

func (w *work) buffer(h host) (buffer, error) {
	if wrap, ok := w.B.(backend.Wrapper[float64]); ok {
		m := wrap.Wrap(h)
		w.Mem.Keep(m)
		return buffer{w, h, m, true}, nil
	}
	m, err := w.Mem.New(h.Rows, h.Cols)
	return buffer{w, h, m, false}, err
}

// view returns the given number of rows, starting at row first.
func (f buffer) view(first, rows int) buffer {
	return buffer{f.w, f.host.View(first, 0, rows, f.host.Cols), f.m.View(first, 0, rows, f.host.Cols), f.shared}
}

// download waits for the queued work and copies the device's values to the host. Neither download nor upload
// copies if host and device share the memory.
func (f buffer) download() error {
	if f.shared {
		return f.w.B.Sync()
	}
	return f.w.B.Download(f.host, f.m)
}

func (f buffer) upload() error {
	if f.shared {
		return nil
	}
	return f.w.B.Upload(f.m, f.host)
}

// checkMatrix returns an error if h is malformed or contains NaN or Inf.
func checkMatrix(name string, h host) error {
	if h.Rows < 1 || h.Cols < 1 {
		return fmt.Errorf("%s is empty: %s, %s", name, count.Of(h.Rows, "row"), count.Of(h.Cols, "column"))
	}
	if h.Stride < h.Cols || (len(h.Data)-h.Cols)/h.Stride < h.Rows-1 || len(h.Data) < h.Cols {
		return fmt.Errorf("%s: a %d×%d matrix with stride %d does not fit in %s", name, h.Rows, h.Cols, h.Stride, count.Of(len(h.Data), "element"))
	}
	for i := range h.Rows {
		for j, v := range h.Row(i) {
			if v-v != 0 {
				return fmt.Errorf("%s: row %d, column %d is %v", name, i+1, j+1, v)
			}
		}
	}
	return nil
}

// checkPoints checks x as checkMatrix does, and that it has d features with valid values for the kernel.
func checkPoints(k kernels.Kernel, name string, x host, d int) error {
	if err := checkMatrix(name, x); err != nil {
		return err
	}
	if x.Cols != d {
		return fmt.Errorf("%s has %s, x has %d", name, count.Of(x.Cols, "feature"), d)
	}
	if k == nil {
		return fmt.Errorf("the kernel is nil")
	}
	if err := k.Check(d); err != nil {
		return err
	}
	return backend.CheckPoints(k, name, x)
}

func checkRows(name string, h host, rows int, reference string) error {
	if err := checkMatrix(name, h); err != nil {
		return err
	}
	if h.Rows != rows {
		return fmt.Errorf("%s has %s, %s has %d", name, count.Of(h.Rows, "row"), reference, rows)
	}
	return nil
}

func checkLambda(lambda float64) error {
	if !(lambda >= 0) || math.IsInf(lambda, 1) {
		return fmt.Errorf("lambda must be a finite number ≥ 0, got %v", lambda)
	}
	return nil
}

// wrapError adds the name of a function of this package to an error.
func wrapError(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("adjoint: %s: %w", operation, err)
}
