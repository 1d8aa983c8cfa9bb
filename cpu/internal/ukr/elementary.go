package ukr

import "math"

// The portable logarithm, power and hyperbolic tangent. They repeat the algorithms of the
// assembly, which are explained in tools/asmgen/log.go, operation by operation, so that
// float64 has the same bits on every tier. float32 is computed in float64.
//
// The explicit conversion of a product to float64 forces rounding: without it a compiler
// may fuse the product with the addition that follows, and the low parts of the pairs would
// be wrong.

var logCoefficients = [...]float64{
	0x1.999999999999ap-2, 0x1.2492492492521p-2, 0x1.c71c71c6eaa80p-3, 0x1.745d177a8fd08p-3,
	0x1.3b1395d4b0394p-3, 0x1.1118c757caf20p-3, 0x1.df7ce6604dddep-4, 0x1.e02d3bbc44457p-4,
}

const (
	ln2Hi, ln2Lo               = 0x1.62e42feep-1, 0x1.a39ef35793c76p-33
	twoThirdsHigh, twoThirdsLo = 0x1.5555555555555p-1, 0x1.5555555555555p-55
)

// polynomial is Σ c_i xⁱ.
func polynomial(x float64, c []float64) float64 {
	q := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		q = math.FMA(q, x, c[i])
	}
	return q
}

// significand splits a normal x > 0 into x = 2ᵏm with approximately √½ ≤ m < √2.
func significand(x float64) (k, m float64) {
	const one, rootPacked = 1023 << 52, 0x3fe6a09e00000000
	t := math.Float64bits(x) + (one - rootPacked)
	return float64(int(t>>52) - 1023), math.Float64frombits(t&(1<<52-1) + rootPacked)
}

// logarithm is ln(x + rest) as the sum of two numbers, and ±end for x = Inf
// and x = 0.
func logarithm(x, rest, end float64) (high, low float64) {
	switch {
	case x == 0:
		return -end, 0
	case math.IsInf(x, 1):
		return end, 0
	case !(x >= 0):
		return math.NaN(), 0
	}
	normal, shift := x, 0.0
	if x < 0x1p-1022 {
		normal, shift = x*0x1p54, 54
	}
	k, m := significand(normal)
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
	tail = math.FMA(float64(polynomial(t, logCoefficients[:])*t), u, tail)
	sLow = math.FMA(sLow, math.FMA(t, t, t), sLow)
	tail = math.FMA(sLow, 2, tail)
	tail = math.FMA(k, ln2Lo, tail)
	tail += max(min(rest/x, 0x1p-50), -0x1p-50)

	first, second := float64(k*ln2Hi), s+s
	sum := first + second
	low = second - (sum - first)
	all := sum + v
	low = low + (v - (all - sum)) + tail
	high = all + low
	return high, low - (high - all)
}

func logGeneric[T Float](s *Span[T]) {
	x := s.x()
	for i, v := range x {
		high, _ := logarithm(float64(v), 0, math.Inf(1))
		x[i] = T(high)
	}
}

func powGeneric[T Float](s *Span[T]) {
	x := s.x()
	a := powerOf(float64(s.A))
	for i, v := range x {
		base, rest := affineSum(float64(v), float64(s.B), float64(s.C))
		high, low := logarithm(base, rest, 0x1p1023)
		y := float64(high * a)
		x[i] = T(exponential(y, math.FMA(low, a, math.FMA(high, a, -y))))
	}
}

// affineSum is a·x + b as the sum of two numbers.
func affineSum(x, a, b float64) (sum, rest float64) {
	p := float64(x * a)
	sum = p + b
	back := sum - p
	return sum, (p - (sum - back)) + (b - back) + math.FMA(x, a, -p)
}

// exponential is exp(y + low).
func exponential(y, low float64) float64 {
	y = max(-746, min(710, y))
	if y != y {
		return y
	}
	low = max(-0x1p-40, min(0x1p-40, low))
	n := math.RoundToEven(y * math.Log2E)
	r, c := expm1(y, low, n)
	h := 1 + r
	q := h + (r - (h - 1) + c)
	half := math.RoundToEven(n * 0.5)
	return q * power2(half) * power2(n-half)
}

// expm1 is exp(y + low − n ln 2) − 1 as r + c, for n = round(y/ln 2).
func expm1(y, low, n float64) (r, c float64) {
	high := math.FMA(-n, ln2Hi, y)
	r = math.FMA(-n, ln2Lo, high)
	low += math.FMA(-n, ln2Lo, high-r)
	sum := r + low
	low -= sum - r
	low = math.FMA(low, sum, low)
	return sum, math.FMA(float64(sum*sum), polynomial(sum, expCoefficients[:]), low)
}

// expCoefficients are the coefficients of q in exp(r) ≈ 1 + r + r²q(r).
var expCoefficients = [...]float64{
	0x1p-1, 0x1.5555555555557p-3, 0x1.5555555555558p-5, 0x1.11111111100dbp-7,
	0x1.6c16c16c151fcp-10, 0x1.a01a01abe8206p-13, 0x1.a01a01acfae99p-16, 0x1.71de023137276p-19,
	0x1.27e4cccda6fcfp-22, 0x1.af4dea2bc3f25p-26, 0x1.1f8b4cd99e7aap-29,
}

func tanhGeneric[T Float](s *Span[T]) {
	x := s.x()
	a, b := float64(s.A), float64(s.B)
	for i, v := range x {
		x[i] = T(tanh(math.FMA(float64(v), a, b)))
	}
}

// tanh returns tanh(y), computed as (1 + p − 2⁻ⁿ)/(1 + p + 2⁻ⁿ) with exp(2|y|) = 2ⁿ(1 + p).
func tanh(y float64) float64 {
	if y != y {
		return y
	}
	size := min(44, 2*math.Abs(y))
	n := math.RoundToEven(size * math.Log2E)
	scale := power2(-n)
	r, c := expm1(size, 0, n)
	h := r + 1
	c = r - (h - 1) + c
	num, numLow := sum3(h, -scale, c)
	den, denLow := sum3(h, scale, c)
	inverse := 1 / den
	q := float64(num * inverse)
	rest := math.FMA(-q, den, num) + numLow
	rest = math.FMA(-q, denLow, rest)
	return math.Copysign(math.FMA(rest, inverse, q), y)
}

// sum3 is a + b + c as the sum of two numbers, for |a| ≥ |b|, and c small compared with a +
// b unless a + b = 0.
func sum3(a, b, c float64) (high, low float64) {
	sum := a + b
	low = b - (sum - a) + c
	high = sum + low
	return high, low - (high - sum)
}
