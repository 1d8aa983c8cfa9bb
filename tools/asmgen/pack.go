package main

import (
	"math/bits"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The packing routines read a matrix at A with rows Lda elements apart, and write panels of w elements to C: see
// ukr.Packer.

// vecOfBytes returns a vector register of 16, 32 or 64 bytes.
func (e *emitter) vecOfBytes(bytes int) reg.VecVirtual {
	switch bytes {
	case 16:
		return e.XMM()
	case 32:
		return e.YMM()
	}
	return e.ZMM()
}

// packCopy emits the packing of contiguous columns: row p of the source has w elements for each of M panels, which
// are Ldc elements apart in C.
func (e *emitter) packCopy(w int) {
	args := e.args()
	src, dst := e.field(args, offA), e.field(args, offC)
	k, lda, ldc := e.field(args, offK), e.field(args, offLda), e.field(args, offLdc)
	e.scale(lda)
	e.scale(ldc)
	// Use the widest vectors that fit in w. The last vector may overlap its predecessor.
	lanes := min(e.lanes(), 1<<(bits.Len(uint(w))-1))
	row, panel, end := e.label("row"), e.label("panel"), e.label("end")

	e.Label(row)
	e.DECQ(k)
	e.JL(operand.LabelRef(end))
	from, to, m := e.GP64(), e.GP64(), e.field(args, offM)
	e.MOVQ(src, from)
	e.MOVQ(dst, to)
	e.Label(panel)
	for offset := 0; offset < w; offset += lanes {
		v := e.vecOfBytes(lanes * e.size())
		first := min(offset, w-lanes)
		e.move(e.at(from, first), v)
		e.move(v, e.at(to, first))
	}
	e.ADDQ(operand.U32(w*e.size()), from)
	e.ADDQ(ldc, to)
	e.DECQ(m)
	e.JG(operand.LabelRef(panel))
	e.ADDQ(lda, src)
	e.ADDQ(operand.U32(w*e.size()), dst)
	e.JMP(operand.LabelRef(row))
	e.Label(end)
	e.VZEROUPPER()
	e.RET()
}

// packTranspose emits the packing of one panel of w contiguous rows and K columns, a multiple of 8, in blocks of
// 4 × 4. The last block of rows overlaps its predecessor.
func (e *emitter) packTranspose(w int) {
	args := e.args()
	src, dst, k, lda := e.field(args, offA), e.field(args, offC), e.field(args, offK), e.field(args, offLda)
	e.scale(lda)
	rows := e.stridesOf(lda)
	e.eachEight(k, func() {
		row := e.GP64()
		e.MOVQ(src, row)
		for i := 0; i < w; i += 4 {
			first := min(i, w-4)
			if first < i {
				overlap := e.GP64()
				e.IMUL3Q(operand.U32(i-first), lda, overlap)
				e.SUBQ(overlap, row)
			}
			for p := 0; p < 8; p += 4 {
				r := make([]reg.VecVirtual, 4)
				for n := range r {
					r[n] = e.vecOfBytes(4 * e.size())
					e.move(rows.row(row, n).Offset(p*e.size()), r[n])
				}
				for n, c := range e.transposed(r) {
					e.move(c, e.at(dst, (p+n)*w+first))
				}
			}
			if i+4 < w {
				e.LEAQ(operand.Mem{Base: row, Index: lda, Scale: 4}, row)
			}
		}
		e.ADDQ(operand.U32(8*e.size()), src)
		e.ADDQ(operand.U32(8*w*e.size()), dst)
	})
}

// unpackTranspose emits the reverse of packTranspose: it copies the packed panel A to w rows of C, Ldc apart.
func (e *emitter) unpackTranspose(w int) {
	args := e.args()
	src, dst, k, ldc := e.field(args, offA), e.field(args, offC), e.field(args, offK), e.field(args, offLdc)
	e.scale(ldc)
	rows := e.stridesOf(ldc)
	e.eachEight(k, func() {
		row := e.GP64()
		e.MOVQ(dst, row)
		for i := 0; i < w; i += 4 {
			for p := 0; p < 8; p += 4 {
				r := make([]reg.VecVirtual, 4)
				for n := range r {
					r[n] = e.vecOfBytes(4 * e.size())
					e.move(e.at(src, (p+n)*w+i), r[n])
				}
				for n, c := range e.transposed(r) {
					e.move(c, rows.row(row, n).Offset(p*e.size()))
				}
			}
			if i+4 < w {
				e.LEAQ(operand.Mem{Base: row, Index: ldc, Scale: 4}, row)
			}
		}
		e.ADDQ(operand.U32(8*w*e.size()), src)
		e.ADDQ(operand.U32(8*e.size()), dst)
	})
}

// eachEight emits the loop of a function over k columns, eight at a time; k is a multiple of 8.
func (e *emitter) eachEight(k reg.GPVirtual, body func()) {
	loop, end := e.label("loop"), e.label("end")
	e.TESTQ(k, k)
	e.JLE(operand.LabelRef(end))
	e.Label(loop)
	body()
	e.SUBQ(operand.U32(8), k)
	e.JG(operand.LabelRef(loop))
	e.Label(end)
	e.VZEROUPPER()
	e.RET()
}

// transposed returns the columns of a 4 × 4 block; the rows of the block are in r.
func (e *emitter) transposed(r []reg.VecVirtual) []reg.VecVirtual {
	t := make([]reg.VecVirtual, 4)
	c := make([]reg.VecVirtual, 4)
	for i := range t {
		t[i], c[i] = e.vecOfBytes(4*e.size()), e.vecOfBytes(4*e.size())
	}
	for i := range 2 {
		a, b := r[2*i], r[2*i+1]
		pick(e, e.VUNPCKLPS, e.VUNPCKLPD)(b, a, t[2*i])
		pick(e, e.VUNPCKHPS, e.VUNPCKHPD)(b, a, t[2*i+1])
	}
	if e.double() {
		e.VPERM2F128(operand.U8(0x20), t[2], t[0], c[0])
		e.VPERM2F128(operand.U8(0x20), t[3], t[1], c[1])
		e.VPERM2F128(operand.U8(0x31), t[2], t[0], c[2])
		e.VPERM2F128(operand.U8(0x31), t[3], t[1], c[3])
	} else {
		e.VUNPCKLPD(t[2], t[0], c[0])
		e.VUNPCKHPD(t[2], t[0], c[1])
		e.VUNPCKLPD(t[3], t[1], c[2])
		e.VUNPCKHPD(t[3], t[1], c[3])
	}
	return c
}
