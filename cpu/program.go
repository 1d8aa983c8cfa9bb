package cpu

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/kernels"
)

// run executes the kernel's program on n pairs at once, where n is a multiple of NR. The values of
// statistic i begin at stats[i·apart+at]; run may overwrite them. The stack has Depth slots of n
// elements.
func (g *gram[T]) run(s *scratch[T], stack, stats []T, at, apart, n int) []T {
	if d := g.matern; d != nil {
		x := stats[at:][:n]
		s.span = ukr.Span[T]{X: &x[0], N: n, A: d[0], B: d[1], C: d[2]}
		g.q.engine.ukr.MaternExp(&s.span)
		return x
	}
	var slots [8][]T
	top := slots[:0]
	do := func(f func(*ukr.Span[T]), x, y []T, a, b float64) {
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
		slot := func() []T { return stack[len(top)*n:][:n] }
		switch in.Op {
		case kernels.Load:
			x := stats[in.Arg*apart+at:][:n]
			if !g.onlyLoad(pc) {
				x = append(slot()[:0], x...)
			}
			top = append(top, x)
			continue
		case kernels.Const:
			x := slot()
			for i := range x {
				x[i] = T(in.A)
			}
			top = append(top, x)
			continue
		}
		x := top[len(top)-1]
		switch in.Op {
		case kernels.Affine:
			pc++
			switch next := g.after(pc); {
			case next.Op == kernels.Exp:
				do(u.Exp, x, nil, in.A, in.B)
			case next.Op == kernels.Pow:
				// The operation computes the sum and its power without rounding the sum, because a
				// large power would multiply the rounding error of the sum.
				pow(x, next.A, in.A, in.B)
			case next.Op == kernels.Tanh:
				do(u.Tanh, x, nil, in.A, in.B)
			case next.Op == kernels.Cos && in.B == 0:
				do(u.Cos, x, nil, in.A, 0)
			case next.Op == kernels.Sin && in.B == 0:
				do(u.Sin, x, nil, in.A, 0)
			default:
				do(u.Affine, x, nil, in.A, in.B)
				pc--
			}
		case kernels.Exp:
			do(u.Exp, x, nil, 1, 0)
		case kernels.Pow:
			pow(x, in.A, 1, 0)
		case kernels.Tanh:
			do(u.Tanh, x, nil, 1, 0)
		case kernels.Cos:
			do(u.Cos, x, nil, 1, 0)
		case kernels.Sin:
			do(u.Sin, x, nil, 1, 0)
		case kernels.Log:
			do(u.Log, x, nil, 0, 0)
		case kernels.Sqrt:
			do(u.Sqrt, x, nil, 0, 0)
		case kernels.PowInt:
			if k := in.Arg; k&(k-1) == 0 {
				for ; k > 1; k >>= 1 {
					do(u.Mul, x, x, 0, 0)
				}
			} else {
				powInt(x, k)
			}
		case kernels.Add, kernels.Mul:
			below := top[len(top)-2]
			if in.Op == kernels.Add {
				do(u.Add, below, x, 0, 0)
			} else {
				do(u.Mul, below, x, 0, 0)
			}
			top = top[:len(top)-1]
		default:
			panic("cpu: unknown operation in a kernel's program")
		}
	}
	return top[0]
}

// after returns the instruction at pc, or a Load if pc is the end of the program.
func (g *gram[T]) after(pc int) kernels.Instr {
	if pc < len(g.prog.Code) {
		return g.prog.Code[pc]
	}
	return kernels.Instr{Op: kernels.Load}
}

// onlyLoad reports whether the instruction at pc is the last instruction that loads its statistic.
// The statistic may then be overwritten.
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
