package backendtest

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/kerneltest"
)

// The bounds on rounding errors follow Higham, Accuracy and Stability of Numerical Algorithms (2002), chapter 3.

func short() bool { return testing.Short() }

// few is required.FewCases. It implies short.
func few() bool { return required.FewCases() }

// unit returns the unit roundoff u of T, half the distance from 1 to the next larger number.
func unit[T backend.Float]() float64 {
	var t T
	if _, ok := any(t).(float32); ok {
		return 0x1p-24
	}
	return 0x1p-53
}

// smallest returns the smallest normal number of T. Bounds add it, because results may underflow.
func smallest[T backend.Float]() float64 {
	var t T
	if _, ok := any(t).(float32); ok {
		return 0x1p-126
	}
	return 0x1p-1022
}

// gamma returns γ_n = nu / (1 − nu) for the unit roundoff u, a bound on the relative error of n successive roundings.
// The error of a sum of n products ab is at most γ_n Σ|a||b| in any order, fused or not (Higham, equation 3.5).
func gamma[T backend.Float](n int) float64 {
	nu := float64(n) * unit[T]()
	return nu / (1 - nu)
}

// product bounds the difference between αAB + βC computed in T and by the oracle, relative to |α||A||B| + |β||C|. An
// element of AB is a sum of k products with k roundings. Three more roundings are for α, β and the last sum.
func product[T backend.Float](k int) float64 {
	return gamma[T](k+3) + gamma[float64](k+3) + unit[T]()
}

// kernelBounds returns, for every pair of rows x_i and z_j, the largest permitted difference between k(x_i, z_j) in T
// and the value of the oracle. The bound NaN permits no value. The error in T is doubled, because a backend may compute
// the kernel by another formula with the same number of roundings. With d features and γ_n = gamma(n), the distance of
// two points x and z has these errors:
//
//   - A sum over the features has the relative error γ_{d+3}. The L1 distance has no other formula.
//   - The formula ‖x−z‖² = ‖x′‖² + ‖z′‖² − 2x′ᵀz′, where x′ and z′ are x and z minus a point of the convex hull of all
//     points, has the error γ_{d+6}(‖x′‖+‖z′‖)² ≤ 16γ_{d+6}r² if no distance of a point from the first point exceeds r.
//   - A backend may use this formula only if its result is at least 2⁻¹⁰(‖x′‖² + ‖z′‖²). The error is then at most
//     2·2¹⁰γ_{d+6}‖x−z‖². Another factor of 2 allows for the rounding of both sides of the comparison.
//   - Equal rows must have the distance 0 exactly.
func kernelBounds[T backend.Float](k kernels.Kernel, x, z host) host {
	return fromFunc(x.Rows, z.Rows, newKernelBound[T](k, x, z, false).at)
}

// sparseBounds is kernelBounds for sparse points, which are not shifted: r is their largest norm. A backend may
// compute a statistic s(x, z), ‖x−z‖₁ or χ², as s(x, 0) + s(0, z) plus corrections for the columns that both rows
// store. The error is then at most 4γ_{d+6}(s(x, 0) + s(0, z)).
func sparseBounds[T backend.Float](k kernels.Kernel, x, z host) host {
	return fromFunc(x.Rows, z.Rows, newKernelBound[T](k, x, z, true).at)
}

// kernelBound computes the bounds of kernelBounds or sparseBounds pair by pair.
type kernelBound[T backend.Float] struct {
	program   *kernels.Program
	x, z      host
	radius2   []float64 // r² (see kernelBounds) for each statistic
	radius    []float64 // bound on |x−center| over all points for each feature
	selfBound []kernelBound[T]
	sparse    bool
}

