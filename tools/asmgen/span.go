package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// These constants are the offsets of the fields of ukr.Span.
const (
	offX    = 0
	offY    = 8
	offNum  = 16 // number of elements, a multiple of NR
	offFlag = 24
	offSA   = 32 // B follows
)

// forVectors emits a loop over the elements of X, e.nr() in each step. It calls body for each vector v of a step,
// with the addresses x and y of the first elements of the step.
func (e *emitter) forVectors(args reg.Register, withY bool, body func(x, y reg.Register, v int)) {
	x, n := e.field(args, offX), e.field(args, offNum)
	var y reg.GPVirtual
	if withY {
		y = e.field(args, offY)
	}
	loop, end := e.label("loop"), e.label("end")
	e.TESTQ(n, n)
	e.JLE(operand.LabelRef(end))
	e.Label(loop)
	for v := range e.nv {
		body(x, y, v)
	}
	e.ADDQ(operand.U32(e.nr()*e.size()), x)
	if withY {
		e.ADDQ(operand.U32(e.nr()*e.size()), y)
	}
	e.SUBQ(operand.U32(e.nr()), n)
	e.JG(operand.LabelRef(loop))
	e.Label(end)
}

func (e *emitter) args() reg.GPVirtual { return e.Load(e.Param("args"), e.GP64()).(reg.GPVirtual) }

// scalars broadcasts the fields A and B.
func (e *emitter) scalars(args reg.Register) (a, b reg.VecVirtual) {
	a, b = e.vec(), e.vec()
	e.broadcast(operand.Mem{Base: args, Disp: offSA}, a)
	e.broadcast(operand.Mem{Base: args, Disp: offSA + e.size()}, b)
	return a, b
}

// number returns a constant operand: a register if the tier has 32 registers, and memory if it has 16.
func (e *emitter) number(name string, value float64) operand.Op {
	return e.pattern(name, e.bits(value))
}

// bits returns the bit pattern of a number, in the upper half for float32.
func (e *emitter) bits(value float64) uint64 {
	if e.double() {
		return math.Float64bits(value)
	}
	return uint64(math.Float32bits(float32(value))) << 32
}

func (e *emitter) pattern(name string, bits uint64) operand.Op {
	if e.masks {
		v := e.vec()
		e.broadcast(e.constant(name, 1, func(int) uint64 { return bits }), v)
		return v
	}
	return e.constant(name, e.lanes(), func(int) uint64 { return bits })
}

// peak emits N rounds of one multiply-add for each accumulator of the tile.
func (e *emitter) peak() {
	args := e.args()
	a, b := e.scalars(args)
	acc := e.accumulators()
	for i := range acc {
		for v := range acc[i] {
			e.zero(acc[i][v])
		}
	}
	n := e.field(args, offNum)
	loop := e.label("loop")
	e.Label(loop)
	for i := range acc {
		for v := range acc[i] {
			e.fma(a, b, acc[i][v])
		}
	}
	e.DECQ(n)
	e.JG(operand.LabelRef(loop))
	e.VZEROUPPER()
	e.RET()
}

func (e *emitter) affine() {
	args := e.args()
	a, b := e.scalars(args)
	e.forVectors(args, false, func(x, _ reg.Register, v int) {
		r := e.vec()
		e.load(e.at(x, v*e.lanes()), r)
		e.fma213(b, a, r)
		e.store(r, e.at(x, v*e.lanes()))
	})
	e.VZEROUPPER()
	e.RET()
}

// pairwise emits x ← x + y or x ← x · y.
func (e *emitter) pairwise(op func(a, b operand.Op, dst reg.VecVirtual)) {
	args := e.args()
	e.forVectors(args, true, func(x, y reg.Register, v int) {
		r := e.vec()
		e.load(e.at(x, v*e.lanes()), r)
		op(r, e.at(y, v*e.lanes()), r)
		e.store(r, e.at(x, v*e.lanes()))
	})
	e.VZEROUPPER()
	e.RET()
}

