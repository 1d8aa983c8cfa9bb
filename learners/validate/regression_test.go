package validate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/learners/validate"
	"gonum.org/v1/gonum/mat"
)

// figures holds the expected values of a score.
type figures struct {
	RMSE, MAE, R2 float64
	N             int
}

func TestScoreRegression(t *testing.T) {
	for _, test := range []struct {
		name    string
		y, pred mat.Matrix
		want    figures
	}{
		{"one output", mat.NewVecDense(4, []float64{1, 2, 3, 4}), mat.NewVecDense(4, []float64{1, 2, 3, 6}),
			figures{RMSE: 1, MAE: 0.5, R2: 1 - 4.0/5, N: 4}},
		// The expected values are from mean_squared_error(squared=False), mean_absolute_error and
		// r2_score of scikit-learn 1.2.1.
		{"two outputs", mat.NewDense(3, 2, []float64{0.5, 1, -1, 1, 7, -6}), mat.NewDense(3, 2, []float64{0, 2, -1, 2, 8, -5}),
			figures{RMSE: 0.8227486121839513, MAE: 0.75, R2: 0.9368005266622779, N: 3}},
		{"constant, met", mat.NewVecDense(2, []float64{0.1, 0.1}), mat.NewVecDense(2, []float64{0.1, 0.1}), figures{R2: 1, N: 2}},
		{"constant, missed", mat.NewVecDense(3, []float64{0.1, 0.1, 0.1}), mat.NewVecDense(3, []float64{0.1, 0.1, 3.1}),
			figures{RMSE: math.Sqrt(3), MAE: 1, N: 3}},
		{"one sample", mat.NewVecDense(1, []float64{2}), mat.NewVecDense(1, []float64{4}), figures{RMSE: 2, MAE: 2, N: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := validate.ScoreRegression(test.y, test.pred, nil)
			if err != nil {
				t.Fatal(err)
			}
			const bound = 16 * 0x1p-52 // a few roundings of numbers near 1
			checkClose(t, "RMSE", *got.RMSE, test.want.RMSE, bound)
			checkClose(t, "MAE", *got.MAE, test.want.MAE, bound)
			checkClose(t, "R2", *got.R2, test.want.R2, bound)
			if got.N != test.want.N {
				t.Errorf("N is %d, want %d", got.N, test.want.N)
			}
		})
	}
	one := mat.NewVecDense(1, []float64{1})
	for _, test := range []struct {
		y, pred mat.Matrix
		want    string
	}{
		{nil, one, "validate: score: y is missing"},
		{one, &mat.Dense{}, "validate: score: prediction is empty"},
		{one, mat.NewDense(1, 2, nil), "validate: score: y is 1×1, the predictions are 1×2"},
		{mat.NewVecDense(1, []float64{math.NaN()}), one, "validate: score: y: row 1, column 1 is NaN"},
		{one, mat.NewVecDense(1, []float64{math.Inf(1)}), "validate: score: prediction: row 1, column 1 is +Inf"},
		{mat.NewVecDense(1, []float64{math.MaxFloat64}), mat.NewVecDense(1, []float64{-math.MaxFloat64}), "the errors, or their ratios"},
		{mat.NewVecDense(2, []float64{0, 1e-200}), mat.NewVecDense(2, []float64{1e200, 0}), "outside the range of float64"},
	} {
		if _, err := validate.ScoreRegression(test.y, test.pred, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}

// TestScoreScale checks that scores are correct for numbers of any size, also if their squares
// overflow or underflow.
func TestScoreScale(t *testing.T) {
	y, inexact := mat.NewVecDense(3, []float64{0, 1, 2}), mat.NewVecDense(3, []float64{0, 1, 3})
	constant := mat.NewVecDense(3, []float64{1, 1, 1})
	for _, scale := range []float64{1e-300, 1e-170, 1, 1e170, 1e300} {
		for _, test := range []struct {
			name    string
			y, pred *mat.VecDense
			want    figures // the expected values at scale 1
		}{
			{"wrong", y, inexact, figures{RMSE: math.Sqrt(1.0 / 3), MAE: 1.0 / 3, R2: 0.5, N: 3}},
			{"exact", y, y, figures{R2: 1, N: 3}},
			{"constant, wrong", constant, inexact, figures{RMSE: math.Sqrt(5.0 / 3), MAE: 1, N: 3}},
			{"constant, exact", constant, constant, figures{R2: 1, N: 3}},
		} {
			var a, b mat.VecDense
			a.ScaleVec(scale, test.y)
			b.ScaleVec(scale, test.pred)
			got, err := validate.ScoreRegression(&a, &b, nil)
			if err != nil {
				t.Errorf("%s × %g: %v", test.name, scale, err)
				continue
			}
			const bound = 16 * 0x1p-52 // a few roundings of numbers near 1
			label := fmt.Sprintf("%s × %g: ", test.name, scale)
			checkClose(t, label+"RMSE", *got.RMSE/scale, test.want.RMSE, bound)
			checkClose(t, label+"MAE", *got.MAE/scale, test.want.MAE, bound)
			checkClose(t, label+"R2", *got.R2, test.want.R2, bound)
		}
	}
	// An error whose square underflows is not rounded to 0.
	got, err := validate.ScoreRegression(mat.NewVecDense(1, []float64{1e-170}), mat.NewVecDense(1, []float64{0}), nil)
	if err != nil || *got.R2 != 0 || *got.RMSE != 1e-170 {
		t.Errorf("got %+v, %v", got, err)
	}
}
