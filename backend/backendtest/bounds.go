package backendtest

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/kerneltest"
)

// The bounds of rounding errors in this file follow Higham, Accuracy and Stability of Numerical
// Algorithms (2nd edition, 2002), chapter 3.

func short() bool { return testing.Short() }

// unit returns the unit roundoff u of T, half the distance from 1 to the next larger number.
func unit[T backend.Float]() float64 {
	var t T
	if _, ok := any(t).(float32); ok {
		return 0x1p-24
	}
	return 0x1p-53
}

// smallest returns the smallest normal number of T. Bounds include it because errors of results
// that underflow are not small relative to the result.
func smallest[T backend.Float]() float64 {
	var t T
	if _, ok := any(t).(float32); ok {
		return 0x1p-126
	}
	return 0x1p-1022
}

// gamma returns γ_n = nu / (1 − nu), the bound of the relative error of n successive roundings. The
// error of a sum of n products is at most γ_n Σ|a||b| in any order of summation, with or without
// fused multiply-add (Higham, equation 3.5).
func gamma[T backend.Float](n int) float64 {
	nu := float64(n) * unit[T]()
	return nu / (1 - nu)
}

// product returns a bound, relative to |α||A||B| + |β||C|, for the difference of two results αAB +
// βC with sums of k products, one computed in T and one computed by the oracle. In addition to the
// k roundings of the sum, the arithmetic in T rounds the product with α, the product with β, and
// their sum. The oracle rounds in float64, and once in T when it stores the element.
func product[T backend.Float](k int) float64 {
	return gamma[T](k+3) + gamma[float64](k+3) + unit[T]()
}

// kernelBounds returns, for every pair of rows, the largest permitted difference of k(x_i, z_j) in
// T from the oracle's value.
//
// A distance computed as the sum over the features has the relative error γ_{d+3}, from the
// roundings of difference, scale, square or absolute value, and sum. The L1 distance must meet this
// bound, because it has no other formula.
//
// ‖x−z‖² may also be computed as ‖x′‖² + ‖z′‖² − 2x′ᵀz′ from shifted and scaled points x′. The
// shift is a point among the data, such as their mean. The error is then at most
// γ_{d+6}(‖x′‖+‖z′‖)², which is ≤ 16γ_{d+6}r²: neither norm exceeds the diameter of the set of
// points, at most 2r if r is the largest distance from one of the points. If the terms cancel, this
// bound is too weak for the square root in Matérn kernels. So the error must also be small relative
// to the distance itself: a backend may use the formula if the result is ≥ 2⁻¹⁰(‖x′‖² + ‖z′‖²),
// where the error is ≤ 2·2¹⁰γ_{d+6}‖x−z‖²; one more factor of 2 allows for the rounding of both
// sides of this comparison. Duplicate rows have distance 0, exactly.
//
// A NaN stands for no bound: every comparison with NaN is false.
//
// The total is doubled, because a fused path may evaluate the kernel by another formula with the
// same number of roundings.
func kernelBounds[T backend.Float](k kernels.Kernel, x, z host) host {
	return each(x.Rows, z.Rows, newKernelBound[T](k, x, z, false).at)
}

// sparseBounds is like kernelBounds, for sparse points. They are not shifted, so that r is their
// largest norm. ‖x−z‖₁ and χ² may be computed from n_x + n_z, the statistics of x and of z with 0,
// and a correction for each column that both rows store. The corrections sum to at most n_x + n_z
// in absolute value, and their terms to at most twice as much, so that the error is at most
// 4γ_{d+6}(n_x + n_z). As for ‖x−z‖², the error must also be small relative to the value.
func sparseBounds[T backend.Float](k kernels.Kernel, x, z host) host {
	return each(x.Rows, z.Rows, newKernelBound[T](k, x, z, true).at)
}

// kernelBound computes the bounds of kernelBounds for one pair of points at a time.
type kernelBound[T backend.Float] struct {
	program *kernels.Program
	x, z    host
	radius2 []float64 // r² of kernelBounds, for each statistic
	reach   []float64 // for each feature, a bound on |x−center| over all points
	single  []kernelBound[T]
	sparse  bool
}

func newKernelBound[T backend.Float](k kernels.Kernel, x, z host, sparse bool) kernelBound[T] {
	b := kernelBound[T]{program: kernels.Compile(k), x: x, z: z, sparse: sparse}
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
			b.single[s] = newKernelBound[T](stat.Of, x, x, sparse)
		case kernels.SelfZ, kernels.RootZ:
			b.single[s] = newKernelBound[T](stat.Of, z, z, sparse)
		case kernels.SqDist:
			center := make([]float64, x.Cols)
			if !sparse && x.Rows > 0 {
				center = x.Row(0)
			}
			for _, h := range []host{x, z} {
				for i := range h.Rows {
					r2, _ := direct(stat, center, h.Row(i))
					b.radius2[s] = max(b.radius2[s], r2)
				}
			}
		}
	}
	return b
}

