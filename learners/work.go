package learners

import (
	"context"
	"math"
	"sort"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/planned"
	"github.com/mercer-go/mercer/solvers"
)

// budget reports the plan, or returns a *solvers.BudgetError when the learner's matrices take more
// than o.Memory or than the device has free. bytes is what it takes for a number
// of rows, and never falls as rows are added.
func budget(ctx context.Context, dev backend.Device, o Options, learner string, rows int, bytes func(rows int) int64) error {
	now, _ := dev.InUse()
	available := available(dev, o)
	needed := bytes(rows)
	if needed <= available {
		planned.Report(ctx, now+needed)
		return nil
	}
	largest := sort.Search(rows, func(n int) bool { return bytes(n+1) > available })
	return &solvers.BudgetError{Method: solvers.Method(learner), Rows: rows, Needed: needed, Available: available, Largest: largest}
}

// available is what a fit may take.
func available(dev backend.Device, o Options) int64 {
	now, _ := dev.InUse()
	free := max(dev.Info().Memory-now, 0)
	if o.Memory > 0 {
		free = min(free, o.Memory)
	}
	return free
}

// meter reports progress that never falls and ends with 1.
type meter struct {
	report func(solvers.Progress)
	told   float64
}

func newMeter(o Options) *meter { return &meter{report: o.Progress} }

// tell reports a fraction of the whole.
func (m *meter) tell(stage string, fraction float64) {
	m.told = max(m.told, min(fraction, 1))
	if m.report != nil && !math.IsNaN(fraction) {
		m.report(solvers.Progress{Stage: stage, Fraction: m.told})
	}
}