func (e *emitter) sqrt() {
	args := e.args()
	zero := e.vec()
	e.zero(zero)
	e.forVectors(args, false, func(x, _ reg.Register, v int) {
		r := e.vec()
		e.load(e.at(x, v*e.lanes()), r)
		// The order of the operands preserves a NaN in r.
		e.minmax(false, r, zero, r)
		e.squareRoot(r, r)
		e.store(r, e.at(x, v*e.lanes()))
	})
	e.VZEROUPPER()
	e.RET()
}

// A cancellation detects results of (A + y) − 2x that are less than a fraction of A + y.
type cancellation struct {
	e        *emitter
	a        reg.VecVirtual
	fraction operand.Op // the given fraction of A + y
	two      operand.Op
	hit      reg.OpmaskVirtual // set only if the tier has mask registers
	any      reg.VecVirtual    // set only if the tier has no mask registers
}

func (e *emitter) cancellation(a reg.VecVirtual, fraction operand.Op) *cancellation {
	c := &cancellation{e: e, a: a, fraction: fraction, two: e.number("two", 2)}
	if e.masks {
		c.hit = e.K()
		e.KXORW(c.hit, c.hit, c.hit)
	} else {
		c.any = e.vec()
		e.zero(c.any)
	}
	return c
}

// distance returns r = (A + y) − 2x, and ones in the lanes with too much cancellation: in badMask on tiers with
// mask registers, and otherwise in badLanes.
func (c *cancellation) distance(x, y operand.Mem) (r, badLanes reg.VecVirtual, badMask reg.OpmaskVirtual) {
	const notGreaterEqualUnordered = 0x19
	e := c.e
	r, sum, limit := e.vec(), e.vec(), e.vec()
	e.add(c.a, y, sum)
	e.load(x, r)
	e.fnma213(sum, c.two, r)
	e.mul(sum, c.fraction, limit)
	if e.masks {
		badMask = e.K()
		pick(e, e.VCMPPS, e.VCMPPD)(operand.U8(notGreaterEqualUnordered), limit, r, badMask)
		e.KORW(badMask, c.hit, c.hit)
		return r, nil, badMask
	}
	pick(e, e.VCMPPS, e.VCMPPD)(operand.U8(notGreaterEqualUnordered), limit, r, limit)
	e.VORPS(limit, c.any, c.any)
	return r, limit, nil
}

// flag stores in Flag whether any lane has too much cancellation.
func (c *cancellation) flag(args reg.Register) {
	e := c.e
	flag := e.GP32()
	if e.masks {
		e.KMOVW(c.hit, flag)
	} else {
		e.VMOVMSKPS(c.any, flag)
	}
	e.MOVQ(flag.As64(), operand.Mem{Base: args, Disp: offFlag})
}

// distance emits x ← (A + y) − 2x, and sets Flag when any result is not at least B·(A + y).
func (e *emitter) distance() {
	args := e.args()
	a, b := e.scalars(args)
	c := e.cancellation(a, b)
	e.forVectors(args, true, func(x, y reg.Register, v int) {
		r, _, _ := c.distance(e.at(x, v*e.lanes()), e.at(y, v*e.lanes()))
		e.store(r, e.at(x, v*e.lanes()))
	})
	c.flag(args)
	e.VZEROUPPER()
	e.RET()
}

