package solvers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/lowrank"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/kernels"
)

// Plan describes a Solve before it starts: the method, its memory and its number of operations.
type Plan struct {
	Method Method
	Reason string  // why this method was chosen, and its settings
	Bytes  int64   // planned peak memory of matrices on the device
	Flops  float64 // floating-point operations, counted as in internal/flop; an estimate for an iterative method

	settings   solution
	sizes      *sizes
	samples    stream.Stored // the stored samples, if the method reads the samples in passes
	stages     []stage
	rows       int
	bytesOf    func(n int) int64 // Bytes for n rows
	available  int64             // bytes of memory that the method may use: see run.Allowed
	iterations int               // estimated number of iterations of an iterative method
	step       float64           // estimated cost of one iteration
	otherCost  float64           // estimated cost of the cheapest other method that fits in memory, or 0
}

// public returns p without the unexported fields, so that a Result does not keep the samples in memory.
func (p Plan) public() Plan {
	return Plan{Method: p.Method, Reason: p.Reason, Bytes: p.Bytes, Flops: p.Flops}
}

// MakePlan returns the plan of Solve(ctx, dev, p, par) without doing the work, from the shapes and weights of p.
// For an iterative method, it also estimates the spectrum of K from some hundred rows of X. A plan may exceed the
// memory; Solve then returns an error.
func MakePlan(dev backend.Device, p Problem, par Params) (Plan, error) {
	return makePlan(context.Background(), dev, p, par)
}

// makePlan is MakePlan with a context. If ctx is canceled, the returned plan must not be used.
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
	m, e, reason, otherCost, err := choose(z, par)
	if err != nil {
		return Plan{}, err
	}
	if e.note != "" {
		reason += "; " + e.note
	}
	plan := Plan{
		Method: m.name, Reason: reason, Bytes: e.bytesOf(z.n),
		settings: e.settings, sizes: z, stages: e.stages, rows: z.n, bytesOf: e.bytesOf, available: z.available, iterations: e.iterations, step: e.step, otherCost: otherCost,
	}
	for _, s := range e.stages {
		plan.Flops += s.flops
	}
	return plan, nil
}

func newSizes(dev backend.Device, p Problem, par Params) *sizes {
	x := p.points()
	n := x.Rows
	if p.Weights != nil {
		n = countPositive(p.Weights)
	}
	linear := p.linear()
	z := &sizes{
		n: n, d: x.Cols, width: p.width(), t: p.Y.Cols, columns: p.Y.Cols,
		kernel: p.Kernel, linear: linear,
		bordered: p.Intercept && !linear, centered: p.Intercept && linear, weighted: p.Weights != nil,
		p: p, dev: dev,
	}
	if z.bordered {
		z.columns++
	}
	z.wrapped = numeric.Wrapper(dev) != nil && n == x.Rows && !z.centered
	z.available = run.Allowed(dev, par.Memory)
	return z
}

// BudgetError reports that a Solve did not start because it would take more memory than allowed.
type BudgetError struct {
	Method            Method
	Rows              int    // number of rows of the Problem that have a weight > 0
	Needed, Available int64  // in bytes
	Largest           int    // maximum number of rows that fit; 0 if no row fits
	Host              bool   // whether the memory of the host rather than of the device is too small
	Advice            string // advice in the form of message.Expand; "" means advice based on Largest
}

func (e *BudgetError) Error() string { return e.Message(message.Plain) }

// Message returns the text of the error. name maps the parameters of this package to the names of a front end.
func (e *BudgetError) Message(name func(parameter string) string) string {
	advice := fmt.Sprintf("{use at most %s|$memory}", rows(e.Largest))
	if e.Largest == 0 {
		advice = "{$memory|use fewer features or outputs}"
	}
	if e.Advice != "" {
		advice = e.Advice
	}
	verb := "need"
	if e.Rows == 1 {
		verb = "needs"
	}
	memory := "memory"
	if e.Host {
		memory = "the host's memory"
	}
	return fmt.Sprintf("solvers: %s: %s %s %s of %s, but only %s may be used: %s",
		e.Method, rows(e.Rows), verb, size(e.Needed), memory, size(e.Available), message.Expand(advice, name))
}

