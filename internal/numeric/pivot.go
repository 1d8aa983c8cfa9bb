package numeric

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/kernels"
)

// A pivot of a Cholesky factorization that is 0 in exact arithmetic is computed as a rounding error of either
// sign. Potrf returns an error if it is negative, and the functions below if it is positive.

// PivotTol is the fraction of a diagonal element of a matrix below which a pivot of its Cholesky factorization is
// a rounding error. It grows with the square root of the number of terms of the pivot.
func PivotTol(terms float64) float64 { return 8 * Epsilon * math.Sqrt(terms) }

// RoundedPivot calls CheckPivots with the bounds of PivotTol. The slice factorDiag is the diagonal of a factor, and
// matrixDiag is the diagonal of the factored matrix.
func RoundedPivot(factorDiag, matrixDiag []float64) error {
	tol := PivotTol(float64(len(matrixDiag)))
	return CheckPivots(factorDiag, func(i int) float64 { return tol * matrixDiag[i] })
}

// CheckPivots returns a *backend.PivotError for the first pivot that does not exceed smallest(i),
// the rounding error of pivot i. factorDiag is the diagonal of the factor.
func CheckPivots(factorDiag []float64, smallest func(i int) float64) error {
	for i, v := range factorDiag {
		if !(v*v > smallest(i)) { // the condition is also true for NaN
			return &backend.PivotError{Index: i, Value: v * v}
		}
	}
	return nil
}

// explained is a PivotError whose text is replaced by a description in terms of the problem.
type explained struct {
	error
	pivot *backend.PivotError
}

func (e *explained) Unwrap() []error { return []error{e.error, e.pivot} }

// ExplainPivot returns an error that wraps pivot and describes a failed factorization for the user.
func ExplainPivot(pivot *backend.PivotError, format string, args ...any) error {
	return &explained{message.Errorf(format, args...), pivot}
}

// Indefinite reports whether a pivot is more negative than any rounding error of a positive semidefinite matrix
// with diagonal elements up to largest. A larger λ does not help then.
func Indefinite(pivot, largest float64) bool { return pivot < -math.Sqrt(Epsilon)*largest }

// IndefiniteAdvice returns the advice in an error about an indefinite Gram matrix of k, or a given matrix if k is nil.
func IndefiniteAdvice(k kernels.Kernel) string {
	switch {
	case k == nil:
		return "K has a negative eigenvalue: give a positive semidefinite matrix"
	case k.IsPSD():
		return fmt.Sprintf("the values of the kernel %v consist of rounding errors: scale the features down", k)
	}
	return fmt.Sprintf("the kernel %v is not positive definite on these samples: use a positive definite kernel", k)
}
