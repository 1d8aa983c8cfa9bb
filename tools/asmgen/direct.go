package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The direct micro-kernels work on unpacked matrices, in tiles of four rows by one or two vectors, whose
// independent sums hide the latency of multiply-adds. Masks select the last columns.

// These constants are the offsets of the fields of ukr.Direct.
const (
	offDirectA     = 0
	offDirectB     = 8
	offDirectC     = 16
	offDirectM     = 24
	offDirectN     = 32
	offDirectK     = 40
	offDirectArs   = 48
	offDirectAcs   = 56
	offDirectLdb   = 64
	offDirectLdc   = 72
	offDirectPart  = 80
	offDirectFlag  = 88
	offDirectAlpha = 96 // beta follows
)

// directRows is the number of rows of a tile.
const directRows = 4

// strides are the strides in bytes of the operand whose elements are broadcast: rs between rows,
// rs3 = 3 rs, and cs between columns.
type strides struct{ rs, rs3, cs reg.GPVirtual }

func (e *emitter) strides(args reg.Register) strides {
	s := strides{e.field(args, offDirectArs), e.GP64(), e.field(args, offDirectAcs)}
	e.scale(s.rs)
	e.scale(s.cs)
	e.LEAQ(operand.Mem{Base: s.rs, Index: s.rs, Scale: 2}, s.rs3)
	return s
}

// row returns the address of the element r < 4 rows below p.
func (s strides) row(p reg.Register, r int) operand.Mem {
	m := operand.Mem{Base: p}
	switch r {
	case 1, 2:
		m.Index, m.Scale = s.rs, uint8(r)
	case 3:
		m.Index, m.Scale = s.rs3, 1
	}
	return m
}

// tileOf returns rows × nv registers.
func (e *emitter) tileOf(rows, nv int) [][]reg.VecVirtual {
	acc := make([][]reg.VecVirtual, rows)
	for i := range acc {
		acc[i] = e.vecs(nv)
	}
	return acc
}

// sumDirect emits acc ← acc ± Σ_{p<k} a_p b_p for columns a_p of the broadcast operand and rows b_p of the other
// operand, ldb bytes apart. It advances pa and pb, and destroys k.
func (e *emitter) sumDirect(add bool, acc [][]reg.VecVirtual, s strides, pa, pb, k, ldb reg.GPVirtual, m columnMask) {
	loop, done := e.label("sum"), e.label("summed")
	e.TESTQ(k, k)
	e.JLE(operand.LabelRef(done))
	e.Label(loop)
	b := e.vecs(len(acc[0]))
	for v := range b {
		e.loadMasked(m, v, e.at(pb, v*e.lanes()), b[v])
	}
	for r := range acc {
		e.addProduct(add, s.row(pa, r), b, acc[r])
	}
	e.ADDQ(s.cs, pa)
	e.ADDQ(ldb, pb)
	e.DECQ(k)
	e.JNZ(operand.LabelRef(loop))
	e.Label(done)
}

// addProduct emits acc ← acc ± a·b for an element a in memory.
func (e *emitter) addProduct(add bool, a operand.Mem, b, acc []reg.VecVirtual) {
	x := e.vec()
	e.broadcast(a, x)
	for v := range acc {
		if add {
			e.fma(x, b[v], acc[v])
		} else {
			e.fnma231(x, b[v], acc[v])
		}
	}
}

// forColumns emits a loop over panels of NR columns, where n is the number of remaining columns. body(m, nv) emits
// the code for the nv vectors of a panel, whose columns m selects. advance emits the code that moves the pointers.
func (e *emitter) forColumns(n reg.GPVirtual, body func(m columnMask, nv int), advance func()) {
	panel, narrow, end := e.label("panel"), e.label("narrow"), e.label("end")
	e.Label(panel)
	if e.neon { // the loop over whole panels needs no masks
		partial := e.label("partial")
		e.CMPQ(n, operand.U32(e.nr()))
		e.JL(operand.LabelRef(partial))
		body(allColumns(), e.nv)
		advance()
		e.SUBQ(operand.U32(e.nr()), n)
		e.JG(operand.LabelRef(panel))
		e.JMP(operand.LabelRef(end))
		e.Label(partial)
	}
	e.CMPQ(n, operand.U32(e.lanes()))
	e.JLE(operand.LabelRef(narrow))
	columns := e.GP64()
	panelWidth := e.GP64()
	e.MOVQ(n, columns)
	e.MOVQ(operand.U32(e.nr()), panelWidth)
	e.CMPQ(columns, panelWidth)
	e.CMOVQGT(panelWidth, columns)
	body(e.columnMaskOf(columns, e.nv), e.nv)
	advance()
	e.SUBQ(operand.U32(e.nr()), n)
	e.JG(operand.LabelRef(panel))
	e.JMP(operand.LabelRef(end))
	e.Label(narrow)
	body(e.columnMaskOf(n, 1), 1)
	e.Label(end)
	e.VZEROUPPER()
	e.RET()
}

