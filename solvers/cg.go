package solvers

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/internal/krylov"
	"github.com/mercer-go/mercer/internal/lowrank"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// CG is block conjugate gradients, preconditioned by a low-rank approximation of K. An iteration
// takes O(n²) time if K is stored. Otherwise it takes O(n²d) time, and the memory is O(n). For a
// kernel a·xᵀz + c an iteration takes O(nd) time (affine.go).
const CG Method = "cg"

// cgChoice is the plan of the method cg for a problem.
type cgChoice struct {
	Operator       Operator
	Preconditioner string
	Rank           int
	iterations     int     // estimated number of iterations in all inner solves
	lambda         float64 // estimated lower bound of the eigenvalues of K + λW⁻¹
}

// cgEstimate chooses the storage of K, the preconditioner and its rank from the estimated spectrum.
func cgEstimate(z *sizes, par Params) (estimate, error) {
	if err := z.soluble(CG); err != nil {
		return estimate{}, err
	}
	list := operators
	if par.Operator != OperatorAuto {
		list = []Operator{par.Operator}
	}
	var best, smallest estimate
	look := func(candidates []preconditioning) error {
		for _, o := range list {
			if o == Fixed16 {
				switch err := z.fixedError(); {
				case err != nil && par.Operator == Fixed16:
					return err
				case err != nil:
					continue
				}
			}
			for _, p := range candidates {
				if par.Operator == OperatorAuto && !z.isPrecise(o, p.lambda) {
					continue
				}
				e := z.cgEstimate(o, p, par)
				bytes := e.bytesOf(z.n)
				if bytes <= z.available && (best.bytesOf == nil || e.cost < best.cost) {
					best = e
				}
				if smallest.bytesOf == nil || bytes < smallest.bytesOf(z.n) {
					smallest = e
				}
			}
		}
		return nil
	}
	if par.Preconditioner != lowrank.Taylor {
		if err := look(z.columnsOfK(par)); err != nil {
			return estimate{}, err
		}
	}
	auto := par.Preconditioner == "" && par.Rank == 0
	if auto && best.bytesOf != nil && best.iterations <= fewIterations {
		return best, nil // estimating the power series would take longer than the time that it can save
	}
	if auto || par.Preconditioner == lowrank.Taylor {
		candidates, err := z.powerSeries(par)
		if err == nil {
			err = look(candidates)
		}
		if err != nil && !auto {
			return estimate{}, err
		}
	}
	if best.bytesOf == nil {
		best = smallest
	}
	return best, nil
}

// seriesMargin is a factor on the estimated number of iterations with a power series when preconditioners are
// compared. In 17 fits with 8,000 to 20,000 rows, the number of iterations was 0.4 to 1.7 times the estimate.
const seriesMargin = 1.3

// If a preconditioner needs at most fewIterations iterations, a better one saves little time.
const fewIterations = 16

// Auto chooses Fixed16 only if a step of refinement is estimated to divide the residual by more than fixedMargin. A
// step that divides the residual by less than fixedGain shows that the rounding errors are correlated.
const fixedMargin, fixedGain = 20, 4

// isPrecise reports whether the precision of o suffices if the eigenvalues of K + λW⁻¹ are at least lambda. For
// products in float32, lambda must be at least 32 times the norm of the rounding errors (see sizes.contraction).
func (z *sizes) isPrecise(o Operator, lambda float64) bool {
	switch {
	case o == Fixed16 && !(fixedMargin*z.contraction(o, lambda) < 1):
		return false
	case o.single():
		return 32*z.contraction(Stored32, lambda) < 1
	}
	return true
}

// A preconditioning is a preconditioner with estimates of its cost and effect.
type preconditioning struct {
	name       string
	rank       int
	iterations func(tol float64) int // number of iterations of conjugate gradients
	lambda     float64               // estimated lower bound of the eigenvalues of K + λW⁻¹
}

