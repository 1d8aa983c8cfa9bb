package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/reg"
)

// The routines are written once, with the instructions of AVX2 and virtual registers. For arm64, this file
// translates them to instructions of NEON one by one. A vector of 32 bytes is a pair of 16-byte registers.
// neon_registers.go assigns the registers and neon_print.go writes the text.
//
// Exceptions to the one-by-one translation:
//
//   - An element that AVX2 broadcasts to all lanes is not copied: the multiply-adds name its register and lane.
//     Adjacent elements in memory are loaded as one vector.
//   - A vector whose halves are equal has one register.
//   - If a multiply-add overwrites a factor by the sum (VFMADD213), the sum is stored in a new register.
//   - There are no masked loads and stores. Masks are bits in a general register, as for AVX-512. The additional
//     opcodes columnsLoad and columnsStore branch on these bits.

// poolRegister holds the address of the constants.
const poolRegister = "R26"

// columnsLoad and columnsStore are opcodes for NEON only. They copy memory to a vector, and a vector to memory; see
// columnMask. Their operands are: the mask of the columns, the column of the vector's first element, the size of
// an element, 1 if the range of columns may begin after the first column, source, and destination.
const (
	columnsLoad  = "COLUMNSLOAD"
	columnsStore = "COLUMNSSTORE"
)

// A vreg is a virtual register, numbered in the function.
type vreg int

const none vreg = -1

// A neonInst is an instruction, or a label.
type neonInst struct {
	text    string // instruction in Go syntax; {0} stands for regs[0], {1} for regs[1], …, and {local+8} for a slot in the frame
	word    *neonOp
	imm     int // lane or shift in the instruction word
	regs    []vreg
	defs    int    // the instruction writes the first defs elements of regs
	inout   bool   // whether the instruction also reads regs[0]
	label   string // the name, if the instruction is a label
	to      string // the label of the target, if the instruction is a branch
	cond    bool
	ret     bool
	move    bool // whether the instruction is a move from regs[1] to regs[0]
	effects bool // whether the instruction has effects beyond the registers it writes
}

// A vector holds the registers for a virtual register of AVX2.
type vector struct {
	half        [2]vreg
	equalHalves bool // whether both halves are half[0]
	lane        int  // lane of half[0] that represents all lanes, or −1
}

// A lowering is the translation of one function.
type lowering struct {
	fn     *ir.Function
	pool   *pool
	double bool // whether the current instruction has double precision
	insts  []neonInst
	vector []bool // whether each virtual register is a vector
	labels int

	gp          map[reg.ID]vreg
	home        map[reg.ID]vector
	now         map[reg.ID]vector // the current register of each vector that this block has moved from its register in the map home
	equalHalves map[reg.ID]bool
	element     map[*ir.Instruction]elementAt // broadcasts that the translation omits
	byLane      map[reg.ID]bool
	fixed       map[reg.ID]operand.Mem // registers whose value is a constant
	flags       map[*ir.Instruction]bool
	compare     map[reg.ID]bool // registers with results of comparisons, whose lanes are all ones or all zeros
	loaded      map[elementGroup]vreg
	frame       int
}

// An elementGroup is 16 bytes of memory, valid until memory or the registers of its address are written.
type elementGroup struct {
	block, stores int
	base, index   registerVersion
	scale         uint8
	disp          int
}

// A registerVersion identifies a register between two writes.
type registerVersion struct {
	id     reg.ID
	writes int
}

// An elementAt is the location of a broadcast element.
type elementAt struct {
	group elementGroup
	lane  int
	bytes int // number of loaded bytes: 16, 8, or the size of the element
}

