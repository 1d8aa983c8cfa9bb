package learners

import (
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/solvers"
)

// newProgress reports to o.Progress fractions that the caller knows.
func newProgress(o Options) *run.Progress {
	var notify func(stage string, fraction float64)
	if o.Progress != nil {
		notify = func(stage string, fraction float64) { o.Progress(solvers.Progress{Stage: stage, Fraction: fraction}) }
	}
	return run.NewProgress(notify, nil, 1)
}
