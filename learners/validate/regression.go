package validate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/numeric"
	"gonum.org/v1/gonum/mat"
)

// ScoreRegression returns the score of the predictions pred for the n×t targets y. With several outputs each
// measure is the mean over the outputs, as in scikit-learn. Every mean and sum is weighted; nil weights are all 1.
func ScoreRegression(y, pred mat.Matrix, weights []float64) (s Score, err error) {
	defer wrapError(&s, &err)
	hy, err := gonum.Host("y", y)
	if err != nil {
		return s, err
	}
	hf, err := gonum.Host("prediction", pred)
	if err != nil {
		return s, err
	}
	if hy.Rows != hf.Rows || hy.Cols != hf.Cols {
		return s, fmt.Errorf("y is %d×%d, the predictions are %d×%d", hy.Rows, hy.Cols, hf.Rows, hf.Cols)
	}
	if err := cmp.Or(finite("y", hy), finite("prediction", hf)); err != nil {
		return s, err
	}
	weight, n, err := scoreWeights(weights, hy.Rows)
	if err != nil {
		return s, err
	}
	var rmse, mae, r2 float64
	t := float64(hy.Cols)
	for j := range hy.Cols {
		truth := func(i int) float64 { return hy.Row(i)[j] }
		var mean, first float64
		constant, hasFirst := true, false
		for i := range hy.Rows {
			w := weight(i)
			if w == 0 {
				continue
			}
			if !hasFirst {
				first, hasFirst = truth(i), true
			}
			mean += w * truth(i) / n
			constant = constant && truth(i) == first
		}
		e := sums(hy.Rows, weight, func(i int) float64 { return truth(i) - hf.Row(i)[j] })
		rmse += e.scaled(math.Sqrt(e.squares/n)) / t
		mae += e.scaled(e.absolute/n) / t
		switch {
		case !constant:
			// At least one target differs from the mean, so that c.squares > 0.
			c := sums(hy.Rows, weight, func(i int) float64 { return truth(i) - mean })
			r2 += (1 - math.Ldexp(e.squares/c.squares, 2*(e.exponent-c.exponent))) / t
		case e.squares == 0:
			r2 += 1 / t
		}
	}
	if v := rmse + mae + r2; v-v != 0 {
		return s, errors.New("the errors, or their ratios to the spread of the targets, are outside the range of float64: scale the targets")
	}
	return Score{N: hy.Rows, RMSE: &rmse, MAE: &mae, R2: &r2}, nil
}

// A sum holds the sums of the absolute values and of the squares of numbers. The numbers are first divided by
// 2^exponent, a power of two above the largest of them, to prevent overflow and underflow.
type sum struct {
	absolute, squares float64
	exponent          int
}

// sums returns the sums for the numbers v(0), …, v(n−1) with the given weights. They are NaN if some v(i) is not
// finite.
func sums(n int, weight, v func(i int) float64) (s sum) {
	maxAbs := 0.0
	for i := range n {
		if weight(i) > 0 {
			maxAbs = max(maxAbs, math.Abs(v(i)))
		}
	}
	if math.IsInf(maxAbs, 0) || math.IsNaN(maxAbs) {
		return sum{absolute: math.NaN(), squares: math.NaN()}
	}
	_, s.exponent = math.Frexp(maxAbs)
	for i := range n {
		w := weight(i)
		if w == 0 {
			continue
		}
		q := math.Abs(math.Ldexp(v(i), -s.exponent))
		s.absolute += w * q
		s.squares += w * q * q
	}
	return s
}

// scaled returns v·2^exponent. It converts a mean of the divided numbers to a mean of the numbers.
func (s sum) scaled(v float64) float64 { return math.Ldexp(v, s.exponent) }

// scoreWeights returns the weight of each of n samples, scaled to at most 1, and the sum of these weights.
func scoreWeights(weights []float64, n int) (weight func(i int) float64, sum float64, err error) {
	if weights == nil {
		return func(int) float64 { return 1 }, float64(n), nil
	}
	if err := numeric.CheckWeights(weights, n); err != nil {
		return nil, 0, err
	}
	maxWeight := slices.Max(weights)
	for _, w := range weights {
		sum += w / maxWeight
	}
	return func(i int) float64 { return weights[i] / maxWeight }, sum, nil
}

// Functions call wrapError with defer. If *err is not nil, wrapError sets *s, the result of the
// function, to zero and adds a prefix to the error.
func wrapError[S any](s *S, err *error) {
	if *err != nil {
		var zero S
		*s, *err = zero, fmt.Errorf("validate: score: %w", *err)
	}
}

func finite(name string, h backend.Host[float64]) error {
	for i := range h.Rows {
		for j, v := range h.Row(i) {
			if v-v != 0 {
				return fmt.Errorf("%s: row %d, column %d is %v", name, i+1, j+1, v)
			}
		}
	}
	return nil
}
