package kernels

import (
	"fmt"
	"math"
	"slices"
)

// Mixed evaluates ∂²k(x, z)/∂x_p∂z_p, the covariance of the derivatives ∂f(x)/∂x_p and ∂f(z)/∂z_p
// of a Gaussian process f with the covariance k (Rasmussen and Williams 2006, equation 9.1).
type Mixed struct {
	stats []Stat
	terms []mixedTerm
}

// mixedTerm is ∂k/∂s for a statistic s of k.
type mixedTerm struct {
	stat    int // the index of the statistic in Mixed.stats
	program *Program
	inputs  []int // the indices of the statistics of program in Mixed.stats
}

// NewMixed returns the Mixed of k for points of d features. It returns an error if k has no first
// or no second derivatives with respect to its points. The exponential kernel and kernels of ‖x−z‖₁
// have no second derivative where points coincide.
func NewMixed(k Kernel, d int) (*Mixed, error) {
	if err := CheckGrad(k, d); err != nil {
		return nil, err
	}
	stats := Compile(k).Stats
	if !k.bounded() || slices.ContainsFunc(stats, func(s Stat) bool { return s.Kind == L1 }) {
		return nil, fmt.Errorf("kernels: %v has no second derivative where points coincide", k)
	}
	m := &Mixed{stats: slices.Clone(stats)}
	for i := range stats {
		t := mixedTerm{stat: i, program: Compile(StatDerivative{kernel: k, stat: i})}
		for _, stat := range t.program.Stats {
			j := slices.IndexFunc(m.stats, stat.Equal)
			if j < 0 {
				j = len(m.stats)
				m.stats = append(m.stats, stat)
			}
			t.inputs = append(t.inputs, j)
		}
		m.terms = append(m.terms, t)
	}
	return m, nil
}

// A MixedPoint is a point x with the values and derivatives of the statistics that depend on x alone.
type MixedPoint struct {
	x        []float64
	onX, onZ [][]float64 // derivatives of each of Mixed.stats with respect to x and z; nil for statistics of two points
	values   []float64   // the values of Mixed.stats at (x, x)
}

