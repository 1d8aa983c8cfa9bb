package neighbors

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
)

// bandwidthRows is the largest number of rows that Bandwidth uses.
const bandwidthRows = 1000

// Bandwidth chooses the sigma of a Gaussian among 8, 8/√2, 4, …, 1/16 times median. It returns the sigma for which
// the kernel-weighted means of y have the smallest leave-one-out squared error, relative to the variance of each
// column of y. Bandwidth takes O(n²) operations for n ≤ 1000 rows chosen by seed. It excludes a sigma if, for some
// row, the kernel values with all other rows underflow. The weights must be > 0.
func Bandwidth(ctx context.Context, median float64, points numeric.Points, y backend.Host[float64], weight []float64, seed uint64) (float64, error) {
	rows := rand.New(rand.NewPCG(seed, 1)).Perm(points.Rows)
	rows = rows[:min(len(rows), bandwidthRows)]
	// Scale the targets to the range from 0 to 1, so that no square overflows.
	u, variance := backend.NewHost[float64](len(rows), y.Cols), make([]float64, y.Cols)
	weights, total := make([]float64, len(rows)), 0.0
	for a, i := range rows {
		weights[a] = weight[i]
		total += weight[i]
	}
	for j := range y.Cols {
		low, high := math.Inf(1), math.Inf(-1)
		for _, i := range rows {
			low, high = min(low, y.Row(i)[j]), max(high, y.Row(i)[j])
		}
		if low == high {
			continue
		}
		mean := 0.0
		for a, i := range rows {
			u.Row(a)[j] = (y.Row(i)[j]/2 - low/2) / (high/2 - low/2)
			mean += weights[a] / total * u.Row(a)[j]
		}
		for a := range rows {
			variance[j] += weights[a] / total * (u.Row(a)[j] - mean) * (u.Row(a)[j] - mean)
		}
	}
	var loss [15]float64
	var difference []float64
	sum, square := make([]float64, y.Cols), make([]float64, len(rows))
	for a, i := range rows {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		for b, other := range rows {
			difference = points.Difference(difference, i, other)
			d := norm(difference) / median
			square[b] = d * d
		}
		for g := range loss {
			// The factor of candidate g is 8·2^(−g/2), whose square is 64·2^−g.
			scale, total := -0.5/math.Ldexp(64, -g), 0.0
			clear(sum)
			for b := range rows {
				if b == a {
					continue
				}
				k := weights[b] * elementary.Exp(scale*square[b])
				total += k
				for j, v := range u.Row(b) {
					sum[j] += k * v
				}
			}
			if !(total > 0) {
				loss[g] = math.Inf(1)
				continue
			}
			for j, s := range sum {
				if e := u.Row(a)[j] - s/total; variance[j] > 0 {
					loss[g] += weights[a] * e * e / variance[j]
				}
			}
		}
	}
	best := 6 // the index of sigma = median
	for g, v := range loss {
		if v < loss[best] {
			best = g
		}
	}
	return median * 8 * elementary.Pow(2, -float64(best)/2), nil
}
