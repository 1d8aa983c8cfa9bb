package numeric

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
)

// PrecisionOf is the name of T.
func PrecisionOf[T backend.Float]() string {
	var zero T
	return fmt.Sprintf("%T", zero)
}

// Epsilon is the distance from 1 to the next float64.
const Epsilon = 0x1p-52

// EpsilonSingle is the same for float32.
const EpsilonSingle = 0x1p-23

// UnitOf is that of T.
func UnitOf[T backend.Float]() float64 {
	if PrecisionOf[T]() == "float32" {
		return EpsilonSingle
	}
	return Epsilon
}

// Norm returns the 2-norm of v(0), …, v(n−1), scaled so that squares neither
// overflow nor vanish.
func Norm(n int, v func(i int) float64) float64 {
	largest := 0.0
	for i := range n {
		largest = Larger(largest, math.Abs(v(i)))
	}
	if !(largest > 0) || math.IsInf(largest, 1) {
		return largest // 0, Inf or NaN
	}
	sum := 0.0
	for i := range n {
		q := v(i) / largest
		sum += q * q
	}
	return largest * math.Sqrt(sum)
}

// SumRounding bounds the rounding of a sum of n products relative to the product of the norms
// of their factors: |fl(xᵀy) − xᵀy| ≤ γ_n |x|ᵀ|y| ≤ γ_n ‖x‖‖y‖ with γ_n = nu/(1 − nu), u = 2⁻⁵³
// (Higham 2002, Accuracy and Stability of Numerical Algorithms, § 3.1), and 10√n u in the place
// of γ_n with a probability that leaves no room for chance (Higham and Mary 2019).
func SumRounding(n int) float64 { return 10 * math.Sqrt(float64(n)) * 0x1p-53 }

// ScaleOf returns the number by which a residual is divided to be relative to a right-hand
// side: its norm, or more where rounding dominates the right-hand side.
//
// ΦᵀWy is a sum of terms, terms bounds the norm of the sums of their absolute values, and the
// rounding of ΦᵀWy, and of a residual, is unit·terms. Where y is orthogonal to every column of
// Φ, the terms cancel, and a residual of tol‖ΦᵀWy‖ would be smaller than its own rounding. So
// where ‖ΦᵀWy‖ is below a thousandth of terms, a residual of unit·terms gives at most tol, or
// ε for a smaller tol. Numbers below 2⁻¹⁰²² have no relative precision at all.
func ScaleOf(norm, terms, unit, tol float64) float64 {
	if norm < terms/1000 {
		norm = max(norm, unit*terms/max(tol, Epsilon))
	}
	return Larger(0x1p-1022, norm)
}

// RelativeResidual returns ‖r‖/‖z‖ for a residual of norm r of normal equations with the
// right-hand side z, and 0 for r = 0. terms bounds the norm of the sums of the absolute values of
// the terms of z, unit·terms the rounding of z and of the residual. Where z is below a
// thousandth of terms, a residual of unit·terms gives at most tol.
func RelativeResidual(r, z, terms, unit, tol float64) float64 {
	return Ratio(r, ScaleOf(z, terms, unit, tol))
}

// Ratio is a/b with 0/0 = 0, as a relative residual of a zero right-hand side.
func Ratio(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return a / b
}

// Larger is the maximum; NaN wins.
func Larger(a, b float64) float64 {
	if a > b || math.IsNaN(a) {
		return a
	}
	return b
}
