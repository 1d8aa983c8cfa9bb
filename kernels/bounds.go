package kernels

import (
	"math"

	"github.com/mercer-go/mercer/internal/elementary"
)

// Bounds returns finite bounds on k(x, z) over all finite points of d features, by interval arithmetic. They need
// not be tight. ok is false if Bounds finds none.
func Bounds(k Kernel, d int) (low, high float64, ok bool) {
	p := Compile(k)
	stationary := true
	var stack []interval
	for _, in := range p.Code {
		top := len(stack) - 1
		switch in.Op {
		case Load:
			s := p.Stats[in.Arg]
			stationary = stationary && s.Kind.TranslationInvariant()
			stack = append(stack, s.bounds(d))
		case Const:
			stack = append(stack, interval{in.A, in.A})
		case Add:
			t := stack[top]
			stack = stack[:top]
			stack[top-1] = interval{stack[top-1].low + t.low, stack[top-1].high + t.high}
		case Mul:
			t := stack[top]
			stack = stack[:top]
			stack[top-1] = stack[top-1].times(t)
		default:
			stack[top] = in.bounds(stack[top])
		}
	}
	r := stack[0]
	switch k.(type) {
	case Normalized, CosineSimilarity:
		if k.IsPSD() {
			r = interval{max(r.low, -1), min(r.high, 1)}
		}
	default:
		if stationary && k.IsPSD() {
			zero := make([]float64, d)
			c := Diag(k, zero)
			r = interval{max(r.low, -c), min(r.high, c)}
		}
	}
	ok = r.high-r.low >= 0 && !math.IsInf(r.high-r.low, 1)
	return r.low, r.high, ok
}

// An interval is the set of the finite numbers from low to high.
type interval struct{ low, high float64 }

func (a interval) times(b interval) interval {
	r := interval{math.Inf(1), math.Inf(-1)}
	for _, x := range []float64{a.low, a.high} {
		for _, y := range []float64{b.low, b.high} {
			v := 0.0 // 0 times an infinite endpoint counts as 0
			if x != 0 && y != 0 {
				v = x * y
			}
			r = interval{min(r.low, v), max(r.high, v)}
		}
	}
	return r
}

// terms returns the number of features, among d features, whose scale is not 0.
func (s Stat) terms(d int) (n int) {
	for p := range d {
		if s.ScaleAt(p) != 0 {
			n++
		}
	}
	return n
}

// bounds returns an interval that contains the statistic of all pairs of points of d features.
func (s Stat) bounds(d int) interval {
	switch s.Kind {
	case SqDist, L1, Chi2, RootX, RootZ:
		return interval{0, math.Inf(1)}
	case CosSum:
		m := float64(s.terms(d) * len(s.Freqs))
		return interval{-m, m}
	case Sinc:
		m := 2 * math.Pi * float64(s.terms(d))
		return interval{-m, m}
	}
	return interval{math.Inf(-1), math.Inf(1)}
}

// bounds returns an interval that contains the operation's result for all operands in t.
func (in Instr) bounds(t interval) interval {
	ends := func(f func(float64) float64) interval { // applies an increasing function to both endpoints
		return interval{f(t.low), f(t.high)}
	}
	positive := interval{max(t.low, 0), max(t.high, 0)}
	switch in.Op {
	case Affine:
		r := t.times(interval{in.A, in.A})
		return interval{r.low + in.B, r.high + in.B}
	case PowInt:
		r := ends(func(v float64) float64 { return powInt(v, in.Arg) })
		switch {
		case in.Arg%2 == 1:
		case t.low <= 0 && t.high >= 0:
			r = interval{0, max(r.low, r.high)}
		case t.high < 0:
			r = interval{r.high, r.low}
		}
		return r
	case Sqrt:
		return interval{math.Sqrt(positive.low), math.Sqrt(positive.high)}
	case Exp:
		return ends(elementary.Exp)
	case Pow:
		r := interval{elementary.Pow(positive.low, in.A), elementary.Pow(positive.high, in.A)}
		if in.A < 0 {
			r = interval{r.high, r.low}
		}
		return r
	case Tanh:
		return ends(elementary.Tanh)
	case Cos, Sin:
		return interval{-1, 1}
	case Log:
		return interval{elementary.Log(positive.low), elementary.Log(positive.high)}
	}
	return interval{math.Inf(-1), math.Inf(1)}
}
