package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
)

// A neonOp is an instruction of NEON: its code with all register numbers 0, and its text in ARM's syntax (Arm
// Architecture Reference Manual, chapter C7.2). Go's assembler supports only a small part of NEON.
type neonOp struct {
	code   uint32
	write  string // {d}, {n} and {m} stand for registers, {i} for the lane or shift
	inout  bool   // whether the destination register is read too
	encode func(imm int) uint32
}

// A neonForms is an instruction for vectors of float32, and of float64 or 64 bits.
type neonForms struct {
	single, double neonOp
	inout          bool
}

func (f *neonForms) in(double bool) *neonOp {
	op := f.single
	if double {
		op = f.double
	}
	op.inout = f.inout
	return &op
}

// three returns an instruction with two source vectors. Its encodings for float32 and float64 differ by the size bit.
func three(name string, single uint32) *neonForms {
	return &neonForms{
		single: neonOp{code: single, write: name + " v{d}.4s, v{n}.4s, v{m}.4s"},
		double: neonOp{code: single | 1<<22, write: name + " v{d}.2d, v{n}.2d, v{m}.2d"},
	}
}

func two(name string, single uint32) *neonForms {
	f := three(name, single)
	f.single.write = name + " v{d}.4s, v{n}.4s"
	f.double.write = name + " v{d}.2d, v{n}.2d"
	return f
}

// bitwise returns an instruction that does not depend on the size of the elements.
func bitwise(name string, code uint32) *neonForms {
	op := neonOp{code: code, write: name + " v{d}.16b, v{n}.16b, v{m}.16b"}
	return &neonForms{single: op, double: op}
}

// sameForms returns an instruction that is the same in single and in double precision.
func sameForms(code uint32, write string) *neonForms {
	op := neonOp{code: code, write: write}
	return &neonForms{single: op, double: op}
}

func (f *neonForms) accumulates() *neonForms { f.inout = true; return f }

func (f *neonForms) placed(single, double func(imm int) uint32) *neonForms {
	f.single.encode, f.double.encode = single, double
	return f
}

// element returns an instruction with two source vectors, the last of which is one lane of a vector.
func element(name string, single uint32) *neonForms {
	return (&neonForms{
		single: neonOp{code: single, write: name + " v{d}.4s, v{n}.4s, v{m}.s[{i}]"},
		double: neonOp{code: single | 1<<22, write: name + " v{d}.2d, v{n}.2d, v{m}.d[{i}]"},
	}).placed(
		func(lane int) uint32 { return uint32(lane&1<<21 | lane>>1<<11) },
		func(lane int) uint32 { return uint32(lane << 11) })
}

// laneSingle and laneDouble return the field imm5 of an instruction: the index of a float32 or float64 element.
func laneSingle(lane int) uint32 { return uint32(lane<<3|4) << 16 }
func laneDouble(lane int) uint32 { return uint32(lane<<4|8) << 16 }

func shifted(name string, code uint32, toLeft bool) *neonForms {
	number := func(size int) func(int) uint32 {
		return func(n int) uint32 {
			if toLeft {
				return uint32(size+n) << 16
			}
			return uint32(2*size-n) << 16
		}
	}
	return (&neonForms{
		single: neonOp{code: code, write: name + " v{d}.4s, v{n}.4s, #{i}"},
		double: neonOp{code: code, write: name + " v{d}.2d, v{n}.2d, #{i}"},
	}).placed(number(32), number(64))
}

