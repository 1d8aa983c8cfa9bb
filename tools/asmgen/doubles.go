package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// doubles is an emitter for expressions on vectors of float64, also for elementary functions of float32. Each
// method returns its result in a new register.
//
// An operand is a register or a constant made by num or word.
type doubles struct{ *emitter }

// doubles returns a copy of e for float64.
func (e *emitter) doubles() doubles {
	return doubles{&emitter{Context: e.Context, tier: e.tier, precision: precisions[0], constants: e.constants}}
}

// forDoubles emits a loop that replaces every element of X by the result of body, in float64 for both precisions.
func (e *emitter) forDoubles(args reg.Register, body func(d doubles, x reg.VecVirtual) reg.VecVirtual) {
	d := e.doubles()
	e.forVectors(args, false, func(x, _ reg.Register, v int) {
		e.eachDoubles(d, x, v, func(from operand.Mem) { d.unload(e, body(d, d.fetch(e, from)), from) })
	})
}

// eachDoubles divides vector v of x into parts of d.lanes() elements, and calls f with the address of each part.
func (e *emitter) eachDoubles(d doubles, x reg.Register, v int, f func(from operand.Mem)) {
	for i := 0; i < e.lanes(); i += d.lanes() {
		f(e.at(x, v*e.lanes()+i))
	}
}

// fetch loads a vector of e's precision as float64.
func (d doubles) fetch(e *emitter, from operand.Mem) reg.VecVirtual {
	to := d.vec()
	if e.double() {
		d.load(from, to)
	} else {
		d.VCVTPS2PD(from, to)
	}
	return to
}

// unload stores v in e's precision.
func (d doubles) unload(e *emitter, v reg.VecVirtual, to operand.Mem) {
	if e.double() {
		d.store(v, to)
		return
	}
	half := d.vecOfBytes(d.tier.bytes / 2)
	if d.tier.bytes == 64 {
		d.VCVTPD2PS(v, half)
	} else {
		d.VCVTPD2PSY(v, half)
	}
	d.VMOVUPS(half, to)
}

// field returns a vector with the field at an offset of the argument, in e's precision, in all lanes.
func (d doubles) field(e *emitter, args reg.Register, offset int) reg.VecVirtual {
	from, to := operand.Mem{Base: args, Disp: offset}, d.vec()
	if e.double() {
		d.broadcast(from, to)
		return to
	}
	half := d.vecOfBytes(d.tier.bytes / 2)
	d.VBROADCASTSS(from, half)
	d.VCVTPS2PD(half, to)
	return to
}

// num returns the constant v.
func (d doubles) num(v float64) operand.Mem { return d.word(math.Float64bits(v)) }

// word returns a constant given by its bits: one element if instructions can broadcast it, or else a whole vector.
func (d doubles) word(bits uint64) operand.Mem {
	n := 1
	if !d.masks {
		n = d.lanes()
	}
	return d.constant(fmt.Sprintf("w%016x", bits), n, func(int) uint64 { return bits })
}

// value returns a register that holds the constant v.
func (d doubles) value(v float64) reg.VecVirtual { return d.register(d.num(v)) }

// register returns a register with a copy of a.
func (d doubles) register(a operand.Op) reg.VecVirtual {
	r := d.vec()
	if d.broadcasts(a) {
		d.broadcast(a, r)
	} else {
		d.move(a, r)
	}
	return r
}

// broadcasts reports whether b is a single element in memory that the instruction broadcasts.
func (d doubles) broadcasts(b operand.Op) bool {
	_, memory := b.(operand.Mem)
	return memory && d.masks
}

// An instruction is a method of avo's builder that emits an instruction, plain or with a broadcast operand.
type instruction func(ops ...operand.Op)

func (d doubles) choose(b operand.Op, plain, broadcast instruction) instruction {
	if d.broadcasts(b) {
		return broadcast
	}
	return plain
}

func (d doubles) binary(plain, broadcast instruction, a reg.VecVirtual, b operand.Op) reg.VecVirtual {
	r := d.vec()
	d.choose(b, plain, broadcast)(b, a, r)
	return r
}

func (d doubles) add(a reg.VecVirtual, b operand.Op) reg.VecVirtual {
	return d.binary(d.VADDPD, d.VADDPD_BCST, a, b)
}

func (d doubles) sub(a reg.VecVirtual, b operand.Op) reg.VecVirtual {
	return d.binary(d.VSUBPD, d.VSUBPD_BCST, a, b)
}

func (d doubles) mul(a reg.VecVirtual, b operand.Op) reg.VecVirtual {
	return d.binary(d.VMULPD, d.VMULPD_BCST, a, b)
}

func (d doubles) div(a reg.VecVirtual, b operand.Op) reg.VecVirtual {
	return d.binary(d.VDIVPD, d.VDIVPD_BCST, a, b)
}

// min and max return b if a is NaN or b is NaN.
func (d doubles) min(a reg.VecVirtual, b operand.Op) reg.VecVirtual {
	return d.binary(d.VMINPD, d.VMINPD_BCST, a, b)
}

func (d doubles) max(a reg.VecVirtual, b operand.Op) reg.VecVirtual {
	return d.binary(d.VMAXPD, d.VMAXPD_BCST, a, b)
}

// clamp returns x limited to the range from low to high, and NaN if x is NaN.
func (d doubles) clamp(x reg.VecVirtual, low, high float64) reg.VecVirtual {
	return d.max(d.value(low), d.min(d.value(high), x))
}

