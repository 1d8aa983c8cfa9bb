package run

import (
	"runtime"
	"sync"
)

// Parallel calls f for parts of 0 … n−1 at once. What f computes for one index
// must not depend on how they are parted.
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
