package main

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Functions may use all vector registers, and all general registers except poolRegister and the
// registers that are reserved by Go, by the system (R18) and by the assembler (R27).
var (
	vectorNames  = registerNames("F", 0, 31)
	generalNames = append(registerNames("R", 0, 17), registerNames("R", 19, 25)...)
)

func registerNames(letter string, first, last int) []string {
	var names []string
	for n := first; n <= last; n++ {
		names = append(names, fmt.Sprintf("%s%d", letter, n))
	}
	return names
}

type set []uint64

func newSet(n int) set        { return make(set, (n+63)/64) }
func (s set) has(v vreg) bool { return s[v/64]>>(v%64)&1 != 0 }
func (s set) add(v vreg)      { s[v/64] |= 1 << (v % 64) }
func (s set) remove(v vreg)   { s[v/64] &^= 1 << (v % 64) }

func (s set) each(f func(vreg)) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			f(vreg(64*w + bits.TrailingZeros64(word)))
		}
	}
}

// writes and reads return the registers that an instruction writes and reads.
func (i *neonInst) writes() []vreg { return i.regs[:i.defs] }

func (i *neonInst) reads() []vreg {
	if i.inout {
		return i.regs
	}
	return i.regs[i.defs:]
}

// successors returns, for each instruction, the indices of the instructions that may run after it.
func (l *lowering) successors() [][]int {
	labels := map[string]int{}
	for n, i := range l.insts {
		if _, duplicate := labels[i.label]; duplicate {
			panic("two labels " + i.label)
		}
		if i.label != "" {
			labels[i.label] = n
		}
	}
	next := make([][]int, len(l.insts))
	for n, i := range l.insts {
		if i.to != "" {
			to, ok := labels[i.to]
			if !ok {
				panic("no label " + i.to)
			}
			next[n] = append(next[n], to)
		}
		if !i.ret && (i.to == "" || i.cond) && n+1 < len(l.insts) {
			next[n] = append(next[n], n+1)
		}
	}
	return next
}

// live returns, for each instruction, the registers that are read after it.
func (l *lowering) live() []set {
	next := l.successors()
	in, out := make([]set, len(l.insts)), make([]set, len(l.insts))
	for n := range l.insts {
		in[n], out[n] = newSet(len(l.vector)), newSet(len(l.vector))
	}
	for changed := true; changed; {
		changed = false
		for n := len(l.insts) - 1; n >= 0; n-- {
			i := &l.insts[n]
			for _, s := range next[n] {
				for w, word := range in[s] {
					out[n][w] |= word
				}
			}
			previous := slices.Clone(out[n])
			for _, v := range i.writes() {
				previous.remove(v)
			}
			for _, v := range i.reads() {
				previous.add(v)
			}
			if !slices.Equal(previous, in[n]) {
				in[n], changed = previous, true
			}
		}
	}
	return out
}

// removeUnreachable removes unreachable instructions, branches to the next instruction, and unused labels.
func (l *lowering) removeUnreachable() {
	for {
		next := l.successors()
		reached := make([]bool, len(l.insts))
		pending := []int{0}
		for len(pending) > 0 {
			n := pending[len(pending)-1]
			pending = pending[:len(pending)-1]
			if !reached[n] {
				reached[n] = true
				pending = append(pending, next[n]...)
			}
		}
		named := map[string]bool{}
		for n, i := range l.insts {
			named[i.to] = named[i.to] || reached[n]
		}
		remaining := l.insts[:0:0]
		for n, i := range l.insts {
			if reached[n] && !l.follows(i.to, n) && (i.label == "" || named[i.label]) {
				remaining = append(remaining, i)
			}
		}
		if len(remaining) == len(l.insts) {
			return
		}
		l.insts = remaining
	}
}

// follows reports whether the label comes directly after instruction n.
func (l *lowering) follows(label string, n int) bool {
	for _, i := range l.insts[n+1:] {
		if i.label == "" {
			return false
		}
		if i.label == label {
			return true
		}
	}
	return false
}

// removeDead removes instructions that only write registers that are never read.
func (l *lowering) removeDead() {
	for {
		live := l.live()
		remaining := l.insts[:0:0]
		for n, i := range l.insts {
			dead := !i.effects && i.defs > 0
			for _, v := range i.writes() {
				dead = dead && !live[n].has(v)
			}
			if !dead {
				remaining = append(remaining, i)
			}
		}
		if len(remaining) == len(l.insts) {
			return
		}
		l.insts = remaining
	}
}