// columnsOfK lists the candidate preconditioners that use columns of K. Rank 0 stands for no preconditioner.
func (z *sizes) columnsOfK(par Params) (list []preconditioning) {
	add := func(rank int) {
		iterations := func(tol float64) int { return z.spectrum().Iterations(rank, tol) }
		list = append(list, preconditioning{par.preconditioner(), rank, onceForEach(iterations), z.leastShift()})
	}
	switch {
	case par.Preconditioner == "none":
		add(0)
	case par.Rank > 0:
		add(min(par.Rank, z.n))
	default:
		add(0)
		for k := 32; k <= min(z.n/2, 8192); k += k / 2 {
			add(k)
		}
	}
	return list
}

// powerSeries lists the candidate preconditioners that use the power series of the kernel.
func (z *sizes) powerSeries(par Params) (list []preconditioning, err error) {
	estimates, err := z.taylorEstimates(par)
	for _, e := range estimates {
		list = append(list, preconditioning{lowrank.Taylor, e.Rank, onceForEach(e.Iterations), max(z.leastShift(), e.Lambda)})
	}
	return list, err
}

// onceForEach returns f with a cache for the tolerances, which several operators share.
func onceForEach(f func(tol float64) int) func(tol float64) int {
	cache := map[float64]int{}
	return func(tol float64) int {
		if _, ok := cache[tol]; !ok {
			cache[tol] = f(tol)
		}
		return cache[tol]
	}
}

func (z *sizes) cgEstimate(o Operator, p preconditioning, par Params) estimate {
	limit, rank := z.innerLimit(o, p.lambda), p.rank
	checks := rounds(limit, par.tol())
	iterations := p.iterations(par.tol())
	if o.single() && limit < krylov.CarryLimit { // each inner solve starts a new Krylov space
		iterations = int(checks) * p.iterations(elementary.Pow(par.tol()/4, 1/checks))
	}
	n, c := float64(z.n), min(z.columns, krylov.BlockWidth)
	k, device := float64(rank), z.costs()
	product, flops := z.productCost(c, o.single()), z.productFlops(z.columns)
	gram, gramFlops := 0.0, 0.0
	if o.stored() {
		product, flops = z.symmCost(c, o), flop.Symm(z.n, z.columns)
		gram, gramFlops = z.storedCost(o), z.gramFlops()
	}
	check, checkFlops := z.residualCost(), z.residualFlops()
	if o == Stored64 && !isLinear(z.kernel) {
		check, checkFlops = z.symmCost(z.t, o), flop.Symm(z.n, z.t)
	}
	rate, valueRate, size := 1.0, 1.0, 8.0
	if o.single() {
		rate, valueRate, size = z.rates().Single, z.rates().Values, 4
	}
	// Computing the n×k matrix F of lowrank.Preconditioner takes nk² operations, and FᵀF takes nk² more. Products of
	// blocks of some hundred columns take 1.4 times as long as large products. The host chooses the pivots.
	factor := 1.4*2*n*k*k/rate + 3*k*k*k + k*device.fetch +
		n*k*((2*float64(z.width)*device.feature+2*device.value)/valueRate+size*device.freshByte+device.host)
	// An iteration reads F from memory twice.
	step := product + n*k*(2*size*device.readByte+4*float64(c-1)/rate) + device.step
	expected := float64(iterations)
	if p.name == lowrank.Taylor {
		expected *= seriesMargin
		// The host computes F and D of lowrank.Preconditioner, and multiplies F by D^-½.
		factor = 1.4*n*k*k/rate + 3*k*k*k + n*k*(size*device.freshByte+device.monomial)
		step += 2 * (n*float64(c)*device.host + device.fetch)
	}
	blocks := math.Ceil(float64(z.columns) / krylov.BlockWidth)
	e := estimate{
		settings:   cgChoice{o, p.name, rank, iterations, p.lambda},
		iterations: iterations,
		step:       blocks * step,
		cost:       device.look + gram + factor + blocks*expected*step + checks*check,
		stages: []stage{
			{"factor", 2*n*k*k + 2*n*k*float64(z.width)},
			{"gram", gramFlops},
			{"solve", float64(iterations)*(flops+4*n*k*float64(z.columns)) + checks*checkFlops},
		},
		bytesOf: func(n int) int64 { return z.cgBytes(o, p.name, min(rank, n), n) },
		note:    fmt.Sprintf("%s, %s, about %s", z.textOf(o), p.text(), count.Of(iterations, "iteration")),
	}
	return e
}

