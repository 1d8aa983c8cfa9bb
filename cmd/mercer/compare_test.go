package main

import (
	"encoding/json"
	"math"
	"testing"
)

// TestBootstrapOfAConstantHasItsBiasAndVariance checks the bias and the variance of a fit of a constant to n rows
// against their closed forms. In the rounds without row i, the constant has the mean ȳ₋ᵢ of the other rows, so that
// its bias at row i is ȳ₋ᵢ − y_i, and its variance is 1/n of the variance of the other rows.
func TestBootstrapOfAConstantHasItsBiasAndVariance(t *testing.T) {
	l := gramLab{t, t.TempDir()}
	y := []float64{0, 1, 3, 7, 8, 12, 5, 2}
	var rows [][]float64
	for i, v := range y {
		rows = append(rows, []float64{float64(i), v})
	}
	l.write("y.csv", []string{"x", "y"}, rows)
	const rounds = 1000
	var got struct {
		Bias     float64 `json:"bias2_and_noise"`
		Variance float64 `json:"variance"`
		Error    float64 `json:"error_out_of_bag"`
	}
	out := l.mercer("bootstrap", "--quiet", "--json", "--learner", "ridge", "--lambda", "1e14", "--rounds", "1000", "--target", "y", l.path("y.csv"))
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	n, bias, variance := float64(len(y)), 0.0, 0.0
	for i, v := range y {
		mean, square := 0.0, 0.0
		for j, w := range y {
			if j != i {
				mean += w / (n - 1)
				square += w * w / (n - 1)
			}
		}
		bias += (mean - v) * (mean - v) / n
		variance += (square - mean*mean) / n / n
	}
	t.Logf("bias² %v, by hand %v; variance %v, by hand %v; seed 1", got.Bias, bias, got.Variance, variance)
	// A row is out of bag in a fraction (1 − 1/n)ⁿ of the rounds. Each bound is six standard deviations.
	outOfBag := rounds * math.Pow(1-1/n, n)
	if math.Abs(got.Variance-variance) > 6*math.Sqrt(2/outOfBag)*variance {
		t.Errorf("variance %v, want %v", got.Variance, variance)
	}
	if math.Abs(got.Bias-bias) > 6*2*math.Sqrt(bias*variance/outOfBag) {
		t.Errorf("bias² %v, want %v", got.Bias, bias)
	}
	if e := got.Error * got.Error; math.Abs(got.Bias+got.Variance-e) > rounds*n*0x1p-52*e {
		t.Errorf("bias² and variance are %v, the squared error is %v", got.Bias+got.Variance, e)
	}
}