// allocate assigns registers by graph coloring (Briggs, Cooper and Torczon, Improvements to Graph Coloring Register
// Allocation, 1994), and spills registers without a color to the stack frame. It merges the two registers of a move
// if the source is not used afterwards and merging does not make coloring harder.
func (l *lowering) allocate() ([]string, error) {
	l.removeUnreachable()
	l.removeDead()
	spilled := map[vreg]bool{}
	joined := true
	for range 100 {
		names, failed := l.color(spilled, joined)
		if failed == none {
			return names, nil
		}
		if joined {
			joined = false // merging may have prevented a coloring; try without merging
			continue
		}
		if spilled[failed] {
			return nil, fmt.Errorf("%s: out of registers", l.fn.Name)
		}
		l.spill(failed, spilled)
	}
	return nil, fmt.Errorf("%s: too many registers in the frame", l.fn.Name)
}

// A graph has an edge for each pair of registers that are in use at the same time.
type graph []set

func (g graph) connect(a, b vreg) {
	if a != b {
		g[a].add(b)
		g[b].add(a)
	}
}

func (l *lowering) color(spilled map[vreg]bool, join bool) ([]string, vreg) {
	live := l.live()
	n := len(l.vector)
	g := make(graph, n)
	for v := range g {
		g[v] = newSet(n)
	}
	used := newSet(n)
	uses := make([]float64, n)
	depth := l.depths()
	// merged maps a register to the register with which it was merged.
	merged := make([]vreg, n)
	for v := range merged {
		merged[v] = vreg(v)
	}
	for index := range l.insts {
		i := &l.insts[index]
		for _, v := range i.regs {
			used.add(v)
			uses[v] += depth[index]
		}
		for _, d := range i.writes() {
			live[index].each(func(v vreg) {
				if l.vector[v] == l.vector[d] && !(i.move && v == i.regs[1]) {
					g.connect(d, v)
				}
			})
		}
		for a := range i.defs {
			for b := range a {
				g.connect(i.regs[a], i.regs[b])
			}
		}
	}
	find := func(v vreg) vreg {
		for merged[v] != v {
			v = merged[v]
		}
		return v
	}
	neighbors := func(v vreg) int {
		count := 0
		g[v].each(func(vreg) { count++ })
		return count
	}
	// Merge the two registers of a move if the merged node has fewer neighbors of high degree than there are registers,
	// because the graph is then not harder to color (Briggs).
	for index := range l.insts {
		i := &l.insts[index]
		if !i.move || !join {
			continue
		}
		a, b := find(i.regs[0]), find(i.regs[1])
		if a == b || g[a].has(b) {
			continue
		}
		available := l.available(a)
		high := 0
		union := slices.Clone(g[a])
		for w, word := range g[b] {
			union[w] |= word
		}
		union.each(func(v vreg) {
			if neighbors(v) >= available {
				high++
			}
		})
		if high >= available {
			continue
		}
		merged[b] = a
		uses[a] += uses[b]
		g[b].each(func(v vreg) {
			g[v].remove(b)
			g.connect(a, v)
		})
		clear(g[b])
	}

	// Remove a node that can always be colored, because it has fewer neighbors than there are registers, or else
	// the node with the fewest uses per neighbor.
	var nodes []vreg
	degree := make([]int, n)
	for v := range vreg(n) {
		if used.has(v) && find(v) == v {
			nodes = append(nodes, v)
			degree[v] = neighbors(v)
		}
	}
	removed := newSet(n)
	var stack []vreg
	for len(stack) < len(nodes) {
		best := none
		for _, v := range nodes {
			if !removed.has(v) && degree[v] < l.available(v) {
				best = v
				break
			}
		}
		if best == none {
			cost := func(v vreg) float64 {
				if spilled[v] {
					return 1e30
				}
				return uses[v] / float64(degree[v])
			}
			for _, v := range nodes {
				if !removed.has(v) && (best == none || cost(v) < cost(best)) {
					best = v
				}
			}
		}
		removed.add(best)
		stack = append(stack, best)
		g[best].each(func(v vreg) { degree[v]-- })
	}
	names := make([]string, n)
	for _, v := range slices.Backward(stack) {
		taken := map[string]bool{}
		g[v].each(func(w vreg) { taken[names[w]] = true })
		for _, name := range l.registersFor(v) {
			if !taken[name] {
				names[v] = name
				break
			}
		}
		if names[v] == "" {
			return nil, l.victim(v, g, uses, spilled)
		}
	}
	for v := range vreg(n) {
		names[v] = names[find(v)]
	}
	return names, none
}

