package run

import (
	"context"
	"sync"

	"github.com/mercer-go/mercer/backend"
)

// Kept is what is computed from the factor of a model's matrix, made when it is first
// asked for by one goroutine while others wait, and kept for the device that made it.
// The zero value has none.
type Kept[T any] struct {
	mu     sync.Mutex
	device string
	factor *T
	making chan struct{} // closed when the one who makes it has ended; nil: nobody does
}

// Get returns what build makes on dev; nil where so many bytes are more than half of what
// the process may still take, so that it is not worth keeping.
func (k *Kept[T]) Get(ctx context.Context, dev backend.Device, bytes int64, build func() (*T, error)) (*T, error) {
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
	if free, known := backend.HostMemory(); known && bytes > free/2 {
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

// Drop gives the memory back; the next Get builds anew.
func (k *Kept[T]) Drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.factor = nil
}
