package main

import (
	"github.com/mmcloughlin/avo/operand"
)

// syr2k emits C ← α (A Bᵀ + B Aᵀ) + β C row by row of C, four elements at a time. An element is the
// sum of the dot products of two pairs of rows.
func (e *emitter) syr2k() {
	operands := [2]rank2Operand{e.rank2Operand("a"), e.rank2Operand("b")}
	m, c, step := e.AllocLocal(8), e.AllocLocal(8), e.AllocLocal(8)
	more := e.AllocLocal(8) // change in the number of rows of A from one row of C to the next
	lower, begin, row := e.label("lower"), e.label("begin"), e.label("row")
	e.MOVQ(e.param("c"), c)
	ldc := e.stride("ldc")
	flag, rows := e.GP8(), e.param("m")
	count := e.AllocLocal(8)
	e.MOVQ(rows, count)
	e.Load(e.Param("lower"), flag)
	e.TESTB(flag, flag)
	e.JNZ(operand.LabelRef(lower))
	// The next row begins one column further right in C, and one row further down in A and B.
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
			e.MOVQ(operands[1-i].row, x) // row of the other matrix
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
	row   operand.Mem // the row whose products give the row of C
	first operand.Mem // the first of the rows with which row is multiplied
	block operand.Mem // the first row of a block of four
	later operand.Mem // the offset of first for the next row
}

func (e *emitter) rank2Operand(name string) rank2Operand {
	o := rank2Operand{row: e.AllocLocal(8), first: e.AllocLocal(8), block: e.AllocLocal(8), later: e.AllocLocal(8)}
	o.rows = e.rowStrides("ld" + name)
	at := e.param(name)
	e.MOVQ(at, o.row)
	e.MOVQ(at, o.first)
	return o
}

// copyLocal and addLocal emit to ← from and to ← to + from in memory.
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
