package main

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/learners/validate"
)

// TestBoundaryIsInside checks that a row with the decision value 0, such as a margin support vector, is an inlier, and
// that a row with the largest negative decision value is an outlier.
func TestBoundaryIsInside(t *testing.T) {
	c := validate.Novelty{}.Classes()
	for f, want := range map[float64]string{0: "inlier", math.Copysign(0, -1): "inlier", math.SmallestNonzeroFloat64: "inlier", -math.SmallestNonzeroFloat64: "outlier"} {
		label := c.Decide(mat.NewDense(1, 1, []float64{f})).At(0, 0)
		for i, v := range c.Labels {
			if v == label && c.Names[i] != want {
				t.Errorf("f = %v is an %s, not an %s", f, c.Names[i], want)
			}
		}
	}
}
