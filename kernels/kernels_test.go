package kernels_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/kerneltest"
)

const u = 0x1p-53 // the unit roundoff of float64

// TestConformance runs the tests of package kerneltest on every kernel, alone and composed, and on
// the examples of the catalogue.
func TestConformance(t *testing.T) {
	list := []kernels.Kernel{
		kernels.Linear{},
		kernels.Polynomial{Degree: 1},
		kernels.Polynomial{Degree: 2},
		kernels.Polynomial{Degree: 3, C: 1},
		kernels.Polynomial{Degree: 7, C: 0.5},
		kernels.Gaussian{Sigma: 2},
		kernels.Gaussian{Sigma: 1e-3},
		kernels.Gaussian{Sigmas: []float64{1}},
		kernels.Gaussian{Sigmas: []float64{1, 2, 0.3}},
		kernels.Laplacian{Sigma: 0.7},
		kernels.Matern{Nu: 0.5, Sigma: 1},
		kernels.Matern{Nu: 1.5, Sigma: 1.5},
		kernels.Matern{Nu: 2.5, Sigma: 3},
		kernels.RationalQuadratic{A: 1, Sigma: 2},
		kernels.RationalQuadratic{A: 0.3, Sigma: 0.5},
		kernels.RationalQuadratic{A: 1e4, Sigma: 1},
		kernels.Sigmoid{A: 0.1},
		kernels.Sigmoid{A: -0.5, C: 2},
		kernels.Cosine{Theta: 1},
		kernels.Cosine{Theta: 0.3},
		kernels.CosineSeries{L: 1},
		kernels.CosineSeries{L: 5},
		kernels.SincLimit{},
		kernels.ChiSquared{Gamma: 1},
		kernels.ChiSquared{Gamma: 0.2},
		kernels.CosineSimilarity{},
		kernels.Normalized{Kernel: kernels.Polynomial{Degree: 3, C: 0.5}},
		kernels.Normalized{Kernel: kernels.Sum{kernels.Linear{}, kernels.Scaled{Weight: 2, Kernel: kernels.Gaussian{Sigma: 1}}}},
		kernels.Normalized{Kernel: kernels.Product{kernels.Cosine{Theta: 0.5}, kernels.Normalized{Kernel: kernels.Polynomial{Degree: 2, C: 1}}}},
		kernels.Product{kernels.ChiSquared{Gamma: 1}, kernels.Linear{}},
		kernels.Constant{Value: 2},
		kernels.Scaled{Weight: 0.25, Kernel: kernels.Gaussian{Sigma: 1}},
		kernels.Scaled{Weight: 0, Kernel: kernels.Linear{}},
		kernels.ExpOf{Kernel: kernels.Scaled{Weight: 0.01, Kernel: kernels.Linear{}}},
		kernels.Sum{kernels.Linear{}, kernels.Gaussian{Sigma: 1}, kernels.Constant{Value: 1}},
		kernels.Product{kernels.Linear{}, kernels.Laplacian{Sigma: 3}},
		kernels.Product{kernels.Sum{kernels.Linear{}, kernels.Constant{Value: 1}}, kernels.Gaussian{Sigma: 1}},
		kernels.Sum{
			kernels.Scaled{Weight: 0.5, Kernel: kernels.Product{kernels.Gaussian{Sigma: 1}, kernels.Matern{Nu: 1.5, Sigma: 2}}},
			kernels.ExpOf{Kernel: kernels.Sum{kernels.Matern{Nu: 2.5, Sigma: 1}, kernels.Constant{Value: 0.1}}},
		},
		onColumns(kernels.Periodic{Period: 2, Sigma: 0.8}, 1),
		onColumns(kernels.Scaled{Weight: 2, Kernel: kernels.Product{kernels.Periodic{Period: 2, Sigma: 0.8}, kernels.Gaussian{Sigma: 1}}}, 0),
		onColumns(kernels.Gaussian{Sigmas: []float64{1, 0.5}}, 2, 0),
		onColumns(kernels.Sum{kernels.Gaussian{Sigmas: []float64{1, 1}}, kernels.Gaussian{Sigma: 1}}, 1, 2), // both terms have the same statistic
		onColumns(kernels.Cosine{Theta: 0.5}, 0, 2),
		onColumns(kernels.SincLimit{}, 1),
		onColumns(kernels.ChiSquared{Gamma: 0.5}, 1),
		onColumns(kernels.CosineSimilarity{}, 0, 1),
		onColumns(onColumns(kernels.Laplacian{Sigma: 1}, 1), 0, 2),
		kernels.Sum{
			kernels.Scaled{Weight: 0.5, Kernel: onColumns(kernels.Gaussian{Sigma: 1}, 0, 1)},
			kernels.Product{onColumns(kernels.Normalized{Kernel: kernels.Polynomial{Degree: 2, C: 1}}, 1, 2), kernels.Matern{Nu: 2.5, Sigma: 1}},
		},
	}
	for _, d := range kernels.Catalogue() {
		k, err := kernels.Parse(d.Example)
		if err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		if k != kernels.Kernel(kernels.Precomputed{}) {
			list = append(list, k)
		}
	}
	for _, k := range list {
		kerneltest.Run(t, k)
	}
}

