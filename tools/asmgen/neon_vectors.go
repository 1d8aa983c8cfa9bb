package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// width returns the number of 16-byte registers for an operand of an AVX2 instruction.
func width(op operand.Op) int {
	if r, ok := op.(reg.Register); ok && r.Size() == 32 {
		return 2
	}
	return 1
}

// source returns the registers of the first n halves of an operand, loaded if in memory. Equal halves share one.
func (l *lowering) source(op operand.Op, n int) [2]vreg {
	if r, ok := op.(reg.Register); ok {
		v := l.current(r)
		return [2]vreg{v.register(0), v.register(1)}
	}
	half := l.halvesAt(op.(operand.Mem))
	var v [2]vreg
	for h := range n {
		if h == 1 && half(0) == half(1) {
			v[1] = v[0]
			continue
		}
		v[h] = l.temp()
		l.load(half(h), 16, v[h])
	}
	return v
}

// halvesAt returns a function that gives the address of half h of the vector at m. If m is a constant with equal
// halves, both addresses are the same.
func (l *lowering) halvesAt(m operand.Mem) func(h int) address {
	a, step := l.at(m), 16
	if l.pool.repeats(m) {
		step = 0
	}
	return func(h int) address { return a.offset(step * h) }
}

// lanewise calls f for each half of the vector `to`, with its assigned register and the registers of the sources.
func (l *lowering) lanewise(to operand.Op, f func(to vreg, from []vreg), from ...operand.Op) {
	r := to.(reg.Register)
	n := width(to)
	sources := make([][2]vreg, len(from))
	for i, op := range from {
		sources[i] = l.source(op, n)
	}
	home := l.homeOf(r.ID())
	for h := range home.halves(n) {
		now := make([]vreg, len(sources))
		for i, s := range sources {
			now[i] = s[h]
		}
		f(home.half[h], now)
	}
	l.atHome(r, n)
}

// atHome records that the first n halves (16 bytes each) of the vector r are in the registers that homeOf returns.
func (l *lowering) atHome(r reg.Register, n int) {
	v, ok := l.now[r.ID()]
	if !ok {
		return
	}
	for h := range n {
		v.half[h] = none
	}
	if v.half == [2]vreg{none, none} || l.home[r.ID()].equalHalves {
		delete(l.now, r.ID())
		return
	}
	l.now[r.ID()] = v
}

// replace records that the given registers hold the vector `to` for the rest of this block.
func (l *lowering) replace(to operand.Op, halves ...vreg) {
	r := to.(reg.Register)
	v := vector{half: [2]vreg{none, none}, equalHalves: l.homeOf(r.ID()).equalHalves, lane: -1}
	if previous, ok := l.now[r.ID()]; ok && len(halves) == 1 {
		v.half[1] = previous.half[1]
	}
	copy(v.half[:], halves)
	l.now[r.ID()] = v
}

// plain maps each x86 instruction to its equivalent in NEON, if that has the same order of operands.
var plain = map[string]string{
	"VADDP": "fadd", "VSUBP": "fsub", "VMULP": "fmul", "VDIVP": "fdiv",
	"VADDS": "fadd", "VMULS": "fmul", "VDIVS": "fdiv",
	"VUNPCKLP": "zip1", "VUNPCKHP": "zip2",
	"VHADDP": "faddp", "VPADD": "add",
	"VAND": "and", "VPAN": "and", "VPO": "orr", "VORP": "orr", "VANDP": "and", "VPXO": "eor", "VXORP": "eor",
}

