// Package elementary computes the exponential, the logarithm, powers, the hyperbolic tangent and random normal
// numbers with the same bits on every processor. On some processors the functions of package math are written in
// assembly and round differently.
//
// The functions execute the same operations as the micro-kernels: see tools/asmgen/exp.go and log.go. The conversion
// of a product to float64 forbids the compiler to fuse it with an addition, which would change the rounding errors.
package elementary

import "math"

// Exp returns eˣ within 1 ulp. Results below the normal range have fewer correct digits.
func Exp(x float64) float64 {
	switch {
	case x > 710:
		return math.Inf(1)
	case x < -746:
		return 0
	case x != x:
		return x
	}
	n := math.RoundToEven(x * math.Log2E)
	high := math.FMA(-n, ln2Hi, x)
	r := math.FMA(-n, ln2Lo, high)
	tail := math.FMA(-n, ln2Lo, high-r)
	q := Polynomial(r, ExpCoefficients[:])
	y := 1 + (r + math.FMA(r*r, q, tail))
	// The factor 2ⁿ is applied in two steps, because it may be out of range although the result is in range.
	half := math.RoundToEven(n / 2)
	return y * Power2(half) * Power2(n-half)
}

// Log returns ln x within 0.51 ulp: −Inf for 0, NaN for x < 0.
func Log(x float64) float64 {
	high, _ := Logarithm(x, 0, math.Inf(1))
	return high
}

// Pow returns xᵃ within 0.9 ulp, and exactly if xᵃ is a float64. The result is NaN if x is negative
// and a is not an integer, and 1 if a = 0.
func Pow(x, a float64) float64 {
	if x < 0 && a == math.Trunc(a) {
		size := Pow(-x, a)
		if math.Mod(a, 2) != 0 {
			return -size
		}
		return size
	}
	a = Limited(a)
	if a == 0 {
		return 1
	}
	high, low := Logarithm(x, 0, 0x1p1023)
	y := float64(high * a)
	return Exponential(y, math.FMA(low, a, math.FMA(high, a, -y)))
}

// Power2 returns 2ⁿ for |n| < 1022.
func Power2(n float64) float64 { return math.Float64frombits(uint64(1023+int(n)) << 52) }

const (
	ln2Hi, ln2Lo               = 0x1.62e42feep-1, 0x1.a39ef35793c76p-33
	twoThirdsHigh, twoThirdsLo = 0x1.5555555555555p-1, 0x1.5555555555555p-55
)

var logCoefficients = [...]float64{
	0x1.999999999999ap-2, 0x1.2492492492521p-2, 0x1.c71c71c6eaa80p-3, 0x1.745d177a8fd08p-3,
	0x1.3b1395d4b0394p-3, 0x1.1118c757caf20p-3, 0x1.df7ce6604dddep-4, 0x1.e02d3bbc44457p-4,
}

// ExpCoefficients are the coefficients of q in exp(r) ≈ 1 + r + r²q(r).
var ExpCoefficients = [...]float64{
	0x1p-1, 0x1.5555555555557p-3, 0x1.5555555555558p-5, 0x1.11111111100dbp-7,
	0x1.6c16c16c151fcp-10, 0x1.a01a01abe8206p-13, 0x1.a01a01acfae99p-16, 0x1.71de023137276p-19,
	0x1.27e4cccda6fcfp-22, 0x1.af4dea2bc3f25p-26, 0x1.1f8b4cd99e7aap-29,
}

// Polynomial returns Σ c_i xⁱ.
func Polynomial(x float64, c []float64) float64 {
	q := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		q = math.FMA(q, x, c[i])
	}
	return q
}

// Significand splits a normal x > 0 into x = 2ᵏm with approximately √½ ≤ m < √2.
func Significand(x float64) (k, m float64) {
	const packedOne, rootPacked = 1023 << 52, 0x3fe6a09e00000000
	t := math.Float64bits(x) + (packedOne - rootPacked)
	return float64(int(t>>52) - 1023), math.Float64frombits(t&(1<<52-1) + rootPacked)
}

