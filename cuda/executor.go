package cuda

import (
	"runtime"

	"github.com/mercer-go/mercer/cuda/internal/driver"
)

// executor runs functions one at a time on its own thread, on which one context is current.
type executor struct {
	work chan func()
	gone chan struct{} // closed when the thread has ended
}

// newExecutor returns an executor, or the reason why the context cannot be made current.
func newExecutor(api *driver.API, context driver.Context) (*executor, error) {
	e := &executor{work: make(chan func(), 64), gone: make(chan struct{})}
	ready := make(chan error)
	go func() {
		// Never unlocked: the thread ends with the goroutine, so that no other
		// inherits the context.
		runtime.LockOSThread()
		defer close(e.gone)
		err := api.SetCurrent(context)
		ready <- err
		if err != nil {
			return
		}
		for f := <-e.work; f != nil; f = <-e.work {
			f()
		}
	}()
	if err := <-ready; err != nil {
		return nil, err
	}
	return e, nil
}

// queue schedules f; do also waits until it has run, and returns false if it never will,
// because the thread has ended: a Free may come while the device is being closed.
func (e *executor) queue(f func()) {
	select {
	case e.work <- f:
	case <-e.gone:
	}
}

func (e *executor) do(f func()) bool {
	done := make(chan struct{})
	e.queue(func() {
		defer close(done)
		f()
	})
	select {
	case <-done:
		return true
	case <-e.gone:
	}
	select {
	case <-done: // the thread ended after f
		return true
	default:
		return false
	}
}

// close ends the thread once everything queued has run. The channel stays open, because
// others may send.
func (e *executor) close() {
	e.queue(nil)
	<-e.gone
}
