package cpu

import (
	"iter"
	"sync"
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
// together they are given each number of 0 … n−1 once.
func tasks(threads, n int, work func(mine iter.Seq[int])) {
	var next atomic.Int64
	mine := func(yield func(int) bool) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			if !yield(i) {
				return
			}
		}
	}
	if n <= 0 {
		return
	}
	var wg sync.WaitGroup
	for range min(threads, n) - 1 {
		wg.Go(func() { work(mine) })
	}
	work(mine)
	wg.Wait()
}

// rowGrain is how many rows of cols elements make a piece of work that is
// worth handing to another worker: some 64 Ki elements, about 20 µs.
func rowGrain(cols int) int { return max(1, 1<<16/max(cols, 1)) }
