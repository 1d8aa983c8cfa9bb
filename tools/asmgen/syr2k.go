package main

import (
	"github.com/mmcloughlin/avo/operand"
)

// syr2k emits C ← α (A Bᵀ + B Aᵀ) + β C, row by row, four elements at a time. An element of C is the sum of two dot
// products of a row of A and a row of B.
func (e *emitter) syr2k() {
	operands := [2]rank2Operand{e.rank2Operand("a"), e.rank2Operand("b")}
	m, c, step := e.AllocLocal(8), e.AllocLocal(8), e.AllocLocal(8)
	increment := e.AllocLocal(8) // change in the number of elements m from one row of C to the next
	lower, begin, row := e.label("lower"), e.label("begin"), e.label("row")
	e.MOVQ(e.param("c"), c)
	ldc := e.stride("ldc")
	flag, rows := e.GP8(), e.param("m")
	count := e.AllocLocal(8)
	e.MOVQ(rows, count)
	e.Load(e.Param("lower"), flag)
	e.TESTB(flag, flag)
	e.JNZ(operand.LabelRef(lower))
	// In the upper triangle, row i of C begins at column i, with the products of row i of A and row i of B.
	e.MOVQ(rows, m)
	e.MOVQ(operand.I32(-1), increment)
	e.ADDQ(operand.U8(e.size()), ldc)
	for _, o := range operands {
		e.MOVQ(o.rows.rs, o.firstStep)
	}
	e.JMP(operand.LabelRef(begin))
	e.Label(lower)
	e.MOVQ(operand.I32(1), m)
	e.MOVQ(operand.I32(1), increment)
	for _, o := range operands {
		e.MOVQ(operand.I32(0), o.firstStep)
	}
	e.Label(begin)
	e.MOVQ(ldc, step)
	e.Label(row)
	y, remaining := e.GP64(), e.GP64()
	e.MOVQ(c, y)
	e.MOVQ(m, remaining)
	for _, o := range operands {
		e.copyLocal(o.first, o.block)
	}
	e.forRows(remaining, func(count int) {
		n, products := e.param("n"), make([]rowOperand, len(operands))
		for i, o := range operands {
			p, x := e.GP64(), e.GP64()
			e.MOVQ(o.block, p)
			e.MOVQ(operands[1-i].row, x) // the current row of the other matrix
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
		e.addLocal(o.firstStep, o.first)
	}
	e.addLocal(step, c)
	e.addLocal(increment, m)
	e.DECQ(count)
	e.JNZ(operand.LabelRef(row))
	e.VZEROUPPER()
	e.RET()
}

// A rank2Operand is one of the matrices of syr2k.
type rank2Operand struct {
	rows      strides
	row       operand.Mem // address of the row with the index of the current row of C
	first     operand.Mem // address of the first row by which the other matrix's row is multiplied
	block     operand.Mem // address of the first row of the current block of four rows
	firstStep operand.Mem // change of first, in bytes, for the next row of C
}

func (e *emitter) rank2Operand(name string) rank2Operand {
	o := rank2Operand{row: e.AllocLocal(8), first: e.AllocLocal(8), block: e.AllocLocal(8), firstStep: e.AllocLocal(8)}
	o.rows = e.rowStrides("ld" + name)
	pointer := e.param(name)
	e.MOVQ(pointer, o.row)
	e.MOVQ(pointer, o.first)
	return o
}

// copyLocal emits to ← from, and addLocal emits to ← to + from, for numbers in memory.
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
