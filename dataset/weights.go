package dataset

import (
	"cmp"
	"math"
	"slices"
)

// totalWeight returns the sum of the weights of n rows. nil weights are all 1.
func totalWeight(weights []float64, n int) float64 {
	if weights == nil {
		return float64(n)
	}
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	return sum
}

// valueWeights returns the sum of the weights of the rows of each entry. nil weights are all 1. counts is
// c.valueCounts().
func (c *column) valueWeights(counts []int, weights []float64) []float64 {
	sums := make([]float64, len(c.entries))
	if weights == nil {
		for code, n := range counts {
			sums[code] = float64(n)
		}
		return sums
	}
	for i, code := range c.codes {
		if code >= 0 {
			sums[code] += weights[i]
		}
	}
	return sums
}

// weightedMoments returns the moments of the values that are not NaN, as momentsOf does for positive weights.
func weightedMoments(values, weights []float64) (m moments) {
	m.Low, m.High = math.Inf(1), math.Inf(-1)
	for i, v := range values {
		if v == v {
			m.N += weights[i]
			m.Low, m.High = min(m.Low, v), max(m.High, v)
		}
	}
	if m.Low >= m.High { // also true if there are no values
		m.Mean = m.Low
		return m
	}
	for i, v := range values {
		if v == v {
			m.Mean += weights[i] / m.N * v
		}
	}
	_, exponent := math.Frexp(max(m.High-m.Mean, m.Mean-m.Low))
	unit := math.Ldexp(1, max(-1022, min(exponent, 1023)))
	var remainder, sum float64
	for i, v := range values {
		if v == v {
			u, p := (v-m.Mean)/unit, weights[i]/m.N
			remainder += p * u
			sum += p * u * u
		}
	}
	m.shift(remainder * unit)
	m.SD = math.Sqrt(max(sum-remainder*remainder, 0)) * unit
	return m
}

// median returns the weighted median of values, whose moments are m.
func (m moments) median(values, weights []float64) (v float64, ok bool) {
	if weights != nil {
		return weightedMedian(values, weights)
	}
	return median(values, int(m.N))
}

// weightedMedian returns the value at which the cumulative weight exceeds half of the total, or the mean of two
// adjacent values if exactly half of the weight is on each side. ok is false if every value is NaN.
func weightedMedian(values, weights []float64) (m float64, ok bool) {
	var order []int
	for i, v := range values {
		if v == v {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	total := 0.0
	for _, i := range order {
		total += weights[i]
	}
	weightBelow := 0.0
	for k, i := range order {
		switch weightBelow += weights[i]; {
		case 2*weightBelow == total && k+1 < len(order):
			m, _ = median([]float64{values[i], values[order[k+1]]}, 2)
			return m, true
		case 2*weightBelow > total || k+1 == len(order):
			return values[i], true
		}
	}
	return 0, false
}
