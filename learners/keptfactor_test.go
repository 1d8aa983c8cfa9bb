package learners_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// counting is a device that counts the factorizations in float64.
type counting struct {
	backend.Device
	name    string
	factors atomic.Int64
}

func (d *counting) F64() backend.Backend[float64] { return &countingQueue{d.Device.F64(), d} }

func (d *counting) Info() backend.Info {
	info := d.Device.Info()
	info.Device += d.name
	return info
}

type countingQueue struct {
	backend.Backend[float64]
	dev *counting
}

func (q *countingQueue) With(ctx context.Context, done func(float64)) backend.Backend[float64] {
	return &countingQueue{q.Backend.With(ctx, done), q.dev}
}

func (q *countingQueue) Potrf(ul backend.Uplo, a backend.Matrix[float64]) error {
	q.dev.factors.Add(1)
	return q.Backend.Potrf(ul, a)
}

// TestVarianceKeepsItsFactor checks that any number of calls of Variance, from one goroutine or from many, use one
// factorization, for a fitted and for a loaded model. After DropFactor, and for a second device, the model
// computes one more factorization.
func TestVarianceKeepsItsFactor(t *testing.T) {
	x, y := processData(21, 60)
	queries, _ := processData(22, 300)
	t.Log("seeds 21, 22")
	// tol is 100 times the unit roundoff times the condition number.
	const tol = 100 * 0x1p-52 * 60 / 0.1
	eachDevice(t, func(t *testing.T, inner backend.Device) {
		fitted, err := learners.GaussianProcess{Kernel: kernels.Gaussian{Sigma: 2}, Lambda: 0.1, Fixed: true}.Fit(t.Context(), inner, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		restored, err := learners.Restore(fitted.State())
		if err != nil {
			t.Fatal(err)
		}
		want, err := fitted.Variance(t.Context(), inner, queries)
		if err != nil {
			t.Fatal(err)
		}
		fitted.DropFactor()
		for name, m := range map[string]*learners.GaussianProcessModel{"fitted": fitted, "loaded": restored.(*learners.GaussianProcessModel)} {
			dev := &counting{Device: inner}
			factors := func(step string, n int64) {
				if got := dev.factors.Load(); got != n {
					t.Errorf("%s, %s: %d factorizations, want %d", name, step, got, n)
				}
			}
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() {
					for range 2 {
						v, err := m.Variance(t.Context(), dev, queries)
						if err != nil {
							t.Errorf("%s: %v", name, err)
						} else if !mat.EqualApprox(v, want, tol) {
							t.Errorf("%s: other variances", name)
						}
					}
				})
			}
			group.Wait()
			factors("sixteen calls", 1)
			first, err := m.Variance(t.Context(), dev, queries)
			if err != nil {
				t.Fatal(err)
			}
			other := &counting{Device: inner, name: " another"}
			if _, err := m.Variance(t.Context(), other, queries); err != nil {
				t.Fatal(err)
			}
			if n := other.factors.Load(); n != 1 {
				t.Errorf("%s: another device: %d factorizations", name, n)
			}
			recomputed, err := m.Variance(t.Context(), dev, queries)
			if err != nil {
				t.Fatal(err)
			}
			factors("back from another device", 2)
			if !mat.Equal(recomputed, first) {
				t.Errorf("%s: a factor made anew gives other bits", name)
			}
			m.DropFactor()
			if _, err := m.Variance(t.Context(), dev, queries); err != nil {
				t.Fatal(err)
			}
			factors("dropped", 3)
			if inUse, _ := inner.InUse(); inUse != 0 {
				t.Errorf("%s: %d bytes are left on the device", name, inUse)
			}
			// A canceled call does not store a partial factor.
			m.DropFactor()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := m.Variance(ctx, dev, queries); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: canceled: %v", name, err)
			}
			if v, err := m.Variance(t.Context(), dev, queries); err != nil || !mat.Equal(v, first) {
				t.Errorf("%s: after a call that was canceled: %v", name, err)
			}
		}
	})
}
