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
		for f := range e.work {
			f()
		}
	}()
	if err := <-ready; err != nil {
		return nil, err
	}
	return e, nil
}

// queue schedules f; do also waits until it has run.
func (e *executor) queue(f func()) { e.work <- f }

func (e *executor) do(f func()) {
	done := make(chan struct{})
	e.work <- func() {
		defer close(done)
		f()
	}
	<-done
}

// close ends the thread once everything queued has run.
func (e *executor) close() {
	close(e.work)
	<-e.gone
}
