package krylov

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// Params are the limits of a Solver.
type Params struct {
	Order, Columns int     // order of A, and maximum number of right-hand sides
	Products       *int    // counts the number of products with A in all solves
	MaxProducts    int     // maximum number of products
	MaxSteps       int     // maximum number of iterations in one solve; 0 means no limit
	Patience       int     // number of iterations without progress after which a solve ends
	Limit          float64 // relative residual that one solve can reach, so that a smaller residual takes several solves; 0 means no limit
	// Review, if not nil, is called by each solve after ten iterations, with the number of iterations and an
	// estimate of the number of remaining iterations from the rate of the last nine. If Review returns a text, the
	// solve ends with this text as the reason.
	Review func(iterations int, remaining float64) string
	// Save, if not nil, saves a State. The solver calls it at each step for which Due is true, and when a product
	// fails because the context is done.
	Save func(State) error
	Due  func() bool
}

// Solver implements preconditioned conjugate gradients in the precision T for blocks of right-hand sides, whose
// solutions share one search space (O'Leary 1980). The search directions are orthogonalized with rank detection, so
// that the method does not break down if the columns of a block become linearly dependent (Ji and Li 2017, "BF-BCG"):
//
//	Q = AP,  α = (PᵀQ)⁻¹ PᵀR,  X ← X + Pα,  R ← R − Qα,
//	Z = M⁻¹R,  P ← orth(Z − P (PᵀQ)⁻¹ QᵀZ)
//
// where M is the preconditioner. Columns that have reached their goal add no search directions. In a second call
// of Solve, the residual of the first solution, recomputed from the data, replaces R, and the solve continues with
// the search directions of the first call, which remain useful if this residual is near R (van der Vorst and Ye
// 2000). During a solve, the recomputed residual also replaces R at regular intervals, because rounding errors
// accumulate in R.
type Solver[T backend.Float] struct {
	Params
	Stopped       string // why the last solve ended above its goal; "" if it reached the goal
	EndedByReview bool   // whether Review ended the last solve

	frame     *run.Frame
	b         backend.Backend[T]
	raw       backend.Backend[T] // the queue b without its context
	a         Operator[T]
	pre       Preconditioner[T] // may be nil
	allocated []run.Releaser

	x, r, p, q, z, g backend.Matrix[T] // n×width; g is nil if width is 1
	bestX            backend.Matrix[T] // n×width: the X with the smallest residual
	coeff            backend.Matrix[T] // width × width
	last             *numeric.Small    // factor of PᵀQ from the last step; nil if P or Q no longer exists
}

// A Preconditioner is an approximate inverse of A, symmetric and positive definite, on the device.
type Preconditioner[T backend.Float] interface {
	// Apply queues z ← P⁻¹ r for n×c matrices that do not overlap. It waits for the device only if a step runs on
	// the host.
	Apply(z, r backend.Matrix[T]) error
}

// BlockWidth is the maximum number of right-hand sides that are solved together. With more, the other operations of
// an iteration would take longer than its product with K.
const BlockWidth = 64

const (
	// CarryLimit is the smallest value of Limit at which a solve starts from the directions of the preceding
	// solve. At n = 20,000, d = 50 and λ = 0.1 (2026-11-23), such solves in float32 took 58 iterations instead of
	// 60 with limit 1e-3, and 66 instead of 60 with 2e-5.
	CarryLimit = 1e-3
	// reviewAfter is the number of iterations after which Review is called.
	reviewAfter = 10
	// replaceEvery is the number of iterations between two recomputations of the residual R.
	replaceEvery = 50
)

// Bytes returns the device memory of a solver, in bytes.
func Bytes[T backend.Float](n, columns int) int64 {
	c := min(columns, BlockWidth)
	matrices := 6
	if c > 1 {
		matrices = 7
	}
	return numeric.ElementBytes[T](numeric.Total(numeric.Elements(matrices*c, n), numeric.Elements(c, c)))
}

// New returns a solver. It allocates the solver's memory on the device of f. pre may be nil.
func New[T backend.Float](f *run.Frame, b backend.Backend[T], a Operator[T], pre Preconditioner[T], par Params) (*Solver[T], error) {
	c := &Solver[T]{Params: par, frame: f, b: b, a: a, pre: pre}
	var isFloat64 bool
	if c.raw, isFloat64 = any(f.Dev.F64()).(backend.Backend[T]); !isFloat64 {
		c.raw = any(f.Dev.F32()).(backend.Backend[T])
	}
	width := min(par.Columns, BlockWidth)
	list := []*backend.Matrix[T]{&c.x, &c.r, &c.p, &c.q, &c.z, &c.bestX}
	if width > 1 {
		list = append(list, &c.g)
	}
	for _, m := range list {
		var err error
		if *m, err = run.NewMatrix(f.Mem, b, par.Order, width); err != nil {
			return nil, err
		}
		c.allocated = append(c.allocated, *m)
	}
	var err error
	c.coeff, err = run.NewMatrix(f.Mem, b, width, width)
	c.allocated = append(c.allocated, c.coeff)
	return c, err
}

// Free frees the memory that New allocated.
func (c *Solver[T]) Free() {
	for _, m := range c.allocated {
		c.frame.Mem.Free(m)
	}
}

// load computes dst ← src.
func (c *Solver[T]) load(dst backend.Matrix[T], src backend.Matrix[float64]) error {
	if dst64, ok := any(dst).(backend.Matrix[float64]); ok {
		numeric.Copy(c.frame.B, dst64, src)
		return nil
	}
	if err := c.frame.B.Sync(); err != nil {
		return err
	}
	c.frame.Dev.Narrow(any(dst).(backend.Matrix[float32]), src)
	return c.frame.Dev.Sync()
}

// store computes dst ← src.
func (c *Solver[T]) store(dst backend.Matrix[float64], src backend.Matrix[T]) error {
	if src64, ok := any(src).(backend.Matrix[float64]); ok {
		numeric.Copy(c.frame.B, dst, src64)
		return nil
	}
	if err := c.frame.B32.Sync(); err != nil {
		return err
	}
	c.frame.Dev.Widen(dst, any(src).(backend.Matrix[float32]))
	return c.frame.Dev.Sync()
}

// Solve overwrites rhs, which is n×c on the device, with an approximation of A⁻¹ rhs. It ends when the residual of
// each column j has a norm of at most goal[j]. If it ends earlier, Stopped holds the reason. If resumed is not
// nil, the solve continues from this State. If numbers are not finite, the error is a *BreakdownError.
func (c *Solver[T]) Solve(rhs backend.Matrix[float64], goal []float64, resumed *State) error {
	n, columns := rhs.Dims()
	c.Stopped, c.EndedByReview = "", false
	if columns > BlockWidth {
		c.last = nil
	}
	first := 0
	if resumed != nil {
		first = resumed.From
	}
	for from := first; from < columns; from += BlockWidth {
		to := min(from+BlockWidth, columns)
		k := &block[T]{
			Solver: c, n: n, columns: to - from, from: from, allRHS: rhs,
			rhs: rhs.View(0, from, n, to-from), goal: goal[from:to], minResidual: math.Inf(1), replacedResidual: math.Inf(1),
		}
		if err := k.run(resumed); err != nil {
			return err
		}
		resumed = nil
	}
	return nil
}
