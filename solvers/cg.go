package solvers

import (
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/run"
)

// CG is block conjugate gradients, preconditioned by a low-rank approximation of
// K: O(n²) time for an iteration when K is stored, O(n²d) when it is not, and
// then no memory that grows faster than n. With a kernel a·xᵀz + c that is O(nd)
// (affine.go).
const CG Method = "cg"

// cgChoice is how cg goes about a problem.
type cgChoice struct {
	Operator   Operator
	Rank       int
	iterations int // about, in all
}

// cgEstimate chooses how K is kept and the rank, by the estimated spectrum.
func cgEstimate(z *sizes, par Params) (estimate, error) {
	if err := z.soluble(CG); err != nil {
		return estimate{}, err
	}
	list := operators
	if par.Operator != OperatorAuto {
		list = []Operator{par.Operator}
	}
	var best, least estimate
	for _, o := range list {
		if o == Fixed16 {
			switch err := z.fixedError(); {
			case err != nil && par.Operator == Fixed16:
				return estimate{}, err
			case err != nil || par.Operator == OperatorAuto && !(fixedMargin*z.contraction(o) < 1):
				continue
			}
		}
		if par.Operator == OperatorAuto && o.single() && !z.singleEnough() {
			continue
		}
		for _, rank := range z.ranks(par) {
			e := z.cgEstimate(o, rank, par)
			need := e.bytesOf(z.n)
			if need <= z.available && (best.bytesOf == nil || e.cost < best.cost) {
				best = e
			}
			if least.bytesOf == nil || need < least.bytesOf(z.n) {
				least = e
			}
		}
	}
	if best.bytesOf == nil {
		best = least
	}
	return best, nil
}

// fixedMargin is how far below 1 the contraction of Fixed16 has to be to be chosen. A step
// then leaves at most 3/fixedMargin of the residual: what the rounding of K does, and what
// the inner solver leaves, innerLimit. One that divides it by less than fixedGain shows
// roundings that are not like noise, and that the plan's estimate is wrong.
const fixedMargin, fixedGain = 20, 4

// singleEnough reports whether λ stands out of the rounding of products in
// float32: 2⁻²³ of the norm of K, and with many rows less by √n, since the signs
// of the roundings differ. 32 is a margin, so that a refinement gains a digit.
func (z *sizes) singleEnough() bool {
	margin := 32 * min(1, 32/math.Sqrt(float64(z.n)))
	return z.p.Lambda > margin*epsilonSingle*z.spectrum().largest()
}

// ranks lists those among which the cheapest is taken.
func (z *sizes) ranks(par Params) []int {
	switch {
	case par.Preconditioner == "none":
		return []int{0}
	case par.Rank > 0:
		return []int{min(par.Rank, z.n)}
	}
	list := []int{0}
	for k := 32; k <= min(z.n/2, 8192); k += k / 2 {
		list = append(list, k)
	}
	return list
}

// cgEstimate is that of one choice.
func (z *sizes) cgEstimate(o Operator, rank int, par Params) estimate {
	checks := z.rounds(o, par.tol())
	its := z.spectrum().iterations(rank, par.tol())
	if o.single() { // each round begins anew
		its = int(checks) * z.spectrum().iterations(rank, math.Pow(par.tol()/4, 1/checks))
	}
	n, c := float64(z.n), min(z.columns, blockWidth)
	k, device := float64(rank), z.costs()
	product, flops := z.productCost(c, o.single()), z.productFlops(z.columns)
	gram, gramFlops := 0.0, 0.0
	if o.stored() {
		product, flops = z.symmCost(c, o), backend.SymmFlops(z.n, z.columns)
		gram, gramFlops = z.storedCost(o), backend.GramFlops(z.n, z.n, z.d, true)
	}
	check, checkFlops := z.residualCost(), z.residualFlops()
	if o == Stored64 && !z.linear {
		check, checkFlops = z.symmCost(z.t, o), backend.SymmFlops(z.n, z.t)
	}
	rate, values, size := 1.0, 1.0, 8.0
	if o.single() {
		rate, values, size = z.rates().Single, z.rates().Values, 4
	}
	// F is made by products of half of its columns with the rest, and FᵀF takes as much
	// again; 1.4 is what blocks of some hundred columns are slower. Pivots are found on
	// the host, from F's columns, and their rows are fetched one by one.
	factor := 1.4*2*n*k*k/rate + 3*k*k*k + k*device.fetch +
		n*k*((2*float64(z.d)*device.feature+2*device.value)/values+size*device.freshByte+device.host)
	// F goes through memory twice in a step.
	step := product + n*k*(2*size*device.readByte+4*float64(c-1)/rate) + device.step
	blocks := math.Ceil(float64(z.columns) / blockWidth)
	e := estimate{
		choice: cgChoice{Operator: o, Rank: rank, iterations: its},
		cost:   device.look + gram + factor + blocks*float64(its)*step + checks*check,
		stages: []stage{
			{"factor", 2*n*k*k + 2*n*k*float64(z.d)},
			{"gram", gramFlops},
			{"solve", float64(its)*(flops+4*n*k*float64(z.columns)) + checks*checkFlops},
		},
		bytesOf: func(n int) int64 { return z.cgBytes(o, par.preconditioner(), min(rank, n), n) },
		note:    fmt.Sprintf("%s, rank %d, about %s", z.textOf(o), rank, count.Of(its, "iteration")),
	}
	return e
}

