package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// These constants are the offsets of the fields of ukr.Sparse. N is the number of panels of B.
const (
	offSparseLdb = 56 // number of elements from one panel of B to the next
	offSparseAt  = 64 // address of the offsets at_p, of type int32
)

// sparseRows is ukr.SparseRows.
const sparseRows = 4

// sparse emits C ← Σ_p A_p B[at_p], where A_p is a column of A, and B[at_p] is the row of a panel at offset at_p.
func (e *emitter) sparse() {
	args := e.args()
	b, c, n := e.field(args, offB), e.field(args, offC), e.field(args, offN)
	ldc, ldb := e.field(args, offLdc), e.field(args, offSparseLdb)
	e.scale(ldc)
	e.scale(ldb)
	widest := 1
	if e.masks {
		widest = 2
	}
	for panels := widest; panels > 0; panels-- {
		loop, less := e.label("panels"), e.label("less")
		e.Label(loop)
		e.CMPQ(n, operand.U32(panels))
		e.JL(operand.LabelRef(less))
		e.sparsePanels(args, b, c, ldb, ldc, panels)
		for range panels {
			e.ADDQ(ldb, b)
		}
		e.ADDQ(operand.U32(panels*e.nr()*e.size()), c)
		e.SUBQ(operand.U32(panels), n)
		e.JMP(operand.LabelRef(loop))
		e.Label(less)
	}
	e.VZEROUPPER()
	e.RET()
}

func (e *emitter) sparsePanels(args, b, c, ldb, ldc reg.Register, panels int) {
	a, offsets, k := e.field(args, offA), e.field(args, offSparseAt), e.field(args, offK)
	var acc [sparseRows][]reg.VecVirtual
	for r := range acc {
		acc[r] = e.vecs(panels * e.nv)
		for _, v := range acc[r] {
			e.zero(v)
		}
	}
	loop, done, stored := e.label("loop"), e.label("done"), e.label("stored")
	e.TESTQ(k, k)
	e.JLE(operand.LabelRef(done))
	e.Label(loop)
	row := e.GP64()
	e.MOVL(operand.Mem{Base: offsets}, row.As32())
	e.LEAQ(operand.Mem{Base: b, Index: row, Scale: uint8(e.size())}, row)
	rowsOfB := e.vecs(panels * e.nv)
	for v := range rowsOfB {
		if v > 0 && v%e.nv == 0 {
			e.ADDQ(ldb, row)
		}
		e.load(e.at(row, v%e.nv*e.lanes()), rowsOfB[v])
	}
	for r := range acc {
		dotStep(e, e.at(a, r), rowsOfB, acc[r])
	}
	e.ADDQ(operand.U32(sparseRows*e.size()), a)
	e.ADDQ(operand.U32(4), offsets)
	e.DECQ(k)
	e.JNZ(operand.LabelRef(loop))
	e.Label(done)
	m, to := e.field(args, offM), e.GP64()
	e.MOVQ(c, to)
	for r := range acc {
		e.CMPQ(m, operand.U32(r))
		e.JLE(operand.LabelRef(stored))
		for v := range acc[r] {
			e.store(acc[r][v], e.at(to, v*e.lanes()))
		}
		e.ADDQ(ldc, to)
	}
	e.Label(stored)
}
