package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

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

// rowStrides returns the strides of a matrix with contiguous rows.
func (e *emitter) rowStrides(name string) strides {
	return e.stridesOf(e.stride(name))
}

// stridesOf returns the strides of a matrix with contiguous rows that are rs bytes apart.
func (e *emitter) stridesOf(rs reg.GPVirtual) strides {
	s := strides{rs: rs, rs3: e.GP64()}
	e.LEAQ(operand.Mem{Base: s.rs, Index: s.rs, Scale: 2}, s.rs3)
	return s
}

// A rowOperand holds the rows from p on, and the vector x by which they are multiplied.
type rowOperand struct {
	rows strides
	p, x reg.GPVirtual
}

// products returns, in adjacent lanes, Σ xᵀz_r over the operands for each r < count. The rows z_r have n elements.
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

// addProducts adds the products of the rows' tails to sums, one vector per row. A tail is shorter than a vector; the
// lower bits of n are its length. The code processes the tail in parts of half a vector, a quarter, and so on, and
// folds the sums to the length of the part. It loads nothing beyond the rows, because a load that overlaps a recent
// store stalls.
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
			v := e.vecOfBytes(int(sums[0].Size()))
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

// foldedUnlessFew returns the sum of the two halves of each vector of v. If the rows have fewer than minElements
// elements, all elements of v are 0, and the code skips the additions.
func (e *emitter) foldedUnlessFew(v []reg.VecVirtual, minElements int) []reg.VecVirtual {
	few, end := e.label("few"), e.label("folded")
	e.CMPQ(e.paramAt("n"), operand.U8(minElements))
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

// folded returns the sum of the halves of a vector.
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

// sideBySide returns, in adjacent lanes, the sums over the lanes of up to four vectors of 16 bytes.
func (e *emitter) sideBySide(v []reg.VecVirtual) reg.VecVirtual {
	if len(v) == 1 {
		// Shuffles and additions are faster than horizontal additions.
		sum, upper := v[0], e.XMM()
		e.VUNPCKHPD(sum, sum, upper)
		e.add(upper, sum, sum)
		if !e.double() {
			e.VMOVSHDUP(sum, upper)
			e.add(upper, sum, sum)
		}
		return sum
	}
	last := v[len(v)-1]
	pairs := func(a, b reg.VecVirtual) reg.VecVirtual {
		sums := e.XMM()
		pick(e, e.VHADDPS, e.VHADDPD)(b, a, sums)
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

// storeSums emits y ← α s + β y for the first count ≤ 4 elements.
func (e *emitter) storeSums(s reg.VecVirtual, y reg.Register, count int) {
	alpha, beta, initial := e.vecOfBytes(int(s.Size())), e.vecOfBytes(int(s.Size())), e.vecOfBytes(int(s.Size()))
	e.broadcast(e.paramAt("alpha"), alpha)
	e.mul(s, alpha, s)
	overwrite := e.label("overwrite")
	e.jumpIfZero(e.paramAt("beta"), overwrite)
	e.broadcast(e.paramAt("beta"), beta)
	to := operand.Mem{Base: y}
	switch {
	case count == directRows:
		e.load(to, initial)
	case e.neon:
		e.loadMasked(columnMask{b: &columnBits{bits: operand.U32(1<<count - 1)}}, 0, to, initial)
	default:
		// The mask begins at element 4 − count of this array: count elements −1 and then zeros.
		table := e.constant("four", 2*directRows, func(i int) uint64 {
			if i < directRows {
				return 1<<64 - 1
			}
			return 0
		})
		mask := e.vecOfBytes(int(s.Size()))
		e.VMOVDQU(table.Offset((directRows-count)*e.size()), mask)
		pick(e, e.VMASKMOVPS, e.VMASKMOVPD)(to, mask, initial)
	}
	e.fma(initial, beta, s)
	e.Label(overwrite)
	// Store single elements: masked stores take longer, and loads that span several stores stall.
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

// gemvT emits y ← α Aᵀ x + β y by panels of columns, with separate sums of four rows.
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
			factor := e.vec()
			e.broadcast(e.at(x, r), factor)
			for v, s := range acc[r] {
				mem := rows.row(p, r)
				mem.Disp += v * e.tier.bytes
				e.fmaMasked(mask, v, mem, factor, s)
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
		e.jumpIfZero(e.paramAt("beta"), overwrite)
		beta := e.vec()
		e.broadcast(e.paramAt("beta"), beta)
		for v := range nv {
			initial := e.vec()
			e.loadMasked(mask, v, e.at(y, v*e.lanes()), initial)
			e.fma(initial, beta, acc[0][v])
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

// ger emits A ← A + α x yᵀ, four rows at a time. The tail of a row is stored in parts of half the length of a
// vector, a quarter and so on, because a masked store would delay loads of the memory after the tail.
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
