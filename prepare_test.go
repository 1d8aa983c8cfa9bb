package mercer_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// gated is a device whose factorizations in float64 are counted and wait for a gate.
type gated struct {
	backend.Device
	gate    chan struct{} // closed: factorizations go on
	begun   atomic.Int64
	waiting atomic.Int64
}

func (d *gated) F64() backend.Backend[float64] {
	return &gatedQueue{d.Device.F64(), d, context.Background()}
}

type gatedQueue struct {
	backend.Backend[float64]
	dev *gated
	ctx context.Context
}

func (q *gatedQueue) With(ctx context.Context, done func(float64)) backend.Backend[float64] {
	return &gatedQueue{q.Backend.With(ctx, done), q.dev, ctx}
}

func (q *gatedQueue) Potrf(ul backend.Uplo, a backend.Matrix[float64]) error {
	q.dev.begun.Add(1)
	q.dev.waiting.Add(1)
	defer q.dev.waiting.Add(-1)
	select {
	case <-q.dev.gate:
	case <-q.ctx.Done():
		return context.Cause(q.ctx)
	}
	return q.Backend.Potrf(ul, a)
}

// prepared are models whose first interval or deviation needs factorizations.
func prepared(t *testing.T, visit func(t *testing.T, dev *gated, m *mercer.Model[learners.Model], first func(context.Context) error, factorizations int64)) {
	inner, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inner.Close() })
	x, y := sine()
	two := mat.NewDense(100, 2, nil)
	two.Augment(y, y)
	for _, c := range []struct {
		learner        string
		parameters     map[string]string
		y              *mat.Dense
		std            bool
		factorizations int64
	}{
		{"kernel-ridge", map[string]string{"kernel": "gaussian(sigma=1)", "lambda": "0.1"}, y, false, 1},
		{"kernel-ridge", map[string]string{"kernel": "gaussian(sigma=1)", "lambdas": "0.1,1"}, two, false, 2},
		{"ridge", map[string]string{"lambda": "0.1", "intervals": "true"}, y, false, 1},
		{"ridge", map[string]string{"lambdas": "0.1,1", "intervals": "true"}, two, false, 2},
		{"gaussian-process", map[string]string{"kernel": "gaussian(sigma=1)", "lambda": "0.1", "optimize": "false"}, y, true, 1},
	} {
		t.Run(c.learner, func(t *testing.T) {
			dev := &gated{Device: inner, gate: make(chan struct{})}
			d, err := learners.Find(c.learner)
			if err != nil {
				t.Fatal(err)
			}
			fit, err := d.Make("", c.parameters)
			if err != nil {
				t.Fatal(err)
			}
			fitted, err := mercer.Fit(t.Context(), mercer.LearnerFunc[learners.Model](fit), x, c.y, mercer.Options{Device: inner})
			if err != nil {
				t.Fatal(err)
			}
			path := t.TempDir() + "/m.safetensors"
			if err := fitted.Save(path); err != nil {
				t.Fatal(err)
			}
			m, err := mercer.Load(path, mercer.Options{Device: dev})
			if err != nil {
				t.Fatal(err)
			}
			visit(t, dev, m, func(ctx context.Context) error {
				if c.std {
					_, err := m.Std(ctx, x)
					return err
				}
				_, _, err := m.Intervals(ctx, x, 0.9)
				return err
			}, c.factorizations)
		})
	}
}

// TestTimeoutsDoNotStarveIntervals: callers whose time is shorter than the factorization
// return in their time, and the computation goes on, once for all of them.
func TestTimeoutsDoNotStarveIntervals(t *testing.T) {
	prepared(t, func(t *testing.T, dev *gated, m *mercer.Model[learners.Model], first func(context.Context) error, factorizations int64) {
		defer m.Close()
		var group sync.WaitGroup
		for i := range 25 {
			call := first
			if i%2 == 1 {
				call = m.Prepare
			}
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
				defer cancel()
				if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a call before the gate: %v", err)
				}
			})
		}
		group.Wait()
		close(dev.gate)
		for range 3 {
			if err := first(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := dev.begun.Load(); n != factorizations {
			t.Errorf("%d factorizations, want %d", n, factorizations)
		}
	})
}

// TestCloseEndsPrepare: Close ends the computation, whether somebody waits for it or not.
func TestCloseEndsPrepare(t *testing.T) {
	prepared(t, func(t *testing.T, dev *gated, m *mercer.Model[learners.Model], first func(context.Context) error, _ int64) {
		short, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		_ = m.Prepare(short) // leaves its work behind
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				if err := first(t.Context()); !errors.Is(err, mercer.ErrClosed) {
					t.Errorf("a call that Close ended: %v", err)
				}
			})
		}
		for dev.waiting.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		m.Close()
		if n := dev.waiting.Load(); n != 0 {
			t.Errorf("%d factorizations go on after Close", n)
		}
		group.Wait()
	})
}

// TestPrepareWithNothingToDo: models without such work, and calibrated ones, are ready.
func TestPrepareWithNothingToDo(t *testing.T) {
	inner, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = inner.Close() }()
	dev := &gated{Device: inner, gate: make(chan struct{})}
	x, y := sine()
	none, err := mercer.Fit(t.Context(), learners.SVR{Kernel: kernels.Gaussian{Sigma: 1}, NoStandardize: true}, x, y, mercer.Options{Device: dev})
	if err != nil {
		t.Fatal(err)
	}
	fitted, err := learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 1, NoIntercept: true}.Fit(t.Context(), inner, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	calibrated, err := mercer.Fit(t.Context(), mercer.LearnerFunc[*learners.KernelRidgeModel](func(context.Context, backend.Device, mat.Matrix, mat.Matrix, learners.Options) (*learners.KernelRidgeModel, error) {
		return fitted, nil
	}), x, y, mercer.Options{Device: dev})
	if err != nil {
		t.Fatal(err)
	}
	if err := calibrated.Calibrate(t.Context(), x, y); err != nil {
		t.Fatal(err)
	}
	if _, _, err := calibrated.Intervals(t.Context(), x, 0.9); err != nil {
		t.Error(err)
	}
	for _, prepare := range []func(context.Context) error{none.Prepare, calibrated.Prepare} {
		if err := prepare(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := dev.begun.Load(); n != 0 {
		t.Errorf("%d factorizations", n)
	}
}
