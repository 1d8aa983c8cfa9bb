package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// forPanels emits body for each panel of columns of X, which begins at the address in panel.
func (e *emitter) forPanels(body func(args reg.Register, s strides, ldc reg.GPVirtual, panel operand.Mem, mask columnMask, nv int)) {
	args := e.args()
	s := e.strides(args)
	ldc := e.field(args, offDirectLdc)
	e.scale(ldc)
	n := e.field(args, offDirectN)
	panel := e.AllocLocal(8)
	e.copyField(args, offDirectC, panel)
	e.forColumns(n, func(mask columnMask, nv int) {
		body(args, s, ldc, panel, mask, nv)
	}, func() {
		e.ADDQ(operand.U32(e.nr()*e.size()), panel)
	})
}

// trsmDirect emits X ← α L⁻¹ X: for each group of four rows, it subtracts the contribution of the rows above and
// then solves with the 4 × 4 block on the diagonal.
func (e *emitter) trsmDirect() {
	e.forPanels(func(args reg.Register, s strides, ldc reg.GPVirtual, panel operand.Mem, mask columnMask, nv int) {
		a, c, m := e.field(args, offDirectA), e.GP64(), e.field(args, offDirectM)
		e.MOVQ(panel, c)
		e.forRows(m, func(rows int) {
			acc := e.tileOf(rows, nv)
			alpha := e.vec()
			e.broadcast(operand.Mem{Base: args, Disp: offDirectAlpha}, alpha)
			row := e.GP64()
			e.MOVQ(c, row)
			for r := range acc {
				for v, x := range acc[r] {
					e.loadMasked(mask, v, e.at(row, v*e.lanes()), x)
					e.mul(x, alpha, x)
				}
				if r+1 < rows {
					e.ADDQ(ldc, row)
				}
			}
			pa, pb, k := e.GP64(), e.GP64(), e.field(args, offDirectM)
			e.MOVQ(a, pa)
			e.MOVQ(panel, pb)
			e.SUBQ(m, k) // k is now the number of rows above this group
			e.sumDirect(false, acc, s, pa, pb, k, ldc, mask)
			for r := range acc {
				e.divideRow(args, s.row(pa, r), acc[r])
				for v, x := range acc[r] {
					e.storeMasked(mask, v, x, e.at(c, v*e.lanes()))
				}
				for laterRow := r + 1; laterRow < rows; laterRow++ {
					e.addProduct(false, s.row(pa, laterRow), acc[r], acc[laterRow])
				}
				e.ADDQ(s.cs, pa)
				e.ADDQ(ldc, c)
			}
			if rows == directRows {
				e.LEAQ(operand.Mem{Base: a, Index: s.rs, Scale: 4}, a)
			}
		})
	})
}

// divideRow divides x by the element d of the diagonal. If Flag is set, the diagonal is 1 and nothing is divided. The
// code multiplies by 1/d, or divides if d is 0 or subnormal.
func (e *emitter) divideRow(args reg.Register, d operand.Mem, x []reg.VecVirtual) {
	divide, done := e.label("divide"), e.label("divided")
	e.CMPQ(operand.Mem{Base: args, Disp: offDirectFlag}, operand.U8(0))
	e.JNE(operand.LabelRef(done))
	bits, divisor := e.GP64(), e.vec()
	// The exponent bits are zero if the number is zero or subnormal.
	if e.double() {
		e.MOVQ(d, bits)
		e.SHLQ(operand.U8(1), bits)
		e.SHRQ(operand.U8(53), bits)
	} else {
		e.MOVL(d, bits.As32())
		e.SHLL(operand.U8(1), bits.As32())
		e.SHRL(operand.U8(24), bits.As32())
	}
	e.JZ(operand.LabelRef(divide))
	s := e.scalar()
	e.scalarInverse(d, s)
	e.broadcast(s, divisor)
	for v := range x {
		e.mul(x[v], divisor, x[v])
	}
	e.JMP(operand.LabelRef(done))
	e.Label(divide)
	e.broadcast(d, divisor)
	for v := range x {
		e.div(x[v], divisor, x[v])
	}
	e.Label(done)
}

// trmmDirect emits X ← α L X, from the last row on.
func (e *emitter) trmmDirect() {
	e.forPanels(func(args reg.Register, s strides, ldc reg.GPVirtual, panel operand.Mem, mask columnMask, nv int) {
		a, c, m := e.field(args, offDirectA), e.GP64(), e.field(args, offDirectM)
		offset := e.GP64()
		e.MOVQ(panel, c)
		e.MOVQ(m, offset)
		e.IMULQ(ldc, offset)
		e.ADDQ(offset, c)
		e.MOVQ(m, offset)
		e.IMULQ(s.rs, offset)
		e.ADDQ(offset, a)
		e.forRows(m, func(rows int) {
			for range rows {
				e.SUBQ(ldc, c)
				e.SUBQ(s.rs, a)
			}
			acc := e.tileOf(rows, nv)
			for r := range acc {
				for v := range acc[r] {
					e.zero(acc[r][v])
				}
			}
			pa, pb, k := e.GP64(), e.GP64(), e.GP64()
			e.MOVQ(a, pa)
			e.MOVQ(panel, pb)
			e.MOVQ(m, k)
			e.SUBQ(operand.U32(rows), k) // k is now the number of rows above this group
			e.sumDirect(true, acc, s, pa, pb, k, ldc, mask)
			for p := range rows { // sumDirect has advanced pb to the rows of this group
				b := e.vecs(nv)
				for v := range b {
					e.loadMasked(mask, v, e.at(pb, v*e.lanes()), b[v])
				}
				e.addDiagonal(args, s.row(pa, p), b, acc[p])
				for r := p + 1; r < rows; r++ {
					e.addProduct(true, s.row(pa, r), b, acc[r])
				}
				e.ADDQ(s.cs, pa)
				e.ADDQ(ldc, pb)
			}
			alpha := e.vec()
			e.broadcast(operand.Mem{Base: args, Disp: offDirectAlpha}, alpha)
			row := e.GP64()
			e.MOVQ(c, row)
			for r := range acc {
				for v, x := range acc[r] {
					e.mul(x, alpha, x)
					e.storeMasked(mask, v, x, e.at(row, v*e.lanes()))
				}
				if r+1 < rows {
					e.ADDQ(ldc, row)
				}
			}
		})
	})
}

// addDiagonal emits acc ← acc + d·b, with d = 1 if Flag is set.
func (e *emitter) addDiagonal(args reg.Register, d operand.Mem, b, acc []reg.VecVirtual) {
	unit, done := e.label("unit"), e.label("added")
	e.CMPQ(operand.Mem{Base: args, Disp: offDirectFlag}, operand.U8(0))
	e.JNE(operand.LabelRef(unit))
	e.addProduct(true, d, b, acc)
	e.JMP(operand.LabelRef(done))
	e.Label(unit)
	for v := range acc {
		e.add(acc[v], b[v], acc[v])
	}
	e.Label(done)
}
