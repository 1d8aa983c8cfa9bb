package main

import (
	"math"

	"github.com/mmcloughlin/avo/reg"
)

// These arrays are coefficients of polynomials in t = s² for the logarithm of m, where s = (m−1)/(m+1), lowest
// power first, from interpolation at the Chebyshev nodes of [0, ((√2−1)/(√2+1))²] with 80 decimal digits.
var (
	// logCoefficients approximates (2 artanh s − 2s − ⅔s³)/s⁵ by a polynomial in t. The error of ln m is 2^−66.4 ln m.
	logCoefficients = []float64{
		0x1.999999999999ap-2, 0x1.2492492492521p-2, 0x1.c71c71c6eaa80p-3, 0x1.745d177a8fd08p-3,
		0x1.3b1395d4b0394p-3, 0x1.1118c757caf20p-3, 0x1.df7ce6604dddep-4, 0x1.e02d3bbc44457p-4,
	}
	// logCoefficientsShort approximates (2 artanh s − 2s)/s³ by a polynomial in t. The error of ln m is 2^−43.1 ln m.
	logCoefficientsShort = []float64{
		0x1.5555555564e9ap-1, 0x1.999998caf9cc3p-2, 0x1.249323e68ef34p-2, 0x1.c67ad927c1ad8p-3, 0x1.8c8c226bbe73ep-3,
	}
)

const (
	// ln 2 = ln2High + ln2Low. ln2High has few bits, so that its product with an exponent k is exact.
	ln2High = 0x1.62e42feep-1
	ln2Low  = 0x1.a39ef35793c76p-33
	// ⅔ = twoThirdsHigh + twoThirdsLow.
	twoThirdsHigh = 0x1.5555555555555p-1
	twoThirdsLow  = 0x1.5555555555555p-55
	// rootHalf has the bits of a float64 near √½, the smallest significand.
	rootHalf = 0x3fe6a09e00000000
)

// significand splits a normal number x > 0: x = 2ᵏm, √½ ≤ m < √2.
func (d doubles) significand(x reg.VecVirtual) (k, m reg.VecVirtual) {
	const one = 1023 << 52
	t := d.addInt(x, d.word(one-rootHalf))
	// Combining the exponent bits with those of 2⁵² converts the exponent to a float64.
	k = d.sub(d.or(d.shiftRight(t, 52), d.num(0x1p52)), d.num(0x1p52+1023))
	m = d.addInt(d.and(t, d.word(1<<52-1)), d.word(rootHalf))
	return k, m
}

// logarithm returns ln(x + xLow) as the sum of two numbers, with a relative error of about 2^−65. If xLow is not
// nil, |xLow| is at most one ulp of x in float64. For 0, Inf, NaN and x < 0 the result is finite but meaningless.
//
// The algorithm is that of Ng's log in fdlibm. Its steps:
//
//   - Let x = 2ᵏm as in significand, f = m − 1 and s = f/(2+f). Then ln x = k ln 2 + 2s + ⅔s³ + s⁵P(s²), where P is
//     the polynomial logCoefficients.
//   - The terms k ln 2, 2s and ⅔s³ are summed in pairs of float64 (Dekker 1971; Muller et al., Handbook of
//     Floating-Point Arithmetic, 2nd edition 2018, sections 4.3 and 11.4).
//   - The rounding error of s, (f − s(2+f))/(2+f), enters the sum multiplied by the derivative of artanh, 1/(1−s²).
func (d doubles) logarithm(x, xLow reg.VecVirtual) (high, low reg.VecVirtual) {
	tiny := d.compare(x, less, d.num(0x1p-1022))
	k, m := d.significand(d.choice(tiny, d.mul(x, d.num(0x1p54)), x))
	k = d.choice(tiny, d.sub(k, d.num(54)), k)

	f, h := d.sub(m, d.num(1)), d.add(m, d.num(1))
	hLow := d.sub(m, d.sub(h, d.num(1)))
	r := d.div(d.value(1), h)
	s := d.mul(f, r)
	sLow := d.mul(d.fnma(s, hLow, d.fnma(s, h, f)), r)

	t := d.mul(s, s)
	tLow := d.fms(s, s, t)
	u := d.mul(t, s)
	uLow := d.fma(tLow, s, d.fms(t, s, u))
	v := d.mul(u, d.num(twoThirdsHigh))
	tail := d.fms(u, d.num(twoThirdsHigh), v)
	tail = d.fma(uLow, d.num(twoThirdsHigh), tail)
	tail = d.fma(u, d.num(twoThirdsLow), tail)
	tail = d.fma(d.mul(d.polynomial(t, logCoefficients), t), u, tail)
	sLow = d.fma(sLow, d.fma(t, t, t), sLow) // approximates sLow/(1−t)
	tail = d.fma(sLow, d.num(2), tail)
	tail = d.fma(k, d.num(ln2Low), tail)
	if xLow != nil {
		// If x is Inf or 0, the quotient is NaN; min and max then return a number.
		tail = d.add(tail, d.max(d.min(d.div(xLow, x), d.num(0x1p-50)), d.num(-0x1p-50)))
	}

	first, second := d.mul(k, d.num(ln2High)), d.add(s, s)
	sum := d.add(first, second)
	low = d.sub(second, d.sub(sum, first))
	total := d.add(sum, v)
	low = d.add(d.add(low, d.sub(v, d.sub(total, sum))), tail)
	high = d.add(total, low)
	return high, d.sub(low, d.sub(high, total))
}

