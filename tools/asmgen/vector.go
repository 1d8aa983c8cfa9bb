package main

import (
	"maps"
	"slices"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The micro-kernels of levels 1 and 2 take their arguments one by one: a product of a
// matrix of order four and a vector takes no longer than an argument in memory
// would take to prepare.

// Go types of the functions; T is the element type.
const (
	dotSignature   = "func(n int, x, y *T) T"
	axpySignature  = "func(n int, a T, x, y *T)"
	gemvSignature  = "func(m, n int, alpha T, a *T, lda int, x *T, beta T, y *T)"
	gerSignature   = "func(m, n int, alpha T, x, y, a *T, lda int)"
	syr2kSignature = "func(lower bool, m, n int, alpha T, a *T, lda int, b *T, ldb int, beta T, c *T, ldc int)"
	trsvSignature  = "func(n int, unit bool, a *T, ars, acs int, x *T, incX int)"
)

// param loads a parameter.
func (e *emitter) param(name string) reg.GPVirtual {
	return e.Load(e.Param(name), e.GP64()).(reg.GPVirtual)
}

// stride loads a parameter that counts elements, in bytes.
func (e *emitter) stride(name string) reg.GPVirtual {
	r := e.param(name)
	e.scale(r)
	return r
}

// paramAt is where a parameter lies.
func (e *emitter) paramAt(name string) operand.Mem {
	p, err := e.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

// dot emits Σ x_i y_i, in four sums.
func (e *emitter) dot() {
	n, x, y := e.param("n"), e.param("x"), e.param("y")
	sums := e.vecs(4)
	e.zero(sums[0])
	long := e.forVectorsOf(n, x, y, func(v int) {
		a := e.vec()
		e.load(e.at(x, v*e.lanes()), a)
		e.fma(e.at(y, v*e.lanes()), a, sums[v])
	}, func() {
		for _, s := range sums[1:] {
			e.zero(s)
		}
	}, func() {
		e.add(sums[0], sums[1], sums[0])
		e.add(sums[2], sums[3], sums[2])
		e.add(sums[0], sums[2], sums[0])
	})
	// The rest by halves of a vector, quarters and so on, with a way out after each.
	exits := map[string]reg.VecVirtual{}
	leave := func(part int, sum reg.VecVirtual) {
		exit := e.label("exit")
		exits[exit] = sum
		e.TESTQ(operand.U32(part-1), n)
		e.JZ(operand.LabelRef(exit))
	}
	done := func(sum reg.VecVirtual) {
		for sum.Size() > 16 {
			sum = e.folded(sum)
		}
		e.VZEROUPPER()
		e.Store(e.sideBySide([]reg.VecVirtual{sum}), e.ReturnIndex(0))
		e.RET()
	}
	sum := sums[0]
	leave(e.lanes(), sum)
	for part := e.lanes() / 2; part > 0; part /= 2 {
		if part*e.size() >= 16 {
			sum = e.folded(sum)
		}
		skip := e.label("skip")
		e.TESTQ(operand.U32(part), n)
		e.JZ(operand.LabelRef(skip))
		v := e.short(int(sum.Size()))
		e.movePart(part, operand.Mem{Base: x}, v)
		e.fmaPart(part, operand.Mem{Base: y}, v, sum)
		if part > 1 {
			leave(part, sum)
			e.ADDQ(operand.U8(part*e.size()), x)
			e.ADDQ(operand.U8(part*e.size()), y)
		}
		e.Label(skip)
	}
	done(sum)
	for _, exit := range slices.Sorted(maps.Keys(exits)) {
		e.Label(exit)
		done(exits[exit])
	}
	long()
}

// forVectorsOf emits body for single vectors of x and y, of which v is 0. It leaves x
// and y at what does not fill a vector, which the lower bits of n count. It returns
// what emits the way of long vectors, four at a time between begin and end, which
// goes on with single ones: it belongs behind the function's end, so that short
// vectors pass no jumps.
func (e *emitter) forVectorsOf(n, x, y reg.GPVirtual, body func(v int), begin, end func()) (long func()) {
	rest, single, many := e.label("rest"), e.label("single"), e.label("many")
	loop := func(count int) {
		again := e.label("vectors")
		e.Label(again)
		for v := range count {
			body(v)
		}
		e.ADDQ(operand.I32(count*e.tier.bytes), x)
		e.ADDQ(operand.I32(count*e.tier.bytes), y)
		e.SUBQ(operand.I32(count*e.lanes()), n)
		e.JGE(operand.LabelRef(again))
	}
	e.CMPQ(n, operand.I32(4*e.lanes()))
	e.JGE(operand.LabelRef(many))
	e.Label(single)
	e.SUBQ(operand.I32(e.lanes()), n)
	e.JL(operand.LabelRef(rest))
	loop(1)
	e.Label(rest)
	return func() {
		e.Label(many)
		begin()
		e.SUBQ(operand.I32(4*e.lanes()), n)
		loop(4)
		end()
		e.ADDQ(operand.I32(4*e.lanes()), n)
		e.JMP(operand.LabelRef(single))
	}
}

// axpy emits y ← y + a x, the end in halves as in ger, but of 16 bytes at most: memory
// of the heap is aligned to as much, and what lies across lines of the cache is late
// for the next that adds to it.
func (e *emitter) axpy() {
	n, x, y := e.param("n"), e.param("x"), e.param("y")
	a := e.vec()
	e.broadcast(e.paramAt("a"), a)
	long := e.forVectorsOf(n, x, y, func(v int) {
		sum := e.vec()
		e.load(e.at(y, v*e.lanes()), sum)
		e.fma(e.at(x, v*e.lanes()), a, sum)
		e.store(sum, e.at(y, v*e.lanes()))
	}, func() {}, func() {})
	rest := e.label("rest")
	e.TESTQ(operand.U32(e.lanes()-1), n)
	e.JNZ(operand.LabelRef(rest))
	e.VZEROUPPER()
	e.RET()
	e.Label(rest)
	e.addRest(16, n, x, []reg.VecVirtual{a}, strides{}, y)
	e.VZEROUPPER()
	e.RET()
	long()
}

// addRest is p_r ← p_r + a_r y for as many elements as the lower bits of n count, fewer
// than a vector, in pieces of at most so many bytes. It advances y and p.
func (e *emitter) addRest(most int, n, y reg.GPVirtual, a []reg.VecVirtual, rows strides, p reg.GPVirtual) {
	for part := e.lanes() / 2; part > 0; part /= 2 {
		skip := e.label("skip")
		e.TESTQ(operand.U32(part), n)
		e.JZ(operand.LabelRef(skip))
		piece := min(part, most/e.size())
		for done := 0; done < part; done += piece {
			e.addParts(piece, done, y, a, rows, p)
		}
		if part > 1 {
			e.ADDQ(operand.U8(part*e.size()), y)
			e.ADDQ(operand.U8(part*e.size()), p)
		}
		e.Label(skip)
	}
}

// addParts is p_r ← p_r + a_r y for count elements from one on, at most a vector.
func (e *emitter) addParts(count, from int, y reg.Register, a []reg.VecVirtual, rows strides, p reg.Register) {
	bytes := count * e.size()
	other := e.short(max(bytes, 16))
	e.movePart(count, e.at(y, from), other)
	for r, by := range a {
		switch other.Size() {
		case 16:
			by = by.AsX().(reg.VecVirtual)
		case 32:
			by = by.AsY().(reg.VecVirtual)
		}
		sum := e.short(max(bytes, 16))
		at := rows.row(p, r).Offset(from * e.size())
		e.movePart(count, at, sum)
		e.fma(other, by, sum)
		e.movePart(count, sum, at)
	}
}

// movePart loads or stores count elements; those beside them are zero when loaded.
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

// fmaPart is acc ← acc + a·b for count elements of memory; those of b beside them
// are zero.
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