func newKernelBound[T backend.Float](k kernels.Kernel, x, z host, sparse bool) kernelBound[T] {
	b := kernelBound[T]{program: kernels.Compile(k), x: x, z: z, sparse: sparse}
	b.radius2 = make([]float64, len(b.program.Stats))
	b.radius = make([]float64, x.Cols)
	b.selfBound = make([]kernelBound[T], len(b.program.Stats))
	for _, h := range []host{x, z} {
		for i := range h.Rows {
			for p, v := range h.Row(i) {
				b.radius[p] = max(b.radius[p], 2*math.Abs(v-x.Row(0)[p]))
			}
		}
	}
	for s, stat := range b.program.Stats {
		switch stat.Kind {
		case kernels.SelfX, kernels.RootX:
			b.selfBound[s] = newKernelBound[T](stat.Of, x, x, sparse)
		case kernels.SelfZ, kernels.RootZ:
			b.selfBound[s] = newKernelBound[T](stat.Of, z, z, sparse)
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
	tested, oracle := make([]kerneltest.Approx, len(b.radius2)), make([]kerneltest.Approx, len(b.radius2))
	for s := range b.program.Stats {
		tested[s], oracle[s] = b.statistic(s, i, j)
	}
	o := kerneltest.Propagate(b.program, oracle, unit[float64]())
	return 2*kerneltest.Propagate(b.program, tested, unit[T]()).Error + o.Error + unit[T]()*math.Abs(o.Value) + smallest[T]()
}

// statistic returns the value of statistic s for x_i and z_j, with the error bounds of the backend and of the oracle.
func (b kernelBound[T]) statistic(s, i, j int) (tested, oracle kerneltest.Approx) {
	d, stat := b.x.Cols, b.program.Stats[s]
	x, z := b.x.Row(i), b.z.Row(j)
	switch stat.Kind {
	case kernels.SelfX, kernels.SelfZ, kernels.RootX, kernels.RootZ:
		// The statistic is a function of a value k(x, x) or k(z, z). Propagate the error of this value.
		index := i
		if stat.Kind == kernels.SelfZ || stat.Kind == kernels.RootZ {
			index = j
		}
		tested = kerneltest.Approx{Value: stat.Eval(x, z), Error: b.selfBound[s].at(index, index)}
		if stat.Kind == kernels.RootX || stat.Kind == kernels.RootZ {
			tested = tested.InverseRoot(unit[T]())
		}
		return tested, tested
	case kernels.CosSum, kernels.SinSum, kernels.Sinc, kernels.Chi2, kernels.Entry:
		v := stat.Eval(x, z)
		if b.sparse && stat.Kind == kernels.Chi2 {
			return kerneltest.Approx{Value: v, Error: b.fromZeros(stat, v, x, z)}, kerneltest.Approx{Value: v, Error: b.featureError(stat, x, z, 0x1p-53)}
		}
		return kerneltest.Approx{Value: v, Error: b.featureError(stat, x, z, unit[T]())}, kerneltest.Approx{Value: v, Error: b.featureError(stat, x, z, 0x1p-53)}
	}
	v, size := direct(stat, x, z)
	oracle = kerneltest.Approx{Value: v, Error: gamma[float64](d+3) * size}
	tested = kerneltest.Approx{Value: v, Error: gamma[T](d+3) * size}
	if b.sparse && stat.Kind == kernels.L1 {
		tested.Error = b.fromZeros(stat, v, x, z)
	}
	if stat.Kind == kernels.SqDist {
		tested.Error = min(16*gamma[T](d+6)*b.radius2[s], 0x1p12*gamma[T](d+6)*v)
	}
	return tested, oracle
}

// fromZeros bounds the error of a statistic s(x, z) = v that is computed from s(x, 0) + s(0, z); see sparseBounds.
func (b kernelBound[T]) fromZeros(stat kernels.Stat, v float64, x, z []float64) float64 {
	zeros := make([]float64, len(x))
	return min(4*gamma[T](len(x)+6)*(stat.Eval(x, zeros)+stat.Eval(zeros, z)), 0x1p12*gamma[T](len(x)+6)*v)
}

// featureError bounds the error of a sum over the features, to first order in the unit roundoff u. Backends may
// take cosines and sines of the features without a shift: each angle is rounded three times, and each value has an
// error of kerneltest.FunctionUlps.
func (b kernelBound[T]) featureError(stat kernels.Stat, x, z []float64, u float64) float64 {
	terms := float64(2*len(x)*max(1, len(stat.Freqs))) + 4
	sum := 0.0
	for p := range x {
		diff := math.Abs(x[p] - z[p])
		switch stat.Kind {
		case kernels.CosSum:
			for _, w := range stat.Freqs {
				sum += 2*terms + 2*3*math.Abs(w)*b.radius[p] + 4*2*kerneltest.FunctionUlps
			}
		case kernels.SinSum:
			for _, w := range stat.Freqs {
				sum += math.Abs(w) * diff * (terms + 3*math.Abs(w)*diff + 2*kerneltest.FunctionUlps)
			}
		case kernels.Sinc: // |sin(2πΔ)/Δ| ≤ 2π; three roundings of the angle 2πΔ add at most 3·2π
			sum += 2 * math.Pi * (terms + 3 + 2*kerneltest.FunctionUlps)
		case kernels.Chi2:
			if x[p]+z[p] > 0 {
				sum += diff * diff / (x[p] + z[p]) * (terms + 4)
			}
		}
	}
	return sum * u
}

// direct returns the value v of a statistic by its definition, and the sum of the absolute values of its terms.
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
