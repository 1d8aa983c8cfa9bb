package ref

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/mercer-go/mercer/backend"
)

// queue implements backend.Backend in one precision, for one caller's work.
type queue[T backend.Float] struct {
	dev *device
	*work
}

// With returns a queue with the context ctx and its own record of failures. It does not use the
// context or the function done of q.
func (q *queue[T]) With(ctx context.Context, done func(flops float64)) backend.Backend[T] {
	return &queue[T]{dev: q.dev, work: &work{ctx: ctx, done: done}}
}

// Sync returns the first failure of the work since the last wait.
func (q *queue[T]) Sync() error { return q.wait() }

// work is the context, the progress callback and the first failure of one caller's work.
type work struct {
	ctx  context.Context // nil if the work cannot be canceled
	done func(flops float64)
	mu   sync.Mutex
	err  error // the first failure, until wait returns it
}

// stopped reports whether work must stop, because ctx is done or was done during earlier work.
func (w *work) stopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && w.ctx != nil && w.ctx.Err() != nil {
		w.err = fmt.Errorf("backend: %s: stopped: %w", name, context.Cause(w.ctx))
	}
	return w.err != nil
}

// fail records a failure, unless an earlier failure is already recorded.
func (w *work) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// wait returns the first failure and deletes it from the record.
func (w *work) wait() error {
	w.stopped()
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.err
	w.err = nil
	return err
}

// meter reports the flops of one operation in equal steps.
type meter struct {
	w            *work
	total, told  float64
	steps, taken int
}

func (w *work) meter(total float64, steps int) *meter {
	return &meter{w: w, total: total, steps: steps}
}

// step reports the flops of the next step. All steps except the last are integers, whose sums are
// exact, so that the steps add up to the total without rounding.
func (m *meter) step() {
	m.taken++
	upTo := m.total
	if m.taken < m.steps {
		upTo = math.Floor(m.total / float64(m.steps) * float64(m.taken))
	}
	part := upTo - m.told
	m.told = upTo
	if m.w.done != nil && part > 0 {
		m.w.mu.Lock()
		defer m.w.mu.Unlock()
		m.w.done(part)
	}
}