// Reserve checks the memory of a method that takes bytes(n) of device memory for n rows; bytes must not decrease
// with n. It returns a *BudgetError if bytes(rows) exceeds the free memory of the device or a limit > 0, and
// otherwise reports the bytes as planned.
func Reserve(ctx context.Context, dev backend.Device, limit int64, m Method, rows int, bytes func(rows int) int64) error {
	available, needed := run.Available(dev, limit), bytes(rows)
	if needed <= available {
		run.ReportPlan(ctx, dev, needed)
		return nil
	}
	return &BudgetError{Method: m, Rows: rows, Needed: needed, Available: available, Largest: run.Largest(rows, bytes, available)}
}

func rows(n int) string {
	if n == 1 {
		return "1 row"
	}
	return count.Of(n, "row")
}

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

// fits reports the plan, or returns a *BudgetError if it takes more memory than allowed.
func (p Plan) fits(ctx context.Context, dev backend.Device) error {
	available := min(p.available, run.Available(dev, 0))
	if p.Bytes <= available {
		run.ReportPlan(ctx, dev, p.Bytes)
		return nil
	}
	return &BudgetError{Method: p.Method, Rows: p.rows, Needed: p.Bytes, Available: available, Largest: run.Largest(p.rows, p.bytesOf, available)}
}

// soluble returns an error if the dual system is singular for every X. The error names the method m.
func (z *sizes) soluble(m Method) error {
	if z.linear && z.p.Lambda == 0 && z.p.Intercept {
		return message.Errorf("solvers: %s: K of centered samples is singular: with a linear kernel and an intercept lambda must be > 0: {raise $lambda|use $solver=primal}", m)
	}
	return nil
}

// choose returns the method, its estimate, the reason, and the estimated cost of the cheapest other method.
func choose(z *sizes, par Params) (m method, e estimate, reason string, otherCost float64, err error) {
	name := par.Method
	reason = "requested"
	if name == Auto && z.linear && z.p.Lambda == 0 && !par.NeedsAlpha {
		name, reason = Dual, "with lambda 0 and fewer samples than features the primal matrix is singular"
		if z.p.Intercept || z.n >= z.d {
			name, reason = Primal, "with lambda 0 the dual matrix is singular for all samples"
		}
	}
	if name == Auto {
		return cheapest(z, par)
	}
	if m, err = lookUp(name); err != nil {
		return m, e, "", 0, err
	}
	if par.Checkpoint.Dir != "" && !m.saves {
		return m, e, "", 0, noCheckpoint(name, Mixed, CG)
	}
	if err := par.unusedBy(name); err != nil {
		return m, e, "", 0, err
	}
	e, err = m.estimate(z, par)
	return m, e, reason, 0, err
}

// noCheckpoint is the error for a requested checkpoint if the method m writes none.
func noCheckpoint(m Method, others ...Method) error {
	return fmt.Errorf("solvers: checkpoint: the method %s writes no checkpoint: leave it out, or use %s", m, alternatives(others))
}

// unusedBy returns an error if the caller set a rank or a preconditioner and the method m does not use it.
func (par Params) unusedBy(m Method) error {
	for _, choice := range []struct {
		name  string
		isSet bool
		users []Method
	}{
		{"rank", par.Rank > 0, []Method{CG}},
		{"preconditioner", par.Preconditioner != "" && par.Preconditioner != "none", []Method{CG}},
	} {
		if choice.isSet && !slices.Contains(choice.users, m) {
			return fmt.Errorf("solvers: %s: the method %s has no %s: leave it out, or use %s", choice.name, m, choice.name, alternatives(choice.users))
		}
	}
	return nil
}

