package markov

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// The reference values come from dense linear algebra in arithmetic of 256 bits.

func number(v float64) *big.Float { return new(big.Float).SetPrec(256).SetFloat64(v) }

func float(v *big.Float) float64 { f, _ := v.Float64(); return f }

// exp returns e⁻ˣ for x ≥ 0.
func exp(x *big.Float) *big.Float { return expWith(256, x) }

// expWith returns e⁻ˣ in arithmetic of the given bits: the Taylor series for x/2ᵏ < 2⁻⁸, squared k times.
func expWith(bits uint, x *big.Float) *big.Float {
	newFloat := func(v float64) *big.Float { return new(big.Float).SetPrec(bits).SetFloat64(v) }
	k := max(0, x.MantExp(nil)+8)
	x = newFloat(0).SetMantExp(x, -k)
	sum, add := newFloat(1), newFloat(1)
	for i := 1; i < 60; i++ {
		add.Mul(add, x)
		add.Quo(add, newFloat(float64(-i)))
		sum.Add(sum, add)
	}
	for range k {
		sum.Mul(sum, sum)
	}
	return sum
}

// evaluate returns k(a, b) for the kernels that Of accepts.
func evaluate(k kernels.Kernel, a, b float64) *big.Float {
	matern := func(nu, sigma float64) *big.Float {
		s := number(0).Sub(number(a), number(b))
		s.Abs(s).Quo(s, number(sigma)).Mul(s, number(0).Sqrt(number(2*nu)))
		p := number(1)
		if nu > 1 {
			p.Add(p, s)
		}
		if nu > 2 {
			p.Add(p, number(0).Quo(number(0).Mul(s, s), number(3)))
		}
		return p.Mul(p, exp(s))
	}
	switch k := k.(type) {
	case kernels.Laplacian:
		return matern(0.5, k.Sigma)
	case kernels.Matern:
		return matern(k.Nu, k.Sigma)
	case kernels.Constant:
		return number(k.Value)
	case kernels.Scaled:
		return number(0).Mul(number(k.Weight), evaluate(k.Kernel, a, b))
	case kernels.Product:
		p := number(1)
		for _, f := range k {
			p.Mul(p, evaluate(f, a, b))
		}
		return p
	case kernels.Sum:
		s := number(0)
		for _, t := range k {
			s.Add(s, evaluate(t, a, b))
		}
		return s
	}
	panic("no kernel of this test")
}

// exact holds K, the inverse of K + D and the pivots of Gaussian elimination.
type exact struct {
	k, inverse [][]*big.Float
	det        *big.Float
	condition  float64 // trace(K + D)/min D, an upper bound on the condition number
}

func newExact(k kernels.Kernel, x, d []float64) exact {
	n := len(x)
	e := exact{det: number(1)}
	a := make([][]*big.Float, n)
	e.k, e.inverse = make([][]*big.Float, n), make([][]*big.Float, n)
	trace, minD := 0.0, math.Inf(1)
	for i := range n {
		for j := range n {
			v := evaluate(k, x[i], x[j])
			e.k[i] = append(e.k[i], v)
			a[i] = append(a[i], number(0).Set(v))
			e.inverse[i] = append(e.inverse[i], number(0))
		}
		a[i][i].Add(a[i][i], number(d[i]))
		e.inverse[i][i].SetInt64(1)
		trace += float(a[i][i])
		minD = min(minD, d[i])
	}
	e.condition = trace / minD
	for p := range n {
		pivot := number(0).Set(a[p][p])
		e.det.Mul(e.det, pivot)
		for j := range n {
			a[p][j].Quo(a[p][j], pivot)
			e.inverse[p][j].Quo(e.inverse[p][j], pivot)
		}
		for i := range n {
			if i == p {
				continue
			}
			f := number(0).Set(a[i][p])
			for j := range n {
				a[i][j].Sub(a[i][j], number(0).Mul(f, a[p][j]))
				e.inverse[i][j].Sub(e.inverse[i][j], number(0).Mul(f, e.inverse[p][j]))
			}
		}
	}
	return e
}

var kernelsOfTests = []kernels.Kernel{
	kernels.Laplacian{Sigma: 0.7},
	kernels.Matern{Nu: 1.5, Sigma: 2},
	kernels.Matern{Nu: 2.5, Sigma: 1.3},
	kernels.Sum{
		kernels.Scaled{Weight: 2, Kernel: kernels.Matern{Nu: 2.5, Sigma: 3}},
		kernels.Product{kernels.Constant{Value: 0.5}, kernels.Matern{Nu: 1.5, Sigma: 0.3}, kernels.Constant{Value: 0.8}},
		kernels.Constant{Value: 0.1},
	},
}

