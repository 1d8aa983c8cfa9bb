package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// potrfDirect emits the factorization A = UᵀU on the upper triangle, four rows at a time: it subtracts the
// contribution of the rows above, factors the square on the diagonal, and solves for the remaining columns.
func (e *emitter) potrfDirect() {
	args := e.args()
	ld := e.field(args, offDirectLdc)
	e.scale(ld)
	// sumDirect reads the rows of U above the panel as columns of Uᵀ.
	s := strides{e.GP64(), e.GP64(), ld}
	e.MOVQ(operand.U32(e.size()), s.rs)
	e.MOVQ(operand.U32(3*e.size()), s.rs3)
	d, m := e.field(args, offDirectC), e.field(args, offDirectM)
	firstRow := e.GP64() // address of the element in the first row and in the column of d
	e.MOVQ(d, firstRow)
	inverses := e.AllocLocal(8 * directRows)
	fail := e.label("fail")
	e.forRows(m, func(rows int) {
		n, c, b := e.GP64(), e.GP64(), e.GP64()
		e.MOVQ(m, n)
		e.MOVQ(d, c)
		e.MOVQ(firstRow, b)
		// This is the panel on the diagonal. A panel of fewer than four rows is the last panel.
		if rows < directRows {
			e.factorPanel(args, rows, 1, s, firstRow, b, c, d, m, e.columnMaskOf(n, 1), inverses, fail)
			return
		}
		wide, narrow, after := e.label("wide"), e.label("narrow"), e.label("after")
		e.CMPQ(n, operand.U32(e.lanes()))
		e.JLE(operand.LabelRef(narrow))
		e.factorPanel(args, rows, e.nv, s, firstRow, b, c, d, m, e.columnMaskOf(e.atMost(n, e.nr()), e.nv), inverses, fail)
		e.SUBQ(operand.U32(e.nr()), n)
		e.JLE(operand.LabelRef(after))
		e.Label(wide)
		e.ADDQ(operand.U32(e.nr()*e.size()), b)
		e.ADDQ(operand.U32(e.nr()*e.size()), c)
		last := e.label("last")
		e.CMPQ(n, operand.U32(e.lanes()))
		e.JLE(operand.LabelRef(last))
		e.solvePanel(args, rows, e.nv, s, firstRow, b, c, d, m, e.columnMaskOf(e.atMost(n, e.nr()), e.nv), inverses)
		e.SUBQ(operand.U32(e.nr()), n)
		e.JG(operand.LabelRef(wide))
		e.JMP(operand.LabelRef(after))
		e.Label(last)
		e.solvePanel(args, rows, 1, s, firstRow, b, c, d, m, e.columnMaskOf(n, 1), inverses)
		e.JMP(operand.LabelRef(after))
		e.Label(narrow)
		e.factorPanel(args, rows, 1, s, firstRow, b, c, d, m, e.columnMaskOf(n, 1), inverses, fail)
		e.Label(after)
		e.LEAQ(operand.Mem{Base: d, Index: ld, Scale: 4}, d)
		e.ADDQ(operand.U32(directRows*e.size()), d)
		e.ADDQ(operand.U32(directRows*e.size()), firstRow)
	})
	e.MOVQ(operand.U32(0), operand.Mem{Base: args, Disp: offDirectFlag})
	e.VZEROUPPER()
	e.RET()
	e.Label(fail)
	// m counts the rows from the invalid pivot to the end.
	order := e.field(args, offDirectM)
	e.SUBQ(m, order)
	e.INCQ(order)
	e.MOVQ(order, operand.Mem{Base: args, Disp: offDirectFlag})
	e.VZEROUPPER()
	e.RET()
}

// atMost returns the smaller of n and limit.
func (e *emitter) atMost(n reg.GPVirtual, limit int) reg.GPVirtual {
	smaller, bound := e.GP64(), e.GP64()
	e.MOVQ(n, smaller)
	e.MOVQ(operand.U32(limit), bound)
	e.CMPQ(smaller, bound)
	e.CMOVQGT(bound, smaller)
	return smaller
}

