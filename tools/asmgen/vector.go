package main

import (
	"fmt"
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

// A rowOperand is rows from p on, and the vector x that they are multiplied by.
type rowOperand struct {
	rows strides
	p, x reg.GPVirtual
}

// addProducts adds to sums, vectors of which each belongs to a row, the products of
// as many elements as the lower bits of n count, fewer than a vector: of vectors of
// half the length, a quarter and so on, while the sums are folded. Where the
// parameter n is less than a vector, several sums need not be there before. It loads
// nothing beside the rows: what is stored there would hold it up.
func (e *emitter) addProducts(sums []reg.VecVirtual, n reg.GPVirtual, operands []rowOperand) []reg.VecVirtual {
	for part := e.lanes() / 2; part > 0; part /= 2 {
		if bytes := part * e.size(); bytes >= 16 {
			if len(sums) == 1 {
				sums = []reg.VecVirtual{e.folded(sums[0])}
			} else {
				sums = e.foldedUnlessFew(sums, 2*part)
			}
		}
		skip := e.label("skip")
		e.TESTQ(operand.U32(part), n)
		e.JZ(operand.LabelRef(skip))
		for _, o := range operands {
			v := e.short(int(sums[0].Size()))
			e.movePart(part, operand.Mem{Base: o.x}, v)
			for r, s := range sums {
				e.fmaPart(part, o.rows.row(o.p, r), v, s)
			}
			if part > 1 {
				e.ADDQ(operand.U8(part*e.size()), o.x)
				e.ADDQ(operand.U8(part*e.size()), o.p)
			}
		}
		e.Label(skip)
	}
	return sums
}

// foldedUnlessFew is the sums of the halves, or zeros where there were fewer than
// least elements in all and so nothing has been added yet.
func (e *emitter) foldedUnlessFew(v []reg.VecVirtual, least int) []reg.VecVirtual {
	few, end := e.label("few"), e.label("folded")
	e.CMPQ(e.paramAt("n"), operand.U8(least))
	e.JL(operand.LabelRef(few))
	folded := make([]reg.VecVirtual, len(v))
	for i, x := range v {
		folded[i] = e.folded(x)
	}
	e.JMP(operand.LabelRef(end))
	e.Label(few)
	for _, x := range folded {
		e.VXORPS(x, x, x)
	}
	e.Label(end)
	return folded
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

// sideBySide is the sums of the lanes of up to four vectors of 16 bytes.
func (e *emitter) sideBySide(v []reg.VecVirtual) reg.VecVirtual {
	if len(v) == 1 {
		// Shuffles and additions take less than sums of neighbours do.
		sum, other := v[0], e.XMM()
		e.VUNPCKHPD(sum, sum, other)
		e.add(other, sum, sum)
		if !e.double() {
			e.VMOVSHDUP(sum, other)
			e.add(other, sum, sum)
		}
		return sum
	}
	last := v[len(v)-1]
	pairs := func(a, b reg.VecVirtual) reg.VecVirtual {
		sums := e.XMM()
		if e.double() {
			e.VHADDPD(b, a, sums)
		} else {
			e.VHADDPS(b, a, sums)
		}
		return sums
	}
	first := pairs(v[0], v[1])
	second := first
	if len(v) > 2 {
		second = pairs(v[2], last)
	}
	switch {
	case !e.double():
		return pairs(first, second)
	case len(v) <= 2:
		return first
	}
	sums := e.YMM()
	e.VINSERTF128(operand.U8(1), second, first.AsY(), sums)
	return sums
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

// gemv emits y ← α A x + β y, four rows of A at a time.
func (e *emitter) gemv() {
	m, a, y := e.param("m"), e.param("a"), e.param("y")
	rows := e.rowStrides("lda")
	e.forRows(m, func(count int) {
		n, p, x := e.param("n"), e.GP64(), e.param("x")
		e.MOVQ(a, p)
		e.storeSums(e.products(count, n, []rowOperand{{rows, p, x}}), y, count)
		if count == directRows {
			e.LEAQ(operand.Mem{Base: a, Index: rows.rs, Scale: 4}, a)
			e.ADDQ(operand.U8(directRows*e.size()), y)
		}
	})
	e.VZEROUPPER()
	e.RET()
}

// rowStrides is the strides of a matrix whose rows lie in one piece.
func (e *emitter) rowStrides(name string) strides {
	s := strides{rs: e.stride(name), rs3: e.GP64()}
	e.LEAQ(operand.Mem{Base: s.rs, Index: s.rs, Scale: 2}, s.rs3)
	return s
}

// products is the sums of the products of rows of n elements and vectors, side by
// side.
func (e *emitter) products(count int, n reg.GPVirtual, operands []rowOperand) reg.VecVirtual {
	acc := e.vecs(count)
	vector, end := e.label("vector"), e.label("rest")
	for _, s := range acc {
		e.zero(s)
	}
	e.SUBQ(operand.U8(e.lanes()), n)
	e.JL(operand.LabelRef(end))
	e.Label(vector)
	for _, o := range operands {
		v := e.vec()
		e.load(e.at(o.x, 0), v)
		for r, s := range acc {
			e.fma(o.rows.row(o.p, r), v, s)
		}
		e.ADDQ(operand.U8(e.tier.bytes), o.x)
		e.ADDQ(operand.U8(e.tier.bytes), o.p)
	}
	e.SUBQ(operand.U8(e.lanes()), n)
	e.JGE(operand.LabelRef(vector))
	e.Label(end)
	return e.sideBySide(e.addProducts(acc, n, operands))
}

// folded is the sum of the halves of a vector.
func (e *emitter) folded(x reg.VecVirtual) reg.VecVirtual {
	if x.Size() == 64 {
		upper := e.YMM()
		e.VEXTRACTF64X4(operand.U8(1), x, upper)
		e.add(upper, x.AsY(), upper)
		return upper
	}
	upper := e.XMM()
	e.VEXTRACTF128(operand.U8(1), x, upper)
	e.add(upper, x.AsX(), upper)
	return upper
}

// storeSums is y ← α s + β y for the first count ≤ 4 elements.
func (e *emitter) storeSums(s reg.VecVirtual, y reg.Register, count int) {
	alpha, beta, old := e.short(int(s.Size())), e.short(int(s.Size())), e.short(int(s.Size()))
	e.broadcast(e.paramAt("alpha"), alpha)
	e.mul(s, alpha, s)
	overwrite := e.label("overwrite")
	e.jumpIfParamZero("beta", overwrite)
	e.broadcast(e.paramAt("beta"), beta)
	to := operand.Mem{Base: y}
	if count == directRows {
		e.load(to, old)
	} else {
		// Four times −1 and four times 0, entered so that count of the former are left.
		table := e.constant("four", 2*directRows, func(i int) uint64 {
			if i < directRows {
				return 1<<64 - 1
			}
			return 0
		})
		mask := e.short(int(s.Size()))
		e.VMOVDQU(table.Offset((directRows-count)*e.size()), mask)
		if e.double() {
			e.VMASKMOVPD(to, mask, old)
		} else {
			e.VMASKMOVPS(to, mask, old)
		}
	}
	e.fma(old, beta, s)
	e.Label(overwrite)
	// Stores of single elements: masked ones take longer, and what is stored in parts
	// is loaded late.
	e.storeFirst(s, to, count)
}

// storeFirst stores the first count ≤ 4 elements of a short vector.
func (e *emitter) storeFirst(s reg.VecVirtual, to operand.Mem, count int) {
	if count == directRows {
		e.store(s, to)
		return
	}
	pair := s.AsX()
	if e.double() {
		switch count {
		case 1:
			e.VMOVSD(pair, to)
		case 2:
			e.VMOVUPD(pair, to)
		case 3:
			e.VMOVUPD(pair, to)
			third := e.XMM()
			e.VEXTRACTF128(operand.U8(1), s, third)
			e.VMOVSD(third, to.Offset(16))
		}
		return
	}
	switch count {
	case 1:
		e.VMOVSS(pair, to)
	case 2:
		e.VMOVLPS(pair, to)
	case 3:
		e.VMOVLPS(pair, to)
		e.VEXTRACTPS(operand.U8(2), pair, to.Offset(8))
	}
}

// jumpIfParamZero jumps when a parameter of the element type is 0, of either sign.
func (e *emitter) jumpIfParamZero(name, to string) {
	bits := e.GP64()
	if e.double() {
		e.MOVQ(e.paramAt(name), bits)
		e.SHLQ(operand.U8(1), bits)
	} else {
		e.MOVL(e.paramAt(name), bits.As32())
		e.SHLL(operand.U8(1), bits.As32())
	}
	e.JZ(operand.LabelRef(to))
}

// gemvT emits y ← α Aᵀ x + β y by panels of columns. Four rows have sums of their
// own, so that none waits for the one before.
func (e *emitter) gemvT() {
	y, n, rows := e.param("y"), e.param("n"), e.rowStrides("lda")
	panel := e.param("a")
	e.forColumns(n, func(mask columnMask, nv int) {
		acc := e.tileOf(directRows, nv)
		for r := range acc {
			for _, s := range acc[r] {
				e.zero(s)
			}
		}
		p, x, m := e.GP64(), e.param("x"), e.param("m")
		e.MOVQ(panel, p)
		add := func(r int) {
			by := e.vec()
			e.broadcast(e.at(x, r), by)
			for v, s := range acc[r] {
				at := rows.row(p, r)
				at.Disp += v * e.tier.bytes
				e.fmaMasked(mask, v, at, by, s)
			}
		}
		four, tail, done := e.label("four"), e.label("tail"), e.label("done")
		e.SUBQ(operand.U8(directRows), m)
		e.JL(operand.LabelRef(tail))
		e.Label(four)
		for r := range directRows {
			add(r)
		}
		e.LEAQ(operand.Mem{Base: p, Index: rows.rs, Scale: 4}, p)
		e.ADDQ(operand.U8(directRows*e.size()), x)
		e.SUBQ(operand.U8(directRows), m)
		e.JGE(operand.LabelRef(four))
		e.Label(tail)
		for r := range directRows - 1 {
			e.CMPQ(m, operand.I8(r-directRows))
			e.JLE(operand.LabelRef(done))
			add(r)
		}
		e.Label(done)
		alpha := e.vec()
		e.broadcast(e.paramAt("alpha"), alpha)
		for v := range nv {
			e.add(acc[0][v], acc[1][v], acc[0][v])
			e.add(acc[2][v], acc[3][v], acc[2][v])
			e.add(acc[0][v], acc[2][v], acc[0][v])
			e.mul(acc[0][v], alpha, acc[0][v])
		}
		overwrite := e.label("overwrite")
		e.jumpIfParamZero("beta", overwrite)
		beta := e.vec()
		e.broadcast(e.paramAt("beta"), beta)
		for v := range nv {
			old := e.vec()
			e.loadMasked(mask, v, e.at(y, v*e.lanes()), old)
			e.fma(old, beta, acc[0][v])
		}
		e.Label(overwrite)
		for v := range nv {
			e.storeMasked(mask, v, acc[0][v], e.at(y, v*e.lanes()))
		}
	}, func() {
		e.ADDQ(operand.U32(e.nr()*e.size()), panel)
		e.ADDQ(operand.U32(e.nr()*e.size()), y)
	})
}

// ger emits A ← A + α x yᵀ, four rows at a time. The ends of rows are stored as
// vectors of half the length, a quarter and so on: what lies behind a store under a
// mask could not be loaded before the store is done, and there the next row lies.
func (e *emitter) ger() {
	m, a, x, rows := e.param("m"), e.param("a"), e.param("x"), e.rowStrides("lda")
	alpha := e.vec()
	e.broadcast(e.paramAt("alpha"), alpha)
	e.forRows(m, func(count int) {
		factors := e.vecs(count)
		for r, f := range factors {
			e.broadcast(e.at(x, r), f)
			e.mul(f, alpha, f)
		}
		p, y, n := e.GP64(), e.param("y"), e.param("n")
		e.MOVQ(a, p)
		vector, tail := e.label("vector"), e.label("tail")
		e.SUBQ(operand.U8(e.lanes()), n)
		e.JL(operand.LabelRef(tail))
		e.Label(vector)
		e.addParts(e.lanes(), 0, y, factors, rows, p)
		e.ADDQ(operand.U8(e.tier.bytes), y)
		e.ADDQ(operand.U8(e.tier.bytes), p)
		e.SUBQ(operand.U8(e.lanes()), n)
		e.JGE(operand.LabelRef(vector))
		e.Label(tail)
		e.addRest(32, n, y, factors, rows, p)
		if count == directRows {
			e.LEAQ(operand.Mem{Base: a, Index: rows.rs, Scale: 4}, a)
			e.ADDQ(operand.U8(directRows*e.size()), x)
		}
	})
	e.VZEROUPPER()
	e.RET()
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

// syr2k emits C ← α (A Bᵀ + B Aᵀ) + β C row by row of C, four dot products at a time,
// each of them of two pairs of rows.
func (e *emitter) syr2k() {
	operands := [2]rank2Operand{e.rank2Operand("a"), e.rank2Operand("b")}
	m, c, step := e.AllocLocal(8), e.AllocLocal(8), e.AllocLocal(8)
	more := e.AllocLocal(8) // rows of A in the next row of C less those in this one
	lower, begin, row := e.label("lower"), e.label("begin"), e.label("row")
	e.MOVQ(e.param("c"), c)
	ldc := e.stride("ldc")
	flag, rows := e.GP8(), e.param("m")
	count := e.AllocLocal(8)
	e.MOVQ(rows, count)
	e.Load(e.Param("lower"), flag)
	e.TESTB(flag, flag)
	e.JNZ(operand.LabelRef(lower))
	// The next row begins a column later, and one row of A and B later.
	e.MOVQ(rows, m)
	e.MOVQ(operand.I32(-1), more)
	e.ADDQ(operand.U8(e.size()), ldc)
	for _, o := range operands {
		e.MOVQ(o.rows.rs, o.later)
	}
	e.JMP(operand.LabelRef(begin))
	e.Label(lower)
	e.MOVQ(operand.I32(1), m)
	e.MOVQ(operand.I32(1), more)
	for _, o := range operands {
		e.MOVQ(operand.I32(0), o.later)
	}
	e.Label(begin)
	e.MOVQ(ldc, step)
	e.Label(row)
	y, rest := e.GP64(), e.GP64()
	e.MOVQ(c, y)
	e.MOVQ(m, rest)
	for _, o := range operands {
		e.copyLocal(o.first, o.block)
	}
	e.forRows(rest, func(count int) {
		n, products := e.param("n"), make([]rowOperand, len(operands))
		for i, o := range operands {
			p, x := e.GP64(), e.GP64()
			e.MOVQ(o.block, p)
			e.MOVQ(operands[1-i].row, x) // of the other matrix
			products[i] = rowOperand{o.rows, p, x}
		}
		e.storeSums(e.products(count, n, products), y, count)
		if count == directRows {
			for _, o := range operands {
				next := e.GP64()
				e.MOVQ(o.block, next)
				e.LEAQ(operand.Mem{Base: next, Index: o.rows.rs, Scale: 4}, next)
				e.MOVQ(next, o.block)
			}
			e.ADDQ(operand.U8(directRows*e.size()), y)
		}
	})
	for _, o := range operands {
		e.ADDQ(o.rows.rs, o.row)
		e.addLocal(o.later, o.first)
	}
	e.addLocal(step, c)
	e.addLocal(more, m)
	e.DECQ(count)
	e.JNZ(operand.LabelRef(row))
	e.VZEROUPPER()
	e.RET()
}

// A rank2Operand is one of the matrices of syr2k.
type rank2Operand struct {
	rows  strides
	row   operand.Mem // the row that C's is the products with
	first operand.Mem // the first of those that it is multiplied by
	block operand.Mem // the first of four of them
	later operand.Mem // how much later first is for the next row
}

func (e *emitter) rank2Operand(name string) rank2Operand {
	o := rank2Operand{row: e.AllocLocal(8), first: e.AllocLocal(8), block: e.AllocLocal(8), later: e.AllocLocal(8)}
	o.rows = e.rowStrides("ld" + name)
	at := e.param(name)
	e.MOVQ(at, o.row)
	e.MOVQ(at, o.first)
	return o
}

// copyLocal and addLocal are to ← from and to ← to + from in memory.
func (e *emitter) copyLocal(from, to operand.Mem) {
	r := e.GP64()
	e.MOVQ(from, r)
	e.MOVQ(r, to)
}

func (e *emitter) addLocal(from, to operand.Mem) {
	r := e.GP64()
	e.MOVQ(from, r)
	e.ADDQ(r, to)
}

// trsv emits x ← L⁻¹ x for a small lower triangle in scalars, four rows at a time: what
// one unknown costs is the latency of a multiplication and an addition, and vectors
// would not shorten that. The inverses of the diagonal are there before they are
// needed.
func (e *emitter) trsv() {
	n, a, x := e.param("n"), e.param("a"), e.param("x")
	rs, cs, inc := e.stride("ars"), e.stride("acs"), e.stride("incX")
	rows := strides{rs: rs, rs3: e.GP64()}
	e.LEAQ(operand.Mem{Base: rs, Index: rs, Scale: 2}, rows.rs3)
	done, top := e.GP64(), e.GP64() // the unknowns that are known, and the first of them
	e.XORQ(done, done)
	e.MOVQ(x, top)
	e.forRows(n, func(count int) {
		p := e.GP64()
		e.MOVQ(a, p)
		sums := e.scalars4(count)
		at := e.GP64()
		e.MOVQ(x, at)
		for r, s := range sums {
			e.loadScalar(operand.Mem{Base: at}, s)
			if r+1 < count {
				e.ADDQ(inc, at)
			}
		}
		e.subtractKnown(sums, rows, p, cs, top, inc, done)
		e.solveKnown(sums, rows, p, cs, x, inc)
		if count == directRows {
			e.LEAQ(operand.Mem{Base: a, Index: rs, Scale: 4}, a)
			e.LEAQ(operand.Mem{Base: x, Index: inc, Scale: 4}, x)
			e.ADDQ(operand.U8(directRows), done)
		}
	})
	e.RET()
}

// scalars4 is count registers for scalars.
func (e *emitter) scalars4(count int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, count)
	for i := range v {
		v[i] = e.scalar()
	}
	return v
}

// subtractKnown takes the products of rows from p on with the known unknowns, a
// multiple of four of them, from the sums, by turns in two sums for each row. It
// leaves p at the column after them.
func (e *emitter) subtractKnown(sums []reg.VecVirtual, rows strides, p, cs, top, inc, done reg.GPVirtual) {
	others := e.scalars4(len(sums))
	for _, s := range others {
		e.VXORPS(s, s, s)
	}
	known, left := e.GP64(), e.GP64()
	loop, end := e.label("known"), e.label("subtracted")
	e.MOVQ(top, known)
	e.MOVQ(done, left)
	e.SUBQ(operand.U8(2), left)
	e.JL(operand.LabelRef(end))
	e.Label(loop)
	for _, to := range [][]reg.VecVirtual{sums, others} {
		v := e.scalar()
		e.loadScalar(operand.Mem{Base: known}, v)
		for r, s := range to {
			e.scalarFnma(rows.row(p, r), v, s)
		}
		e.ADDQ(inc, known)
		e.ADDQ(cs, p)
	}
	e.SUBQ(operand.U8(2), left)
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
	flag, at := e.GP8(), e.GP64()
	e.Load(e.Param("unit"), flag)
	e.TESTB(flag, flag)
	e.JNZ(operand.LabelRef(unit))
	e.MOVQ(p, at)
	for r, inverse := range inverses {
		e.jumpUnlessInvertible(rows.row(at, r), slow)
		e.scalarInverse(rows.row(at, r), inverse)
		if r+1 < len(inverses) {
			e.ADDQ(cs, at)
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
		for below := r + 1; below < len(sums); below++ {
			e.scalarFnma(rows.row(at, below), sums[r], sums[below])
		}
		if r+1 < len(sums) {
			e.ADDQ(cs, at)
			e.ADDQ(inc, to)
		}
	}
	e.MOVQ(p, at)
	e.MOVQ(x, to)
	for r := range sums {
		column(r, func(v reg.VecVirtual) { e.scalarMul(inverses[r], v) })
	}
	e.JMP(operand.LabelRef(end))
	e.Label(slow) // an inverse may be out of range
	e.MOVQ(p, at)
	e.MOVQ(x, to)
	for r := range sums {
		column(r, func(v reg.VecVirtual) { e.scalarDiv(rows.row(at, r), v) })
	}
	e.Label(end)
}

// jumpUnlessInvertible jumps unless a number and its inverse are normal.
func (e *emitter) jumpUnlessInvertible(x operand.Mem, label string) {
	from, to := e.normal()
	bits := e.GP64()
	if e.double() {
		e.MOVQ(x, bits)
		e.ADDQ(bits, bits) // without the sign
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
	if e.double() {
		e.VMOVSD(from, to)
		return
	}
	e.VMOVSS(from, to)
}

// scalarFnma is acc ← acc − a·b.
func (e *emitter) scalarFnma(a operand.Mem, b, acc reg.VecVirtual) {
	if e.double() {
		e.VFNMADD231SD(a, b, acc)
		return
	}
	e.VFNMADD231SS(a, b, acc)
}

func (e *emitter) scalarAdd(a, to reg.VecVirtual) {
	if e.double() {
		e.VADDSD(a, to, to)
		return
	}
	e.VADDSS(a, to, to)
}

func (e *emitter) scalarMul(a, to reg.VecVirtual) {
	if e.double() {
		e.VMULSD(a, to, to)
		return
	}
	e.VMULSS(a, to, to)
}

func (e *emitter) scalarDiv(by operand.Mem, to reg.VecVirtual) {
	if e.double() {
		e.VDIVSD(by, to, to)
		return
	}
	e.VDIVSS(by, to, to)
}
