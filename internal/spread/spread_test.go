package spread

import (
	"math"
	"testing"
)

// TestConstant checks which numbers, of any magnitude, are constant (scikit-learn #17794, #19527, #19726).
func TestConstant(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   bool
	}{
		{"nothing", nil, false},
		{"one number", []float64{3}, true},
		{"zeros", []float64{0, 0, 0}, true},
		{"0.1", []float64{0.1, 0.1, 0.1, 0.1}, true},
		{"0.3 and the next number", []float64{0.3, math.Nextafter(0.3, 1), 0.3, 0.3}, true},
		{"0.1 + 0.2 and 0.3", []float64{0.1 + 0.2, 0.3, 0.3}, true},
		{"1e8 and a rounding", []float64{1e8, 1e8 + 0x1p-26, 1e8}, true},
		{"-7 and a rounding", []float64{-7, -7 - 0x1p-50, -7}, true},
		{"1e-300", []float64{1e-300, 1e-300}, true},
		{"1e-200 and 2e-200", []float64{1e-200, 2e-200, 1e-200}, false},
		{"1e300 and -1e300", []float64{1e300, -1e300}, false},
		{"1e8 and 1e8 + 1", []float64{1e8, 1e8 + 1, 1e8}, false},
		{"0 and 1e-300", []float64{0, 1e-300}, false},
		{"0.3 and 0.3 + 1e-9", []float64{0.3, 0.3 + 1e-9}, false},
	} {
		var s Spread
		for _, v := range c.values {
			s.Add(v)
		}
		if s.Constant() != c.want {
			t.Errorf("%s: constant %t, want %t", c.name, s.Constant(), c.want)
		}
	}
}
