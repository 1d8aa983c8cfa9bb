package verified

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/kernels"
)

// A Kernel computes a Ball that contains a kernel value. Only one goroutine may use it at a time.
type Kernel struct {
	program  *kernels.Program
	onePoint []*Kernel // evaluates program.Stats[i].Of if statistic i depends on one point, like k(x, x); otherwise nil
	stats    []Ball
	stack    []Ball
}

// NewKernel returns an evaluator of k.
func NewKernel(k kernels.Kernel) *Kernel {
	p := kernels.Compile(k)
	e := &Kernel{program: p, onePoint: make([]*Kernel, len(p.Stats)), stats: make([]Ball, len(p.Stats)), stack: make([]Ball, 0, p.Depth)}
	for i, s := range p.Stats {
		if s.Of != nil {
			e.onePoint[i] = NewKernel(s.Of)
		}
	}
	return e
}

// Steps estimates the time of System.Bound for n points of d features, in units of about 4 ns. Each pair of points
// takes 20 units for each operation of the kernel's program. Each feature takes 1 unit for an unscaled xᵀz, ‖x−z‖²
// or ‖x−z‖₁, and 30 units for another statistic, or 30 for each frequency of the statistic.
func Steps(k kernels.Kernel, n, d int) float64 {
	p := kernels.Compile(k)
	steps := 20 * float64(len(p.Code))
	for _, s := range p.Stats {
		switch {
		case s.Of != nil: // System.Bound evaluates a statistic of one point again for each pair
			steps += Steps(s.Of, 1, d)
		case s.Kind == kernels.Entry: // reading a matrix entry takes no time
		case s.Scale == nil && (s.Kind == kernels.Dot || s.Kind == kernels.SqDist || s.Kind == kernels.L1):
			steps += float64(d)
		default:
			steps += 30 * float64(d*max(1, len(s.Freqs)))
		}
	}
	return steps * float64(n) * float64(n)
}

// Eval returns a Ball that contains k(x, z).
func (e *Kernel) Eval(x, z []float64) Ball {
	for i, s := range e.program.Stats {
		e.stats[i] = e.statistic(i, s, x, z)
	}
	stack := e.stack[:0]
	for _, in := range e.program.Code {
		switch in.Op {
		case kernels.Load:
			stack = append(stack, e.stats[in.Arg])
			continue
		case kernels.Const:
			stack = append(stack, Exact(in.A))
			continue
		case kernels.Add, kernels.Mul:
			a, b := stack[len(stack)-2], stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if in.Op == kernels.Add {
				stack[len(stack)-1] = Add(a, b)
			} else {
				stack[len(stack)-1] = Mul(a, b)
			}
			continue
		}
		t := &stack[len(stack)-1]
		switch in.Op {
		case kernels.Affine:
			*t = Add(Mul(Exact(in.A), *t), Exact(in.B))
		case kernels.PowInt:
			*t = PowInt(*t, in.Arg)
		case kernels.Sqrt:
			*t = Sqrt(*t)
		case kernels.Exp:
			*t = Exp(*t)
		case kernels.Pow:
			*t = Pow(*t, in.A)
		case kernels.Tanh:
			*t = Tanh(*t)
		case kernels.Cos:
			*t = Cos(*t)
		case kernels.Sin:
			*t = Sin(*t)
		case kernels.Log:
			*t = Log(*t)
		default:
			panic(fmt.Sprintf("verified: unknown operation %d", in.Op))
		}
	}
	if v := stack[0]; v.finite() {
		return v
	}
	return unbounded
}

func (e *Kernel) statistic(i int, s kernels.Stat, x, z []float64) Ball {
	switch s.Kind {
	case kernels.Entry: // the entry of a matrix of kernel values
		return Exact(s.Eval(x, z))
	case kernels.SelfX:
		return e.onePoint[i].Eval(x, x)
	case kernels.SelfZ:
		return e.onePoint[i].Eval(z, z)
	case kernels.RootX:
		return inverseRoot(e.onePoint[i].Eval(x, x))
	case kernels.RootZ:
		return inverseRoot(e.onePoint[i].Eval(z, z))
	case kernels.Dot, kernels.SqDist, kernels.L1:
		if s.Scale == nil {
			return unscaledStat(s.Kind, x, z)
		}
	}
	var sum Ball
	for p, v := range x {
		sum = Add(sum, term(s, p, v, z[p]))
	}
	return sum
}

