package cpu

import (
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// parallelRanges divides 0 … n−1 into ranges of grain indices and runs f on them, on at most threads goroutines.
func parallelRanges(threads, n, grain int, f func(lo, hi int)) {
	chunks := (n + grain - 1) / grain
	parallel(threads, chunks, func(tasks iter.Seq[int]) {
		for i := range tasks {
			f(i*grain, min(n, (i+1)*grain))
		}
	})
}

// parallel runs work on at most threads workers, including the caller's goroutine. The workers share the numbers
// 0 … n−1: each number is yielded to one worker. The caller does not wait for workers that start after all numbers
// have been yielded. If a worker panics, parallel panics after all workers have stopped.
func parallel(threads, n int, work func(tasks iter.Seq[int])) {
	if n <= 0 {
		return
	}
	j := &job{n: int64(n), work: work}
	helpers := min(threads, n) - 1
	if helpers <= 0 {
		work(j.tasks)
		return
	}
	j.idle = make(chan struct{})
	j.vacancies.Store(int64(helpers))
	slot := post(j)
	// Lingering helpers find the job on the board. Start the helpers that are still missing.
	for range helpers - int(lingering.Load()) {
		go help(j)
	}
	defer func() { // also after a panic of work, because helpers use the caller's memory
		if slot != nil {
			slot.Store(nil)
		}
		j.finish()
		if panicText := j.panicText.Load(); panicText != nil {
			panic(*panicText)
		}
	}()
	work(j.tasks)
}

// job is one call of the function parallel.
type job struct {
	n         int64
	work      func(tasks iter.Seq[int])
	next      atomic.Int64 // the next task
	vacancies atomic.Int64 // number of helpers that may still join
	// helpers counts the active workers other than the caller, plus closedBit if the caller finds no further task.
	helpers   atomic.Int64
	idle      chan struct{}          // closed when the last helper leaves a closed job
	panicText atomic.Pointer[string] // message of the first helper that panicked
}

const closedBit = 1 << 32

// tasks yields the number of the next task until no task is left.
func (j *job) tasks(yield func(int) bool) {
	for i := j.next.Add(1) - 1; i < j.n; i = j.next.Add(1) - 1 {
		if !yield(int(i)) {
			return
		}
	}
}

// join runs tasks of the job, unless the job is closed or has its maximum number of helpers.
func (j *job) join() {
	if j.vacancies.Add(-1) < 0 {
		return
	}
	for {
		h := j.helpers.Load()
		if h >= closedBit {
			return
		}
		if j.helpers.CompareAndSwap(h, h+1) {
			break
		}
	}
	defer func() {
		if v := recover(); v != nil {
			text := fmt.Sprintf("cpu: a helper panicked: %v\n%s", v, debug.Stack())
			j.panicText.CompareAndSwap(nil, &text)
		}
		if j.helpers.Add(-1) == closedBit {
			close(j.idle)
		}
	}()
	j.work(j.tasks)
}

// finish closes the job and waits for the active helpers.
func (j *job) finish() {
	if j.helpers.Add(closedBit) == closedBit {
		return
	}
	if !await(func() bool { return j.helpers.Load() == closedBit }) {
		<-j.idle
	}
}

// linger is the time for which a helper that has finished a job polls for the next job, because waking a sleeping
// processor takes about 50 µs (Cholesky, n = 2048, two workers, AMD EPYC of family 25, November 2026: 84 GFLOP/s,
// and 66 without polling).
const linger = 200 * time.Microsecond

// board holds the jobs that lingering helpers may join.
var (
	board     [8]atomic.Pointer[job]
	lingering atomic.Int64 // number of helpers that poll the board
)

// post puts j on the board and returns its slot, or nil if the board is full.
func post(j *job) *atomic.Pointer[job] {
	for i := range board {
		if board[i].Load() == nil && board[i].CompareAndSwap(nil, j) {
			return &board[i]
		}
	}
	return nil
}

// help works on j, and then on jobs that are posted while it lingers.
func help(j *job) {
	for j != nil {
		j.join()
		j = nil
		lingering.Add(1)
		await(func() bool { j = posted(); return j != nil })
		lingering.Add(-1)
		if j == nil {
			// The caller of parallel may have posted a job while it still counted this helper as lingering.
			j = posted()
		}
	}
}

// posted returns a job that helpers may still join, or nil.
func posted() *job {
	for i := range board {
		if j := board[i].Load(); j != nil && j.vacancies.Load() > 0 {
			return j
		}
	}
	return nil
}

// await polls done until done returns true or the time linger has passed. It returns the last result of done.
func await(done func() bool) bool {
	const polls = 64 // polls before yielding to other goroutines
	for end := time.Now().Add(linger); ; {
		for range polls {
			if done() {
				return true
			}
		}
		if time.Now().After(end) {
			return done()
		}
		runtime.Gosched()
	}
}

// rowGrain returns the smallest number of rows that is worth another worker: about 64 Ki elements, or 20 µs.
func rowGrain(cols int) int { return max(1, 1<<16/max(cols, 1)) }