// alternatives lists methods as "a, b or c".
func alternatives(list []Method) string {
	text := string(list[0])
	for i, m := range list[1:] {
		if i == len(list)-2 {
			text += " or " + string(m)
		} else {
			text += ", " + string(m)
		}
	}
	return text
}

// operations is the unit of estimated costs in Plan.Reason.
const operations = "operations, weighted by their time relative to a matrix product"

// cheapest returns the method with the lowest estimated time among the methods that fit in memory, or the method
// with the least memory if none fits. It omits methods that par excludes. otherCost is the cost of the second
// cheapest method that fits.
func cheapest(z *sizes, par Params) (best method, chosen estimate, reason string, otherCost float64, err error) {
	var list, tooLarge []string
	var errs []error
	var unused error
	fits := false
	for _, m := range methods {
		if par.Checkpoint.Dir != "" && !m.saves {
			continue
		}
		if m.name == Primal && par.NeedsAlpha || m.name == Modes && par.withoutModes {
			continue
		}
		if e := par.unusedBy(m.name); e != nil {
			unused = e
			continue
		}
		if m.iterates && fits && (chosen.cost < z.gramCost(true) || best.name != Modes && chosen.cost < z.costs().minEstimated) {
			continue // the estimate, or one product with K, would take longer than the cheapest method so far
		}
		e, err := m.estimate(z, par)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		bytes := e.bytesOf(z.n)
		fit := bytes <= z.available
		if fit {
			text := fmt.Sprintf("%s %.2g", m.name, e.cost)
			if m.count != "" && z.p.Sparse == nil {
				text += " (" + m.count + ")"
			}
			list = append(list, text)
		} else {
			tooLarge = append(tooLarge, fmt.Sprintf("%s needs %s", m.name, size(bytes)))
		}
		better := best.name == "" || fit && !fits
		switch {
		case better:
		case fit == fits && fit:
			better = e.cost < chosen.cost
		case fit == fits:
			better = bytes < chosen.bytesOf(z.n)
		}
		if second := e.cost; fit && len(list) > 1 {
			if better {
				second = chosen.cost
			}
			if otherCost == 0 || second < otherCost {
				otherCost = second
			}
		}
		if better {
			best, chosen, fits = m, e, fit
		}
	}
	if best.name == "" {
		if len(errs) == 0 {
			return best, chosen, "", 0, unused
		}
		return best, chosen, "", 0, errors.Join(errs...)
	}
	switch {
	case len(list)+len(tooLarge) == 1 && par.Checkpoint.Dir != "":
		reason = "writes checkpoints, and takes little time"
	case len(list)+len(tooLarge) == 1 && unused != nil:
		reason = "the only method with a preconditioner"
	case len(list)+len(tooLarge) == 1:
		reason = "a direct method is the fastest for few rows"
	case !fits:
		reason = "takes the least memory: " + strings.Join(tooLarge, ", ")
	case len(list) == 1:
		reason = fmt.Sprintf("the only one that fits %s: %s", size(z.available), strings.Join(tooLarge, ", "))
	default:
		reason = "cheapest: " + strings.Join(list, ", ") + " " + operations
		if len(tooLarge) > 0 {
			reason += fmt.Sprintf("; %s may be used, but %s", size(z.available), strings.Join(tooLarge, ", "))
		}
	}
	if best.name == Kalman {
		reason = fmt.Sprintf("O(n) time and memory for %v of one feature; %s", z.kernel, reason)
	}
	return best, chosen, reason, otherCost, nil
}

// method is one way to solve a Problem. A new method needs a new file and an element of methods.
type method struct {
	name Method
	// count is the number of operations for Plan.Reason, or empty if the number depends on the spectrum of K.
	count string
	// estimate returns an error of the form "needs …: use …" if the method cannot solve the problem.
	estimate func(z *sizes, par Params) (estimate, error)
	// iterates reports whether the estimate depends on the spectrum of K or takes time that grows with the problem.
	iterates bool
	// saves reports whether the method writes checkpoints.
	saves bool
}

