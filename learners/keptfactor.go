package learners

import (
	"context"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/solvers"
)

// keptFactor is what is computed from the factor of a model's matrix, made when it is
// first asked for by one goroutine while others wait, and kept for the device that
// made it. The zero value holds none.
type keptFactor[T any] struct {
	mu     sync.Mutex
	device string
	factor *T
	making chan struct{} // closed when the one who makes it has ended; nil: nobody does
}

// get returns what build makes, for n samples on dev; nil where there is no room to
// keep it.
func (k *keptFactor[T]) get(ctx context.Context, dev backend.Device, n int, build func() (*T, error)) (*T, error) {
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
	if !worthKeeping(n) {
		k.mu.Unlock()
		return nil, nil
	}
	k.factor = nil // of another device
	done := make(chan struct{})
	k.making = done
	k.mu.Unlock()
	var u *T
	defer func() {
		k.mu.Lock()
		k.factor, k.device, k.making = u, name, nil
		k.mu.Unlock()
		close(done)
	}()
	u, err := build()
	return u, err
}

// worthKeeping reports whether the factor leaves as much memory as it takes.
func worthKeeping(n int) bool {
	free, known := backend.HostMemory()
	return !known || solvers.UncertaintyBytes(n) <= free/2
}

func (k *keptFactor[T]) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.factor = nil
}