func (l *lowering) vectorInstruction(i *ir.Instruction) error {
	ops := i.Operands
	last := ops[len(ops)-1]
	stem := i.Opcode[:len(i.Opcode)-1]
	switch {
	case stem == "VPADD":
		l.double = true // VPADD adds integers
	case stem == "VUNPCKLP" || stem == "VUNPCKHP" || stem == "VHADDP":
	case i.Opcode == "VMOVSHDUP":
		l.double = false
	}
	if (stem == "VXORP" || stem == "VPXO") && ops[0] == ops[1] && ops[1] == ops[2] {
		l.lanewise(last, func(to vreg, _ []vreg) { l.vop("movi", 0, to) })
		return nil
	}
	if name, ok := plain[stem]; ok {
		if name == "fmul" && l.product("fmul", i) {
			return nil
		}
		if l.scalarMemory(i) {
			x := l.temp()
			l.load(l.at(ops[0].(operand.Mem)), l.size(), x)
			l.lanewise(last, func(to vreg, from []vreg) { l.vop(name, 0, to, from[0], x) }, ops[1])
			return nil
		}
		l.lanewise(last, func(to vreg, from []vreg) { l.vop(name, 0, to, from[0], from[1]) }, ops[1], ops[0])
		return nil
	}
	switch i.Opcode {
	case "VMOVUPD", "VMOVUPS", "VMOVAPD", "VMOVAPS", "VMOVDQU":
		return l.moveVector(ops[0], last)
	case "VMOVNTPD", "VMOVNTPS":
		return l.moveVector(ops[0], last)
	case "VMOVSD", "VMOVSS", "MOVSD", "MOVSS", "VMOVLPS":
		bytes := l.size()
		if i.Opcode == "VMOVLPS" {
			bytes = 8
		}
		if m, ok := last.(operand.Mem); ok {
			l.store(l.current(ops[0].(reg.Register)).register(0), bytes, l.at(m))
			return nil
		}
		m, ok := ops[0].(operand.Mem)
		if !ok {
			return fmt.Errorf("a scalar cannot be moved between registers")
		}
		a := l.at(m)
		l.lanewise(last, func(to vreg, _ []vreg) { l.load(a, bytes, to) })
	case "VEXTRACTPS":
		n, _ := immediate(ops[0])
		x := l.temp()
		l.vop("dup", int(n), x, l.current(ops[1].(reg.Register)).register(0))
		l.store(x, 4, l.at(last.(operand.Mem)))
	case "VBROADCASTSD", "VBROADCASTSS", "VMOVDDUP":
		return l.broadcast(i)
	case "VMOVQ", "VMOVD":
		from := l.current(ops[0].(reg.Register)).register(0)
		if i.Opcode == "VMOVQ" {
			l.op("FMOVD {1}, {0}", []vreg{l.reg(last)}, from)
		} else {
			l.op("FMOVS {1}, {0}", []vreg{l.reg(last)}, from)
		}

	case "VFMADD231PD", "VFMADD231PS", "VFMADD231SD", "VFMADD231SS":
		l.multiplyAdd("fmla", i)
	case "VFNMADD231PD", "VFNMADD231PS", "VFNMADD231SD", "VFNMADD231SS":
		l.multiplyAdd("fmls", i)
	case "VFMADD213PD", "VFMADD213PS":
		l.elsewhere("fmla", i)
	case "VFNMADD213PD", "VFNMADD213PS":
		l.elsewhere("fmls", i)
	case "VFMSUB231PD": // to ← a·b − to
		var negated [2]vreg
		r := last.(reg.Register)
		n := l.homeOf(r.ID()).halves(width(last))
		a, b, addend := l.source(ops[0], n), l.source(ops[1], n), l.current(r)
		for h := range n {
			negated[h] = l.temp()
			l.vop("fneg", 0, negated[h], addend.register(h))
			l.vop("fmla", 0, negated[h], a[h], b[h])
		}
		l.replace(last, negated[:n]...)

	case "VSQRTPD", "VSQRTPS":
		l.lanewise(last, func(to vreg, from []vreg) { l.vop("fsqrt", 0, to, from[0]) }, ops[0])
	case "VSQRTSD", "VSQRTSS":
		l.lanewise(last, func(to vreg, from []vreg) { l.vop("fsqrt", 0, to, from[0]) }, ops[0])
	case "VROUNDPD", "VROUNDPS":
		l.lanewise(last, func(to vreg, from []vreg) { l.vop("frintn", 0, to, from[0]) }, ops[1])
	case "VPSLLQ", "VPSLLD", "VPSRLQ":
		l.double = strings.HasSuffix(i.Opcode, "Q")
		name := "shl"
		if i.Opcode == "VPSRLQ" {
			name = "ushr"
		}
		n, _ := immediate(ops[0])
		l.lanewise(last, func(to vreg, from []vreg) { l.vop(name, int(n), to, from[0]) }, ops[1])
	case "VMAXPD", "VMAXPS", "VMINPD", "VMINPS":
		return l.extreme(i)
	case "VCMPPD", "VCMPPS":
		return l.comparison(i)
	case "VBLENDVPD", "VBLENDVPS":
		// Select by the signs of the mask.
		l.lanewise(last, func(to vreg, from []vreg) {
			mask := from[0]
			if !l.compare[ops[0].(reg.Register).ID()] {
				mask = l.temp()
				l.vop("cmlt0", 0, mask, from[0])
			}
			chosen := l.temp()
			l.move(from[2], chosen)
			l.vop("bit", 0, chosen, from[1], mask)
			l.move(chosen, to)
		}, ops[0], ops[1], ops[2])
	case "VMOVMSKPD", "VMOVMSKPS":
		// The routines only test whether the result is 0.
		v := l.current(ops[0].(reg.Register))
		nonzero, upper, flag := l.temp(), l.newRegister(false), l.reg(last)
		l.vop("orr", 0, nonzero, v.register(0), v.register(1))
		l.op("FMOVD {1}, {0}", []vreg{flag}, nonzero)
		l.double = true
		l.vop("dup", 1, nonzero, nonzero)
		l.op("FMOVD {1}, {0}", []vreg{upper}, nonzero)
		l.op("ORR {1}, {2}, {0}", []vreg{flag}, flag, upper)
		l.effect("CMP $0, {0}", nil, flag)
		l.op("CSET NE, {0}", []vreg{flag})
	case "VMOVSHDUP":
		l.lanewise(last, func(to vreg, from []vreg) { l.vop("trn2", 0, to, from[0], from[0]) }, ops[0])
	case "VCVTPS2PD":
		l.double = true
		from := l.source(ops[0], 1)[0]
		low, high := l.temp(), l.temp()
		l.vop("fcvtl", 0, low, from)
		l.vop("fcvtl2", 0, high, from)
		l.replace(last, low, high)
	case "VCVTPD2PSY":
		v, half := l.current(ops[0].(reg.Register)), l.temp()
		l.double = true
		l.vop("fcvtn", 0, half, v.register(0))
		l.vop("fcvtn2", 0, half, v.register(1))
		l.replace(last, half)
	case "VEXTRACTF128":
		half := l.temp()
		l.move(l.current(ops[1].(reg.Register)).register(1), half)
		l.replace(last, half)
	case "VINSERTF128":
		low, high := l.temp(), l.temp()
		l.move(l.current(ops[2].(reg.Register)).register(0), low)
		l.move(l.current(ops[1].(reg.Register)).register(0), high)
		l.replace(last, low, high)
	case "VPERM2F128":
		n, _ := immediate(ops[0])
		a, b := l.current(ops[2].(reg.Register)), l.current(ops[1].(reg.Register))
		choices := []vreg{a.register(0), a.register(1), b.register(0), b.register(1)}
		var halves [2]vreg
		for h := range halves {
			halves[h] = l.temp()
			l.move(choices[n>>(4*h)&3], halves[h])
		}
		l.replace(last, halves[:]...)
	case "VPERMPD", "VPERMPS":
		return l.spreadLane(i)
	case "VPMOVZXWD":
		codes, low, high := l.temp(), l.temp(), l.temp()
		l.load(l.at(ops[0].(operand.Mem)), 16, codes)
		l.vop("ushll", 0, low, codes)
		l.vop("ushll2", 0, high, codes)
		l.replace(last, low, high)
	case "VCVTDQ2PS":
		l.lanewise(last, func(to vreg, from []vreg) { l.vop("scvtf", 0, to, from[0]) }, ops[0])
	case "VCVTPS2DQ":
		l.lanewise(last, func(to vreg, from []vreg) { l.vop("fcvtns", 0, to, from[0]) }, ops[0])
	case narrowCodes:
		a := l.at(last.(operand.Mem))
		for k, op := range ops[:2] {
			v, half := l.current(op.(reg.Register)), l.temp()
			l.vop("xtn", 0, half, v.register(0))
			l.vop("xtn2", 0, half, v.register(1))
			l.store(half, 16, a.offset(16*k))
		}
	case columnsLoad, columnsStore:
		return l.columns(i)
	default:
		return fmt.Errorf("no translation")
	}
	return nil
}

