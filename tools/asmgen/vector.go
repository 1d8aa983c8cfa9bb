package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The micro-kernels of BLAS levels 1 and 2 take separate arguments, because storing an argument struct would take
// as long as a product of a 4×4 matrix with a vector.

// These constants are the Go types of the functions. T stands for the element type.
const (
	dotSignature   = "func(n int, x, y *T) T"
	axpySignature  = "func(n int, a T, x, y *T)"
	belowSignature = "func(n int, bound T, x *T) int"
	gemvSignature  = "func(m, n int, alpha T, a *T, lda int, x *T, beta T, y *T)"
	gerSignature   = "func(m, n int, alpha T, x, y, a *T, lda int)"
	syr2kSignature = "func(lower bool, m, n int, alpha T, a *T, lda int, b *T, ldb int, beta T, c *T, ldc int)"
	trsvSignature  = "func(n int, unit bool, a *T, ars, acs int, x *T, incX int)"
)

func (e *emitter) param(name string) reg.GPVirtual {
	return e.Load(e.Param(name), e.GP64()).(reg.GPVirtual)
}

// stride loads a parameter that counts elements and converts it to bytes.
func (e *emitter) stride(name string) reg.GPVirtual {
	r := e.param(name)
	e.scale(r)
	return r
}

// paramAt returns the address of a parameter.
func (e *emitter) paramAt(name string) operand.Mem {
	p, err := e.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

// dot emits Σ x_i y_i. It first sums the tail from the end backwards, in parts of 1, 2, … elements up to half a
// vector, and adds it to the lower lanes of the vector sum, so that the lanes are added only once.
func (e *emitter) dot() {
	n, x, y := e.param("n"), e.param("x"), e.param("y")
	endingAt := func(p reg.Register, count int) operand.Mem {
		return operand.Mem{Base: p, Index: n, Scale: uint8(e.size()), Disp: -count * e.size()}
	}
	sums := e.vecs(4)
	e.zero(sums[0])
	vectors, single, many, lanes := e.label("vectors"), e.label("single"), e.label("many"), e.label("lanes")
	e.TESTB(operand.U8(e.lanes()-1), n.As8())
	e.JZ(operand.LabelRef(vectors))
	for part := 1; part < e.lanes(); part *= 2 {
		skip := e.label("skip")
		e.TESTB(operand.U8(part), n.As8())
		e.JZ(operand.LabelRef(skip))
		v := e.vecOfBytes(max(part*e.size(), 16))
		e.movePart(part, endingAt(x, part), v)
		e.fmaPart(part, endingAt(y, part), v, ofSize(sums[0], v.Size()))
		e.SUBQ(operand.U8(part), n)
		e.Label(skip)
	}
	e.Label(vectors)
	e.CMPQ(n, operand.I32(4*e.lanes()))
	e.JGE(operand.LabelRef(many))
	e.Label(single)
	e.SUBQ(operand.U8(e.lanes()), n)
	e.JL(operand.LabelRef(lanes))
	loop := e.label("again")
	e.Label(loop)
	v := e.vec()
	e.load(endingAt(x, 0), v)
	e.fma(endingAt(y, 0), v, sums[0])
	e.SUBQ(operand.U8(e.lanes()), n)
	e.JGE(operand.LabelRef(loop))
	e.Label(lanes)
	sum := sums[0]
	for sum.Size() > 16 {
		sum = e.folded(sum)
	}
	e.VZEROUPPER()
	e.Store(e.sideBySide([]reg.VecVirtual{sum}), e.ReturnIndex(0))
	e.RET()

	e.Label(many) // the code for long vectors follows the return, so that short vectors need no jump
	for _, s := range sums[1:] {
		e.zero(s)
	}
	e.SUBQ(operand.I32(4*e.lanes()), n)
	four := e.label("four")
	e.Label(four)
	for i, s := range sums {
		v := e.vec()
		e.load(e.at(x, i*e.lanes()), v)
		e.fma(e.at(y, i*e.lanes()), v, s)
	}
	e.ADDQ(operand.I32(4*e.tier.bytes), x)
	e.ADDQ(operand.I32(4*e.tier.bytes), y)
	e.SUBQ(operand.I32(4*e.lanes()), n)
	e.JGE(operand.LabelRef(four))
	e.add(sums[0], sums[1], sums[0])
	e.add(sums[2], sums[3], sums[2])
	e.add(sums[0], sums[2], sums[0])
	e.ADDQ(operand.I32(4*e.lanes()), n)
	e.JMP(operand.LabelRef(single))
}

// ofSize returns the register for the lower bytes of a vector.
func ofSize(v reg.VecVirtual, bytes uint) reg.VecVirtual {
	switch bytes {
	case 16:
		return v.AsX().(reg.VecVirtual)
	case 32:
		return v.AsY().(reg.VecVirtual)
	}
	return v
}

// axpy emits y ← y + a x. The tail is stored in parts of at most 16 bytes, which do not cross cache lines in aligned
// heap memory.
func (e *emitter) axpy() {
	n, x, y := e.param("n"), e.param("x"), e.param("y")
	a := e.vec()
	e.broadcast(e.paramAt("a"), a)
	loop := func(count int) {
		loop := e.label("vectors")
		e.Label(loop)
		for v := range count {
			sum := e.vec()
			e.load(e.at(y, v*e.lanes()), sum)
			e.fma(e.at(x, v*e.lanes()), a, sum)
			e.store(sum, e.at(y, v*e.lanes()))
		}
		e.ADDQ(operand.I32(count*e.tier.bytes), x)
		e.ADDQ(operand.I32(count*e.tier.bytes), y)
		e.SUBQ(operand.I32(count*e.lanes()), n)
		e.JGE(operand.LabelRef(loop))
	}
	single, many, tail, rest := e.label("single"), e.label("many"), e.label("tail"), e.label("rest")
	e.CMPQ(n, operand.I32(4*e.lanes()))
	e.JGE(operand.LabelRef(many))
	e.Label(single)
	e.SUBQ(operand.I32(e.lanes()), n)
	e.JL(operand.LabelRef(tail))
	loop(1)
	e.Label(tail) // the lower bits of n count the tail
	e.TESTQ(operand.U32(e.lanes()-1), n)
	e.JNZ(operand.LabelRef(rest))
	e.VZEROUPPER()
	e.RET()
	e.Label(rest)
	e.addRest(16, n, x, []reg.VecVirtual{a}, strides{}, y)
	e.VZEROUPPER()
	e.RET()

	e.Label(many) // the code for long vectors follows the return, so that short vectors need no jump
	e.SUBQ(operand.I32(4*e.lanes()), n)
	loop(4)
	e.ADDQ(operand.I32(4*e.lanes()), n)
	e.JMP(operand.LabelRef(single))
}

// below emits a loop over vectors that ends at the first vector with an element ≥ the bound or NaN.
func (e *emitter) below() {
	n, x := e.param("n"), e.param("x")
	bound, total := e.vec(), e.GP64()
	e.broadcast(e.paramAt("bound"), bound)
	e.MOVQ(n, total)
	loop, end := e.label("loop"), e.label("end")
	e.Label(loop)
	e.TESTQ(n, n)
	e.JLE(operand.LabelRef(end))
	var any reg.VecVirtual
	var mask reg.OpmaskVirtual
	for v := range e.nv {
		r := e.vec()
		e.load(e.at(x, v*e.lanes()), r)
		compare := pick(e, e.VCMPPS, e.VCMPPD)
		switch {
		case e.masks && v == 0:
			mask = e.K()
			compare(operand.U8(notLess), bound, r, mask)
		case e.masks:
			k := e.K()
			compare(operand.U8(notLess), bound, r, k)
			e.KORW(k, mask, mask)
		case v == 0:
			any = r
			compare(operand.U8(notLess), bound, r, any)
		default:
			compare(operand.U8(notLess), bound, r, r)
			e.VORPS(r, any, any)
		}
	}
	if e.masks {
		e.KORTESTW(mask, mask)
	} else {
		bits := e.GP32()
		e.VMOVMSKPS(any, bits)
		e.TESTL(bits, bits)
	}
	e.JNE(operand.LabelRef(end))
	e.ADDQ(operand.U32(e.nr()*e.size()), x)
	e.SUBQ(operand.U32(e.nr()), n)
	e.JMP(operand.LabelRef(loop))
	e.Label(end)
	e.SUBQ(n, total)
	e.VZEROUPPER()
	e.Store(total, e.ReturnIndex(0))
	e.RET()
}

// addRest emits p_r ← p_r + a_r y for the tail of the rows, which is shorter than a vector; the lower bits of n are
// its length. Each store has at most maxBytes bytes. The code advances y and p.
func (e *emitter) addRest(maxBytes int, n, y reg.GPVirtual, a []reg.VecVirtual, rows strides, p reg.GPVirtual) {
	for part := e.lanes() / 2; part > 0; part /= 2 {
		skip := e.label("skip")
		e.TESTQ(operand.U32(part), n)
		e.JZ(operand.LabelRef(skip))
		count := min(part, maxBytes/e.size())
		for done := 0; done < part; done += count {
			e.addParts(count, done, y, a, rows, p)
		}
		if part > 1 {
			e.ADDQ(operand.U8(part*e.size()), y)
			e.ADDQ(operand.U8(part*e.size()), p)
		}
		e.Label(skip)
	}
}

// addParts emits p_r ← p_r + a_r y for count elements, at most one vector, beginning with the element from.
func (e *emitter) addParts(count, from int, y reg.Register, a []reg.VecVirtual, rows strides, p reg.Register) {
	bytes := count * e.size()
	factor := e.vecOfBytes(max(bytes, 16))
	e.movePart(count, e.at(y, from), factor)
	for r, multiplier := range a {
		multiplier = ofSize(multiplier, factor.Size())
		sum := e.vecOfBytes(max(bytes, 16))
		mem := rows.row(p, r).Offset(from * e.size())
		e.movePart(count, mem, sum)
		e.fma(factor, multiplier, sum)
		e.movePart(count, sum, mem)
	}
}

// movePart loads or stores count elements; the other lanes of a load become zero.
func (e *emitter) movePart(count int, from, to operand.Op) {
	switch count * e.size() {
	case 4:
		e.VMOVSS(from, to)
	case 8:
		e.VMOVSD(from, to)
	default:
		e.move(from, to)
	}
}

// fmaPart emits acc ← acc + a·b for count elements of memory; the other lanes of b must be zero.
func (e *emitter) fmaPart(count int, a operand.Mem, b, acc reg.VecVirtual) {
	switch bytes := count * e.size(); {
	case bytes >= 16:
		e.fma(a, b, acc)
	case bytes == 4:
		e.VFMADD231SS(a, b, acc)
	case e.double():
		e.VFMADD231SD(a, b, acc)
	default:
		x := e.XMM()
		e.VMOVSD(a, x)
		e.fma(x, b, acc)
	}
}
