package solvers

import (
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/internal/krylov"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/precision"
	"github.com/mercer-go/mercer/internal/run"
)

// Mixed is Cholesky of K + λW⁻¹ in float32, with corrections in float64, which make the residual as small as with a
// factor in float64. The corrections are steps of iterative refinement while each step reduces the residual by a factor
// of 10, and then conjugate gradients with the factor as the preconditioner, which converge for condition numbers above
// 10⁷, too. If a pivot is negative because of rounding errors, Mixed factors K + (λ+δ)W⁻¹ with a small δ.
//
// On a device with products of reduced precision (backend.ReducedBackend), Mixed uses these products for the factor
// when λ is well above their rounding error, and float32 if they fail.
const Mixed Method = "mixed"

// mixedSteps limits the iterations with one factor. More iterations would take longer than a factor in float64.
const mixedSteps = 60

type mixedChoice struct {
	Operator Operator
	Reduced  bool // whether the factor has reduced precision
}

func mixedEstimate(z *sizes, par Params) (estimate, error) {
	if err := z.soluble(Mixed); err != nil {
		return estimate{}, err
	}
	if par.Operator.single() {
		return estimate{}, fmt.Errorf("solvers: mixed: the method needs an operator in float64, and %q has less precision: use %q, %q or the method cg", par.Operator, Stored64, Unstored64)
	}
	list := []Operator{Unstored64, Stored64}
	if par.Operator != OperatorAuto {
		list = []Operator{par.Operator}
	}
	factors := []bool{false}
	reduced := numeric.ReducedUnit(z.dev.F32()) > 0
	switch forced := precision.Forced(); {
	case forced == precision.Reduced && !reduced:
		return estimate{}, fmt.Errorf("solvers: mixed: the device %s has no products of reduced precision", z.dev.Info().Device)
	case forced == precision.Reduced:
		factors = []bool{true}
	case forced == precision.Auto && reduced:
		factors = []bool{false, true}
	}
	var best estimate
	for _, reduced := range factors {
		for _, o := range list {
			e := z.mixedEstimate(o, reduced, par)
			if best.bytesOf == nil || e.cost < best.cost && e.bytesOf(z.n) <= z.available {
				best = e
			}
		}
	}
	return best, nil
}