func onColumns(k kernels.Kernel, columns ...int) kernels.Kernel {
	return kernels.Columns{Indices: columns, Kernel: k}
}

// TestPeriodicOnLine checks that IsPSD is true for a periodic kernel on one column, and false on more columns. In the
// plane, points a and b one period apart have k(a, b) = k(a, a), but k(a, c) ≠ k(b, c) for other points c.
func TestPeriodicOnLine(t *testing.T) {
	k := kernels.Periodic{Period: 2, Sigma: 3}
	for _, c := range []struct {
		k    kernels.Kernel
		want bool
	}{
		{k, false}, {onColumns(k, 0), true}, {onColumns(k, 0, 1), false}, {onColumns(kernels.Sum{k, kernels.Sigmoid{A: 1}}, 0), false},
		{onColumns(kernels.Product{k, kernels.Constant{Value: 2}}, 1), true}, {onColumns(kernels.Linear{}, 0, 1), true}, {onColumns(kernels.Sigmoid{A: 1}, 0), false},
	} {
		if got := c.k.IsPSD(); got != c.want {
			t.Errorf("IsPSD of %v is %v", c.k, got)
		}
	}
	points := [][]float64{{0, 0}, {2, 0}, {0, 1}}
	gram := mat.NewSymDense(len(points), nil)
	for i, x := range points {
		for j := range i + 1 {
			gram.SetSym(i, j, kernels.Eval(k, x, points[j]))
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(gram, false) || !(eigen.Values(nil)[0] < -1e-3) {
		t.Errorf("the eigenvalues of the Gram matrix in the plane are %v", eigen.Values(nil))
	}
}

// pairs returns n pairs of points of d features. In two pairs the points coincide.
func pairs(t *testing.T, n, d int) [][2][]float64 {
	t.Helper()
	const seed = 3
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, uint64(d)))
	list := make([][2][]float64, n)
	for i := range list {
		x, z := make([]float64, d), make([]float64, d)
		for p := range d {
			x[p], z[p] = r.NormFloat64(), r.NormFloat64()
		}
		if i == 0 {
			copy(z, x)
		}
		list[i] = [2][]float64{x, z}
	}
	return list
}

