package cuda

import (
	"context"
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/check"
)

// queue is the backend.Backend of one precision for one caller's work. Its methods divide their work into steps of at
// most about 50 ms, which the executor queues in the device's stream.
type queue[T backend.Float] struct {
	engine *engine[T]
	ctx    context.Context // the caller's context; nil means that work is never canceled
	done   func(flops float64)

	// The following fields are used on the executor's thread only.
	err    error // the failure that the next waiting method returns
	nested bool  // whether a step is running, so that a new step becomes part of that step
}

func (q *queue[T]) With(ctx context.Context, done func(flops float64)) backend.Backend[T] {
	return &queue[T]{engine: q.engine, ctx: ctx, done: done}
}

// ownMatrix returns m as a *matrix of this device, and panics if it is anything else.
func (q *queue[T]) ownMatrix(op string, m backend.Matrix[T]) *matrix[T] {
	if owned, ok := m.(*matrix[T]); ok && owned.device == q.engine.device {
		return owned
	}
	check.Foreign(op)
	panic("unreachable")
}

// errStopped is the error of a step of a method's work that would begin after the caller's context is done.
var errStopped = errors.New("stopped")

func (q *queue[T]) canceled() bool { return q.ctx != nil && q.ctx.Err() != nil }

// run makes the executor run f, which queues work in the stream.
func (q *queue[T]) run(op string, f func() error) {
	d := q.engine.device
	if d.closed.Load() {
		return
	}
	d.exec.queue(func() { q.runUnlessFailed(op, f) })
}

// runUnlessFailed runs f on the executor's thread unless an earlier step has failed.
func (q *queue[T]) runUnlessFailed(op string, f func() error) {
	if q.err != nil {
		return
	}
	d := q.engine.device
	d.mu.Lock()
	q.err = d.fatalErr
	d.mu.Unlock()
	if q.err != nil {
		return
	}
	var pivot *backend.PivotError
	var rangeErr *backend.RangeError
	switch err := f(); {
	case err == nil:
	case errors.Is(err, errStopped):
		q.err = fmt.Errorf("%s: stopped: %w", d.name, context.Cause(q.ctx))
	case errors.As(err, &pivot):
		q.err = pivot
	case errors.As(err, &rangeErr):
		q.err = rangeErr
	default:
		q.err = d.checked(op, err)
	}
}

// wait runs f, waits for all work, and returns the queue's error and resets it to nil.
func (q *queue[T]) wait(op string, f func() error) error {
	d := q.engine.device
	var err error
	executed := !d.closed.Load() && d.exec.do(func() {
		q.runUnlessFailed(op, func() error {
			if q.canceled() {
				return errStopped
			}
			return f()
		})
		err, q.err = q.err, nil
	})
	if !executed {
		return fmt.Errorf("%s: %s: the device has been closed", d.name, op)
	}
	return err
}

func (q *queue[T]) Sync() error {
	d := q.engine.device
	return q.wait("sync", func() error {
		if err := d.window.drain(d.api); err != nil {
			return err
		}
		if q.canceled() {
			return errStopped
		}
		return d.api.Wait(d.stream)
	})
}

// window holds the steps whose work is in the stream and not known to be finished, at most two.
type window struct {
	slots [2]struct {
		event    driver.Event
		inFlight bool
		flops    float64
		done     func(float64)
	}
	next int
}

func (w *window) open(api *driver.API) (err error) {
	for i := range w.slots {
		if w.slots[i].event, err = api.NewEvent(false); err != nil {
			return err
		}
	}
	return nil
}

func (w *window) close(api *driver.API) error {
	var errs []error
	for i := range w.slots {
		if w.slots[i].event != 0 {
			errs = append(errs, api.DestroyEvent(w.slots[i].event))
			w.slots[i].event = 0
		}
	}
	return errors.Join(errs...)
}

// retire waits for the step in slot i and reports its number of operations to the caller.
func (w *window) retire(api *driver.API, i int) error {
	s := &w.slots[i]
	if !s.inFlight {
		return nil
	}
	s.inFlight = false
	if err := api.WaitEvent(s.event); err != nil {
		return err
	}
	if s.done != nil && s.flops > 0 {
		s.done(s.flops)
	}
	return nil
}

// drain waits for all steps, oldest first.
func (w *window) drain(api *driver.API) error {
	for i := range w.slots {
		if err := w.retire(api, (w.next+i)%len(w.slots)); err != nil {
			return err
		}
	}
	return nil
}

// step queues one step of a method's work in the stream, after waiting until at most one other step is in flight.
func (q *queue[T]) step(flops float64, f func() error) error {
	if q.nested {
		return f()
	}
	if q.canceled() {
		return errStopped
	}
	d := q.engine.device
	w := &d.window
	if err := w.retire(d.api, w.next); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	s := &w.slots[w.next]
	if err := d.api.Record(s.event, d.stream); err != nil {
		return err
	}
	s.inFlight, s.flops, s.done = true, flops, q.done
	w.next = (w.next + 1) % len(w.slots)
	return nil
}

// rowsOfStep returns how many of n rows one step of about 20 ms computes, given the number of operations of a row.
// If the result is less than n, it is a multiple of tile.
func (q *queue[T]) rowsOfStep(n int, flops float64) int {
	rate := q.engine.device.props.rate * 2 / 3
	if sizeOf[T]() == 8 {
		rate /= float64(max(q.engine.device.props.ratio, 1))
	}
	rows := 0.02 * rate / max(flops, 1)
	if rows >= float64(n) {
		return max(n, 1)
	}
	return max(1, int(rows)/tile) * tile
}

// libraryStep returns the number of operations of a step that a library computes: 30 ms at the device's peak rate,
// of which cuBLAS and cuSOLVER reach at least half.
func (q *queue[T]) libraryStep() float64 {
	p := q.engine.device.props
	if sizeOf[T]() == 8 {
		return 0.03 * p.doubleRate()
	}
	return 0.03 * p.singleRate()
}

// tile and threads must equal the constants in internal/ptx/common.cuh.
const (
	tile       = 64
	threads    = 256
	block      = 32
	maxMulCols = 8
)

func ceil(n, divisor int) int { return (n + divisor - 1) / divisor }
