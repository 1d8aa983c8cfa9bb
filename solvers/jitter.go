package solvers

import (
	"errors"

	"github.com/mercer-go/mercer/backend"
)

// A jitter factors a matrix that is positive definite but for rounding, or nearly:
// it adds to the diagonal, and more each time that the factor fails. What was added is
// reported by whoever uses it.
type jitter struct {
	uplo  backend.Uplo
	added float64 // to the diagonal: at first, and in the end
	times float64 // more at every further try, and no less than least
	least float64
	tries int // at most; 0: until added has reached limit
	limit float64

	failed func(p *backend.PivotError) // nil, or called before another try
}

// newJitter begins with added and ends at the trace of the matrix, whose rounding is unit.
func newJitter(added, trace, unit float64) *jitter {
	return &jitter{added: added, times: 100, least: unit * trace, limit: trace}
}

// factor replaces a, as fill makes it, by its Cholesky factor. A failure that is not of
// rounding, a pivot that is not finite, ends it at once; the last failure is its error.
func factor[T backend.Float](j *jitter, b backend.Backend[T], a backend.Matrix[T], fill func() error) error {
	for try := 1; ; try++ {
		if err := fill(); err != nil {
			return err
		}
		b.AddDiag([]T{T(j.added)}, a)
		err := b.Potrf(j.uplo, a)
		var pivot *backend.PivotError
		if err == nil || !errors.As(err, &pivot) || overflowed(pivot) || try == j.tries || j.tries == 0 && !(j.added < j.limit) {
			return err
		}
		if j.failed != nil {
			j.failed(pivot)
		}
		next := max(j.times*j.added, j.least)
		if !(next > j.added) { // both are 0: the rounding of the trace underflows
			return err
		}
		j.added = next
	}
}

// overflowed reports whether a pivot is NaN or Inf.
func overflowed(p *backend.PivotError) bool { return p.Value-p.Value != 0 }

// traceOf sums a diagonal.
func traceOf(diagonal []float64) float64 {
	s := 0.0
	for _, v := range diagonal {
		s += v
	}
	return s
}
