// Package attempt fits the candidates of a search in order, starting with the best, until a fit succeeds.
package attempt

import (
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// Candidates are the points that a search has found, numbered from 0, the best first.
type Candidates struct {
	Len int
	// Name describes a candidate in a warning, such as "kernel gaussian(sigma=2), lambda 0.1".
	Name func(i int) string
	// Fit fits a candidate.
	Fit func(i int) error
	// Refused reports whether an error of Fit is specific to the candidate, so that First tries the
	// next candidate. Any other error ends the attempts.
	Refused func(err error) bool
}

// First fits the candidates in order until a fit succeeds, and returns the number of this
// candidate. If the number is not 0, warning contains the error of candidate 0 and the name of the
// fitted candidate. If no candidate can be fitted, err wraps the error of candidate 0.
func (c Candidates) First() (index int, warning string, err error) {
	var first error
	for i := range c.Len {
		err := c.Fit(i)
		switch {
		case err == nil && i == 0:
			return 0, "", nil
		case err == nil:
			return i, c.warning(i, first), nil
		case !c.Refused(err):
			return 0, "", err
		case i == 0:
			first = err
		}
	}
	if c.Len > 1 {
		first = fmt.Errorf("no fit succeeds at any of the %s of the search; the error at the first of them: %w", count.Of(c.Len, "point"), first)
	}
	return 0, "", first
}

func (c Candidates) warning(index int, err error) string {
	reason := err.Error()
	if e := (*solvers.ConvergenceError)(nil); errors.As(err, &e) {
		reason = fmt.Sprintf("its relative residual %.2g exceeds the tolerance %.2g", e.Result.Residual, e.Tol)
	} else if errors.Is(err, backend.ErrNotPosDef) {
		reason = "its matrix is not positive definite to working precision"
	}
	chosen, suffix := "the second best point", ""
	if index > 1 {
		chosen, suffix = "the best point that can be fitted", fmt.Sprintf("; %s were refused", count.Of(index, "point"))
	}
	return fmt.Sprintf("the best point of the search, %s, was refused, because %s; the model is that of %s, %s%s", c.Name(0), reason, chosen, c.Name(index), suffix)
}

// Numeric reports whether err is a numerical failure, which only some kernels and some λ cause for valid samples:
// the matrix is not positive definite, the residual is too large, or values overflow.
func Numeric(err error) bool {
	return errors.Is(err, backend.ErrNotPosDef) || errors.As(err, new(*solvers.ConvergenceError)) || errors.Is(err, kernels.ErrOverflow)
}
