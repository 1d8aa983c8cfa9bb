package run

import "sync"

// Parts returns the progress callbacks of the n parts of a computation. Each callback receives
// fractions from 0 to 1. Parts passes the progress of the whole computation to whole, one call at a
// time.
func Parts(n int, whole func(fraction float64)) (report func(part int) func(fraction float64)) {
	var mu sync.Mutex
	done, sum := make([]float64, n), 0.0
	return func(i int) func(float64) {
		return func(fraction float64) {
			mu.Lock()
			defer mu.Unlock()
			if fraction > done[i] {
				sum += fraction - done[i]
				done[i] = fraction
			}
			whole(min(sum/float64(n), 1))
		}
	}
}
