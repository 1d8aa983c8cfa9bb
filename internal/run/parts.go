package run

import "sync"

// Parts returns a function whose result for each of the n parts of a computation is a progress callback, which takes
// fractions from 0 to 1. Parts passes the progress of the whole computation to notify, one call at a time.
func Parts(n int, notify func(fraction float64)) (report func(part int) func(fraction float64)) {
	var mu sync.Mutex
	fractions, sum := make([]float64, n), 0.0
	return func(i int) func(float64) {
		return func(fraction float64) {
			mu.Lock()
			defer mu.Unlock()
			if fraction > fractions[i] {
				sum += fraction - fractions[i]
				fractions[i] = fraction
			}
			notify(min(sum/float64(n), 1))
		}
	}
}
