package verified

import (
	"math"
	"math/big"
	"sync"
)

// The digits of each constant are truncated, not rounded.
const (
	ln2Digits = "0.693147180559945309417232121458176568075500134360255254120680009493393621969694715605863326996418687542"
	piDigits  = "3.141592653589793238462643383279502884197169399375105820974944592307816406286208998628034825342117067982"
)

// precision is the number of bits of the arithmetic that computes the tables. remainder is an upper bound on the
// relative error of a constant that is stored as a sum of three float64 numbers.
const (
	precision = 400
	remainder = 0x1p-155
)

// steps is the number of values of 2^(j/steps), 0 ≤ j < steps, in the table of Exp.
const steps = 64

const terms = 14

type tables struct {
	powers    [steps]Ball // powers[j] = 2^(j/steps)
	logarithm [3]float64  // ln 2/steps, as a sum of three numbers
	quarter   [3]float64  // π/2, as a sum of three numbers
	sixth     Ball
	cosine    [terms]Ball // coefficient (−1)^j/(2j)! of the series of cos(r)
	sine      [terms]Ball // coefficient (−1)^j/(2j+1)! of the series of sin(r)
	omitted   float64     // upper bound on the first omitted term of the series of cos(r) and sin(r)/r
}

var constants = sync.OnceValue(func() *tables {
	t := &tables{}
	parse := func(digits string) *big.Float {
		v, _, err := big.ParseFloat(digits, 10, precision, big.ToNearestEven)
		if err != nil {
			panic(err)
		}
		return v
	}
	root := big.NewFloat(2).SetPrec(precision)
	for n := 1; n < steps; n *= 2 {
		root.Sqrt(root)
	}
	power := big.NewFloat(1).SetPrec(precision)
	for j := range t.powers {
		t.powers[j] = split(power)
		power.Mul(power, root)
	}
	t.logarithm = thirds(new(big.Float).Quo(parse(ln2Digits), big.NewFloat(steps)))
	t.quarter = thirds(new(big.Float).Quo(parse(piDigits), big.NewFloat(2)))
	one := big.NewFloat(1).SetPrec(precision)
	t.sixth = split(new(big.Float).Quo(one, big.NewFloat(6)))
	factorial := big.NewFloat(1).SetPrec(precision)
	sign := big.NewFloat(1)
	for j := range terms {
		t.cosine[j] = split(new(big.Float).Quo(sign, factorial).SetPrec(precision))
		factorial.Mul(factorial, big.NewFloat(float64(2*j+1)))
		t.sine[j] = split(new(big.Float).Quo(sign, factorial).SetPrec(precision))
		factorial.Mul(factorial, big.NewFloat(float64(2*j+2)))
		sign.Neg(sign)
	}
	f, _ := factorial.Float64() // f = (2·terms)!
	t.omitted = up(math.Pow(0.8, 2*terms) / f)
	return t
})

// split returns a ball whose center is v rounded to a sum of two float64 numbers.
func split(v *big.Float) Ball {
	hi, _ := v.Float64()
	lo, _ := new(big.Float).Sub(v, new(big.Float).SetPrec(precision).SetFloat64(hi)).Float64()
	return Ball{hi, lo, up(math.Abs(hi) * 0x1p-105)}
}

func thirds(v *big.Float) (parts [3]float64) {
	remaining := new(big.Float).Copy(v)
	for i := range parts {
		parts[i], _ = remaining.Float64()
		remaining.Sub(remaining, new(big.Float).SetPrec(precision).SetFloat64(parts[i]))
	}
	return parts
}

// reduce returns a − kc for an integer k with |k| ≤ 2³¹ and a constant c, a sum of three float64 numbers.
func reduce(a Ball, k float64, c *[3]float64) Ball {
	for _, part := range c {
		p, e := twoProduct(k, part)
		a = Sub(a, Ball{Hi: p, Lo: e})
	}
	return a.plus(math.Abs(k) * c[0] * remainder)
}

// Exp returns exp(a) = 2^e·2^(j/64)·exp(r) for a = k·ln 2/64 + r and k = 64e + j, so that |r| < 0.0055. The power
// series of exp(r) − 1 is truncated after r⁹/9!. Its terms from r⁴/24 on are evaluated in float64.
func Exp(a Ball) Ball {
	if !(math.Abs(a.Hi) < 680) {
		if a.Hi < 0 && a.Hi+a.Radius < -680 {
			return Ball{Radius: 0x1p-980} // 0 is within 2⁻⁹⁸⁰ of exp(a), because exp(−680) < 2⁻⁹⁸¹
		}
		return unbounded
	}
	c := constants()
	k := math.RoundToEven(a.Hi * (steps / math.Ln2))
	r := reduce(a.center(), k, &c.logarithm)
	v := r.Hi
	v2 := v * v
	tail := v2 * v2 / 24 * (1 + v/5*(1+v/6*(1+v/7*(1+v/8*(1+v/9)))))
	square := Mul(r, r)
	cube := Mul(Mul(square, r), c.sixth)
	halfSquare := Ball{square.Hi / 2, square.Lo / 2, square.Radius}
	// Rounding r to v changes the tail by a relative error of at most 5·2⁻⁵³, and evaluating it adds at most 27·2⁻⁵³.
	// The omitted terms, from r¹⁰/10! on, sum to less than 2⁻⁹⁵.
	series := Add(Add(r, halfSquare), Add(cube, Ball{Hi: tail, Radius: 32*0x1p-53*math.Abs(tail) + 0x1p-95}))
	n := int(k)
	j := ((n % steps) + steps) % steps
	p := c.powers[j]
	e := Add(p, Mul(p, series)).scale((n - j) / steps)
	if a.Radius > 0 { // exp(ρ) − 1 ≤ ρ + ρ² for ρ ≤ 1
		if a.Radius > 1 {
			return unbounded
		}
		e.Radius = up(e.Radius + e.Magnitude()*(a.Radius+a.Radius*a.Radius))
	}
	return e
}

