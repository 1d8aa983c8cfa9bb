package pairwise

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels/objects"
)

// Stop reports whether the computation must end; the results are then discarded. Its argument is the number of
// values computed since the last call of Stop, for the progress report, and may be fractional.
type Stop func(values float64) bool

// Poll is the number of operations between calls of Stop in a long evaluation: some milliseconds.
const Poll = 1 << 22

// maxOperations is the largest number of operations that Feasible accepts: about a day on eight processors.
const maxOperations = 1e15

// Feasible returns an error if operations exceeds 10¹⁵. The error advises the user to shorten the objects, to use
// fewer objects, or to follow the argument advice.
func Feasible(subject string, operations float64, advice string) error {
	if operations <= maxOperations {
		return nil
	}
	return fmt.Errorf("%s need about %.1e operations, more than the limit of %.0e: shorten the objects to %.2g %% of their size, use fewer objects, or %s",
		subject, operations, float64(maxOperations), 100*math.Sqrt(maxOperations/operations), advice)
}

// alwaysAllowed is the size, in bytes, up to which an allocation is always allowed.
const alwaysAllowed = 1 << 26

// limit returns the number of bytes that may be allocated. The result ok is false if this number is not known.
func limit(o objects.Options) (int64, bool) {
	if o.Memory != 0 {
		return o.Memory, true
	}
	free, ok := host.Memory()
	return free / 10 * 8, ok
}

// fits returns host.ErrMemory unless a rows × cols matrix and a copy of it fit in memory.
func fits(o objects.Options, rows, cols int) error {
	required := 2 * 8 * int64(rows) * int64(cols)
	if o.Memory == 0 && required <= alwaysAllowed {
		return nil
	}
	if limit, ok := limit(o); ok && required > limit {
		return fmt.Errorf("%w: the kernel values of %d × %s and their points need %d bytes, but %d are available", host.ErrMemory, rows, count.Of(cols, "object"), required, limit)
	}
	return nil
}

// CheckMemory returns an error that matches host.ErrMemory if the memory of the workers is not
// available. Each worker needs the given count of 8-byte numbers.
func CheckMemory(o objects.Options, subject string, numbers float64) error {
	required := 8 * numbers * float64(threads(o))
	if required <= alwaysAllowed {
		return nil
	}
	if limit, ok := limit(o); ok && required > float64(limit) {
		return fmt.Errorf("%w: %s need %.0f bytes for %s, but %d are available: shorten the objects or use fewer threads", host.ErrMemory, subject, required, count.Of(threads(o), "thread"), limit)
	}
	return nil
}

// columns is the minimum number of values that a task computes. maxTasks is the approximate maximum number of tasks.
const columns, maxTasks = 64, 1 << 18

// Worker returns a function for one goroutine of Matrix. This function sets out to columns lo, …, hi−1 of row i.
type Worker = func(stop Stop) func(i, lo, hi int, out []float64)

// Matrix fills a rows × cols matrix in parallel. If lower is set, the matrix must be symmetric:
// Matrix computes the values up to the diagonal and mirrors them. If the matrix does not fit in
// memory, Matrix returns host.ErrMemory before any work.
func Matrix(ctx context.Context, rows, cols int, lower bool, o objects.Options, worker Worker) (host.Matrix[float64], error) {
	if err := fits(o, rows, cols); err != nil {
		return host.Matrix[float64]{}, err
	}
	capacity := rows * cols
	if lower { // objects.TrainingPoints reuses this memory, with two more columns
		capacity += 2 * rows
	}
	out := host.Matrix[float64]{Rows: rows, Cols: cols, Stride: cols, Data: make([]float64, capacity)[:rows*cols]}
	// The longest rows come first, so that the workers end at about the same time.
	type task struct{ i, lo, hi int }
	var tasks []task
	total, width := 0, max(columns, rows*cols/maxTasks)
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
		return host.Matrix[float64]{}, err
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

// Each computes a value for each of n objects, in parallel. The argument worker returns the function of one worker.
func Each(ctx context.Context, n int, o objects.Options, worker func(stop Stop) func(i int) float64) ([]float64, error) {
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

func threads(o objects.Options) int {
	if o.Threads == 0 {
		return runtime.GOMAXPROCS(0)
	}
	return o.Threads
}

// run executes tasks 0, …, n−1. A task returns its number of values, and total is the sum of these numbers.
func run(ctx context.Context, n, total int, o objects.Options, worker func(stop Stop) func(n int) int) error {
	if o.Threads < 0 {
		return fmt.Errorf("objects: threads must be ≥ 0, got %d", o.Threads)
	}
	var next atomic.Int64
	var canceled atomic.Bool
	defer context.AfterFunc(ctx, func() { canceled.Store(true) })()

	var mu sync.Mutex
	finished, begun, reported := 0, 0.0, -1 // finished: values of finished tasks; begun: values that running tasks have reported; reported: last progress in thousandths
	report := func(values int, partial float64) {
		if o.Progress == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		finished += values
		begun += partial
		computed := float64(finished)
		if finished < total {
			computed = min(computed+max(begun, 0), float64(total)*0.999) // rounding errors must not lead to 1 before the end
		}
		// Report at most a thousand times; the last report is 1.
		if step := int(1000 * computed / float64(total)); step > reported {
			reported = step
			o.Progress(computed / float64(total))
		}
	}
	work := func() {
		partial := 0.0 // number of values that the current task has reported
		stop := func(values float64) bool {
			if values > 0 {
				partial += values
				report(0, values)
			}
			return canceled.Load()
		}
		f := worker(stop)
		for i := next.Add(1) - 1; i < int64(n) && !stop(0); i = next.Add(1) - 1 {
			if values := f(int(i)); !stop(0) {
				report(values, -partial)
				partial = 0
			}
		}
	}
	var group sync.WaitGroup
	for range min(threads(o), n) - 1 {
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