// Point prepares x for AddRow. x must not change while the result is used.
func (m *Mixed) Point(x []float64) (p MixedPoint, err error) {
	if m == nil {
		return p, fmt.Errorf("kernels: mixed derivatives: the Mixed was not made by NewMixed")
	}
	count := len(m.stats)
	p = MixedPoint{x, make([][]float64, count), make([][]float64, count), make([]float64, count)}
	for i, s := range m.stats {
		derivs := &p.onX[i]
		switch s.Kind {
		case SelfZ, RootZ:
			derivs = &p.onZ[i]
			fallthrough
		case SelfX, RootX:
			p.values[i] = s.Eval(x, x)
			if *derivs, err = s.PointGradient(x); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// AddRow adds Σ_j weights_j ∂²k(x, z_j)/∂x_p∂z_jp to element p of dst, where z_jp is feature p of z_j.
func (m *Mixed) AddRow(dst []float64, x MixedPoint, z []MixedPoint, weights []float64) {
	if m == nil {
		return
	}
	values, sum := make([]float64, len(m.stats)), make([]float64, len(dst))
	inputs, gradients := make([][]float64, len(m.terms)), make([][]float64, len(m.terms))
	stack := []float64(nil)
	for i, t := range m.terms {
		inputs[i], gradients[i] = make([]float64, len(t.inputs)), make([]float64, len(t.inputs))
		stack = slices.Grow(stack, t.program.Depth*(len(t.inputs)+1))
	}
	type derivatives struct{ byX, byZ, mixed []float64 } // derivatives of one statistic with respect to each feature
	byStat := make([]derivatives, len(m.stats))
	for i, s := range m.stats {
		if !s.Kind.OnePoint() {
			byStat[i] = derivatives{make([]float64, len(dst)), make([]float64, len(dst)), make([]float64, len(dst))}
		}
	}
	for j, point := range z {
		if weights[j] == 0 {
			continue
		}
		for i, s := range m.stats {
			switch s.Kind {
			case SelfX, RootX:
				values[i], byStat[i].byX = x.values[i], x.onX[i]
			case SelfZ, RootZ:
				values[i], byStat[i].byZ = point.values[i], point.onZ[i]
			default:
				values[i] = s.Eval(x.x, point.x)
				s.termGradients(byStat[i].byX, byStat[i].byZ, byStat[i].mixed, x.x, point.x)
			}
		}
		clear(sum)
		for i, t := range m.terms {
			for q, index := range t.inputs {
				inputs[i][q] = values[index]
			}
			stat := byStat[t.stat]
			// Here and below, 0 times an infinite derivative counts as 0.
			derivative := t.program.gradient(inputs[i], gradients[i], stack[:cap(stack)])
			for p, v := range stat.mixed {
				if v != 0 {
					sum[p] += derivative * v
				}
			}
			for q, index := range t.inputs {
				if stat.byX == nil || byStat[index].byZ == nil {
					continue
				}
				byZ, gradient := byStat[index].byZ[:len(stat.byX)], gradients[i][q]
				for p, v := range stat.byX {
					if v != 0 && byZ[p] != 0 {
						sum[p] += gradient * v * byZ[p]
					}
				}
			}
		}
		for p, v := range sum {
			dst[p] += weights[j] * v
		}
	}
}

// termGradients computes derivatives of a statistic that is a sum over the features. Element p of
// byX, byZ and mixed is the derivative with respect to x_p, z_p, and both x_p and z_p.
func (s Stat) termGradients(byX, byZ, mixed, x, z []float64) {
	byX, byZ, mixed, z = byX[:len(x)], byZ[:len(x)], mixed[:len(x)], z[:len(x)]
	for p, v := range x {
		switch c := s.ScaleAt(p); s.Kind {
		case SqDist: // SqDist and Dot are the most frequent statistics; their code is here to avoid calls
			d := 2 * (v - z[p]) * c * c
			byX[p], byZ[p], mixed[p] = d, -d, -2*c*c
		case Dot:
			byX[p], byZ[p], mixed[p] = z[p]*c*c, v*c*c, c*c
		default:
			byX[p], byZ[p] = s.TermGradient(p, v, z[p])
			mixed[p] = s.termMixed(p, v, z[p])
		}
	}
}

// termMixed returns ∂²/∂x∂z of the term of feature p in a sum over the features, for any statistic
// except Dot and SqDist. Where the derivative does not exist, it returns 0.
func (s Stat) termMixed(p int, x, z float64) float64 {
	scale := s.ScaleAt(p)
	if scale == 0 {
		return 0
	}
	diff, sum := x-z, 0.0
	switch s.Kind {
	case CosSum:
		for _, w := range s.Freqs {
			sum += w * w * math.Cos(w*diff)
		}
	case Sinc:
		const w = 2 * math.Pi
		a := w * diff
		if math.Abs(a) < 1.0/64 { // the series in sincDerivative, differentiated and negated
			return w * w * w * (1.0/3 - a*a*(1.0/10-a*a/168))
		}
		return (w*w*math.Sin(a) + 2*sincDerivative(diff)) / diff
	case Chi2:
		if x+z > 0 {
			return -8 * x * z / ((x + z) * (x + z) * (x + z))
		}
	}
	return sum
}

// gradient is like Run, and also sets grad to the derivatives of the result with respect to the
// statistics. The slice stack has Depth rows; a row holds a value and its len(stats) derivatives.
func (p *Program) gradient(stats, grad, stack []float64) float64 {
	width, top := len(stats)+1, -1
	row := func(i int) []float64 { return stack[i*width : (i+1)*width] }
	for _, in := range p.Code {
		switch in.Op {
		case Load, Const:
			top++
			t := row(top)
			clear(t)
			if t[0] = in.A; in.Op == Load {
				t[0], t[1+in.Arg] = stats[in.Arg], 1
			}
			continue
		case Add, Mul:
			top--
			u, t := row(top), row(top+1)
			for i := 1; i < width; i++ {
				if in.Op == Mul {
					u[i] = damped(u[i], t[0]) + damped(t[i], u[0])
				} else {
					u[i] += t[i]
				}
			}
			if in.Op == Mul {
				u[0] *= t[0]
			} else {
				u[0] += t[0]
			}
			continue
		}
		t := row(top)
		value, slope := in.unary(t[0]), 0.0
		switch v := t[0]; in.Op {
		case Affine:
			slope = in.A
		case PowInt:
			slope = float64(in.Arg)
			if in.Arg > 1 {
				slope *= powInt(v, in.Arg-1)
			}
		case Sqrt:
			slope = 0.5 / value
		case Exp:
			slope = value
		case Pow:
			slope = in.A * pow(v, in.A-1)
		case Tanh:
			slope = 1 - value*value
		case Cos:
			slope = -math.Sin(v)
		case Sin:
			slope = math.Cos(v)
		case Log:
			slope = 1 / v
		}
		t[0] = value
		for i := 1; i < width; i++ {
			t[i] = damped(t[i], slope)
		}
	}
	copy(grad, stack[1:width])
	return stack[0]
}

// damped returns d·factor. It returns 0 if d is 0, even if factor is infinite.
func damped(d, factor float64) float64 {
	if d == 0 {
		return 0
	}
	return d * factor
}
