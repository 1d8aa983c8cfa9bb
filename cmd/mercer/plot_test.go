package main

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot/plotter"

	"github.com/mercer-go/mercer/learners"
)

// TestReliability compares the mean probabilities and the frequencies of bins with values computed by hand.
func TestReliability(t *testing.T) {
	classes := learners.Classes{Labels: []float64{3, 7}, Names: []string{"a", "b"}}
	proba := mat.NewDense(5, 2, []float64{0.98, 0.02, 0.92, 0.08, 0.5, 0.5, 0, 1, 0.05, 0.95})
	truth := mat.NewDense(5, 1, []float64{3, 7, 7, 7, 3})
	c := reliability(proba, truth, classes, 1)
	line := c.line
	want := [][2]float64{{0.05, 0.5}, {0.5, 1}, {0.975, 0.5}}
	if len(line) != len(want) {
		t.Fatalf("%v, want %v", line, want)
	}
	for i, w := range want {
		if math.Abs(line[i].X-w[0]) > 0x1p-52 || line[i].Y != w[1] {
			t.Errorf("bin %d: %v, want %v", i, line[i], w)
		}
	}
	var n []float64
	for _, point := range c.counts {
		n = append(n, point.Y)
	}
	if !slices.Equal(n, []float64{2, 1, 2}) {
		t.Errorf("rows in the bins: %v", n)
	}
	if want := (0.9 + 0.5 + 0.95) / 5; math.Abs(c.error-want) > 0x1p-50 {
		t.Errorf("mean distance %v, want %v", c.error, want)
	}
	// If both classes are given, each row contributes the probabilities of both, p and 1 − p.
	if curve := reliability(proba, truth, classes, 0, 1); len(curve.line) != 3 || curve.counts[0].Y != 4 || curve.line[1] != (plotter.XY{X: 0.5, Y: 0.5}) {
		t.Errorf("of both classes: %v %v", curve.line, curve.counts)
	}
}