// lower returns the function's instructions for arm64.
func lower(fn *ir.Function, p *pool) (*lowering, error) {
	for _, f := range []func(*ir.Function) error{pass.PruneJumpToFollowingLabel, pass.PruneDanglingLabels, pass.LabelTarget, pass.CFG} {
		if err := f(fn); err != nil {
			return nil, err
		}
	}
	for _, i := range fn.Instructions() {
		if err := pass.ZeroExtend32BitOutputs(i); err != nil {
			return nil, err
		}
	}
	if err := pass.Liveness(fn); err != nil {
		return nil, err
	}
	l := &lowering{
		fn: fn, pool: p, frame: fn.LocalSize,
		gp: map[reg.ID]vreg{}, home: map[reg.ID]vector{}, now: map[reg.ID]vector{},
		loaded: map[elementGroup]vreg{},
	}
	l.analyze()
	var last *ir.Instruction
	for _, node := range fn.Nodes {
		switch n := node.(type) {
		case ir.Label:
			l.endBlock(last)
			l.insts = append(l.insts, neonInst{label: string(n), effects: true})
		case *ir.Instruction:
			if n.IsBranch || n.IsTerminal {
				// The block ends before its branch, because a branch neither writes registers nor reads vectors.
				l.endBlock(n)
			}
			if err := l.instruction(n); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", fn.Name, n.OpcodeWithSuffixes(), err)
			}
			last = n
		}
	}
	return l, nil
}

// endBlock moves vectors that other blocks use back to their assigned registers.
func (l *lowering) endBlock(last *ir.Instruction) {
	ids := make([]reg.ID, 0, len(l.now))
	for id := range l.now {
		ids = append(ids, id)
	}
	sortIDs(ids)
	for _, id := range ids {
		if last != nil && (last.LiveOut[id] != 0 || last.LiveIn[id] != 0 && last.IsBranch) {
			home := l.homeOf(id)
			for h := range home.halves(2) {
				if v := l.now[id].half[h]; v != none && v != home.half[h] {
					l.move(v, home.half[h])
				}
			}
		}
	}
	clear(l.now)
	clear(l.loaded)
}

// halves returns the number of registers that hold the first n halves of v.
func (v vector) halves(n int) int {
	if v.equalHalves {
		return 1
	}
	return n
}

// register returns the register that holds half h of v.
func (v vector) register(h int) vreg {
	if v.equalHalves {
		return v.half[0]
	}
	return v.half[h]
}

func (l *lowering) newRegister(isVector bool) vreg {
	l.vector = append(l.vector, isVector)
	return vreg(len(l.vector) - 1)
}

func (l *lowering) temp() vreg { return l.newRegister(true) }

func (l *lowering) homeOf(id reg.ID) vector {
	v, ok := l.home[id]
	if !ok {
		v = vector{half: [2]vreg{l.temp(), none}, equalHalves: l.equalHalves[id], lane: -1}
		if !v.equalHalves {
			v.half[1] = l.temp()
		}
		l.home[id] = v
	}
	return v
}

// current returns the registers that now hold a vector.
func (l *lowering) current(r reg.Register) vector {
	if v, ok := l.now[r.ID()]; ok {
		home := l.homeOf(r.ID())
		for h := range v.half {
			if v.half[h] == none {
				v.half[h] = home.half[h]
			}
		}
		return v
	}
	return l.homeOf(r.ID())
}

// reg returns the virtual register for a general register of any width.
func (l *lowering) reg(op operand.Op) vreg {
	r, ok := op.(reg.Register)
	if !ok {
		panic(fmt.Sprintf("not a register: %v", op))
	}
	v, ok := l.gp[r.ID()]
	if !ok {
		v = l.newRegister(false)
		l.gp[r.ID()] = v
	}
	return v
}

// op adds an instruction in Go's syntax.
func (l *lowering) op(text string, defs []vreg, uses ...vreg) *neonInst {
	l.insts = append(l.insts, neonInst{text: text, regs: append(append([]vreg(nil), defs...), uses...), defs: len(defs)})
	return &l.insts[len(l.insts)-1]
}

// effect adds an instruction with effects beyond the registers it writes, such as flags.
func (l *lowering) effect(text string, defs []vreg, uses ...vreg) {
	l.op(text, defs, uses...).effects = true
}

// vop adds an instruction of NEON on whole vectors.
func (l *lowering) vop(name string, imm int, to vreg, from ...vreg) {
	op := neonOps[name]
	if op == nil {
		panic("no instruction " + name)
	}
	l.insts = append(l.insts, neonInst{word: op.in(l.double), imm: imm, regs: append([]vreg{to}, from...), defs: 1, inout: op.inout})
}