func (b kernelBound[T]) at(i, j int) float64 {
	mine, oracles := make([]kerneltest.Approx, len(b.radius2)), make([]kerneltest.Approx, len(b.radius2))
	for s := range b.program.Stats {
		mine[s], oracles[s] = b.statistic(s, i, j)
	}
	o := kerneltest.Propagate(b.program, oracles, unit[float64]())
	return 2*kerneltest.Propagate(b.program, mine, unit[T]()).Error + o.Error + unit[T]()*math.Abs(o.Value) + smallest[T]()
}

// statistic returns statistic s of the points i and j, once with the error bound of the backend
// under test, and once with that of the oracle.
func (b kernelBound[T]) statistic(s, i, j int) (mine, oracles kerneltest.Approx) {
	d, stat := b.x.Cols, b.program.Stats[s]
	x, z := b.x.Row(i), b.z.Row(j)
	switch stat.Kind {
	case kernels.SelfX, kernels.SelfZ, kernels.RootX, kernels.RootZ:
		// If a statistic is a function of a kernel value, its error is the error of the kernel
		// value, propagated through the function.
		at := i
		if stat.Kind == kernels.SelfZ || stat.Kind == kernels.RootZ {
			at = j
		}
		mine = kerneltest.Approx{Value: stat.Eval(x, z), Error: b.single[s].at(at, at)}
		if stat.Kind == kernels.RootX || stat.Kind == kernels.RootZ {
			mine = mine.InverseRoot(unit[T]())
		}
		return mine, mine
	case kernels.CosSum, kernels.SinSum, kernels.Sinc, kernels.Chi2, kernels.Entry:
		v := stat.Eval(x, z)
		if b.sparse && stat.Kind == kernels.Chi2 {
			return kerneltest.Approx{Value: v, Error: b.fromZeros(stat, v, x, z)}, kerneltest.Approx{Value: v, Error: b.featureError(stat, x, z, 0x1p-53)}
		}
		return kerneltest.Approx{Value: v, Error: b.featureError(stat, x, z, unit[T]())}, kerneltest.Approx{Value: v, Error: b.featureError(stat, x, z, 0x1p-53)}
	}
	v, size := direct(stat, x, z)
	oracles = kerneltest.Approx{Value: v, Error: gamma[float64](d+3) * size}
	mine = kerneltest.Approx{Value: v, Error: gamma[T](d+3) * size}
	if b.sparse && stat.Kind == kernels.L1 {
		mine.Error = b.fromZeros(stat, v, x, z)
	}
	if stat.Kind == kernels.SqDist {
		mine.Error = min(16*gamma[T](d+6)*b.radius2[s], 0x1p12*gamma[T](d+6)*v)
	}
	return mine, oracles
}

// fromZeros bounds the error of a statistic v computed from the statistics of (x, 0) and (z, 0).
func (b kernelBound[T]) fromZeros(stat kernels.Stat, v float64, x, z []float64) float64 {
	zeros := make([]float64, len(x))
	return min(4*gamma[T](len(x)+6)*(stat.Eval(x, zeros)+stat.Eval(zeros, z)), 0x1p12*gamma[T](len(x)+6)*v)
}

// featureError bounds the error of a sum over the features in arithmetic of unit roundoff u, to
// first order in u. Backends may take cosines and sines of the features themselves, without a shift
// to a center of the points, so that the angles can be as large as the largest feature. Each angle
// is rounded three times, and each function value may be off by kerneltest.FunctionUlps.
func (b kernelBound[T]) featureError(stat kernels.Stat, x, z []float64, u float64) float64 {
	terms := float64(2*len(x)*max(1, len(stat.Freqs))) + 4
	sum := 0.0
	for p := range x {
		diff := math.Abs(x[p] - z[p])
		switch stat.Kind {
		case kernels.CosSum:
			for _, w := range stat.Freqs {
				sum += 2*terms + 2*3*math.Abs(w)*b.reach[p] + 4*2*kerneltest.FunctionUlps
			}
		case kernels.SinSum:
			for _, w := range stat.Freqs {
				sum += math.Abs(w) * diff * (terms + 3*math.Abs(w)*diff + 2*kerneltest.FunctionUlps)
			}
		case kernels.Sinc: // |sin(2πΔ)/Δ| ≤ 2π; three roundings of the angle add at most 3·2π
			sum += 2 * math.Pi * (terms + 3 + 2*kerneltest.FunctionUlps)
		case kernels.Chi2:
			if x[p]+z[p] > 0 {
				sum += diff * diff / (x[p] + z[p]) * (terms + 4)
			}
		}
	}
	return sum * u
}

// direct returns v, a statistic computed by its definition, and size, the sum of the absolute
// values of the terms of the statistic.
func direct(stat kernels.Stat, x, z []float64) (v, size float64) {
	for p := range x {
		scale := stat.ScaleAt(p)
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
		v += term
		size += math.Abs(term)
	}
	return v, size
}
