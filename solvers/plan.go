package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/run"
)

// Plan says what a Solve will do and take.
type Plan struct {
	Method Method
	Reason string  // why this method, and what was chosen within it
	Bytes  int64   // peak that matrices will take on the device
	Flops  float64 // floating-point operations, counted as in backend/flops.go; of an iterative method, about

	how       method
	choice    any // of the method within itself
	sizes     *sizes
	stages    []stage
	rows      int
	bytesOf   func(n int) int64 // Bytes for another number of rows
	available int64
}

// MakePlan returns the plan of Solve(ctx, dev, p, par) without doing any work.
// It looks at the shapes and weights of p, and for a method that iterates at
// some hundred rows of X, from which the spectrum of K is estimated. On a device
// that uses Go memory as it is, X takes nothing more unless rows are left out or
// X is centered. A plan that does not fit the memory is returned as others are;
// Solve refuses it.
func MakePlan(dev backend.Device, p Problem, par Params) (Plan, error) {
	return makePlan(context.Background(), dev, p, par)
}

// makePlan is MakePlan, which ctx may end early with a plan of no use.
func makePlan(ctx context.Context, dev backend.Device, p Problem, par Params) (Plan, error) {
	if dev == nil {
		return Plan{}, errors.New("solvers: no device was given")
	}
	if err := par.check(); err != nil {
		return Plan{}, err
	}
	if err := p.checkShapes(); err != nil {
		return Plan{}, err
	}
	z := newSizes(dev, p, par)
	z.ctx = ctx
	m, e, reason, err := choose(z, par)
	if err != nil {
		return Plan{}, err
	}
	if e.note != "" {
		reason += "; " + e.note
	}
	plan := Plan{
		Method: m.name, Reason: reason, Bytes: e.bytesOf(z.n),
		how: m, choice: e.choice, sizes: z, stages: e.stages, rows: z.n, bytesOf: e.bytesOf, available: z.available,
	}
	for _, s := range e.stages {
		plan.Flops += s.flops
	}
	return plan, nil
}

func newSizes(dev backend.Device, p Problem, par Params) *sizes {
	n := p.X.Rows
	if p.Weights != nil {
		n = countPositive(p.Weights)
	}
	linear := isLinear(p.Kernel)
	z := &sizes{
		n: n, d: p.X.Cols, t: p.Y.Cols, columns: p.Y.Cols,
		kernel: p.Kernel, linear: linear,
		bordered: p.Intercept && !linear, centered: p.Intercept && linear, weighted: p.Weights != nil,
		p: p, dev: dev,
	}
	if z.bordered {
		z.columns++
	}
	z.wrapped = wrapper(dev) != nil && n == p.X.Rows && !z.centered
	z.available = run.Available(dev, par.Memory)
	return z
}

// elements is rows·cols, or the largest int64 where that is larger.
func elements(rows, cols int) int64 {
	hi, lo := bits.Mul64(uint64(rows), uint64(cols))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// sum is add of any number.
func sum(list ...int64) (total int64) {
	for _, v := range list {
		total = add(total, v)
	}
	return total
}

// bytes is the size of float64 elements.
func bytes(elements int64) int64 {
	if elements > math.MaxInt64/8 {
		return math.MaxInt64
	}
	return 8 * elements
}

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
