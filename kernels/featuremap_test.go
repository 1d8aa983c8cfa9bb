package kernels_test

import (
	"math"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

func phi(t *testing.T, k kernels.Kernel, x ...float64) []float64 {
	t.Helper()
	f, err := kernels.NewFeatureMap(k, len(x))
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]float64, f.Dim())
	f.Apply(dst, x)
	return dst
}

// TestWorkedFeatureMaps checks two feature maps of the literature.
func TestWorkedFeatureMaps(t *testing.T) {
	r := math.Sqrt2
	for _, c := range []struct {
		k    kernels.Kernel
		want []float64
	}{
		{kernels.Linear{}, []float64{3, 5}},
		{kernels.Polynomial{Degree: 2}, []float64{9, r * 15, 25}},
		{kernels.Polynomial{Degree: 2, C: 1}, []float64{1, r * 3, r * 5, 9, r * 15, 25}},
		{kernels.Cosine{Theta: 2}, []float64{math.Cos(6), math.Sin(6), math.Cos(10), math.Sin(10)}},
		{kernels.Product{kernels.Linear{}, kernels.Sum{kernels.Linear{}, kernels.Constant{Value: 4}}}, []float64{9, 15, 6, 15, 25, 10}},
		{kernels.CosineSimilarity{}, []float64{3 / math.Sqrt(34), 5 / math.Sqrt(34)}},
	} {
		got := phi(t, c.k, 3, 5)
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) <= 4*u*math.Abs(b) }) {
			t.Errorf("%v: φ(3, 5) is %v, want %v", c.k, got, c.want)
		}
	}
	for _, c := range []struct {
		k       kernels.Kernel
		d, want int
	}{
		{kernels.Polynomial{Degree: 2}, 1000, 500_500},
		{kernels.Polynomial{Degree: 3, C: 1}, 10, 286},
		{kernels.CosineSeries{L: 4}, 3, 2 * 3 * 5},
		{kernels.Polynomial{Degree: 100}, 1, 1},
		{kernels.Linear{}, 0, 0},
	} {
		f, err := kernels.NewFeatureMap(c.k, c.d)
		if err != nil || f.Dim() != c.want {
			t.Errorf("%v of %d features: %v, %v; want %d dimensions", c.k, c.d, f, err, c.want)
		}
	}
}

func TestFeatureMapErrors(t *testing.T) {
	gaussian := kernels.Gaussian{Sigma: 2}
	for _, c := range []struct {
		k    kernels.Kernel
		d    int
		want string
	}{
		{gaussian, 2, "kernels: feature map: the feature space of gaussian(sigma=2) is not finite"},
		{kernels.Sum{kernels.Linear{}, kernels.Scaled{Weight: 2, Kernel: gaussian}}, 2, "kernels: feature map: the feature space of gaussian(sigma=2) is not finite"},
		{kernels.Gaussian{}, 2, "kernels: gaussian: sigma must be a finite number > 0, got 0"},
		{kernels.Polynomial{Degree: 9, C: 1}, 1000, "kernels: feature map: polynomial(degree=9,c=1) has more than 16777216 dimensions for 1000 features"},
		{kernels.Polynomial{Degree: math.MaxInt32, C: 1}, 1000, "kernels: feature map: polynomial(degree=2147483647,c=1) has more than 16777216 dimensions for 1000 features"},
		{kernels.Polynomial{Degree: 5000, C: 1}, 2, "kernels: feature map: the coefficients of polynomial(degree=5000,c=1) for 2 features are outside the range of float64"},
		{kernels.Product{kernels.Polynomial{Degree: 3}, kernels.Polynomial{Degree: 3}, kernels.Polynomial{Degree: 3}}, 40, "kernels: feature map: polynomial(degree=3,c=0)*polynomial(degree=3,c=0)*polynomial(degree=3,c=0) has more than 16777216 dimensions for 40 features"},
		{nil, 1, "kernels: feature map: the kernel is nil"},
		{kernels.Linear{}, -1, "kernels: feature map: a point has -1 features"},
	} {
		_, err := kernels.NewFeatureMap(c.k, c.d)
		checkError(t, "NewFeatureMap", err, c.want)
	}
}