// TestClosedForms compares each kernel with a second implementation of its formula.
func TestClosedForms(t *testing.T) {
	dot := func(x, z []float64) float64 {
		return mat.Dot(mat.NewVecDense(len(x), x), mat.NewVecDense(len(z), z))
	}
	norm := func(p float64) func(x, z []float64) float64 {
		return func(x, z []float64) float64 {
			var diff mat.VecDense
			diff.SubVec(mat.NewVecDense(len(x), x), mat.NewVecDense(len(z), z))
			return mat.Norm(&diff, p)
		}
	}
	l1, l2 := norm(1), norm(2)
	sigmas := []float64{0.5, 1, 2, 3}
	for _, c := range []struct {
		k kernels.Kernel
		f func(x, z []float64) float64
	}{
		{kernels.Linear{}, dot},
		{kernels.Polynomial{Degree: 2}, func(x, z []float64) float64 { return math.Pow(dot(x, z), 2) }},
		{kernels.Polynomial{Degree: 5, C: 1.5}, func(x, z []float64) float64 { return math.Pow(dot(x, z)+1.5, 5) }},
		{kernels.Gaussian{Sigma: 1.5}, func(x, z []float64) float64 { return math.Exp(-math.Pow(l2(x, z)/1.5, 2) / 2) }},
		{kernels.Gaussian{Sigmas: sigmas}, func(x, z []float64) float64 {
			product := 1.0
			for p := range x {
				product *= math.Exp(-math.Pow(x[p]-z[p], 2) / (2 * sigmas[p] * sigmas[p]))
			}
			return product
		}},
		{kernels.Laplacian{Sigma: 2}, func(x, z []float64) float64 { return math.Exp(-l1(x, z) / 2) }},
		{kernels.Matern{Nu: 0.5, Sigma: 2}, func(x, z []float64) float64 { return math.Exp(-l2(x, z) / 2) }},
		{kernels.Matern{Nu: 1.5, Sigma: 2}, func(x, z []float64) float64 {
			r := l2(x, z) / 2
			return (1 + math.Sqrt(3)*r) / math.Exp(math.Sqrt(3)*r)
		}},
		{kernels.Matern{Nu: 2.5, Sigma: 2}, func(x, z []float64) float64 {
			r := l2(x, z) / 2
			return (1 + math.Sqrt(5)*r + 5*r*r/3) / math.Exp(math.Sqrt(5)*r)
		}},
		{kernels.RationalQuadratic{A: 1, Sigma: 2}, func(x, z []float64) float64 {
			return 8 / (8 + l2(x, z)*l2(x, z))
		}},
		{kernels.RationalQuadratic{A: 2.5, Sigma: 1.5}, func(x, z []float64) float64 {
			return math.Exp(-2.5 * math.Log1p(math.Pow(l2(x, z)/1.5, 2)/5))
		}},
		{kernels.Sigmoid{A: 0.3, C: -0.5}, func(x, z []float64) float64 { return 1 - 2/(math.Exp(2*(0.3*dot(x, z)-0.5))+1) }},
		{kernels.Cosine{Theta: 1.5}, func(x, z []float64) float64 {
			sum := 0.0
			for p := range x {
				sum += math.Cos(1.5*x[p])*math.Cos(1.5*z[p]) + math.Sin(1.5*x[p])*math.Sin(1.5*z[p])
			}
			return sum
		}},
		// Dirichlet's kernel: Σ_{l=0..L} cos lω = ½ + sin((L+½)ω)/(2 sin ω/2).
		{kernels.CosineSeries{L: 6}, func(x, z []float64) float64 {
			sum := 0.0
			for p := range x {
				if w := 2 * math.Pi * (x[p] - z[p]) / 6; w == 0 {
					sum += 7
				} else {
					sum += 0.5 + math.Sin(6.5*w)/(2*math.Sin(w/2))
				}
			}
			return sum
		}},
		{kernels.SincLimit{}, func(x, z []float64) float64 {
			sum := 0.0
			for p := range x {
				// With a = π(z_p − x_p), the numerator is sin 2a = 2 sin a cos a.
				if d := z[p] - x[p]; d == 0 {
					sum += 2 * math.Pi
				} else {
					s, c := math.Sincos(math.Pi * d)
					sum += 2 * s * c / d
				}
			}
			return sum
		}},
		// 2 sin² θ = 1 − cos 2θ
		{kernels.Periodic{Period: 3, Sigma: 0.7}, func(x, z []float64) float64 {
			return math.Exp((math.Cos(2*math.Pi*l2(x, z)/3) - 1) / (0.7 * 0.7))
		}},
		{kernels.Columns{Indices: []int{1, 3}, Kernel: kernels.Gaussian{Sigma: 1.5}}, func(x, z []float64) float64 {
			return math.Exp(-(math.Pow(x[1]-z[1], 2) + math.Pow(x[3]-z[3], 2)) / 4.5)
		}},
		{kernels.Columns{Indices: []int{2, 1}, Kernel: kernels.Gaussian{Sigmas: []float64{0.5, 2}}}, func(x, z []float64) float64 {
			return math.Exp(-math.Pow((x[2]-z[2])/0.5, 2)/2 - math.Pow((x[1]-z[1])/2, 2)/2)
		}},
		{kernels.Columns{Indices: []int{3, 0}, Kernel: kernels.Polynomial{Degree: 2, C: 1}}, func(x, z []float64) float64 {
			return math.Pow(x[0]*z[0]+x[3]*z[3]+1, 2)
		}},
		{kernels.Columns{Indices: []int{2}, Kernel: kernels.Periodic{Period: 3, Sigma: 0.7}}, func(x, z []float64) float64 {
			return math.Exp((math.Cos(2*math.Pi*(x[2]-z[2])/3) - 1) / (0.7 * 0.7))
		}},
		{kernels.Columns{Indices: []int{0, 2}, Kernel: kernels.Cosine{Theta: 1.5}}, func(x, z []float64) float64 {
			return math.Cos(1.5*(x[0]-z[0])) + math.Cos(1.5*(x[2]-z[2]))
		}},
		{kernels.Columns{Indices: []int{0, 1}, Kernel: kernels.CosineSimilarity{}}, func(x, z []float64) float64 {
			return (x[0]*z[0] + x[1]*z[1]) / math.Sqrt((x[0]*x[0]+x[1]*x[1])*(z[0]*z[0]+z[1]*z[1]))
		}},
		// The indices of the inner Columns refer to the columns that the outer Columns selects.
		{kernels.Columns{Indices: []int{1, 2, 3}, Kernel: kernels.Columns{Indices: []int{0, 2}, Kernel: kernels.Laplacian{Sigma: 2}}}, func(x, z []float64) float64 {
			return math.Exp(-(math.Abs(x[1]-z[1]) + math.Abs(x[3]-z[3])) / 2)
		}},
		{kernels.Sum{kernels.Columns{Indices: []int{0, 1}, Kernel: kernels.Linear{}}, kernels.Columns{Indices: []int{2, 3}, Kernel: kernels.Linear{}}}, dot},
		{kernels.CosineSimilarity{}, func(x, z []float64) float64 { return dot(x, z) / math.Sqrt(dot(x, x)*dot(z, z)) }},
		{kernels.Normalized{Kernel: kernels.ExpOf{Kernel: kernels.Linear{}}}, func(x, z []float64) float64 {
			return math.Exp(-l2(x, z) * l2(x, z) / 2) // the normalized exp(xᵀz) is a Gaussian
		}},
		{kernels.Scaled{Weight: 0.25, Kernel: kernels.Linear{}}, func(x, z []float64) float64 { return dot(x, z) / 4 }},
		{kernels.Constant{Value: 3}, func(x, z []float64) float64 { return 3 }},
		{kernels.ExpOf{Kernel: kernels.Polynomial{Degree: 2}}, func(x, z []float64) float64 { return math.Exp(dot(x, z) * dot(x, z)) }},
		{kernels.Sum{kernels.Linear{}, kernels.Laplacian{Sigma: 1}, kernels.Linear{}}, func(x, z []float64) float64 {
			return 2*dot(x, z) + math.Exp(-l1(x, z))
		}},
		{kernels.Product{kernels.Linear{}, kernels.Laplacian{Sigma: 1}, kernels.Constant{Value: 2}}, func(x, z []float64) float64 {
			return 2 * dot(x, z) * math.Exp(-l1(x, z))
		}},
	} {
		for _, pair := range pairs(t, 50, len(sigmas)) {
			x, z := pair[0], pair[1]
			got, want := kernels.Eval(c.k, x, z), c.f(x, z)
			// The second implementation has about as many roundings as the kernel.
			if tol := 2 * kerneltest.Rounding(c.k, x, z); !(math.Abs(got-want) <= tol) {
				t.Errorf("%v at %v, %v is %v, want %v: off by %g, allowed %g", c.k, x, z, got, want, got-want, tol)
			}
		}
	}
}

