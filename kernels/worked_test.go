package kernels_test

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/kerneltest"
)

// This file holds worked examples from the literature, whose numbers are exact in float64. It also
// holds values that scikit-learn computed for one pair of points.

// TestWorkedCubicMap checks the Gram matrix of φ(x) = (1, x, x², x³) at −1, 0, 1.
func TestWorkedCubicMap(t *testing.T) {
	k := kernels.Sum{
		kernels.Constant{Value: 1}, kernels.Linear{},
		kernels.Polynomial{Degree: 2}, kernels.Polynomial{Degree: 3},
	}
	want := [3][3]float64{{4, 1, 0}, {1, 1, 1}, {0, 1, 4}}
	for i, x := range []float64{-1, 0, 1} {
		for j, z := range []float64{-1, 0, 1} {
			if got := kernels.Eval(k, []float64{x}, []float64{z}); got != want[i][j] {
				t.Errorf("k(%v, %v) is %v, want %v", x, z, got, want[i][j])
			}
		}
	}
}

// TestWorkedQuadraticMaps checks quadratic kernels against feature maps of (x1, x2).
func TestWorkedQuadraticMaps(t *testing.T) {
	root := math.Sqrt2
	for _, c := range []struct {
		k   kernels.Kernel
		phi func(x []float64) []float64
	}{
		{kernels.Polynomial{Degree: 2}, func(x []float64) []float64 {
			return []float64{x[0] * x[0], root * x[0] * x[1], x[1] * x[1]}
		}},
		{kernels.Polynomial{Degree: 2, C: 1}, func(x []float64) []float64 {
			return []float64{1, root * x[0], root * x[1], x[0] * x[0], root * x[0] * x[1], x[1] * x[1]}
		}},
	} {
		for _, pair := range pairs(t, 50, 2) {
			x, z := pair[0], pair[1]
			a, b := c.phi(x), c.phi(z)
			want := kernels.Eval(kernels.Linear{}, a, b)
			got := kernels.Eval(c.k, x, z)
			// A product of two coordinates of φ has six roundings, three per coordinate including the root.
			size := make([]float64, len(a))
			for p := range a {
				size[p] = math.Abs(a[p] * b[p])
			}
			ones := make([]float64, len(a))
			for p := range ones {
				ones[p] = 1
			}
			tol := kerneltest.Rounding(c.k, x, z) + kerneltest.Rounding(kernels.Linear{}, a, b) + 6*u*kernels.Eval(kernels.Linear{}, size, ones)
			if !(math.Abs(got-want) <= tol) {
				t.Errorf("%v at %v, %v is %v, its map gives %v", c.k, x, z, got, want)
			}
		}
	}
}

// TestWorkedQuadraticCost checks that a quadratic kernel of 1,000 features takes 1,001 multiplications, although its
// feature map has 500,500 products x_i x_j, i ≤ j.
func TestWorkedQuadraticCost(t *testing.T) {
	const d = 1000
	features := 0
	for i := range d {
		features += d - i
	}
	if features != 500_500 {
		t.Errorf("%d products of %d inputs, want 500,500", features, d)
	}
	p := kernels.Compile(kernels.Polynomial{Degree: 2})
	if len(p.Stats) != 1 || p.Stats[0].Kind != kernels.Dot {
		t.Fatalf("the statistics are %v, want one inner product", p.Stats)
	}
	multiplications := d
	for _, in := range p.Code {
		if in.Op == kernels.PowInt && in.Arg == 2 {
			multiplications++
		} else if in.Op != kernels.Load {
			t.Errorf("an unnecessary operation: %+v", in)
		}
	}
	if multiplications != 1001 {
		t.Errorf("%d multiplications, want 1,001", multiplications)
	}
}

// TestWorkedXOR checks the kernel (xᵀz)² at the points (1,1), (−1,1), (−1,−1), (1,−1) of XOR.
func TestWorkedXOR(t *testing.T) {
	points := [][]float64{{1, 1}, {-1, 1}, {-1, -1}, {1, -1}}
	for i, x := range points {
		for j, z := range points {
			want := 0.0
			if (i-j)%2 == 0 {
				want = 4
			}
			if got := kernels.Eval(kernels.Polynomial{Degree: 2}, x, z); got != want {
				t.Errorf("k of points %d and %d is %v, want %v", i, j, got, want)
			}
		}
	}
}

// TestScikitLearn compares the kernels with values of scikit-learn 1.2.1: sklearn.metrics.pairwise (polynomial with
// gamma=1, rbf with gamma=1/8, laplacian with gamma=1/2; chi2_kernel at absolute values of the features) and
// sklearn.gaussian_process.kernels.
func TestScikitLearn(t *testing.T) {
	x, z := []float64{1, -2, 0.5}, []float64{0.25, 1, 3}
	for _, c := range []struct {
		text string
		want float64
	}{
		{"linear()", -0.25},
		{"polynomial(degree=3,c=1)", 0.421875},
		{"gaussian(sigma=2)", 0.13854466699075552},
		{"gaussian(gamma=0.125)", 0.13854466699075552},
		{"gaussian(sigma=[1,2,3])", 0.17317160802873416},
		{"laplacian(sigma=2)", 0.04393693362340741},
		{"laplacian(gamma=0.5)", 0.04393693362340741},
		{"exponential(sigma=2)", 0.13693530169875945},
		{"matern32(sigma=2)", 0.1419547420400926},
		{"matern52(sigma=2)", 0.14112829788644474},
		{"rationalquadratic(a=1.5,sigma=2)", 0.2834078181270011},
		{"periodic(period=2.5,sigma=1.5)", 0.4409583709988222},
		{"sigmoid(a=0.5,c=1)", 0.703905603936621},
		{"cosinesimilarity()", -0.03439595802450548},
		{"chi2(gamma=0.5)", 0.2767823533763901},
		{"chi2()", 0.0766084711405729},
	} {
		k, err := kernels.Parse(c.text)
		if err != nil {
			t.Error(err)
			continue
		}
		x, z := x, z
		if rule := kernels.PointRule(k); rule != nil && rule(x) != nil {
			x, z = []float64{1, 2, 0.5}, []float64{0.25, 1, 3}
		}
		// scikit-learn has about as many roundings as Eval.
		if got, tol := kernels.Eval(k, x, z), 2*kerneltest.Rounding(k, x, z); !(math.Abs(got-c.want) <= tol) {
			t.Errorf("%s is %v, scikit-learn has %v: off by %g, allowed %g", c.text, got, c.want, got-c.want, tol)
		}
	}
}