func (p preconditioning) text() string {
	if p.name == lowrank.Taylor {
		return fmt.Sprintf("rank %d of the power series", p.rank)
	}
	return fmt.Sprintf("rank %d", p.rank)
}

// innerLimit is the relative residual that one inner solve with o can attain if the eigenvalues of
// K + λW⁻¹ are at least lambda. 0 means that one inner solve can attain any tolerance.
func (z *sizes) innerLimit(o Operator, lambda float64) float64 {
	switch {
	case o == Fixed16:
		return min(0.5, max(2e-5, 2*z.contraction(o, lambda)))
	case o.single():
		return 2e-5
	}
	return 0
}

// rounds is the number of inner solves that reduce the residual to tol, if each multiplies it by limit.
func rounds(limit, tol float64) float64 {
	if limit == 0 {
		return 1
	}
	return max(1, math.Ceil(elementary.Log(tol/4)/elementary.Log(limit)))
}

// cgBytes returns the peak memory on the device in bytes.
func (z *sizes) cgBytes(o Operator, name string, rank, n int) int64 {
	c := min(z.columns, krylov.BlockWidth)
	peak, resident := int64(0), int64(0)
	if rank > 0 {
		if o.single() {
			peak, resident = lowrank.Bytes[float32](name, n, rank, c, func(rows int) int64 { return copied(z, z.dev.F32(), rows) })
			peak = numeric.Total(peak, copied(z, z.dev.F32(), n))
		} else {
			peak, resident = lowrank.Bytes[float64](name, n, rank, c, func(rows int) int64 { return copied(z, z.dev.F64(), rows) })
		}
	}
	operator := operatorBytes(z, o, n)
	stays := operator
	if o.single() && o.stored() {
		stays -= copied(z, z.dev.F32(), n)
	}
	block := krylov.Bytes[float64](n, z.columns)
	if o.single() {
		block = krylov.Bytes[float32](n, z.columns)
	}
	largest := max(peak, numeric.Total(resident, operator), numeric.Total(resident, stays, block))
	return numeric.Total(z.bytesOfX(n), z.refinedBytes(n), largest)
}

// run solves by conjugate gradients. If a solve in float32 fails, run continues in float64, and at last with the
// Cholesky factor in float64. It does not replace an operator, a rank or a preconditioner that the caller chose.
func (choice cgChoice) run(w *work) error {
	var err error
	if w.checkpointer, err = newCheckpointer(w, [3]any{choice.Operator, choice.Preconditioner, choice.Rank}); err != nil {
		return err
	}
	x, err := w.placeX()
	if err != nil {
		return w.fail(err)
	}
	fallbacks := []fallback{choice.fallback(w, choice.Operator, x)}
	if choice.Operator == Fixed16 && w.par.Operator == OperatorAuto {
		fallbacks[0].gain = fixedGain
		single := Unstored32
		if w.plan.sizes.cgBytes(Stored32, choice.Preconditioner, choice.Rank, w.s.n) <= w.plan.available {
			single = Stored32
		}
		fallbacks = append(fallbacks, choice.fallback(w, single, x))
	}
	if choice.Operator.single() && w.par.Operator == OperatorAuto {
		double := Unstored64
		if w.plan.sizes.cgBytes(Stored64, choice.Preconditioner, choice.Rank, w.s.n) <= w.plan.available {
			double = Stored64
		}
		if w.plan.sizes.cgBytes(double, choice.Preconditioner, choice.Rank, w.s.n) <= w.plan.available {
			fallbacks = append(fallbacks, choice.fallback(w, double, x))
		}
	}
	if w.par.Operator == OperatorAuto && w.par.Rank == 0 && w.par.Preconditioner == "" {
		fallbacks = w.withDirect(x, fallbacks)
	}
	return w.refine(x, fallbacks...)
}

// fallback returns conjugate gradients with the given operator.
func (choice cgChoice) fallback(w *work, o Operator, x backend.Matrix[float64]) fallback {
	return fallback{method: CG, text: "cg, " + w.plan.sizes.textOf(o), make: func() (inner, error) {
		if o.single() {
			return choice.newCG32(w, o)
		}
		return choice.newCG64(w, o, x)
	}}
}