// Log returns ln(a) = y + ln(1+z) for a > 0, where y is math.Log(a.Hi) and z = a·exp(−y) − 1. For |z| ≤ 1/2,
// |ln(1+z) − (z − z²/2)| ≤ |z|³. If a contains a number ≤ 0, the result is the set of all numbers.
func Log(a Ball) Ball {
	if !(a.Hi > 2*(math.Abs(a.Lo)+a.Radius)) {
		return unbounded
	}
	y := math.Log(a.Hi)
	z := Sub(Mul(a.center(), Exp(Exact(-y))), Exact(1))
	m := z.Magnitude()
	if !(m <= 0x1p-20) {
		return unbounded
	}
	square := Mul(z, z)
	l := Add(Exact(y), Sub(z, Ball{square.Hi / 2, square.Lo / 2, square.Radius})).plus(m * m * m)
	if a.Radius > 0 { // −ln(1 − ρ) ≤ ρ/(1 − ρ) ≤ 2ρ for ρ = Radius/a ≤ 1/2
		minArg := (a.Hi - math.Abs(a.Lo)) * (1 - 0x1p-50)
		l = l.plus(2 * a.Radius / minArg)
	}
	return l
}

// Pow returns max(a, 0)^exponent.
func Pow(a Ball, exponent float64) Ball {
	if exponent == 0 {
		return Exact(1)
	}
	if l := Log(a); l.finite() {
		return Exp(Mul(Exact(exponent), l))
	}
	if !(exponent > 0) {
		return unbounded
	}
	maxArg := up(math.Max(a.Hi, 0) + math.Abs(a.Lo) + a.Radius)
	if maxArg == 0 {
		return Ball{}
	}
	_, e := math.Frexp(maxArg) // all numbers of a are less than 2^e
	return Exp(Mul(Exact(exponent*float64(e)), Exact(math.Ln2))).fromZero()
}

// fromZero returns a ball that contains the numbers from 0 to twice the magnitude of b.
func (b Ball) fromZero() Ball { return Ball{Radius: up(2 * b.Magnitude())} }

// PowInt returns a^n for n ≥ 1 by repeated squaring.
func PowInt(a Ball, n int) Ball {
	r := Exact(1)
	for ; n > 1; n >>= 1 {
		if n&1 == 1 {
			r = Mul(r, a)
		}
		a = Mul(a, a)
	}
	return Mul(r, a)
}

// Tanh returns tanh(a) = ±(1 − t)/(1 + t) with t = exp(−2|a|).
func Tanh(a Ball) Ball {
	if a.Hi < 0 {
		return Tanh(a.neg()).neg()
	}
	if a.Hi-a.Radius > 40 { // 1 − tanh(40) < 2⁻¹¹⁴
		return Ball{Hi: 1, Radius: 0x1p-113}
	}
	t := Exp(Mul(Exact(-2), a))
	return Div(Sub(Exact(1), t), Add(Exact(1), t))
}

// Cos returns cos(a).
func Cos(a Ball) Ball { return circular(a, 0) }

// Sin returns sin(a).
func Sin(a Ball) Ball { return circular(a, 3) }

// circular returns cos(a + shift·π/2) as ±cos(r) or ±sin(r), where a = k·π/2 + r and |r| < 0.8. The terms of the
// power series alternate in sign, so that the truncation error is less than the first omitted term.
func circular(a Ball, shift int) Ball {
	if !(math.Abs(a.Hi) <= 0x1p30) {
		return unbounded
	}
	c := constants()
	k := math.RoundToEven(a.Hi * (2 / math.Pi))
	r := reduce(a.center(), k, &c.quarter)
	square := Mul(r, r)
	quadrant := (int(int64(k)) + shift) & 3
	series, omitted := &c.cosine, c.omitted
	if quadrant&1 == 1 {
		series = &c.sine
	}
	v := series[terms-1]
	for j := terms - 2; j >= 0; j-- {
		v = Add(Mul(v, square), series[j])
	}
	if quadrant&1 == 1 {
		v, omitted = Mul(v, r), omitted*r.Magnitude()
	}
	if quadrant == 1 || quadrant == 2 { // cos(r + π/2) = −sin(r), cos(r + π) = −cos(r)
		v = v.neg()
	}
	return v.plus(omitted + a.Radius)
}