// problem returns points in random order, two of them equal and neighbors about step apart, and the diagonal of D.
func problem(r *rand.Rand, n int, step, noise float64) (x, d []float64) {
	x, d = make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = 3 + step*float64(n)*r.Float64()
		d[i] = noise * math.Exp2(2*r.Float64()-1)
	}
	x[n-1] = x[0]
	return x, d
}

// TestAgainstExactNumbers compares products, solves, the diagonal of the inverse and the determinant with the
// reference values, for neighboring points at distances from 10⁻⁹ to 20.
func TestAgainstExactNumbers(t *testing.T) {
	const n, seed = 14, 3
	t.Logf("seed %d", seed)
	for _, k := range kernelsOfTests {
		for _, step := range []float64{1e-9, 1e-6, 1e-3, 0.3, 1, 20} {
			for _, noise := range []float64{1e-8, 1e-3, 10} {
				t.Run(fmt.Sprintf("%v,step=%g,noise=%g", k, step, noise), func(t *testing.T) {
					r := rand.New(rand.NewPCG(seed, 0))
					x, d := problem(r, n, step, noise)
					e := newExact(k, x, d)
					l := lineOf(t, k, x)
					if err := l.Filter(t.Context(), d); err != nil {
						t.Fatal(err)
					}
					b := backend.NewHost[float64](n, 2)
					for i := range b.Data {
						b.Data[i] = r.NormFloat64()
					}
					size := 0.0
					for _, v := range b.Data {
						size = math.Hypot(size, v)
					}
					// The bound allows a few dozen roundings for each entry of the state in each step.
					unit := 0x1p-52 * 32 * float64(n*l.dim)
					solution, product := clone(b), clone(b)
					l.Solve(solution)
					l.Multiply(product)
					squares := l.Squares(clone(b))
					inverse := l.Inverse()
					minD := math.Inf(1)
					for _, v := range d {
						minD = min(minD, v)
					}
					for j := range b.Cols {
						square := number(0)
						for i := range n {
							s, p := number(0), number(0)
							for q := range n {
								v := number(b.Row(q)[j])
								s.Add(s, number(0).Mul(e.inverse[i][q], v))
								p.Add(p, number(0).Mul(e.k[i][q], v))
							}
							square.Add(square, number(0).Mul(s, number(b.Row(i)[j])))
							checkNear(t, fmt.Sprintf("solution %d", i), solution.Row(i)[j], s, unit*e.condition*size/minD)
							checkNear(t, fmt.Sprintf("product %d", i), product.Row(i)[j], p, unit*float(e.k[i][i])*math.Sqrt(n)*size)
						}
						checkNear(t, "square", squares[j], square, unit*e.condition*size*size/minD)
					}
					for i, v := range inverse {
						checkNear(t, fmt.Sprintf("inverse %d", i), v, e.inverse[i][i], unit*e.condition/minD)
					}
					mantissa := number(0)
					exponent := e.det.MantExp(mantissa)
					want := math.Log(float(mantissa)) + float64(exponent)*math.Ln2
					logDet := 0.0
					for _, v := range l.LogPivots() {
						logDet += v
					}
					checkNear(t, "logarithm of the determinant", logDet, number(want), unit*(e.condition+math.Abs(want)))
				})
			}
		}
	}
}

