package handles

import (
	"errors"
	"sync"
)

// ErrFreed is returned for what has been freed.
var ErrFreed = errors.New("libmercer: the handle has been freed")

// lease keeps something alive while it is in use: final runs once the owner has
// ended it and the last use is over. Its methods may be called by several
// goroutines at once.
type lease struct {
	mu    sync.Mutex
	uses  int  // the owner's among them
	over  bool // the owner's has ended
	final func()
}

func newLease(final func()) *lease { return &lease{uses: 1, final: final} }

// take begins a use; it fails when the owner has ended the lease. Each that
// succeeds needs a drop.
func (l *lease) take() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return ErrFreed
	}
	l.uses++
	return nil
}

// drop ends a use.
func (l *lease) drop() {
	l.mu.Lock()
	l.uses--
	last := l.uses == 0
	l.mu.Unlock()
	if last {
		l.final()
	}
}

// end ends the owner's use, and lets no other begin.
func (l *lease) end() error {
	l.mu.Lock()
	again := l.over
	l.over = true
	l.mu.Unlock()
	if again {
		return ErrFreed
	}
	l.drop()
	return nil
}
