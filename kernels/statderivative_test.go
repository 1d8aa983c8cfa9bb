package kernels_test

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

func TestStatDerivativeCheck(t *testing.T) {
	gaussian := kernels.Gaussian{Sigma: 1}
	for _, c := range []struct {
		k    kernels.StatDerivative
		want string
	}{
		{kernels.StatDerivative{}, "kernels: derivative with respect to a statistic: the inner kernel is missing"},
		{kernels.StatDerivativeOf(gaussian, 1), "kernels: derivative with respect to a statistic: no statistic has index 1: gaussian(sigma=1) has 1"},
		{kernels.StatDerivativeOf(kernels.Constant{Value: 1}, 0), "kernels: derivative with respect to a statistic: no statistic has index 0: 1 has 0"},
		{kernels.StatDerivativeOf(kernels.Gaussian{}, 0), "kernels: gaussian: sigma must be a finite number > 0, got 0"},
		{kernels.StatDerivativeOf(kernels.DerivativeOf(gaussian, 0), 0), "kernels: derivative with respect to a statistic: ∂(gaussian(sigma=1))/∂ln sigma contains a derivative, which cannot be differentiated again"},
		{kernels.StatDerivativeOf(kernels.ExpOf{Kernel: kernels.StatDerivativeOf(gaussian, 0)}, 0), "kernels: derivative with respect to a statistic: exp(∂(gaussian(sigma=1))/∂s0) contains a derivative, which cannot be differentiated again"},
	} {
		if err := c.k.Check(2); err == nil || err.Error() != c.want {
			t.Errorf("%v: got %v, want %s", c.k, err, c.want)
		}
	}
	s := kernels.StatDerivatives(kernels.Sum{kernels.Linear{}, gaussian, kernels.Scaled{Weight: 2, Kernel: gaussian}})
	if len(s) != 2 || s[1].IsPSD() || s[1].Check(3) != nil || len(kernels.Params(s[1])) != 0 {
		t.Errorf("the derivatives are %v", s)
	}
	for _, k := range []kernels.Kernel{nil, kernels.ExpOf{}, kernels.Gaussian{}} {
		if kernels.StatDerivatives(k) != nil || kernels.CheckGrad(k, 2) == nil {
			t.Errorf("%#v: derivatives %v", k, kernels.StatDerivatives(k))
		}
	}
}

// TestStatDerivativeWherePointsCoincide checks that the derivative of the exponential kernel at coincident points
// is infinite with respect to its statistic, and is taken as 0 with respect to the point.
func TestStatDerivativeWherePointsCoincide(t *testing.T) {
	x := []float64{1, 2}
	k := kernels.Product{kernels.Matern{Nu: 0.5, Sigma: 2}, kernels.Matern{Nu: 1.5, Sigma: 1}}
	s := kernels.StatDerivatives(k)[0]
	if v := kernels.Eval(s, x, x); s.Bounded() || !math.IsInf(v, -1) {
		t.Errorf("the derivative is %v, bounded %t", v, s.Bounded())
	}
	if s := kernels.StatDerivatives(k[1])[0]; !s.Bounded() || kernels.Eval(s, x, x) != -1.5 {
		t.Errorf("of %v: %v, bounded %t; want -1.5", k[1], kernels.Eval(s, x, x), s.Bounded())
	}
	dx := []float64{9, 9}
	if err := kernels.EvalGrad(k, x, x, dx, nil); err != nil || dx[0] != 0 || dx[1] != 0 {
		t.Errorf("the derivative is %v, %v; want zeros", dx, err)
	}
}
