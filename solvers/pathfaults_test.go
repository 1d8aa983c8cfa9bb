package solvers_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// faulty is a device without optional abilities. The float64 call with the number faultCall returns an error.
type faulty struct {
	backend.Device
	faultCall int64
	calls     atomic.Int64
}

type faultyQueue struct {
	backend.Backend[float64]
	dev *faulty
}

var errFaulty = errors.New("a fault of the test")

func (d *faulty) F64() backend.Backend[float64] { return &faultyQueue{d.Device.F64(), d} }

func (q *faultyQueue) fault() error {
	if q.dev.calls.Add(1) == q.dev.faultCall {
		return errFaulty
	}
	return nil
}

func (q *faultyQueue) With(ctx context.Context, done func(float64)) backend.Backend[float64] {
	return &faultyQueue{q.Backend.With(ctx, done), q.dev}
}

func (q *faultyQueue) New(rows, cols int) (backend.Matrix[float64], error) {
	if err := q.fault(); err != nil {
		return nil, err
	}
	return q.Backend.New(rows, cols)
}

func (q *faultyQueue) Upload(dst backend.Matrix[float64], src backend.Host[float64]) error {
	if err := q.fault(); err != nil {
		return err
	}
	return q.Backend.Upload(dst, src)
}

func (q *faultyQueue) Download(dst backend.Host[float64], src backend.Matrix[float64]) error {
	if err := q.fault(); err != nil {
		return err
	}
	return q.Backend.Download(dst, src)
}

func (q *faultyQueue) Sync() error {
	if err := q.fault(); err != nil {
		return err
	}
	return q.Backend.Sync()
}

func (q *faultyQueue) ColDot(dst []float64, x, y backend.Matrix[float64]) error {
	if err := q.fault(); err != nil {
		return err
	}
	return q.Backend.ColDot(dst, x, y)
}

func (q *faultyQueue) Potrf(ul backend.Uplo, a backend.Matrix[float64]) error {
	if err := q.fault(); err != nil {
		return err
	}
	return q.Backend.Potrf(ul, a)
}

// TestPathFaults makes each call that can fail return an error. The function must return it and free all memory.
func TestPathFaults(t *testing.T) {
	rng := pathRandom(t)
	gaussian := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 2}, X: normals(rng, 70, 2), Y: normals(rng, 70, 1), Weights: constant(70, 2)}
	linear := solvers.Problem{Kernel: kernels.Linear{}, X: normals(rng, 90, 70), Y: normals(rng, 90, 2), Intercept: true}
	noisy := gaussian
	noisy.Lambda = 0.1
	path := func(p solvers.Problem, par solvers.PathParams) func(backend.Device) error {
		return func(dev backend.Device) error {
			_, err := solvers.SolvePath(context.Background(), dev, p, []float64{0.1, 1}, par)
			return err
		}
	}
	for name, run := range map[string]func(backend.Device) error{
		"band":     path(gaussian, solvers.PathParams{Method: solvers.Band, LeaveOneOut: true}),
		"gcv":      path(gaussian, solvers.PathParams{Method: solvers.Band}),
		"primal":   path(linear, solvers.PathParams{Method: solvers.Primal, LeaveOneOut: true}),
		"cholesky": path(gaussian, solvers.PathParams{Method: solvers.Dual, LeaveOneOut: true}),
		"evidence": func(dev backend.Device) error {
			_, err := solvers.LogEvidence(context.Background(), dev, noisy, solvers.EvidenceParams{Gradient: true})
			return err
		},
		"uncertainty": func(dev backend.Device) error {
			u, err := solvers.NewUncertainty(context.Background(), dev, noisy, 0)
			if err == nil {
				_, err = u.Variance(context.Background(), dev, noisy.X, 0)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inner := backendtest.Device(t, "cpu")
			failed := 0
			for faultCall := int64(1); ; faultCall++ {
				dev := &faulty{Device: inner, faultCall: faultCall}
				err := run(dev)
				if now, _ := inner.InUse(); now != 0 {
					t.Fatalf("call %d failed: %d bytes are left", faultCall, now)
				}
				if err == nil {
					if dev.calls.Load() >= faultCall {
						t.Fatalf("call %d of the device failed, but the function returned no error", faultCall)
					}
					break
				}
				if !errors.Is(err, errFaulty) {
					t.Fatalf("call %d failed: %v", faultCall, err)
				}
				failed++
			}
			if failed < 10 {
				t.Errorf("only %d calls can fail", failed)
			}
		})
	}
}

func constant(n int, v float64) []float64 {
	c := make([]float64, n)
	for i := range c {
		c[i] = v
	}
	return c
}
