package numeric

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/kernels"
)

// A pivot of a Cholesky factorization that should be 0 comes out as rounding of
// either sign. Potrf refuses one half of them; this file refuses the other
// half too, so that a singular system never gives numbers without a right digit.

// PivotTol is the part of a diagonal element of a matrix below which the pivot of its
// Cholesky factor is nothing but rounding. A pivot is what is left of that element after a
// sum of so many terms, and the rounding of such a sum grows as the root of its length. 8
// is a margin.
func PivotTol(terms float64) float64 { return 8 * Epsilon * math.Sqrt(terms) }

// RoundedPivot is CheckPivots with PivotTol, for the diagonals of a factor and of its matrix.
func RoundedPivot(after, before []float64) error {
	tol := PivotTol(float64(len(before)))
	return CheckPivots(after, func(i int) float64 { return tol * before[i] })
}

// CheckPivots returns a *backend.PivotError for the first pivot of a factor, given its
// diagonal, that is not above the smallest one of its row that is more than rounding.
func CheckPivots(after []float64, smallest func(i int) float64) error {
	for i, v := range after {
		if !(v*v > smallest(i)) { // or NaN
			return &backend.PivotError{Index: i, Value: v * v}
		}
	}
	return nil
}

// explained is a PivotError in the words of the problem. Its own text, which
// counts from 0 and knows no samples, is left out.
type explained struct {
	error
	pivot *backend.PivotError
}

func (e *explained) Unwrap() []error { return []error{e.error, e.pivot} }

// ExplainPivot is the error of a failed factor in the words of the problem; it wraps pivot.
func ExplainPivot(pivot *backend.PivotError, format string, args ...any) error {
	return &explained{message.Errorf(format, args...), pivot}
}

// Indefinite reports whether a pivot is further below 0 than rounding of a positive
// semidefinite matrix with diagonal elements up to largest takes it. A larger λ is then
// no help: K itself is not what it should be.
func Indefinite(pivot, largest float64) bool { return pivot < -math.Sqrt(Epsilon)*largest }

// IndefiniteAdvice says what to do about an indefinite K of the kernel k; nil is a matrix.
func IndefiniteAdvice(k kernels.Kernel) string {
	switch {
	case k == nil:
		return "K has a negative eigenvalue: give a positive semidefinite matrix"
	case k.IsPSD():
		return fmt.Sprintf("the values of the kernel %v have lost their digits: scale the features down", k)
	}
	return fmt.Sprintf("the kernel %v is not positive definite on these samples: take one that is", k)
}