// innerLimit is what one inner solve of o takes a residual down to, relative: 0 where
// that is the goal.
func (z *sizes) innerLimit(o Operator) float64 {
	switch {
	case o == Fixed16:
		return min(0.5, max(2e-5, 2*z.contraction(o)))
	case o.single():
		return 2e-5
	}
	return 0
}

// rounds is how many inner solves of o take a residual to the tolerance.
func (z *sizes) rounds(o Operator, tol float64) float64 {
	if !o.single() {
		return 1
	}
	return max(1, math.Ceil(math.Log(tol/4)/math.Log(z.innerLimit(o))))
}

// cgBytes: X, the outer loop, and the most of what is there together while the
// preconditioner is made, while the operator is, and while both are used.
func (z *sizes) cgBytes(o Operator, name string, rank, n int) int64 {
	c := min(z.columns, blockWidth)
	make, keep := int64(0), int64(0)
	if rank > 0 {
		if o.single() {
			make, keep = lowRankBytes[float32](name, n, rank, z.d, c)
			make = sum(make, elementBytes[float32](elements(n, z.d)))
		} else {
			make, keep = lowRankBytes[float64](name, n, rank, z.d, c)
		}
	}
	operator := operatorBytes(z, o, n)
	stays := operator
	if o.single() && o.stored() {
		stays -= elementBytes[float32](elements(n, z.d))
	}
	block := conjugateBytes[float64](n, z.columns)
	if o.single() {
		block = conjugateBytes[float32](n, z.columns)
	}
	largest := max(make, add(keep, operator), sum(keep, stays, block))
	return sum(z.place(n), z.refinedBytes(n), largest)
}

// cg solves by conjugate gradients; in float64 when float32 does not do and
// neither was asked for. Where the rank is not given either, the last fallback is the
// factor in float64: with λ near the rounding of K, and eigenvalues that fall to there
// without a gap, as those of a Gaussian kernel do, no rank below n makes the condition
// small, and the residuals of cg end far above what rounding the solution to float64
// costs.
func (w *work) cg() error {
	choice := w.plan.choice.(cgChoice)
	var err error
	if w.checkpointer, err = newCheckpointer(w, [2]any{choice.Operator, choice.Rank}); err != nil {
		return err
	}
	x, err := w.placeX()
	if err != nil {
		return w.fail(err)
	}
	fallbacks := []fallback{w.conjugateFallback(choice.Operator, choice.Rank, x)}
	if choice.Operator == Fixed16 && w.par.Operator == OperatorAuto {
		fallbacks[0].gain = fixedGain
		single := Unstored32
		if w.plan.sizes.cgBytes(Stored32, w.par.preconditioner(), choice.Rank, w.s.n) <= w.plan.available {
			single = Stored32
		}
		fallbacks = append(fallbacks, w.conjugateFallback(single, choice.Rank, x))
	}
	if choice.Operator.single() && w.par.Operator == OperatorAuto {
		double := Unstored64
		if w.plan.sizes.cgBytes(Stored64, w.par.preconditioner(), choice.Rank, w.s.n) <= w.plan.available {
			double = Stored64
		}
		if w.plan.sizes.cgBytes(double, w.par.preconditioner(), choice.Rank, w.s.n) <= w.plan.available {
			fallbacks = append(fallbacks, w.conjugateFallback(double, choice.Rank, x))
		}
	}
	if w.par.Operator == OperatorAuto && w.par.Rank == 0 && w.par.Preconditioner == "" {
		fallbacks = w.withDirect(x, fallbacks)
	}
	return w.refine(x, fallbacks...)
}