// mixedEstimate returns the estimate for the operator o and a factor of reduced precision or in float32.
func (z *sizes) mixedEstimate(o Operator, reduced bool, par Params) estimate {
	// The computed factor L has the error E = LLᵀ − K − λW⁻¹. Its elements have random signs and the relative size
	// unit, so that ‖E‖ is about unit·‖K‖/√n; the factor 4 is a margin. If ‖E‖ exceeds the smallest eigenvalue of
	// K + λW⁻¹, the factorization in float32 needs a shift of the diagonal larger than ‖E‖.
	unit, rate := factorUnit(z.dev.F32(), reduced), z.rates().Single
	if reduced {
		rate = z.rates().Reduced
	}
	root := math.Sqrt(float64(z.n))
	rounding, minEigenvalue := 4*unit*z.spectrum().Largest()/root, z.p.Lambda+z.spectrum().Smallest()
	if jitter := unit * root * z.spectrum().Mean(); !reduced && rounding > minEigenvalue && jitter > 0 {
		for ; jitter < rounding && jitter < 1e4*minEigenvalue; jitter *= 10 {
		}
		rounding += jitter
	}
	condition := 1 + rounding/minEigenvalue
	iterations := factorIterations(condition, par.tol())
	switch {
	case reduced && iterations > mixedSteps/2:
		iterations = 2e6 // the factorization would fail: this cost makes Mixed choose float32
	case reduced && z.rates().Bytes == 0:
		// On a CPU, the estimate omits the factor 4: it then differed from the measured number of iterations by at most
		// two for n = 8,000, a Gaussian kernel, 8, 20 and 50 features, and λ = 0.001.
		condition = 1 + rounding/4/minEigenvalue
		iterations = factorIterations(condition, par.tol())
	}
	if !o.stored() && condition < 1.1 {
		// Refinement alone suffices.
		iterations = max(1, math.Ceil(elementary.Log(1/par.tol())/elementary.Log(1/(condition-1))))
	}
	product, flops, gram := z.productCost(z.columns, false), z.productFlops(z.columns), 0.0
	single, narrows := z.storedCost(Stored32), false
	if o.stored() {
		product, flops, gram = z.symmCost(z.columns, Stored64), flop.Symm(z.n, z.columns), z.storedCost(Stored64)
		if _, narrows = z.dev.(backend.PackedNarrower); narrows {
			single -= z.gramCost(true)
		}
	}
	device, solve := z.costs(), z.solveCost(z.columns, true)
	if reduced && device.reducedRow < device.solveRow {
		solve += (device.reducedRow - device.solveRow) * float64(z.n)
		single += device.solveRow / 2 * float64(z.n) // cost of inverting the factor's diagonal blocks
	}
	e := estimate{
		settings:   mixedChoice{o, reduced},
		iterations: int(iterations), step: product + solve + device.step,
		cost: device.look + single + gram + z.potrfCost(rate) + iterations*(product+solve+device.step),
		stages: []stage{
			{"gram", z.gramFlops()},
			{"factor", flop.Potrf(z.n)},
			{"solve", iterations * (flops + 2*flop.Trsm(z.n, z.columns))},
		},
		bytesOf: func(n int) int64 {
			factor := numeric.SymmetricBytes(z.dev.F32(), n)
			points := copied(z, z.dev.F32(), n)
			if narrows {
				points = 0
			}
			c := min(z.columns, krylov.BlockWidth)
			block := numeric.Total(krylov.Bytes[float64](n, z.columns), numeric.ElementBytes[float32](numeric.Elements(n, c)))
			return numeric.Total(z.bytesOfX(n), z.refinedBytes(n), factor, operatorBytes(z, o, n), max(points, block))
		},
		note: fmt.Sprintf("%s, about %s", z.textOf(o), count.Of(int(iterations), "iteration")),
	}
	if o.stored() && !narrows {
		e.stages[0].flops *= 2
	}
	if reduced {
		e.note = "a factor of reduced precision, " + e.note
	}
	return e
}

// factorUnit is the rounding error of an element of the factor.
func factorUnit(b backend.Backend[float32], reduced bool) float64 {
	if reduced {
		return 2 * numeric.ReducedUnit(b)
	}
	return numeric.EpsilonSingle
}

// factorIterations is the number of iterations of conjugate gradients that reduce the residual by the factor tol.
func factorIterations(condition, tol float64) float64 {
	root := math.Sqrt(condition)
	iterations := max(2, math.Ceil(elementary.Log(1/tol)/elementary.Log((root+1)/(root-1))))
	if !(iterations < 1e6) {
		iterations = 1e6
	}
	return iterations
}

// run uses the factor in float32 and, if it fails and memory suffices, continues with the factor in float64.
func (choice mixedChoice) run(w *work) error {
	var err error
	if w.checkpointer, err = newCheckpointer(w, choice); err != nil {
		return err
	}
	x, err := w.placeX()
	if err != nil {
		return w.fail(err)
	}
	var fallbacks []fallback
	if choice.Reduced {
		fallbacks = append(fallbacks, fallback{method: Mixed, text: "the factor of reduced precision", make: func() (inner, error) { return w.newMixed(choice.Operator, true, x) }})
	}
	if !choice.Reduced || precision.Forced() == precision.Auto {
		fallbacks = append(fallbacks, fallback{method: Mixed, text: "the factor in float32", make: func() (inner, error) { return w.newMixed(choice.Operator, false, x) }})
	}
	return w.refine(x, w.withDirect(x, fallbacks)...)
}

func (w *work) newMixed(o Operator, reduced bool, x backend.Matrix[float64]) (inner, error) {
	a, err := operatorOf(w, w.B, o, x)
	if err != nil {
		return nil, w.fail(err)
	}
	factor, err := w.factor32(reduced, a)
	if err != nil {
		a.Free()
		return nil, err
	}
	p := &singleFactor{w: w, a: factor}
	if p.t, err = run.NewMatrix(w.Mem, w.B32, w.s.n, min(w.s.columns(), krylov.BlockWidth)); err != nil {
		return nil, w.fail(err)
	}
	c, err := newConjugate(w, w.B, a, p, krylov.Params{MaxSteps: mixedSteps, Patience: patience, Review: w.review(1)})
	if err != nil {
		return nil, err
	}
	return &corrector{conjugate: c, factor: p, strong: o.stored() || w.checkpointer.restored() != nil}, nil
}

