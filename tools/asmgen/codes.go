package main

import (
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// These constants are the offsets of the fields of ukr.Codes.
const (
	offCodesZ  = 0
	offCodesX  = 8
	offCodesY  = 16
	offCodesA  = 24
	offCodesB  = 32
	offCodesN  = 40 // number of chunks
	offCodesLd = 48 // number of elements from one column to the next
)

// codeRows and codeSpan are ukr.CodeRows and ukr.CodeSpan.
const (
	codeRows  = 8
	codeSpan  = 32
	codeChunk = codeRows * codeSpan * 2 // size in bytes
)

// narrowCodes is an opcode used only for NEON: it stores the lower halves of the integers of two vectors.
const narrowCodes = "VNARROWCODES"

// Codes are prefetched codeAhead bytes ahead, because the hardware prefetcher stops at the end of a page of 4 KiB.
const codeAhead = 4 << 10

// codes emits x_ic ← x_ic + Σ_r a_rc z_ri and b_rc ← b_rc + Σ_i z_ri y_ic, for codeRows rows z_r of 16-bit integers and
// the columns c < cols. Each b_rc is a vector of partial sums.
func (e *emitter) codes(cols int) {
	rows := codeRows
	if cols > 1 && !e.masks {
		rows = 4
	}
	args := e.args()
	for first := 0; first < codeRows; first += rows {
		e.codesOf(args, first, rows, cols)
	}
	e.VZEROUPPER()
	e.RET()
}

func (e *emitter) codesOf(args reg.Register, first, rows, cols int) {
	z, n, ld := e.field(args, offCodesZ), e.field(args, offCodesN), e.field(args, offCodesLd)
	b := e.field(args, offCodesB)
	e.scale(ld)
	var x, y, a []reg.GPVirtual
	for c := range cols {
		for _, v := range []struct {
			list  *[]reg.GPVirtual
			field int
		}{{&x, offCodesX}, {&y, offCodesY}, {&a, offCodesA}} {
			p := e.field(args, v.field)
			if c > 0 {
				e.ADDQ(ld, p)
			}
			*v.list = append(*v.list, p)
		}
	}
	sums := make([]reg.VecVirtual, rows*cols)
	partialSum := func(r, c int) operand.Mem {
		return operand.Mem{Base: b, Disp: (c*codeRows + first + r) * e.tier.bytes}
	}
	for r := range rows {
		for c := range cols {
			sums[r*cols+c] = e.vec()
			e.load(partialSum(r, c), sums[r*cols+c])
		}
	}
	loop, end := e.label("loop"), e.label("end")
	e.TESTQ(n, n)
	e.JLE(operand.LabelRef(end))
	e.Label(loop)
	for v := 0; v < codeSpan; v += e.lanes() {
		codes := make([]reg.VecVirtual, rows)
		for c := range cols {
			// One column uses two chains of additions to hide their latency.
			evenSum, oddSum, yVec := e.vec(), e.vec(), e.vec()
			e.load(e.at(x[c], v), evenSum)
			e.load(e.at(y[c], v), yVec)
			for r := range rows {
				row := operand.Mem{Base: z, Disp: ((first+r)*codeSpan + v) * 2}
				if c == 0 {
					codes[r] = e.vec()
					e.VPMOVZXWD(row, codes[r])
					e.VCVTDQ2PS(codes[r], codes[r])
					if v == 0 {
						e.PREFETCHT0(row.Offset(codeAhead))
					}
				}
				e.fma(codes[r], yVec, sums[r*cols+c])
				factor := operand.Mem{Base: a[c], Disp: (first + r) * e.size()}
				sum, first := evenSum, false
				if cols == 1 && r%2 == 1 {
					sum, first = oddSum, r == 1
				}
				switch f := e.vec(); {
				case e.masks && first:
					e.VMULPS_BCST(factor, codes[r], sum)
				case e.masks:
					e.VFMADD231PS_BCST(factor, codes[r], sum)
				case first:
					e.broadcast(factor, f)
					e.mul(f, codes[r], sum)
				default:
					e.broadcast(factor, f)
					e.fma(f, codes[r], sum)
				}
			}
			if cols == 1 {
				e.add(evenSum, oddSum, evenSum)
			}
			e.store(evenSum, e.at(x[c], v))
		}
	}
	e.ADDQ(operand.U32(codeChunk), z)
	for c := range cols {
		e.ADDQ(operand.U32(codeSpan*e.size()), x[c])
		e.ADDQ(operand.U32(codeSpan*e.size()), y[c])
	}
	e.DECQ(n)
	e.JG(operand.LabelRef(loop))
	e.Label(end)
	for r := range rows {
		for c := range cols {
			e.store(sums[r*cols+c], partialSum(r, c))
		}
	}
}

// encode emits z ← A·x + B, rounded to 16 bits. It sets Flag if a value is NaN or outside the range from −1/2 to 65535
// + 1/2.
func (e *emitter) encode() {
	const notLessEqualUnordered = 0x16
	args := e.args()
	a, b := e.scalars(args)
	x, n, z := e.field(args, offX), e.field(args, offNum), e.field(args, offZ(e.size()))
	zero, largest, half := e.vec(), e.vec(), e.number("half", 0.5)
	e.zero(zero)
	e.move(e.constant("mostCode", e.lanes(), func(int) uint64 { return e.bits(1<<16 - 1) }), largest)
	anyOutside := e.vec()
	e.zero(anyOutside)
	var hit reg.OpmaskVirtual
	if e.masks {
		hit = e.K()
		e.KXORW(hit, hit, hit)
	}
	loop, end := e.label("loop"), e.label("end")
	e.TESTQ(n, n)
	e.JLE(operand.LabelRef(end))
	e.Label(loop)
	var previous reg.VecVirtual
	for v := 0; v < codeSpan; v += e.lanes() {
		t, in := e.vec(), e.vec()
		e.load(e.at(x, v), t)
		e.fma213(b, a, t)
		e.minmax(false, t, zero, in)
		e.minmax(true, in, largest, in)
		e.sub(t, in, t)
		e.abs(t)
		if e.masks {
			outside := e.K()
			e.VCMPPS(operand.U8(notLessEqualUnordered), half, t, outside)
			e.KORW(outside, hit, hit)
		} else {
			limit := e.vec()
			e.move(half, limit)
			// true if t > half or t is NaN
			e.VCMPPS(operand.U8(notAtLeast), t, limit, limit)
			e.VORPS(limit, anyOutside, anyOutside)
		}
		e.VCVTPS2DQ(in, in)
		to := operand.Mem{Base: z, Disp: v * 2}
		switch {
		case e.masks:
			e.VPMOVUSDW(in, to)
		case previous == nil:
			previous = in
		default:
			to.Disp -= e.lanes() * 2
			if e.neon {
				e.Instruction(&ir.Instruction{
					Opcode: narrowCodes, Operands: []operand.Op{previous, in, to},
					Inputs: []operand.Op{previous, in, z}, Outputs: []operand.Op{to},
				})
			} else {
				e.VPACKUSDW(in, previous, in)
				e.VPERMQ(operand.U8(0xd8), in, in)
				e.VMOVDQU(in, to)
			}
			previous = nil
		}
	}
	e.ADDQ(operand.U32(codeSpan*e.size()), x)
	e.ADDQ(operand.U32(codeChunk), z)
	e.SUBQ(operand.U32(codeSpan), n)
	e.JG(operand.LabelRef(loop))
	e.Label(end)
	flag := e.GP32()
	if e.masks {
		e.KMOVW(hit, flag)
	} else {
		e.VMOVMSKPS(anyOutside, flag)
	}
	e.MOVQ(flag.As64(), operand.Mem{Base: args, Disp: offFlag})
	e.VZEROUPPER()
	e.RET()
}

// round16 emits z ← A·x rounded to 16 bits, and x ← B·z.
func (e *emitter) round16() {
	args := e.args()
	a, b := e.scalars(args)
	x, n, z := e.field(args, offX), e.field(args, offNum), e.field(args, offZ(e.size()))
	loop, end := e.label("loop"), e.label("end")
	e.TESTQ(n, n)
	e.JLE(operand.LabelRef(end))
	e.Label(loop)
	var previous reg.VecVirtual
	for v := 0; v < codeSpan; v += e.lanes() {
		t, f := e.vec(), e.vec()
		e.load(e.at(x, v), t)
		e.mul(t, a, t)
		e.VCVTPS2DQ(t, t)
		e.VCVTDQ2PS(t, f)
		e.mul(f, b, f)
		e.store(f, e.at(x, v))
		to := operand.Mem{Base: z, Disp: v * 2}
		switch {
		case e.masks:
			e.VPMOVSDW(t, to)
		case previous == nil:
			previous = t
		default:
			to.Disp -= e.lanes() * 2
			e.VPACKSSDW(t, previous, t)
			e.VPERMQ(operand.U8(0xd8), t, t)
			e.VMOVDQU(t, to)
			previous = nil
		}
	}
	e.ADDQ(operand.U32(codeSpan*e.size()), x)
	e.ADDQ(operand.U32(codeSpan*2), z)
	e.SUBQ(operand.U32(codeSpan), n)
	e.JG(operand.LabelRef(loop))
	e.Label(end)
	e.VZEROUPPER()
	e.RET()
}
