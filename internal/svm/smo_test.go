package svm

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestCouple checks that couple recovers the probabilities of the classes from those of pairs.
func TestCouple(t *testing.T) {
	for _, want := range [][]float64{{0.2, 0.3, 0.5}, {0.7, 0.1, 0.1, 0.1}, {0.01, 0.04, 0.15, 0.3, 0.5}} {
		k := len(want)
		r := mat.NewDense(k, k, nil)
		for a := range k {
			for b := range k {
				if a != b {
					r.Set(a, b, want[a]/(want[a]+want[b]))
				}
			}
		}
		got := make([]float64, k)
		couple(got, r)
		for c := range k {
			// The iteration ends when its optimality conditions hold within 0.005/k.
			if math.Abs(got[c]-want[c]) > 0.005 {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	}
}

// TestSigmoid checks that Platt's targets keep the slope finite for separable values, and that for values without
// information the probability is the mean of the targets.
func TestSigmoid(t *testing.T) {
	a, b := sigmoid([]float64{-1, -1, 1, 1}, []float64{-1, -1, 1, 1}, []float64{1, 1, 1, 1})
	// The targets are 3/4 and 1/4 at the values 1 and −1. By symmetry B = 0, so that A = −log 3.
	if math.Abs(a+math.Log(3)) > 1e-4 || math.Abs(b) > 1e-4 {
		t.Errorf("got %v, %v", a, b)
	}
	values, sign, weight := make([]float64, 8), []float64{1, 1, 1, 1, 1, 1, -1, -1}, slices.Repeat([]float64{1}, 8)
	a, b = sigmoid(values, sign, weight)
	// The mean of the targets is (6·7/8 + 2·1/4)/8.
	share := (6*7./8 + 2./4) / 8
	if p := 1 / (1 + math.Exp(b)); math.Abs(p-share) > 1e-5 {
		t.Errorf("got %v, %v: %v", a, b, p)
	}
	// If the values decrease with the class, the probability is the same constant for every scale of the values.
	for _, scale := range []float64{1e-9, 1, 1e9} {
		for i, s := range sign {
			values[i] = -s * scale * float64(1+i%3)
		}
		a, b = sigmoid(values, sign, weight)
		if p := 1 / (1 + math.Exp(b)); a != 0 || math.Abs(p-share) > 1e-12 {
			t.Errorf("scale %v: got %v, %v: %v", scale, a, b, p)
		}
	}
	// A scales like 1/values, and an integer weight has the effect of repeated samples.
	values = []float64{-2, -1, 0.5, 1, -0.5, 3, 0.2, -1}
	want, wantB := sigmoid(values, sign, weight)
	for _, scale := range []float64{1e-9, 1e-3, 1e9} {
		scaled := make([]float64, len(values))
		for i, v := range values {
			scaled[i] = scale * v
		}
		if a, b = sigmoid(scaled, sign, weight); math.Abs(a*scale-want) > 1e-8*math.Abs(want) || math.Abs(b-wantB) > 1e-8 {
			t.Errorf("scale %v: got %v, %v, want %v, %v", scale, a*scale, b, want, wantB)
		}
	}
	twice, _ := sigmoid(values, sign, slices.Repeat([]float64{2}, 8))
	repeated, _ := sigmoid(slices.Repeat(values, 2), slices.Repeat(sign, 2), slices.Repeat(weight, 2))
	if math.Abs(twice-repeated) > 1e-8 {
		t.Errorf("weights of 2: A is %v, of repetitions %v", twice, repeated)
	}
}