func (l *lowering) move(from, to vreg) {
	if l.vector[from] {
		l.vop("mov", 0, to, from)
	} else {
		l.op("MOVD {1}, {0}", []vreg{to}, from)
	}
	l.insts[len(l.insts)-1].move = true
}

func (l *lowering) branch(mnemonic, to string) {
	l.insts = append(l.insts, neonInst{text: mnemonic + " " + to, to: to, cond: mnemonic != "B", effects: true})
}

func (l *lowering) newLabel() string {
	l.labels++
	return fmt.Sprintf("lane%d", l.labels)
}

func (l *lowering) placeLabel(label string) {
	l.insts = append(l.insts, neonInst{label: label, effects: true})
}

// An address is memory that an instruction can use: a register and a displacement, or text alone.
type address struct {
	base vreg
	disp int
	text string // if the base is not a virtual register: format of the address, with %d for the displacement
}

func (a address) offset(n int) address {
	a.disp += n
	return a
}

// write returns the text of the address. The base is regs[n] of the instruction.
func (a address) write(n int) string {
	if a.text != "" {
		return fmt.Sprintf(a.text, a.disp)
	}
	if a.disp == 0 {
		return fmt.Sprintf("({%d})", n)
	}
	return fmt.Sprintf("%d({%d})", a.disp, n)
}

// registers returns a list of the base, or an empty list if the address is text.
func (a address) registers() []vreg {
	if a.text != "" {
		return nil
	}
	return []vreg{a.base}
}

// at turns memory into an address.
func (l *lowering) at(m operand.Mem) address {
	switch m.Base {
	case reg.FramePointer:
		return address{text: m.Symbol.Name + "+%d(FP)", disp: m.Disp}
	case reg.StackPointer:
		return address{text: "{local+%d}", disp: m.Disp}
	case reg.StaticBase:
		return address{text: "%d(" + poolRegister + ")", disp: l.pool.offset(m)}
	}
	base := l.reg(m.Base)
	if m.Index != nil && m.Scale != 0 {
		sum := l.newRegister(false)
		l.addScaled(sum, base, m)
		base = sum
	}
	return address{base: base, disp: m.Disp}
}

// addScaled emits to ← base + index·scale.
func (l *lowering) addScaled(to, base vreg, m operand.Mem) {
	text := "ADD {1}, {2}, {0}"
	if m.Scale > 1 {
		text = fmt.Sprintf("ADD {1}<<%d, {2}, {0}", shiftOf(m.Scale))
	}
	l.op(text, []vreg{to}, l.reg(m.Index), base)
}

func shiftOf(scale uint8) int {
	n := 0
	for 1<<n < int(scale) {
		n++
	}
	return n
}

// load and store move bytes between memory and a register: 16, 8 or 4 bytes of a vector, 8 or 4 of a general
// register. The remaining bytes of a vector become zero.
func (l *lowering) load(a address, bytes int, to vreg) {
	l.op(l.mover(to, bytes)+" "+a.write(1)+", {0}", []vreg{to}, a.registers()...)
}

func (l *lowering) store(from vreg, bytes int, a address) {
	l.effect(l.mover(from, bytes)+" {0}, "+a.write(1), nil, append([]vreg{from}, a.registers()...)...)
}

func (l *lowering) mover(r vreg, bytes int) string {
	if l.vector[r] {
		return map[int]string{16: "FMOVQ", 8: "FMOVD", 4: "FMOVS"}[bytes]
	}
	return map[int]string{8: "MOVD", 4: "MOVWU", 1: "MOVBU"}[bytes]
}

// immediate returns the value of a constant operand.
func immediate(op operand.Op) (int64, bool) {
	switch v := op.(type) {
	case operand.U8:
		return int64(v), true
	case operand.U32:
		return int64(v), true
	case operand.U64:
		return int64(v), true
	case operand.I8:
		return int64(v), true
	case operand.I32:
		return int64(v), true
	}
	return 0, false
}

