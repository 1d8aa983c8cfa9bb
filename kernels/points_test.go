package kernels_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

// checkError fails the test unless err has the text want, or is nil if want is "".
func checkError(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil && want != "" || err != nil && err.Error() != want {
		t.Errorf("%s: got %v, want %q", name, err, want)
	}
}

func TestPointRule(t *testing.T) {
	if kernels.PointRule(kernels.Linear{}) != nil {
		t.Error("a linear kernel has a rule for points")
	}
	rule := kernels.PointRule(kernels.Sum{kernels.Linear{}, kernels.Normalized{Kernel: kernels.ChiSquared{Gamma: 1}}})
	checkError(t, "good", rule([]float64{0, 1, 2}), "")
	checkError(t, "negative", rule([]float64{0, 1, -2}), "kernels: chi2: feature 3 is -2: features must be finite numbers ≥ 0")
	checkError(t, "NaN", rule([]float64{math.NaN()}), "kernels: chi2: feature 1 is NaN: features must be finite numbers ≥ 0")
	if v := kernels.Eval(kernels.ChiSquared{Gamma: 1}, []float64{1, -1}, []float64{1, 1}); !math.IsNaN(v) {
		t.Errorf("chi2 of a negative feature is %v", v)
	}
	if v := kernels.Eval(kernels.ChiSquared{Gamma: 1}, []float64{0, 1}, []float64{0, 1}); v != 1 {
		t.Errorf("chi2 of equal points is %v", v)
	}
}

func TestPrecomputed(t *testing.T) {
	gram := []float64{4, 1, 0, 1, 1, 1, 0, 1, 4}
	train, err := kernels.TrainingPoints(3, gram)
	if err != nil {
		t.Fatal(err)
	}
	otherPoints, err := kernels.OtherPoints(3, []float64{7, 8, 9, -1, -2, -3}, []float64{20, 30})
	if err != nil {
		t.Fatal(err)
	}
	point := func(points []float64, i int) []float64 { return points[i*5 : i*5+5] }
	rule := kernels.PointRule(kernels.Precomputed{})
	for i := range 3 {
		checkError(t, "training point", rule(point(train, i)), "")
		for j := range 3 {
			if v := kernels.Eval(kernels.Precomputed{}, point(train, i), point(train, j)); v != gram[i*3+j] {
				t.Errorf("k(%d, %d) is %v", i, j, v)
			}
		}
		for j := range 2 {
			want := []float64{7, 8, 9, -1, -2, -3}[3*j+i]
			a, b := kernels.Eval(kernels.Precomputed{}, point(train, i), point(otherPoints, j)), kernels.Eval(kernels.Precomputed{}, point(otherPoints, j), point(train, i))
			if a != want || b != want {
				t.Errorf("k of training object %d and %d is %v and %v, want %v", i, j, a, b, want)
			}
		}
	}
	checkError(t, "other point", rule(point(otherPoints, 0)), "")
	if v := kernels.Diag(kernels.Precomputed{}, point(otherPoints, 1)); v != 30 {
		t.Errorf("k of the second object with itself is %v", v)
	}
	if v := kernels.Eval(kernels.Precomputed{}, point(otherPoints, 0), point(otherPoints, 1)); !math.IsNaN(v) {
		t.Errorf("k of two objects that are not known is %v", v)
	}
	for text, want := range map[string]bool{
		"precomputed()": true, "2*precomputed()": true, "precomputed()*precomputed()": true, "exp(precomputed())": true,
		"gaussian(sigma=1)": false, "normalize(linear())": false,
	} {
		k, err := kernels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := kernels.IsPrecomputed(k); err != nil || got != want {
			t.Errorf("IsPrecomputed of %s: %v, %v", text, got, err)
		}
	}
	// A normalized kernel must also read its values, including k(a, a), from the points.
	k := kernels.Normalized{Kernel: kernels.Sum{kernels.Precomputed{}, kernels.Constant{Value: 5}}}
	if v, want := kernels.Eval(k, point(train, 0), point(otherPoints, 0)), 12.0/15; math.Abs(v-want) > 4*u {
		t.Errorf("normalized: %v, want %v", v, want)
	}
	const number = "kernels: precomputed: feature 1 is 3: it must be -1 or the number of one of 3 training objects, from 0; the rows of a Gram matrix become points by TrainingPoints"
	checkError(t, "number", rule([]float64{3, 0, 0, 0, 0}), number)
	checkError(t, "fraction", rule([]float64{0.5, 0, 0}), "kernels: precomputed: feature 1 is 0.5: it must be -1 or the number of one of 1 training objects, from 0; the rows of a Gram matrix become points by TrainingPoints")
	// This point is a row of a Gram matrix, given by mistake.
	checkError(t, "diagonal", rule([]float64{1, 2, 3, 4, 5}), "kernels: precomputed: k(a, a) of training object 2 must be equal in features 2 and 4, got 2 and 4; the rows of a Gram matrix become points by TrainingPoints")

	_, err = kernels.TrainingPoints(2, []float64{1, 2, 3})
	checkError(t, "shape", err, "kernels: precomputed: a Gram matrix of 2 objects has 2² values, got 3")
	_, err = kernels.TrainingPoints(2, []float64{1, 2, 2.5, 1})
	checkError(t, "symmetry", err, "kernels: the Gram matrix is not symmetric: row 2, column 1 has 2.5, row 1, column 2 has 2")
	_, err = kernels.TrainingPoints(2, []float64{1, 2, math.Inf(1), 1})
	checkError(t, "finite", err, "kernels: the value in row 2, column 1 of the Gram matrix is +Inf")
	_, err = kernels.OtherPoints(2, []float64{1, math.NaN()}, []float64{1})
	checkError(t, "finite", err, "kernels: precomputed: the value of object 1 with training object 2 is NaN")
	_, err = kernels.OtherPoints(2, []float64{1, 2}, []float64{math.Inf(1)})
	checkError(t, "finite", err, "kernels: precomputed: the value of object 1 with itself is +Inf")
	_, err = kernels.OtherPoints(2, []float64{1, 2}, []float64{1, 2})
	checkError(t, "shape", err, "kernels: precomputed: 2 objects and 2 training objects have 4 values, got 2")
}

