package kernels_test

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

func TestCosOf(t *testing.T) {
	x, z := []float64{0.5, -2}, []float64{1.5, 0.25}
	k := kernels.CosOf{Kernel: kernels.Sum{kernels.Linear{}, kernels.Constant{Value: 0.75}}}
	if got, want := kernels.Eval(k, x, z), math.Cos(0.75-0.5+0.75); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if k.IsPSD() || k.Check(2) != nil || (kernels.CosOf{}).Check(2) == nil {
		t.Error("the rules are wrong")
	}
	if got, want := k.String(), "cos(linear() + 0.75)"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
	// The limit is the error of a central difference: at most h²/6 times the third derivative, which is below 1
	// here, plus the rounding error divided by h.
	const h = 1e-4
	value := func(sigma float64) float64 {
		return kernels.Eval(kernels.CosOf{Kernel: kernels.Laplacian{Sigma: sigma}}, x, z)
	}
	g := kernels.Eval(kernels.Gradient(kernels.CosOf{Kernel: kernels.Laplacian{Sigma: 2}})[0], x, z)
	if want := (value(2*math.Exp(h)) - value(2*math.Exp(-h))) / (2 * h); math.Abs(g-want) > h*h+1e-15/h {
		t.Errorf("the derivative with respect to ln sigma is %v, differences give %v", g, want)
	}
}
