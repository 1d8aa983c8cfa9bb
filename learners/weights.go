package learners

import (
	"slices"

	"github.com/mercer-go/mercer/backend"
)

// Every fit ignores samples of weight 0: dropZeroWeight, selectPositive and positiveWeights omit them.

func weightOf(o Options, i int) float64 {
	if o.Weights == nil {
		return 1
	}
	return o.Weights[i]
}

// dropZeroWeight returns a copy of the rows of h that have a weight > 0.
func dropZeroWeight(h backend.Host[float64], weights []float64) backend.Host[float64] {
	n := h.Rows
	for _, w := range weights {
		if w == 0 {
			n--
		}
	}
	kept, next := backend.NewHost[float64](n, h.Cols), 0
	for i := range h.Rows {
		if weights == nil || weights[i] > 0 {
			copy(kept.Row(next), h.Row(i))
			next++
		}
	}
	return kept
}

// selectPositive returns the entries of list with a weight > 0, or list if weights is nil.
func selectPositive[T any](list []T, weights []float64) []T {
	if weights == nil {
		return list
	}
	var kept []T
	for i, v := range list {
		if weights[i] > 0 {
			kept = append(kept, v)
		}
	}
	return kept
}

// positiveWeights returns the weights that are > 0, or n ones if weights is nil.
func positiveWeights(weights []float64, n int) []float64 {
	if weights == nil {
		return slices.Repeat([]float64{1}, n)
	}
	return selectPositive(weights, weights)
}
