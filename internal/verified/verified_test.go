package verified_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/internal/verified"
	"github.com/mercer-go/mercer/kernels"
)

// excess returns the distance between the center of b and the number exact, divided by the radius
// of b, and the radius divided by |exact|.
func excess(b verified.Ball, exact *big.Float) (ratio, relative float64) {
	center := add(number(b.Hi), number(b.Lo))
	distance, _ := zero().Abs(sub(center, exact)).Float64()
	size, _ := zero().Abs(exact).Float64()
	switch {
	case distance == 0:
		ratio = 0
	default:
		ratio = distance / b.Radius
	}
	return ratio, b.Radius / size
}

func TestFunctions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	arguments := []float64{0, 1, -1, 1e-300, -1e-300, 0x1p-60, 0.5, math.Pi, math.Pi / 2, math.Ln2 / 128, math.Nextafter(math.Ln2/128, 1), 30, -30, 39, 41, 500, -500, 679, -679, 1e6, 123456789}
	draws := 2000
	if required.FewCases() {
		draws = 400
	}
	for range draws {
		arguments = append(arguments, random.NormFloat64()*math.Pow(10, 5*random.Float64()-3))
	}
	positive := func(v float64) bool { return v > 0 }
	functions := []struct {
		name    string
		f       func(verified.Ball) verified.Ball
		exact   func(*big.Float) *big.Float
		domain  func(v float64) bool
		quality float64 // maximum radius, relative to the value or to 1
	}{
		{"exp", verified.Exp, bigExp, func(v float64) bool { return math.Abs(v) < 680 }, 0x1p-78},
		{"log", verified.Log, bigLog, func(v float64) bool { return v > 1e-290 }, 0x1p-78},
		{"sqrt", verified.Sqrt, bigSqrt, func(v float64) bool { return v > 1e-250 }, 0x1p-98},
		{"cos", verified.Cos, func(a *big.Float) *big.Float { c, _ := bigCosSin(a); return c }, nil, 0x1p-98},
		{"sin", verified.Sin, func(a *big.Float) *big.Float { _, s := bigCosSin(a); return s }, nil, 0x1p-98},
		{"tanh", verified.Tanh, bigTanh, nil, 0x1p-78},
		{"^−2.5", func(a verified.Ball) verified.Ball { return verified.Pow(a, -2.5) }, func(a *big.Float) *big.Float {
			return bigExp(mul(number(-2.5), bigLog(a)))
		}, func(v float64) bool { return v > 1e-30 && v < 1e30 }, 0x1p-70},
		{"^0.1", func(a verified.Ball) verified.Ball { return verified.Pow(a, 0.1) }, func(a *big.Float) *big.Float {
			return bigExp(mul(number(0.1), bigLog(a)))
		}, positive, 0x1p-70},
		{"^5", func(a verified.Ball) verified.Ball { return verified.PowInt(a, 5) }, func(a *big.Float) *big.Float {
			return mul(mul(mul(mul(a, a), a), a), a)
		}, func(v float64) bool { return math.Abs(v) > 1e-50 && math.Abs(v) < 1e60 }, 0x1p-98},
		{"1/", func(a verified.Ball) verified.Ball { return verified.Div(verified.Exact(1), a) }, func(a *big.Float) *big.Float {
			return div(number(1), a)
		}, func(v float64) bool { return v != 0 && math.Abs(v) > 1e-290 }, 0x1p-98},
	}
	for _, f := range functions {
		for _, v := range arguments {
			if f.domain != nil && !f.domain(v) {
				continue
			}
			// First evaluate f at an argument of 106 bits. Then evaluate f at a ball around this argument: the result
			// must contain the values of f at four points of the ball.
			lo := v * 0x1p-54 * (2*random.Float64() - 1)
			argument := add(number(v), number(lo))
			got := f.f(verified.Ball{Hi: v, Lo: lo})
			ratio, relative := excess(got, f.exact(argument))
			if !(ratio <= 1) {
				t.Errorf("%s %v: the error is %g of the radius %g", f.name, v, ratio, got.Radius)
			}
			if scale := math.Abs(got.Hi); !(relative <= f.quality) && !(got.Radius <= f.quality) {
				t.Errorf("%s %v: the radius is %g of the value %g", f.name, v, relative, scale)
			}
			radius := math.Abs(v) * 0x1p-40
			ball := f.f(verified.Ball{Hi: v, Lo: lo, Radius: radius})
			for _, end := range []float64{-1, -0.3, 0.7, 1} {
				argumentEnd := add(argument, number(end*radius))
				if f.domain != nil && f.name != "sqrt" && argumentEnd.Sign() <= 0 && (f.name == "log" || f.name[0] == '^' && f.name != "^5") {
					continue
				}
				if ratio, _ := excess(ball, f.exact(argumentEnd)); !(ratio <= 1) {
					t.Errorf("%s %v ± %g: the error at the end %g is %g of the radius", f.name, v, radius, end, ratio)
				}
			}
		}
	}
}

