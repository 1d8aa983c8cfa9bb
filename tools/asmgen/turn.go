package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transposeDirect emits C ← Aᵀ for an M × N matrix A with row stride Ars, in blocks of 4 × 4. If Part is set, only
// the triangle that it names is written.
func (e *emitter) transposeDirect() {
	args := e.args()
	lda, ldc := e.field(args, offDirectArs), e.field(args, offDirectLdc)
	e.scale(lda)
	e.scale(ldc)
	m := e.field(args, offDirectM)
	src, dst := e.field(args, offDirectA), e.field(args, offDirectC)
	rows, end := e.label("rows"), e.label("end")
	e.Label(rows)
	// The registers one, two and three hold the offsets of rows 1 to 3 of the block from row 0. A missing row has the
	// offset of the last existing row.
	one, two, three := e.GP64(), e.GP64(), e.GP64()
	e.XORQ(one, one)
	e.CMPQ(m, operand.U32(1))
	e.CMOVQGT(lda, one)
	e.MOVQ(one, two)
	next := e.GP64()
	e.LEAQ(operand.Mem{Base: one, Index: lda, Scale: 1}, next)
	e.CMPQ(m, operand.U32(2))
	e.CMOVQGT(next, two)
	e.MOVQ(two, three)
	e.LEAQ(operand.Mem{Base: two, Index: lda, Scale: 1}, next)
	e.CMPQ(m, operand.U32(3))
	e.CMOVQGT(next, three)
	offsets := []reg.GPVirtual{nil, one, two, three}

	from, to, n := e.GP64(), e.GP64(), e.field(args, offDirectN)
	e.MOVQ(src, from)
	e.MOVQ(dst, to)
	// For the lower triangle, copy each block of columns of C from its diagonal block to the last row of C.
	begin, upper := e.label("begin"), e.label("upper")
	part := e.field(args, offDirectPart)
	rowsAbove := e.field(args, offDirectM)
	e.SUBQ(m, rowsAbove) // rowsAbove is now the number of rows of A above this block
	e.CMPQ(part, operand.U8(partLower))
	e.JL(operand.LabelRef(begin))
	e.JG(operand.LabelRef(upper))
	e.SUBQ(rowsAbove, n)
	offset := e.GP64()
	e.MOVQ(rowsAbove, offset)
	e.scale(offset)
	e.ADDQ(offset, from)
	e.MOVQ(rowsAbove, offset)
	e.IMULQ(ldc, offset)
	e.ADDQ(offset, to)
	e.CMPQ(n, operand.U8(0))
	e.JLE(operand.LabelRef(end))
	e.transposeEdge(m, n, offsets, from, to, ldc, true)
	e.ADDQ(operand.U32(4*e.size()), from)
	e.LEAQ(operand.Mem{Base: to, Index: ldc, Scale: 4}, to)
	e.SUBQ(operand.U32(4), n)
	e.JMP(operand.LabelRef(begin))
	e.Label(upper) // for the upper triangle, copy the rows of C up to the diagonal block
	e.ADDQ(operand.U32(4), rowsAbove)
	e.CMPQ(rowsAbove, n)
	e.CMOVQLT(rowsAbove, n)

	e.Label(begin)
	columns, edge, done := e.label("columns"), e.label("edge"), e.label("done")
	e.Label(columns)
	e.CMPQ(n, operand.U32(4))
	e.JL(operand.LabelRef(edge))
	e.CMPQ(m, operand.U32(4))
	e.JL(operand.LabelRef(edge))
	r := make([]reg.VecVirtual, 4)
	for i := range r {
		r[i] = e.vecOfBytes(4 * e.size())
		e.move(e.offset(from, offsets[i]), r[i])
	}
	row := e.GP64()
	e.MOVQ(to, row)
	for i, c := range e.transposed(r) {
		e.move(c, operand.Mem{Base: row})
		if i < 3 {
			e.ADDQ(ldc, row)
		}
	}
	e.LEAQ(operand.Mem{Base: to, Index: ldc, Scale: 4}, to)
	e.ADDQ(operand.U32(4*e.size()), from)
	e.SUBQ(operand.U32(4), n)
	e.JMP(operand.LabelRef(columns))
	e.Label(edge)
	e.CMPQ(n, operand.U8(0))
	e.JLE(operand.LabelRef(done))
	e.transposeEdge(m, n, offsets, from, to, ldc, false)
	e.ADDQ(operand.U32(4*e.size()), from)
	e.LEAQ(operand.Mem{Base: to, Index: ldc, Scale: 4}, to)
	e.SUBQ(operand.U32(4), n)
	e.JMP(operand.LabelRef(columns))

	e.Label(done)
	e.LEAQ(operand.Mem{Base: src, Index: lda, Scale: 4}, src)
	e.ADDQ(operand.U32(4*e.size()), dst)
	e.SUBQ(operand.U32(4), m)
	e.JG(operand.LabelRef(rows))
	e.Label(end)
	e.VZEROUPPER()
	e.RET()
}

