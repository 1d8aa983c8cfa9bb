package svm

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/internal/elementary"
)

// PairValues sets values to the decision values of the machines of K classes, in the order of At. b
// holds the intercepts of the machines. sums is K×(K−1): row a holds the sums over the support
// vectors of class a, one sum for each machine of this class.
func PairValues(values, sums, b []float64, k int) {
	for a := range k {
		for c := a + 1; c < k; c++ {
			at := At(a, c, k)
			values[at] = sums[a*(k-1)+c-1] + sums[c*(k-1)+a] + b[at]
		}
	}
}

// Votes sets votes, for each of K > 2 classes, to the number of pairs for which the class is
// predicted, plus s/(3(|s|+1)), where s is the sum of the values of the class over its pairs. pairs
// holds the values of the machines in the order of At. As in scikit-learn, the second term only
// breaks ties. A sum that overflows is replaced by the largest float64.
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
			at := At(i, j, k)
			// The probability is never exactly 0 or 1, so that a single pair does not determine the result.
			second := min(max(1/(1+elementary.Exp(a[at]*pairs[at]+b[at])), 1e-7), 1-1e-7)
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