// value returns the text of an operand of an integer instruction: a constant, or "{n}" for a register, which value then
// also returns. It loads operands in memory.
func (l *lowering) value(op operand.Op, bytes, n int) (string, []vreg) {
	if v, ok := immediate(op); ok {
		return fmt.Sprintf("$%d", v), nil
	}
	r := none
	if m, ok := op.(operand.Mem); ok {
		r = l.newRegister(false)
		l.load(l.at(m), bytes, r)
	} else {
		r = l.reg(op)
	}
	return fmt.Sprintf("{%d}", n), []vreg{r}
}

// integer lowers an integer instruction that computes `to` ← `to` op `from`. `to` may be in memory.
func (l *lowering) integer(i *ir.Instruction, op string, bytes int, from, to operand.Op) {
	setsFlags := l.flags[i]
	if setsFlags {
		op += "S"
	}
	if bytes == 4 {
		op += "W"
	}
	text, sources := l.value(from, bytes, 2)
	m, memory := to.(operand.Mem)
	var r vreg
	if memory {
		r = l.newRegister(false)
		l.load(l.at(m), bytes, r)
	} else {
		r = l.reg(to)
	}
	l.op(fmt.Sprintf("%s %s, {1}, {0}", op, text), []vreg{r}, append([]vreg{r}, sources...)...).effects = setsFlags
	if memory {
		l.store(r, bytes, l.at(m))
	}
}

// tested emits the instruction that sets the flags from a register.
func (l *lowering) tested(i *ir.Instruction, op operand.Op, bytes int) {
	if l.flags[i] {
		l.effect(map[int]string{8: "CMP", 4: "CMPW"}[bytes]+" $0, {0}", nil, l.reg(op))
	}
}

var conditions = map[string]string{
	"JL": "BLT", "JLE": "BLE", "JG": "BGT", "JGE": "BGE", "JZ": "BEQ", "JEQ": "BEQ",
	"JNE": "BNE", "JNZ": "BNE", "JCC": "BHS",
}