// corrector is an inner solver. It applies the factor alone while each step reduces the residual by a factor of 10,
// and then uses conjugate gradients preconditioned by the factor.
type corrector struct {
	*conjugate[float64]
	factor *singleFactor
	strong bool
}

func (c *corrector) solve(r backend.Matrix[float64], goal []float64) error {
	if c.strong {
		return c.conjugate.solve(r, goal)
	}
	n, columns := r.Dims()
	for first := 0; first < columns; first += krylov.BlockWidth {
		block := r.View(0, first, n, min(krylov.BlockWidth, columns-first))
		if err := c.factor.Apply(block, block); err != nil {
			return c.w.fail(err)
		}
	}
	c.w.res.Iters++ // the refinement computes the residual with one product
	return nil
}

func (c *corrector) switchToCG() bool {
	was := c.strong
	c.strong = true
	return !was
}

// factor32 returns the Cholesky factor of K + (λ+δ)W⁻¹ in float32. δ is 0 at first, the rounding error of float32
// or of reduced products after a failed pivot, and ten times larger after each further failure. If operator stores
// K in float64 and the device can round K to float32, factor32 does not evaluate K again.
func (w *work) factor32(reduced bool, operator krylov.Operator[float64]) (numeric.Symmetric[float32], error) {
	s := w.s
	var narrow func(a numeric.Symmetric[float32]) error
	if stored := krylov.StoredBy(operator); stored != nil {
		narrow = numeric.Narrowing(w.Dev, stored)
	}
	var x backend.Matrix[float32]
	var err error
	if narrow == nil {
		if x, err = w.placeX32(); err != nil {
			return nil, w.fail(err)
		}
		defer w.Mem.Free(x)
	}
	a, err := newFactored(w, w.B32, s.n)
	if err != nil {
		return nil, w.fail(err)
	}
	delta, unit, name := 0.0, factorUnit(w.B32, reduced), "float32"
	if reduced {
		name = "reduced precision"
	}
	for {
		err = w.Timed("gram", &w.res.Seconds.Gram, func() error {
			if narrow != nil {
				if err := narrow(a); err != nil {
					return err
				}
				a.AddDiag([]float32{float32(delta)})
				return nil
			}
			a.Gram(s.Kernel, x)
			shift := make([]float32, 0, 1)
			for _, v := range s.shift() {
				shift = append(shift, float32(v+delta))
			}
			a.AddDiag(shift)
			return nil
		})
		if err != nil {
			return nil, w.fail(err)
		}
		diagonal, err := a.Diagonal()
		if err != nil {
			return nil, w.fail(err)
		}
		err = w.Timed("factor", &w.res.Seconds.Factor, func() error { return a.Factor(reduced) })
		if err == nil {
			w.res.Jitter = delta
			return a, nil
		}
		if !errors.Is(err, backend.ErrNotPosDef) {
			if reduced && errors.Is(err, errors.ErrUnsupported) { // the library of the device has no products of reduced precision
				w.Mem.Free(a)
				return nil, &accuracyError{w.fail(err)}
			}
			return nil, w.fail(err)
		}
		largest := 0.0
		for _, v := range diagonal {
			largest = max(largest, float64(v)-delta)
		}
		minDelta := unit * math.Sqrt(float64(s.n)) * largest
		delta = max(10*delta, minDelta)
		// If δ is far above λ, the factor does not approximate K + λW⁻¹ for small eigenvalues.
		if !(minDelta > 0 && delta <= 1e4*minDelta && delta <= 1e4*s.Lambda) {
			w.Mem.Free(a)
			return nil, &accuracyError{fmt.Errorf("solvers: mixed: K + λI has no factor in %s (%w)", name, err)}
		}
	}
}

// singleFactor is a preconditioner: it solves with a Cholesky factor in float32.
type singleFactor struct {
	w *work
	a numeric.Symmetric[float32]
	t backend.Matrix[float32] // n×c, the right-hand sides rounded to float32
}