// size returns the size of an element of the current instruction.
func (l *lowering) size() int {
	if l.double {
		return 8
	}
	return 4
}

// scalarMemory reports whether a scalar instruction has an operand in memory.
func (l *lowering) scalarMemory(i *ir.Instruction) bool {
	_, memory := i.Operands[0].(operand.Mem)
	return memory && strings.HasSuffix(i.Opcode[:len(i.Opcode)-1], "S") && strings.HasPrefix(i.Opcode, "V")
}

// moveVector loads, stores or copies a vector.
func (l *lowering) moveVector(from, to operand.Op) error {
	if m, ok := to.(operand.Mem); ok {
		n := width(from)
		v, a := l.current(from.(reg.Register)), l.at(m)
		for h := range n {
			l.store(v.register(h), 16, a.offset(16*h))
		}
		return nil
	}
	if m, ok := from.(operand.Mem); ok {
		r, half := to.(reg.Register), l.halvesAt(m)
		home := l.homeOf(r.ID())
		for h := range home.halves(width(to)) {
			l.load(half(h), 16, home.half[h])
		}
		l.atHome(r, width(to))
		return nil
	}
	l.lanewise(to, func(to vreg, from []vreg) { l.move(from[0], to) }, from)
	return nil
}

// broadcast translates a broadcast. It emits a plain load if all instructions that use the result can name one lane.
func (l *lowering) broadcast(i *ir.Instruction) error {
	to := i.Operands[1].(reg.Register)
	l.double = i.Opcode != "VBROADCASTSS"
	if !l.byLane[to.ID()] {
		x := none
		if m, ok := i.Operands[0].(operand.Mem); ok {
			x = l.temp()
			l.load(l.at(m), l.size(), x)
		} else {
			x = l.current(i.Operands[0].(reg.Register)).register(0)
		}
		first := none
		l.lanewise(to, func(to vreg, _ []vreg) {
			if first == none {
				l.vop("dup", 0, to, x)
				first = to
			} else {
				l.move(first, to)
			}
		})
		return nil
	}
	m := i.Operands[0].(operand.Mem)
	location, grouped := l.element[i]
	if !grouped || location.bytes == l.size() {
		x := l.temp()
		l.load(l.at(m), l.size(), x)
		l.home[to.ID()] = vector{half: [2]vreg{x, none}, equalHalves: true}
		return nil
	}
	x, ok := l.loaded[location.group]
	if !ok {
		x = l.temp()
		l.load(l.at(m).offset(-location.lane*l.size()), location.bytes, x)
		l.loaded[location.group] = x
	}
	l.home[to.ID()] = vector{half: [2]vreg{x, none}, equalHalves: true, lane: location.lane}
	return nil
}

