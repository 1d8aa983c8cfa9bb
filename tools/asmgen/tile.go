package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// These constants are the offsets of the fields of ukr.Tile.
const (
	offA     = 0 // packed panels of A
	offB     = 8 // one packed panel of B
	offC     = 16
	offK     = 24
	offM     = 32 // number of rows in all panels of A
	offN     = 40 // number of columns, 1 … NR
	offLdc   = 48 // number of elements from one row of C to the next
	offLda   = 56 // number of elements from one panel of A to the next
	offAlpha = 64 // beta follows
)

// A step emits acc_v ← acc_v + s(a, b_v) for a function s and one row of the tile. The element a of A is in memory.
type step func(e *emitter, a operand.Mem, b, acc []reg.VecVirtual)

func dotStep(e *emitter, a operand.Mem, b, acc []reg.VecVirtual) {
	x := e.vec()
	e.broadcast(a, x)
	for v := range acc {
		e.fma(x, b[v], acc[v])
	}
}

// pairStep is like dotStep for elements that are pairs of 16-bit integers, with sums in 32 bits.
func pairStep(e *emitter, a operand.Mem, b, acc []reg.VecVirtual) {
	if e.masks && len(acc) == 1 {
		e.VPDPWSSD_BCST(a, b[0], acc[0])
		return
	}
	x := e.vec()
	e.broadcast(a, x)
	for v := range acc {
		if e.masks {
			e.VPDPWSSD(x, b[v], acc[v])
			continue
		}
		products := e.vec()
		e.VPMADDWD(x, b[v], products)
		e.VPADDD(products, acc[v], acc[v])
	}
}

func sqDistStep(e *emitter, a operand.Mem, b, acc []reg.VecVirtual) {
	x := e.vec()
	e.broadcast(a, x)
	for v := range acc {
		diff := e.vec()
		e.sub(b[v], x, diff)
		e.fma(diff, diff, acc[v])
	}
}

func l1Step(e *emitter, a operand.Mem, b, acc []reg.VecVirtual) {
	x := e.vec()
	e.broadcast(a, x)
	for v := range acc {
		diff := e.vec()
		e.sub(b[v], x, diff)
		e.abs(diff)
		e.add(acc[v], diff, acc[v])
	}
}

// field loads a field of the argument into a new register.
func (e *emitter) field(args reg.Register, offset int) reg.GPVirtual {
	r := e.GP64()
	e.MOVQ(operand.Mem{Base: args, Disp: offset}, r)
	return r
}

// chi2Step adds (a−b)²/(a+b). It replaces a denominator below the smallest normal number by this number, so that
// 0/0 gives 0, and preserves NaN.
func chi2Step(e *emitter, a operand.Mem, b, acc []reg.VecVirtual) {
	smallestBits := e.bits(pick(e, 0x1p-126, 0x1p-1022))
	smallest := e.constant("smallest", e.lanes(), func(int) uint64 { return smallestBits })
	for v := range acc {
		sum, diff := e.vec(), e.vec()
		e.broadcast(a, sum)
		e.sub(b[v], sum, diff)
		e.add(b[v], sum, sum)
		pick(e, e.VMAXPS, e.VMAXPD)(smallest, sum, sum)
		e.div(diff, sum, sum)
		e.fma(sum, diff, acc[v])
	}
}

// scale multiplies r by the size of an element.
func (e *emitter) scale(r reg.Register) {
	e.SHLQ(operand.U8(pick(e, 2, 3)), r)
}

// accumulators returns new registers for the tile: MR rows of NV registers.
func (e *emitter) accumulators() [][]reg.VecVirtual {
	acc := make([][]reg.VecVirtual, e.mr)
	for i := range acc {
		acc[i] = e.vecs(e.nv)
	}
	return acc
}

// sum emits acc ← Σ_{p<k} step(A[:,p], B[p,:]) over packed panels. It advances pa past the k columns of A and pb
// past the k rows of B, and overwrites k. If not nil, prefetch emits the prefetches of each round.
func (e *emitter) sum(s step, pa, pb, k reg.GPVirtual, acc [][]reg.VecVirtual, prefetch func()) {
	const unroll = 4
	for i := range acc {
		for v := range acc[i] {
			e.zero(acc[i][v])
		}
	}
	one := func(u int) {
		b := e.vecs(e.nv)
		for v := range b {
			e.load(e.at(pb, u*e.nr()+v*e.lanes()), b[v])
		}
		for i := range acc {
			s(e, e.at(pa, u*e.mr+i), b, acc[i])
		}
	}
	many, rest, single, done := e.label("many"), e.label("rest"), e.label("single"), e.label("done")
	e.SUBQ(operand.U32(unroll), k)
	e.JL(operand.LabelRef(rest))
	e.Label(many)
	for u := range unroll {
		one(u)
		if u == 0 && prefetch != nil {
			prefetch()
		}
	}
	e.ADDQ(operand.U32(unroll*e.mr*e.size()), pa)
	e.ADDQ(operand.U32(unroll*e.nr()*e.size()), pb)
	e.SUBQ(operand.U32(unroll), k)
	e.JGE(operand.LabelRef(many))
	e.Label(rest)
	e.ADDQ(operand.U32(unroll), k)
	e.JZ(operand.LabelRef(done))
	e.Label(single)
	one(0)
	e.ADDQ(operand.U32(e.mr*e.size()), pa)
	e.ADDQ(operand.U32(e.nr()*e.size()), pb)
	e.DECQ(k)
	e.JNZ(operand.LabelRef(single))
	e.Label(done)
}