// reduced returns the rows of A from c on, minus the products of the rows of U above. The columns of Uᵀ begin at
// firstRow, and the rows of U at b.
func (e *emitter) reduced(args reg.Register, rows, nv int, s strides, firstRow, b, c, m reg.GPVirtual, mask columnMask) [][]reg.VecVirtual {
	acc := e.tileOf(rows, nv)
	row := e.GP64()
	e.MOVQ(c, row)
	for r := range acc {
		for v, x := range acc[r] {
			e.loadMasked(mask, v, e.at(row, v*e.lanes()), x)
		}
		if r+1 < rows {
			e.ADDQ(s.cs, row)
		}
	}
	pa, pb, k := e.GP64(), e.GP64(), e.field(args, offDirectM)
	e.MOVQ(firstRow, pa)
	e.MOVQ(b, pb)
	e.SUBQ(m, k)
	e.sumDirect(false, acc, s, pa, pb, k, s.cs, mask)
	return acc
}

// factorPanel emits the factorization of the panel whose first element, at c, is on the diagonal of A. If a pivot is
// not positive and finite, the code stores it, sets m to the number of rows from this pivot on, and jumps to fail.
//
// Elimination divides by the pivot, not by its square root, so that the next pivot need not wait for the square root.
func (e *emitter) factorPanel(args reg.Register, rows, nv int, s strides, firstRow, b, c, d, m reg.GPVirtual, mask columnMask, inverses operand.Mem, fail string) {
	acc := e.reduced(args, rows, nv, s, firstRow, b, c, m, mask)
	row := e.GP64()
	e.MOVQ(c, row)
	for r := range acc {
		pivot := e.lane(acc[r][0], r)
		pivotAddress, inverseAddress := e.at(row, r), inverses
		inverseAddress.Disp += r * e.size()
		rightMask := e.rightOf(mask, r)
		special, join := e.label("special"), e.label("join")
		from, to := e.normal()
		e.jumpUnlessWithin(pivot, from, to, special)

		root, overRoot, overPivot, factor := e.scalar(), e.scalar(), e.vec(), e.vec()
		e.scalarSqrt(pivot, root)
		e.scalarInverse(root, overRoot)
		e.broadcast(overRoot, factor)
		e.storeScalar(overRoot, inverseAddress)
		scaled := e.vecs(nv)
		for v, x := range acc[r] {
			e.mul(x, factor, scaled[v])
		}
		for v, x := range scaled {
			e.storeMasked(rightMask, v, x, e.at(row, v*e.lanes()))
		}
		e.storeScalar(root, pivotAddress)
		if r+1 < rows {
			inverse := e.scalar()
			e.scalarInverse(pivot, inverse)
			e.broadcast(inverse, overPivot)
		}
		e.JMP(operand.LabelRef(join))

		e.Label(special) // the pivot is invalid, or its inverse may be out of range
		e.storeScalar(pivot.AsX().(reg.VecVirtual), pivotAddress)
		e.SUBQ(operand.U32(r), m)
		from, to = e.finite()
		e.jumpUnlessWithin(pivot, from, to, fail)
		e.ADDQ(operand.U32(r), m)
		e.scalarSqrt(pivot, root)
		e.scalarInverse(root, overRoot)
		e.broadcast(overRoot, factor)
		e.storeScalar(overRoot, inverseAddress)
		for v, x := range acc[r] {
			e.mul(x, factor, x)
			e.storeMasked(rightMask, v, x, e.at(row, v*e.lanes()))
		}
		e.storeScalar(root, pivotAddress)
		if r+1 < rows {
			e.broadcast(e.constant("unit", 1, func(int) uint64 { return e.bits(1) }), overPivot)
		}

		e.Label(join)
		for laterRow := r + 1; laterRow < rows; laterRow++ {
			factor := e.lane(acc[r][0], laterRow)
			e.mul(factor, overPivot, factor)
			for v := range acc[laterRow] {
				e.fnma231(factor, acc[r][v], acc[laterRow][v])
			}
		}
		if r+1 < rows {
			e.ADDQ(s.cs, row)
		}
	}
}

// jumpUnlessWithin jumps unless the bits of the first element of x, as an integer, are in [from, to).
func (e *emitter) jumpUnlessWithin(x reg.VecVirtual, from, to uint64, label string) {
	bits := e.GP64()
	name := fmt.Sprintf("%x", from)
	if e.double() {
		e.VMOVQ(x.AsX(), bits)
		e.SUBQ(e.constant("from"+name, 1, func(int) uint64 { return from }), bits)
		e.CMPQ(bits, e.constant("within"+name, 1, func(int) uint64 { return to - from }))
	} else {
		e.VMOVD(x.AsX(), bits.As32())
		e.SUBL(operand.U32(from), bits.As32())
		e.CMPL(bits.As32(), operand.U32(to-from))
	}
	e.JCC(operand.LabelRef(label))
}

