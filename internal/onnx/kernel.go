package onnx

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// sample is the tensor of the rows of x, and the width of these rows.
type sample struct {
	rows value // n×d
	d    int
}

// gram returns the n×m values k(x, z) for the m rows of z.
func (g *graph) gram(k kernels.Kernel, x sample, z backend.Host[float64]) value {
	return g.run(kernels.Compile(k), func(s kernels.Stat) value { return g.statistic(s, x, z) })
}

// run evaluates a compiled kernel. The function load returns the tensor of a statistic.
func (g *graph) run(p *kernels.Program, load func(kernels.Stat) value) value {
	stats := make([]value, len(p.Stats))
	for i, s := range p.Stats {
		stats[i] = load(s)
	}
	var stack []value
	for _, in := range p.Code {
		switch in.Op {
		case kernels.Load:
			stack = append(stack, stats[in.Arg])
			continue
		case kernels.Const:
			stack = append(stack, g.number(in.A))
			continue
		}
		last := len(stack) - 1
		t := stack[last]
		switch in.Op {
		case kernels.Affine:
			if in.A != 1 {
				t = g.op("Mul", t, g.number(in.A))
			}
			if in.B != 0 {
				t = g.op("Add", t, g.number(in.B))
			}
		case kernels.PowInt:
			switch in.Arg {
			case 1:
			case 2:
				t = g.op("Mul", t, t)
			default:
				t = g.op("Pow", t, g.number(float64(in.Arg)))
			}
		case kernels.Sqrt:
			t = g.op("Sqrt", g.op("Max", t, g.number(0)))
		case kernels.Pow:
			t = g.op("Exp", g.op("Mul", g.op("Log", t), g.number(in.A)))
		case kernels.Exp:
			t = g.op("Exp", t)
		case kernels.Tanh:
			t = g.op("Tanh", t)
		case kernels.Cos:
			t = g.op("Cos", t)
		case kernels.Sin:
			t = g.op("Sin", t)
		case kernels.Log:
			t = g.op("Log", t)
		case kernels.Add, kernels.Mul:
			name := "Add"
			if in.Op == kernels.Mul {
				name = "Mul"
			}
			last--
			t = g.op(name, stack[last], t)
		default:
			g.fail(fmt.Errorf("ONNX cannot express operation %d of the kernel", in.Op))
		}
		stack = append(stack[:last], t)
	}
	return stack[0]
}

// statistic returns the n×m values of s for x and z, or n×1 or 1×m values if s depends only on x or only on z.
func (g *graph) statistic(s kernels.Stat, x sample, z backend.Host[float64]) value {
	switch s.Kind {
	case kernels.Dot:
		points := make([]float64, 0, z.Rows*z.Cols)
		for i := range z.Rows {
			for p, v := range z.Row(i) {
				v *= s.ScaleAt(p) * s.ScaleAt(p)
				points = append(points, v)
			}
		}
		return g.product(x.rows, g.numbers(points, z.Rows, z.Cols), true)
	case kernels.Entry:
		index := make([]int64, z.Rows)
		for i := range index {
			index[i] = int64(kernels.PrecomputedIndex(z.Row(i)[0], z.Cols))
		}
		return g.node("Gather", []attribute{intAttribute("axis", 1)}, x.rows, g.integers(index...))
	case kernels.SelfX:
		return g.diag(s.Of, x)
	case kernels.RootX:
		v := g.diag(s.Of, x)
		zero := g.number(0)
		return g.op("Where", g.op("Equal", v, zero), zero, g.op("Div", g.number(1), g.op("Sqrt", v)))
	case kernels.SelfZ, kernels.RootZ:
		list := make([]float64, z.Rows)
		for i := range list {
			list[i] = s.Eval(z.Row(i), z.Row(i))
		}
		return g.numbers(list, 1, z.Rows)
	}
	rows := z.Rows
	width := z.Cols * max(1, len(s.Freqs))
	rows = min(rows, max(1, chunk/width, (z.Rows+maxChunks-1)/maxChunks))
	expanded := g.op("Unsqueeze", x.rows, g.integers(1))
	var blocks []value
	for i := 0; i < z.Rows; i += rows {
		blocks = append(blocks, g.pairs(s, expanded, z.View(i, 0, min(rows, z.Rows-i), z.Cols)))
	}
	return g.concat(blocks)
}

