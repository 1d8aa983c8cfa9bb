package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// These constants are the offsets of the fields of ukr.Rows.
const (
	offRows  = 0
	offRowsX = 8
	offRowsY = 16
	offRowsN = 24
	offRowsL = 32 // number of elements from one row to the next
	offRowsA = 40 // mostRows elements; B follows
)

// mostRows is ukr.MaxRows.
const mostRows = 12

// rowsOf addresses count rows that are ld bytes apart. It returns a pointer for every four rows, and a function
// that gives the address of each row.
func (e *emitter) rowsOf(first, ld reg.GPVirtual, count int) (pointers []reg.GPVirtual, row func(r int) operand.Mem) {
	ld3 := e.GP64()
	e.LEAQ(operand.Mem{Base: ld, Index: ld, Scale: 2}, ld3)
	bases := []reg.GPVirtual{first}
	for len(bases) < count/4 {
		next := e.GP64()
		e.LEAQ(operand.Mem{Base: bases[len(bases)-1], Index: ld, Scale: 4}, next)
		bases = append(bases, next)
	}
	return bases, func(r int) operand.Mem {
		return [4]operand.Mem{
			{Base: bases[r/4]},
			{Base: bases[r/4], Index: ld, Scale: 1},
			{Base: bases[r/4], Index: ld, Scale: 2},
			{Base: bases[r/4], Index: ld3, Scale: 1},
		}[r%4]
	}
}

// rows emits one pass over count rows z_r: B_r ← Σ_i z_ri y_i if dot is set, and x ← x + Σ_r A_r z_r if axpy is set.
func (e *emitter) rows(count int, dot, axpy bool) {
	args := e.args()
	factors, sums := make([]operand.Op, count), make([]reg.VecVirtual, count)
	// If the factors, the sums and three more vectors do not fit in the registers, the factors remain in memory.
	inMemory := dot && axpy && 2*count+3 > 16 && !e.masks
	var stored operand.Mem
	if inMemory {
		stored = e.AllocLocal(count * e.tier.bytes)
	}
	for r := range count {
		if axpy {
			f := e.vec()
			e.broadcast(operand.Mem{Base: args, Disp: offRowsA + r*e.size()}, f)
			factors[r] = f
			if inMemory {
				to := stored.Offset(r * e.tier.bytes)
				e.store(f, to)
				factors[r] = to
			}
		}
		if dot {
			sums[r] = e.vec()
			e.zero(sums[r])
		}
	}
	n, ld := e.field(args, offRowsN), e.field(args, offRowsL)
	e.scale(ld)
	advanced, row := e.rowsOf(e.field(args, offRows), ld, count)
	var x, y operand.Mem
	for _, v := range []struct {
		used    bool
		field   int
		address *operand.Mem
	}{{axpy, offRowsX, &x}, {dot, offRowsY, &y}} {
		if v.used {
			p := e.field(args, v.field)
			advanced, v.address.Base = append(advanced, p), p
		}
	}
	e.forElements(n, advanced, 1, func(_ int, load func(operand.Mem, reg.VecVirtual), store func(reg.VecVirtual, operand.Mem)) {
		to, factor := e.vec(), e.vec()
		if axpy {
			load(x, to)
		}
		if dot {
			load(y, factor)
		}
		for r := range count {
			v := e.vec()
			load(row(r), v)
			if dot {
				e.fma(v, factor, sums[r])
			}
			if axpy {
				e.fma(factors[r], v, to)
			}
		}
		if axpy {
			store(to, x)
		}
	})
	if dot {
		for r := range count {
			e.reduceOne(sums[r], operand.Mem{Base: args, Disp: offRowsA + (mostRows+r)*e.size()})
		}
	}
	e.VZEROUPPER()
	e.RET()
}