// tile emits the loop over the panels of A: the sums over k, and then C ← α·sum + β·C on the existing rows and
// columns. If scaled is set, the sums are integers, and α is multiplied by the scale factors of the row and of the
// column. If oneRow is set, a tile of one row has its own loop.
func (e *emitter) tile(s step, scaled, oneRow bool) {
	args := e.args()
	a, c, m := e.field(args, offA), e.field(args, offC), e.field(args, offM)
	ldc, lda := e.field(args, offLdc), e.field(args, offLda)
	e.scale(ldc)
	panel, single, end := e.label("panel"), e.label("single_row"), e.label("end")
	integers, factors := e, reg.GPVirtual(nil)
	if scaled {
		integers = e.integers()
		factors = e.field(args, offAlpha+2*e.size()) // R of ukr.Scaled
	}
	integers.scale(lda)

	// The next panel of B comes from the third-level cache. A part of it is prefetched with each panel of A.
	ahead := e.field(args, offK)
	integers.scale(ahead)
	e.IMUL3Q(operand.U32(e.nr()), ahead, ahead)
	e.ADDQ(operand.Mem{Base: args, Disp: offB}, ahead)

	if oneRow {
		e.CMPQ(m, operand.U32(2))
		e.JL(operand.LabelRef(single))
	}
	e.Label(panel)
	e.TESTQ(m, m)
	e.JLE(operand.LabelRef(end))
	prefetch := func() {
		e.PREFETCHT1(operand.Mem{Base: ahead})
		e.ADDQ(operand.U32(64), ahead)
	}
	if e.neon {
		e.prefetchC(c, ldc, m)
	} else {
		prefetch = integers.prefetchRows(c, ldc, m, e.nr()*e.size(), prefetch)
	}
	rows := func(acc [][]reg.VecVirtual, prefetch func(), next string) {
		pa, pb, k := e.GP64(), e.field(args, offB), e.field(args, offK)
		e.MOVQ(a, pa)
		integers.labels = e.labels
		integers.sum(s, pa, pb, k, acc, prefetch)
		e.labels = integers.labels

		e.Comment("C ← α·sum + β·C")
		alpha := e.vec()
		e.broadcast(operand.Mem{Base: args, Disp: offAlpha}, alpha)
		if scaled {
			acc = e.scaleSums(args, factors, alpha, acc)
			e.ADDQ(operand.U32(e.mr*e.size()), factors)
		} else {
			for i := range acc {
				for v := range acc[i] {
					e.mul(acc[i][v], alpha, acc[i][v])
				}
			}
		}
		n := e.field(args, offN)
		partial := e.label("partial")
		e.CMPQ(n, operand.U32(e.nr()))
		e.JL(operand.LabelRef(partial))
		e.update(args, acc, c, ldc, m, next, nil)
		e.Label(partial)
		mask := e.columnMask(n)
		e.update(args, acc, c, ldc, m, next, &mask)
	}
	next := e.label("next")
	rows(integers.accumulators(), prefetch, next)

	e.Label(next)
	height := e.GP64()
	e.IMUL3Q(operand.U32(e.mr), ldc, height)
	e.ADDQ(height, c)
	e.ADDQ(lda, a)
	e.SUBQ(operand.U32(e.mr), m)
	e.JMP(operand.LabelRef(panel))
	if oneRow {
		e.Label(single)
		rows(integers.accumulators()[:1], nil, end)
	}
	e.Label(end)
	e.VZEROUPPER()
	e.RET()
}

// integers returns an emitter for the elements of 32 bits in ukr.Scaled, with as many columns per row as e.
func (e *emitter) integers() *emitter {
	i := *e
	i.precision = precision{name: e.precision.name, bytes: 4}
	i.nv = e.nr() / i.lanes()
	return &i
}

// scaleSums returns α·r_i·s_j·acc_ij for the integers acc_ij, the factors r_i of the rows and s_j of the columns.
func (e *emitter) scaleSums(args reg.Register, factors reg.GPVirtual, alpha reg.VecVirtual, acc [][]reg.VecVirtual) [][]reg.VecVirtual {
	columns := e.field(args, offAlpha+2*e.size()+8)
	s := e.vecs(e.nv)
	for v := range s {
		e.load(e.at(columns, v*e.lanes()), s[v])
		e.mul(s[v], alpha, s[v])
	}
	scaled := make([][]reg.VecVirtual, len(acc))
	for i := range acc {
		scaled[i] = e.fromIntegers(acc[i])
		r := e.vec()
		e.broadcast(e.at(factors, i), r)
		for v, x := range scaled[i] {
			e.mul(x, r, x)
			e.mul(x, s[v], x)
		}
	}
	return scaled
}

