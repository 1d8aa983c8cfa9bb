package handles

import (
	"context"
	"errors"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/solvers"
)

// Status is the kind of an error, for C programs.
type Status int

// The kinds of errors; mercer.h documents them.
const (
	OK Status = iota
	Invalid
	Canceled
	Memory
	NotPositiveDefinite
	NotConverged
	Unavailable
	Panic
)

// ErrCanceled is the cause of contexts that the caller canceled.
var ErrCanceled = errors.New("canceled by the caller")

// StatusOf returns the kind of an error. Errors that match no other kind concern the arguments or the data.
func StatusOf(err error) Status {
	var budget *solvers.BudgetError
	var convergence *solvers.ConvergenceError
	switch {
	case err == nil:
		return OK
	case errors.Is(err, ErrCanceled), errors.Is(err, context.Canceled):
		return Canceled
	case errors.As(err, &budget), errors.Is(err, backend.ErrMemory):
		return Memory
	case errors.Is(err, backend.ErrNotPosDef):
		return NotPositiveDefinite
	case errors.As(err, &convergence):
		return NotConverged
	case errors.Is(err, backend.ErrUnavailable):
		return Unavailable
	}
	return Invalid
}
