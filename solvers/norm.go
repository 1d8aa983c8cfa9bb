package solvers

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
)

// SquaredNorm returns ‖f‖² = αᵀKα of the first output from the system
// (K + λW⁻¹)α + b·1 = y that α solves, so that Kα takes no product; false where rounding
// of αᵀ(y − b − λW⁻¹α) leaves nothing of it.
func SquaredNorm(y, alpha backend.Host[float64], b, weights []float64, lambda float64) (float64, bool) {
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
