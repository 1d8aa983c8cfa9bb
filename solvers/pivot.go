package solvers

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
)

// A pivot of a Cholesky factorization that should be 0 comes out as rounding of
// either sign. Potrf refuses one half of them; this file refuses the other
// half too, so that a singular system never gives numbers without a right
// digit, and says what to do.

// pivotTol is the part of a diagonal element of A below which a pivot is
// nothing but rounding. A pivot is what is left of that element after a sum of
// as many terms as A has rows (and, in primal, was itself a sum over the
// samples); the rounding of such a sum grows as the root of its length. 8 is a
// margin.
func (w *work) pivotTol() float64 {
	terms := float64(w.s.n)
	if w.plan.Method == Primal {
		terms += float64(w.s.d)
	}
	return numeric.PivotTol(terms)
}

// checkPivots returns a *backend.PivotError for the first pivot of a factor
// that is rounding only; after is the factor's diagonal, before the matrix's.
func (w *work) checkPivots(after, before []float64) error {
	tol := w.pivotTol()
	return numeric.CheckPivots(after, func(i int) float64 {
		if w.plan.Method == Primal {
			return max(tol*before[i], w.s.roundingOfColumn(i))
		}
		return tol * before[i]
	})
}

// roundingOfColumn is what the squares of column j of X may sum to although the
// column stands for a constant: numbers near the mean differ by ε times it. 4 is
// a margin.
func (s *samples) roundingOfColumn(j int) float64 {
	if s.meanX == nil {
		return 0
	}
	sum := 0.0
	for i := range s.n {
		sum += s.weightOf(i)
	}
	e := 4 * numeric.Epsilon * s.meanX[0][j]
	return sum * e * e
}

// enough is a λ that lifts every pivot above rounding.
func (w *work) enough(before []float64) float64 {
	largest := 0.0
	for _, v := range before {
		largest = max(largest, v)
	}
	return w.s.Lambda + w.pivotTol()*largest
}

// dualPivot explains a failed factorization of K + λW⁻¹.
func (w *work) dualPivot(err error, before []float64) error {
	var pivot *backend.PivotError
	if !errors.As(err, &pivot) {
		return w.fail(err)
	}
	row := w.s.row(pivot.Index) + 1
	if numeric.Overflowed(pivot) {
		return numeric.ExplainPivot(pivot, "solvers: dual: K + λI is not finite at row %d: values of the kernel %v overflow: scale the features down", row, w.s.Kernel)
	}
	if numeric.Indefinite(pivot.Value, slices.Max(before)) {
		return numeric.ExplainPivot(pivot, "solvers: dual: K + λI is not positive definite at row %d (pivot %.3g): %s", row, pivot.Value, numeric.IndefiniteAdvice(w.s.Kernel))
	}
	return numeric.ExplainPivot(pivot, "solvers: dual: K + λI is not positive definite at row %d (pivot %.3g): {raise $lambda above "+fmt.Sprintf("%.2g", w.enough(before))+"}", row, pivot.Value)
}

// primalPivot explains a failed factorization of XᵀWX + λI.
func (w *work) primalPivot(err error, before []float64) error {
	var pivot *backend.PivotError
	if !errors.As(err, &pivot) {
		return w.fail(err)
	}
	j := pivot.Index + 1
	if numeric.Overflowed(pivot) {
		return numeric.ExplainPivot(pivot, "solvers: primal: XᵀX overflows at column %d: scale the features down", j)
	}
	reason := "a combination of the columns before it"
	switch {
	case w.s.n < w.s.d:
		reason = fmt.Sprintf("one too many for %s", count.Of(w.s.n, "sample"))
	case w.s.meanX != nil && j == 1:
		reason = "constant"
	case w.s.meanX != nil:
		reason = "constant or a combination of the columns before it"
	case j == 1:
		reason = "zero"
	}
	return numeric.ExplainPivot(pivot, "solvers: primal: x does not have full rank: column %d is %s (pivot %.3g): {remove the column|raise $lambda above "+fmt.Sprintf("%.2g", w.enough(before))+"}", j, reason, pivot.Value)
}
