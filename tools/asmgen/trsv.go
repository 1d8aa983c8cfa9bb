package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// trsv emits x ← L⁻¹ x for a small lower triangular matrix L, four rows at a time, by scalar instructions. The inverses
// of the diagonal are computed in advance.
func (e *emitter) trsv() {
	n, a, x := e.param("n"), e.param("a"), e.param("x")
	rs, cs, inc := e.stride("ars"), e.stride("acs"), e.stride("incX")
	rows := strides{rs: rs, rs3: e.GP64()}
	e.LEAQ(operand.Mem{Base: rs, Index: rs, Scale: 2}, rows.rs3)
	done, firstUnknown := e.GP64(), e.GP64() // number of solved unknowns, and the address of the first unknown
	e.XORQ(done, done)
	e.MOVQ(x, firstUnknown)
	e.forRows(n, func(count int) {
		p := e.GP64()
		e.MOVQ(a, p)
		sums := e.scalars4(count)
		unknown := e.GP64()
		e.MOVQ(x, unknown)
		for r, s := range sums {
			e.loadScalar(operand.Mem{Base: unknown}, s)
			if r+1 < count {
				e.ADDQ(inc, unknown)
			}
		}
		e.subtractKnown(sums, rows, p, cs, firstUnknown, inc, done)
		e.solveKnown(sums, rows, p, cs, x, inc)
		if count == directRows {
			e.LEAQ(operand.Mem{Base: a, Index: rs, Scale: 4}, a)
			e.LEAQ(operand.Mem{Base: x, Index: inc, Scale: 4}, x)
			e.ADDQ(operand.U8(directRows), done)
		}
	})
	e.RET()
}

// scalars4 returns count new registers for scalars.
func (e *emitter) scalars4(count int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, count)
	for i := range v {
		v[i] = e.scalar()
	}
	return v
}

// subtractKnown subtracts Σ_j l_rj x_j from sums[r], for the solved unknowns x_j. Their number is a multiple of four. p
// points to l_00; the code advances it to the column after the solved unknowns.
func (e *emitter) subtractKnown(sums []reg.VecVirtual, rows strides, p, cs, firstUnknown, inc, done reg.GPVirtual) {
	others := e.scalars4(len(sums))
	for _, s := range others {
		e.VXORPS(s, s, s)
	}
	unknown, remaining := e.GP64(), e.GP64()
	loop, end := e.label("known"), e.label("subtracted")
	e.MOVQ(firstUnknown, unknown)
	e.MOVQ(done, remaining)
	e.SUBQ(operand.U8(2), remaining)
	e.JL(operand.LabelRef(end))
	e.Label(loop)
	for _, to := range [][]reg.VecVirtual{sums, others} {
		v := e.scalar()
		e.loadScalar(operand.Mem{Base: unknown}, v)
		for r, s := range to {
			e.scalarFnma(rows.row(p, r), v, s)
		}
		e.ADDQ(inc, unknown)
		e.ADDQ(cs, p)
	}
	e.SUBQ(operand.U8(2), remaining)
	e.JGE(operand.LabelRef(loop))
	e.Label(end)
	for r, s := range sums {
		e.scalarAdd(others[r], s)
	}
}

// solveKnown solves the triangle that begins at p and stores the unknowns.
func (e *emitter) solveKnown(sums []reg.VecVirtual, rows strides, p, cs, x, inc reg.GPVirtual) {
	unit, solve, slow, end := e.label("unit"), e.label("solve"), e.label("slow"), e.label("solved")
	inverses := e.scalars4(len(sums))
	flag, columnStart := e.GP8(), e.GP64()
	e.Load(e.Param("unit"), flag)
	e.TESTB(flag, flag)
	e.JNZ(operand.LabelRef(unit))
	e.MOVQ(p, columnStart)
	for r, inverse := range inverses {
		e.jumpUnlessInvertible(rows.row(columnStart, r), slow)
		e.scalarInverse(rows.row(columnStart, r), inverse)
		if r+1 < len(inverses) {
			e.ADDQ(cs, columnStart)
		}
	}
	e.JMP(operand.LabelRef(solve))
	e.Label(unit)
	for _, inverse := range inverses {
		e.loadScalar(e.constant("unit", 1, func(int) uint64 { return e.bits(1) }), inverse)
	}
	e.Label(solve)
	to := e.GP64()
	column := func(r int, divide func(v reg.VecVirtual)) {
		divide(sums[r])
		e.storeScalar(sums[r], operand.Mem{Base: to})
		for laterRow := r + 1; laterRow < len(sums); laterRow++ {
			e.scalarFnma(rows.row(columnStart, laterRow), sums[r], sums[laterRow])
		}
		if r+1 < len(sums) {
			e.ADDQ(cs, columnStart)
			e.ADDQ(inc, to)
		}
	}
	e.MOVQ(p, columnStart)
	e.MOVQ(x, to)
	for r := range sums {
		column(r, func(v reg.VecVirtual) { e.scalarMul(inverses[r], v) })
	}
	e.JMP(operand.LabelRef(end))
	e.Label(slow) // divide, because an inverse may be out of range
	e.MOVQ(p, columnStart)
	e.MOVQ(x, to)
	for r := range sums {
		column(r, func(v reg.VecVirtual) { e.scalarDiv(rows.row(columnStart, r), v) })
	}
	e.Label(end)
}

// jumpUnlessInvertible jumps unless a number and its inverse are normal.
func (e *emitter) jumpUnlessInvertible(x operand.Mem, label string) {
	from, to := e.normal()
	bits := e.GP64()
	if e.double() {
		e.MOVQ(x, bits)
		e.ADDQ(bits, bits) // shift the sign out
		e.SHRQ(operand.U8(1), bits)
		e.SUBQ(e.constant(fmt.Sprintf("from%x", from), 1, func(int) uint64 { return from }), bits)
		e.CMPQ(bits, e.constant(fmt.Sprintf("within%x", from), 1, func(int) uint64 { return to - from }))
	} else {
		e.MOVL(x, bits.As32())
		e.ANDL(operand.U32(1<<31-1), bits.As32())
		e.SUBL(operand.U32(from), bits.As32())
		e.CMPL(bits.As32(), operand.U32(to-from))
	}
	e.JCC(operand.LabelRef(label))
}

func (e *emitter) loadScalar(from operand.Mem, to reg.VecVirtual) {
	pick(e, e.VMOVSS, e.VMOVSD)(from, to)
}

// scalarFnma emits acc ← acc − a·b.
func (e *emitter) scalarFnma(a operand.Mem, b, acc reg.VecVirtual) {
	pick(e, e.VFNMADD231SS, e.VFNMADD231SD)(a, b, acc)
}

func (e *emitter) scalarAdd(a, to reg.VecVirtual) {
	pick(e, e.VADDSS, e.VADDSD)(a, to, to)
}

func (e *emitter) scalarMul(a, to reg.VecVirtual) {
	pick(e, e.VMULSS, e.VMULSD)(a, to, to)
}

func (e *emitter) scalarDiv(divisor operand.Mem, to reg.VecVirtual) {
	pick(e, e.VDIVSS, e.VDIVSD)(divisor, to, to)
}