// fromIntegers converts a row of integer sums to floating-point numbers, in float64 to two vectors each.
func (e *emitter) fromIntegers(sums []reg.VecVirtual) (row []reg.VecVirtual) {
	for _, x := range sums {
		if !e.double() {
			e.VCVTDQ2PS(x, x)
			row = append(row, x)
			continue
		}
		high := e.vec()
		if e.masks {
			e.VEXTRACTI64X4(operand.U8(1), x, high.AsY())
			e.VCVTDQ2PD(high.AsY(), high)
			e.VCVTDQ2PD(x.AsY(), x)
		} else {
			e.VEXTRACTI128(operand.U8(1), x, high.AsX())
			e.VCVTDQ2PD(high.AsX(), high)
			e.VCVTDQ2PD(x.AsX(), x)
		}
		row = append(row, x, high)
	}
	return row
}

// prefetchC prefetches the rows of C that the panel will update.
func (e *emitter) prefetchC(c, ldc, m reg.GPVirtual) {
	done := e.label("fetched")
	row := e.GP64()
	e.MOVQ(c, row)
	for i := range e.mr {
		e.CMPQ(m, operand.U32(i))
		e.JLE(operand.LabelRef(done))
		e.PREFETCHT1(operand.Mem{Base: row})
		e.PREFETCHT1(operand.Mem{Base: row, Disp: e.nr()*e.size() - 1})
		e.ADDQ(ldc, row)
	}
	e.Label(done)
}

// prefetchRows returns a function that is called once for each round of the loop over k. It calls prefetch and then
// emits the prefetch of the next row of C, which has size bytes.
func (e *emitter) prefetchRows(c, ldc, m reg.GPVirtual, size int, prefetch func()) func() {
	row, remaining := e.GP64(), e.GP64()
	e.MOVQ(c, row)
	e.MOVQ(operand.U32(e.mr), remaining)
	e.CMPQ(m, remaining)
	e.CMOVQLT(m, remaining)
	return func() {
		prefetch()
		fetched := e.label("fetched")
		e.DECQ(remaining)
		e.JL(operand.LabelRef(fetched))
		e.PREFETCHT1(operand.Mem{Base: row})
		e.PREFETCHT1(operand.Mem{Base: row, Disp: size - 1})
		e.ADDQ(ldc, row)
		e.Label(fetched)
	}
}

// update emits C ← acc + β·C for the first m rows and the columns of the mask (all columns if it is nil), and then
// a jump to the label next.
func (e *emitter) update(args reg.Register, acc [][]reg.VecVirtual, c, ldc, m reg.GPVirtual, next string, mask *columnMask) {
	beta := e.vec()
	e.broadcast(operand.Mem{Base: args, Disp: offAlpha + e.size()}, beta)
	overwrite := e.label("overwrite")
	e.jumpIfZero(operand.Mem{Base: args, Disp: offAlpha + e.size()}, overwrite)
	for _, read := range []bool{true, false} {
		if !read {
			e.Label(overwrite)
		}
		row := e.GP64()
		e.MOVQ(c, row)
		for i := range acc {
			e.CMPQ(m, operand.U32(i))
			e.JLE(operand.LabelRef(next))
			for v, x := range acc[i] {
				mem := e.at(row, v*e.lanes())
				if read {
					initial := e.vec()
					if mask == nil {
						e.load(mem, initial)
					} else {
						e.loadMasked(*mask, v, mem, initial)
					}
					e.fma(initial, beta, x)
				}
				if mask == nil {
					e.store(x, mem)
				} else {
					e.storeMasked(*mask, v, x, mem)
				}
			}
			e.ADDQ(ldc, row)
		}
		e.JMP(operand.LabelRef(next))
	}
}

// trsm emits X₁ ← L₁₁⁻¹ (B₁ − L₁₀ X₀) on packed panels. Panel a has k columns of L₁₀ and then MR columns of L₁₁,
// whose diagonal is stored inverted. Panel b has k rows of X₀ and then MR rows of B₁, which X₁ overwrites.
func (e *emitter) trsm() {
	args := e.args()
	pa, pb, k := e.field(args, offA), e.field(args, offB), e.field(args, offK)
	acc := e.accumulators()
	e.sum(dotStep, pa, pb, k, acc, nil)
	for p := range acc {
		inverse := e.vec()
		e.broadcast(e.at(pa, p*e.mr+p), inverse)
		for v, x := range acc[p] {
			mem := e.at(pb, p*e.nr()+v*e.lanes())
			b := e.vec()
			e.load(mem, b)
			e.sub(b, x, x)
			e.mul(x, inverse, x)
			e.store(x, mem)
		}
		for i := p + 1; i < e.mr; i++ {
			dotStep(e, e.at(pa, p*e.mr+i), acc[p], acc[i])
		}
	}
	e.VZEROUPPER()
	e.RET()
}
