package main

import (
	"bytes"
	"fmt"
	"go/format"
	"regexp"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// A tier is an instruction set with the shapes of its register tiles.
type tier struct {
	name  string // part of the names of files and functions
	bytes int    // size of a vector in bytes
	mr    int    // rows of a tile; a row of a tile has nv vectors
	nv    int
	masks bool // whether the tier has mask registers
	neon  bool // whether the tier is for arm64; neon.go then translates the instructions
}

// The register tiles fill the vector registers. AVX-512 has 32 registers: 14×2 accumulators, 2 for B, 2
// temporaries. AVX2 has 16 registers: 6×2 accumulators, 2 for B, 2 temporaries.
//
// NEON has 32 registers of 16 bytes, two of which form a vector: 24 accumulators, 4 for B and 3 for A. The number
// of columns equals that of AVX2, so that both share packing and all other code.
var tiers = []tier{
	{name: "AVX512", bytes: 64, mr: 14, nv: 2, masks: true},
	{name: "AVX2", bytes: 32, mr: 6, nv: 2},
	{name: "NEON", bytes: 32, mr: 6, nv: 2, neon: true},
}

// precision is the element type of a micro-kernel.
type precision struct {
	name  string // part of the names of functions
	typ   string // name of the type in Go
	bytes int
}

var precisions = []precision{
	{name: "F64", typ: "float64", bytes: 8},
	{name: "F32", typ: "float32", bytes: 4},
}

// A routine is an assembly function, emitted once for each tier and precision that has it.
type routine struct {
	name string // name without the suffix for the precision and the tier, such as F64AVX2
	args string // the Go type that the only parameter points to, or the Go type of the function
	doc  string
	emit func(e *emitter)
}

// has reports whether the tier has the routine in precision p. Otherwise the tier's table contains the portable
// routine, or nil if the routine is optional.
func (t tier) has(r routine, p precision) bool {
	switch r.name {
	case "codes1", "codes2", "encode":
		return p.bytes == 4
	case "gemm16":
		return !t.neon
	case "round16":
		return p.bytes == 4 && !t.neon
	}
	return true
}

// signature returns the routine's Go type. If typed is false, the parameter is a plain pointer, as in assembly.
func (r routine) signature(p precision, typed bool) string {
	switch {
	case strings.HasPrefix(r.args, "func"):
		return regexp.MustCompile(`\bT\b`).ReplaceAllString(r.args, p.typ)
	case typed:
		return fmt.Sprintf("func(args *%s[%s])", r.args, p.typ)
	}
	return "func(args *byte)"
}

var routines = []routine{
	{"gemm", "Tile", "gemm is Tile with the statistic Σ a·b.", func(e *emitter) { e.tile(dotStep, false, false) }},
	{"sqDist", "Tile", "sqDist is Tile with the statistic Σ (a−b)².", func(e *emitter) { e.tile(sqDistStep, false, true) }},
	{"l1", "Tile", "l1 is Tile with the statistic Σ |a−b|.", func(e *emitter) { e.tile(l1Step, false, true) }},
	{"chi2", "Tile", "chi2 is Tile with the statistic Σ (a−b)²/(a+b).", func(e *emitter) { e.tile(chi2Step, false, true) }},
	{"sparse", "Sparse", "sparse is Kernels.Sparse.", func(e *emitter) { e.sparse() }},
	{"trsm", "Tile", "trsm solves a tile of a lower triangular system; see Kernels.Trsm.", func(e *emitter) { e.trsm() }},
	{"gemmDirect", "Direct", "gemmDirect is Kernels.GemmDirect.", func(e *emitter) { e.direct(false) }},
	{"syrkDirect", "Direct", "syrkDirect is Kernels.SyrkDirect.", func(e *emitter) { e.direct(true) }},
	{"trsmDirect", "Direct", "trsmDirect is Kernels.TrsmDirect.", func(e *emitter) { e.trsmDirect() }},
	{"trmmDirect", "Direct", "trmmDirect is Kernels.TrmmDirect.", func(e *emitter) { e.trmmDirect() }},
	{"potrfDirect", "Direct", "potrfDirect is Kernels.PotrfDirect.", func(e *emitter) { e.potrfDirect() }},
	{"transposeDirect", "Direct", "transposeDirect is Kernels.TransposeDirect.", func(e *emitter) { e.transposeDirect() }},
	{"copyA", "Tile", "copyA is Packer.Copy for panels of MR.", func(e *emitter) { e.packCopy(e.mr) }},
	{"copyB", "Tile", "copyB is Packer.Copy for panels of NR.", func(e *emitter) { e.packCopy(e.nr()) }},
	{"transposeA", "Tile", "transposeA is Packer.Transpose for panels of MR.", func(e *emitter) { e.packTranspose(e.mr) }},
	{"transposeB", "Tile", "transposeB is Packer.Transpose for panels of NR.", func(e *emitter) { e.packTranspose(e.nr()) }},
	{"unpackB", "Tile", "unpackB is Kernels.UnpackB.", func(e *emitter) { e.unpackTranspose(e.nr()) }},
	{"affine", "Span", "affine is x ← A·x + B.", func(e *emitter) { e.affine() }},
	{"add", "Span", "add is x ← x + y.", func(e *emitter) { e.pairwise(e.add) }},
	{"mul", "Span", "mul is x ← x · y.", func(e *emitter) { e.pairwise(e.mul) }},
	{"sqrt", "Span", "sqrt is x ← √max(x, 0).", func(e *emitter) { e.sqrt() }},
	{"exp", "Span", "exp is x ← exp(A·x + B).", func(e *emitter) { e.exp() }},
	{"log", "Span", "log is x ← ln x.", func(e *emitter) { e.log() }},
	{"pow", "Span", "pow is x ← (B·x + C)^A.", func(e *emitter) { e.power() }},
	{"tanh", "Span", "tanh is x ← tanh(A·x + B).", func(e *emitter) { e.tanh() }},
	{"sin", "Span", "sin is x ← sin(A·x) up to the first step beyond its range.", func(e *emitter) { e.trigonometric(0) }},
	{"cos", "Span", "cos is x ← cos(A·x) up to the first step beyond its range.", func(e *emitter) { e.trigonometric(1) }},
	{"distance", "Span", "distance is x ← A + y − 2x, checked; see Kernels.Distance.", func(e *emitter) { e.distance() }},
	{"distanceExp", "Span", "distanceExp is x ← exp(C·(A + y − 2x)), checked; see Kernels.DistanceExp.", func(e *emitter) { e.distanceExp(false) }},
	{"distanceExpTo", "Span", "distanceExpTo is distanceExp with the results in Z, past the caches; see Kernels.DistanceExpTo.", func(e *emitter) { e.distanceExp(true) }},
	{"maternExp", "Span", "maternExp is x ← (1 + B·t + C·t²) exp(−t) with t = A√x; see Kernels.MaternExp.", func(e *emitter) { e.maternExp() }},
	{"dotAxpy", "Span", "dotAxpy is B ← Σ z_i y_i and x ← x + A·z.", func(e *emitter) { e.dotAxpy() }},
	{"dot4", "Rows", "dot4 is B_r ← Σ_i z_ri y_i.", func(e *emitter) { e.rows(4, true, false) }},
	{"axpy4", "Rows", "axpy4 is x ← x + Σ_r A_r z_r.", func(e *emitter) { e.rows(4, false, true) }},
	{"dotAxpy8", "Rows", "dotAxpy8 is B_r ← Σ_i z_ri y_i and x ← x + Σ_r A_r z_r.", func(e *emitter) { e.rows(8, true, true) }},
	{"dotAxpy12", "Rows", "dotAxpy12 is B_r ← Σ_i z_ri y_i and x ← x + Σ_r A_r z_r.", func(e *emitter) { e.rows(12, true, true) }},
	{"gemvPanel", "GemvPanel", "gemvPanel is y_r ← y_r + Σ_i z_ri v_i; see GemvPanels.", func(e *emitter) { e.gemvPanel(false) }},
	{"gemvPanelPair", "GemvPanel", "gemvPanelPair is gemvPanel and s_i ← s_i + Σ_r z_ri x_r; see GemvPanels.", func(e *emitter) { e.gemvPanel(true) }},
	{"codes1", "Codes", "codes1 is Kernels.Codes1.", func(e *emitter) { e.codes(1) }},
	{"codes2", "Codes", "codes2 is Kernels.Codes2.", func(e *emitter) { e.codes(2) }},
	{"encode", "Span", "encode is Kernels.Encode.", func(e *emitter) { e.encode() }},
	{"gemm16", "Scaled", "gemm16 is Kernels.Gemm16.", func(e *emitter) { e.tile(pairStep, true, false) }},
	{"round16", "Span", "round16 is Kernels.Round16.", func(e *emitter) { e.round16() }},
	{"dot", dotSignature, "dot is Kernels.Dot.", func(e *emitter) { e.dot() }},
	{"axpy", axpySignature, "axpy is Kernels.Axpy.", func(e *emitter) { e.axpy() }},
	{"below", belowSignature, "below is Kernels.Below.", func(e *emitter) { e.below() }},
	{"gemv", gemvSignature, "gemv is Kernels.Gemv.", func(e *emitter) { e.gemv() }},
	{"gemvT", gemvSignature, "gemvT is Kernels.GemvT.", func(e *emitter) { e.gemvT() }},
	{"ger", gerSignature, "ger is Kernels.Ger.", func(e *emitter) { e.ger() }},
	{"trsv", trsvSignature, "trsv is Kernels.Trsv.", func(e *emitter) { e.trsv() }},
	{"syr2k", syr2kSignature, "syr2k is Kernels.Syr2k.", func(e *emitter) { e.syr2k() }},
	{"peak", "Span", "peak is N times MR·NR multiply-adds in registers, for the ceiling of the machine.", func(e *emitter) { e.peak() }},
}

// table returns the Go text of the tier's Kernels in precision p, with a field for each of the routines.
func (t tier) table(p precision) string {
	suffix := p.name + t.name
	mr, nr := t.mr, t.nv*t.bytes/p.bytes
	var b strings.Builder
	lanes := 1
	if p.bytes == 4 {
		lanes = t.bytes / p.bytes
	}
	fmt.Fprintf(&b, "\nfunc kernels%s() Kernels[%[2]s] {\n\treturn Kernels[%[2]s]{\n\tMR: %[3]d, NR: %[4]d, CodeLanes: %[5]d,\n", suffix, p.typ, mr, nr, lanes)
	for _, side := range []struct {
		name  string
		width int
	}{{"A", mr}, {"B", nr}} {
		fmt.Fprintf(&b, "\tPack%[1]s: Packer[%[2]s]{Width: %[3]d, Transpose: transpose%[1]s%[4]s, Copy: copy%[1]s%[4]s},\n", side.name, p.typ, side.width, suffix)
	}
	for _, r := range routines {
		field := strings.ToUpper(r.name[:1]) + r.name[1:]
		switch {
		case t.has(r, p):
		case r.name == "gemm16" || r.name == "round16":
			continue
		default:
			fmt.Fprintf(&b, "\t%s: %sGeneric[%s],\n", field, r.name, p.typ)
			continue
		}
		switch r.name {
		case "copyA", "copyB", "transposeA", "transposeB", "gemvPanel", "gemvPanelPair":
		case "sin", "cos":
			fmt.Fprintf(&b, "\t%s: reducing(%d, %s%s, %sGeneric[%s]),\n", field, nr, r.name, suffix, r.name, p.typ)
		default:
			fmt.Fprintf(&b, "\t%s: %s%s,\n", field, r.name, suffix)
		}
	}
	// A panel is one vector wide. For narrower panels, the tier uses the routines of tiers with shorter vectors.
	b.WriteString("\tGemvPanels: []GemvPanels[" + p.typ + "]{\n")
	for _, s := range slices.Backward(tiers) {
		if s.bytes <= t.bytes && s.neon == t.neon {
			fmt.Fprintf(&b, "\t\t{Width: %d, Rows: %d, Apply: gemvPanel%[3]s, ApplyPair: gemvPanelPair%[3]s},\n", s.bytes/p.bytes, s.gemvPanelRows(), p.name+s.name)
		}
	}
	b.WriteString("\t},\n}\n}\n")
	return b.String()
}

// generate returns the text of every generated file by its name.
func generate() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, t := range tiers {
		ctx := build.NewContext()
		ctx.ConstraintExpr("!purego")
		constants := map[string]operand.Mem{}
		var stubs bytes.Buffer
		fmt.Fprintf(&stubs, "// Code generated by tools/asmgen. DO NOT EDIT.\n\n//go:build !purego\n\npackage ukr\n")
		for _, r := range routines {
			for _, p := range precisions {
				if !t.has(r, p) {
					continue
				}
				name := r.name + p.name + t.name
				ctx.Function(name)
				ctx.Pragma("noescape")
				ctx.SignatureExpr(r.signature(p, false))
				ctx.Doc(r.doc)
				r.emit(&emitter{Context: ctx, tier: t, precision: p, constants: constants})
				fmt.Fprintf(&stubs, "\n// %s\n//\n//go:noescape\nfunc %s%s\n",
					strings.Replace(r.doc, r.name, name, 1), name, strings.TrimPrefix(r.signature(p, true), "func"))
			}
		}
		file, err := ctx.Result()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		text, err := t.print(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		base := strings.ToLower(t.name) + "_" + t.arch()
		files[base+".s"] = text
		for _, p := range precisions {
			stubs.WriteString(t.table(p))
		}
		if files[base+".go"], err = format.Source(stubs.Bytes()); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return files, nil
}

func (t tier) arch() string {
	if t.neon {
		return "arm64"
	}
	return "amd64"
}

// print returns the file in the syntax of Go's assembler.
func (t tier) print(file *ir.File) ([]byte, error) {
	if t.neon {
		return printNEON(file)
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, err
	}
	return printer.NewGoAsm(printer.Config{Argv: []string{"tools/asmgen"}, Pkg: "ukr"}).Print(file)
}
