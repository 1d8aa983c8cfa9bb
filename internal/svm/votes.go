package svm

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/internal/elementary"
)

// PairValues sets values to the decision values of the machines of K classes, in the order of At. b holds the
// intercepts of the machines. The argument sums is K×(K−1): row a has a column for each machine of class a, with
// the sum over the support vectors of class a.
func PairValues(values, sums, b []float64, k int) {
	for a := range k {
		for c := a + 1; c < k; c++ {
			pair := At(a, c, k)
			values[pair] = sums[a*(k-1)+c-1] + sums[c*(k-1)+a] + b[pair]
		}
	}
}

// Votes sets votes for each of K > 2 classes to the number of pairs that predict the class, plus s/(3(|s|+1)), where s
// is the sum of the decision values for the class over its pairs. As in scikit-learn, this term only breaks ties. pairs
// holds the decision values in the order defined by At. A sum that overflows is replaced by the largest float64.
func Votes(votes, pairs []float64) {
	k := len(votes)
	sums := make([]float64, k)
	clear(votes)
	for a := range k {
		for c := a + 1; c < k; c++ {
			v := pairs[At(a, c, k)]
			sums[a] -= v
			sums[c] += v
			if v > 0 {
				votes[c]++
			} else {
				votes[a]++
			}
		}
	}
	for c, s := range sums {
		s = max(-math.MaxFloat64, min(s, math.MaxFloat64))
		votes[c] += s / (math.Abs(s) + 1) / 3
	}
}

// Probabilities sets p to the probabilities of K classes, from the values of their machines and
// the A and B of Sigmoids.
func Probabilities(p, pairs, a, b []float64) {
	k := len(p)
	r := mat.NewDense(k, k, nil)
	for i := range k {
		for j := i + 1; j < k; j++ {
			pair := At(i, j, k)
			// Keep the probability away from 0 and 1: a single pair must not determine the result.
			second := min(max(1/(1+elementary.Exp(a[pair]*pairs[pair]+b[pair])), 1e-7), 1-1e-7)
			r.Set(j, i, second)
			r.Set(i, j, 1-second)
		}
	}
	if k == 2 {
		p[0], p[1] = r.At(0, 1), r.At(1, 0)
		return
	}
	couple(p, r)
}
