package cuda

import (
	"runtime"

	"github.com/mercer-go/mercer/cuda/internal/driver"
)

// executor runs functions one at a time on its own thread, on which one context is current.
type executor struct {
	work   chan func()
	exited chan struct{} // closed when the thread has ended
}

// newExecutor returns an executor, or an error if the context cannot be made current.
func newExecutor(api *driver.API, context driver.Context) (*executor, error) {
	e := &executor{work: make(chan func(), 64), exited: make(chan struct{})}
	ready := make(chan error)
	go func() {
		// The thread ends with the goroutine, so that no other goroutine inherits the context.
		runtime.LockOSThread()
		defer close(e.exited)
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

// queue schedules f. The method do schedules f and waits until f has run. do returns false if f will not run
// because the thread has ended.
func (e *executor) queue(f func()) {
	select {
	case e.work <- f:
	case <-e.exited:
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
	case <-e.exited:
	}
	select {
	case <-done: // the thread ended after it had run f
		return true
	default:
		return false
	}
}

// close ends the thread after all queued functions have run. The channel stays open: other goroutines may use it.
func (e *executor) close() {
	e.queue(nil)
	<-e.exited
}
