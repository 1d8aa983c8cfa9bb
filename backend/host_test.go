package backend

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestHostView(t *testing.T) {
	h := Host[float64]{Rows: 3, Cols: 4, Stride: 6, Data: make([]float64, 16)}
	for i := range h.Data {
		h.Data[i] = float64(i)
	}
	v := h.View(1, 2, 2, 2)
	if v.Rows != 2 || v.Cols != 2 || v.Stride != 6 || !slices.Equal(v.Row(0), []float64{8, 9}) || !slices.Equal(v.Row(1), []float64{14, 15}) {
		t.Errorf("view: %+v", v)
	}
	v.Row(1)[0] = -1
	if h.Data[14] != -1 {
		t.Error("a view must share memory")
	}
	if r := v.Row(0); cap(r) != 2 {
		t.Errorf("append to a row would overwrite the next row: the capacity is %d", cap(r))
	}
	if w := v.View(1, 1, 1, 1); w.Data[0] != 15 || len(w.Data) != 1 {
		t.Errorf("view of a view: %+v", w)
	}
	for _, empty := range []Host[float64]{h.View(3, 4, 0, 0), h.View(0, 0, 0, 4), h.View(1, 4, 2, 0)} {
		if len(empty.Data) > 0 && (empty.Rows == 0 || empty.Cols == 0) && empty.Stride < empty.Cols {
			t.Errorf("an empty view is not well formed: %+v", empty)
		}
	}
	for _, bad := range [][4]int{{-1, 0, 1, 1}, {0, -1, 1, 1}, {0, 0, -1, 1}, {0, 0, 1, -1}, {2, 0, 2, 1}, {0, 3, 1, 2}, {4, 0, 0, 0}, {1, 0, math.MaxInt, 0}, {0, 1, 0, math.MaxInt}} {
		want := fmt.Sprintf("host: Matrix.View: %d×%d at (%d, %d) is outside a 3×4 matrix", bad[2], bad[3], bad[0], bad[1])
		if got := panicText(func() { h.View(bad[0], bad[1], bad[2], bad[3]) }); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNewHost(t *testing.T) {
	for _, s := range [][2]int{{0, 0}, {0, 3}, {3, 0}, {2, 3}} {
		h := NewHost[float32](s[0], s[1])
		if h.Rows != s[0] || h.Cols != s[1] || h.Stride != s[1] || len(h.Data) != s[0]*s[1] {
			t.Errorf("NewHost(%d, %d): %+v", s[0], s[1], h)
		}
	}
}

func TestErrors(t *testing.T) {
	pivot := error(&PivotError{Index: 3, Value: -0.5})
	memory := error(&MemoryError{Device: "cpu/avx2", Requested: 800, Free: 100})
	if want := "backend: matrix is not positive definite: the pivot of index 3 is -0.5"; pivot.Error() != want {
		t.Errorf("got %q, want %q", pivot, want)
	}
	if want := "backend: out of memory: cpu/avx2: a matrix of 800 bytes was requested, 100 bytes are free, enough for a square float64 matrix of order 3, or of order 0 in packed storage"; memory.Error() != want {
		t.Errorf("got %q, want %q", memory, want)
	}
	for _, c := range []struct {
		err, target error
		want        bool
	}{
		{pivot, ErrNotPosDef, true}, {pivot, ErrMemory, false}, {pivot, ErrUnavailable, false},
		{memory, ErrMemory, true}, {memory, ErrNotPosDef, false},
		{fmt.Errorf("solvers: dual: %w", pivot), ErrNotPosDef, true},
	} {
		if got := errors.Is(c.err, c.target); got != c.want {
			t.Errorf("errors.Is(%q, %q) = %v", c.err, c.target, got)
		}
	}
}