// TestCoherence checks that kernels that are mathematically equal have equal values.
func TestCoherence(t *testing.T) {
	equalSigmas := func(sigma float64) []float64 { return []float64{sigma, sigma, sigma} }
	for _, c := range []struct {
		name string
		a, b kernels.Kernel
	}{
		{"equal length scales", kernels.Gaussian{Sigma: 1.3}, kernels.Gaussian{Sigmas: equalSigmas(1.3)}},
		{"degree 1", kernels.Polynomial{Degree: 1}, kernels.Linear{}},
		{"degree 1 with c", kernels.Polynomial{Degree: 1, C: 2}, kernels.Sum{kernels.Linear{}, kernels.Constant{Value: 2}}},
		{"square", kernels.Polynomial{Degree: 2}, kernels.Product{kernels.Linear{}, kernels.Linear{}}},
		{"gaussians multiply", kernels.Product{kernels.Gaussian{Sigma: 1}, kernels.Gaussian{Sigma: 1}}, kernels.Gaussian{Sigma: math.Sqrt(0.5)}},
		{"exp of a sum", kernels.ExpOf{Kernel: kernels.Sum{kernels.Linear{}, kernels.Constant{Value: 0.5}}}, kernels.Product{kernels.ExpOf{Kernel: kernels.Linear{}}, kernels.Constant{Value: math.Exp(0.5)}}},
		{"twice", kernels.Sum{kernels.Linear{}, kernels.Linear{}}, kernels.Scaled{Weight: 2, Kernel: kernels.Linear{}}},
	} {
		for _, pair := range pairs(t, 50, 3) {
			x, z := pair[0], pair[1]
			a, b := kernels.Eval(c.a, x, z), kernels.Eval(c.b, x, z)
			tol := kerneltest.Rounding(c.a, x, z) + kerneltest.Rounding(c.b, x, z)
			if !(math.Abs(a-b) <= tol) {
				t.Errorf("%s: %v and %v differ by %g, allowed %g", c.name, c.a, c.b, a-b, tol)
			}
		}
	}
	// In one dimension the L1 and L2 distances are equal, so that these two kernels are equal.
	for _, pair := range pairs(t, 50, 1) {
		a, b := kernels.Laplacian{Sigma: 2}, kernels.Matern{Nu: 0.5, Sigma: 2}
		x, z := pair[0], pair[1]
		if d, tol := math.Abs(kernels.Eval(a, x, z)-kernels.Eval(b, x, z)), kerneltest.Rounding(b, x, z)+kerneltest.Rounding(a, x, z); !(d <= tol) {
			t.Errorf("laplacian and exponential differ by %g in one dimension, allowed %g", d, tol)
		}
	}
}