func (choice cgChoice) newCG64(w *work, o Operator, x backend.Matrix[float64]) (inner, error) {
	p, err := newPreconditioner(w, w.B, choice, x)
	if err != nil {
		return nil, err
	}
	a, err := operatorOf(w, w.B, o, x)
	if err != nil {
		return nil, w.fail(err)
	}
	return newConjugate(w, w.B, a, p, krylov.Params{Patience: choice.patience(), Review: w.review(1)})
}

func (choice cgChoice) newCG32(w *work, o Operator) (inner, error) {
	x, err := w.placeX32()
	if err != nil {
		return nil, w.fail(err)
	}
	p, err := newPreconditioner(w, w.B32, choice, x)
	var memory *backend.MemoryError
	switch {
	case err != nil && (w.Ctx.Err() != nil || errors.As(err, &memory)):
		return nil, err
	case err != nil:
		w.Mem.Free(x)
		return nil, &accuracyError{fmt.Errorf("no preconditioner in float32: %w", err)}
	}
	a, err := operatorOf(w, w.B32, o, x)
	if err != nil || o.stored() {
		w.Mem.Free(x)
	}
	if outOfRange := new(backend.RangeError); errors.As(err, &outOfRange) {
		if p != nil {
			p.Free()
		}
		return nil, &accuracyError{w.fail(err)}
	}
	if err != nil {
		return nil, w.fail(err)
	}
	limit := w.plan.sizes.innerLimit(o, choice.lambda)
	c, err := newConjugate(w, w.B32, a, p, krylov.Params{Patience: choice.patience(), Limit: limit, Review: w.review(rounds(limit, w.par.tol()))})
	if err != nil {
		return nil, err
	}
	if !o.stored() {
		c.points = x
	}
	return c, nil
}

// conjugate is the inner solver that uses conjugate gradients.
type conjugate[T backend.Float] struct {
	*krylov.Solver[T]
	w     *work
	a     krylov.Operator[T]
	parts []run.Releaser // the preconditioner, which the method release frees

	points backend.Matrix[T] // X, if the operator evaluates the kernel in each product; otherwise nil
}

const (
	// A solve ends when the residual has not decreased for patience iterations, or for the estimated number of
	// iterations if that is larger, up to maxPatience. Ill-conditioned systems often have long plateaus.
	patience    = 500
	maxPatience = 5000
)

// A preconditioner holds memory on the device.
type preconditioner[T backend.Float] interface {
	krylov.Preconditioner[T]
	run.Releaser
}

// review returns a function that gives a reason to end an inner solve if it takes more than twice the planned
// iterations and another method would be faster. solves is the planned number of inner solves. review returns nil
// if there is no other method.
func (w *work) review(solves float64) func(done int, remaining float64) string {
	if w.takeover == 0 {
		return nil
	}
	return func(done int, remaining float64) string {
		remaining *= solves
		switch {
		case float64(done)+remaining <= 2*float64(w.plan.iterations) || remaining*w.plan.step <= w.takeover:
			return ""
		case remaining < 1e6:
			return fmt.Sprintf("after %d iterations, the residual needs about %.0f more, but the plan was %d in total", done, remaining, w.plan.iterations)
		}
		return fmt.Sprintf("after %d iterations, the residual does not decrease, but the plan was %s in total", done, count.Of(w.plan.iterations, "iteration"))
	}
}

func (choice cgChoice) patience() int { return max(patience, min(choice.iterations, maxPatience)) }

// newConjugate returns an inner solver, which frees the operator a and the preconditioner pre. pre may be nil.
func newConjugate[T backend.Float](w *work, b backend.Backend[T], a krylov.Operator[T], pre preconditioner[T], par krylov.Params) (*conjugate[T], error) {
	par.Order, par.Columns, par.Products, par.MaxProducts = w.s.n, w.s.columns(), &w.res.Iters, w.par.maxIter()
	if s := w.checkpointer; s != nil {
		par.Due, par.Save = s.due, func(st krylov.State) error { return s.write(&state{State: st}) }
	}
	c := &conjugate[T]{w: w, a: a}
	if pre != nil {
		c.parts = append(c.parts, pre)
	}
	var err error
	if c.Solver, err = krylov.New(&w.Frame, b, a, krylov.Preconditioner[T](pre), par); err != nil {
		return nil, w.fail(err)
	}
	return c, nil
}

