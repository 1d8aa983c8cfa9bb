package numeric

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
)

// PrecisionOf returns the name of T.
func PrecisionOf[T backend.Float]() string {
	var zero T
	return fmt.Sprintf("%T", zero)
}

// Epsilon is the distance from 1 to the next float64.
const Epsilon = 0x1p-52

// EpsilonSingle is the distance from 1 to the next float32.
const EpsilonSingle = 0x1p-23

// UnitOf returns the distance from 1 to the next number of T.
func UnitOf[T backend.Float]() float64 {
	if PrecisionOf[T]() == "float32" {
		return EpsilonSingle
	}
	return Epsilon
}

// Norm returns the 2-norm of v(0), …, v(n−1), scaled so that no square overflows or underflows.
func Norm(n int, v func(i int) float64) float64 {
	largest := 0.0
	for i := range n {
		largest = max(largest, math.Abs(v(i)))
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

// Norm2 returns ‖x‖. Like Norm, it avoids overflow and underflow.
func Norm2(x []float64) float64 { return Norm(len(x), func(i int) float64 { return x[i] }) }

// SumRounding bounds the rounding error of a sum of n products xᵀy, relative to ‖x‖‖y‖, with probability practically 1
// (Higham and Mary 2019). The result is 10√n·2⁻⁵³.
func SumRounding(n int) float64 { return 10 * math.Sqrt(float64(n)) * 0x1p-53 }

// ScaleOf returns the divisor for a relative residual: the norm of the right-hand side, or a larger number if rounding
// errors dominate this norm.
//
// Each element of the right-hand side is a sum. If every summand is replaced by its absolute value, the norm of the
// vector of these sums is at most terms, and unit·terms is the rounding error. If norm is below terms/1000, the result
// is at least unit·terms/max(tol, ε), so that no solver must reach a residual below the rounding error. The result is
// at least 2⁻¹⁰²², the smallest normal number.
func ScaleOf(norm, terms, unit, tol float64) float64 {
	if norm < terms/1000 {
		norm = max(norm, unit*terms/max(tol, Epsilon))
	}
	return max(0x1p-1022, norm)
}

// Ratio returns a/b, and 0 for 0/0, which is the relative residual of a zero right-hand side.
func Ratio(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return a / b
}
