package attempt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/attempt"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestFirst checks that the candidates are tried in order, and that an error that is not refused ends the attempts.
func TestFirst(t *testing.T) {
	singular := fmt.Errorf("solve: %w", &backend.PivotError{Index: 2})
	notConverged := fmt.Errorf("solve: %w", &solvers.ConvergenceError{Result: &solvers.Result{Solution: solvers.Solution{Residual: 1.8e-7}}, Tol: 1e-8})
	overflow := kernels.Overflow(errors.New("values overflow"))
	invalid := errors.New("y: row 3 is NaN")
	for name, c := range map[string]struct {
		results []error
		fitted  []int // the expected numbers of the candidates that are fitted, in order
		warning string
		err     string
		wantErr error
	}{
		"the best one":   {[]error{nil, invalid}, []int{0}, "", "", nil},
		"the second one": {[]error{singular, nil, invalid}, []int{0, 1}, "the best point of the search, #0, was refused, because its matrix is not positive definite to working precision; the model is that of the second best point, #1", "", nil},
		"a later one":    {[]error{notConverged, singular, overflow, nil}, []int{0, 1, 2, 3}, "the best point of the search, #0, was refused, because its relative residual 1.8e-07 exceeds the tolerance 1e-08; the model is that of the best point that can be fitted, #3; 3 points were refused", "", nil},
		"overflow":       {[]error{overflow, nil}, []int{0, 1}, "the best point of the search, #0, was refused, because values overflow; the model is that of the second best point, #1", "", nil},
		"none":           {[]error{singular, notConverged}, []int{0, 1}, "", "no fit succeeds at any of the 2 points of the search; the error at the first of them: " + singular.Error(), backend.ErrNotPosDef},
		"the only one":   {[]error{singular}, []int{0}, "", singular.Error(), backend.ErrNotPosDef},
		"wrong input":    {[]error{invalid, nil}, []int{0}, "", invalid.Error(), invalid},
		"canceled":       {[]error{singular, context.Canceled, nil}, []int{0, 1}, "", context.Canceled.Error(), context.Canceled},
		"deadline":       {[]error{context.DeadlineExceeded, nil}, []int{0}, "", context.DeadlineExceeded.Error(), context.DeadlineExceeded},
		"no memory":      {[]error{backend.ErrMemory, nil}, []int{0}, "", backend.ErrMemory.Error(), backend.ErrMemory},
	} {
		var fitted []int
		index, warning, err := attempt.Candidates{
			Len:     len(c.results),
			Name:    func(i int) string { return fmt.Sprintf("#%d", i) },
			Fit:     func(i int) error { fitted = append(fitted, i); return c.results[i] },
			Refused: attempt.Numeric,
		}.First()
		if !slices.Equal(fitted, c.fitted) {
			t.Errorf("%s: fitted %v, want %v", name, fitted, c.fitted)
		}
		if warning != c.warning {
			t.Errorf("%s: warning %q, want %q", name, warning, c.warning)
		}
		if c.err == "" && (err != nil || index != fitted[len(fitted)-1]) || c.err != "" && (err == nil || err.Error() != c.err || !errors.Is(err, c.wantErr)) {
			t.Errorf("%s: candidate %d, error %v", name, index, err)
		}
	}
}
