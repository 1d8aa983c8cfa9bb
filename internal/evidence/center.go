package evidence

import "github.com/mercer-go/mercer/backend"

// Center returns the weighted means of the columns of y, and y minus the means. Nil weights are 1.
func Center(y backend.Host[float64], weights []float64) (mean []float64, centered backend.Host[float64]) {
	weight := func(i int) float64 {
		if weights == nil {
			return 1
		}
		return weights[i]
	}
	total := 0.0
	for i := range y.Rows {
		total += weight(i)
	}
	mean = make([]float64, y.Cols)
	// The second pass removes the rounding error of the first pass.
	for range 2 {
		correction := make([]float64, y.Cols)
		for i := range y.Rows {
			if w := weight(i); w > 0 {
				for j, v := range y.Row(i) {
					correction[j] += w / total * (v - mean[j])
				}
			}
		}
		for j, v := range correction {
			mean[j] += v
		}
	}
	centered = backend.NewHost[float64](y.Rows, y.Cols)
	for i := range y.Rows {
		for j, v := range y.Row(i) {
			centered.Row(i)[j] = v - mean[j]
		}
	}
	return mean, centered
}