func lineOf(t *testing.T, k kernels.Kernel, x []float64) *Line {
	t.Helper()
	m, ok := Of(k)
	if !ok {
		t.Fatalf("%v has no state space", k)
	}
	l, err := NewLine(t.Context(), m, x)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func clone(h backend.Host[float64]) backend.Host[float64] {
	c := backend.NewHost[float64](h.Rows, h.Cols)
	for i := range h.Rows {
		copy(c.Row(i), h.Row(i))
	}
	return c
}

func checkNear(t *testing.T, name string, got float64, want *big.Float, bound float64) {
	t.Helper()
	if d := math.Abs(float(number(0).Sub(number(got), want))); !(d <= bound) {
		t.Errorf("%s: got %v, want %v: difference %.3g, allowed %.3g", name, got, float(want), d, bound)
	}
}

// TestNoiseOfAStep compares the elements of Q(s) with the intensity times ∫₀ˢ vvᵀ du, computed in 512 bits.
func TestNoiseOfAStep(t *testing.T) {
	for order, p := range []struct {
		kernel    kernels.Kernel
		intensity float64     // three times the intensity, which is an integer
		v         [][]float64 // v[i] has the coefficients of the polynomial exp(u)·v_i
	}{
		{kernels.Laplacian{Sigma: 1}, 6, [][]float64{{1}}},
		{kernels.Matern{Nu: 1.5, Sigma: 1}, 12, [][]float64{{0, 1}, {1, -1}}},
		{kernels.Matern{Nu: 2.5, Sigma: 1}, 16, [][]float64{{0, 0, 0.5}, {0, 1, -0.5}, {1, -2, 0.5}}},
	} {
		m, _ := Of(p.kernel)
		for s := 1e-12; s < 500; s *= 1.7 {
			var q matrix
			m.terms[0].addNoise(s, math.Exp(-s), &q)
			integrals := exactIntegrals(2*order, s)
			for i := range p.v {
				for j := range p.v {
					want := number(0).SetPrec(512)
					for a, f := range p.v[i] {
						for b, g := range p.v[j] {
							if f*g != 0 {
								want.Add(want, number(0).SetPrec(512).Mul(integrals[a+b], number(f*g*p.intensity)))
							}
						}
					}
					want.Quo(want, number(3))
					// The recursion for s > 1 multiplies rounding errors by up to 3 at each of four steps.
					checkNear(t, fmt.Sprintf("%v, s = %.3g: Q[%d][%d]", p.kernel, s, i, j), q[i][j], want, 100*0x1p-52*math.Sqrt(q[i][i]*q[j][j]))
				}
			}
		}
	}
}

// exactIntegrals returns ∫₀ˢ uᵏ exp(−2u) du by integration by parts.
func exactIntegrals(last int, s float64) []*big.Float {
	newFloat := func(v float64) *big.Float { return new(big.Float).SetPrec(512).SetFloat64(v) }
	power := expWith(512, newFloat(2*s))
	list := []*big.Float{newFloat(0).Quo(newFloat(0).Sub(newFloat(1), power), newFloat(2))}
	for k := 1; k <= last; k++ {
		power.Mul(power, newFloat(s))
		v := newFloat(0).Mul(newFloat(float64(k)), list[k-1])
		list = append(list, v.Sub(v, power).Quo(v, newFloat(2)))
	}
	return list
}

// TestSingular checks that Filter returns an error with the row of a point if equal points have no noise.
func TestSingular(t *testing.T) {
	for _, k := range kernelsOfTests {
		l := lineOf(t, k, []float64{2, 5, 2})
		err := l.Filter(t.Context(), []float64{0})
		var pivot *backend.PivotError
		if !errors.As(err, &pivot) || pivot.Index != 2 {
			t.Errorf("%v: got %v, want a pivot error at row 2", k, err)
		}
	}
}

// TestHugeRange checks that points so far apart that their differences overflow are independent.
func TestHugeRange(t *testing.T) {
	for _, k := range kernelsOfTests[:3] {
		l := lineOf(t, k, []float64{-1e308, 1e308, 0})
		if err := l.Filter(t.Context(), []float64{1}); err != nil {
			t.Fatal(err)
		}
		b := backend.NewHost[float64](3, 1)
		copy(b.Data, []float64{2, 4, 6})
		l.Solve(b)
		for i, want := range []float64{1, 2, 3} {
			if b.Data[i] != want {
				t.Errorf("%v: got %v, want %v", k, b.Data[i], want)
			}
		}
	}
}

func TestOfRefuses(t *testing.T) {
	for _, k := range []kernels.Kernel{
		nil, kernels.Gaussian{Sigma: 1}, kernels.Linear{}, kernels.Laplacian{}, kernels.ExpOf{Kernel: kernels.Laplacian{Sigma: 1}},
		kernels.Product{kernels.Laplacian{Sigma: 1}, kernels.Laplacian{Sigma: 2}},
		kernels.Sum{kernels.Laplacian{Sigma: 1}, kernels.Gaussian{Sigma: 1}},
		kernels.Sum{kernels.Matern{Nu: 2.5, Sigma: 1}, kernels.Matern{Nu: 2.5, Sigma: 2}, kernels.Matern{Nu: 2.5, Sigma: 3}},
	} {
		if _, ok := Of(k); ok {
			t.Errorf("%v was accepted", k)
		}
	}
}

// TestElements checks that NewLine and Filter allocate the memory of Elements, and two numbers for each point.
func TestElements(t *testing.T) {
	const n = 20_000
	for _, k := range []kernels.Kernel{
		kernels.Laplacian{Sigma: 1}, kernels.Matern{Nu: 2.5, Sigma: 1},
		kernels.Sum{kernels.Matern{Nu: 1.5, Sigma: 1}, kernels.Matern{Nu: 2.5, Sigma: 3}, kernels.Constant{Value: 1}},
	} {
		m, ok := Of(k)
		if !ok {
			t.Fatalf("%v has no model", k)
		}
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(i * 7919 % n)
		}
		var before, after runtime.MemStats
		runtime.GC() // starts the workers of the garbage collector, one for each processor
		runtime.ReadMemStats(&before)
		l, err := NewLine(t.Context(), m, x)
		if err == nil {
			err = l.Filter(t.Context(), []float64{1})
		}
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		// The limit allows the rounding of allocations to pages of 8 KiB, and allocations by the test itself.
		allocated, expected := int64(after.TotalAlloc-before.TotalAlloc), 8*(m.Elements(n)+2*n)
		if allocated < expected || allocated > expected+8*8192+1<<16 {
			t.Errorf("%v: %d bytes were allocated, %d are counted", k, allocated, expected)
		}
	}
}

