package handles

import (
	"errors"
	"sync"
)

// ErrFreed is the error for the use of a freed handle.
var ErrFreed = errors.New("libmercer: the handle has been freed")

// refCount keeps an object alive while calls use it. After the owner has freed the object and the last use has
// ended, refCount calls the function final. Several goroutines may call its methods at once.
type refCount struct {
	mu    sync.Mutex
	uses  int  // number of uses, including the use of the owner
	freed bool // whether the owner has freed the object
	final func()
}

func newRefCount(final func()) *refCount { return &refCount{uses: 1, final: final} }

// acquire begins a use; it fails if the owner has freed the object. Each successful call needs a call of release.
func (l *refCount) acquire() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.freed {
		return ErrFreed
	}
	l.uses++
	return nil
}

func (l *refCount) release() {
	l.mu.Lock()
	l.uses--
	last := l.uses == 0
	l.mu.Unlock()
	if last {
		l.final()
	}
}

// free ends the use of the owner; later calls of acquire fail.
func (l *refCount) free() error {
	l.mu.Lock()
	alreadyFreed := l.freed
	l.freed = true
	l.mu.Unlock()
	if alreadyFreed {
		return ErrFreed
	}
	l.release()
	return nil
}
