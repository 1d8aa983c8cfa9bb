package solvers

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/run"
)

// BudgetError says that a Solve was refused because it would take more memory
// than it may.
type BudgetError struct {
	Method            Method
	Rows              int    // the rows of the Problem that take part
	Needed, Available int64  // bytes
	Largest           int    // maximum number of rows that would fit; 0: none would
	Host              bool   // it is the host's memory that is too small, not the device's
	Advice            string // what to do, for message.Expand; "": what follows from Largest
}

func (e *BudgetError) Error() string { return e.Message(message.Plain) }

// Message is the text with a front end's names of parameters.
func (e *BudgetError) Message(name func(parameter string) string) string {
	advice := fmt.Sprintf("use at most %s or {memory}", rows(e.Largest))
	if e.Largest == 0 {
		advice = "{memory}, or use fewer features or outputs"
	}
	if e.Advice != "" {
		advice = e.Advice
	}
	need := "need"
	if e.Rows == 1 {
		need = "needs"
	}
	memory := "memory"
	if e.Host {
		memory = "the host's memory"
	}
	return fmt.Sprintf("solvers: %s: %s %s %s of %s, %s may be used: %s",
		e.Method, rows(e.Rows), need, size(e.Needed), memory, size(e.Available), message.Expand(advice, name))
}

// Reserve reports the plan of a method that takes bytes of the device for a number of
// rows, or returns a *BudgetError where that is more than limit, if it is > 0, or than
// the device has free. bytes never falls as rows are added.
func Reserve(ctx context.Context, dev backend.Device, limit int64, m Method, rows int, bytes func(rows int) int64) error {
	available, needed := run.Available(dev, limit), bytes(rows)
	if needed <= available {
		run.ReportPlan(ctx, dev, needed)
		return nil
	}
	return &BudgetError{Method: m, Rows: rows, Needed: needed, Available: available, Largest: run.Largest(rows, bytes, available)}
}

// rows writes a number of rows for people.
func rows(n int) string {
	if n == 1 {
		return "1 row"
	}
	return count.Of(n, "row")
}

// size writes a number of bytes for people.
func size(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/(1<<10), 0
	for ; v >= 1<<10 && i < 5; i++ {
		v /= 1 << 10
	}
	return fmt.Sprintf("%.4g %ciB", v, "KMGTPE"[i])
}

// fits reports the plan, or returns a *BudgetError when it takes more than it may.
func (p Plan) fits(ctx context.Context, dev backend.Device) error {
	if p.Bytes <= p.available {
		run.ReportPlan(ctx, dev, p.Bytes)
		return nil
	}
	return &BudgetError{Method: p.Method, Rows: p.rows, Needed: p.Bytes, Available: p.available, Largest: run.Largest(p.rows, p.bytesOf, p.available)}
}