// normal returns the range, as integers, of the positive normal numbers whose inverse is normal; finite returns the
// range of all finite positive numbers.
func (e *emitter) normal() (from, to uint64) {
	if e.double() {
		return 1 << 52, 2045 << 52
	}
	return 1 << 23, 253 << 23
}

func (e *emitter) finite() (from, to uint64) {
	if e.double() {
		return 1, 0x7ff << 52
	}
	return 1, 0xff << 23
}

// The following functions are scalar operations on the first element of a register.

func (e *emitter) scalar() reg.VecVirtual { return e.XMM() }

func (e *emitter) scalarSqrt(x, root reg.VecVirtual) {
	pick(e, e.VSQRTSS, e.VSQRTSD)(x.AsX(), x.AsX(), root)
}

// scalarInverse emits inverse ← 1/x; x may be in memory.
func (e *emitter) scalarInverse(x operand.Op, inverse reg.VecVirtual) {
	if v, ok := x.(reg.VecVirtual); ok {
		x = v.AsX()
	}
	one := e.constant("unit", 1, func(int) uint64 { return e.bits(1) })
	pick(e, e.VMOVSS, e.VMOVSD)(one, inverse)
	pick(e, e.VDIVSS, e.VDIVSD)(x, inverse, inverse)
}

func (e *emitter) storeScalar(x reg.VecVirtual, to operand.Mem) {
	pick(e, e.VMOVSS, e.VMOVSD)(x, to)
}

// solvePanel emits the solution for a panel to the right of the factored square at d.
func (e *emitter) solvePanel(args reg.Register, rows, nv int, s strides, firstRow, b, c, d, m reg.GPVirtual, mask columnMask, inverses operand.Mem) {
	acc := e.reduced(args, rows, nv, s, firstRow, b, c, m, mask)
	row, pivot := e.GP64(), e.GP64()
	e.MOVQ(c, row)
	e.MOVQ(d, pivot)
	for r := range acc {
		inverse := e.vec()
		inverseAddress := inverses
		inverseAddress.Disp += r * e.size()
		e.broadcast(inverseAddress, inverse)
		for v, x := range acc[r] {
			e.mul(x, inverse, x)
			e.storeMasked(mask, v, x, e.at(row, v*e.lanes()))
		}
		for laterRow := r + 1; laterRow < rows; laterRow++ {
			e.addProduct(false, e.at(pivot, laterRow), acc[r], acc[laterRow])
		}
		if r+1 < rows {
			e.ADDQ(s.cs, row)
			e.ADDQ(s.cs, pivot)
		}
	}
}

// rightOf returns a copy of the mask that omits the first r < 4 columns.
func (e *emitter) rightOf(mask columnMask, r int) columnMask {
	if r == 0 {
		return mask
	}
	m := columnMask{}
	if mask.b != nil {
		bits := e.GP64()
		e.MOVQ(mask.b.bits, bits)
		e.ANDQ(operand.I32(-1<<r), bits)
		return columnMask{b: &columnBits{bits: bits, anyStart: true}}
	}
	if e.masks {
		bits, k := e.GP32(), e.K()
		e.MOVL(operand.U32(0xffff<<r&0xffff), bits)
		e.KMOVW(bits, k)
		e.KANDW(mask.k[0], k, k)
		m.k = append([]reg.OpmaskVirtual{k}, mask.k[1:]...)
		return m
	}
	x := e.vec()
	name := []string{"", "but1", "but2", "but3"}[r]
	e.VANDPS(e.constant(name, e.lanes(), func(i int) uint64 {
		if i < r {
			return 0
		}
		return 1<<64 - 1
	}), mask.v[0], x)
	m.v = append([]reg.VecVirtual{x}, mask.v[1:]...)
	return m
}

// lane returns a vector with lane i < 4 of x in all lanes.
func (e *emitter) lane(x reg.VecVirtual, i int) reg.VecVirtual {
	to := e.vec()
	if e.double() && !e.masks {
		e.VPERMPD(operand.U8(i*0x55), x, to)
		return to
	}
	index := e.vec()
	e.broadcast(e.constant(lanes[i], 1, func(int) uint64 { return pick(e, uint64(i)<<32, uint64(i)) }), index)
	if e.double() {
		e.VPERMPD(x, index, to)
	} else {
		e.VPERMPS(x, index, to)
	}
	return to
}

// lanes lists the names of the constants that select lanes.
var lanes = [directRows]string{"lane0", "lane1", "lane2", "lane3"}
