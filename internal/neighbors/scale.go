package neighbors

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// MedianRows is the largest number of rows whose distances are computed. Their 124,750 pairs determine the median
// to a fraction of a percent.
const MedianRows = 500

// ErrEqualRows is the error of MedianDistance if no two rows differ.
var ErrEqualRows = errors.New("no length scale can be chosen for the Gaussian kernel, because all rows of x are equal: give a kernel")

// MedianDistance returns the median of the Euclidean distances between rows of x, without rows of weight 0 and without
// pairs of equal rows. If more than MedianRows rows have a weight > 0, it uses MedianRows of them, chosen by seed.
func MedianDistance(ctx context.Context, x numeric.Points, weights []float64, seed uint64) (float64, error) {
	var rows []int
	for i := range x.Rows {
		if i >= len(weights) || weights[i] != 0 { // a later check refuses invalid weights
			rows = append(rows, i)
		}
	}
	if len(rows) > MedianRows {
		r := rand.New(rand.NewPCG(seed, 0))
		r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		rows = rows[:MedianRows]
	}
	x, rows = withoutZeros(x, rows)
	// The distances of row i from the rows 0, …, i−1 start at the index i(i − 1)/2.
	distances := make([]float64, len(rows)*max(0, len(rows)-1)/2)
	var next atomic.Int64
	run.Parallel(len(rows), func(first, last int) {
		var difference []float64
		for range last - first {
			if ctx.Err() != nil {
				return
			}
			i := len(rows) - int(next.Add(1)) // later rows have more distances and come first
			for j := range i {
				difference = x.Difference(difference, rows[i], rows[j])
				distances[i*(i-1)/2+j] = norm(difference)
			}
		}
	})
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	distances = slices.DeleteFunc(distances, func(d float64) bool { return !(d > 0) || math.IsInf(d, 1) })
	if len(rows) == 0 {
		return 0, errors.New("weights: all are 0, so that no sample remains")
	}
	if len(distances) == 0 && len(rows) == 1 {
		return 0, errors.New("no length scale can be chosen for the Gaussian kernel, because there is one row only: give a kernel")
	}
	if len(distances) == 0 {
		return 0, ErrEqualRows
	}
	slices.Sort(distances)
	n := len(distances)
	low, high := distances[(n-1)/2], distances[n/2]
	sigma := low + (high-low)/2
	if err := (kernels.Gaussian{Sigma: sigma}).Check(-1); err != nil {
		return 0, kernels.Overflow(fmt.Errorf("the median distance of the rows of x: %w", err))
	}
	return sigma, nil
}

// withoutZeros returns the given rows of x as sparse points, and their indices. If x is sparse, or if more than
// 1/16 of the elements are not 0, it returns its arguments.
func withoutZeros(x numeric.Points, rows []int) (numeric.Points, []int) {
	if x.Sparse != nil || x.Cols > math.MaxInt32 {
		return x, rows
	}
	nonzeros := 0
	for _, i := range rows {
		for _, v := range x.Dense.Row(i) {
			if v != 0 {
				nonzeros++
			}
		}
		if nonzeros > len(rows)*x.Cols/16 {
			return x, rows
		}
	}
	s := backend.CSR[float64]{Rows: len(rows), Cols: x.Cols, Indptr: []int{0}, Indices: make([]int32, 0, nonzeros), Data: make([]float64, 0, nonzeros)}
	list := make([]int, len(rows))
	for r, i := range rows {
		for j, v := range x.Dense.Row(i) {
			if v != 0 {
				s.Indices, s.Data = append(s.Indices, int32(j)), append(s.Data, v)
			}
		}
		s.Indptr, list[r] = append(s.Indptr, len(s.Data)), r
	}
	return numeric.SparsePoints(s), list
}

// ScaleSigma returns √(d·Var(X)/2), where Var(X) is the variance of all entries of the n×d matrix X except rows of
// weight 0. It corresponds to gamma="scale" of scikit-learn's support vector machines, γ = 1/(d·Var(X)) in
// exp(−γ‖x − z‖²). ScaleSigma returns an error if all entries are equal. The entries of x must be finite.
func ScaleSigma(x numeric.Points, weights []float64) (float64, error) {
	var rows []int
	stored := 0
	for i := range x.Rows {
		if i >= len(weights) || weights[i] != 0 { // a later check refuses invalid weights
			rows = append(rows, i)
			stored += len(x.Stored(i))
		}
	}
	count := float64(len(rows)) * float64(x.Cols)
	// values calls f with slices that together contain all entries. Each entry of a slice counts `times` times.
	values := func(f func(entries []float64, times float64)) {
		for _, i := range rows {
			f(x.Stored(i), 1)
		}
		if zeros := count - float64(stored); zeros > 0 {
			f([]float64{0}, zeros)
		}
	}
	low, high := math.Inf(1), math.Inf(-1)
	values(func(entries []float64, _ float64) {
		for _, v := range entries {
			low, high = min(low, v), max(high, v)
		}
	})
	if !(low < high) {
		return 0, errors.New("no length scale can be chosen for the Gaussian kernel, because all entries of x are equal: give a kernel")
	}
	// Squares of differences, in units of the largest difference, neither overflow nor underflow.
	largest := high/2 - low/2
	mean, square := 0.0, 0.0
	values(func(entries []float64, times float64) {
		for _, v := range entries {
			mean += times * ((v/2 - low/2) / largest / count)
		}
	})
	values(func(entries []float64, times float64) {
		for _, v := range entries {
			d := (v/2-low/2)/largest - mean
			square += times * (d * d / count)
		}
	})
	sigma := 2 * largest * math.Sqrt(float64(x.Cols)*square/2)
	if err := (kernels.Gaussian{Sigma: sigma}).Check(-1); err != nil {
		return 0, kernels.Overflow(fmt.Errorf("the deviation of the entries of x: %w", err))
	}
	return sigma, nil
}

// norm returns the 2-norm. If squares overflow or underflow, it divides the elements by the largest.
func norm(difference []float64) float64 {
	sum := 0.0
	for _, v := range difference {
		sum += v * v
	}
	if sum > 0x1p-900 && !math.IsInf(sum, 1) { // squares that underflow do not change such a sum
		return math.Sqrt(sum)
	}
	largest := 0.0
	for _, v := range difference {
		largest = max(largest, math.Abs(v))
	}
	if largest == 0 || math.IsInf(largest, 1) {
		return largest
	}
	sum = 0
	for _, v := range difference {
		q := v / largest
		sum += q * q
	}
	return largest * math.Sqrt(sum)
}