// neonOps maps the names used in this program to the instructions of NEON.
var neonOps = map[string]*neonForms{
	"fadd": three("fadd", 0x4e20d400), "fsub": three("fsub", 0x4ea0d400),
	"fmul": three("fmul", 0x6e20dc00), "fdiv": three("fdiv", 0x6e20fc00),
	"fmla": three("fmla", 0x4e20cc00).accumulates(), "fmls": three("fmls", 0x4ea0cc00).accumulates(),
	"fmax": three("fmax", 0x4e20f400), "fmin": three("fmin", 0x4ea0f400),
	"fmaxnm": three("fmaxnm", 0x4e20c400), "fminnm": three("fminnm", 0x4ea0c400),
	"faddp": three("faddp", 0x6e20d400),
	"fcmeq": three("fcmeq", 0x4e20e400), "fcmge": three("fcmge", 0x6e20e400), "fcmgt": three("fcmgt", 0x6ea0e400),
	"fneg": two("fneg", 0x6ea0f800), "fsqrt": two("fsqrt", 0x6ea1f800), "frintn": two("frintn", 0x4e218800),
	"fmlae": element("fmla", 0x4f801000).accumulates(), "fmlse": element("fmls", 0x4f805000).accumulates(),
	"fmule": element("fmul", 0x4f809000),

	"add": three("add", 0x4ea08400),
	"and": bitwise("and", 0x4e201c00), "orr": bitwise("orr", 0x4ea01c00), "eor": bitwise("eor", 0x6e201c00),
	"bit": bitwise("bit", 0x6ea01c00).accumulates(), "bsl": bitwise("bsl", 0x6e601c00).accumulates(),
	"not":   sameForms(0x6e205800, "not v{d}.16b, v{n}.16b"),
	"movi":  sameForms(0x6f00e400, "movi v{d}.2d, #0"),
	"mov":   sameForms(0x4ea01c00, "mov v{d}.16b, v{n}.16b"),
	"cmlt0": {single: neonOp{code: 0x4ea0a800, write: "cmlt v{d}.4s, v{n}.4s, #0"}, double: neonOp{code: 0x4ee0a800, write: "cmlt v{d}.2d, v{n}.2d, #0"}},
	"shl":   shifted("shl", 0x4f005400, true), "ushr": shifted("ushr", 0x6f000400, false),

	"zip1": three("zip1", 0x4e803800), "zip2": three("zip2", 0x4e807800), "trn2": three("trn2", 0x4e806800),
	"fcvtl":  sameForms(0x0e617800, "fcvtl v{d}.2d, v{n}.2s"),
	"fcvtl2": sameForms(0x4e617800, "fcvtl2 v{d}.2d, v{n}.4s"),
	"fcvtn":  sameForms(0x0e616800, "fcvtn v{d}.2s, v{n}.2d"),
	"fcvtn2": sameForms(0x4e616800, "fcvtn2 v{d}.4s, v{n}.2d").accumulates(),
	"ushll":  sameForms(0x2f10a400, "ushll v{d}.4s, v{n}.4h, #0"),
	"ushll2": sameForms(0x6f10a400, "ushll2 v{d}.4s, v{n}.8h, #0"),
	"scvtf":  sameForms(0x4e21d800, "scvtf v{d}.4s, v{n}.4s"),
	"fcvtns": sameForms(0x4e21a800, "fcvtns v{d}.4s, v{n}.4s"),
	"xtn":    sameForms(0x0e612800, "xtn v{d}.4h, v{n}.4s"),
	"xtn2":   sameForms(0x4e612800, "xtn2 v{d}.8h, v{n}.4s").accumulates(),
	"dup": (&neonForms{
		single: neonOp{code: 0x4e000400, write: "dup v{d}.4s, v{n}.s[{i}]"},
		double: neonOp{code: 0x4e000400, write: "dup v{d}.2d, v{n}.d[{i}]"},
	}).placed(laneSingle, laneDouble),
	"ins": (&neonForms{ // copies lane 0 of the source to lane {i}
		single: neonOp{code: 0x6e000400, write: "mov v{d}.s[{i}], v{n}.s[0]"},
		double: neonOp{code: 0x6e000400, write: "mov v{d}.d[{i}], v{n}.d[0]"},
	}).placed(laneSingle, laneDouble).accumulates(),
}

// text returns the instruction as a word, with ARM's syntax in a comment.
func (op *neonOp) text(registers []string, imm int) string {
	code, write := op.code, op.write
	for n, letter := range []string{"{d}", "{n}", "{m}"} {
		if n >= len(registers) {
			break
		}
		var number uint32
		fmt.Sscanf(registers[n], "F%d", &number)
		code |= number << [...]int{0, 5, 16}[n]
		write = strings.ReplaceAll(write, letter, fmt.Sprint(number))
	}
	if strings.HasPrefix(write, "mov v") && strings.HasSuffix(write, ".16b") {
		code |= code >> 5 & 31 << 16 // orr of a register with itself is a move
	}
	if op.encode != nil {
		code |= op.encode(imm)
		write = strings.ReplaceAll(write, "{i}", fmt.Sprint(imm))
	}
	return fmt.Sprintf("WORD $0x%08x // %s", code, write)
}