// inverseRoot returns 1/√v, and 0 for v = 0.
func inverseRoot(v Ball) Ball {
	if v == (Ball{}) {
		return v
	}
	return Div(Exact(1), Sqrt(v))
}

// unscaledStat returns xᵀz, ‖x−z‖² or ‖x−z‖₁. The term of each feature is computed as a float64 p plus a correction
// smaller than 3u|p|, where u = 2⁻⁵³. The error of this sum is less than 8u²|p|.
func unscaledStat(kind kernels.StatKind, x, z []float64) Ball {
	var s sum
	for j, v := range x {
		w := z[j]
		switch kind {
		case kernels.Dot:
			s.product(v, w, 0)
		case kernels.SqDist:
			d, c := twoSum(v, -w)
			s.product(d, d, 2*d*c)
		case kernels.L1:
			d, c := twoSum(v, -w)
			if d < 0 {
				d, c = -d, -c
			}
			s.add(d, c)
		}
	}
	return s.ball()
}

// A sum adds n numbers by algorithm Dot2 of Ogita, Rump and Oishi (2005), Accurate sum and dot product. Each
// number is given as a float64 p and a correction e with |e| ≤ 3u|p|, where u = 2⁻⁵³. The field low has fewer than
// 2n rounding errors of at most 4nu²Σ|p|, so that the error of high + low is at most 8n²u²Σ|p| + 8u²Σ|p|.
type sum struct {
	high, low, size float64
	n               int
}

func (s *sum) add(p, e float64) {
	var c float64
	s.high, c = twoSum(s.high, p)
	s.low += c + e
	s.size += math.Abs(p)
	s.n++
}

// product adds ab + correction to the sum.
func (s *sum) product(a, b, correction float64) {
	p, e := twoProduct(a, b)
	s.add(p, e+correction)
	if p == 0 && a != 0 && b != 0 {
		s.size += underflow
	}
}

func (s *sum) ball() Ball {
	if s.size == 0 {
		return Ball{}
	}
	n := float64(s.n + 1)
	size := s.size * (1 + n*0x1p-50)
	hi, lo := fastTwoSum(s.high, s.low)
	if math.Abs(s.high) < math.Abs(s.low) {
		hi, lo = twoSum(s.high, s.low)
	}
	return Ball{hi, lo, up(16*n*n*0x1p-106*size) + n*underflow}
}

// term returns the term of feature p of the statistic s, which is a sum over the features.
func term(s kernels.Stat, p int, x, z float64) Ball {
	scale := s.ScaleAt(p)
	if scale == 0 {
		return Ball{}
	}
	d := difference(x, z)
	scaled := func() Ball {
		if s.Scale == nil {
			return d
		}
		return Mul(Exact(scale), d)
	}
	switch s.Kind {
	case kernels.Dot:
		v := Mul(Exact(x), Exact(z))
		if s.Scale != nil {
			v = Mul(v, Mul(Exact(scale), Exact(scale)))
		}
		return v
	case kernels.SqDist:
		v := scaled()
		return Mul(v, v)
	case kernels.L1:
		if v := scaled(); v.Hi >= 0 {
			return v
		}
		return scaled().neg()
	case kernels.CosSum:
		var sum Ball
		for _, w := range s.Freqs {
			sum = Add(sum, Cos(Mul(Exact(w), d)))
		}
		return sum
	case kernels.SinSum:
		var sum Ball
		for _, w := range s.Freqs {
			angle := Mul(Exact(w), d)
			sum = Add(sum, Mul(angle, Sin(angle)))
		}
		return sum
	case kernels.Sinc:
		if d == (Ball{}) {
			return Exact(2 * math.Pi)
		}
		return Div(Sin(Mul(Exact(2*math.Pi), d)), d)
	case kernels.Chi2:
		switch {
		case x < 0 || z < 0:
			return unbounded
		case x == 0 && z == 0:
			return Ball{}
		}
		hi, lo := twoSum(x, z)
		return Div(Mul(d, d), Ball{Hi: hi, Lo: lo})
	}
	panic(fmt.Sprintf("verified: unknown statistic %d", s.Kind))
}