// Logarithm returns ln(x + xLow) as the sum of two numbers. The argument infinity is the result for x = Inf, and
// −infinity is the result for x = 0.
func Logarithm(x, xLow, infinity float64) (high, low float64) {
	switch {
	case x == 0:
		return -infinity, 0
	case math.IsInf(x, 1):
		return infinity, 0
	case !(x >= 0):
		return math.NaN(), 0
	}
	normal, shift := x, 0.0
	if x < 0x1p-1022 {
		normal, shift = x*0x1p54, 54
	}
	k, m := Significand(normal)
	k -= shift

	f, h := m-1, m+1
	hLow := m - (h - 1)
	r := 1 / h
	s := float64(f * r)
	sLow := float64(math.FMA(-s, hLow, math.FMA(-s, h, f)) * r)

	t := float64(s * s)
	tLow := math.FMA(s, s, -t)
	u := float64(t * s)
	uLow := math.FMA(tLow, s, math.FMA(t, s, -u))
	v := float64(u * twoThirdsHigh)
	tail := math.FMA(u, twoThirdsHigh, -v)
	tail = math.FMA(uLow, twoThirdsHigh, tail)
	tail = math.FMA(u, twoThirdsLo, tail)
	tail = math.FMA(float64(Polynomial(t, logCoefficients[:])*t), u, tail)
	sLow = math.FMA(sLow, math.FMA(t, t, t), sLow)
	tail = math.FMA(sLow, 2, tail)
	tail = math.FMA(k, ln2Lo, tail)
	tail += max(min(xLow/x, 0x1p-50), -0x1p-50)

	first, second := float64(k*ln2Hi), s+s
	sum := first + second
	low = second - (sum - first)
	leading := sum + v
	low = low + (v - (leading - sum)) + tail
	high = leading + low
	return high, low - (high - leading)
}

// AffineSum returns a·x + b as the sum of two numbers.
func AffineSum(x, a, b float64) (sum, low float64) {
	p := float64(x * a)
	sum = p + b
	bRounded := sum - p
	return sum, (p - (sum - bRounded)) + (b - bRounded) + math.FMA(x, a, -p)
}

// Exponential returns exp(y + low).
func Exponential(y, low float64) float64 {
	y = max(-746, min(710, y))
	if y != y {
		return y
	}
	low = max(-0x1p-40, min(0x1p-40, low))
	n := math.RoundToEven(y * math.Log2E)
	r, c := Expm1(y, low, n)
	h := 1 + r
	q := h + (r - (h - 1) + c)
	half := math.RoundToEven(n * 0.5)
	return q * Power2(half) * Power2(n-half)
}

// Expm1 returns exp(y + low − n ln 2) − 1 as the sum r + c. n must be round(y/ln 2).
func Expm1(y, low, n float64) (r, c float64) {
	high := math.FMA(-n, ln2Hi, y)
	r = math.FMA(-n, ln2Lo, high)
	low += math.FMA(-n, ln2Lo, high-r)
	sum := r + low
	low -= sum - r
	low = math.FMA(low, sum, low)
	return sum, math.FMA(float64(sum*sum), Polynomial(sum, ExpCoefficients[:]), low)
}

// Tanh returns tanh(y), computed from exp(2|y|) = 2ⁿ(1 + p).
func Tanh(y float64) float64 {
	if y != y {
		return y
	}
	size := min(44, 2*math.Abs(y))
	n := math.RoundToEven(size * math.Log2E)
	scale := Power2(-n)
	r, c := Expm1(size, 0, n)
	h := r + 1
	c = r - (h - 1) + c
	num, numLow := sum3(h, -scale, c)
	den, denLow := sum3(h, scale, c)
	inverse := 1 / den
	q := float64(num * inverse)
	remainder := math.FMA(-q, den, num) + numLow
	remainder = math.FMA(-q, denLow, remainder)
	return math.Copysign(math.FMA(remainder, inverse, q), y)
}

// sum3 returns a + b + c as the sum of two numbers, for |a| ≥ |b|. c must be small compared with a nonzero a + b.
func sum3(a, b, c float64) (high, low float64) {
	sum := a + b
	low = b - (sum - a) + c
	high = sum + low
	return high, low - (high - sum)
}

// Limited clamps an exponent of Pow to a range outside which powers overflow, underflow or equal 1. It does not
// change 0 and NaN.
func Limited(a float64) float64 {
	if a == 0 {
		return a
	}
	return math.Copysign(max(0x1p-1000, min(0x1p70, math.Abs(a))), a)
}