// TestRationalQuadraticLimit checks that the quotient of the rational quadratic kernel and a Gaussian, its limit
// for a → ∞, is between 1 and exp(g²/2a) with g = ‖x−z‖²/2σ².
func TestRationalQuadraticLimit(t *testing.T) {
	const sigma = 1.3
	gaussian := kernels.Gaussian{Sigma: sigma}
	for _, a := range []float64{1, 10, 1e3, 1e5, 1e7} {
		k := kernels.RationalQuadratic{A: a, Sigma: sigma}
		for _, pair := range pairs(t, 50, 3) {
			x, z := pair[0], pair[1]
			got, limit := kernels.Eval(k, x, z), kernels.Eval(gaussian, x, z)
			g := -math.Log(limit)
			tol := kerneltest.Rounding(k, x, z) + kerneltest.Rounding(gaussian, x, z)
			if excess := got - limit; excess < -tol || excess > limit*math.Expm1(g*g/(2*a))+tol {
				t.Errorf("a = %v: %v, the Gaussian is %v: above by %g, allowed %g", a, got, limit, excess, limit*math.Expm1(g*g/(2*a))+tol)
			}
		}
	}
}

// TestSigmoidIndefinite checks that a Gram matrix of a sigmoid kernel has a negative eigenvalue.
// The kernel is tanh(xz) at the points 1 and 2, where tanh(2)² > tanh(1) tanh(4).
func TestSigmoidIndefinite(t *testing.T) {
	k := kernels.Sigmoid{A: 1}
	value := func(x, z float64) float64 { return kernels.Eval(k, []float64{x}, []float64{z}) }
	if k.IsPSD() || !(value(1, 1)*value(2, 2) < value(1, 2)*value(2, 1)) {
		t.Errorf("IsPSD is %v, the determinant is %v", k.IsPSD(), value(1, 1)*value(2, 2)-value(1, 2)*value(2, 1))
	}
}

