package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// An emitter writes one function for a tier and a precision. Its methods choose the instructions for them.
type emitter struct {
	*build.Context
	tier
	precision
	labels    int
	constants map[string]operand.Mem // data sections of the file by name
}

func (e *emitter) double() bool { return e.precision.bytes == 8 }

// pick returns the argument single or double, according to the precision of e.
func pick[F any](e *emitter, single, double F) F {
	if e.double() {
		return double
	}
	return single
}

func (e *emitter) size() int  { return e.precision.bytes }
func (e *emitter) lanes() int { return e.tier.bytes / e.precision.bytes }
func (e *emitter) nr() int    { return e.nv * e.lanes() }

// label returns a new name that is unique in the function.
func (e *emitter) label(prefix string) string {
	e.labels++
	return fmt.Sprintf("%s%d", prefix, e.labels)
}

func (e *emitter) vec() reg.VecVirtual {
	if e.tier.bytes == 64 {
		return e.ZMM()
	}
	return e.YMM()
}

func (e *emitter) vecs(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = e.vec()
	}
	return v
}

// at returns element i of the array at base.
func (e *emitter) at(base reg.Register, i int) operand.Mem {
	return operand.Mem{Base: base, Disp: i * e.size()}
}

func (e *emitter) zero(v reg.VecVirtual) {
	if e.tier.bytes == 64 {
		e.VPXORQ(v, v, v)
		return
	}
	e.VXORPS(v, v, v)
}

func (e *emitter) load(m operand.Op, v reg.VecVirtual) {
	pick(e, e.VMOVUPS, e.VMOVUPD)(m, v)
}

func (e *emitter) store(v reg.VecVirtual, m operand.Op) { e.move(v, m) }

// streamStore emits a non-temporal store; the address must be aligned to the vector.
func (e *emitter) streamStore(v reg.VecVirtual, m operand.Mem) {
	pick(e, e.VMOVNTPS, e.VMOVNTPD)(v, m)
}

func (e *emitter) move(from, to operand.Op) {
	pick(e, e.VMOVUPS, e.VMOVUPD)(from, to)
}

// broadcast sets every lane of v to one element of memory.
func (e *emitter) broadcast(m operand.Op, v reg.VecVirtual) {
	switch {
	case e.double() && v.Size() == 16:
		e.VMOVDDUP(m, v)
	default:
		pick(e, e.VBROADCASTSS, e.VBROADCASTSD)(m, v)
	}
}

// fma emits acc ← acc + a·b.
func (e *emitter) fma(a, b operand.Op, acc reg.VecVirtual) {
	pick(e, e.VFMADD231PS, e.VFMADD231PD)(a, b, acc)
}

func (e *emitter) sub(a, b operand.Op, dst reg.VecVirtual) {
	pick(e, e.VSUBPS, e.VSUBPD)(b, a, dst)
}

func (e *emitter) add(a, b operand.Op, dst reg.VecVirtual) {
	pick(e, e.VADDPS, e.VADDPD)(b, a, dst)
}

func (e *emitter) mul(a, b operand.Op, dst reg.VecVirtual) {
	pick(e, e.VMULPS, e.VMULPD)(b, a, dst)
}

func (e *emitter) div(a, b operand.Op, dst reg.VecVirtual) {
	pick(e, e.VDIVPS, e.VDIVPD)(b, a, dst)
}

// abs clears the signs of v.
func (e *emitter) abs(v reg.VecVirtual) {
	switch {
	case e.masks:
		pick(e, e.VPANDD_BCST, e.VPANDQ_BCST)(e.absMask(1), v, v)
	default:
		e.VANDPS(e.absMask(e.lanes()), v, v)
	}
}

// absMask returns a constant of n elements in which all bits except the sign bit are set.
func (e *emitter) absMask(n int) operand.Mem {
	return e.constant("abs", n, func(int) uint64 { return 1<<63 - 1 })
}

// constant returns an array of n elements in read-only memory. Calls with the same name return the same array. bits
// returns the bit pattern of an element: 64 bits in float64, and the upper 32 of the 64 bits in float32.
func (e *emitter) constant(name string, n int, bits func(i int) uint64) operand.Mem {
	name += e.precision.name + e.tier.name
	m, ok := e.constants[name]
	if ok {
		return m
	}
	m = e.StaticGlobal(name)
	e.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range n {
		if e.double() {
			e.AddDatum(i*8, operand.U64(bits(i)))
		} else {
			e.AddDatum(i*4, operand.U32(bits(i)>>32))
		}
	}
	e.constants[name] = m
	return m
}