// A solution is a method with its settings, ready to solve one Problem.
type solution interface {
	// run solves the problem and sets the fields of Result that Solve does not set itself.
	run(w *work) error
}

// methods lists the ways to solve a Problem. Auto considers them in this order; the first is the
// default for small problems.
var methods = []method{
	{name: Dual, count: "n²d + n³/3", estimate: dualEstimate},
	{name: Primal, count: "nd² + d³/3", estimate: primalEstimate},
	{name: Kalman, estimate: kalmanEstimate},
	{name: Modes, estimate: modesEstimate, iterates: true},
	{name: Mixed, estimate: mixedEstimate, iterates: true, saves: true},
	{name: OutOfCore, estimate: outOfCoreEstimate, iterates: true},
	{name: CG, estimate: cgEstimate, iterates: true, saves: true},
}

func lookUp(name Method) (method, error) {
	var names []string
	for _, m := range methods {
		if m.name == name {
			return m, nil
		}
		names = append(names, fmt.Sprintf("%q", m.name))
	}
	return method{}, fmt.Errorf("solvers: no method is called %q; the methods are %s", name, strings.Join(names, ", "))
}

// sizes holds the properties of a problem that estimates depend on.
type sizes struct {
	n, d, t   int // number of rows of weight > 0, of features, and of outputs
	width     int // features of a sample that a kernel value uses: see Problem.width
	columns   int // number of right-hand sides: t, and one more if b is an unknown
	kernel    kernels.Kernel
	linear    bool
	bordered  bool  // whether b is an unknown of the dual system
	centered  bool  // whether X is centered by its weighted means
	weighted  bool  // whether weights differ from 1
	wrapped   bool  // whether the device uses X in Go memory, without a copy
	available int64 // bytes of memory that a method may use
	p         Problem
	dev       backend.Device
	ctx       context.Context          // if it is canceled, estimates end early and must not be used
	estimated *lowrank.Spectrum        // spectrum of K, estimated at its first use
	taylor    []lowrank.TaylorEstimate // estimates for the Taylor preconditioner, computed at their first use
}

// estimate is the estimated cost and memory of a method.
type estimate struct {
	stages     []stage
	bytesOf    func(n int) int64 // peak memory on the device for n rows; must not decrease with n
	cost       float64           // time, in operations at the rate of a large float64 product
	note       string            // the method's settings, for Plan.Reason; may be empty
	settings   solution          // the method with these settings
	iterations int               // estimated number of iterations of an iterative method
	step       float64           // cost of one iteration
}

// placedSparse is the memory of n sparse samples on the device, and of their copy in Go memory if a weight is 0.
func (p Problem) placedSparse(dev backend.Device, n int) int64 {
	x := p.points()
	bytes := x.PlacedBytes(dev.F64(), n)
	if n < x.Rows && countPositive(p.Weights) < x.Rows {
		bytes += x.CopyBytes(n)
	}
	return bytes
}

// copied is the memory of a copy of n samples on the device of b, and of a copy of sparse elements in Go memory.
func copied[T backend.Float](z *sizes, b backend.Backend[T], n int) int64 {
	if z.p.Sparse == nil {
		return numeric.ElementBytes[T](numeric.Elements(n, z.d))
	}
	x := z.p.points()
	e := x.Elements(n)
	return numeric.Total(backend.SparseBytes(b, n, z.d, e), numeric.ElementBytes[T](int64(e)), 4*int64(e), 8*int64(n))
}

// stage is a part of a Solve and its number of floating-point operations.
type stage struct {
	name  string
	flops float64
}

// bytesOfX is the memory of X on the device, in bytes.
func (z *sizes) bytesOfX(n int) int64 {
	if z.p.Sparse != nil {
		return z.p.placedSparse(z.dev, n)
	}
	if z.wrapped {
		return 0
	}
	return numeric.Bytes(numeric.Elements(n, z.d))
}
