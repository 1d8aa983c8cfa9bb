package cpu

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// queue is the backend.Backend of one precision for one caller. Each method completes its work before it returns.
type queue[T backend.Float] struct {
	engine    *engine[T]
	ctx       context.Context // context of the caller, or nil if the work cannot be canceled
	done      func(flops float64)
	oneWorker bool // use only one worker

	mu  sync.Mutex // guards err and the calls of done
	err error      // the failure that the next call of wait returns
}

func (q *queue[T]) With(ctx context.Context, done func(flops float64)) backend.Backend[T] {
	return &queue[T]{engine: q.engine, ctx: ctx, done: done}
}

// stopped reports whether the caller's context is done, and records its cause as the queue's failure.
func (q *queue[T]) stopped() bool {
	if q.ctx == nil {
		return false
	}
	select {
	case <-q.ctx.Done():
	default:
		return false
	}
	q.fail(fmt.Errorf("cpu: stopped: %w", context.Cause(q.ctx)))
	return true
}

// fail records the first failure of the queue.
func (q *queue[T]) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
}

// count reports finished operations to the caller.
func (q *queue[T]) count(flops float64) {
	if q.done == nil || flops == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done(flops)
}

// Exp implements backend.Exponential.
func (q *queue[T]) Exp(x []T) {
	u, s := q.engine.ukr, q.engine.getScratch()
	defer q.engine.putScratch(s)
	fullLen := len(x) / u.NR * u.NR
	if fullLen > 0 {
		s.span = ukr.Span[T]{X: &x[0], N: fullLen, A: 1}
		u.Exp(&s.span)
	}
	if tail := x[fullLen:]; len(tail) > 0 {
		s.span = ukr.Span[T]{X: &s.block[0], N: u.NR, A: 1}
		clear(s.block[copy(s.block, tail):u.NR])
		u.Exp(&s.span)
		copy(tail, s.block)
	}
}

// PrefixBelow implements backend.Searcher.
func (q *queue[T]) PrefixBelow(x []T, bound T) int {
	u, n := q.engine.ukr, 0
	if fullLen := len(x) / u.NR * u.NR; fullLen > 0 {
		n = u.Below(fullLen, bound, &x[0])
	}
	for n < len(x) && x[n] < bound {
		n++
	}
	return n
}

// wait returns the queue's failure and clears it.
func (q *queue[T]) wait() error {
	q.stopped()
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.err
	q.err = nil
	return err
}

// threads returns the number of workers for work of the given number of operations.
func (q *queue[T]) threads(flops float64) int {
	if q.oneWorker || flops < minParallelFlops {
		return 1
	}
	return q.engine.device.workers()
}

// minParallelFlops is the number of operations that take as long as waking a worker, about 20 µs.
const minParallelFlops = 1 << 20

// copyFlops returns the number of operations that take the same time as copying n elements.
func copyFlops(n int) float64 { return 32 * float64(n) }

// parallel runs tasks 0 … n−1 on the workers and stops when the caller's context is done. All tasks
// together take flops operations. Each worker has scratch memory of its own.
func (q *queue[T]) parallel(n int, flops float64, run func(s *scratch[T], task int)) {
	parallel(q.threads(flops), n, func(tasks iter.Seq[int]) {
		s := q.engine.getScratch()
		defer q.engine.putScratch(s)
		for i := range tasks {
			if q.stopped() {
				return
			}
			run(s, i)
		}
	})
}

// chunks divides the range 0 … n−1 into tasks of grain indices and runs them like parallel.
func (q *queue[T]) chunks(n, grain int, flops float64, f func(s *scratch[T], first, count int)) {
	q.parallel(panels(n, grain), flops, func(s *scratch[T], i int) { f(s, i*grain, min(grain, n-i*grain)) })
}

// rows divides the rows 0 … n−1, of cols elements each, into ranges and runs f on each range.
func (q *queue[T]) rows(n, cols int, f func(lo, hi int)) {
	parallelRanges(q.threads(copyFlops(n*cols)), n, rowGrain(cols), func(lo, hi int) {
		if !q.stopped() {
			f(lo, hi)
		}
	})
}

// serial returns a queue that uses only one worker, for work that runs at the same time as other workers.
func (q *queue[T]) serial() *queue[T] {
	return &queue[T]{engine: q.engine, ctx: q.ctx, done: q.count, oneWorker: true}
}