// fma returns a·b + c, where b or c may be a constant.
func (d doubles) fma(a reg.VecVirtual, b, c operand.Op) reg.VecVirtual {
	if _, ok := c.(operand.Mem); ok {
		r := d.register(a)
		d.choose(c, d.VFMADD213PD, d.VFMADD213PD_BCST)(c, b, r)
		return r
	}
	r := d.register(c)
	d.choose(b, d.VFMADD231PD, d.VFMADD231PD_BCST)(b, a, r)
	return r
}

// fms returns a·b − c.
func (d doubles) fms(a reg.VecVirtual, b operand.Op, c reg.VecVirtual) reg.VecVirtual {
	r := d.register(c)
	d.choose(b, d.VFMSUB231PD, d.VFMSUB231PD_BCST)(b, a, r)
	return r
}

// fnma returns c − a·b.
func (d doubles) fnma(a reg.VecVirtual, b operand.Op, c reg.VecVirtual) reg.VecVirtual {
	r := d.register(c)
	d.choose(b, d.VFNMADD231PD, d.VFNMADD231PD_BCST)(b, a, r)
	return r
}

// polynomial returns Σ c_i xⁱ by Horner's rule.
func (d doubles) polynomial(x reg.VecVirtual, c []float64) reg.VecVirtual {
	q := d.value(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		d.choose(d.num(c[i]), d.VFMADD213PD, d.VFMADD213PD_BCST)(d.num(c[i]), x, q)
	}
	return q
}

func (d doubles) addInt(a reg.VecVirtual, b operand.Op) reg.VecVirtual {
	return d.binary(d.VPADDQ, d.VPADDQ_BCST, a, b)
}

// bitwise emits a bitwise operation, by the argument plain or broadcast on tiers with mask registers, otherwise by vex.
func (d doubles) bitwise(plain, broadcast instruction, vex func(b, a, r operand.Op), a reg.VecVirtual, b operand.Op) reg.VecVirtual {
	if d.masks {
		return d.binary(plain, broadcast, a, b)
	}
	r := d.vec()
	vex(b, a, r)
	return r
}

func (d doubles) and(a reg.VecVirtual, b operand.Op) reg.VecVirtual {
	return d.bitwise(d.VPANDQ, d.VPANDQ_BCST, d.VPAND, a, b)
}

func (d doubles) or(a reg.VecVirtual, b operand.Op) reg.VecVirtual {
	return d.bitwise(d.VPORQ, d.VPORQ_BCST, d.VPOR, a, b)
}

func (d doubles) xor(a reg.VecVirtual, b operand.Op) reg.VecVirtual {
	return d.bitwise(d.VPXORQ, d.VPXORQ_BCST, d.VPXOR, a, b)
}

func (d doubles) shiftLeft(a reg.VecVirtual, n int) reg.VecVirtual {
	r := d.vec()
	d.VPSLLQ(operand.U8(n), a, r)
	return r
}

func (d doubles) shiftRight(a reg.VecVirtual, n int) reg.VecVirtual {
	r := d.vec()
	d.VPSRLQ(operand.U8(n), a, r)
	return r
}

// sign returns the sign bit of a, and abs returns the other bits.
func (d doubles) sign(a reg.VecVirtual) reg.VecVirtual { return d.and(a, d.word(1<<63)) }
func (d doubles) abs(a reg.VecVirtual) reg.VecVirtual  { return d.and(a, d.word(1<<63-1)) }

// rounded returns a, rounded to the nearest integer.
func (d doubles) rounded(a reg.VecVirtual) reg.VecVirtual {
	r := d.vec()
	d.round(a, r)
	return r
}

// A condition is a truth value per lane.
type condition struct {
	k reg.OpmaskVirtual // used if the tier has mask registers
	v reg.VecVirtual    // used if the tier has no mask registers: the sign bits hold the values
}

// These are predicates of comparisons. If an operand is NaN, notAtLeast and notLess are true and
// the other predicates are false.
const (
	equal      = 0x00
	less       = 0x11
	notAtLeast = 0x19
	notLess    = 0x15
	greater    = 0x1e
)

// compare returns the condition that the predicate holds for a and b.
func (d doubles) compare(a reg.VecVirtual, predicate uint8, b operand.Op) condition {
	if d.masks {
		c := condition{k: d.K()}
		d.choose(b, d.VCMPPD, d.VCMPPD_BCST)(operand.U8(predicate), b, a, c.k)
		return c
	}
	c := condition{v: d.vec()}
	d.VCMPPD(operand.U8(predicate), b, a, c.v)
	return c
}

// odd returns the condition that the lowest bit of a is set.
func (d doubles) odd(a reg.VecVirtual) condition {
	if d.masks {
		c := condition{k: d.K()}
		d.VPTESTMQ_BCST(d.word(1), a, c.k)
		return c
	}
	return condition{v: d.shiftLeft(a, 63)}
}

// choice returns the lanes of ifTrue where c is true, and the lanes of ifFalse elsewhere.
func (d doubles) choice(c condition, ifTrue operand.Op, ifFalse reg.VecVirtual) reg.VecVirtual {
	r := d.register(ifFalse)
	switch {
	case d.broadcasts(ifTrue):
		d.VBROADCASTSD(ifTrue, c.k, r)
	case d.masks:
		d.VMOVAPD(ifTrue, c.k, r)
	default:
		d.VBLENDVPD(c.v, ifTrue, r, r)
	}
	return r
}