func (p *singleFactor) Free() {
	p.w.Mem.Free(p.a)
	p.w.Mem.Free(p.t)
}

func (p *singleFactor) Apply(z, r backend.Matrix[float64]) error {
	n, c := r.Dims()
	t := p.t.View(0, 0, n, c)
	if err := p.w.B.Sync(); err != nil {
		return err
	}
	p.w.Dev.Narrow(t, r)
	if err := p.w.Dev.Sync(); err != nil {
		return err
	}
	p.a.Solve(t)
	if err := p.w.B32.Sync(); err != nil {
		return err
	}
	p.w.Dev.Widen(z, t)
	return p.w.Dev.Sync()
}

// OutOfCore is Dual with the factor in the memory of the host, for a device whose memory is too small for K. On a
// device that is at least four times as fast in float32 as in float64, it is Mixed with the factor in the memory of the
// host, and evaluates K again for every product.
const OutOfCore Method = "outofcore"

type outOfCoreChoice struct{ Single bool }

func outOfCoreEstimate(z *sizes, par Params) (estimate, error) {
	if err := z.soluble(OutOfCore); err != nil {
		return estimate{}, err
	}
	b64, ok := z.dev.F64().(backend.HostPackedBackend[float64])
	b32, ok32 := z.dev.F32().(backend.HostPackedBackend[float32])
	if !ok || !ok32 {
		return estimate{}, fmt.Errorf("solvers: outofcore: the device %s uses the memory of the host: use %q", z.dev.Info().Device, Dual)
	}
	single := precision.Forced() == precision.Single || z.rates().Single >= 4
	bytesOf := func(n int) (device, host int64) {
		if single {
			return b32.HostPackedBytes(n)
		}
		return b64.HostPackedBytes(n)
	}
	if free := b64.HostFree(); exceedsHost(bytesOf, z.n, free) {
		_, host := bytesOf(z.n)
		return estimate{}, &BudgetError{
			Method: OutOfCore, Rows: z.n, Needed: host, Available: free, Host: true,
			Largest: sort.Search(z.n, func(n int) bool { return exceedsHost(bytesOf, n+1, free) }),
		}
	}
	e := z.dualEstimate(false)
	if single {
		e = z.mixedEstimate(Unstored64, false, par)
	}
	bytesInCore := e.bytesOf
	e.settings, e.note = outOfCoreChoice{single}, "the factor in float64"
	if single {
		e.note = "the factor in float32"
	}
	e.bytesOf = func(n int) int64 {
		device, _ := bytesOf(n)
		stored := numeric.SymmetricBytes(z.dev.F64(), n)
		if single {
			stored = numeric.SymmetricBytes(z.dev.F32(), n)
		}
		return numeric.Total(bytesInCore(n)-stored, device)
	}
	// The factor is copied to the device once to compute it and twice for each solve, which is slow.
	e.cost *= 1.3
	stored := Stored64
	if single {
		stored = Stored32
	}
	e.cost += 100 * z.symmCost(1, stored)
	return e, nil
}

// exceedsHost reports whether n rows take more host memory than the given number of free bytes.
func exceedsHost(bytesOf func(n int) (device, host int64), n int, free int64) bool {
	_, host := bytesOf(n)
	return host > free || host == math.MaxInt64
}

func (choice outOfCoreChoice) run(w *work) error {
	w.onHost = true
	x, err := w.placeX()
	if err != nil {
		return w.fail(err)
	}
	if !choice.Single {
		return w.refine(x, w.direct(x, false))
	}
	if w.checkpointer, err = newCheckpointer(w, choice); err != nil {
		return err
	}
	fallbacks := []fallback{{method: OutOfCore, text: "the factor in float32", make: func() (inner, error) { return w.newMixed(Unstored64, false, x) }}}
	b, z := w.B.(backend.HostPackedBackend[float64]), w.plan.sizes
	device, host := b.HostPackedBytes(w.s.n)
	if numeric.Total(z.bytesOfX(w.s.n), z.refinedBytes(w.s.n), device) <= w.plan.available && host <= b.HostFree() {
		fallbacks = append(fallbacks, w.direct(x, false))
	}
	return w.refine(x, fallbacks...)
}