// A pool holds all constants of a file in one block, so that a function addresses them by one register.
type pool struct {
	name    string
	globals map[string]*ir.Global
	offsets map[string]int
	data    []byte
	used    bool // whether the current function uses the pool
}

func newPool(name string, file *ir.File) *pool {
	p := &pool{name: name, globals: map[string]*ir.Global{}, offsets: map[string]int{}}
	for _, s := range file.Sections {
		if g, ok := s.(*ir.Global); ok {
			p.globals[g.Symbol.Name] = g
		}
	}
	return p
}

func (p *pool) bytes(m operand.Mem) []byte {
	g := p.globals[m.Symbol.Name]
	data := make([]byte, g.Size)
	for _, d := range g.Data {
		switch v := d.Value.(type) {
		case operand.U64:
			binary.LittleEndian.PutUint64(data[d.Offset:], uint64(v))
		case operand.U32:
			binary.LittleEndian.PutUint32(data[d.Offset:], uint32(v))
		default:
			panic("a constant of another type")
		}
	}
	return data
}

// first returns the first element of a constant of 4 bytes.
func (p *pool) first(m operand.Mem) uint32 { return binary.LittleEndian.Uint32(p.bytes(m)) }

// repeats reports whether the two halves of a constant of 32 bytes are equal.
func (p *pool) repeats(m operand.Mem) bool {
	if p.globals[m.Symbol.Name] == nil {
		return false
	}
	data := p.bytes(m)[m.Disp:]
	return len(data) >= 32 && bytes.Equal(data[:16], data[16:32])
}

// offset returns the offset of a constant in the pool.
func (p *pool) offset(m operand.Mem) int {
	p.used = true
	offset, ok := p.offsets[m.Symbol.Name]
	if !ok {
		data := p.bytes(m)
		if len(data) == 32 && p.repeats(operand.Mem{Symbol: m.Symbol}) {
			data = data[:16]
		}
		for len(data)%16 != 0 {
			data = append(data, 0)
		}
		offset = len(p.data)
		p.data = append(p.data, data...)
		p.offsets[m.Symbol.Name] = offset
	}
	return offset + m.Disp
}

// section returns the data in the syntax of Go's assembler.
func (p *pool) section() string {
	var b strings.Builder
	for offset := 0; offset < len(p.data); offset += 8 {
		fmt.Fprintf(&b, "DATA %s<>+%d(SB)/8, $0x%016x\n", p.name, offset, binary.LittleEndian.Uint64(p.data[offset:]))
	}
	fmt.Fprintf(&b, "\nGLOBL %s<>(SB), RODATA|NOPTR, $%d\n", p.name, len(p.data))
	return b.String()
}

// printNEON returns the file in the syntax of Go's assembler.
func printNEON(file *ir.File) ([]byte, error) {
	var text strings.Builder
	text.WriteString("// Code generated by command: tools/asmgen. DO NOT EDIT.\n\n//go:build !purego\n\n#include \"textflag.h\"\n")
	p := newPool("neonConstants", file)
	for _, fn := range file.Functions() {
		p.used = false
		l, err := lower(fn, p)
		if err != nil {
			return nil, err
		}
		names, err := l.allocate()
		if err != nil {
			return nil, err
		}
		body := l.text(names)
		frame := (l.frame + 15) / 16 * 16
		fmt.Fprintf(&text, "\n// %s\n// Requires: ASIMD\nTEXT ·%s(SB), $%d-%d\n", fn.Stub(), fn.Name, frame, fn.ArgumentBytes())
		if p.used {
			fmt.Fprintf(&text, "\tMOVD $%s<>(SB), %s\n", p.name, poolRegister)
		}
		text.WriteString(body)
	}
	text.WriteString("\n" + p.section())
	return []byte(text.String()), nil
}
