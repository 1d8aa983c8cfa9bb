package learners

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
)

// squaredNorm is the name of the Fact ‖w‖², or ‖f‖² for a function in the space of a kernel. For regression it
// describes the first output; for K classes it is the sum over the K functions.
const squaredNorm = "squared norm"

// normFacts returns the fact ‖f‖² of a support vector machine and, if ‖f‖² is negative, a warning with the reason.
func normFacts(square float64) []Fact {
	facts := []Fact{{squaredNorm, square}}
	if square < 0 {
		facts = warned(facts, "the squared norm is negative, because the kernel is not positive definite on these samples: there is no margin, and the solution may be one of several")
	}
	return facts
}

// squares returns the sum of the squares of the elements of h.
func squares(h backend.Host[float64]) (sum float64) {
	for i := range h.Rows {
		for _, v := range h.Row(i) {
			sum += v * v
		}
	}
	return sum
}

// coefNorm returns ‖w‖² of the first output.
func coefNorm(coef backend.Host[float64]) float64 { return squares(coef.View(0, 0, coef.Rows, 1)) }

// expansionNorm returns the fact ‖f‖² of the first output, or no fact if expansionSquare cannot compute ‖f‖².
func expansionNorm(y, alpha backend.Host[float64], b []float64, weights []float64, lambda float64) []Fact {
	if square, ok := expansionSquare(y, alpha, b, weights, lambda); ok {
		return []Fact{{squaredNorm, square}}
	}
	return nil
}

// noiseFacts returns the facts of a linear fit about the noise N(0, σ²/w_i): the estimate squares/(n − p) of σ²
// for p parameters, and the log likelihood at σ² = squares/n,
//
//	−(n/2)(ln(2π squares/n) + 1) + ½ Σ ln w_i
//
// where squares is the weighted sum of the squared residuals of the first output, and n is the number of rows of
// weight > 0. The argument p does not count the intercept. An exact fit has none of these facts.
func noiseFacts(squares float64, weights []float64, rows, p int, intercept bool) []Fact {
	if !(squares > 0) || !finite(squares) {
		return nil
	}
	n := len(positiveWeights(weights, rows))
	if intercept {
		p++
	}
	var facts []Fact
	if n > p {
		facts = append(facts, Fact{"noise variance", squares / float64(n-p)})
	}
	log := -float64(n) / 2 * (elementary.Log(2*math.Pi*squares/float64(n)) + 1)
	for _, w := range weights {
		if w > 0 {
			log += elementary.Log(w) / 2
		}
	}
	return append(facts, Fact{"log likelihood", log})
}

// expansionSquare returns ‖f‖² = αᵀKα of the first output. By the normal equations this is αᵀ(y − b − λW⁻¹α) for the
// diagonal matrix W of weights. The result is false if rounding errors dominate it.
func expansionSquare(y, alpha backend.Host[float64], b, weights []float64, lambda float64) (float64, bool) {
	sum, size := 0.0, 0.0
	for i := range alpha.Rows {
		a, weight := alpha.Row(i)[0], 1.0
		if weights != nil {
			weight = weights[i]
		}
		if weight == 0 {
			continue // α_i = 0
		}
		penalty := lambda / weight * a
		sum += a * (y.Row(i)[0] - b[0] - penalty)
		size += math.Abs(a) * (math.Abs(y.Row(i)[0]) + math.Abs(b[0]) + math.Abs(penalty))
	}
	return sum, sum-sum == 0 && sum >= 1e3*numeric.Epsilon*size
}