// elementOf returns the register and the lane of an operand. It returns false unless the operand is a single lane.
func (l *lowering) elementOf(op operand.Op) (vreg, int, bool) {
	r, ok := op.(reg.Register)
	if !ok || !l.byLane[r.ID()] {
		return none, 0, false
	}
	v := l.home[r.ID()]
	return v.half[0], v.lane, true
}

// product emits to ← a·b or to ← to ± a·b if one factor is a lane of a register. Otherwise it returns false.
func (l *lowering) product(name string, i *ir.Instruction) bool {
	ops := i.Operands
	x, lane, ok := l.elementOf(ops[0])
	factor := ops[1]
	if !ok {
		x, lane, ok = l.elementOf(ops[1])
		factor = ops[0]
	}
	if !ok {
		return false
	}
	l.accumulate(i.Operands[2], name != "fmul", func(to vreg, from []vreg) { l.vop(name+"e", lane, to, from[0], x) }, factor)
	return true
}

// accumulate is like lanewise. If reads is true, the instruction also reads `to`.
func (l *lowering) accumulate(to operand.Op, reads bool, f func(to vreg, from []vreg), from ...operand.Op) {
	r := to.(reg.Register)
	if _, ok := l.now[r.ID()]; ok && reads {
		// `to` is in temporary registers at this point of the block; add to these registers.
		n := l.homeOf(r.ID()).halves(width(to))
		sources := make([][2]vreg, len(from))
		for i, op := range from {
			sources[i] = l.source(op, n)
		}
		current := l.current(r)
		for h := range n {
			now := make([]vreg, len(from))
			for i, s := range sources {
				now[i] = s[h]
			}
			f(current.register(h), now)
		}
		return
	}
	l.lanewise(to, f, from...)
}

