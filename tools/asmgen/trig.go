package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// These arrays are coefficients of polynomials in z = r² for sine and cosine, lowest power first, from
// interpolation at the Chebyshev nodes of [0, 0.786²] with 80 decimal digits. 0.786 exceeds ¼π slightly, because
// the multiple of ½π is rounded.
var (
	// sinCoefficients approximates (sin r − r)/r³; the sine has a relative error of 2^−57.1.
	sinCoefficients = []float64{
		-0x1.5555555555555p-3, 0x1.1111111111110p-7, -0x1.a01a01a01992ap-13, 0x1.71de3a545ef0dp-19,
		-0x1.ae64540feaf6dp-26, 0x1.61217cc913f00p-33, -0x1.ab167f4fb1867p-41,
	}
	// cosCoefficients approximates (cos r − 1 + ½r²)/r⁴; the cosine has a relative error of 2^−59.4.
	cosCoefficients = []float64{
		0x1.5555555555555p-5, -0x1.6c16c16c16962p-10, 0x1.a01a019f4d709p-16, -0x1.27e4fa163c142p-22,
		0x1.1eeb673a2e0cap-29, -0x1.907c6d159beaap-37,
	}
	// For float32, the same functions are approximated with relative errors of 2^−35.6 and 2^−39.5.
	sinCoefficientsShort = []float64{-0x1.555555545c866p-3, 0x1.11110deb7eef4p-7, -0x1.a013a29ae5232p-13, 0x1.6dbc6beea63eep-19}
	cosCoefficientsShort = []float64{0x1.55555555024dap-5, -0x1.6c16bf52716b0p-10, 0x1.a015c12bb84c8p-16, -0x1.25233ada55c80p-22}
)

// ½π ≈ halfPi1 + halfPi2 + halfPi3, three parts of 53 bits.
const (
	halfPi1 = 0x1.921fb54442d18p+0
	halfPi2 = 0x1.1a62633145c07p-54
	halfPi3 = -0x1.f1976b7ed8fbcp-110
)

// reduceLimit is the largest |y| that the method reduced accepts.
const reduceLimit = 0x1p30

// reduced returns y − n·½π as the sum r + low, for |y| ≤ reduceLimit. n is an integer nearest to y/½π, and quadrant has
// n in its low bits. If double is false, low is nil.
//
// This is Cody and Waite's reduction with ½π in three parts (Muller et al. 2018, section 10.2). y − n·halfPi1 is exact.
// Near a multiple of ½π, subtracting n·halfPi2 may cancel most digits; the product and the difference are therefore
// each computed as the sum of two numbers. The truncation of ½π gives an error of n·2^−163 ≤ 2^−132, and the distance
// of a float64 below 2³¹ from the multiples of ½π is at least about 2^−62.
func (d doubles) reduced(y reg.VecVirtual, double bool) (quadrant, r, low reg.VecVirtual) {
	const magic = 0x1.8p52
	quadrant = d.fma(y, d.num(2/math.Pi), d.value(magic))
	n := d.sub(quadrant, d.num(magic))
	first := d.fnma(n, d.num(halfPi1), y)
	if !double {
		return quadrant, d.fnma(n, d.num(halfPi3), d.fnma(n, d.num(halfPi2), first)), nil
	}
	p := d.mul(n, d.num(halfPi2))
	pLow := d.fms(n, d.num(halfPi2), p)
	r = d.sub(first, p)
	pRounded := d.sub(r, first)
	low = d.sub(d.sub(first, d.sub(r, pRounded)), d.add(p, pRounded))
	return quadrant, r, d.fnma(n, d.num(halfPi3), d.sub(low, pLow))
}

// sine and cosine return sin and cos of r + low for |r| ≤ 0.786, by the algorithms of k_sin and
// k_cos in Ng's fdlibm. The cosine compensates the rounding of r².
func (d doubles) sine(r, low, z reg.VecVirtual) reg.VecVirtual {
	half := d.mul(z, d.num(0.5))
	tail := d.fnma(half, low, low)
	return d.add(r, d.fma(d.mul(r, z), d.polynomial(z, sinCoefficients), tail))
}

