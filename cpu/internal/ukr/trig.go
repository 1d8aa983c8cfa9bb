package ukr

import (
	"math"
	"math/bits"

	"github.com/mercer-go/mercer/internal/elementary"
)

// This file has the portable sine and cosine, with the algorithm of the assembly (tools/asmgen/trig.go) and, for
// arguments beyond its range, the algorithm of Payne and Hanek.

var (
	sinCoefficients = [...]float64{
		-0x1.5555555555555p-3, 0x1.1111111111110p-7, -0x1.a01a01a01992ap-13, 0x1.71de3a545ef0dp-19,
		-0x1.ae64540feaf6dp-26, 0x1.61217cc913f00p-33, -0x1.ab167f4fb1867p-41,
	}
	cosCoefficients = [...]float64{
		0x1.5555555555555p-5, -0x1.6c16c16c16962p-10, 0x1.a01a019f4d709p-16, -0x1.27e4fa163c142p-22,
		0x1.1eeb673a2e0cap-29, -0x1.907c6d159beaap-37,
	}
)

// ½π ≈ halfPi1 + halfPi2 + halfPi3.
const halfPi1, halfPi2, halfPi3 = 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110

// reduceLimit is the largest argument for which reduce suffices; larger arguments need reduceLarge.
const reduceLimit = 0x1p30

func sinGeneric[T Float](s *Span[T]) { trigonometric(s, 0) }
func cosGeneric[T Float](s *Span[T]) { trigonometric(s, 1) }

// trigonometric computes x ← sin(A·x + phase·½π): the sine for phase 0, the cosine for phase 1.
func trigonometric[T Float](s *Span[T], phase int) {
	s.Flag = 0
	x := s.x()
	for i, v := range x {
		x[i] = T(byQuadrant(float64(s.A)*float64(v), phase))
	}
}

// byQuadrant returns sin(y + phase·½π) for phase 0 or 1.
func byQuadrant(y float64, phase int) float64 {
	size, sign := math.Abs(y), math.Signbit(y) && phase == 0
	var quadrant int
	var r, low float64
	switch {
	case size <= reduceLimit:
		quadrant, r, low = reduce(size)
	case size <= math.MaxFloat64:
		quadrant, r, low = reduceLarge(size)
	default:
		return math.NaN()
	}
	quadrant += phase
	z := float64(r * r)
	var result float64
	if quadrant&1 == 0 {
		result = sine(r, low, z)
	} else {
		result = cosine(r, low, z)
	}
	if (quadrant&2 != 0) != sign {
		result = -result
	}
	return result
}

// reduce returns y − n·½π as the sum r + low, and n modulo 4, for the integer n nearest to y/(½π)
// and 0 ≤ y ≤ reduceLimit.
func reduce(y float64) (quadrant int, r, low float64) {
	// Adding magic rounds to an integer, as in the assembly.
	const magic = 0x1.8p52
	n := math.FMA(y, 2/math.Pi, magic) - magic
	first := math.FMA(-n, halfPi1, y)
	p := float64(n * halfPi2)
	pLow := math.FMA(n, halfPi2, -p)
	r = first - p
	delta := r - first
	low = (first - (r - delta)) - (p + delta)
	return int(n), r, math.FMA(-n, halfPi3, low-pLow)
}

func sine(r, low, z float64) float64 {
	half := float64(z * 0.5)
	tail := math.FMA(-half, low, low)
	return r + math.FMA(float64(r*z), elementary.Polynomial(z, sinCoefficients[:]), tail)
}

func cosine(r, low, z float64) float64 {
	half := float64(z * 0.5)
	w := 1 - half
	tail := 1 - w - half
	tail = math.FMA(-math.FMA(r, r, -z), 0.5, tail)
	tail = math.FMA(-r, low, tail)
	return w + math.FMA(float64(z*z), elementary.Polynomial(z, cosCoefficients[:]), tail)
}

// twoOverPi has the first 1280 binary digits of 2/π after the binary point, preceded by 64 zeros.
var twoOverPi = [...]uint64{
	0,
	0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
	0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
	0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
	0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
	0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
}

// reduceLarge is reduce for y > 2²⁹, by the algorithm of Payne and Hanek (1983).
//
// Write y = M·2ᵉ with an integer M. Digits of 2/π whose weight in the product M·2ᵉ·2/π is 4 or more add multiples
// of 2π to y, and are skipped. The next 256 digits give the product modulo 4 with an error below 2^−201. The
// distance of the product from the nearest integer is at least 2^−61 for every float64.
func reduceLarge(y float64) (quadrant int, r, low float64) {
	b := math.Float64bits(y)
	m := b&(1<<52-1) | 1<<52
	e := int(b>>52) - 1075
	// Digit i of 2/π has the weight 2^(e−i) in the product, and is bit 63+i of twoOverPi. The first
	// digit that is used has the weight 2¹, so that i = e − 1.
	first := 62 + e
	word, shift := first/64, uint(first%64)
	var p [4]uint64 // the product M·2ᵉ·2/π modulo 4, in units of 2^−254
	var carry uint64
	for i := 3; i >= 0; i-- {
		digits := twoOverPi[word+i]<<shift | twoOverPi[word+i+1]>>(64-shift)
		hi, lo := bits.Mul64(digits, m)
		var c uint64
		p[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	quadrant = int(p[0] >> 62)
	p[0] <<= 2
	p[0], p[1], p[2], p[3] = p[0]|p[1]>>62, p[1]<<2|p[2]>>62, p[2]<<2|p[3]>>62, p[3]<<2
	negative := p[0]>>63 != 0 // the fraction is at least ½, so the next integer is nearer
	if negative {
		quadrant++
		c := uint64(1)
		for i := 3; i >= 0; i-- {
			p[i], c = bits.Add64(^p[i], 0, c)
		}
	}
	// Shift out the leading zeros. The first three words then hold at least 107 binary digits of the fraction.
	scale := -64
	if p[0] == 0 {
		p[0], p[1], p[2], p[3] = p[1], p[2], p[3], 0
		scale -= 64
	}
	if z := uint(bits.LeadingZeros64(p[0])); z > 0 {
		p[0], p[1] = p[0]<<z|p[1]>>(64-z), p[1]<<z|p[2]>>(64-z)
		scale -= int(z)
	}
	high := math.Ldexp(float64(p[0]>>11), scale+11)
	tail := math.Ldexp(float64((p[0]&(1<<11-1))<<42|p[1]>>22), scale-42)
	r = float64(high * halfPi1)
	low = math.FMA(high, halfPi1, -r) + math.FMA(high, halfPi2, float64(tail*halfPi1))
	if negative {
		r, low = -r, -low
	}
	return quadrant, r, low
}
