package learners

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/gonum"
	"gonum.org/v1/gonum/mat"
)

// RegressionScore compares predictions with what was observed. With several
// outputs each figure is the mean of those of the outputs, as in scikit-learn.
type RegressionScore struct {
	RMSE float64 // √(mean (y−f)²)
	MAE  float64 // mean |y−f|
	// R2 is 1 − Σ(y−f)²/Σ(y−ȳ)². For a constant y it is 1 when f is exact
	// and 0 otherwise.
	R2 float64
	N  int // samples
}

// ScoreRegression returns the score of the predictions pred for the n×t
// targets y. Both are only read.
func ScoreRegression(y, pred mat.Matrix) (s RegressionScore, err error) {
	defer named("score", nil, &s, &err)
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
	if err := cmp.Or(checkFinite("y", hy), checkFinite("prediction", hf)); err != nil {
		return s, err
	}
	n, t := float64(hy.Rows), float64(hy.Cols)
	for j := range hy.Cols {
		truth := func(i int) float64 { return hy.Row(i)[j] }
		var mean float64
		constant := true
		for i := range hy.Rows {
			mean += truth(i) / n
			constant = constant && truth(i) == truth(0)
		}
		e := sums(hy.Rows, func(i int) float64 { return truth(i) - hf.Row(i)[j] })
		s.RMSE += e.scaled(math.Sqrt(e.squares/n)) / t
		s.MAE += e.scaled(e.absolute/n) / t
		switch {
		case !constant:
			// Some value differs from any mean, so that c.squares > 0.
			c := sums(hy.Rows, func(i int) float64 { return truth(i) - mean })
			s.R2 += (1 - math.Ldexp(e.squares/c.squares, 2*(e.exponent-c.exponent))) / t
		case e.squares == 0:
			s.R2 += 1 / t
		}
	}
	s.N = hy.Rows
	if v := s.RMSE + s.MAE + s.R2; v-v != 0 {
		return s, errors.New("the errors are too large for float64, or for the spread of the targets")
	}
	return s, nil
}

// A sum is over numbers that were divided by 2^exponent, the power of two next
// above the largest of them: squares neither overflow nor vanish, and numbers of
// the usual size give the bits that they give without scaling.
type sum struct {
	absolute, squares float64
	exponent          int
}

// sums returns the sum over v(0), …, v(n−1). It is 0 for zeros only, and NaN
// when one of them is not finite.
func sums(n int, v func(i int) float64) (s sum) {
	most := 0.0
	for i := range n {
		most = max(most, math.Abs(v(i)))
	}
	if math.IsInf(most, 0) || math.IsNaN(most) {
		return sum{absolute: math.NaN(), squares: math.NaN()}
	}
	_, s.exponent = math.Frexp(most)
	for i := range n {
		q := math.Abs(math.Ldexp(v(i), -s.exponent))
		s.absolute += q
		s.squares += q * q
	}
	return s
}

// scaled undoes the division for a mean of the numbers' size.
func (s sum) scaled(v float64) float64 { return math.Ldexp(v, s.exponent) }