// A columnMask selects the first n columns of a row of the tile for loads and stores.
type columnMask struct {
	k []reg.OpmaskVirtual // set only if the tier has mask registers
	v []reg.VecVirtual    // set if the tier has masked loads and stores, but no mask registers
	b *columnBits         // set for NEON, which has no masked loads and stores
}

// columnBits has a bit for each column. The zero value selects all columns.
type columnBits struct {
	bits     operand.Op // a register or a constant
	anyStart bool       // whether the range may begin after the first column
}

// allColumns returns the mask that selects all columns on NEON.
func allColumns() columnMask { return columnMask{b: &columnBits{}} }

// moveColumns loads or stores the columns of vector i that m selects.
func (e *emitter) moveColumns(m columnMask, i int, opcode string, from, to operand.Op) {
	if m.b.bits == nil {
		e.move(from, to)
		return
	}
	anyStart := operand.U32(0)
	if m.b.anyStart {
		anyStart = 1
	}
	e.Instruction(&ir.Instruction{
		Opcode:   opcode,
		Operands: []operand.Op{m.b.bits, operand.U32(i * e.lanes()), operand.U32(e.size()), anyStart, from, to},
		Inputs:   []operand.Op{m.b.bits, from},
		Outputs:  []operand.Op{to},
	})
}

// columnMask makes the masks of n columns, 1 ≤ n ≤ NR.
func (e *emitter) columnMask(n reg.Register) columnMask { return e.columnMaskOf(n, e.nv) }

// columnMaskOf is like columnMask, for the first nv vectors.
func (e *emitter) columnMaskOf(n reg.Register, nv int) columnMask {
	var m columnMask
	if e.masks || e.neon {
		bits := e.GP64()
		e.MOVQ(n, reg.RCX)
		e.MOVQ(operand.U64(1), bits)
		e.SHLQ(reg.CL, bits)
		e.DECQ(bits)
		if e.neon {
			return columnMask{b: &columnBits{bits: bits}}
		}
		for v := range nv {
			if v > 0 {
				e.SHRQ(operand.U8(e.lanes()), bits)
			}
			k := e.K()
			e.KMOVW(bits.As32(), k)
			m.k = append(m.k, k)
		}
		return m
	}
	// The mask begins at element NR − n of this array: n elements −1 and then zeros.
	table := e.constant("columns", 2*e.nr(), func(i int) uint64 {
		if i < e.nr() {
			return 1<<64 - 1
		}
		return 0
	})
	maskAddress := e.GP64()
	e.LEAQ(table, maskAddress)
	e.ADDQ(operand.U32(e.nr()*e.size()), maskAddress)
	offset := e.GP64()
	e.MOVQ(n, offset)
	e.IMUL3Q(operand.U32(e.size()), offset, offset)
	e.SUBQ(offset, maskAddress)
	for v := range nv {
		x := e.vec()
		e.VMOVDQU(e.at(maskAddress, v*e.lanes()), x)
		m.v = append(m.v, x)
	}
	return m
}

// loadMasked loads the columns of vector i that m selects; the other lanes become zero.
func (e *emitter) loadMasked(m columnMask, i int, from operand.Mem, to reg.VecVirtual) {
	switch {
	case m.b != nil:
		e.moveColumns(m, i, columnsLoad, from, to)
	case e.masks:
		pick(e, e.VMOVUPS_Z, e.VMOVUPD_Z)(from, m.k[i], to)
	default:
		pick(e, e.VMASKMOVPS, e.VMASKMOVPD)(from, m.v[i], to)
	}
}

// fmaMasked emits acc ← acc + a·b for the columns of vector i that m selects; a is in memory.
func (e *emitter) fmaMasked(m columnMask, i int, a operand.Mem, b, acc reg.VecVirtual) {
	switch {
	case e.masks:
		pick(e, e.VFMADD231PS, e.VFMADD231PD)(a, b, m.k[i], acc)
	default:
		x := e.vec()
		e.loadMasked(m, i, a, x)
		e.fma(x, b, acc)
	}
}

// storeMasked stores the columns of vector i that m selects.
func (e *emitter) storeMasked(m columnMask, i int, from reg.VecVirtual, to operand.Mem) {
	switch {
	case m.b != nil:
		e.moveColumns(m, i, columnsStore, from, to)
	case e.masks:
		pick(e, e.VMOVUPS, e.VMOVUPD)(from, m.k[i], to)
	default:
		pick(e, e.VMASKMOVPS, e.VMASKMOVPD)(from, m.v[i], to)
	}
}
