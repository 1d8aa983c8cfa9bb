package learners

import (
	"math"
	"testing"
)

// TestMarginOfZeroHasNoSign: y f(x) of f = 0 and y = −1 is −0, which is no margin.
func TestMarginOfZeroHasNoSign(t *testing.T) {
	for _, f := range (&mistakes{}).facts(math.Copysign(0, -1), 1, 1) {
		if v, ok := f.Value.(float64); ok && v == 0 && math.Signbit(v) {
			t.Errorf("%s is −0", f.Name)
		}
	}
}
