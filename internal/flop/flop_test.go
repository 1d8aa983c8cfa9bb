package flop

import "testing"

func TestCountsOfMethods(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"Gemm", Gemm(2, 3, 4), 48},
		{"Syrk", Syrk(3, 4), 48},
		{"Symm", Symm(2, 3), 24},
		{"Trsm", Trsm(3, 5), 45},
		{"Potrf", Potrf(3), 14},
		{"Gram", Gram(2, 3, 4, false), 48},
		{"Gram, symmetric", Gram(3, 3, 4, true), 48},
		{"GramMul", GramMul(2, 3, 4, 5), 108},
		{"no overflow", Gemm(1<<30, 1<<30, 1<<30), 0x1p91},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v flops, want %v", c.name, c.got, c.want)
		}
	}
}
