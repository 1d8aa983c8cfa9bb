package solvertest

import (
	"context"
	"errors"

	"github.com/mercer-go/mercer/backend"
)

// device wraps another device, hides the optional methods of its float64 backend, and can simulate faults.
type device struct {
	backend.Device
	// inject, if not nil, is called before every call that can fail, and its error is returned.
	inject func() error
	// factor is added to the diagonal of every Cholesky factor.
	factor float64
}

func (d *device) F64() backend.Backend[float64] { return &queue{d.Device.F64(), d} }

// queue has only the methods of Backend, without its optional abilities.
type queue struct {
	backend.Backend[float64]
	dev *device
}

var errFault = errors.New("a fault of the test")

func (q *queue) fault() error {
	if q.dev.inject == nil {
		return nil
	}
	return q.dev.inject()
}

func (q *queue) With(ctx context.Context, done func(float64)) backend.Backend[float64] {
	return &queue{q.Backend.With(ctx, done), q.dev}
}

func (q *queue) New(rows, cols int) (backend.Matrix[float64], error) {
	if err := q.fault(); err != nil {
		return nil, err
	}
	return q.Backend.New(rows, cols)
}

func (q *queue) Upload(dst backend.Matrix[float64], src backend.Host[float64]) error {
	if err := q.fault(); err != nil {
		return err
	}
	return q.Backend.Upload(dst, src)
}

func (q *queue) Download(dst backend.Host[float64], src backend.Matrix[float64]) error {
	if err := q.fault(); err != nil {
		return err
	}
	return q.Backend.Download(dst, src)
}

func (q *queue) Sync() error {
	if err := q.fault(); err != nil {
		return err
	}
	return q.Backend.Sync()
}

func (q *queue) ColDot(dst []float64, x, y backend.Matrix[float64]) error {
	if err := q.fault(); err != nil {
		return err
	}
	return q.Backend.ColDot(dst, x, y)
}

func (q *queue) Potrf(ul backend.Uplo, a backend.Matrix[float64]) error {
	if err := q.fault(); err != nil {
		return err
	}
	if err := q.Backend.Potrf(ul, a); err != nil {
		return err
	}
	if q.dev.factor != 0 {
		q.AddDiag([]float64{q.dev.factor}, a)
	}
	return nil
}
