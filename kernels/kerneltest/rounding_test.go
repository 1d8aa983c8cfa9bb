package kerneltest

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

// TestErrorsAtZero checks the error bounds of operations whose derivative is infinite at v = 0. The error of ln v
// has no bound there and is NaN.
func TestErrorsAtZero(t *testing.T) {
	load := kernels.Instr{Op: kernels.Load}
	entropy := []kernels.Instr{load, load, {Op: kernels.Affine, A: 1, B: 0x1p-126}, {Op: kernels.Log}, {Op: kernels.Mul}}
	for _, c := range []struct {
		name        string
		code        []kernels.Instr
		argument    Approx
		want, error float64 // error is the exact bound without rounding errors
	}{
		{"root of 0", []kernels.Instr{load, {Op: kernels.Sqrt}}, Approx{0, 0}, 0, 0},
		{"power of 0", []kernels.Instr{load, {Op: kernels.Pow, A: 0.3}}, Approx{0, 0}, 0, 0},
		{"power of 0 ± 10⁻²⁰", []kernels.Instr{load, {Op: kernels.Pow, A: 0.5}}, Approx{0, 1e-20}, 0, 1e-10},
		{"power of 4 ± 0.1", []kernels.Instr{load, {Op: kernels.Pow, A: 0.5}}, Approx{4, 0.1}, 2, 2 * (math.Sqrt(4/3.9) - 1)},
		{"zeroth power of 0", []kernels.Instr{load, {Op: kernels.Pow, A: 0}}, Approx{0, 1}, 1, 0},
		{"negative power of 0", []kernels.Instr{load, {Op: kernels.Pow, A: -1}}, Approx{0, 0}, math.Inf(1), math.NaN()},
		{"logarithm of 0", []kernels.Instr{load, {Op: kernels.Log}}, Approx{0, 0}, math.Inf(-1), math.NaN()},
		{"v ln v at 0", entropy, Approx{0, 0}, 0, 0},
		{"v ln v at e", entropy, Approx{math.E, 0}, math.E, 0},
	} {
		got := Propagate(&kernels.Program{Code: c.code}, []Approx{c.argument}, unit)
		if got.Value != c.want && !(math.Abs(got.Value-c.want) <= 8*unit*math.Abs(c.want)) {
			t.Errorf("%s: the value is %v, want %v", c.name, got.Value, c.want)
		}
		// The tolerance is for about 40 roundings of a value of this size.
		switch {
		case math.IsNaN(c.error) != math.IsNaN(got.Error):
			t.Errorf("%s: the error is %v, want %v", c.name, got.Error, c.error)
		case got.Error < c.error || got.Error > c.error+40*unit*(math.Abs(c.want)+c.error)+0x1p-1021:
			t.Errorf("%s: the error is %v, want %v and roundings", c.name, got.Error, c.error)
		}
	}
}