// logarithmShort returns ln(x + xLow) for float32, with a relative error of about 2^−42. x is a normal float64. xLow
// may be nil, and affects the result only if x is near 1.
func (d doubles) logarithmShort(x, xLow reg.VecVirtual) reg.VecVirtual {
	k, m := d.significand(x)
	f := d.sub(m, d.num(1))
	if xLow != nil {
		zero := d.value(0)
		f = d.add(f, d.choice(d.compare(k, equal, zero), xLow, zero))
	}
	s := d.div(f, d.add(m, d.num(1)))
	t := d.mul(s, s)
	p := d.fma(d.mul(s, t), d.polynomial(t, logCoefficientsShort), d.add(s, s))
	return d.fma(k, d.num(math.Ln2), p)
}

// ends replaces the results for some x: −end for 0, end for Inf, and NaN for a negative x or NaN.
func (d doubles) ends(x, log reg.VecVirtual, end float64) reg.VecVirtual {
	log = d.choice(d.compare(x, equal, d.num(0)), d.num(-end), log)
	log = d.choice(d.compare(x, equal, d.num(math.Inf(1))), d.num(end), log)
	return d.choice(d.compare(x, notAtLeast, d.num(0)), d.num(math.NaN()), log)
}

func (e *emitter) log() {
	args := e.args()
	e.forDoubles(args, func(d doubles, x reg.VecVirtual) reg.VecVirtual {
		var l reg.VecVirtual
		if e.double() {
			l, _ = d.logarithm(x, nil)
		} else {
			l = d.logarithmShort(x, nil)
		}
		return d.ends(x, l, math.Inf(1))
	})
	e.VZEROUPPER()
	e.RET()
}

// power emits x ← (B·x + C)^A as exp(A ln(B·x + C)). In float64 the base, its logarithm, and A times the logarithm
// are pairs of numbers, so that no digits are lost for a base near 1 or a large A.
//
// A nonzero |A| is limited to the range from 2^−1000 to 2⁷⁰, outside of which every power of a base other than 1, 0
// and Inf is 1, 0 or Inf. The logarithms of Inf and 0 are taken as ±2¹⁰²³, which gives correct powers of Inf and 0.
func (e *emitter) power() {
	const end = 0x1p1023
	args := e.args()
	d := e.doubles()
	a := d.field(e, args, offSA)
	factor, shift := d.field(e, args, offSA+e.size()), d.field(e, args, offSA+2*e.size())
	// clamp preserves NaN, and NaN times any logarithm is NaN.
	size := d.clamp(d.abs(a), 0x1p-1000, 0x1p70)
	a = d.choice(d.compare(a, equal, d.num(0)), d.num(0), d.or(size, d.sign(a)))
	e.forDoubles(args, func(d doubles, x reg.VecVirtual) reg.VecVirtual {
		base, baseLow := d.affine(x, factor, shift)
		if !e.double() {
			return d.exponentialShort(d.mul(d.ends(base, d.logarithmShort(base, baseLow), end), a))
		}
		high, low := d.logarithm(base, baseLow)
		high = d.ends(base, high, end)
		y := d.mul(high, a)
		return d.exponential(y, d.fma(low, a, d.fms(high, a, y)))
	})
	e.VZEROUPPER()
	e.RET()
}

// affine returns a·x + b as the sum of two numbers, up to 2^−105 of the larger term (Knuth's sum of
// two numbers, and a fused multiplication for the product).
func (d doubles) affine(x, a, b reg.VecVirtual) (sum, sumLow reg.VecVirtual) {
	p := d.mul(x, a)
	pLow := d.fms(x, a, p)
	sum = d.add(p, b)
	bRounded := d.sub(sum, p)
	sumLow = d.add(d.sub(p, d.sub(sum, bRounded)), d.sub(b, bRounded))
	return sum, d.add(sumLow, pLow)
}

