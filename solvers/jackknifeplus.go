package solvers

import (
	"math"
	"slices"
	"sync"

	"github.com/mercer-go/mercer/backend"
)

// JackknifePlus sets column j of lower and upper, from row first on, to the intervals of
// as many points as b has columns: b is what the prediction for each point loses
// when sample i, of error c_ij, is left out, divided by c_ij.
func JackknifePlus(threads, rank, j, first int, lower, upper, f, c, b backend.Host[float64]) {
	var g sync.WaitGroup
	n, workers := b.Rows, max(1, min(threads, b.Cols))
	for w := range workers {
		g.Go(func() {
			low, high := make([]float64, n), make([]float64, n)
			for k := w; k < b.Cols; k += workers {
				value := f.Row(first + k)[j]
				for i := range n {
					e := c.Data[i*c.Stride+j]
					left := value - e*b.Data[i*b.Stride+k]
					low[i], high[i] = left-math.Abs(e), left+math.Abs(e)
				}
				slices.Sort(low)
				slices.Sort(high)
				lower.Row(first + k)[j] = low[n-rank]
				upper.Row(first + k)[j] = high[rank-1]
			}
		})
	}
	g.Wait()
}