// distanceExp emits x ← exp(C·r) with the distance r = (A + y) − 2x and C ≤ 0. If r is not at least B·(A + y), the code
// sets x to −1 and sets Flag. If stream is true, the code stores the results in Z, not in x, by non-temporal stores.
func (e *emitter) distanceExp(stream bool) {
	args := e.args()
	a, b := e.scalars(args)
	factor := e.vec()
	e.broadcast(operand.Mem{Base: args, Disp: offSA + 2*e.size()}, factor)
	var fraction operand.Op = b
	f := e.exponential()
	minus := e.number("minusOne", -1)
	c := e.cancellation(a, fraction)
	var ahead reg.GPVirtual // distance in bytes from X to Z
	if stream {
		ahead = e.field(args, offZ(e.size()))
		e.SUBQ(operand.Mem{Base: args, Disp: offX}, ahead)
	}
	e.forVectors(args, true, func(x, y reg.Register, v int) {
		mem := e.at(x, v*e.lanes())
		r, badLanes, badMask := c.distance(mem, e.at(y, v*e.lanes()))
		e.mul(r, factor, r)
		// r = C·distance is > 0 only in bad lanes, which are replaced by −1 below: exp needs no upper limit.
		k := f.exp(r, false)
		switch {
		case e.masks:
			pick(e, e.VMOVAPS, e.VMOVAPD)(minus, badMask, k)
		default:
			pick(e, e.VBLENDVPS, e.VBLENDVPD)(badLanes, minus, k, k)
		}
		if stream {
			mem.Index, mem.Scale = ahead, 1
			e.streamStore(k, mem)
			return
		}
		e.store(k, mem)
	})
	c.flag(args)
	e.VZEROUPPER()
	e.RET()
}

func (e *emitter) exp() {
	args := e.args()
	a, b := e.scalars(args)
	f := e.exponential()
	e.forVectors(args, false, func(x, _ reg.Register, v int) {
		r := e.vec()
		e.load(e.at(x, v*e.lanes()), r)
		e.fma213(b, a, r)
		e.store(f.exp(r, true), e.at(x, v*e.lanes()))
	})
	e.VZEROUPPER()
	e.RET()
}

// fma213 emits x ← b·x + c.
func (e *emitter) fma213(c, b operand.Op, x reg.VecVirtual) {
	pick(e, e.VFMADD213PS, e.VFMADD213PD)(c, b, x)
}

// fnma213 emits x ← c − b·x; b is in a register or is moved to a register.
func (e *emitter) fnma213(c reg.VecVirtual, b operand.Op, x reg.VecVirtual) {
	if _, ok := b.(operand.Mem); ok {
		v := e.vec()
		e.move(b, v)
		b = v
	}
	pick(e, e.VFNMADD213PS, e.VFNMADD213PD)(c, b, x)
}

// fnma231 emits x ← x − a·b.
func (e *emitter) fnma231(a reg.VecVirtual, b operand.Op, x reg.VecVirtual) {
	pick(e, e.VFNMADD231PS, e.VFNMADD231PD)(b, a, x)
}

// minmax emits dst ← min(x, limit) if smaller is set, and otherwise dst ← max(x, limit). It preserves NaN in x.
func (e *emitter) minmax(smaller bool, x reg.VecVirtual, limit operand.Op, dst reg.VecVirtual) {
	if _, ok := limit.(operand.Mem); ok {
		v := e.vec()
		e.move(limit, v)
		limit = v
	}
	switch {
	case smaller:
		pick(e, e.VMINPS, e.VMINPD)(x, limit, dst)
	default:
		pick(e, e.VMAXPS, e.VMAXPD)(x, limit, dst)
	}
}

// round emits dst ← x rounded to the nearest integer.
func (e *emitter) round(x, dst reg.VecVirtual) {
	const nearest = 0x8
	switch {
	case e.masks:
		pick(e, e.VRNDSCALEPS, e.VRNDSCALEPD)(operand.U8(nearest), x, dst)
	default:
		pick(e, e.VROUNDPS, e.VROUNDPD)(operand.U8(nearest), x, dst)
	}
}

// scalef emits x ← x·2ⁿ, rounded once.
func (e *emitter) scalef(n, x reg.VecVirtual) {
	pick(e, e.VSCALEFPS, e.VSCALEFPD)(n, x, x)
}

