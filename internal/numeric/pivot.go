package numeric

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/kernels"
)

// A pivot of a Cholesky factorization that should be 0 is computed as a rounding error of either
// sign. Potrf refuses the negative ones; this file also refuses the positive ones, so that a
// singular system never gives numbers without a correct digit.

// PivotTol is the fraction of a diagonal element of a matrix below which the pivot of its
// Cholesky factor is only a rounding error. A pivot is the remainder of that element after
// subtracting a sum with the given number of terms, whose rounding error grows with the square
// root of that number. The factor 8 is a margin.
func PivotTol(terms float64) float64 { return 8 * Epsilon * math.Sqrt(terms) }

// RoundedPivot is CheckPivots with PivotTol, for the diagonals of a factor and of its matrix.
func RoundedPivot(after, before []float64) error {
	tol := PivotTol(float64(len(before)))
	return CheckPivots(after, func(i int) float64 { return tol * before[i] })
}

// CheckPivots returns a *backend.PivotError for the first pivot of a factor, given the factor's
// diagonal, that does not exceed the rounding error of its row, smallest.
func CheckPivots(after []float64, smallest func(i int) float64) error {
	for i, v := range after {
		if !(v*v > smallest(i)) { // also true for NaN
			return &backend.PivotError{Index: i, Value: v * v}
		}
	}
	return nil
}

// explained is a PivotError with a description in the terms of the problem, which replaces its
// own text.
type explained struct {
	error
	pivot *backend.PivotError
}

func (e *explained) Unwrap() []error { return []error{e.error, e.pivot} }

// ExplainPivot returns an error about a failed factorization in the terms of the problem; it
// wraps pivot.
func ExplainPivot(pivot *backend.PivotError, format string, args ...any) error {
	return &explained{message.Errorf(format, args...), pivot}
}

// Indefinite reports whether a pivot is too negative for a rounding error of a positive
// semidefinite matrix with diagonal elements up to largest. A larger λ does not help then,
// because K itself is indefinite.
func Indefinite(pivot, largest float64) bool { return pivot < -math.Sqrt(Epsilon)*largest }

// IndefiniteAdvice returns the advice about an indefinite K of the kernel k; nil stands for a
// given matrix.
func IndefiniteAdvice(k kernels.Kernel) string {
	switch {
	case k == nil:
		return "K has a negative eigenvalue: give a positive semidefinite matrix"
	case k.IsPSD():
		return fmt.Sprintf("the values of the kernel %v have lost their digits: scale the features down", k)
	}
	return fmt.Sprintf("the kernel %v is not positive definite on these samples: take one that is", k)
}
