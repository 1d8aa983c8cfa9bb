package solvers

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sort"

	"github.com/mercer-go/mercer/backend"
)

// Plan says what a Solve will do and take.
type Plan struct {
	Method Method
	Reason string  // why this method
	Bytes  int64   // the most that matrices will take on the device
	Flops  float64 // floating-point operations, counted as in backend/flops.go

	stages  []float64 // Flops of the stages
	rows    int
	bytesOf func(n int) int64 // Bytes for another number of rows
}

// MakePlan returns the plan of Solve(ctx, dev, p, Params{Method: m}) without
// doing any work. It looks at the shapes and weights of p, not at X and Y. On
// a device that uses Go memory as it is, X takes nothing more unless rows are
// left out or X is centred.
func MakePlan(dev backend.Device, p Problem, m Method) (Plan, error) {
	if dev == nil {
		return Plan{}, errors.New("solvers: no device was given")
	}
	if err := p.checkShapes(); err != nil {
		return Plan{}, err
	}
	n, d, t := p.X.Rows, p.X.Cols, p.Y.Cols
	if p.Weights != nil {
		n = countPositive(p.Weights)
	}
	m, reason, err := choose(p, n, m)
	if err != nil {
		return Plan{}, err
	}
	linear := isLinear(p.Kernel)
	bordered := p.Intercept && !linear
	wrapped := wrapper(dev) != nil && n == p.X.Rows && !(p.Intercept && linear)
	plan := Plan{Method: m, Reason: reason, rows: n, stages: stageFlops(m, n, d, t, bordered, linear)}
	if m == Primal {
		wrapped = wrapped && p.Weights == nil
		plan.bytesOf = func(n int) int64 { return primalBytes(n, d, t, wrapped) }
	} else {
		plan.bytesOf = func(n int) int64 { return dualBytes(n, d, t, bordered, linear, wrapped) }
	}
	plan.Bytes = plan.bytesOf(n)
	for _, f := range plan.stages {
		plan.Flops += f
	}
	return plan, nil
}

// dualBytes: X, the right-hand sides, and the larger of K and of what follows
// once K has been freed (the residual and w).
func dualBytes(n, d, t int, bordered, linear, wrapped bool) int64 {
	columns := t
	if bordered {
		columns++
	}
	after := elements(n, t)
	if linear {
		after = add(after, elements(d, t))
	}
	e := add(elements(n, columns), max(elements(n, n), after))
	if !wrapped {
		e = add(e, elements(n, d))
	}
	return bytes(e)
}

// primalBytes: XᵀX, the solution and its residual, and one block of rows.
func primalBytes(n, d, t int, wrapped bool) int64 {
	r := blockRows(n, d)
	e := add(elements(d, d), add(elements(2*d, t), elements(r, t)))
	if !wrapped {
		e = add(e, elements(r, d))
	}
	return bytes(e)
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
	Rows              int   // the rows of the Problem that take part
	Needed, Available int64 // bytes
	Largest           int   // the most rows that would fit; 0: none would
}

func (e *BudgetError) Error() string {
	advice := fmt.Sprintf("use at most %s or allow more memory", rows(e.Largest))
	if e.Largest == 0 {
		advice = "allow more memory, or use fewer features or outputs"
	}
	need := "need"
	if e.Rows == 1 {
		need = "needs"
	}
	return fmt.Sprintf("solvers: %s: %s %s %s of memory, %s may be used: %s",
		e.Method, rows(e.Rows), need, size(e.Needed), size(e.Available), advice)
}

// rows writes a number of rows for people.
func rows(n int) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
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

// fits returns a *BudgetError when the plan takes more than the limit (0: no
// limit of its own) or than the device has free.
func (p Plan) fits(dev backend.Device, limit int64) error {
	now, _ := dev.InUse()
	available := max(dev.Info().Memory-now, 0)
	if limit > 0 {
		available = min(available, limit)
	}
	if p.Bytes <= available {
		return nil
	}
	// The bytes never fall as rows are added.
	largest := sort.Search(p.rows, func(n int) bool { return p.bytesOf(n+1) > available })
	return &BudgetError{Method: p.Method, Rows: p.rows, Needed: p.Bytes, Available: available, Largest: largest}
}
