package learners

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/online"
)

// TestMarginOfZeroHasNoSign checks that the margin y f(x) for f = 0 and y = −1 is 0, not −0.
func TestMarginOfZeroHasNoSign(t *testing.T) {
	for _, f := range perceptronFacts(&online.Loop{Class: []int{0}}, backend.Host[float64]{Rows: 1, Cols: 1, Stride: 1, Data: []float64{0}}, 1, 1) {
		if v, ok := f.Value.(float64); ok && v == 0 && math.Signbit(v) {
			t.Errorf("%s is −0", f.Name)
		}
	}
}