func (d doubles) cosine(r, low, z reg.VecVirtual) reg.VecVirtual {
	half := d.mul(z, d.num(0.5))
	w := d.sub(d.value(1), half)
	tail := d.sub(d.sub(d.value(1), w), half)
	tail = d.fnma(d.fms(r, r, z), d.num(0.5), tail)
	tail = d.fnma(r, low, tail)
	return d.add(w, d.fma(d.mul(z, z), d.polynomial(z, cosCoefficients), tail))
}

// trigonometric emits x ← sin(A·x), or cos(A·x) if phase is 1, in steps of NR elements. Before a step with an
// element |A·x| > reduceLimit, the code stops, sets Flag, and sets N to the number of remaining elements.
func (e *emitter) trigonometric(phase uint64) {
	args := e.args()
	d := e.doubles()
	a := d.field(e, args, offSA)
	x, n := e.field(args, offX), e.field(args, offNum)
	flag := e.GP64()
	e.XORQ(flag, flag)
	loop, beyond, end := e.label("loop"), e.label("beyond"), e.label("end")
	e.TESTQ(n, n)
	e.JLE(operand.LabelRef(end))
	e.Label(loop)
	largest := d.vec()
	d.zero(largest)
	for v := range e.nv {
		e.eachDoubles(d, x, v, func(from operand.Mem) {
			// This order of the operands ignores NaN.
			d.VMAXPD(largest, d.abs(d.mul(d.fetch(e, from), a)), largest)
		})
	}
	d.jumpIf(d.compare(largest, greater, d.num(reduceLimit)), beyond)
	for v := range e.nv {
		e.eachDoubles(d, x, v, func(from operand.Mem) {
			y := d.mul(d.fetch(e, from), a)
			d.unload(e, d.shifted(y, phase, e.double()), from)
		})
	}
	e.ADDQ(operand.U32(e.nr()*e.size()), x)
	e.SUBQ(operand.U32(e.nr()), n)
	e.JG(operand.LabelRef(loop))
	e.JMP(operand.LabelRef(end))
	e.Label(beyond)
	e.MOVQ(n, operand.Mem{Base: args, Disp: offNum})
	e.MOVQ(operand.U32(1), flag)
	e.Label(end)
	e.MOVQ(flag, operand.Mem{Base: args, Disp: offFlag})
	e.VZEROUPPER()
	e.RET()
}

// shifted returns sin(y + phase·½π), for phase 0 or 1.
func (d doubles) shifted(y reg.VecVirtual, phase uint64, double bool) reg.VecVirtual {
	// Handle the sign of y separately, because the sums below lose the sign of −0.
	var sign reg.VecVirtual
	if phase == 0 {
		sign = d.sign(y)
		y = d.abs(y)
	}
	quadrant, r, low := d.reduced(y, double)
	z := d.mul(r, r)
	var sin, cos reg.VecVirtual
	if double {
		sin, cos = d.sine(r, low, z), d.cosine(r, low, z)
	} else {
		sin = d.fma(d.mul(r, z), d.polynomial(z, sinCoefficientsShort), r)
		cos = d.fma(d.mul(z, z), d.polynomial(z, cosCoefficientsShort), d.fma(z, d.num(-0.5), d.value(1)))
	}
	if phase != 0 {
		quadrant = d.addInt(quadrant, d.word(phase))
	}
	result := d.choice(d.odd(quadrant), cos, sin)
	result = d.xor(result, d.sign(d.shiftLeft(quadrant, 62)))
	if sign != nil {
		result = d.xor(result, sign)
	}
	return result
}

// jumpIf jumps to a label when c is true in any lane.
func (d doubles) jumpIf(c condition, label string) {
	if d.masks {
		d.KORTESTW(c.k, c.k)
	} else {
		bits := d.GP32()
		d.VMOVMSKPD(c.v, bits)
		d.TESTL(bits, bits)
	}
	d.JNE(operand.LabelRef(label))
}
