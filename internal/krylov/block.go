package krylov

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
)

// block is the state of one solve with up to BlockWidth columns.
type block[T backend.Float] struct {
	*Solver[T]
	n, columns                    int
	from                          int                     // index of the block's first column among all columns
	allRHS                        backend.Matrix[float64] // the right-hand sides of all blocks of the solve
	rhs                           backend.Matrix[float64]
	goal                          []float64
	norms                         []float64 // norms of the columns of R
	width                         int       // number of directions in P
	iter, stalled                 int       // iter: iterations; stalled: iterations without progress
	minResidual, replacedResidual float64   // minResidual: the smallest residual; replacedResidual: the residual at the last replacement of R
	bestXResidual                 float64   // residual of Solver.bestX
	firstResidual                 float64   // residual after the first iteration; 0 if the solve was restored after this iteration
}

// run solves for the block, either from X = 0 or from a State.
func (k *block[T]) run(resumed *State) error {
	start := k.start
	if resumed != nil {
		start = func() error { return k.restore(resumed) }
	}
	if err := start(); err != nil {
		return err
	}
	for k.Stopped == "" {
		residual := k.residual()
		if residual <= 1 {
			break
		}
		if math.IsNaN(residual) || math.IsInf(residual, 0) {
			return &BreakdownError{message.Errorf("conjugate gradients in %s computed infinite or undefined numbers after %s: {raise $lambda|scale the features down}", numeric.PrecisionOf[T](), count.Of(*k.Products, "iteration"))}
		}
		if k.stalled++; residual < 0.99*k.minResidual {
			k.minResidual, k.stalled = residual, 0
		}
		if residual < k.bestXResidual/2 {
			numeric.Copy(k.b, k.view(k.bestX, k.columns), k.view(k.x, k.columns))
			k.bestXResidual = residual
		}
		if k.stalled > k.Patience {
			k.Stopped = fmt.Sprintf("the residual has hardly decreased in %s", count.Of(k.Patience, "iteration"))
			break
		}
		if *k.Products >= k.MaxProducts {
			k.Stopped = fmt.Sprintf("the limit of %s is reached", count.Of(k.MaxProducts, "iteration"))
			break
		}
		if k.MaxSteps > 0 && k.iter >= k.MaxSteps {
			k.Stopped = fmt.Sprintf("no convergence within %s", count.Of(k.MaxSteps, "iteration"))
			break
		}
		if k.iter == 1 {
			k.firstResidual = residual
		}
		if k.Review != nil && k.iter == reviewAfter && k.firstResidual > 0 {
			if k.Stopped = k.Review(k.iter, remaining(k.firstResidual, residual, k.iter-1)); k.Stopped != "" {
				k.EndedByReview = true
				break
			}
		}
		if k.Save != nil && k.Due() {
			if err := k.save(k.b); err != nil {
				return err
			}
		}
		if err := k.step(); err != nil {
			return err
		}
		if k.Stopped != "" {
			break
		}
		if k.iter%replaceEvery == 0 {
			updated := k.residual()
			if err := k.replace(); err != nil {
				return err
			}
			recomputed := k.residual()
			if recomputed > 2*updated && recomputed > 0.9*k.replacedResidual {
				k.Stopped = "rounding errors prevent a smaller residual"
				break
			}
			k.replacedResidual = recomputed
		}
	}
	return k.finish()
}

// remaining estimates the number of iterations that reduce the residual from last to 1, from the mean factor of
// the last `steps` iterations, which reduced it from first to last.
func remaining(first, last float64, steps int) float64 {
	if !(last < first) {
		return math.Inf(1)
	}
	return float64(steps) * elementary.Log(last) / elementary.Log(first/last)
}

// view returns a view of the first columns of a buffer.
func (k *block[T]) view(m backend.Matrix[T], columns int) backend.Matrix[T] {
	return m.View(0, 0, k.n, columns)
}

// start sets X = 0, the residual R and the first search directions.
func (k *block[T]) start() error {
	numeric.Zero(k.b, k.view(k.x, k.columns))
	numeric.Zero(k.b, k.view(k.bestX, k.columns))
	if err := k.load(k.view(k.r, k.columns), k.rhs); err != nil {
		return err
	}
	if err := k.measure(); err != nil {
		return err
	}
	if k.Limit > 0 {
		// One solve reduces a residual at most by the factor Limit. Plan the fewest solves, each with the same factor.
		for j, goal := range k.goal {
			if v := k.norms[j]; goal < v*k.Limit && goal > 0 {
				rounds := math.Ceil(elementary.Log(goal/v) / elementary.Log(k.Limit))
				k.goal[j] = v * elementary.Pow(goal/v, 1/rounds)
			}
		}
	}
	if k.bestXResidual = k.residual(); k.bestXResidual <= 1 {
		return nil
	}
	active, err := k.precondition()
	if err != nil {
		return err
	}
	if k.last != nil && k.Limit >= CarryLimit {
		if err := k.conjugateTo(*k.last, active); err != nil {
			return err
		}
		k.last = nil
	}
	return k.orthogonalize(active)
}