// multiplyAdd emits to ← to ± a·b.
func (l *lowering) multiplyAdd(name string, i *ir.Instruction) {
	if l.product(name, i) {
		return
	}
	ops := i.Operands
	if m, ok := ops[0].(operand.Mem); ok && strings.Contains(i.Opcode, "231S") {
		// A scalar factor from memory: the other lanes of x and of the products are zero.
		x := l.temp()
		l.load(l.at(m), l.size(), x)
		l.accumulate(ops[2], true, func(to vreg, from []vreg) { l.vop(name, 0, to, from[0], x) }, ops[1])
		return
	}
	l.accumulate(ops[2], true, func(to vreg, from []vreg) { l.vop(name, 0, to, from[0], from[1]) }, ops[0], ops[1])
}

// elsewhere computes ops[0] ± ops[1]·ops[2] in new registers, and records that these now hold ops[2].
func (l *lowering) elsewhere(name string, i *ir.Instruction) {
	ops := i.Operands
	r := ops[2].(reg.Register)
	n := l.homeOf(r.ID()).halves(width(ops[2]))
	factor, multiplier := l.source(ops[1], n), l.current(r)
	var sums [2]vreg
	var half func(h int) address
	m, memory := ops[0].(operand.Mem)
	if memory {
		half = l.halvesAt(m)
	}
	for h := range n {
		sums[h] = l.temp()
		if memory {
			l.load(half(h), 16, sums[h])
		} else {
			l.move(l.current(ops[0].(reg.Register)).register(h), sums[h])
		}
		l.vop(name, 0, sums[h], factor[h], multiplier.register(h))
	}
	l.replace(ops[2], sums[:n]...)
}

// extreme emits the minimum or maximum of ops[0] and ops[1]. As on AVX2, the result is ops[0] if one is NaN.
func (l *lowering) extreme(i *ir.Instruction) error {
	ops := i.Operands
	name := "fmax"
	if strings.HasPrefix(i.Opcode, "VMIN") {
		name = "fmin"
	}
	switch {
	case l.isConstant(ops[0]):
		name += "nm"
	case l.isConstant(ops[1]):
	default:
		// Take ops[1] where it is larger (fmin: smaller) than ops[0], and ops[0] in all other lanes.
		l.lanewise(ops[2], func(to vreg, from []vreg) {
			selected := l.temp()
			if name == "fmax" {
				l.vop("fcmgt", 0, selected, from[1], from[0])
			} else {
				l.vop("fcmgt", 0, selected, from[0], from[1])
			}
			l.vop("bsl", 0, selected, from[1], from[0])
			l.move(selected, to)
		}, ops[0], ops[1])
		return nil
	}
	l.lanewise(ops[2], func(to vreg, from []vreg) { l.vop(name, 0, to, from[0], from[1]) }, ops[0], ops[1])
	return nil
}

func (l *lowering) isConstant(op operand.Op) bool {
	switch v := op.(type) {
	case operand.Mem:
		return v.Base == reg.StaticBase
	case reg.Register:
		_, ok := l.fixed[v.ID()]
		return ok
	}
	return false
}

// comparison sets the lanes of ops[3] to ones where ops[2] and ops[1] satisfy the predicate ops[0], or else to zeros.
func (l *lowering) comparison(i *ir.Instruction) error {
	ops := i.Operands
	n, _ := immediate(ops[0])
	l.lanewise(ops[3], func(to vreg, from []vreg) {
		a, b := from[0], from[1]
		switch uint8(n) {
		case equal:
			l.vop("fcmeq", 0, to, a, b)
		case less:
			l.vop("fcmgt", 0, to, b, a)
		case greater:
			l.vop("fcmgt", 0, to, a, b)
		case notAtLeast:
			atLeast := l.temp()
			l.vop("fcmge", 0, atLeast, a, b)
			l.vop("not", 0, to, atLeast)
		case notLess:
			isLess := l.temp()
			l.vop("fcmgt", 0, isLess, b, a)
			l.vop("not", 0, to, isLess)
		default:
			panic("unknown predicate")
		}
	}, ops[2], ops[1])
	return nil
}