// TestDistancesInRange checks that rows with elements of about 1e154, for which ‖x−z‖² overflows, are an error.
func TestDistancesInRange(t *testing.T) {
	for _, k := range []kernels.Kernel{
		kernels.Gaussian{Sigma: 1}, kernels.Matern{Nu: 2.5, Sigma: 1}, kernels.RationalQuadratic{A: 1, Sigma: 1},
		kernels.Sum{kernels.Linear{}, kernels.Gaussian{Sigma: 1}},
	} {
		rule := kernels.PointRule(k)
		for _, v := range []float64{0, 1, -1e153, 4e153} {
			x, z := []float64{v, v}, []float64{-v, -v}
			if err := rule(x); err != nil {
				t.Errorf("%v: %v", k, err)
			}
			if d := (kernels.Stat{Kind: kernels.SqDist}).Eval(x, z); math.IsInf(d, 0) {
				t.Errorf("%v: the distance of %v and %v is %v", k, x, z, d)
			}
		}
		for _, v := range []float64{1e154, -1e155, math.MaxFloat64} {
			checkError(t, k.String(), rule([]float64{1, v}), fmt.Sprintf("kernels: sqdist: feature 2 is %v: distances between points of this size overflow float64: scale the features down", v))
		}
	}
	if err := kernels.PointRule(kernels.Laplacian{Sigma: 1})([]float64{1e308, 1e308}); err == nil {
		t.Error("points with an infinite L1 distance are accepted")
	}
	if err := (kernels.Gaussian{Sigma: 1e155}).Check(2); err == nil {
		t.Error("a sigma whose square overflows is accepted")
	}
}