// The graph divides z into at most maxChunks parts. A row of x and the rows of a part have about `chunk` differences.
const chunk, maxChunks = 1 << 14, 256

// pairs returns the values of the statistic s for all pairs of a row of x, which is n×1×d, and a row of z.
func (g *graph) pairs(s kernels.Stat, x value, z backend.Host[float64]) value {
	flat := make([]float64, 0, z.Rows*z.Cols)
	for i := range z.Rows {
		flat = append(flat, z.Row(i)...)
	}
	points := g.numbers(flat, 1, z.Rows, z.Cols)
	diff := g.op("Sub", x, points)
	scale := scales(s, z.Cols)
	if s.Scale != nil {
		diff = g.op("Mul", diff, g.numbers(scale, len(scale)))
	}
	// masked replaces terms by 0 for the features whose scale is 0.
	masked := func(terms value) value {
		if s.Scale != nil {
			terms = g.op("Where", g.op("Equal", g.numbers(scale, len(scale)), g.number(0)), g.number(0), terms)
		}
		return terms
	}
	switch s.Kind {
	case kernels.SqDist:
		return g.node("ReduceSumSquare", []attribute{intsAttribute("axes", 2), intAttribute("keepdims", 0)}, diff)
	case kernels.L1:
		return g.sum(g.op("Abs", diff), 2, false)
	case kernels.CosSum:
		angles := g.op("Mul", g.op("Unsqueeze", diff, g.integers(3)), g.numbers(s.Freqs, len(s.Freqs)))
		return g.sum(masked(g.sum(g.op("Cos", angles), 3, false)), 2, false)
	case kernels.Sinc:
		zero := g.op("Equal", diff, g.number(0))
		safe := g.op("Where", zero, g.number(1), diff)
		term := g.op("Div", g.op("Sin", g.op("Mul", safe, g.number(2*math.Pi))), safe)
		return g.sum(masked(g.op("Where", zero, g.number(2*math.Pi), term)), 2, false)
	case kernels.Chi2:
		sum := g.op("Add", x, points)
		zero := g.op("Equal", sum, g.number(0))
		term := g.op("Mul", g.op("Div", diff, g.op("Where", zero, g.number(1), sum)), diff)
		return g.sum(masked(g.op("Where", g.op("Less", x, g.number(0)), g.number(math.NaN()), term)), 2, false)
	}
	g.fail(fmt.Errorf("ONNX cannot express the statistic %v of the kernel", s.Kind))
	return diff
}

// scales returns the scales of d features.
func scales(s kernels.Stat, d int) []float64 {
	list := make([]float64, d)
	for p := range list {
		list[p] = s.ScaleAt(p)
	}
	return list
}

// diag returns the n×1 values k(x, x).
func (g *graph) diag(k kernels.Kernel, x sample) value {
	return g.run(kernels.Compile(k), func(s kernels.Stat) value {
		switch s.Kind {
		case kernels.Dot:
			v := x.rows
			if s.Scale != nil {
				scale := scales(s, x.d)
				v = g.op("Mul", v, g.numbers(scale, len(scale)))
			}
			return g.node("ReduceSumSquare", []attribute{intsAttribute("axes", 1), intAttribute("keepdims", 1)}, v)
		case kernels.SelfX, kernels.SelfZ:
			return g.diag(s.Of, x)
		case kernels.RootX, kernels.RootZ:
			return g.statistic(kernels.Stat{Kind: kernels.RootX, Of: s.Of}, x, backend.Host[float64]{})
		case kernels.Entry:
			g.fail(fmt.Errorf("the kernel needs k(x, x) of each row, but the input has only kernel values with the training rows"))
		}
		zero := make([]float64, x.d) // the differences of a point with itself
		return g.number(s.Eval(zero, zero))
	})
}
