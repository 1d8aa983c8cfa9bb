package neighbors

import (
	"math"
	"testing"
)

// TestNorm checks norms that are exact at every scale at which their elements are representable: with and without
// squares that overflow or underflow.
func TestNorm(t *testing.T) {
	for e := -1074; e <= 1021; e++ {
		if got, want := norm([]float64{math.Ldexp(3, e), 0, math.Ldexp(-4, e)}), math.Ldexp(5, e); got != want {
			t.Errorf("the norm of (3, 0, −4)·2^%d is %g, not %g", e, got, want)
		}
	}
	if got := norm([]float64{1, math.Inf(-1)}); !math.IsInf(got, 1) {
		t.Errorf("the norm of (1, −Inf) is %g", got)
	}
	if got := norm(nil); got != 0 {
		t.Errorf("the norm of no elements is %g", got)
	}
}