func (c *conjugate[T]) solve(rhs backend.Matrix[float64], goal []float64) error {
	var saved *krylov.State
	if st := c.w.checkpointer.takeState(); st != nil {
		saved = &st.State
	}
	err := c.Solve(rhs, goal, saved)
	var broken *krylov.BreakdownError
	var unsaved checkpointError
	switch {
	case err == nil || errors.As(err, &unsaved):
		return err
	case errors.As(err, &broken):
		return &accuracyError{c.w.fail(err)}
	}
	return c.w.fail(err)
}

func (c *conjugate[T]) direct() bool         { return false }
func (c *conjugate[T]) stopReason() string   { return c.Stopped }
func (c *conjugate[T]) switchToCG() bool     { return false }
func (c *conjugate[T]) endedForFaster() bool { return c.EndedByReview }

func (c *conjugate[T]) product() numeric.Product {
	p, _ := any(c.a).(numeric.Product)
	return p
}

func (c *conjugate[T]) release() {
	c.Free()
	c.a.Free()
	for _, r := range c.parts {
		r.Free()
	}
	if c.points != nil {
		c.w.Mem.Free(c.points)
	}
}

// newPreconditioner computes the preconditioner from x in the precision T. It returns nil for rank 0.
func newPreconditioner[T backend.Float](w *work, b backend.Backend[T], choice cgChoice, x backend.Matrix[T]) (preconditioner[T], error) {
	if choice.Rank == 0 {
		return nil, nil
	}
	var p *lowrank.Preconditioner[T]
	err := w.Timed("factor", &w.res.Seconds.Factor, func() (err error) {
		p, err = lowrank.New(&w.Frame, b, x, lowrank.Params{
			Name: choice.Preconditioner, Kernel: w.s.Kernel, Rank: choice.Rank, Seed: w.par.Seed,
			Shift: w.s.shift(), Columns: min(w.s.columns(), krylov.BlockWidth),
		})
		return err
	})
	if err != nil {
		return nil, w.fail(err)
	}
	if p == nil { // K is 0
		return nil, nil
	}
	w.res.Rank, w.res.Jitter = p.Rank, p.Raised
	return p, nil
}

// Preconditioners returns the valid names for Params.Preconditioner, without "".
func Preconditioners() []string { return append(lowrank.Names(), "none") }

func checkPreconditioner(name string) error {
	if list := Preconditioners(); name != "" && !slices.Contains(list, name) {
		return fmt.Errorf("solvers: no preconditioner is called %q; the preconditioners are %s", name, strings.Join(list, ", "))
	}
	return nil
}

func (z *sizes) samples() lowrank.Samples {
	s := newSamples(z.p)
	list := lowrank.Samples{N: s.n, D: s.d, Kernel: s.Kernel, Lambda: s.Lambda, Weight: s.weightOf, Row: func(dst []float64, i int) {
		s.fill(numeric.Row(dst), s.X, s.meanX, i, false)
	}}
	if s.Sparse != nil {
		list.Sparse = s.positivePoints().Sparse
	}
	return list
}

// taylorEstimates returns the estimates for the Taylor preconditioner, computed at the first call.
func (z *sizes) taylorEstimates(par Params) (list []lowrank.TaylorEstimate, err error) {
	if z.p.Sparse != nil {
		return nil, errors.New("solvers: preconditioner: taylor takes no sparse samples: use rpcholesky")
	}
	if z.taylor == nil {
		if z.taylor, err = lowrank.TaylorEstimates(z.ctx, z.samples(), par.Rank, par.Preconditioner == lowrank.Taylor); err != nil {
			return nil, fmt.Errorf("solvers: preconditioner: taylor does not support the kernel %v: %w: use rpcholesky", z.kernel, err)
		}
	}
	return z.taylor, nil
}

// spectrum returns an estimate of the spectrum of K, computed at the first call.
func (z *sizes) spectrum() *lowrank.Spectrum {
	if z.estimated == nil {
		z.estimated = lowrank.NewSpectrum(z.ctx, z.samples())
	}
	return z.estimated
}