// exponential returns exp(y + low). If the result is neither 0 nor Inf, |low| must be at most 2^−40. Unlike the method
// exponential.exp, it corrects the rounding errors of the reduced argument and of 1 + r.
func (d doubles) exponential(y, low reg.VecVirtual) reg.VecVirtual {
	y = d.clamp(y, -746, 710)
	low = d.clamp(low, -0x1p-40, 0x1p-40)
	n := d.rounded(d.mul(y, d.num(math.Log2E)))
	r, c := d.expm1(y, low, n)
	h := d.add(r, d.num(1))
	q := d.add(h, d.add(d.sub(r, d.sub(h, d.num(1))), c))
	if d.masks {
		d.scalef(n, q)
		return q
	}
	n1 := d.rounded(d.mul(n, d.num(0.5)))
	return d.mul(d.mul(q, d.power2(n1)), d.power2(d.sub(n, n1)))
}

// expm1 returns exp(y + low − n ln 2) − 1 as the sum r + c with |c| < r², for n = round(y/ln 2).
func (d doubles) expm1(y, low, n reg.VecVirtual) (r, c reg.VecVirtual) {
	high := d.fnma(n, d.num(ln2High), y) // this difference is exact
	r = d.fnma(n, d.num(ln2Low), high)
	tail := d.fnma(n, d.num(ln2Low), d.sub(high, r))
	if low != nil {
		tail = d.add(low, tail)
	}
	sum := d.add(r, tail)
	tail = d.sub(tail, d.sub(sum, r))
	tail = d.fma(tail, sum, tail) // multiply by the derivative of exp(r) − 1
	return sum, d.fma(d.mul(sum, sum), d.polynomial(sum, expCoefficients[8]), tail)
}

// power2 returns 2ⁿ for |n| < 1022.
func (d doubles) power2(n reg.VecVirtual) reg.VecVirtual {
	return d.shiftLeft(d.add(n, d.num(0x1.8p52+1023)), 52)
}

func (d doubles) exponentialShort(y reg.VecVirtual) reg.VecVirtual {
	y = d.clamp(y, -110, 100)
	n := d.rounded(d.mul(y, d.num(math.Log2E)))
	r, c := d.expm1Short(y, n)
	return d.mul(d.add(d.add(r, c), d.num(1)), d.power2(n))
}

// expm1Short is like expm1, for float32.
func (d doubles) expm1Short(y, n reg.VecVirtual) (r, c reg.VecVirtual) {
	r = d.fnma(n, d.num(math.Ln2), y)
	return r, d.mul(d.mul(r, r), d.polynomial(r, expCoefficients[4]))
}

// tanh emits x ← tanh(A·x + B) as (1 + p − 2⁻ⁿ)/(1 + p + 2⁻ⁿ) with the sign of y = A·x + B, where
// exp(2|y|) = 2ⁿ(1 + p). In float64 numerator and denominator are pairs of numbers.
func (e *emitter) tanh() {
	args := e.args()
	d := e.doubles()
	a, b := d.field(e, args, offSA), d.field(e, args, offSA+e.size())
	e.forDoubles(args, func(d doubles, x reg.VecVirtual) reg.VecVirtual {
		y := d.fma(x, a, b)
		sign := d.sign(y)
		y = d.abs(y)
		y = d.min(d.value(44), d.add(y, y)) // tanh 22 rounds to 1
		n := d.rounded(d.mul(y, d.num(math.Log2E)))
		scale := d.shiftLeft(d.sub(d.value(0x1.8p52+1023), n), 52)
		if !e.double() {
			oneMinus, onePlus := d.sub(d.value(1), scale), d.add(scale, d.num(1))
			r, c := d.expm1Short(y, n)
			p := d.add(r, c)
			return d.or(d.div(d.add(oneMinus, p), d.add(onePlus, p)), sign)
		}
		r, c := d.expm1(y, nil, n)
		h := d.add(r, d.num(1))
		c = d.add(d.sub(r, d.sub(h, d.num(1))), c)
		num, numLow := d.sum3(h, d.xor(scale, d.word(1<<63)), c)
		den, denLow := d.sum3(h, scale, c)
		inverse := d.div(d.value(1), den)
		q := d.mul(num, inverse)
		remainder := d.add(d.fnma(q, den, num), numLow)
		remainder = d.fnma(q, denLow, remainder)
		return d.or(d.fma(remainder, inverse, q), sign)
	})
	e.VZEROUPPER()
	e.RET()
}

// sum3 returns a + b + c as the sum of two numbers. |a| must be ≥ |b|, and c small compared with a + b, unless a = −b.
func (d doubles) sum3(a, b, c reg.VecVirtual) (high, low reg.VecVirtual) {
	sum := d.add(a, b)
	low = d.add(d.sub(b, d.sub(sum, a)), c)
	high = d.add(sum, low)
	return high, d.sub(low, d.sub(high, sum))
}
