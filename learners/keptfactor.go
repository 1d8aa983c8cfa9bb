package learners

import (
	"context"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/solvers"
)

// keptFactor is the factor of a model's matrix, made when it is first asked for by
// one goroutine while others wait, and kept for the device that made it. The zero
// value holds none.
type keptFactor struct {
	mu     sync.Mutex
	device string
	factor *solvers.Uncertainty
	making chan struct{} // closed when the one who makes it has ended; nil: nobody does
}

// variance is solvers.Variance with the factor that is kept.
func (k *keptFactor) variance(ctx context.Context, dev backend.Device, p solvers.Problem, points backend.Host[float64]) ([]float64, error) {
	u, err := k.get(ctx, dev, p)
	if err != nil {
		return nil, err
	}
	if u == nil {
		return solvers.Variance(ctx, dev, p, points, 0)
	}
	return u.Variance(ctx, dev, points, 0)
}

// get returns the factor for dev; nil where there is no room to keep it.
func (k *keptFactor) get(ctx context.Context, dev backend.Device, p solvers.Problem) (*solvers.Uncertainty, error) {
	name := dev.Info().Device
	for {
		k.mu.Lock()
		if k.factor != nil && k.device == name {
			u := k.factor
			k.mu.Unlock()
			return u, nil
		}
		if k.making == nil {
			break
		}
		wait := k.making
		k.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if !worthKeeping(p.X.Rows) {
		k.mu.Unlock()
		return nil, nil
	}
	k.factor = nil // of another device
	done := make(chan struct{})
	k.making = done
	k.mu.Unlock()
	var u *solvers.Uncertainty
	defer func() {
		k.mu.Lock()
		k.factor, k.device, k.making = u, name, nil
		k.mu.Unlock()
		close(done)
	}()
	u, err := solvers.NewUncertainty(ctx, dev, p, 0)
	return u, err
}

// worthKeeping reports whether the factor leaves as much memory as it takes.
func worthKeeping(n int) bool {
	free, known := backend.HostMemory()
	return !known || solvers.UncertaintyBytes(n) <= free/2
}

func (k *keptFactor) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.factor = nil
}