// forRows emits body for four rows at a time and for the remaining rows. m holds the number of remaining rows, and
// body advances its pointers.
func (e *emitter) forRows(m reg.GPVirtual, body func(rows int)) {
	loop, done := e.label("rows"), e.label("rowsDone")
	tails := make([]string, directRows)
	e.Label(loop)
	for rows := directRows; rows > 0; rows-- {
		if rows < directRows {
			e.Label(tails[rows])
		}
		next := done
		if rows > 1 {
			tails[rows-1] = e.label("tail")
			next = tails[rows-1]
		}
		e.CMPQ(m, operand.U32(rows))
		e.JL(operand.LabelRef(next))
		body(rows)
		if rows < directRows {
			if rows > 1 {
				e.JMP(operand.LabelRef(done))
			}
			continue
		}
		e.SUBQ(operand.U32(rows), m)
		e.JMP(operand.LabelRef(loop))
	}
	e.Label(done)
}

// direct emits C ← α A B + β C on all of C, or on the triangle that Part names.
func (e *emitter) direct(triangle bool) {
	args := e.args()
	s := e.strides(args)
	ldb, ldc := e.field(args, offDirectLdb), e.field(args, offDirectLdc)
	e.scale(ldb)
	e.scale(ldc)
	n := e.field(args, offDirectN)
	panelC, panelB := e.AllocLocal(8), e.AllocLocal(8)
	e.copyField(args, offDirectC, panelC)
	e.copyField(args, offDirectB, panelB)
	e.forColumns(n, func(mask columnMask, nv int) {
		a, c, m := e.field(args, offDirectA), e.GP64(), e.field(args, offDirectM)
		e.MOVQ(panelC, c)
		var t reg.GPVirtual // the row index minus the index of the panel's first column
		if triangle {
			t = e.GP64()
			e.triangleRows(args, s, ldc, n, a, c, m, t)
		}
		e.forRows(m, func(rows int) {
			acc := e.tileOf(rows, nv)
			for r := range acc {
				for v := range acc[r] {
					e.zero(acc[r][v])
				}
			}
			pa, pb, k := e.GP64(), e.GP64(), e.field(args, offDirectK)
			e.MOVQ(a, pa)
			e.MOVQ(panelB, pb)
			e.sumDirect(true, acc, s, pa, pb, k, ldb, mask)
			e.storeDirect(args, acc, c, ldc, t, mask, triangle)
			if rows == directRows {
				e.LEAQ(operand.Mem{Base: a, Index: s.rs, Scale: 4}, a)
				if triangle {
					e.ADDQ(operand.U32(rows), t)
				}
			}
		})
	}, func() {
		e.ADDQ(operand.U32(e.nr()*e.size()), panelC)
		e.ADDQ(operand.U32(e.nr()*e.size()), panelB)
	})
}

// copyField copies a field of the argument into the frame of the function.
func (e *emitter) copyField(args reg.Register, offset int, to operand.Mem) {
	e.MOVQ(e.field(args, offset), to)
}

// triangleRows omits the rows of a panel that have no elements in the triangle. It sets t to the index of the first
// remaining row minus the index of the panel's first column.
func (e *emitter) triangleRows(args reg.Register, s strides, ldc, n, a, c, m, t reg.GPVirtual) {
	j := e.field(args, offDirectN) // index of the panel's first column
	e.SUBQ(n, j)
	isUpper, done := e.label("upper"), e.label("restricted")
	e.CMPQ(operand.Mem{Base: args, Disp: offDirectPart}, operand.U8(partLower))
	e.JNE(operand.LabelRef(isUpper))
	e.SUBQ(j, m)
	offset := e.GP64()
	e.MOVQ(j, offset)
	e.IMULQ(s.rs, offset)
	e.ADDQ(offset, a)
	e.MOVQ(j, offset)
	e.IMULQ(ldc, offset)
	e.ADDQ(offset, c)
	e.XORQ(t, t)
	e.JMP(operand.LabelRef(done))
	e.Label(isUpper)
	last := e.GP64()
	e.LEAQ(operand.Mem{Base: j, Disp: e.nr()}, last)
	e.CMPQ(m, last)
	e.CMOVQGT(last, m)
	e.XORQ(t, t)
	e.SUBQ(j, t)
	e.Label(done)
}

// These constants are the values of the field Part.
const (
	partWhole = iota
	partLower
	partUpper
)

