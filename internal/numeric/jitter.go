package numeric

import (
	"errors"

	"github.com/mercer-go/mercer/backend"
)

// A Jitter increases the diagonal of a matrix that is positive definite up to rounding errors. Each failure of the
// factorization makes the increase larger. The caller must report the increase.
type Jitter struct {
	Uplo        backend.Uplo
	Added       float64 // increase of the diagonal in the last attempt
	Growth      float64 // factor by which Added grows for each further attempt, to at least MinAdded
	MinAdded    float64
	MaxAttempts int // maximum number of attempts; 0 means until Added has reached Limit
	Limit       float64

	Failed func(p *backend.PivotError) // called before each further attempt; may be nil
}

// NewJitter returns a Jitter that adds `added` to the diagonal at first, and at most about the trace. The argument
// unit is the relative rounding error of the trace.
func NewJitter(added, trace, unit float64) *Jitter {
	return &Jitter{Added: added, Growth: 100, MinAdded: unit * trace, Limit: trace}
}

// FactorJittered calls fill to set a, and overwrites a with its Cholesky factor. A pivot that is not finite ends
// the attempts. The function returns the error of the last attempt.
func FactorJittered[T backend.Float](j *Jitter, b backend.Backend[T], a backend.Matrix[T], fill func() error) error {
	for attempt := 1; ; attempt++ {
		if err := fill(); err != nil {
			return err
		}
		b.AddDiag([]T{T(j.Added)}, a)
		err := b.Potrf(j.Uplo, a)
		var pivot *backend.PivotError
		if err == nil || !errors.As(err, &pivot) || Overflowed(pivot) || attempt == j.MaxAttempts || j.MaxAttempts == 0 && !(j.Added < j.Limit) {
			return err
		}
		if j.Failed != nil {
			j.Failed(pivot)
		}
		next := max(j.Growth*j.Added, j.MinAdded)
		if !(next > j.Added) { // the rounding error of the trace may underflow, so that next and Added are 0
			return err
		}
		j.Added = next
	}
}

// Overflowed reports whether a pivot is NaN or Inf.
func Overflowed(p *backend.PivotError) bool { return p.Value-p.Value != 0 }
