package learners

import (
	"errors"
	"fmt"
	"math"

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
func ScoreRegression(y, pred mat.Matrix) (RegressionScore, error) {
	s, err := scoreRegression(y, pred)
	if err != nil {
		return RegressionScore{}, fmt.Errorf("learners: score: %w", err)
	}
	return s, nil
}

func scoreRegression(y, pred mat.Matrix) (s RegressionScore, err error) {
	hy, err := hostOf("y", y)
	if err != nil {
		return s, err
	}
	hf, err := hostOf("prediction", pred)
	if err != nil {
		return s, err
	}
	if hy.Rows != hf.Rows || hy.Cols != hf.Cols {
		return s, fmt.Errorf("y is %d×%d, the predictions are %d×%d", hy.Rows, hy.Cols, hf.Rows, hf.Cols)
	}
	if i, j, ok := notFinite(hy); ok {
		return s, valueError("y", hy, i, j)
	}
	if i, j, ok := notFinite(hf); ok {
		return s, valueError("prediction", hf, i, j)
	}
	n, t := float64(hy.Rows), float64(hy.Cols)
	for j := range hy.Cols {
		var mean, squares, absolute, total float64
		for i := range hy.Rows {
			mean += hy.Row(i)[j] / n
		}
		constant := true
		for i := range hy.Rows {
			v := hy.Row(i)[j]
			e, c := v-hf.Row(i)[j], v-mean
			squares += e * e
			absolute += math.Abs(e)
			total += c * c
			constant = constant && v == hy.Row(0)[j]
		}
		s.RMSE += math.Sqrt(squares/n) / t
		s.MAE += absolute / n / t
		switch {
		case !constant && total > 0:
			s.R2 += (1 - squares/total) / t
		case squares == 0:
			s.R2 += 1 / t
		}
	}
	s.N = hy.Rows
	if v := s.RMSE + s.MAE + s.R2; v-v != 0 {
		return s, errors.New("the squares of the errors are too large for float64: scale the targets down")
	}
	return s, nil
}