// storeDirect emits C ← α·acc + β·C for the rows from c on, and advances c.
func (e *emitter) storeDirect(args reg.Register, acc [][]reg.VecVirtual, c, ldc, t reg.GPVirtual, mask columnMask, triangle bool) {
	alpha, beta := e.vec(), e.vec()
	e.broadcast(operand.Mem{Base: args, Disp: offDirectAlpha}, alpha)
	e.broadcast(operand.Mem{Base: args, Disp: offDirectAlpha + e.size()}, beta)
	for r := range acc {
		rowMask := mask
		if triangle {
			rowMask = e.rowMask(args, t, r, len(acc[r]), mask)
		}
		for _, x := range acc[r] {
			e.mul(x, alpha, x)
		}
		overwrite := e.label("overwrite")
		e.jumpIfZero(operand.Mem{Base: args, Disp: offDirectAlpha + e.size()}, overwrite)
		for v, x := range acc[r] {
			initial := e.vec()
			e.loadMasked(rowMask, v, e.at(c, v*e.lanes()), initial)
			e.fma(initial, beta, x)
		}
		e.Label(overwrite)
		for v, x := range acc[r] {
			e.storeMasked(rowMask, v, x, e.at(c, v*e.lanes()))
		}
		e.ADDQ(ldc, c)
	}
}

// jumpIfZero jumps if a number in memory is 0, of either sign.
func (e *emitter) jumpIfZero(mem operand.Mem, label string) {
	bits := e.GP64()
	if e.double() {
		e.MOVQ(mem, bits)
		e.SHLQ(operand.U8(1), bits)
	} else {
		e.MOVL(mem, bits.As32())
		e.SHLL(operand.U8(1), bits.As32())
	}
	e.JZ(operand.LabelRef(label))
}

// rowMask returns the part of the mask panel that selects the columns of the triangle in row t+r. Row 0 is the row
// whose diagonal element is in the panel's first column.
func (e *emitter) rowMask(args reg.Register, t reg.Register, r, nv int, panel columnMask) columnMask {
	isUpper, done := e.label("upper"), e.label("masked")
	count := e.GP64()
	e.LEAQ(operand.Mem{Base: t, Disp: r}, count)
	limit := e.GP64()
	var m columnMask
	bits := e.GP64()
	inBits := e.masks || e.neon
	if inBits {
		e.MOVQ(operand.I32(-1), bits)
	} else {
		// The mask consists of NR adjacent elements of this array; the first of them depends on the row.
		e.LEAQ(e.constant("window", 3*e.nr(), func(i int) uint64 {
			if i >= e.nr() && i < 2*e.nr() {
				return 1<<64 - 1
			}
			return 0
		}), bits)
	}
	e.CMPQ(operand.Mem{Base: args, Disp: offDirectPart}, operand.U8(partLower))
	e.JNE(operand.LabelRef(isUpper))
	// In the lower triangle, row t+r has the first min(t+r+1, NR) columns of the panel.
	e.INCQ(count)
	e.MOVQ(operand.U32(e.nr()), limit)
	e.CMPQ(count, limit)
	e.CMOVQGT(limit, count)
	if inBits {
		e.MOVQ(count, reg.RCX)
		e.SHLQ(reg.CL, bits)
		e.NOTQ(bits)
	} else {
		e.ADDQ(operand.U32(2*e.nr()*e.size()), bits)
		e.scale(count)
		e.SUBQ(count, bits)
	}
	e.JMP(operand.LabelRef(done))
	e.Label(isUpper)
	// In the upper triangle, row t+r has the columns of the panel from max(t+r, 0) on, where t+r < NR.
	e.XORQ(limit, limit)
	e.CMPQ(count, limit)
	e.CMOVQLT(limit, count)
	if inBits {
		e.MOVQ(count, reg.RCX)
		e.SHLQ(reg.CL, bits)
	} else {
		e.ADDQ(operand.U32(e.nr()*e.size()), bits)
		e.scale(count)
		e.SUBQ(count, bits)
	}
	e.Label(done)
	if e.neon {
		if panel.b.bits != nil {
			e.ANDQ(panel.b.bits, bits)
		}
		return columnMask{b: &columnBits{bits: bits, anyStart: true}}
	}
	for v := range nv {
		if e.masks {
			k := e.K()
			if v > 0 {
				e.SHRQ(operand.U8(e.lanes()), bits)
			}
			e.KMOVW(bits.As32(), k)
			e.KANDW(panel.k[v], k, k)
			m.k = append(m.k, k)
			continue
		}
		x := e.vec()
		e.VMOVDQU(e.at(bits, v*e.lanes()), x)
		e.VANDPS(panel.v[v], x, x)
		m.v = append(m.v, x)
	}
	return m
}
