package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of ukr.Rows.
const (
	offRows  = 0 // Z: *T
	offRowsX = 8
	offRowsY = 16
	offRowsN = 24
	offRowsL = 32 // int: elements from one row to the next
	offRowsA = 40 // [4]T, and B follows
)

// rows emits, for four rows z_r, B_r ← Σ_i z_ri y_i (dot) and x ← x + Σ_r A_r z_r
// (axpy), or one of both, in one pass over the rows.
func (e *emitter) rows(dot, axpy bool) {
	args := e.args()
	n, ld := e.field(args, offRowsN), e.field(args, offRowsL)
	e.scale(ld)
	pointers := make([]reg.GPVirtual, 0, 6)
	z := e.field(args, offRows)
	pointers = append(pointers, z)
	for r := 1; r < 4; r++ {
		next := e.GP64()
		e.LEAQ(operand.Mem{Base: pointers[r-1], Index: ld, Scale: 1}, next)
		pointers = append(pointers, next)
	}
	x, y := -1, -1
	if axpy {
		x = len(pointers)
		pointers = append(pointers, e.field(args, offRowsX))
	}
	if dot {
		y = len(pointers)
		pointers = append(pointers, e.field(args, offRowsY))
	}
	factors, sums := e.vecs(4), e.vecs(4)
	for r := range 4 {
		if axpy {
			e.broadcast(operand.Mem{Base: args, Disp: offRowsA + r*e.size()}, factors[r])
		}
		if dot {
			e.zero(sums[r])
		}
	}
	e.forElements(n, pointers, func(_ int, load func(int, reg.VecVirtual), store func(reg.VecVirtual, int)) {
		to, other := e.vec(), e.vec()
		if axpy {
			load(x, to)
		}
		if dot {
			load(y, other)
		}
		for r := range 4 {
			row := e.vec()
			load(r, row)
			if dot {
				e.fma(row, other, sums[r])
			}
			if axpy {
				e.fma(row, factors[r], to)
			}
		}
		if axpy {
			store(to, x)
		}
	})
	if dot {
		for r := range 4 {
			e.reduceOne(sums[r], operand.Mem{Base: args, Disp: offRowsA + (4+r)*e.size()})
		}
	}
	e.VZEROUPPER()
	e.RET()
}