// TestOutsideTheDomain checks that a function has an infinite radius for arguments outside its domain.
func TestOutsideTheDomain(t *testing.T) {
	for name, b := range map[string]verified.Ball{
		"exp(700)":      verified.Exp(verified.Exact(700)),
		"exp(NaN)":      verified.Exp(verified.Exact(math.NaN())),
		"exp(0 ± 2)":    verified.Exp(verified.Ball{Radius: 2}),
		"log(0)":        verified.Log(verified.Exact(0)),
		"log(−1)":       verified.Log(verified.Exact(-1)),
		"log(1 ± 1)":    verified.Log(verified.Ball{Hi: 1, Radius: 1}),
		"1/0":           verified.Div(verified.Exact(1), verified.Exact(0)),
		"1/(1 ± 1)":     verified.Div(verified.Exact(1), verified.Ball{Hi: 1, Radius: 1}),
		"cos(2⁴⁰)":      verified.Cos(verified.Exact(0x1p40)),
		"0^−1":          verified.Pow(verified.Exact(0), -1),
		"(1e308)²":      verified.Mul(verified.Exact(1e308), verified.Exact(1e308)),
		"1e308 + 1e308": verified.Add(verified.Exact(1e308), verified.Exact(1e308)),
	} {
		if b.Radius <= math.MaxFloat64 {
			t.Errorf("%s is %v, not unbounded", name, b)
		}
	}
	for name, test := range map[string]struct {
		b     verified.Ball
		exact float64
	}{
		"exp(−1000)":         {verified.Exp(verified.Exact(-1000)), 0}, // 0 < exp(−1000) < 1e-434
		"0^2.5":              {verified.Pow(verified.Exact(0), 2.5), 0},
		"√0":                 {verified.Sqrt(verified.Exact(0)), 0},
		"√−1":                {verified.Sqrt(verified.Exact(-1)), 0},
		"√(0 ± 0.25) ∋ 0.5":  {verified.Sqrt(verified.Ball{Radius: 0.25}), 0.5},
		"(0 ± 0.25)^0.5 ∋ .": {verified.Pow(verified.Ball{Radius: 0.25}, 0.5), 0.5},
		"tanh(1000)":         {verified.Tanh(verified.Exact(1000)), 1},
		"tanh(−1000)":        {verified.Tanh(verified.Exact(-1000)), -1},
		"x⁰":                 {verified.Pow(verified.Exact(-3), 0), 1},
	} {
		if ratio, _ := excess(test.b, number(test.exact)); !(ratio <= 1) {
			t.Errorf("%s: %v does not contain %v", name, test.b, test.exact)
		}
	}
}

// tested returns kernels that together contain every statistic and every operation.
func tested() []kernels.Kernel {
	return []kernels.Kernel{
		kernels.Linear{},
		kernels.Polynomial{Degree: 3, C: 1},
		kernels.Gaussian{Sigma: 1.3},
		kernels.Gaussian{Sigmas: []float64{0.7, 1.1, 2.3}},
		kernels.Laplacian{Sigma: 2},
		kernels.Matern{Nu: 0.5, Sigma: 1.5},
		kernels.Matern{Nu: 1.5, Sigma: 1.5},
		kernels.Matern{Nu: 2.5, Sigma: 1.5},
		kernels.RationalQuadratic{A: 1.7, Sigma: 1.2},
		kernels.CosineSeries{L: 3},
		kernels.SincLimit{},
		kernels.ChiSquared{Gamma: 0.5},
		kernels.CosineSimilarity{},
		kernels.ExpOf{Kernel: kernels.CosineSimilarity{}},
		kernels.Normalized{Kernel: kernels.Polynomial{Degree: 2, C: 0}},
	}
}

func TestKernels(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, k := range append(tested(), kernels.Sigmoid{A: 0.3, C: -0.2}) {
		e, p := verified.NewKernel(k), kernels.Compile(k)
		_, histogram := k.(kernels.ChiSquared)
		for trial := range 150 {
			scale := []float64{1, 1, 1e-8, 10, 1e-160}[trial%5]
			x, z := make([]float64, 3), make([]float64, 3)
			for j := range x {
				x[j], z[j] = scale*random.NormFloat64(), scale*random.NormFloat64()
				switch {
				case trial%7 == 0:
					z[j] = x[j]
				case trial%7 == 1:
					z[j] = x[j] + 0x1p-45*z[j]
				case trial%11 == 0:
					z[j] = 0
				}
				if histogram {
					x[j], z[j] = math.Abs(x[j]), math.Abs(z[j])
				}
			}
			got := e.Eval(x, z)
			exact := bigKernel(p, x, z)
			if ratio, _ := excess(got, exact); !(ratio <= 1) {
				t.Fatalf("%v of %v and %v: %v, exact %v: the error is %g of the radius", k, x, z, got, exact.Text('g', 40), ratio)
			}
			if value := kernels.Eval(k, x, z); !(got.Radius <= 0x1p-65*math.Max(1, math.Abs(value))) && scale > 1e-100 {
				t.Errorf("%v of %v and %v: radius %g of the value %g", k, x, z, got.Radius, value)
			}
		}
	}
}

func ExampleKernel() {
	k := verified.NewKernel(kernels.Gaussian{Sigma: 1})
	value, bound := k.Eval([]float64{1, 2}, []float64{2, 4}).Rounded()
	fmt.Printf("%.16g, error below 2^%d\n", value, int(math.Ceil(math.Log2(bound))))
	// exp(−5/2) = 0.0820849986238987951695…
	// Output: 0.0820849986238988, error below 2^-57
}
