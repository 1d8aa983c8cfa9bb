package cpu

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// run executes a kernel's program on n neighbouring pairs at once. Statistic s
// of the pairs is stats[s·apart+at:]; the stack's slots are width apart. The
// result is the slot at the bottom of the stack.
func run[T backend.Float](p *kernels.Program, stack, stats []T, at, apart, width, n int) []T {
	depth := 0
	slot := func(i int) []T { return stack[i*width:][:n] }
	for _, in := range p.Code {
		switch in.Op {
		case kernels.Load:
			copy(slot(depth), stats[in.Arg*apart+at:])
			depth++
			continue
		case kernels.Const:
			top := slot(depth)
			for i := range top {
				top[i] = T(in.A)
			}
			depth++
			continue
		}
		top := slot(depth - 1)
		switch in.Op {
		case kernels.Affine:
			a, b := T(in.A), T(in.B)
			for i, t := range top {
				top[i] = a*t + b
			}
		case kernels.PowInt:
			powInt(top, in.Arg)
		case kernels.Sqrt:
			for i, t := range top {
				top[i] = T(math.Sqrt(float64(max(t, 0))))
			}
		case kernels.Exp:
			for i, t := range top {
				top[i] = T(math.Exp(float64(t)))
			}
		case kernels.Add, kernels.Mul:
			below := slot(depth - 2)
			if in.Op == kernels.Add {
				for i, t := range top {
					below[i] += t
				}
			} else {
				for i, t := range top {
					below[i] *= t
				}
			}
			depth--
		default:
			panic("cpu: unknown operation in a kernel's program")
		}
	}
	return slot(0)
}

// powInt is x^n for n ≥ 1 by squaring, element by element.
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
