package kernels

import (
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/internal/elementary"
)

// An Op is an operation of the postfix code. t is the top of the stack, and u is the value below t.
type Op uint8

const (
	Load   Op = iota // push statistic Arg
	Const            // push A
	Affine           // t ← A·t + B
	Add              // u, t → u + t
	Mul              // u, t → u · t
	PowInt           // t ← t^Arg, Arg ≥ 1
	Sqrt             // t ← √max(t, 0); NaN stays NaN; then PowInt 2n gives max(t, 0)ⁿ
	Exp              // t ← exp(t)
	Pow              // t ← t^A for t ≥ 0; NaN for t < 0 and for NaN
	Tanh             // t ← tanh(t)
	Cos              // t ← cos(t)
	Sin              // t ← sin(t)
	Log              // t ← ln(t); −Inf for 0, NaN for t < 0
)

// logShift is the smallest normal number of float32. Programs compute v·ln(v + logShift) instead of v·ln v if v may be
// 0. The result is 0 at v = 0, and differs from v·ln v by at most logShift for v > 0.
const logShift = 0x1p-126

// An Instr is one operation with its operands; unused operands are zero.
type Instr struct {
	Op   Op
	Arg  int
	A, B float64
}

// A Program computes k(x, z) from statistics of the pair. Programs are not changed after Compile.
type Program struct {
	Stats []Stat  // the operands of Load; no two are equal
	Code  []Instr // postfix code that ends with exactly one value on the stack
	Depth int     // maximum stack depth of Code
}

// Compile returns the program of k. It does not check parameters: see Kernel.Check.
func Compile(k Kernel) *Program {
	c := &compiler{}
	k.compile(c)
	return &Program{Stats: c.stats, Code: c.code, Depth: c.max}
}

// Run returns k(x, z) in float64 from the pair's statistics, or NaN for a program without code.
func (p *Program) Run(stats []float64) float64 {
	if p == nil || len(p.Code) == 0 {
		return math.NaN()
	}
	stack := make([]float64, 0, p.Depth)
	for _, in := range p.Code {
		switch in.Op {
		case Load:
			stack = append(stack, stats[in.Arg])
			continue
		case Const:
			stack = append(stack, in.A)
			continue
		}
		t := &stack[len(stack)-1]
		switch in.Op {
		case Add:
			stack[len(stack)-2] += *t
			stack = stack[:len(stack)-1]
		case Mul:
			stack[len(stack)-2] *= *t
			stack = stack[:len(stack)-1]
		default:
			*t = in.unary(*t)
		}
	}
	return stack[0]
}

// unary returns the result of an operation with one operand.
func (in Instr) unary(t float64) float64 {
	switch in.Op {
	case Affine:
		return in.A*t + in.B
	case PowInt:
		return powInt(t, in.Arg)
	case Sqrt:
		return math.Sqrt(max(t, 0))
	case Exp:
		return elementary.Exp(t)
	case Pow:
		return pow(t, in.A)
	case Tanh:
		return elementary.Tanh(t)
	case Cos:
		return math.Cos(t)
	case Sin:
		return math.Sin(t)
	case Log:
		return elementary.Log(t)
	}
	panic(fmt.Sprintf("kernels: Program.Run: unknown operation %d", in.Op))
}

// powInt returns x^n for n ≥ 1 by repeated squaring.
func powInt(x float64, n int) float64 {
	r := 1.0
	for ; n > 1; n >>= 1 {
		if n&1 == 1 {
			r *= x
		}
		x *= x
	}
	return r * x
}

// pow returns x^a for x ≥ 0. Its error grows with the logarithm of the result; that of math.Pow grows with a.
func pow(x, a float64) float64 {
	switch {
	case !(x >= 0):
		return math.NaN()
	case a == 0:
		return 1
	}
	return elementary.Exp(a * elementary.Log(x))
}

// compiler collects the statistics and the code of a kernel.
type compiler struct {
	stats      []Stat
	code       []Instr
	depth, max int
	columns    []int // the columns to which load restricts statistics; nil means all
}

// load pushes a statistic. Equal statistics are stored once in the list of statistics.
func (c *compiler) load(s Stat) {
	if c.columns != nil {
		s = s.restricted(c.columns)
	}
	i := slices.IndexFunc(c.stats, s.Equal)
	if i < 0 {
		i = len(c.stats)
		c.stats = append(c.stats, s)
	}
	c.push(Instr{Op: Load, Arg: i})
}

func (c *compiler) push(in Instr) {
	c.code = append(c.code, in)
	c.depth++
	c.max = max(c.max, c.depth)
}

// unary appends an instruction that replaces the top of the stack.
func (c *compiler) unary(in Instr) { c.code = append(c.code, in) }

// binary appends an operation that replaces the two top values by one.
func (c *compiler) binary(op Op) {
	c.code = append(c.code, Instr{Op: op})
	c.depth--
}