func (l *lowering) instruction(i *ir.Instruction) error {
	ops := i.Operands
	l.double = strings.HasSuffix(i.Opcode, "D") || strings.HasSuffix(i.Opcode, "PDY")
	if name, ok := conditions[i.Opcode]; ok {
		l.branch(name, string(*i.TargetLabel()))
		return nil
	}
	bytes := 8
	if strings.HasSuffix(i.Opcode, "L") && !strings.HasPrefix(i.Opcode, "V") {
		bytes = 4
	}
	switch i.Opcode {
	case "RET":
		l.insts = append(l.insts, neonInst{text: "RET", ret: true, effects: true})
	case "JMP":
		l.branch("B", string(*i.TargetLabel()))
	case "VZEROUPPER":
	case "PREFETCHT0", "PREFETCHT1":
		a, level := l.at(ops[0].(operand.Mem)), map[string]string{"PREFETCHT0": "PLDL1KEEP", "PREFETCHT1": "PLDL2KEEP"}[i.Opcode]
		l.effect("PRFM "+a.write(0)+", "+level, nil, a.registers()...)

	case "MOVQ", "MOVL", "MOVB":
		if i.Opcode == "MOVB" {
			bytes = 1
		}
		l.moveInteger(ops[0], ops[1], bytes)
	case "LEAQ":
		return l.effectiveAddress(ops[0].(operand.Mem), ops[1])
	case "ADDQ", "ADDL":
		l.integer(i, "ADD", bytes, ops[0], ops[1])
	case "SUBQ", "SUBL":
		l.integer(i, "SUB", bytes, ops[0], ops[1])
	case "INCQ":
		l.integer(i, "ADD", bytes, operand.U8(1), ops[0])
	case "DECQ":
		l.integer(i, "SUB", bytes, operand.U8(1), ops[0])
	case "NOTQ":
		l.op("MVN {1}, {0}", []vreg{l.reg(ops[0])}, l.reg(ops[0]))
	case "ANDQ", "ANDL":
		l.integer(i, "AND", bytes, ops[0], ops[1])
	case "XORQ":
		if ops[0] != ops[1] {
			return fmt.Errorf("XORQ of two different registers is not translated")
		}
		l.op("MOVD ZR, {0}", []vreg{l.reg(ops[1])})
		l.tested(i, ops[1], bytes)
	case "SHLQ", "SHRQ", "SHLL", "SHRL":
		name := map[string]string{"SHLQ": "LSL", "SHRQ": "LSR", "SHLL": "LSLW", "SHRL": "LSRW"}[i.Opcode]
		amount, sources := l.value(ops[0], bytes, 2)
		r := l.reg(ops[1])
		l.op(fmt.Sprintf("%s %s, {1}, {0}", name, amount), []vreg{r}, append([]vreg{r}, sources...)...)
		l.tested(i, ops[1], bytes)
	case "IMUL3Q":
		n, _ := immediate(ops[0])
		factor := l.newRegister(false)
		l.op(fmt.Sprintf("MOVD $%d, {0}", n), []vreg{factor})
		l.op("MUL {1}, {2}, {0}", []vreg{l.reg(ops[2])}, l.reg(ops[1]), factor)
		return l.noFlags(i)
	case "IMULQ":
		text, from := l.value(ops[0], bytes, 2)
		r := l.reg(ops[1])
		l.op("MUL "+text+", {1}, {0}", []vreg{r}, append([]vreg{r}, from...)...)
		return l.noFlags(i)
	case "TESTQ", "TESTL", "TESTB":
		name := map[string]string{"TESTQ": "TST", "TESTL": "TSTW", "TESTB": "TSTW"}[i.Opcode]
		if n, ok := immediate(ops[0]); ok {
			l.effect(fmt.Sprintf("%s $%d, {0}", name, n), nil, l.reg(ops[1]))
		} else {
			l.effect(name+" {0}, {1}", nil, l.reg(ops[0]), l.reg(ops[1]))
		}
	case "CMPQ", "CMPL":
		_, leftRegs := l.value(ops[0], bytes, 0)
		text, rightRegs := l.value(ops[1], bytes, 1)
		l.effect(map[int]string{8: "CMP", 4: "CMPW"}[bytes]+" "+text+", {0}", nil, append(leftRegs, rightRegs...)...)
	case "CMOVQGT", "CMOVQLT":
		r := l.reg(ops[1])
		l.op("CSEL "+i.Opcode[len("CMOVQ"):]+", {1}, {2}, {0}", []vreg{r}, l.reg(ops[0]), r)
	default:
		return l.vectorInstruction(i)
	}
	return nil
}

// noFlags returns an error if code uses the flags of an instruction that sets no flags on arm64.
func (l *lowering) noFlags(i *ir.Instruction) error {
	if l.flags[i] {
		return fmt.Errorf("no translation: the code uses the flags")
	}
	return nil
}

func (l *lowering) moveInteger(from, to operand.Op, bytes int) {
	if m, ok := to.(operand.Mem); ok {
		r := none
		if n, ok := immediate(from); ok {
			r = l.newRegister(false)
			l.op(fmt.Sprintf("MOVD $%d, {0}", n), []vreg{r})
		} else {
			r = l.reg(from)
		}
		l.store(r, bytes, l.at(m))
		return
	}
	r := l.reg(to)
	switch m := from.(type) {
	case operand.Mem:
		l.load(l.at(m), bytes, r)
	case reg.Register:
		l.move(l.reg(m), r)
	default:
		n, _ := immediate(from)
		l.op(fmt.Sprintf("MOVD $%d, {0}", n), []vreg{r})
	}
}

func (l *lowering) effectiveAddress(m operand.Mem, to operand.Op) error {
	if m.Base == reg.StaticBase {
		return fmt.Errorf("no translation of the address of a constant")
	}
	r, base := l.reg(to), l.reg(m.Base)
	if m.Index != nil && m.Scale != 0 {
		l.addScaled(r, base, m)
		base = r
	}
	if m.Disp != 0 {
		l.op(fmt.Sprintf("ADD $%d, {1}, {0}", m.Disp), []vreg{r}, base)
	} else if base != r {
		l.move(base, r)
	}
	return nil
}
