package dataset

import (
	"cmp"
	"math"
	"slices"
)

// totalWeight returns the sum of the weights of n rows. Nil weights are all 1.
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

// valueWeights returns, for each entry of a coded column, the sum of the weights of its rows, or
// the number of its rows if weights is nil.
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

// weightedMoments returns the moments of values with positive weights, where an integer weight has the same
// effect as repeating the value. It ignores NaN, and scales the deviations as momentsOf does.
func weightedMoments(values, weights []float64) (m moments) {
	m.Low, m.High = math.Inf(1), math.Inf(-1)
	for i, v := range values {
		if v == v {
			m.N += weights[i]
			m.Low, m.High = min(m.Low, v), max(m.High, v)
		}
	}
	if m.Low >= m.High { // true also if there are no values
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
	var rest, sum float64
	for i, v := range values {
		if v == v {
			u, p := (v-m.Mean)/unit, weights[i]/m.N
			rest += p * u
			sum += p * u * u
		}
	}
	m.shift(rest * unit)
	m.SD = math.Sqrt(max(sum-rest*rest, 0)) * unit
	return m
}

// median returns the weighted median of values, whose moments are m.
func (m moments) median(values, weights []float64) (v float64, ok bool) {
	if weights != nil {
		return weightedMedian(values, weights)
	}
	return median(values, int(m.N))
}

// weightedMedian returns the weighted median: the value at which the cumulative weight passes half
// of the total, or the mean of two adjacent values if exactly half of the weight lies on either
// side. It ignores NaN; ok is false if every value is NaN.
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
	below := 0.0
	for k, i := range order {
		switch below += weights[i]; {
		case 2*below == total && k+1 < len(order):
			m, _ = median([]float64{values[i], values[order[k+1]]}, 2)
			return m, true
		case 2*below > total || k+1 == len(order):
			return values[i], true
		}
	}
	return 0, false
}
