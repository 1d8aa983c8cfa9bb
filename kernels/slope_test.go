package kernels_test

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

func TestSlopeCheck(t *testing.T) {
	gaussian := kernels.Gaussian{Sigma: 1}
	for _, c := range []struct {
		k    kernels.Slope
		want string
	}{
		{kernels.Slope{}, "kernels: slope: no kernel inside"},
		{kernels.Slope{Of: gaussian, Stat: 1}, "kernels: slope: statistic 1 of the 1 of gaussian(sigma=1)"},
		{kernels.Slope{Of: kernels.Constant{Value: 1}}, "kernels: slope: statistic 0 of the 0 of 1"},
		{kernels.Slope{Of: kernels.Gaussian{}}, "kernels: gaussian: sigma must be a finite number > 0, got 0"},
		{kernels.Slope{Of: kernels.Derivative{Of: gaussian}}, "kernels: slope: ∂(gaussian(sigma=1))/∂ln sigma holds a derivative, of which there are no further ones"},
		{kernels.Slope{Of: kernels.ExpOf{Kernel: kernels.Slope{Of: gaussian}}}, "kernels: slope: exp(∂(gaussian(sigma=1))/∂s0) holds a derivative, of which there are no further ones"},
	} {
		if err := c.k.Check(2); err == nil || err.Error() != c.want {
			t.Errorf("%v: got %v, want %s", c.k, err, c.want)
		}
	}
	s := kernels.Slopes(kernels.Sum{kernels.Linear{}, gaussian, kernels.Scaled{Weight: 2, Kernel: gaussian}})
	if len(s) != 2 || s[1].IsPSD() || s[1].Check(3) != nil || len(kernels.Params(s[1])) != 0 {
		t.Errorf("the slopes are %v", s)
	}
	for _, k := range []kernels.Kernel{nil, kernels.ExpOf{}, kernels.Gaussian{}} {
		if kernels.Slopes(k) != nil || kernels.CheckGrad(k, 2) == nil {
			t.Errorf("%#v: slopes %v", k, kernels.Slopes(k))
		}
	}
}

// Where points coincide, the slope of the exponential kernel has no bound, and
// the derivative is taken to be 0.
func TestSlopeAtTheCorner(t *testing.T) {
	x := []float64{1, 2}
	k := kernels.Product{kernels.Matern{Nu: 0.5, Sigma: 2}, kernels.Matern{Nu: 1.5, Sigma: 1}}
	s := kernels.Slopes(k)[0]
	if v := kernels.Eval(s, x, x); s.Bounded() || !math.IsInf(v, -1) {
		t.Errorf("the slope is %v, bounded %t", v, s.Bounded())
	}
	if s := kernels.Slopes(k[1])[0]; !s.Bounded() || kernels.Eval(s, x, x) != -1.5 {
		t.Errorf("of %v: %v, bounded %t; want -1.5", k[1], kernels.Eval(s, x, x), s.Bounded())
	}
	dx := []float64{9, 9}
	if err := kernels.EvalGrad(k, x, x, dx, nil); err != nil || dx[0] != 0 || dx[1] != 0 {
		t.Errorf("the derivative is %v, %v; want zeros", dx, err)
	}
}
