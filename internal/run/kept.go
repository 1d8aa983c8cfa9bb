package run

import (
	"context"
	"sync"

	"github.com/mercer-go/mercer/backend"
)

// Kept is a result that is computed once for all concurrent callers and cached for later
// calls. The zero value has no result.
type Kept[T any] struct {
	// Life is the context of all computations. With Life, a computation continues after all its
	// callers have returned. If Life is nil, Get cancels such a computation.
	Life context.Context

	mu      sync.Mutex
	value   *T
	device  string // the device on which value was computed
	pending *computation[T]
}

// computation is a computation that is in progress.
type computation[T any] struct {
	device     string
	callers    int  // number of callers that wait for the result
	canceled   bool // whether the computation was canceled and must get no further caller
	dropped    bool // whether the result must not be cached
	cancel     context.CancelFunc
	done       chan struct{} // closed once the fields below are set
	value      *T
	err        error
	panicValue any
}

// Get returns the result of build on a device. The first caller starts build. Concurrent callers wait for the same
// result, and all callers get the error of build. A caller whose context ends returns at once. If the last caller
// returns early and Life is nil, Get cancels the computation and waits for its end. A nil result is not cached.
func (k *Kept[T]) Get(ctx context.Context, device string, build func(context.Context) (*T, error)) (*T, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		k.mu.Lock()
		if value := k.value; value != nil && k.device == device {
			k.mu.Unlock()
			return value, nil
		}
		if k.pending == nil {
			k.start(ctx, device, build)
		}
		m := k.pending
		joined := m.device == device && !m.canceled
		if joined {
			m.callers++
		}
		k.mu.Unlock()
		select {
		case <-m.done:
		case <-ctx.Done():
			if joined {
				k.leave(m)
			}
			return nil, context.Cause(ctx)
		}
		switch {
		case joined && m.panicValue != nil:
			panic(m.panicValue)
		case joined:
			return m.value, m.err
		}
	}
}

// start begins a computation. The caller must hold k.mu.
func (k *Kept[T]) start(ctx context.Context, device string, build func(context.Context) (*T, error)) {
	k.value = nil // the cached value was computed on another device
	life := k.Life
	if life == nil {
		life = context.WithoutCancel(ctx)
	}
	life, cancel := context.WithCancel(life)
	m := &computation[T]{device: device, cancel: cancel, done: make(chan struct{})}
	k.pending = m
	go func() {
		defer func() {
			m.panicValue = recover() // the panic is raised again in the callers, which may recover from it
			k.mu.Lock()
			k.pending = nil
			if m.err == nil && m.panicValue == nil && !m.dropped {
				k.value, k.device = m.value, device
			}
			k.mu.Unlock()
			cancel()
			close(m.done)
		}()
		m.value, m.err = build(life)
	}()
}

// leave removes a caller from the computation m after the context of the caller has ended.
func (k *Kept[T]) leave(m *computation[T]) {
	k.mu.Lock()
	m.callers--
	last := m.callers == 0 && k.Life == nil
	m.canceled = m.canceled || last
	k.mu.Unlock()
	if last {
		m.cancel()
		<-m.done
	}
}

// Drop frees the cached result, so that the next Get computes it again. If a computation is running
// and no caller waits for it, Drop cancels it and waits for its end. If a caller waits, the
// computation continues, but its result is not cached.
func (k *Kept[T]) Drop() {
	k.mu.Lock()
	k.value = nil
	m := k.pending
	unwanted := m != nil && m.callers == 0
	if m != nil {
		m.dropped = true
		m.canceled = m.canceled || unwanted
	}
	k.mu.Unlock()
	if unwanted {
		m.cancel()
		<-m.done
	}
}

// WorthKeeping reports whether the given number of bytes is at most half of the memory that the
// process may still allocate.
func WorthKeeping(bytes int64) bool {
	available, known := backend.HostMemory()
	return !known || bytes <= available/2
}
