package cpu

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/kernels"
)

// run executes the kernel's program on n pairs at once, where n is a multiple of NR. The values of statistic i
// begin at stats[i·stride+offset]; run may overwrite them. The stack has Depth slots of n elements.
func (g *gram[T]) run(s *scratch[T], stack, stats []T, offset, stride, n int) []T {
	if d := g.matern; d != nil {
		x := stats[offset:][:n]
		s.span = ukr.Span[T]{X: &x[0], N: n, A: d[0], B: d[1], C: d[2]}
		g.q.engine.ukr.MaternExp(&s.span)
		return x
	}
	var slots [8][]T
	operands := slots[:0]
	apply := func(f func(*ukr.Span[T]), x, y []T, a, b float64) {
		s.span = ukr.Span[T]{X: &x[0], N: n, A: inRange[T](a), B: T(b)}
		if y != nil {
			s.span.Y = &y[0]
		}
		f(&s.span)
	}
	u := g.q.engine.ukr
	pow := func(x []T, exponent, factor, shift float64) {
		s.span = ukr.Span[T]{X: &x[0], N: n, A: T(exponent), B: T(factor), C: T(shift)}
		u.Pow(&s.span)
	}
	for pc := 0; pc < len(g.prog.Code); pc++ {
		in := g.prog.Code[pc]
		slot := func() []T { return stack[len(operands)*n:][:n] }
		switch in.Op {
		case kernels.Load:
			x := stats[in.Arg*stride+offset:][:n]
			if !g.onlyLoad(pc) {
				x = append(slot()[:0], x...)
			}
			operands = append(operands, x)
			continue
		case kernels.Const:
			x := slot()
			for i := range x {
				x[i] = T(in.A)
			}
			operands = append(operands, x)
			continue
		}
		x := operands[len(operands)-1]
		switch in.Op {
		case kernels.Affine:
			pc++
			switch next := g.instruction(pc); {
			case next.Op == kernels.Exp:
				apply(u.Exp, x, nil, in.A, in.B)
			case next.Op == kernels.Pow:
				// The sum is not rounded, because a large power would multiply its rounding error.
				pow(x, next.A, in.A, in.B)
			case next.Op == kernels.Tanh:
				apply(u.Tanh, x, nil, in.A, in.B)
			case next.Op == kernels.Cos && in.B == 0:
				apply(u.Cos, x, nil, in.A, 0)
			case next.Op == kernels.Sin && in.B == 0:
				apply(u.Sin, x, nil, in.A, 0)
			default:
				apply(u.Affine, x, nil, in.A, in.B)
				pc--
			}
		case kernels.Exp:
			apply(u.Exp, x, nil, 1, 0)
		case kernels.Pow:
			pow(x, in.A, 1, 0)
		case kernels.Tanh:
			apply(u.Tanh, x, nil, 1, 0)
		case kernels.Cos:
			apply(u.Cos, x, nil, 1, 0)
		case kernels.Sin:
			apply(u.Sin, x, nil, 1, 0)
		case kernels.Log:
			apply(u.Log, x, nil, 0, 0)
		case kernels.Sqrt:
			apply(u.Sqrt, x, nil, 0, 0)
		case kernels.PowInt:
			if k := in.Arg; k&(k-1) == 0 {
				for ; k > 1; k >>= 1 {
					apply(u.Mul, x, x, 0, 0)
				}
			} else {
				powInt(x, k)
			}
		case kernels.Add, kernels.Mul:
			left := operands[len(operands)-2]
			if in.Op == kernels.Add {
				apply(u.Add, left, x, 0, 0)
			} else {
				apply(u.Mul, left, x, 0, 0)
			}
			operands = operands[:len(operands)-1]
		default:
			panic("cpu: unknown operation in a kernel's program")
		}
	}
	return operands[0]
}

// instruction returns the instruction at pc, or a Load if pc is the end of the program.
func (g *gram[T]) instruction(pc int) kernels.Instr {
	if pc < len(g.prog.Code) {
		return g.prog.Code[pc]
	}
	return kernels.Instr{Op: kernels.Load}
}

// onlyLoad reports whether no instruction after pc loads the statistic that the instruction at pc loads.
func (g *gram[T]) onlyLoad(pc int) bool {
	for _, in := range g.prog.Code[pc+1:] {
		if in.Op == kernels.Load && in.Arg == g.prog.Code[pc].Arg {
			return false
		}
	}
	return true
}

// powInt computes x^n for n ≥ 1 by squaring, elementwise.
func powInt[T backend.Float](x []T, n int) {
	for i, v := range x {
		r := T(1)
		for k := n; k > 1; k >>= 1 {
			if k&1 == 1 {
				r *= v
			}
			v *= v
		}
		x[i] = r * v
	}
}
