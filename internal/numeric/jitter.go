package numeric

import (
	"errors"

	"github.com/mercer-go/mercer/backend"
)

// A Jitter factors a matrix that is positive definite but for rounding, or nearly:
// it adds to the diagonal, and more each time that the factor fails. What was added is
// reported by whoever uses it.
type Jitter struct {
	Uplo  backend.Uplo
	Added float64 // to the diagonal: at first, and in the end
	Times float64 // more at every further try, and no less than least
	Least float64
	Tries int // at most; 0: until added has reached limit
	Limit float64

	Failed func(p *backend.PivotError) // nil, or called before another try
}

// NewJitter begins with added and ends at the trace of the matrix, whose rounding is unit.
func NewJitter(added, trace, unit float64) *Jitter {
	return &Jitter{Added: added, Times: 100, Least: unit * trace, Limit: trace}
}

// FactorJittered replaces a, as fill makes it, by its Cholesky factor. A failure that is not of
// rounding, a pivot that is not finite, ends it at once; the last failure is its error.
func FactorJittered[T backend.Float](j *Jitter, b backend.Backend[T], a backend.Matrix[T], fill func() error) error {
	for try := 1; ; try++ {
		if err := fill(); err != nil {
			return err
		}
		b.AddDiag([]T{T(j.Added)}, a)
		err := b.Potrf(j.Uplo, a)
		var pivot *backend.PivotError
		if err == nil || !errors.As(err, &pivot) || Overflowed(pivot) || try == j.Tries || j.Tries == 0 && !(j.Added < j.Limit) {
			return err
		}
		if j.Failed != nil {
			j.Failed(pivot)
		}
		next := max(j.Times*j.Added, j.Least)
		if !(next > j.Added) { // both are 0: the rounding of the trace underflows
			return err
		}
		j.Added = next
	}
}

// Overflowed reports whether a pivot is NaN or Inf.
func Overflowed(p *backend.PivotError) bool { return p.Value-p.Value != 0 }