// spreadLane broadcasts one of the first four lanes of a vector.
func (l *lowering) spreadLane(i *ir.Instruction) error {
	ops := i.Operands
	var lane int
	from := ops[1]
	if n, ok := immediate(ops[0]); ok {
		lane = int(n) & 3
	} else {
		// VPERMPS has its lane numbers in a register. This register must hold a constant.
		m, ok := l.fixed[ops[1].(reg.Register).ID()]
		if !ok {
			return fmt.Errorf("the register of lane numbers is not a constant")
		}
		lane, from = int(l.pool.first(m)), ops[0]
	}
	lanes := 16 / l.size()
	v := l.current(from.(reg.Register))
	to := l.temp()
	l.vop("dup", lane%lanes, to, v.register(lane/lanes))
	if l.homeOf(ops[2].(reg.Register).ID()).equalHalves {
		l.replace(ops[2], to)
		return nil
	}
	upper := l.temp()
	l.move(to, upper)
	l.replace(ops[2], to, upper)
	return nil
}

// columns lowers columnsLoad or columnsStore: it emits loads or stores of the columns whose bits are set.
func (l *lowering) columns(i *ir.Instruction) error {
	ops := i.Operands
	first, _ := immediate(ops[1])
	size, _ := immediate(ops[2])
	anyStart, _ := immediate(ops[3])
	l.double = size == 8
	vectorOp, memory := ops[4], ops[5]
	if i.Opcode == columnsLoad {
		vectorOp, memory = ops[5], ops[4]
	}
	r, a := vectorOp.(reg.Register), l.at(memory.(operand.Mem))
	n, lanes := width(vectorOp), 16/l.size()
	v := l.homeOf(r.ID())
	if i.Opcode == columnsStore {
		v = l.current(r)
	}
	for h := range n {
		c := columns{l, ops[0], int(first) + h*lanes, anyStart != 0, v.register(h), a.offset(16 * h)}
		c.move(i.Opcode == columnsLoad)
	}
	if i.Opcode == columnsLoad {
		l.atHome(r, n)
	}
	return nil
}

// columns describes the range of selected columns in one register of 16 bytes.
type columns struct {
	l        *lowering
	bits     operand.Op
	first    int  // column of the register's first lane
	anyStart bool // whether the range may begin after the first column of the vector
	x        vreg
	a        address
}

// unless emits a jump that is taken if a lane is not in the range. For constant bits it emits nothing, and reports
// whether the lane is not in the range.
func (c columns) unless(lane int, label string) bool {
	if n, ok := immediate(c.bits); ok {
		return n>>(c.first+lane)&1 == 0
	}
	c.l.insts = append(c.l.insts, neonInst{
		text: fmt.Sprintf("TBZ $%d, {0}, %s", c.first+lane, label),
		regs: []vreg{c.l.reg(c.bits)}, to: label, cond: true, effects: true,
	})
	return false
}

// move emits the loads or stores of the columns in the range. It moves a whole register at once if possible.
func (c columns) move(loads bool) {
	l := c.l
	lanes := 16 / l.size()
	done, partial := l.newLabel(), l.newLabel()
	moveBytes := func(bytes int) {
		if loads {
			l.load(c.a, bytes, c.x)
		} else {
			l.store(c.x, bytes, c.a)
		}
	}
	whole := !c.unless(lanes-1, partial)
	if whole && c.anyStart {
		whole = !c.unless(0, partial)
	}
	if whole {
		moveBytes(16)
		l.branch("B", done)
	}
	l.placeLabel(partial)
	if loads {
		l.vop("movi", 0, c.x)
	}
	for lane := range lanes {
		next := done
		if c.anyStart {
			next = l.newLabel()
		}
		switch {
		case !c.anyStart && lane == lanes-1: // this is the case of a whole register, which is emitted above
		case c.unless(lane, next):
			if !c.anyStart {
				l.branch("B", done)
			}
		case c.anyStart || lane == 2:
			c.lane(lane, loads)
		default:
			moveBytes((lane + 1) * l.size())
		}
		if c.anyStart {
			l.placeLabel(next)
		}
	}
	l.placeLabel(done)
}

func (c columns) lane(lane int, loads bool) {
	l, a := c.l, c.a.offset(lane*c.l.size())
	one := l.temp()
	if loads {
		l.load(a, l.size(), one)
		l.vop("ins", lane, c.x, one)
		return
	}
	l.vop("dup", lane, one, c.x)
	l.store(one, l.size(), a)
}
