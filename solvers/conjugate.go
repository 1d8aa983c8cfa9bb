package solvers

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/lowrank"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// conjugate is the inner solver by preconditioned conjugate gradients in the
// precision T, for blocks of right-hand sides together: every product with A
// serves all of them, and the space that one searches all the others search too
// (O'Leary 1980). So that a block whose columns have become dependent does not
// break down, the search directions are orthogonalized with rank detection, and
// are fewer than the columns then (Ji and Li 2017, "BF-BCG"):
//
//	Q = AP,  α = (PᵀQ)⁻¹ PᵀR,  X ← X + Pα,  R ← R − Qα,
//	Z = M⁻¹R,  P ← orth(Z − P (PᵀQ)⁻¹ QᵀZ)
//
// With one column this is the usual method. Columns that have reached their goal
// give no more directions. A solve goes on from the directions of the one before: its
// right-hand side is what that left, computed anew, which replaces R without a loss of
// what has been learned as long as the two differ little (van der Vorst and Ye 2000).
// Now and then R is replaced by what it stands for, so
// that it does not drift from the truth.
type conjugate[T backend.Float] struct {
	w       *work
	b       backend.Backend[T]
	raw     backend.Backend[T] // the same without a context
	a       operator[T]
	pre     preconditioner[T] // nil: none
	own     []run.Releaser    // what is freed with it
	freePre func()            // frees the preconditioner; nil: there is none

	x, r, p, q, z, g backend.Matrix[T] // n×width; g is nil when that is 1
	least            backend.Matrix[T] // n×width: the X of the smallest residual
	coeff            backend.Matrix[T] // width × width
	load             func(dst backend.Matrix[T], src backend.Matrix[float64]) error
	store            func(dst backend.Matrix[float64], src backend.Matrix[T]) error
	patience         int            // iterations without progress
	maxIter          int            // iterations in one solve; 0: any number
	limit            float64        // what one solve can take a residual down to, relative; 0: anything
	last             *numeric.Small // PᵀQ of the last step, factored, of a solve whose P and Q are there yet; nil: none
	stopped          string         // why the last solve ended above its goal; ""
	checkpointer     *checkpointer  // nil: no checkpoints
}

// blockWidth is the maximum number of columns that are solved for together. With more, the
// work between the products grows beside them.
const blockWidth = 64

const (
	// carryLimit is from which limit on a solve goes on from the directions of the one
	// before. n = 20,000, d = 50, λ = 0.1, iterations in all with and without: K in 16
	// bits, limit 0.025: 58 and 62; in float32, limit 1e-3: 58 and 60, 2e-5, which is
	// as far as float32 goes: 66 and 60 (2026-11-23).
	carryLimit = 1e-3
	// replaceEvery is the number of iterations between replacements of R.
	replaceEvery = 50
	// patience is for how many iterations no progress is taken for a plateau of
	// the method, which is common on an ill-conditioned system; as many as it may
	// take in all where the estimate says more.
	patience     = 500
	mostPatience = 5000
)

// conjugateBytes is what newConjugate takes on the device.
func conjugateBytes[T backend.Float](n, columns int) int64 {
	c := min(columns, blockWidth)
	matrices := 6
	if c > 1 {
		matrices = 7
	}
	return numeric.ElementBytes[T](numeric.Total(numeric.Elements(matrices*c, n), numeric.Elements(c, c)))
}

func newConjugate[T backend.Float](w *work, b, raw backend.Backend[T], a operator[T], columns int) (*conjugate[T], error) {
	c := &conjugate[T]{w: w, b: b, raw: raw, a: a, checkpointer: w.checkpointer, patience: patience}
	if choice, ok := w.plan.choice.(cgChoice); ok {
		c.patience = max(patience, min(choice.iterations, mostPatience))
	}
	width := min(columns, blockWidth)
	list := []*backend.Matrix[T]{&c.x, &c.r, &c.p, &c.q, &c.z, &c.least}
	if width > 1 {
		list = append(list, &c.g)
	}
	for _, m := range list {
		var err error
		if *m, err = run.NewMatrix(w.Mem, b, w.s.n, width); err != nil {
			return nil, err
		}
		c.own = append(c.own, *m)
	}
	var err error
	c.coeff, err = run.NewMatrix(w.Mem, b, width, width)
	c.own = append(c.own, c.coeff)
	return c, err
}

// precede makes p the preconditioner, which is freed with c; nil is none.
func (c *conjugate[T]) precede(p *lowrank.Preconditioner[T]) {
	if p != nil {
		c.pre, c.freePre = p, p.Free
	}
}

// newConjugate64 is newConjugate in the precision of the outer loop.
func newConjugate64(w *work, a operator[float64], columns int) (*conjugate[float64], error) {
	c, err := newConjugate(w, w.B, w.Dev.F64(), a, columns)
	if err != nil {
		return nil, err
	}
	c.load = func(dst, src backend.Matrix[float64]) error { numeric.Copy(w.B, dst, src); return nil }
	c.store = c.load
	return c, nil
}

// newConjugate32 takes float32 to the limit; the loop around it goes on.
func newConjugate32(w *work, a operator[float32], columns int, limit float64) (*conjugate[float32], error) {
	c, err := newConjugate(w, w.B32, w.Dev.F32(), a, columns)
	if err != nil {
		return nil, err
	}
	c.limit = limit
	c.load = func(dst backend.Matrix[float32], src backend.Matrix[float64]) error {
		if err := w.B.Sync(); err != nil {
			return err
		}
		w.Dev.Narrow(dst, src)
		return w.Dev.Sync()
	}
	c.store = func(dst backend.Matrix[float64], src backend.Matrix[float32]) error {
		if err := w.B32.Sync(); err != nil {
			return err
		}
		w.Dev.Widen(dst, src)
		return w.Dev.Sync()
	}
	return c, nil
}

func (c *conjugate[T]) direct() bool { return false }
func (c *conjugate[T]) product() numeric.Product {
	p, _ := any(c.a).(numeric.Product)
	return p
}
func (c *conjugate[T]) stopReason() string { return c.stopped }
func (c *conjugate[T]) switchToCG() bool   { return false }

func (c *conjugate[T]) release() {
	for _, m := range c.own {
		c.w.Mem.Free(m)
	}
	c.a.Free()
	if c.freePre != nil {
		c.freePre()
	}
}

func (c *conjugate[T]) solve(rhs backend.Matrix[float64], goal []float64) error {
	n, columns := rhs.Dims()
	c.stopped = ""
	if columns > blockWidth {
		c.last = nil
	}
	resumed := c.checkpointer.take()
	first := 0
	if resumed != nil {
		first = resumed.From
	}
	for from := first; from < columns; from += blockWidth {
		to := min(from+blockWidth, columns)
		k := &block[T]{
			conjugate: c, n: n, columns: to - from, from: from, all: rhs,
			rhs: rhs.View(0, from, n, to-from), goal: goal[from:to], best: math.Inf(1), truth: math.Inf(1),
		}
		if err := k.run(resumed); err != nil {
			return err
		}
		resumed = nil
	}
	return nil
}

// A preconditioner is an approximate inverse of K + λW⁻¹, symmetric and positive
// definite, on the device.
type preconditioner[T backend.Float] interface {
	// Apply queues z ← P⁻¹ r, both n×c; it waits only where it needs the host.
	// z is no part of r.
	Apply(z, r backend.Matrix[T]) error
}
