package main

import (
	"math"
	"math/big"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// expCoefficients are the coefficients of q in exp(r) ≈ 1 + r + r²q(r) for |r| ≤ ½ ln 2, computed by the Remez
// algorithm, lowest power first. The relative error of the result is 2^−61.9 in float64, 2^−32.0 in float32.
// expTableCoefficients are for |r| ≤ ln 2/32 in float64, with a relative error of 2^−56.2.
var expCoefficients = map[int][]float64{
	8: {
		0x1p-1, 0x1.5555555555557p-3, 0x1.5555555555558p-5, 0x1.11111111100dbp-7,
		0x1.6c16c16c151fcp-10, 0x1.a01a01abe8206p-13, 0x1.a01a01acfae99p-16, 0x1.71de023137276p-19,
		0x1.27e4cccda6fcfp-22, 0x1.af4dea2bc3f25p-26, 0x1.1f8b4cd99e7aap-29,
	},
	4: {
		0x1.0000000b920a3p-1, 0x1.5555557430bd8p-3, 0x1.5554e9028dc90p-5,
		0x1.1110ab6cf7261p-7, 0x1.6d4328396f80fp-10, 0x1.a17e0b83cb3dep-13,
	},
}

var expTableCoefficients = []float64{
	0x1.0000000000004p-1, 0x1.555555548fa8ap-3, 0x1.5555555475133p-5, 0x1.11123ac821b11p-7, 0x1.6c184e6ff1a05p-10,
}

// expTable returns 2^(j/16) for j < 16, rounded, and the rounding errors.
func expTable() (high, low [16]float64) {
	const bits = 200
	root := big.NewFloat(2).SetPrec(bits)
	for range 4 {
		root.Sqrt(root)
	}
	v := big.NewFloat(1).SetPrec(bits)
	for j := range high {
		high[j], _ = v.Float64()
		low[j], _ = new(big.Float).Sub(v, big.NewFloat(high[j])).Float64()
		v.Mul(v, root)
	}
	return high, low
}

// An exponential holds the constants of exp in registers or memory.
type exponential struct {
	e                      *emitter
	upperLimit, lowerLimit operand.Op // for arguments beyond these numbers the result is Inf or 0
	log2e, hi, lo, one     operand.Op
	coefficients           []operand.Op
	biased, half           operand.Op // used if the tier has no mask registers
	shift                  int
	// high and low contain the table, each in two registers: 2^(j/16) rounded, and the rounding errors.
	high, low [2]reg.VecVirtual
	magic     operand.Op
}

// table reports whether exp uses a table of 16 powers of two in registers.
func (e *emitter) table() bool { return e.masks && e.double() }

// exponential loads the constants of exp.
func (e *emitter) exponential() *exponential {
	x := &exponential{e: e, shift: 52}
	high, low := 710.0, -746.0
	// hi + lo is ln 2. hi has few bits, so that its product with the integer n of byTable or byPolynomial is exact.
	ln2, ln2Rest := 0x1.62e42feep-1, 0x1.a39ef35793c76p-33
	magic := 0x1.8p52 + 1023
	if !e.double() {
		high, low = 89, -104
		ln2, ln2Rest = 0x1.63p-1, -0x1.bd0105c610ca8p-13
		magic, x.shift = 0x1.8p23+127, 23
	}
	x.upperLimit, x.lowerLimit = e.number("expHigh", high), e.number("expLow", low)
	x.log2e, x.one = e.number("log2e", math.Log2E), e.number("one", 1)
	x.hi, x.lo = e.number("ln2Hi", ln2), e.number("ln2Lo", ln2Rest)
	if e.table() {
		for i, v := range expTableCoefficients {
			x.coefficients = append(x.coefficients, e.number("expTable"+string(rune('A'+i)), v))
		}
		high, low := expTable()
		x.high = e.pair("expHighs", high)
		x.low = e.pair("expLows", low)
		// Adding this number to v rounds v to a multiple n/16; the last bits of the sum are then n.
		x.magic = e.number("expMagic", 0x1.8p48)
		return x
	}
	for i, v := range expCoefficients[e.size()] {
		x.coefficients = append(x.coefficients, e.number("exp"+string(rune('A'+i)), v))
	}
	if !e.masks {
		x.biased, x.half = e.number("biased", magic), e.number("half", 0.5)
	}
	return x
}

// pair loads 16 numbers into two registers.
func (e *emitter) pair(name string, v [16]float64) (p [2]reg.VecVirtual) {
	m := e.constant(name, len(v), func(i int) uint64 { return math.Float64bits(v[i]) })
	for i := range p {
		p[i] = e.vec()
		e.load(m.Offset(64*i), p[i])
	}
	return p
}

// exp returns exp(r) and overwrites r. mayOverflow is true if r may be so large that exp(r) overflows.
func (x *exponential) exp(r reg.VecVirtual, mayOverflow bool) reg.VecVirtual {
	e := x.e
	// The order of the operands of min and max preserves a NaN in r.
	if mayOverflow {
		e.minmax(true, r, x.upperLimit, r)
	}
	e.minmax(false, r, x.lowerLimit, r)
	if e.table() {
		return x.byTable(r)
	}
	return x.byPolynomial(r)
}

// byTable returns exp(r) = 2^(n/16)·exp(r') with n = round(16 r/ln 2) and r' = r − n/16·ln 2. The factor
// 2^(n/16) is 2^⌊n/16⌋ times an element of the table. The rounding error of r' is below 2^−58 of the result.
func (x *exponential) byTable(r reg.VecVirtual) reg.VecVirtual {
	e := x.e
	m, n, q, sq := e.vec(), e.vec(), e.vec(), e.vec()
	e.move(x.magic, m)
	e.fma(r, x.log2e, m)
	e.sub(m, x.magic, n)
	e.fnma231(n, x.hi, r)
	e.fnma231(n, x.lo, r)
	low := e.vec()
	e.VMOVAPD(m, low)
	e.VPERMI2PD(x.high[1], x.high[0], m)
	e.VPERMI2PD(x.low[1], x.low[0], low)
	e.mul(r, r, sq)
	x.horner(r, q)
	e.fma213(r, sq, q)
	e.fma(m, q, low)
	e.add(m, low, m)
	e.scalef(n, m) // multiply by 2^⌊n/16⌋
	return m
}

// horner emits q ← Σ_i c_i rⁱ for the coefficients c_i.
func (x *exponential) horner(r, q reg.VecVirtual) {
	last := len(x.coefficients) - 1
	x.e.move(x.coefficients[last], q)
	for i := last - 1; i >= 0; i-- {
		x.e.fma213(x.coefficients[i], r, q)
	}
}

// byPolynomial returns exp(r) = 2ⁿ(1 + (s + s²q(s))) with n = round(r/ln 2) and s = r − n ln 2.
func (x *exponential) byPolynomial(r reg.VecVirtual) reg.VecVirtual {
	e := x.e
	n, q, sq, tail := e.vec(), e.vec(), e.vec(), e.vec()
	e.mul(r, x.log2e, n)
	e.round(n, n)
	e.fnma231(n, x.hi, r) // this difference is exact
	e.move(r, tail)
	e.fnma231(n, x.lo, r)
	e.sub(tail, r, tail)
	e.fnma231(n, x.lo, tail) // tail is now the rounding error of r
	e.mul(r, r, sq)
	x.horner(r, q)
	e.fma213(tail, sq, q)
	e.add(q, r, q)
	e.add(q, x.one, q)
	if e.masks {
		e.scalef(n, q)
		return q
	}
	// 2ⁿ is applied in two factors, because it may be out of range although the result is not.
	n1, n2 := e.vec(), e.vec()
	e.mul(n, x.half, n1)
	e.round(n1, n1)
	e.sub(n, n1, n2)
	for _, power := range []reg.VecVirtual{n1, n2} {
		e.add(power, x.biased, power)
		pick(e, e.VPSLLD, e.VPSLLQ)(operand.U8(x.shift), power, power)
		e.mul(q, power, q)
	}
	return q
}

// maternExp emits x ← (1 + B·t + C·t²) exp(−t) with t = A√max(x, 0).
func (e *emitter) maternExp() {
	args := e.args()
	a, b := e.scalars(args)
	c := e.vec()
	e.broadcast(operand.Mem{Base: args, Disp: offSA + 2*e.size()}, c)
	f := e.exponential()
	zero := e.vec()
	e.zero(zero)
	// For t ≥ maxT the result is 0. Replacing a larger t by maxT makes it 0 also for t = Inf.
	maxT := 800.0
	if !e.double() {
		maxT = 150
	}
	limit := e.number("maternMax", maxT)
	e.forVectors(args, false, func(x, _ reg.Register, v int) {
		t, r, q := e.vec(), e.vec(), e.vec()
		e.load(e.at(x, v*e.lanes()), t)
		e.minmax(false, t, zero, t)
		e.squareRoot(t, t)
		e.mul(t, a, t)
		e.minmax(true, t, limit, t)
		e.sub(zero, t, r)
		e.move(c, q)
		e.fma213(b, t, q)
		e.fma213(f.one, t, q)
		k := f.exp(r, false)
		e.mul(k, q, k)
		e.store(k, e.at(x, v*e.lanes()))
	})
	e.VZEROUPPER()
	e.RET()
}

func (e *emitter) squareRoot(x, dst reg.VecVirtual) {
	pick(e, e.VSQRTPS, e.VSQRTPD)(x, dst)
}