// TestEvaluate compares Σ_i k(z, x_i) α_i with sums of kernel values, for z below, between, above and at the x_i.
func TestEvaluate(t *testing.T) {
	const n, seed = 30, 5
	t.Logf("seed %d", seed)
	for _, k := range kernelsOfTests {
		r := rand.New(rand.NewPCG(seed, 0))
		x, _ := problem(r, n, 0.2, 1)
		alpha := backend.NewHost[float64](n, 2)
		size := 0.0
		for i := range alpha.Data {
			alpha.Data[i] = r.NormFloat64()
			size += math.Abs(alpha.Data[i])
		}
		z := append([]float64{-1e9, 1e9, 0, 100, x[4], x[0], x[n-2]}, x...)
		for range 50 {
			z = append(z, 2+8*r.Float64())
		}
		got, err := lineOf(t, k, x).Evaluate(t.Context(), alpha, z)
		if err != nil {
			t.Fatal(err)
		}
		for i, point := range z {
			for j := range alpha.Cols {
				want := 0.0
				for q := range n {
					want += kernels.Eval(k, []float64{point}, x[q:q+1]) * alpha.Row(q)[j]
				}
				bound := (Roundings + 8) * n * 0x1p-53 * size * kernels.Diag(k, []float64{0})
				checkNear(t, fmt.Sprintf("%v at %v", k, point), got.Row(i)[j], number(want), bound)
			}
		}
	}
	empty, err := lineOf(t, kernelsOfTests[0], []float64{1}).Evaluate(t.Context(), backend.NewHost[float64](1, 1), nil)
	if err != nil || empty.Rows != 0 {
		t.Errorf("no points: got %v, %v", empty, err)
	}
}

// TestOrnsteinUhlenbeck compares the factor, the quadratic form and the inverse of K for the exponential kernel
// with their closed forms. Let ρ_i = exp(−(x_i − x_(i−1))/σ). The value at x_i given the preceding values has the
// mean ρ_i y_(i−1) and the variance 1 − ρ_i². The inverse has the diagonal 1/(1 − ρ_i²) + ρ_(i+1)²/(1 − ρ_(i+1)²).
func TestOrnsteinUhlenbeck(t *testing.T) {
	const n, seed, sigma = 200, 5, 0.7
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	x, order := make([]float64, n), r.Perm(n)
	for i, row := range order {
		x[row] = float64(i) * 0.3
		if i > n/2 {
			x[row] += 1e9 // a gap, at which ρ is 0
		}
	}
	l := lineOf(t, kernels.Laplacian{Sigma: sigma}, x)
	if err := l.Filter(t.Context(), []float64{0}); err != nil {
		t.Fatal(err)
	}
	y := backend.NewHost[float64](n, 1)
	for i := range y.Data {
		y.Data[i] = r.NormFloat64()
	}
	logs, inverse := l.LogPivots(), l.Inverse()
	square, size := 0.0, 0.0
	variance := func(i int) (rho, v float64) {
		if i == 0 {
			return 0, 1
		}
		d := (x[order[i]] - x[order[i-1]]) / sigma
		return math.Exp(-d), -math.Expm1(-2 * d)
	}
	// The tolerance allows a few dozen roundings of the variances, which are at least 0.57 here.
	const tol = 64 * 0x1p-53
	for i, row := range order {
		rho, v := variance(i)
		if d := math.Abs(logs[row] - math.Log(v)); !(d <= tol) {
			t.Errorf("pivot %d: logarithm %v, want %v", i, logs[row], math.Log(v))
		}
		want := 1 / v
		if i+1 < n {
			next, w := variance(i + 1)
			want += next * next / w
		}
		if d := math.Abs(inverse[row] - want); !(d <= tol*want) {
			t.Errorf("inverse %d: %v, want %v", i, inverse[row], want)
		}
		e := y.Data[row]
		if i > 0 {
			e -= rho * y.Data[order[i-1]]
		}
		square += e * e / v
		size += y.Data[row] * y.Data[row]
	}
	if got := l.Squares(y)[0]; !(math.Abs(got-square) <= n*tol*size) {
		t.Errorf("yᵀK⁻¹y is %v, want %v", got, square)
	}
}
