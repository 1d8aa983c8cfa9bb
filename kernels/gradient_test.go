package kernels_test

import (
	"strings"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

func TestParams(t *testing.T) {
	k, err := kernels.Parse("0.5*gaussian(sigma=[1,2]) + polynomial(degree=2,c=3)*sigmoid(a=-1) + exp(laplacian(sigma=4)) + 7")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var values []float64
	logs := 0
	for _, p := range kernels.Params(k) {
		names, values = append(names, p.Name), append(values, p.Value)
		if p.Log {
			logs++
		}
	}
	const want = "1.weight 1.sigma[1] 1.sigma[2] 2.1.c 2.2.a 2.2.c 3.sigma 4.value"
	if got := strings.Join(names, " "); got != want || logs != 6 {
		t.Errorf("parameters %s, %d by logarithm; want %s and 6", got, logs, want)
	}
	values[1], values[6] = 9, 8
	result, err := kernels.WithParams(k, values)
	if err != nil {
		t.Fatal(err)
	}
	const text = "0.5*gaussian(sigma=[9,2]) + polynomial(degree=2,c=3)*sigmoid(a=-1,c=0) + exp(laplacian(sigma=8)) + 7"
	if result.String() != text {
		t.Errorf("got %v, want %s", result, text)
	}
	if strings.Contains(k.String(), "9") {
		t.Errorf("the kernel itself has changed: %v", k)
	}
	for _, c := range []struct {
		values []float64
		want   string
	}{
		{values[:3], "has 8 parameters, got 3 values"},
		{nil, "has 8 parameters, got 0 values"},
		{[]float64{1, 1, -2, 1, 1, 1, 1, 1}, "kernels: gaussian: sigma[2] must be a finite number > 0, got -2"},
	} {
		if _, err := kernels.WithParams(k, c.values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestParamsOfBrokenKernels checks that Params, derivatives and PointRule of invalid kernels are
// empty and do not panic.
func TestParamsOfBrokenKernels(t *testing.T) {
	for _, k := range []kernels.Kernel{nil, kernels.ExpOf{}, kernels.Sum{}, kernels.Product{nil}, kernels.Normalized{}, kernels.Scaled{Weight: 1}, kernels.Gaussian{}, kernels.DerivativeOf(nil, 0), kernels.CosOf{}} {
		if kernels.Params(k) != nil || len(kernels.Gradient(k)) != 0 || kernels.PointRule(k) != nil {
			t.Errorf("%#v: %v", k, kernels.Params(k))
		}
		if _, err := kernels.WithParams(k, nil); err == nil {
			t.Errorf("%#v: no error", k)
		}
		if k != nil && kernels.DerivativeOf(k, 0).Check(1) == nil {
			t.Errorf("%#v: its derivative passes: %v", k, kernels.DerivativeOf(k, 0))
		}
	}
}

func TestDerivativeCheck(t *testing.T) {
	for _, c := range []struct {
		k    kernels.Kernel
		want string
	}{
		{kernels.DerivativeOf(nil, 0), "kernels: derivative: the inner kernel is missing"},
		{kernels.DerivativeOf(kernels.Linear{}, 0), "kernels: derivative: no parameter has index 0: linear() has 0"},
		{kernels.DerivativeOf(kernels.Gaussian{Sigma: 1}, -1), "kernels: derivative: no parameter has index -1: gaussian(sigma=1) has 1"},
		{kernels.DerivativeOf(kernels.Gaussian{}, 0), "kernels: gaussian: sigma must be a finite number > 0, got 0"},
	} {
		if err := c.k.Check(2); err == nil || err.Error() != c.want {
			t.Errorf("%v: got %v, want %s", c.k, err, c.want)
		}
	}
	g := kernels.Gradient(kernels.Sigmoid{A: 1})
	if len(g) != 2 || g[0].String() != "∂(sigmoid(a=1,c=0))/∂a" || len(kernels.Gradient(g[0])) != 0 {
		t.Errorf("the gradient is %v", g)
	}
}
