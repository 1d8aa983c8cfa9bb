package cpu

import (
	"iter"
	"sync/atomic"
)

// each splits 0 … n−1 into pieces of grain and runs f on all of them, on up to
// threads goroutines, the caller's included. The pieces do not depend on
// threads; who runs which does.
func each(threads, n, grain int, f func(lo, hi int)) {
	pieces := (n + grain - 1) / grain
	tasks(threads, pieces, func(mine iter.Seq[int]) {
		for i := range mine {
			f(i*grain, min(n, (i+1)*grain))
		}
	})
}

// tasks runs work on up to threads workers, the caller's goroutine included;
// together they are given each number of 0 … n−1 once. A worker that comes when
// nothing is left is not waited for, so that a short job costs its caller no
// more than doing it alone.
func tasks(threads, n int, work func(mine iter.Seq[int])) {
	if n <= 0 {
		return
	}
	j := &job{n: int64(n), work: work, idle: make(chan struct{})}
	for range min(threads, n) - 1 {
		go j.help()
	}
	work(j.mine)
	j.finish()
}

// job is a call of tasks.
type job struct {
	n    int64
	work func(mine iter.Seq[int])
	next atomic.Int64 // the next task
	// helpers counts the workers at work besides the caller; closed is added
	// when the caller has found no task left.
	helpers atomic.Int64
	idle    chan struct{} // closed when the last helper leaves a closed job
}

const closed = 1 << 32

// mine yields tasks until none is left.
func (j *job) mine(yield func(int) bool) {
	for i := j.next.Add(1) - 1; i < j.n; i = j.next.Add(1) - 1 {
		if !yield(int(i)) {
			return
		}
	}
}

// help works on the job unless it has been closed.
func (j *job) help() {
	for {
		h := j.helpers.Load()
		if h >= closed {
			return
		}
		if j.helpers.CompareAndSwap(h, h+1) {
			break
		}
	}
	j.work(j.mine)
	if j.helpers.Add(-1) == closed {
		close(j.idle)
	}
}

// finish waits for the helpers that are at work.
func (j *job) finish() {
	if j.helpers.Add(closed) > closed {
		<-j.idle
	}
}

// rowGrain is how many rows of cols elements make a piece of work that is
// worth handing to another worker: some 64 Ki elements, about 20 µs.
func rowGrain(cols int) int { return max(1, 1<<16/max(cols, 1)) }
