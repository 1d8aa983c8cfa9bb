package objects

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/mercer-go/mercer/backend"
)

// Stop reports whether work that is going on must end; its results are not used
// any more.
type Stop func() bool

// columns is how many values of a row make a task, at least, and mostTasks
// about how many tasks there are at most.
const columns, mostTasks = 64, 1 << 18

// Pairs fills a rows × cols matrix in parallel. Each worker has a function of
// its own, made by worker, that sets out to the values of row i in columns lo …
// hi−1. With lower, rows and cols are equal, only the values up to the diagonal
// are asked for, and the others are their mirror image. It fails with
// backend.ErrMemory, before anything is done, when there is no room.
func Pairs(ctx context.Context, rows, cols int, lower bool, o Options, worker func(stop Stop) func(i, lo, hi int, out []float64)) (backend.Host[float64], error) {
	if err := o.fits(rows, cols); err != nil {
		return backend.Host[float64]{}, err
	}
	out := backend.NewHost[float64](rows, cols)
	// The tasks, long rows first; the pairs before each, for the progress.
	type task struct{ i, lo, hi int }
	var tasks []task
	total, width := 0, max(columns, rows*cols/mostTasks)
	for i := rows - 1; i >= 0; i-- {
		end := cols
		if lower {
			end = i + 1
		}
		total += end
		for lo := 0; lo < end; lo += width {
			tasks = append(tasks, task{i, lo, min(lo+width, end)})
		}
	}
	err := run(ctx, len(tasks), total, o, func(stop Stop) func(n int) int {
		f := worker(stop)
		return func(n int) int {
			t := tasks[n]
			f(t.i, t.lo, t.hi, out.Row(t.i)[t.lo:t.hi])
			return t.hi - t.lo
		}
	})
	if err != nil {
		return backend.Host[float64]{}, err
	}
	if lower {
		for i := range rows {
			for j, v := range out.Row(i)[:i] {
				out.Data[j*cols+i] = v
			}
		}
	}
	return out, nil
}

// Each returns one value for each of n objects, in parallel; worker is as for
// Pairs.
func Each(ctx context.Context, n int, o Options, worker func(stop Stop) func(i int) float64) ([]float64, error) {
	out := make([]float64, n)
	err := run(ctx, n, n, o, func(stop Stop) func(n int) int {
		f := worker(stop)
		return func(i int) int {
			out[i] = f(i)
			return 1
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// run does tasks 0 … n−1. A task returns how much of total it was.
func run(ctx context.Context, n, total int, o Options, worker func(stop Stop) func(n int) int) error {
	if o.Threads < 0 {
		return fmt.Errorf("objects: threads must be ≥ 0, got %d", o.Threads)
	}
	threads := o.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	var stopped atomic.Bool
	defer context.AfterFunc(ctx, func() { stopped.Store(true) })()
	stop := func() bool { return stopped.Load() }

	var mu sync.Mutex
	done, told := 0, -1
	tell := func(parts int) {
		if o.Progress == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		done += parts
		// A thousand reports are enough; the last one says 1.
		if step := 1000 * done / total; step > told {
			told = step
			o.Progress(float64(done) / float64(total))
		}
	}
	work := func() {
		f := worker(stop)
		for i := next.Add(1) - 1; i < int64(n) && !stop(); i = next.Add(1) - 1 {
			if parts := f(int(i)); !stop() {
				tell(parts)
			}
		}
	}
	var group sync.WaitGroup
	for range min(threads, n) - 1 {
		group.Go(work)
	}
	if n > 0 {
		work()
	}
	group.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("objects: stopped: %w", context.Cause(ctx))
	}
	if o.Progress != nil && total == 0 {
		o.Progress(1)
	}
	return nil
}
