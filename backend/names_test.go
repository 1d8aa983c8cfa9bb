package backend

import (
	"fmt"
	"testing"
)

// panicText returns what f panics with, or "".
func panicText(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

func TestNames(t *testing.T) {
	got := fmt.Sprint(NoTrans, Transpose, Lower, Upper, Left, Right, Side(5))
	if want := "NoTrans Transpose Lower Upper Left Right invalid(5)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFlops(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"Gemm", GemmFlops(2, 3, 4), 48},
		{"Syrk", SyrkFlops(3, 4), 48},
		{"Symm", SymmFlops(2, 3), 24},
		{"Trsm", TrsmFlops(3, 5), 45},
		{"Potrf", PotrfFlops(3), 14},
		{"Gram", GramFlops(2, 3, 4, false), 48},
		{"Gram, symmetric", GramFlops(3, 3, 4, true), 48},
		{"GramMul", GramMulFlops(2, 3, 4, 5), 108},
		{"no overflow", GemmFlops(1<<30, 1<<30, 1<<30), 0x1p91},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v flops, want %v", c.name, c.got, c.want)
		}
	}
}
