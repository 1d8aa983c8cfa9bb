package main

import (
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// analyze collects facts about the whole function that the translation of a single instruction needs.
func (l *lowering) analyze() {
	l.findFlags()
	l.findConstants()
	l.findEqualHalves()
	l.findElements()
}

func sortIDs(ids []reg.ID) { slices.Sort(ids) }

// setsFlags reports whether an instruction of AVX2 writes the flags.
func setsFlags(i *ir.Instruction) bool {
	switch i.Opcode {
	case "MOVQ", "MOVL", "MOVB", "LEAQ", "PREFETCHT0", "PREFETCHT1", "CMOVQGT", "CMOVQLT":
		return false
	case "VMOVMSKPD", "VMOVMSKPS":
		return true
	case columnsLoad, columnsStore, "NOTQ":
		return false
	}
	return !i.IsBranch && !strings.HasPrefix(i.Opcode, "V") && !strings.HasPrefix(i.Opcode, "MOVS")
}

// findFlags finds the instructions whose flags are read.
func (l *lowering) findFlags() {
	l.flags = map[*ir.Instruction]bool{}
	var setter *ir.Instruction
	for _, node := range l.fn.Nodes {
		i, ok := node.(*ir.Instruction)
		if !ok {
			setter = nil // no block reads flags that another block sets
			continue
		}
		switch {
		case i.IsConditional || strings.HasPrefix(i.Opcode, "CMOV"):
			if setter == nil {
				panic(l.fn.Name + ": flags from another block at " + i.Opcode)
			}
			l.flags[setter] = true
		case setsFlags(i):
			setter = i
		}
	}
}

// definitions calls f for each instruction and each vector that it writes.
func (l *lowering) definitions(f func(i *ir.Instruction, to reg.Register)) {
	for _, i := range l.fn.Instructions() {
		for _, op := range i.Outputs {
			if r, ok := op.(reg.Register); ok && r.Kind() == reg.KindVector {
				f(i, r)
			}
		}
	}
}

// findConstants finds the registers written only once, with a constant, and those written only by comparisons.
func (l *lowering) findConstants() {
	l.fixed, l.compare = map[reg.ID]operand.Mem{}, map[reg.ID]bool{}
	count := map[reg.ID]int{}
	l.definitions(func(i *ir.Instruction, to reg.Register) {
		count[to.ID()]++
		comparison := strings.HasPrefix(i.Opcode, "VCMP")
		if earlier, ok := l.compare[to.ID()]; ok {
			comparison = comparison && earlier
		}
		l.compare[to.ID()] = comparison
	})
	l.definitions(func(i *ir.Instruction, to reg.Register) {
		if count[to.ID()] != 1 {
			return
		}
		switch m, ok := i.Operands[0].(operand.Mem); {
		case ok && m.Base == reg.StaticBase && len(i.Operands) == 2:
			l.fixed[to.ID()] = m
		case isZero(i):
			l.fixed[to.ID()] = operand.Mem{}
		}
	})
}

func isZero(i *ir.Instruction) bool {
	return strings.HasPrefix(i.Opcode, "VXORP") && i.Operands[0] == i.Operands[1]
}

// findEqualHalves finds the vectors of 32 bytes with equal halves: written only by broadcasts, constants and
// operations on such vectors.
func (l *lowering) findEqualHalves() {
	l.equalHalves = map[reg.ID]bool{}
	for _, i := range l.fn.Instructions() {
		for _, op := range i.Operands {
			if r, ok := op.(reg.Register); ok && r.Kind() == reg.KindVector {
				l.equalHalves[r.ID()] = true
			}
		}
	}
	for changed := true; changed; {
		changed = false
		l.definitions(func(i *ir.Instruction, to reg.Register) {
			if l.equalHalves[to.ID()] && !l.givesEqualHalves(i, to) {
				l.equalHalves[to.ID()], changed = false, true
			}
		})
	}
}

func (l *lowering) givesEqualHalves(i *ir.Instruction, to reg.Register) bool {
	if to.Size() != 32 {
		return false
	}
	switch i.Opcode {
	case "VBROADCASTSD", "VBROADCASTSS", "VMOVDDUP", "VPERMPD", "VPERMPS":
		return true
	case "VCVTPS2PD", "VCVTPD2PSY", "VEXTRACTF128", "VINSERTF128", "VPERM2F128", columnsLoad:
		return false
	}
	for _, op := range i.Operands {
		switch v := op.(type) {
		case operand.Mem:
			if !l.pool.repeats(v) {
				return false
			}
		case reg.Register:
			if v.Kind() == reg.KindVector && !l.equalHalves[v.ID()] {
				return false
			}
		}
	}
	return true
}

// byElement reports whether an instruction of NEON can use one lane of a register for this operand.
func byElement(i *ir.Instruction, op int) bool {
	switch i.Opcode {
	case "VFMADD231PD", "VFMADD231PS", "VFNMADD231PD", "VFNMADD231PS", "VMULPD", "VMULPS":
		return op < 2
	}
	return false
}

// findElements finds the broadcasts from memory that one lane of a register can replace in all their uses.
func (l *lowering) findElements() {
	l.byLane, l.element = map[reg.ID]bool{}, map[*ir.Instruction]elementAt{}
	count := map[reg.ID]int{}
	l.definitions(func(i *ir.Instruction, to reg.Register) {
		count[to.ID()]++
		_, memory := i.Operands[0].(operand.Mem)
		if memory && strings.HasPrefix(i.Opcode, "VBROADCAST") && to.Size() == 32 {
			l.byLane[to.ID()] = true
		}
	})
	for _, i := range l.fn.Instructions() {
		if strings.HasPrefix(i.Opcode, "VBROADCAST") {
			continue
		}
		var elements []reg.ID
		for n, op := range i.Operands {
			r, ok := op.(reg.Register)
			if !ok || !l.byLane[r.ID()] {
				continue
			}
			if !byElement(i, n) || r.Size() != 32 {
				delete(l.byLane, r.ID())
				continue
			}
			elements = append(elements, r.ID())
		}
		if len(elements) > 1 { // an instruction can use one lane for only one of its factors
			delete(l.byLane, elements[0])
		}
	}
	for id := range l.byLane {
		if count[id] != 1 {
			delete(l.byLane, id)
		}
	}
	l.groupElements()
}

// groupElements finds elements that can be loaded with their neighbors.
func (l *lowering) groupElements() {
	block := 0
	writes := map[reg.ID]int{}
	version := func(r reg.Register) registerVersion {
		if r == nil {
			return registerVersion{}
		}
		return registerVersion{r.ID(), writes[r.ID()]}
	}
	stores := 0
	type member struct {
		i    *ir.Instruction
		lane int
	}
	groups := map[elementGroup][]member{}
	for _, node := range l.fn.Nodes {
		i, ok := node.(*ir.Instruction)
		if !ok {
			block++
			continue
		}
		if strings.HasPrefix(i.Opcode, "VBROADCAST") {
			to := i.Operands[1].(reg.Register)
			m, _ := i.Operands[0].(operand.Mem)
			if l.byLane[to.ID()] && m.Base != nil && m.Base.ID().IsVirtual() && m.Disp >= 0 {
				size := 4
				if i.Opcode == "VBROADCASTSD" {
					size = 8
				}
				g := elementGroup{block, stores, version(m.Base), version(m.Index), m.Scale, m.Disp / 16}
				groups[g] = append(groups[g], member{i, m.Disp % 16 / size})
			}
		}
		for _, op := range i.Outputs {
			switch v := op.(type) {
			case reg.Register:
				writes[v.ID()]++
			case operand.Mem:
				stores++
			}
		}
		if i.IsBranch {
			block++
		}
	}
	for g, members := range groups {
		lanesUsed := map[int]bool{}
		size := 8
		for _, m := range members {
			lanesUsed[m.lane] = true
			if m.i.Opcode == "VBROADCASTSS" {
				size = 4
			}
		}
		complete := len(lanesUsed) == 16/size
		for _, m := range members {
			bytes := size
			switch {
			case complete:
				bytes = 16
			case size == 4 && lanesUsed[0] && lanesUsed[1] && m.lane < 2:
				bytes = 8
			}
			l.element[m.i] = elementAt{g, m.lane, bytes}
		}
	}
}