// conjugateTo computes Z ← Z − P (PᵀQ)⁻¹ QᵀZ for the active columns of Z, where s is the Cholesky factor of PᵀQ.
func (k *block[T]) conjugateTo(s numeric.Small, active int) error {
	p, q, z := k.view(k.p, s.Rows), k.view(k.q, s.Rows), k.view(k.z, active)
	beta, err := k.inner(q, z)
	if err != nil {
		return err
	}
	s.Solve(beta)
	return k.combine(-1, p, beta, 1, z)
}

// residual returns the largest ratio of the norm of a column of the residual to the goal of this column.
func (k *block[T]) residual() float64 {
	maxRatio := 0.0
	for j, v := range k.norms {
		maxRatio = max(maxRatio, numeric.Ratio(v, k.goal[j]))
	}
	return maxRatio
}

func (k *block[T]) measure() error {
	dots := make([]T, k.columns)
	r := k.view(k.r, k.columns)
	if err := k.b.ColDot(dots, r, r); err != nil {
		return err
	}
	k.norms = make([]float64, k.columns)
	for j, v := range dots {
		k.norms[j] = math.Sqrt(float64(v))
	}
	return nil
}

// step performs one iteration.
func (k *block[T]) step() error {
	p, q := k.view(k.p, k.width), k.view(k.q, k.width)
	x, r := k.view(k.x, k.columns), k.view(k.r, k.columns)
	err := k.product(q, p)
	if err == nil {
		err = k.b.Sync()
	}
	if err != nil {
		// The failed product has not changed X, R and P, so that the state can be saved.
		if k.Save != nil && k.frame.Ctx.Err() != nil {
			*k.Products--
			if err := k.save(k.raw); err != nil {
				return err
			}
		}
		return err
	}
	s, err := k.inner(p, q)
	if err != nil {
		return err
	}
	if !s.Cholesky() {
		k.Stopped = fmt.Sprintf("K + λI is not positive definite in %s", numeric.PrecisionOf[T]())
		return nil
	}
	alpha, err := k.inner(p, r)
	if err != nil {
		return err
	}
	s.Solve(alpha)
	if err := k.combine(1, p, alpha, 1, x); err != nil {
		return err
	}
	if err := k.combine(-1, q, alpha, 1, r); err != nil {
		return err
	}
	if err := k.measure(); err != nil {
		return err
	}
	k.iter++
	if residual := k.residual(); !(residual > 1) { // the condition is also true for NaN, which run detects
		k.last = &s
		return nil
	}
	active, err := k.precondition()
	if err != nil {
		return err
	}
	if err := k.conjugateTo(s, active); err != nil {
		return err
	}
	if err := k.orthogonalize(active); err != nil {
		return err
	}
	return nil
}

// product computes q ← A p. It uses Z as scratch memory.
func (k *block[T]) product(q, p backend.Matrix[T]) error {
	_, c := p.Dims()
	*k.Products++
	return k.a.Apply(q, p, k.view(k.z, c))
}

// replace computes R ← rhs − A X.
func (k *block[T]) replace() error {
	k.last = nil // the next statement overwrites Q
	x, r, q := k.view(k.x, k.columns), k.view(k.r, k.columns), k.view(k.q, k.columns)
	if err := k.product(q, x); err != nil {
		return err
	}
	if err := k.load(r, k.rhs); err != nil {
		return err
	}
	k.b.ColAxpy(numeric.Repeated[T](-1, k.columns), q, r)
	return k.measure()
}

// precondition computes Z ← M⁻¹R for the columns of R whose norm exceeds the goal, and returns their number.
func (k *block[T]) precondition() (active int, err error) {
	var columns []int
	for j, v := range k.norms {
		if v > k.goal[j] {
			columns = append(columns, j)
		}
	}
	active = len(columns)
	r := k.view(k.r, k.columns)
	if active < k.columns {
		pick := numeric.NewSmall(k.columns, active)
		for to, j := range columns {
			pick.Set(j, to, 1)
		}
		g := k.view(k.g, active)
		if err := k.combine(1, r, pick, 0, g); err != nil {
			return 0, err
		}
		r = g
	}
	z := k.view(k.z, active)
	if k.pre == nil {
		numeric.Copy(k.b, z, r)
		return active, nil
	}
	return active, k.pre.Apply(z, r)
}

