package kerneltest

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/kernels"
)

// FunctionUlps is the permitted error of exp and other elementary functions in ulp. Vectorized versions have errors of
// about 1 ulp. An ulp is at most twice the unit roundoff.
const FunctionUlps = 4

// Approx is a value with a bound on its error.
type Approx struct{ Value, Error float64 }

// Rounded adds n rounding errors with unit roundoff u, each relative to the largest possible value.
func (a Approx) Rounded(n int, u float64) Approx {
	a.Error += float64(n) * u * (math.Abs(a.Value) + a.Error)
	return a
}

// smallest returns the smallest normal number of the arithmetic with unit roundoff u. Smaller
// results have a bounded absolute error, but no bounded relative error.
func smallest(u float64) float64 {
	if u == 0x1p-53 {
		return 0x1p-1022
	}
	return 0x1p-126
}

// Propagate runs the program on statistics with errors, in arithmetic with unit roundoff u, and counts every
// rounding: a running error analysis (Higham 2002, Accuracy and Stability of Numerical Algorithms, section 3.3). If
// there is no bound, the error is NaN.
func Propagate(p *kernels.Program, stats []Approx, u float64) Approx {
	var stack []Approx
	for _, in := range p.Code {
		switch in.Op {
		case kernels.Load:
			stack = append(stack, stats[in.Arg])
			continue
		case kernels.Const:
			stack = append(stack, Approx{in.A, 0}.Rounded(1, u))
			continue
		}
		last := len(stack) - 1
		t := stack[last]
		v, e := t.Value, t.Error
		switch in.Op {
		case kernels.Affine: // A, A·t, B and the sum are each rounded once
			product := Approx{in.A * v, math.Abs(in.A) * e}.Rounded(2, u)
			t = Approx{product.Value + in.B, product.Error + u*math.Abs(in.B)}.Rounded(1, u)
		case kernels.PowInt: // the mean value theorem gives the bound; each factor adds one rounding
			n := float64(in.Arg)
			t = Approx{math.Pow(v, n), n * e * math.Pow(math.Abs(v)+e, n-1)}.Rounded(in.Arg, u)
		case kernels.Sqrt:
			// |√(v±e) − √v| is at most e/√v, and at most √e.
			root, rootError := math.Sqrt(max(v, 0)), math.Sqrt(e)
			if root > 0 {
				rootError = min(rootError, e/root)
			}
			t = Approx{root, rootError}.Rounded(1, u)
		case kernels.Exp:
			exp := math.Exp(v)
			expError := exp * math.Expm1(e)
			if exp == 0 || math.IsInf(expError, 0) {
				expError = math.Exp(v + e)
			}
			t = Approx{exp, expError}.Rounded(2*FunctionUlps, u)
			t.Error += smallest(u)
		case kernels.Pow:
			// The relative rounding error of A·log(v) is u for A, u for the product and 2·FunctionUlps·u for the
			// logarithm.
			power := math.Pow(max(v, 0), in.A)
			powerError := math.Pow(v+e, in.A) // this bound is used for v near 0, where the logarithm is unbounded
			if e < v {
				log := math.Abs(in.A * math.Log(v))
				powerError = power * math.Expm1(math.Abs(in.A)*logMove(v, e)+(2+2*FunctionUlps)*u*log)
			} else if in.A < 0 {
				powerError = math.Inf(1)
			} else if in.A == 0 {
				powerError = 0
			}
			t = Approx{power, powerError}.Rounded(2*FunctionUlps, u)
			t.Error += smallest(u)
		case kernels.Tanh: // the largest slope is 1 − tanh² at the argument nearest to 0
			tanh, low := math.Tanh(v), math.Tanh(max(math.Abs(v)-e, 0))
			t = Approx{tanh, (1 - low*low) * e}.Rounded(2*FunctionUlps, u)
		case kernels.Cos: // Taylor's theorem gives the bound
			t = Approx{math.Cos(v), min(e, math.Abs(math.Sin(v))*e+e*e/2)}.Rounded(2*FunctionUlps, u)
		case kernels.Sin:
			t = Approx{math.Sin(v), min(e, math.Abs(math.Cos(v))*e+e*e/2)}.Rounded(2*FunctionUlps, u)
		case kernels.Log:
			t = Approx{math.Log(v), logMove(v, e)}.Rounded(2*FunctionUlps, u)
		case kernels.Add:
			s := stack[last-1]
			stack, last = stack[:last], last-1
			t = Approx{s.Value + v, s.Error + e}.Rounded(1, u)
		case kernels.Mul:
			s := stack[last-1]
			stack, last = stack[:last], last-1
			t = Approx{s.Value * v, math.Abs(s.Value)*e + math.Abs(v)*s.Error + s.Error*e}.Rounded(1, u)
		default:
			panic(fmt.Sprintf("kerneltest: unknown operation %d", in.Op))
		}
		stack[last] = t
	}
	if math.IsInf(stack[0].Error, 0) {
		stack[0].Error = math.NaN()
	}
	return stack[0]
}

