package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// These constants are the offsets of the fields of ukr.GemvPanel.
const (
	offPanelZ   = 0
	offPanelV   = 8
	offPanelSum = 16
	offPanelX   = 24
	offPanelY   = 32
	offPanelN   = 40
	offPanelL   = 48 // number of elements from one row of Z to the next
)

// gemvPanelRows returns the number R of rows of Z that are processed together. The registers hold R accumulators and,
// except for NEON, R vectors of X.
func (t tier) gemvPanelRows() int {
	if t.masks || t.neon {
		return 8
	}
	return 4
}

// panelTerms is ukr.PanelTerms.
const panelTerms = 16

// gemvPanel emits y_r ← y_r + Σ_i z_ri v_i with the vectors of ukr.GemvPanel, by adding sums of panelTerms products to
// y_r. If symmetric is true, it adds each product to y_r alone, and also emits s_i ← s_i + Σ_r z_ri x_r.
func (e *emitter) gemvPanel(symmetric bool) {
	args := e.args()
	rows := e.gemvPanelRows()
	if symmetric && e.neon {
		e.gemvPanelOf(args, 0, rows/2, symmetric)
		e.gemvPanelOf(args, rows/2, rows/2, symmetric)
	} else {
		e.gemvPanelOf(args, 0, rows, symmetric)
	}
	e.VZEROUPPER()
	e.RET()
}

// gemvPanelOf is gemvPanel for the given number of rows beginning with row first, which is 0 or 4.
func (e *emitter) gemvPanelOf(args reg.Register, first, rows int, symmetric bool) {
	width := e.tier.bytes
	n, ld := e.field(args, offPanelN), e.field(args, offPanelL)
	e.scale(ld)
	firstRow := e.field(args, offPanelZ)
	if first > 0 {
		e.LEAQ(operand.Mem{Base: firstRow, Index: ld, Scale: 4}, firstRow)
	}
	bases, z := e.rowsOf(firstRow, ld, rows)
	v := e.field(args, offPanelV)
	y, acc, x := e.field(args, offPanelY), e.vecs(rows), make([]reg.VecVirtual, rows)
	var sum reg.GPVirtual
	if symmetric {
		sum = e.field(args, offPanelSum)
		from := e.field(args, offPanelX)
		for r := range x {
			x[r] = e.vec()
			e.load(operand.Mem{Base: from, Disp: (first + r) * width}, x[r])
		}
	}
	block, short, done := e.label("block"), e.label("short"), e.label("done")
	count := n // number of terms of the next sum
	if symmetric {
		for r := range acc {
			e.load(operand.Mem{Base: y, Disp: (first + r) * width}, acc[r])
		}
	} else {
		count = e.GP64()
		e.Label(block)
		e.TESTQ(n, n)
		e.JLE(operand.LabelRef(done))
		e.MOVQ(n, count)
		e.CMPQ(count, operand.U32(panelTerms))
		e.JL(operand.LabelRef(short))
		e.MOVQ(operand.U32(panelTerms), count)
		e.Label(short)
		e.SUBQ(count, n)
		for r := range acc {
			e.zero(acc[r])
		}
	}
	step := func(terms int) {
		for i := range terms {
			vi := e.vec()
			e.load(operand.Mem{Base: v, Disp: i * width}, vi)
			var s [2]reg.VecVirtual // two independent sums hide the latency
			if symmetric {
				s[0], s[1] = e.vec(), e.vec()
				e.load(operand.Mem{Base: sum, Disp: i * width}, s[0])
			}
			for r := range acc {
				b := e.vec()
				e.broadcast(z(r).Offset(i*e.size()), b)
				e.fma(b, vi, acc[r])
				switch {
				case symmetric && r == 1:
					e.mul(b, x[r], s[1])
				case symmetric:
					e.fma(b, x[r], s[r%2])
				}
			}
			if symmetric {
				e.add(s[0], s[1], s[0])
				e.store(s[0], operand.Mem{Base: sum, Disp: i * width})
			}
		}
		for _, p := range bases {
			e.ADDQ(operand.U32(terms*e.size()), p)
		}
		e.ADDQ(operand.U32(terms*width), v)
		if symmetric {
			e.ADDQ(operand.U32(terms*width), sum)
		}
		e.SUBQ(operand.U32(terms), count)
	}
	const unroll = 4
	many, few, end := e.label("many"), e.label("few"), e.label("end")
	e.Label(many)
	e.CMPQ(count, operand.U32(unroll))
	e.JL(operand.LabelRef(few))
	step(unroll)
	e.JMP(operand.LabelRef(many))
	e.Label(few)
	e.TESTQ(count, count)
	e.JLE(operand.LabelRef(end))
	step(1)
	e.JMP(operand.LabelRef(few))
	e.Label(end)
	for r := range acc {
		to := operand.Mem{Base: y, Disp: (first + r) * width}
		if !symmetric {
			initial := e.vec()
			e.load(to, initial)
			e.add(initial, acc[r], acc[r])
		}
		e.store(acc[r], to)
	}
	if !symmetric {
		e.JMP(operand.LabelRef(block))
		e.Label(done)
	}
}