// offset returns the memory at the address base + index, or at base if index is nil.
func (e *emitter) offset(base, index reg.GPVirtual) operand.Mem {
	m := operand.Mem{Base: base}
	if index != nil {
		m.Index, m.Scale = index, 1
	}
	return m
}

// transposeEdge emits the transposition of a block at the edge, with min(m, 4) rows and min(n, 4) columns. If lower
// is set, the code stores only the lower triangle of the result.
func (e *emitter) transposeEdge(m, n reg.GPVirtual, offsets []reg.GPVirtual, from, to, ldc reg.GPVirtual, lower bool) {
	width := e.firstOf4(e.atMost(n, 4))
	r := make([]reg.VecVirtual, 4)
	for i := range r {
		r[i] = e.vecOfBytes(4 * e.size())
		e.loadMasked(width, 0, e.offset(from, offsets[i]), e.widest(r[i]))
	}
	height := e.firstOf4(e.atMost(m, 4))
	row, end := e.GP64(), e.label("edgeEnd")
	e.MOVQ(to, row)
	for i, c := range e.transposed(r) {
		if i > 0 {
			e.CMPQ(n, operand.U32(i))
			e.JLE(operand.LabelRef(end))
			e.ADDQ(ldc, row)
		}
		mask := height
		if lower {
			count := e.GP64()
			e.MOVQ(operand.U32(i+1), count)
			smaller := e.GP64()
			e.MOVQ(m, smaller)
			e.CMPQ(count, smaller)
			e.CMOVQLT(count, smaller)
			mask = e.firstOf4(smaller)
		}
		e.storeMasked(mask, 0, e.widest(c), operand.Mem{Base: row})
	}
	e.Label(end)
}

// firstOf4 returns the mask of the first n ≤ 4 elements of a block's row.
func (e *emitter) firstOf4(n reg.GPVirtual) columnMask {
	if e.masks || e.neon {
		return e.columnMaskOf(n, 1)
	}
	maskAddress := e.GP64()
	e.LEAQ(e.constant("four", 8, func(i int) uint64 {
		if i < 4 {
			return 1<<64 - 1
		}
		return 0
	}), maskAddress)
	e.ADDQ(operand.U32(4*e.size()), maskAddress)
	offset := e.GP64()
	e.MOVQ(n, offset)
	e.scale(offset)
	e.SUBQ(offset, maskAddress)
	x := e.vecOfBytes(4 * e.size())
	e.VMOVDQU(operand.Mem{Base: maskAddress}, x)
	return columnMask{v: []reg.VecVirtual{x}}
}

// widest returns x as a ZMM register if the tier has mask registers, and otherwise x.
func (e *emitter) widest(x reg.VecVirtual) reg.VecVirtual {
	if e.masks {
		return x.AsZ().(reg.VecVirtual)
	}
	return x
}