// logMove bounds |ln(v±e) − ln v| by −ln(1 − e/v).
func logMove(v, e float64) float64 { return -math.Log1p(-min(e/v, 1)) }

// Rounding bounds the difference between kernels.Eval(k, x, z) and the exact value. The bound does not apply to
// statistics computed in another way, such as ‖x−z‖² from xᵀz.
func Rounding(k kernels.Kernel, x, z []float64) float64 {
	p := kernels.Compile(k)
	stats := make([]Approx, len(p.Stats))
	for i, s := range p.Stats {
		stats[i] = statRounding(s, x, z)
	}
	return Propagate(p, stats, unit).Error
}

// unit is the unit roundoff of float64.
const unit = 0x1p-53

// statRounding returns a statistic in float64 with a bound on its error.
func statRounding(s kernels.Stat, x, z []float64) Approx {
	v := s.Eval(x, z)
	switch s.Kind {
	case kernels.Entry:
		return Approx{v, 0}
	case kernels.SelfX, kernels.SelfZ, kernels.RootX, kernels.RootZ:
		if s.Kind == kernels.SelfZ || s.Kind == kernels.RootZ {
			x = z
		}
		value := Approx{v, Rounding(s.Of, x, x)}
		if s.Kind == kernels.RootX || s.Kind == kernels.RootZ {
			value = value.InverseRoot(unit)
		}
		return value
	}
	var size float64  // Σ |term|
	var extra float64 // bound of the rounding errors of the terms before they are added
	for p := range x {
		a, b := x[p], z[p]
		a, b = a*s.ScaleAt(p), b*s.ScaleAt(p)
		diff := math.Abs(a - b)
		switch s.Kind {
		case kernels.Dot:
			size += math.Abs(a * b)
		case kernels.SqDist:
			size += diff * diff
			if s.Scale != nil { // the rounding errors of the two scaled coordinates change their difference
				extra += 2 * diff * 2 * (math.Abs(a) + math.Abs(b))
			}
		case kernels.L1:
			size += diff
			if s.Scale != nil {
				extra += 2 * (math.Abs(a) + math.Abs(b))
			}
		case kernels.CosSum, kernels.SinSum:
			// An angle has three roundings, including the rounding of its frequency; sine and
			// cosine have an error of two ulps.
			for _, w := range s.Freqs {
				angle := math.Abs(w) * diff
				if s.Kind == kernels.CosSum {
					size++
					extra += 3*angle + 4
				} else {
					size += angle
					extra += angle * (3*angle + 4)
				}
			}
		case kernels.Sinc:
			size += 2 * math.Pi
			extra += 2 * math.Pi * (3 + 4)
		case kernels.Chi2:
			if a+b > 0 {
				size += diff * diff / (a + b)
			}
			extra += 4 * diff
		}
	}
	// Each term has at most three roundings, and each addition has one. Multiplying the two
	// coordinates by a rounded scale adds four.
	n := float64(len(x)*max(1, len(s.Freqs))) + 3
	if s.Scale != nil {
		n += 4
	}
	return Approx{v, unit * (n*size + extra)}
}

// InverseRoot returns 1/√s, or 0 if s is 0, with a bound on its error. a.Value is 1/√s, and e = a.Error bounds the
// error of s. |1/√(s±e) − 1/√s| is at most ½e (s−e)^−3/2.
func (a Approx) InverseRoot(u float64) Approx {
	v := a.Value
	a.Error = a.Error / 2 * math.Pow(max(1/(v*v)-a.Error, 0), -1.5)
	return a.Rounded(2, u)
}