// TestProgramFunctions checks operations that no kernel uses, and Pow outside its domain.
func TestProgramFunctions(t *testing.T) {
	for _, c := range []struct {
		in      kernels.Instr
		x, want float64
	}{
		{kernels.Instr{Op: kernels.Cos}, 0, 1},
		{kernels.Instr{Op: kernels.Cos}, math.Pi, -1},
		{kernels.Instr{Op: kernels.Sin}, 0, 0},
		{kernels.Instr{Op: kernels.Sin}, math.Pi / 2, 1},
		{kernels.Instr{Op: kernels.Pow, A: 2}, -1, math.NaN()},
		{kernels.Instr{Op: kernels.Pow, A: 0}, math.NaN(), math.NaN()},
		{kernels.Instr{Op: kernels.Pow, A: 0}, 0, 1},
		{kernels.Instr{Op: kernels.Pow, A: -1}, 0, math.Inf(1)},
		{kernels.Instr{Op: kernels.Pow, A: 0.5}, math.Inf(1), math.Inf(1)},
	} {
		p := kernels.Program{Code: []kernels.Instr{{Op: kernels.Load}, c.in}, Depth: 1}
		if got := p.Run([]float64{c.x}); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%+v of %v is %v, want %v", c.in, c.x, got, c.want)
		}
	}
}

// TestLimits checks that radial kernels are exactly 1 at distance 0, decrease with the distance, are 0 at a very
// large distance, and are 1 for a very large σ.
func TestLimits(t *testing.T) {
	const distance = 1e5
	for _, k := range []kernels.Kernel{
		kernels.Gaussian{Sigma: 2}, kernels.Gaussian{Sigmas: []float64{2}}, kernels.Laplacian{Sigma: 2},
		kernels.Matern{Nu: 0.5, Sigma: 2}, kernels.Matern{Nu: 1.5, Sigma: 2}, kernels.Matern{Nu: 2.5, Sigma: 2},
	} {
		value := func(r float64) float64 { return kernels.Eval(k, []float64{r}, []float64{0}) }
		if value(0) != 1 {
			t.Errorf("%v is %v at distance 0", k, value(0))
		}
		if value(distance) != 0 {
			t.Errorf("%v is %v at distance %v", k, value(distance), distance)
		}
		for r := 0.125; r < 16; r *= 2 {
			if !(value(r) < value(r/2)) {
				t.Errorf("%v does not decrease from %v to %v", k, r/2, r)
			}
		}
	}
	for _, k := range []kernels.Kernel{
		kernels.Gaussian{Sigma: 1e18}, kernels.Laplacian{Sigma: 1e18},
		kernels.Matern{Nu: 0.5, Sigma: 1e18}, kernels.Matern{Nu: 1.5, Sigma: 1e18}, kernels.Matern{Nu: 2.5, Sigma: 1e18},
	} {
		if v := kernels.Eval(k, []float64{3}, []float64{-1}); v != 1 {
			t.Errorf("%v at distance 4 is %v, want 1", k, v)
		}
	}
	// Near distance 0 the leading term of 1 − k is r, 3r²/2 or 5r²/6 for Nu = 1/2, 3/2 or 5/2. The other terms sum
	// to less than 4r times the leading term.
	const r = 1e-4
	for _, c := range []struct{ nu, want float64 }{{0.5, r}, {1.5, 1.5 * r * r}, {2.5, 5 * r * r / 6}} {
		k := kernels.Matern{Nu: c.nu, Sigma: 1}
		x, z := []float64{r}, []float64{0}
		got := 1 - kernels.Eval(k, x, z)
		if tol := 4*r*c.want + kerneltest.Rounding(k, x, z); !(math.Abs(got-c.want) <= tol) {
			t.Errorf("1 − %v at %v is %v, want %v within %g", k, r, got, c.want, tol)
		}
	}
}

