package backendtest

import (
	"fmt"
	"math"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// Bounds of rounding errors, after Higham, Accuracy and Stability of Numerical
// Algorithms (2nd edition, 2002), chapter 3.

func short() bool { return testing.Short() }

// unit is u, half the distance from 1 to the next number.
func unit[T backend.Float]() float64 {
	var t T
	if _, ok := any(t).(float32); ok {
		return 0x1p-24
	}
	return 0x1p-53
}

// smallest is the smallest normal number: where results underflow, errors are
// not relative any more.
func smallest[T backend.Float]() float64 {
	var t T
	if _, ok := any(t).(float32); ok {
		return 0x1p-126
	}
	return 0x1p-1022
}

// gamma is γ_n = nu / (1 − nu): n roundings one after another. The error of a
// sum of n products is at most γ_n Σ|a||b| in whatever order it is summed,
// with or without fused multiply-add (Higham, equation 3.5).
func gamma[T backend.Float](n int) float64 {
	nu := float64(n) * unit[T]()
	return nu / (1 - nu)
}

// product is the bound, relative to |α||A||B| + |β||C|, for the difference of
// two computed αAB + βC with sums of k products, one in T and one by the
// oracle. Beside the k of the sum there are the roundings of α·, of β·, and of
// the addition; the oracle's are in float64, and one more is in T, to store.
func product[T backend.Float](k int) float64 {
	return gamma[T](k+3) + gamma[float64](k+3) + unit[T]()
}

// approx is a value with the largest error that it may have.
type approx struct{ v, err float64 }

// rounded adds the error of n more roundings, relative to the largest that the
// computed value can be.
func (a approx) rounded(n int, u float64) approx {
	a.err += float64(n) * u * (math.Abs(a.v) + a.err)
	return a
}

// expUlps is the error that an exp or another function may have: vector versions reach about 1 ulp,
// so that 4 leaves them some freedom. An ulp is at most 2u.
const expUlps = 4

// propagate runs the program on statistics with errors, in arithmetic of T: a
// running error analysis (Higham, section 3.3), exact in the propagated part
// and with every rounding counted.
func propagate[T backend.Float](p *kernels.Program, stats []approx) approx {
	u := unit[T]()
	var stack []approx
	for _, in := range p.Code {
		switch in.Op {
		case kernels.Load:
			stack = append(stack, stats[in.Arg])
			continue
		case kernels.Const:
			stack = append(stack, approx{in.A, 0}.rounded(1, u))
			continue
		}
		last := len(stack) - 1
		t := stack[last]
		switch in.Op {
		case kernels.Affine: // A and the product, B, the sum
			at := approx{in.A * t.v, math.Abs(in.A) * t.err}.rounded(2, u)
			t = approx{at.v + in.B, at.err + u*math.Abs(in.B)}.rounded(1, u)
		case kernels.PowInt: // mean value theorem; one rounding per factor
			n := float64(in.Arg)
			t = approx{math.Pow(t.v, n), n * t.err * math.Pow(math.Abs(t.v)+t.err, n-1)}.rounded(in.Arg, u)
		case kernels.Sqrt:
			// |√(t±e) − √t| ≤ e/√t and ≤ √e.
			v, e := math.Sqrt(max(t.v, 0)), math.Sqrt(t.err)
			if v > 0 {
				e = min(e, t.err/v)
			}
			t = approx{v, e}.rounded(1, u)
		case kernels.Exp:
			v := math.Exp(t.v)
			e := v * math.Expm1(t.err)
			if v == 0 || math.IsInf(e, 0) {
				e = math.Exp(t.v + t.err)
			}
			t = approx{v, e}.rounded(2*expUlps, u)
			t.err += smallest[T]()
		case kernels.Pow:
			// |ln(t±e) − ln t| ≤ −ln(1 − e/t), times A in the exponent; A, the
			// logarithm and their product are rounded, 2 + expUlps units.
			log := math.Abs(in.A * math.Log(t.v))
			move := math.Abs(in.A)*-math.Log1p(-min(t.err/t.v, 1)) + (2+2*expUlps)*u*log
			v := math.Exp(in.A * math.Log(t.v))
			t = approx{v, v * math.Expm1(move)}.rounded(2*expUlps, u)
			t.err += smallest[T]()
		case kernels.Tanh: // the slope is 1 − tanh² where the argument is smallest
			v, least := math.Tanh(t.v), math.Tanh(max(math.Abs(t.v)-t.err, 0))
			t = approx{v, (1 - least*least) * t.err}.rounded(2*expUlps, u)
		case kernels.Cos:
			t = approx{math.Cos(t.v), t.err}.rounded(2*expUlps, u)
		case kernels.Sin:
			t = approx{math.Sin(t.v), t.err}.rounded(2*expUlps, u)
		case kernels.Log: // as for Pow
			t = approx{math.Log(t.v), -math.Log1p(-min(t.err/t.v, 1))}.rounded(2*expUlps, u)
		case kernels.Add:
			s := stack[last-1]
			stack, last = stack[:last], last-1
			t = approx{s.v + t.v, s.err + t.err}.rounded(1, u)
		case kernels.Mul:
			s := stack[last-1]
			stack, last = stack[:last], last-1
			t = approx{s.v * t.v, math.Abs(s.v)*t.err + math.Abs(t.v)*s.err + s.err*t.err}.rounded(1, u)
		default:
			panic(fmt.Sprintf("backendtest: unknown operation %d", in.Op))
		}
		stack[last] = t
	}
	return stack[0]
}

// kernelBounds returns, for every pair of rows, how far k(x_i, z_j) in T may be
// from the oracle's.
//
// A direct sum of distances has the relative error γ_{d+3}: difference, scale,
// square or absolute value, and the sum. That is asked of L1, for which there
// is no other way.
//
// ‖x−z‖² may also be computed as ‖x′‖² + ‖z′‖² − 2x′ᵀz′ from points x′ that
// were moved to a centre among them and scaled. Its error is at most
// γ_{d+6}(‖x′‖+‖z′‖)², and neither norm is more than the diameter of the set
// of points, 2r with r the largest distance from one of them: 16γ_{d+6}r².
// Where the terms cancel that is not enough for the square root of Matérn
// kernels. So the error must be small relative to the distance itself too:
// a backend may keep the formula while the result is ≥ 2⁻¹⁰ of ‖x′‖² + ‖z′‖²,
// where the error is ≤ 2·2¹⁰γ_{d+6}‖x−z‖²; one more factor of 2 is for that
// decision, which is made on rounded numbers. Duplicate rows have distance 0,
// exactly.
//
// The whole is doubled: a fused path may reach the same kernel through another
// formula with as many roundings.
func kernelBounds[T backend.Float](k kernels.Kernel, x, z host) host {
	return each(x.Rows, z.Rows, newKernelBound[T](k, x, z).at)
}

// kernelBound is kernelBounds for one pair at a time.
type kernelBound[T backend.Float] struct {
	program *kernels.Program
	x, z    host
	radius2 []float64 // r² of each statistic
	reach   []float64 // for each feature, a bound for |x−centre| of all points
	single  []kernelBound[T]
}

func newKernelBound[T backend.Float](k kernels.Kernel, x, z host) kernelBound[T] {
	b := kernelBound[T]{program: kernels.Compile(k), x: x, z: z}
	b.radius2 = make([]float64, len(b.program.Stats))
	b.reach = make([]float64, x.Cols)
	b.single = make([]kernelBound[T], len(b.program.Stats))
	for _, h := range []host{x, z} {
		for i := range h.Rows {
			for p, v := range h.Row(i) {
				b.reach[p] = max(b.reach[p], 2*math.Abs(v-x.Row(0)[p]))
			}
		}
	}
	for s, stat := range b.program.Stats {
		switch stat.Kind {
		case kernels.SelfX, kernels.RootX:
			b.single[s] = newKernelBound[T](stat.Of, x, x)
		case kernels.SelfZ, kernels.RootZ:
			b.single[s] = newKernelBound[T](stat.Of, z, z)
		case kernels.SqDist:
			for _, h := range []host{x, z} {
				for i := range h.Rows {
					b.radius2[s] = max(b.radius2[s], direct(stat, x.Row(0), h.Row(i)).v)
				}
			}
		}
	}
	return b
}

func (b kernelBound[T]) at(i, j int) float64 {
	mine, oracles := make([]approx, len(b.radius2)), make([]approx, len(b.radius2))
	for s := range b.program.Stats {
		mine[s], oracles[s] = b.statistic(s, i, j)
	}
	o := propagate[float64](b.program, oracles)
	return 2*propagate[T](b.program, mine).err + o.err + unit[T]()*math.Abs(o.v) + smallest[T]()
}

// statistic is number s of the pair, with the errors that a backend and that
// the oracle may make.
func (b kernelBound[T]) statistic(s, i, j int) (mine, oracles approx) {
	d, stat := b.x.Cols, b.program.Stats[s]
	x, z := b.x.Row(i), b.z.Row(j)
	switch stat.Kind {
	case kernels.SelfX, kernels.SelfZ, kernels.RootX, kernels.RootZ:
		// Like any kernel value, and then like the function of it.
		at := i
		if stat.Kind == kernels.SelfZ || stat.Kind == kernels.RootZ {
			at = j
		}
		v, e := stat.Eval(x, z), b.single[s].at(at, at)
		if stat.Kind == kernels.RootX || stat.Kind == kernels.RootZ {
			// |1/√(s±e) − 1/√s| ≤ ½e (s−e)^−3/2
			e = e / 2 * math.Pow(max(1/(v*v)-e, 0), -1.5)
		}
		mine = approx{v, e}.rounded(2, unit[T]())
		return mine, mine
	case kernels.CosSum, kernels.SinSum, kernels.Sinc, kernels.Chi2, kernels.Entry:
		v := stat.Eval(x, z)
		return approx{v, b.featureError(stat, x, z, unit[T]())}, approx{v, b.featureError(stat, x, z, 0x1p-53)}
	}
	v := direct(stat, x, z)
	oracles = approx{v.v, gamma[float64](d+3) * v.err}
	mine = approx{v.v, gamma[T](d+3) * v.err}
	if stat.Kind == kernels.SqDist {
		mine.err = min(16*gamma[T](d+6)*b.radius2[s], 0x1p12*gamma[T](d+6)*v.v)
	}
	return mine, oracles
}

// featureError bounds the error of a sum over the features in arithmetic of
// unit u, to first order in it. Cosines and sines may be taken of the features
// themselves, from a centre among the points, so that the angles are as large
// as the points reach; each is rounded three times, and each function may be
// expUlps off.
func (b kernelBound[T]) featureError(stat kernels.Stat, x, z []float64, u float64) float64 {
	terms := float64(2*len(x)*max(1, len(stat.Freqs))) + 4
	sum := 0.0
	for p := range x {
		diff := math.Abs(x[p] - z[p])
		switch stat.Kind {
		case kernels.CosSum:
			for _, w := range stat.Freqs {
				sum += 2*terms + 2*3*math.Abs(w)*b.reach[p] + 4*2*expUlps
			}
		case kernels.SinSum:
			for _, w := range stat.Freqs {
				sum += math.Abs(w) * diff * (terms + 3*math.Abs(w)*diff + 2*expUlps)
			}
		case kernels.Sinc: // |sin 2πΔ/Δ| ≤ 2π, and its angle's error over Δ 3·2π
			sum += 2 * math.Pi * (terms + 3 + 2*expUlps)
		case kernels.Chi2:
			if x[p]+z[p] > 0 {
				sum += diff * diff / (x[p] + z[p]) * (terms + 4)
			}
		}
	}
	return sum * u
}

// direct is a statistic by its definition; err is the sum of the absolute
// values of its terms.
func direct(stat kernels.Stat, x, z []float64) approx {
	var sum approx
	for p := range x {
		scale := 1.0
		if stat.Scale != nil {
			scale = stat.Scale[p]
		}
		var term float64
		switch stat.Kind {
		case kernels.Dot:
			term = x[p] * scale * z[p] * scale
		case kernels.SqDist:
			diff := (x[p] - z[p]) * scale
			term = diff * diff
		case kernels.L1:
			term = math.Abs((x[p] - z[p]) * scale)
		}
		sum.v += term
		sum.err += math.Abs(term)
	}
	return sum
}
