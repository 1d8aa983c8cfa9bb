package stream

import (
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/krylov"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// A Preconditioner is an approximate inverse of H.
type Preconditioner struct {
	krylov.Preconditioner[float64]
	Jitter float64  // number that was added to the diagonal to factor the matrix
	Notes  []string // remarks for the user

	exact bool        // whether the preconditioner is the inverse of H up to rounding errors
	sums  *storedSums // H and its factor; nil if H is not stored
}

// Timed runs a stage of the work, "gram" or "factor".
type Timed func(stage string, body func() error) error

// Normal sums H in the lower triangle of a matrix and factors it, with the diagonal increased by at most the rounding
// error of H, because H may be singular to working precision. If the factorization still fails, Normal sums H again and
// increases the diagonal by more. The factor overwrites the lower triangle; a copy of H remains above the diagonal.
func (w *Equations) Normal(timed Timed) (*Preconditioner, error) {
	a, err := w.mem.New(w.m, w.m)
	if err != nil {
		return nil, err
	}
	sums := &storedSums{a: a}
	pre := &Preconditioner{Preconditioner: Factored{w.b, a}, exact: true, sums: sums}
	const maxAttempts = 3
	jitter := 4 * numeric.Epsilon // increase of the diagonal, relative to the trace
	for attempt := 1; ; attempt++ {
		err := timed("gram", func() error {
			w.basis.Penalty(a, w.Lambda)
			return w.firstPass(a, nil)
		})
		if err != nil {
			return nil, err
		}
		err = timed("factor", func() error {
			var err error
			if sums.diag, err = numeric.Diagonal(w.b, a); err != nil {
				return err
			}
			if err := numeric.Mirror(w.b, a); err != nil {
				return err
			}
			pre.Jitter = jitter * numeric.Trace(sums.diag)
			w.b.AddDiag([]float64{pre.Jitter}, a)
			if err := w.b.Potrf(backend.Lower, a); err != nil {
				return err
			}
			sums.factorDiag, err = numeric.Diagonal(w.b, a)
			return err
		})
		var pivot *backend.PivotError
		switch {
		case err == nil:
			return pre, nil
		case !errors.As(err, &pivot):
			return nil, err
		case numeric.Overflowed(pivot):
			return nil, numeric.ExplainPivot(pivot, "the normal equations are not finite at function %d: values overflow: scale the features and targets down", pivot.Index+1)
		case attempt == maxAttempts && notPSD(w.basis) != nil: // the kernel may give λS negative eigenvalues
			return nil, numeric.ExplainPivot(pivot, "the normal equations are not positive definite at function %d (pivot %.3g): %s", pivot.Index+1, pivot.Value, numeric.IndefiniteAdvice(notPSD(w.basis)))
		case attempt == maxAttempts:
			return nil, numeric.ExplainPivot(pivot, "the normal equations are not positive definite at function %d (pivot %.3g): {raise $lambda|use fewer $centers}", pivot.Index+1, pivot.Value)
		}
		pre.Notes = append(pre.Notes, fmt.Sprintf("the Cholesky factorization failed at function %d with %.3g added to the diagonal; the samples were read again", pivot.Index+1, pre.Jitter))
		jitter *= 1000
	}
}

// notPSD returns the kernel of a basis, or nil if the kernel is positive semidefinite by construction.
func notPSD(phi Basis) kernels.Kernel {
	if c, ok := phi.(*Centers); ok && !c.Kernel.IsPSD() {
		return c.Kernel
	}
	return nil
}

// Constant returns the indices of the targets that are constant up to rounding.
func (w *Equations) Constant() []int { return w.feed.constant() }