// forElements is like forVectors for any number of elements. It emits a loop for `unroll` vectors at a time, a loop for
// single vectors, and code for one partial vector. body gets functions that load and store vector v.
func (e *emitter) forElements(n reg.GPVirtual, pointers []reg.GPVirtual, unroll int, body func(v int, load func(operand.Mem, reg.VecVirtual), store func(reg.VecVirtual, operand.Mem))) {
	step := func(count int) {
		for v := range count {
			offset := v * e.lanes() * e.size()
			body(v,
				func(m operand.Mem, to reg.VecVirtual) { e.load(m.Offset(offset), to) },
				func(from reg.VecVirtual, m operand.Mem) { e.store(from, m.Offset(offset)) })
		}
		for _, p := range pointers {
			e.ADDQ(operand.U32(count*e.lanes()*e.size()), p)
		}
		e.SUBQ(operand.U32(count*e.lanes()), n)
	}
	many, few, one, tail, end := e.label("many"), e.label("few"), e.label("one"), e.label("tail"), e.label("end")
	if unroll > 1 {
		e.Label(many)
		e.CMPQ(n, operand.U32(unroll*e.lanes()))
		e.JL(operand.LabelRef(few))
		step(unroll)
		e.JMP(operand.LabelRef(many))
		e.Label(few)
	}
	e.Label(one)
	e.CMPQ(n, operand.U32(e.lanes()))
	e.JL(operand.LabelRef(tail))
	step(1)
	e.JMP(operand.LabelRef(one))
	e.Label(tail)
	e.TESTQ(n, n)
	e.JLE(operand.LabelRef(end))
	mask := e.columnMask(n)
	body(0,
		func(m operand.Mem, to reg.VecVirtual) { e.loadMasked(mask, 0, m, to) },
		func(from reg.VecVirtual, m operand.Mem) { e.storeMasked(mask, 0, from, m) })
	e.Label(end)
}

// dotAxpy emits B ← Σ z_i y_i and x ← x + A·z in one pass over z.
func (e *emitter) dotAxpy() {
	args := e.args()
	x, y, n := e.field(args, offX), e.field(args, offY), e.field(args, offNum)
	z := e.field(args, offZ(e.size()))
	a, _ := e.scalars(args)
	sums := e.vecs(4)
	for _, s := range sums {
		e.zero(s)
	}
	e.forElements(n, []reg.GPVirtual{x, y, z}, 4, func(v int, load func(operand.Mem, reg.VecVirtual), store func(reg.VecVirtual, operand.Mem)) {
		to, factor, row := e.vec(), e.vec(), e.vec()
		load(operand.Mem{Base: x}, to)
		load(operand.Mem{Base: y}, factor)
		load(operand.Mem{Base: z}, row)
		e.fma(row, factor, sums[v])
		e.fma(row, a, to)
		store(to, operand.Mem{Base: x})
	})
	e.reduce(sums, operand.Mem{Base: args, Disp: offSA + e.size()})
	e.VZEROUPPER()
	e.RET()
}

// offZ is the offset of the field Z, which follows C.
func offZ(size int) int { return (offSA + 3*size + 7) / 8 * 8 }

// reduce stores the sum of all lanes of four vectors, and overwrites them.
func (e *emitter) reduce(sums []reg.VecVirtual, to operand.Mem) {
	e.add(sums[0], sums[1], sums[0])
	e.add(sums[2], sums[3], sums[2])
	e.add(sums[0], sums[2], sums[0])
	e.reduceOne(sums[0], to)
}

// reduceOne stores the sum of all lanes of v, and overwrites it.
func (e *emitter) reduceOne(v reg.VecVirtual, to operand.Mem) {
	half := e.YMM()
	var low reg.Register = v.AsY()
	if e.tier.bytes == 64 {
		e.VEXTRACTF64X4(operand.U8(1), v, half)
		e.add(low, half, half)
		low = half
	}
	quarter := e.XMM()
	e.VEXTRACTF128(operand.U8(1), low, quarter)
	upper := e.XMM()
	if e.double() {
		e.VADDPD(quarter, low.(reg.Vec).AsX(), quarter)
		e.VUNPCKHPD(quarter, quarter, upper)
		e.VADDSD(upper, quarter, quarter)
		e.VMOVSD(quarter, to)
		return
	}
	e.VADDPS(quarter, low.(reg.Vec).AsX(), quarter)
	e.VUNPCKHPD(quarter, quarter, upper)
	e.VADDPS(upper, quarter, quarter)
	e.VMOVSHDUP(quarter, upper)
	e.VADDSS(upper, quarter, quarter)
	e.VMOVSS(quarter, to)
}
