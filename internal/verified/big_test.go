package verified_test

import (
	"math"
	"math/big"

	"github.com/mercer-go/mercer/kernels"
)

// The functions below compute reference values in 320 bits, with other power series than package verified.

const bits = 320

func number(v float64) *big.Float { return new(big.Float).SetPrec(bits).SetFloat64(v) }

func zero() *big.Float { return new(big.Float).SetPrec(bits) }

func add(a, b *big.Float) *big.Float { return zero().Add(a, b) }
func sub(a, b *big.Float) *big.Float { return zero().Sub(a, b) }
func mul(a, b *big.Float) *big.Float { return zero().Mul(a, b) }
func div(a, b *big.Float) *big.Float { return zero().Quo(a, b) }

// halved returns a·2^−k and the k for which |a·2^−k| < 2⁻¹⁰.
func halved(a *big.Float) (reduced *big.Float, k int) {
	if a.Sign() == 0 {
		return zero(), 0
	}
	k = max(0, a.MantExp(nil)+10)
	return zero().SetMantExp(a, -k), k
}

// bigExp returns exp(a) = (Σ sʲ/j!)^(2^k) with s = a·2^−k, from 30 terms.
func bigExp(a *big.Float) *big.Float {
	s, k := halved(a)
	sum, t := number(1), number(1)
	for j := 1; j < 30; j++ {
		t = div(mul(t, s), number(float64(j)))
		sum = add(sum, t)
	}
	for range k {
		sum = mul(sum, sum)
	}
	return sum
}

// bigLog returns ln(a) by Halley's iteration y + 2(a − e^y)/(a + e^y).
func bigLog(a *big.Float) *big.Float {
	f, _ := a.Float64()
	y := number(math.Log(f))
	for range 3 {
		e := bigExp(y)
		y = add(y, div(mul(number(2), sub(a, e)), add(a, e)))
	}
	return y
}

// bigCosSin returns cos(a) and sin(a) by the power series at a·2^−k and k doublings of the angle.
func bigCosSin(a *big.Float) (c, s *big.Float) {
	v, k := halved(a)
	c, s = number(1), zero()
	t := number(1)
	for j := 1; j < 30; j++ {
		t = div(mul(t, v), number(float64(j)))
		signed := zero().Set(t)
		if j%4 >= 2 {
			signed.Neg(t)
		}
		if j%2 == 0 {
			c = add(c, signed)
		} else {
			s = add(s, signed)
		}
	}
	for range k {
		c, s = sub(mul(c, c), mul(s, s)), mul(number(2), mul(c, s))
	}
	return c, s
}

func bigTanh(a *big.Float) *big.Float {
	e := bigExp(mul(number(2), a))
	return div(sub(e, number(1)), add(e, number(1)))
}

func bigSqrt(a *big.Float) *big.Float {
	if a.Sign() <= 0 {
		return zero()
	}
	return zero().Sqrt(a)
}

// bigKernel returns k(x, z) for the program p of k.
func bigKernel(p *kernels.Program, x, z []float64) *big.Float {
	var stack []*big.Float
	for _, in := range p.Code {
		switch in.Op {
		case kernels.Load:
			stack = append(stack, bigStat(p.Stats[in.Arg], x, z))
			continue
		case kernels.Const:
			stack = append(stack, number(in.A))
			continue
		}
		last := len(stack) - 1
		t := stack[last]
		switch in.Op {
		case kernels.Affine:
			t = add(mul(number(in.A), t), number(in.B))
		case kernels.Add:
			stack, last = stack[:last], last-1
			t = add(stack[last], t)
		case kernels.Mul:
			stack, last = stack[:last], last-1
			t = mul(stack[last], t)
		case kernels.PowInt:
			base := t
			for range in.Arg - 1 {
				t = mul(t, base)
			}
		case kernels.Sqrt:
			t = bigSqrt(t)
		case kernels.Exp:
			t = bigExp(t)
		case kernels.Pow:
			t = bigExp(mul(number(in.A), bigLog(t)))
		case kernels.Tanh:
			t = bigTanh(t)
		case kernels.Cos:
			t, _ = bigCosSin(t)
		case kernels.Sin:
			_, t = bigCosSin(t)
		case kernels.Log:
			t = bigLog(t)
		}
		stack[last] = t
	}
	return stack[0]
}

func bigStat(s kernels.Stat, x, z []float64) *big.Float {
	switch s.Kind {
	case kernels.Entry:
		return number(s.Eval(x, z))
	case kernels.SelfX:
		return bigKernel(kernels.Compile(s.Of), x, x)
	case kernels.SelfZ:
		return bigKernel(kernels.Compile(s.Of), z, z)
	case kernels.RootX, kernels.RootZ:
		if s.Kind == kernels.RootZ {
			x = z
		}
		v := bigKernel(kernels.Compile(s.Of), x, x)
		if v.Sign() == 0 {
			return v
		}
		return div(number(1), bigSqrt(v))
	}
	sum := zero()
	for p := range x {
		a, b, scale := number(x[p]), number(z[p]), number(1)
		if s.Scale != nil {
			scale = number(s.Scale[p])
		}
		d := mul(sub(a, b), scale)
		switch s.Kind {
		case kernels.Dot:
			sum = add(sum, mul(mul(a, scale), mul(b, scale)))
		case kernels.SqDist:
			sum = add(sum, mul(d, d))
		case kernels.L1:
			sum = add(sum, zero().Abs(d))
		case kernels.CosSum:
			for _, w := range s.Freqs {
				c, _ := bigCosSin(mul(number(w), d))
				sum = add(sum, c)
			}
		case kernels.SinSum:
			for _, w := range s.Freqs {
				angle := mul(number(w), d)
				_, v := bigCosSin(angle)
				sum = add(sum, mul(angle, v))
			}
		case kernels.Sinc:
			if d.Sign() == 0 {
				sum = add(sum, number(2*math.Pi))
				continue
			}
			_, v := bigCosSin(mul(number(2*math.Pi), d))
			sum = add(sum, div(v, d))
		case kernels.Chi2:
			if a.Sign() != 0 || b.Sign() != 0 {
				sum = add(sum, div(mul(d, d), add(a, b)))
			}
		}
	}
	return sum
}