// TestCheck checks the rules of the parameters and the texts of the errors.
func TestCheck(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	lin := kernels.Linear{}
	for _, c := range []struct {
		k    kernels.Kernel
		d    int
		want string
	}{
		{kernels.Gaussian{}, -1, "kernels: gaussian: sigma must be a finite number > 0, got 0"},
		{kernels.Gaussian{Sigma: -1}, -1, "kernels: gaussian: sigma must be a finite number > 0, got -1"},
		{kernels.Gaussian{Sigma: nan}, -1, "kernels: gaussian: sigma must be a finite number > 0, got NaN"},
		{kernels.Gaussian{Sigma: inf}, -1, "kernels: gaussian: sigma must be a finite number > 0, got +Inf"},
		{kernels.Gaussian{Sigma: 1e-200}, -1, "kernels: gaussian: sigma must be at least 1e-150, got 1e-200"},
		{kernels.Gaussian{Sigmas: []float64{1, 0}}, 2, "kernels: gaussian: sigma[2] must be a finite number > 0, got 0"},
		{kernels.Gaussian{Sigmas: []float64{1, 2}}, 3, "kernels: gaussian: sigma has 2 entries for 3 features"},
		{kernels.Gaussian{Sigmas: []float64{}}, -1, "kernels: gaussian: the list of sigmas is empty"},
		{kernels.Gaussian{Sigma: 1, Sigmas: []float64{1}}, 1, "kernels: gaussian: give either sigma or one sigma per feature, not both"},
		{kernels.Laplacian{Sigma: -2}, -1, "kernels: laplacian: sigma must be a finite number > 0, got -2"},
		{kernels.Matern{Nu: 1, Sigma: 1}, -1, "kernels: matern: nu must be 0.5, 1.5 or 2.5, got 1"},
		{kernels.Matern{Nu: 1.5}, -1, "kernels: matern32: sigma must be a finite number > 0, got 0"},
		{kernels.Polynomial{}, -1, "kernels: polynomial: degree must be an integer ≥ 1, got 0"},
		{kernels.Polynomial{Degree: 2, C: -1}, -1, "kernels: polynomial: c must be a finite number ≥ 0, got -1"},
		{kernels.RationalQuadratic{A: 0, Sigma: 1}, -1, "kernels: rationalquadratic: a must be a finite number ≥ 1e-06, got 0"},
		{kernels.RationalQuadratic{A: nan, Sigma: 1}, -1, "kernels: rationalquadratic: a must be a finite number ≥ 1e-06, got NaN"},
		{kernels.Periodic{Sigma: 1}, -1, "kernels: periodic: period must be a finite number > 0, got 0"},
		{kernels.Periodic{Period: 1}, -1, "kernels: periodic: sigma must be a finite number > 0, got 0"},
		{kernels.RationalQuadratic{A: 1}, -1, "kernels: rationalquadratic: sigma must be a finite number > 0, got 0"},
		{kernels.Sigmoid{A: inf}, -1, "kernels: sigmoid: a must be a finite number, got +Inf"},
		{kernels.Sigmoid{A: 1, C: nan}, -1, "kernels: sigmoid: c must be a finite number, got NaN"},
		{kernels.Constant{Value: -1}, -1, "kernels: constant: value must be a finite number ≥ 0, got -1"},
		{kernels.Scaled{Weight: -1, Kernel: lin}, -1, "kernels: scaled: weight must be a finite number ≥ 0, got -1"},
		{kernels.Scaled{Weight: 1}, -1, "kernels: scaled: no kernel to scale"},
		{kernels.Cosine{}, -1, "kernels: cosine: theta must be a finite number > 0, got 0"},
		{kernels.CosineSeries{}, -1, "kernels: cosineseries: l must be an integer from 1 to 65536, got 0"},
		{kernels.ChiSquared{Gamma: -1}, -1, "kernels: chi2: gamma must be a finite number > 0, got -1"},
		{kernels.Normalized{}, -1, "kernels: normalize: the inner kernel is missing"},
		{kernels.Normalized{Kernel: kernels.Gaussian{}}, -1, "kernels: gaussian: sigma must be a finite number > 0, got 0"},
		{kernels.Precomputed{}, 2, "kernels: precomputed: a point needs at least 3 features, got 2: the object's number, its kernel value with itself, and its kernel value with each training object"},
		{kernels.Columns{Indices: []int{0}}, -1, "kernels: columns: the inner kernel is missing"},
		{kernels.Columns{Kernel: lin}, -1, "kernels: columns: the list of columns is empty"},
		{kernels.Columns{Indices: []int{-1}, Kernel: lin}, -1, "kernels: columns: a column must be an integer from 0 to 1048575, got -1"},
		{kernels.Columns{Indices: []int{0, 3}, Kernel: lin}, 3, "kernels: columns: there is no column 3: the points have 3 features, and columns count from 0"},
		{kernels.Columns{Indices: []int{2, 0, 2}, Kernel: lin}, 3, "kernels: columns: column 2 is given twice"},
		{kernels.Columns{Indices: []int{0, 1, 2}, Kernel: kernels.Gaussian{Sigmas: []float64{1, 2}}}, -1, "kernels: gaussian: sigma has 2 entries for 3 features"},
		{kernels.Columns{Indices: []int{0, 1, 2}, Kernel: kernels.Normalized{Kernel: kernels.Precomputed{}}}, -1, "kernels: columns: precomputed() is not a function of columns: give the whole points to it"},
		{kernels.ExpOf{}, -1, "kernels: exp: the inner kernel is missing"},
		{kernels.ExpOf{Kernel: kernels.Laplacian{}}, -1, "kernels: laplacian: sigma must be a finite number > 0, got 0"},
		{kernels.Sum{}, -1, "kernels: sum: needs at least one kernel"},
		{kernels.Product{lin, nil}, -1, "kernels: product: a kernel is nil"},
		{kernels.Sum{lin, kernels.Product{kernels.Gaussian{}}}, -1, "kernels: gaussian: sigma must be a finite number > 0, got 0"},
	} {
		err := c.k.Check(c.d)
		if err == nil || err.Error() != c.want {
			t.Errorf("%v: got %v, want %s", c.k, err, c.want)
		}
		if c.d < 0 && c.k.IsPSD() {
			t.Errorf("%v: IsPSD is true where Check fails", c.k)
		}
	}
	// A negative number of features disables the rules about this number.
	nested := kernels.ExpOf{Kernel: kernels.Sum{lin, kernels.Scaled{Weight: 2, Kernel: kernels.Gaussian{Sigmas: []float64{1, 2}}}}}
	if nested.Check(-1) != nil || nested.Check(2) != nil || nested.Check(3) == nil {
		t.Errorf("Check of %v: %v, %v, %v", nested, nested.Check(-1), nested.Check(2), nested.Check(3))
	}
}

// TestShortestSigma checks that the smallest σ that Check accepts gives no NaN.
func TestShortestSigma(t *testing.T) {
	for _, k := range []kernels.Kernel{
		kernels.Gaussian{Sigma: 1e-150}, kernels.Gaussian{Sigmas: []float64{1e-150}}, kernels.Laplacian{Sigma: 1e-150}, kernels.Matern{Nu: 2.5, Sigma: 1e-150},
		kernels.RationalQuadratic{A: 1e3, Sigma: 1e-150},
	} {
		if err := k.Check(1); err != nil {
			t.Error(err)
		}
		if v := kernels.Diag(k, []float64{3}); v != 1 {
			t.Errorf("%v: k(x, x) is %v", k, v)
		}
		if v := kernels.Eval(k, []float64{3}, []float64{2}); v != 0 {
			t.Errorf("%v: k(3, 2) is %v", k, v)
		}
	}
}

// TestEvalPanics checks that Eval panics if the points have different lengths.
func TestEvalPanics(t *testing.T) {
	defer func() {
		if r := recover(); r == nil {
			t.Error("no panic")
		}
	}()
	kernels.Eval(kernels.Linear{}, []float64{1}, []float64{1, 2})
}
