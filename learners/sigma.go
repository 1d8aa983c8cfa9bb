package learners

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/backend"
)

// sigmaRows is the number of rows whose distances are looked at: 124,750 pairs
// give the median to a fraction of a percent.
const sigmaRows = 500

// medianDistance returns the median of the Euclidean distances between rows of
// x, pairs of equal rows left out: a length scale at which a Gaussian kernel
// neither calls all points alike nor all points different. With more than
// sigmaRows rows it looks at that many of them, chosen by seed.
func medianDistance(ctx context.Context, x backend.Host[float64], seed uint64) (float64, error) {
	rows := make([]int, x.Rows)
	for i := range rows {
		rows[i] = i
	}
	if len(rows) > sigmaRows {
		r := rand.New(rand.NewPCG(seed, 0))
		r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		rows = rows[:sigmaRows]
	}
	var distances []float64
	for i, a := range rows {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		for _, b := range rows[:i] {
			if d := distance(x.Row(a), x.Row(b)); d > 0 && !math.IsInf(d, 1) {
				distances = append(distances, d)
			}
		}
	}
	if i, j, ok := notFinite(x); ok {
		return 0, valueError("x", x, i, j)
	}
	if len(distances) == 0 {
		return 0, errors.New("no length scale can be chosen for the Gaussian kernel, because the rows of x are equal or too far apart: give a kernel")
	}
	slices.Sort(distances)
	n := len(distances)
	return (distances[(n-1)/2] + distances[n/2]) / 2, nil
}

func distance(a, b []float64) float64 {
	sum := 0.0
	for p, v := range a {
		sum += (v - b[p]) * (v - b[p])
	}
	return math.Sqrt(sum)
}
