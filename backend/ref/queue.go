package ref

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/mercer-go/mercer/backend"
)

// queue implements backend.Backend in one precision for the work of one caller.
type queue[T backend.Float] struct {
	dev *device
	*work
}

// With returns a queue with the context ctx, the function done, and a separate record of failures.
func (q *queue[T]) With(ctx context.Context, done func(flops float64)) backend.Backend[T] {
	return &queue[T]{dev: q.dev, work: &work{ctx: ctx, done: done}}
}

// Sync returns the first failure since the last method that waited.
func (q *queue[T]) Sync() error { return q.wait() }

// work is the context, the progress callback and the first failure of one caller's work.
type work struct {
	ctx  context.Context // nil if the work cannot be canceled
	done func(flops float64)
	mu   sync.Mutex
	err  error // first failure since the last wait
}

// stopped reports whether to stop the work: ctx is done, or earlier work has failed.
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

// wait returns the recorded failure and deletes it.
func (w *work) wait() error {
	w.stopped()
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.err
	w.err = nil
	return err
}

// meter divides the flops of an operation into equal steps and reports each.
type meter struct {
	w                *work
	total, reported  float64
	steps, completed int
}

func (w *work) meter(total float64, steps int) *meter {
	return &meter{w: w, total: total, steps: steps}
}

// step reports the flops of the next step. All numbers but the last are integers, so that their sum is exactly total.
func (m *meter) step() {
	m.completed++
	target := m.total
	if m.completed < m.steps {
		target = math.Floor(m.total / float64(m.steps) * float64(m.completed))
	}
	flops := target - m.reported
	m.reported = target
	if m.w.done != nil && flops > 0 {
		m.w.mu.Lock()
		defer m.w.mu.Unlock()
		m.w.done(flops)
	}
}