// victim returns the register to spill to free a register for v: the candidate with the fewest uses per neighbor.
func (l *lowering) victim(v vreg, g graph, uses []float64, spilled map[vreg]bool) vreg {
	cost := func(w vreg) float64 {
		degree := 0
		g[w].each(func(vreg) { degree++ })
		return uses[w] / float64(degree)
	}
	best := v
	g[v].each(func(w vreg) {
		if !spilled[w] && (spilled[best] || cost(w) < cost(best)) {
			best = w
		}
	})
	return best
}

func (l *lowering) registersFor(v vreg) []string {
	if l.vector[v] {
		return vectorNames
	}
	return generalNames
}

func (l *lowering) available(v vreg) int { return len(l.registersFor(v)) }

// depths estimates how often each instruction runs, with a factor of ten for each enclosing loop.
func (l *lowering) depths() []float64 {
	depth := make([]float64, len(l.insts))
	for n := range depth {
		depth[n] = 1
	}
	labels := map[string]int{}
	for n, i := range l.insts {
		if i.label != "" {
			labels[i.label] = n
		}
		if from, ok := labels[i.to]; ok && i.to != "" {
			for ; from <= n; from++ {
				depth[from] *= 10
			}
		}
	}
	return depth
}

// spill moves a virtual register to the stack frame, with a store after each write and a load before each read.
func (l *lowering) spill(v vreg, spilled map[vreg]bool) {
	bytes := 8
	if l.vector[v] {
		bytes = 16
	}
	l.frame = (l.frame + bytes - 1) / bytes * bytes
	slot := address{text: "{local+%d}", disp: l.frame}
	l.frame += bytes
	insts := l.insts
	l.insts = nil
	for _, i := range insts {
		if !slices.Contains(i.regs, v) {
			l.insts = append(l.insts, i)
			continue
		}
		temporary := l.newRegister(l.vector[v])
		spilled[temporary] = true
		reads, writes := slices.Contains(i.reads(), v), slices.Contains(i.writes(), v)
		i.regs = slices.Clone(i.regs)
		for n, r := range i.regs {
			if r == v {
				i.regs[n] = temporary
			}
		}
		if reads {
			l.load(slot, bytes, temporary)
		}
		l.insts = append(l.insts, i)
		if writes {
			l.store(temporary, bytes, slot)
		}
	}
	spilled[v] = true
}

func (l *lowering) text(names []string) string {
	var b strings.Builder
	frame := (l.frame + 15) / 16 * 16
	for _, i := range l.insts {
		if i.label != "" {
			fmt.Fprintf(&b, "\n%s:\n", i.label)
			continue
		}
		registers := make([]string, len(i.regs))
		for n, v := range i.regs {
			registers[n] = names[v]
		}
		if i.move && registers[0] == registers[1] {
			continue
		}
		if i.word != nil {
			fmt.Fprintf(&b, "\t%s\n", i.word.text(registers, i.imm))
			continue
		}
		fmt.Fprintf(&b, "\t%s\n", fill(i.text, registers, frame))
	}
	return b.String()
}

// fill replaces {0}, {1}, … in an instruction by the names of registers, and {local+…} by offsets in the frame.
func fill(text string, registers []string, frame int) string {
	for n, name := range registers {
		text = strings.ReplaceAll(text, fmt.Sprintf("{%d}", n), name)
	}
	for {
		start := strings.Index(text, "{local+")
		if start < 0 {
			return text
		}
		end := start + strings.Index(text[start:], "}")
		var slot int
		fmt.Sscanf(text[start:end], "{local+%d", &slot)
		text = fmt.Sprintf("%slocal-%d(SP)%s", text[:start], frame-slot, text[end+1:])
	}
}