// conjugateFallback is conjugate gradients with one way to keep K.
func (w *work) conjugateFallback(o Operator, rank int, x backend.Matrix[float64]) fallback {
	return fallback{method: CG, text: "cg, " + w.plan.sizes.textOf(o), make: func() (inner, error) {
		columns := w.s.t
		if w.s.bordered() {
			columns++
		}
		if o.single() {
			return w.newCG32(o, rank, columns)
		}
		return w.newCG64(o, rank, columns, x)
	}}
}

func (w *work) newCG64(o Operator, rank, columns int, x backend.Matrix[float64]) (inner, error) {
	p, err := newPreconditioner(w, w.B, rank, columns, x)
	if err != nil {
		return nil, err
	}
	a, err := w.operator64(o, x)
	if err != nil {
		return nil, err
	}
	c, err := newConjugate64(w, a, columns)
	if err != nil {
		return nil, w.fail(err)
	}
	c.precede(p)
	return c, nil
}

func (w *work) newCG32(o Operator, rank, columns int) (inner, error) {
	x, err := w.placeX32()
	if err != nil {
		return nil, w.fail(err)
	}
	p, err := newPreconditioner(w, w.B32, rank, columns, x)
	var short *backend.MemoryError
	switch {
	case err != nil && (w.Ctx.Err() != nil || errors.As(err, &short)):
		return nil, err
	case err != nil:
		w.Mem.Free(x)
		return nil, &accuracyError{fmt.Errorf("no preconditioner in float32: %w", err)}
	}
	var a operator[float32]
	err = w.Timed("gram", &w.res.Seconds.Gram, func() (err error) {
		a, err = newOperator32(w, o, x)
		return err
	})
	if beyond := new(backend.RangeError); errors.As(err, &beyond) {
		if p != nil {
			for _, m := range append(p.made(), p.own) {
				w.Mem.Free(m)
			}
		}
		return nil, &accuracyError{w.fail(err)}
	}
	if err != nil {
		return nil, w.fail(err)
	}
	c, err := newConjugate32(w, a, columns, w.plan.sizes.innerLimit(o))
	if err != nil {
		return nil, w.fail(err)
	}
	c.precede(p)
	return c, nil
}

// operator64 makes the operator; that of a stored one is a stage of the work.
func (w *work) operator64(o Operator, x backend.Matrix[float64]) (a operator[float64], err error) {
	if !o.stored() {
		return newOperator(w, o, x)
	}
	err = w.Timed("gram", &w.res.Seconds.Gram, func() (err error) {
		a, err = newOperator(w, o, x)
		return err
	})
	if err != nil {
		return nil, w.fail(err)
	}
	return a, nil
}

// newPreconditioner returns nil for rank 0. It is made in the precision in which it is
// used, from x in that precision.
func newPreconditioner[T backend.Float](w *work, b backend.Backend[T], rank, columns int, x backend.Matrix[T]) (*lowRank[T], error) {
	if rank == 0 {
		return nil, nil
	}
	var p *lowRank[T]
	err := w.Timed("factor", &w.res.Seconds.Factor, func() error {
		f, err := run.NewMatrix(w.Mem, b, w.s.n, rank)
		if err != nil {
			return err
		}
		task := lowRankTask[T]{ctx: w.Ctx, b: b, mem: w.Mem, kernel: w.s.Kernel, x: x, seed: w.par.Seed}
		got, left, err := lowRankMakers[T]()[w.par.preconditioner()](task, f)
		if err != nil {
			w.Mem.Free(f)
			return err
		}
		if got == 0 { // K is 0
			w.Mem.Free(f)
			return nil
		}
		w.res.Rank = got
		p, w.res.Jitter, err = newLowRank(w.Mem, w.Dev, w.B, b, f, got, w.s.shift(), left, min(columns, blockWidth))
		return err
	})
	if err != nil {
		return nil, w.fail(err)
	}
	return p, nil
}
