package run

import (
	"runtime"
	"sync"
)

// Parallel divides 0 … n−1 into parts and calls f for the parts concurrently. The result for an
// index must not depend on the division into parts.
func Parallel(n int, f func(first, last int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if workers <= 1 {
		f(0, n)
		return
	}
	var wg sync.WaitGroup
	for k := range workers {
		wg.Go(func() { f(k*n/workers, (k+1)*n/workers) })
	}
	wg.Wait()
}