// orthogonalize sets P to a basis of the columns of Z, without columns that are dependent to working precision.
func (k *block[T]) orthogonalize(active int) error {
	z := k.view(k.z, active)
	s, err := k.inner(z, z)
	if err != nil {
		return err
	}
	basis := s.Basis(independence[T]())
	if basis.Cols == 0 {
		k.Stopped = fmt.Sprintf("no independent search direction remains in %s", numeric.PrecisionOf[T]())
		return nil
	}
	k.width = basis.Cols
	if err := k.combine(1, z, basis, 0, k.view(k.p, k.width)); err != nil {
		return err
	}
	return k.b.Sync() // from here to the end of the next product, X, R and P are a complete state
}

// independence returns the argument tol of numeric.Small.Basis for the precision T.
func independence[T backend.Float]() float64 {
	if numeric.PrecisionOf[T]() == "float32" {
		return 1e-5
	}
	return 1e-13
}

// inner returns UᵀV as a matrix on the host.
func (k *block[T]) inner(u, v backend.Matrix[T]) (numeric.Small, error) {
	_, rows := u.Dims()
	_, cols := v.Dims()
	c := k.coeff.View(0, 0, rows, cols)
	k.b.Gemm(backend.Transpose, backend.NoTrans, 1, u, v, 0, c)
	h := backend.NewHost[T](rows, cols)
	if err := k.b.Download(h, c); err != nil {
		return numeric.Small{}, err
	}
	s := numeric.NewSmall(rows, cols)
	for i, v := range h.Data {
		s.Data[i] = float64(v)
	}
	return s, nil
}

// combine queues V ← sign·U·S + beta·V.
func (k *block[T]) combine(sign T, u backend.Matrix[T], s numeric.Small, beta T, v backend.Matrix[T]) error {
	h := backend.NewHost[T](s.Rows, s.Cols)
	for i, x := range s.Data {
		h.Data[i] = T(x)
	}
	c := k.coeff.View(0, 0, s.Rows, s.Cols)
	if err := k.b.Upload(c, h); err != nil {
		return err
	}
	k.b.Gemm(backend.NoTrans, backend.NoTrans, sign, u, c, beta, v)
	return nil
}

// save saves the state. It reads the matrices on the device through b.
func (k *block[T]) save(b backend.Backend[T]) error {
	_, columns := k.allRHS.Dims()
	st := State{
		From: k.from, Iter: k.iter, Since: k.stalled, Lowest: Number(k.minResidual), Truth: Number(k.replacedResidual), Kept: Number(k.bestXResidual),
		Goal: k.goal, RHS: backend.NewHost[float64](k.n, columns),
	}
	if err := k.frame.Dev.F64().Download(st.RHS, k.allRHS); err != nil {
		return err
	}
	for _, m := range []struct {
		to      *backend.Host[float64]
		from    backend.Matrix[T]
		columns int
	}{{&st.X, k.x, k.columns}, {&st.Least, k.bestX, k.columns}, {&st.R, k.r, k.columns}, {&st.P, k.p, k.width}} {
		h := backend.NewHost[T](k.n, m.columns)
		if err := b.Download(h, k.view(m.from, m.columns)); err != nil {
			return err
		}
		*m.to = backend.NewHost[float64](k.n, m.columns)
		for i, v := range h.Data {
			m.to.Data[i] = float64(v)
		}
	}
	return k.Save(st)
}

// restore sets the block from a State; run calls it instead of start. RHS is already on the device.
func (k *block[T]) restore(st *State) error {
	k.iter, k.stalled, k.minResidual, k.replacedResidual = st.Iter, st.Since, float64(st.Lowest), float64(st.Truth)
	k.bestXResidual = float64(st.Kept)
	copy(k.goal, st.Goal)
	k.width = st.P.Cols
	for _, m := range []struct {
		from backend.Host[float64]
		to   backend.Matrix[T]
	}{{st.X, k.x}, {st.Least, k.bestX}, {st.R, k.r}, {st.P, k.p}} {
		h := backend.NewHost[T](m.from.Rows, m.from.Cols)
		for i, v := range m.from.Data {
			h.Data[i] = T(v)
		}
		if err := k.b.Upload(k.view(m.to, h.Cols), h); err != nil {
			return err
		}
	}
	return k.measure()
}

// BreakdownError reports that numbers in a solve exceeded the range of their precision. A solve in a higher
// precision may succeed.
type BreakdownError struct{ error }

func (e *BreakdownError) Unwrap() error { return e.error }

// finish overwrites the right-hand sides with X or, if X missed the goal, with the X of the smallest residual.
func (k *block[T]) finish() error {
	x := k.x
	if k.Stopped != "" && k.residual() > 2*k.bestXResidual {
		x = k.bestX
	}
	if err := k.store(k.rhs, k.view(x, k.columns)); err != nil {
		return err
	}
	return nil
}
