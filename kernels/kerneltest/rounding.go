package kerneltest

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/kernels"
)

// Rounding bounds the difference between kernels.Eval(k, x, z) in arithmetic
// of unit roundoff u (2⁻⁵³ in float64) and the exact value, to first order in
// u. It follows the program with the error of each value beside the value
// (running error analysis: Higham 2002, section 3.3): a sum of n terms of size
// s is off by nu·s, and each operation multiplies what it is given by its
// derivative and adds its own rounding, two units in the last place for exp and
// the other functions.
//
// Statistics taken otherwise, such as ‖x−z‖² from xᵀz, have another error.
func Rounding(k kernels.Kernel, x, z []float64, u float64) float64 {
	type value struct{ v, e float64 } // e is the error in units of u
	var stack []value
	p := kernels.Compile(k)
	for _, in := range p.Code {
		top := len(stack) - 1
		switch in.Op {
		case kernels.Load:
			v, e := statRounding(p.Stats[in.Arg], x, z)
			stack = append(stack, value{v, e})
		case kernels.Const:
			stack = append(stack, value{in.A, math.Abs(in.A)})
		case kernels.Affine:
			t := stack[top]
			r := in.A*t.v + in.B
			// A and B were rounded when they were made: one unit each.
			stack[top] = value{r, math.Abs(in.A)*t.e + 2*math.Abs(in.A*t.v) + math.Abs(in.B) + math.Abs(r)}
		case kernels.PowInt:
			t, n := stack[top], float64(in.Arg)
			r := math.Pow(t.v, n)
			stack[top] = value{r, n*math.Abs(math.Pow(t.v, n-1))*t.e + n*math.Abs(r)}
		case kernels.Sqrt:
			t := stack[top]
			r := math.Sqrt(max(t.v, 0))
			e := math.Abs(r)
			if r > 0 {
				e += t.e / (2 * r)
			}
			stack[top] = value{r, e}
		case kernels.Exp:
			t := stack[top]
			r := math.Exp(t.v)
			stack[top] = value{r, r*t.e + 4*r}
		case kernels.Pow:
			// A was rounded, its product with the logarithm is, and the
			// logarithm itself by two units: all in the exponent.
			t := stack[top]
			r := math.Exp(in.A * math.Log(t.v))
			stack[top] = value{r, r*math.Abs(in.A)/t.v*t.e + 4*r*math.Abs(in.A*math.Log(t.v)) + 4*r}
		case kernels.Tanh:
			t := stack[top]
			r := math.Tanh(t.v)
			stack[top] = value{r, (1-r*r)*t.e + 4*math.Abs(r)}
		case kernels.Cos, kernels.Sin:
			t := stack[top]
			r, slope := math.Sincos(t.v)
			if in.Op == kernels.Cos {
				r, slope = slope, r
			}
			stack[top] = value{r, math.Abs(slope)*t.e + 4*math.Abs(r)}
		case kernels.Log:
			t := stack[top]
			r := math.Log(t.v)
			stack[top] = value{r, t.e/math.Abs(t.v) + 4*math.Abs(r)}
		case kernels.Add:
			a, b := stack[top-1], stack[top]
			stack = stack[:top]
			stack[top-1] = value{a.v + b.v, a.e + b.e + math.Abs(a.v+b.v)}
		case kernels.Mul:
			a, b := stack[top-1], stack[top]
			stack = stack[:top]
			stack[top-1] = value{a.v * b.v, math.Abs(a.v)*b.e + math.Abs(b.v)*a.e + math.Abs(a.v*b.v)}
		default:
			panic(fmt.Sprintf("kerneltest: Rounding: unknown operation %d", in.Op))
		}
	}
	return u * stack[0].e
}

// statRounding returns a statistic and its error in units of u.
func statRounding(s kernels.Stat, x, z []float64) (v, e float64) {
	v = s.Eval(x, z)
	switch s.Kind {
	case kernels.Entry:
		return v, 0
	case kernels.SelfX, kernels.SelfZ, kernels.RootX, kernels.RootZ:
		if s.Kind == kernels.SelfZ || s.Kind == kernels.RootZ {
			x = z
		}
		e = Rounding(s.Of, x, x, 1)
		if s.Kind == kernels.RootX || s.Kind == kernels.RootZ {
			// −½ k^−3/2 times the error of k, a root and a quotient.
			e = v*v*v*e/2 + 2*v
		}
		return v, e
	}
	var size float64  // Σ |term|
	var extra float64 // what the roundings inside of the terms move them by
	for p := range x {
		a, b := x[p], z[p]
		if s.Scale != nil {
			a, b = a*s.Scale[p], b*s.Scale[p]
		}
		diff := math.Abs(a - b)
		switch s.Kind {
		case kernels.Dot:
			size += math.Abs(a * b)
		case kernels.SqDist:
			size += diff * diff
			if s.Scale != nil { // the rounded products move the difference
				extra += 2 * diff * 2 * (math.Abs(a) + math.Abs(b))
			}
		case kernels.L1:
			size += diff
			if s.Scale != nil {
				extra += 2 * (math.Abs(a) + math.Abs(b))
			}
		case kernels.CosSum, kernels.SinSum:
			// An angle has three roundings, its frequency's among them, and
			// the sine and the cosine have two units in the last place.
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
	// At most three roundings in a term and one for each addition; four more
	// for the two products with a scale, which was rounded itself.
	n := float64(len(x)*max(1, len(s.Freqs))) + 3
	if s.Scale != nil {
		n += 4
	}
	return v, n*size + extra
}
