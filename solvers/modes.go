package solvers

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/internal/krylov"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/nufft"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/spectrum"
)

// Modes is iterative refinement with a kernel of equispaced Fourier modes (Greengard, Rachh and Barnett 2022), for one
// to three features and sums of Gaussian and Matérn kernels with one length scale. Let S be the spectral density of the
// kernel, and T_a a period larger than the range of feature a. The sum over the modes j with |j_a| ≤ m_a is
//
//	k(x, z) ≈ Σ_j S(2πj/T)/∏T_a exp(2πi Σ_a j_a(x_a−z_a)/T_a)
//
// Hence K ≈ ΦΦᴴ with Φ = ED. E has a row for each sample x, a column for each mode j, and the elements exp(2πi Σ_a j_a
// x_a/T_a). D is the diagonal matrix of √(S(2πj/T)/∏T_a). Matérn kernels may be multiplied by a smooth window, which
// changes S (see spectrum.Torus).
//
// The inner solver uses enough modes to make ‖K − ΦΦᴴ‖ a small fraction of λ/max w. With Λ = λW⁻¹, it solves (I +
// ΦᴴΛ⁻¹Φ)β = ΦᴴΛ⁻¹r for a residual r by conjugate gradients, and returns the correction Λ⁻¹(r − Φβ). Products with the
// Toeplitz matrix EᴴΛ⁻¹E take two Fourier transforms.
//
// Residuals are computed with the exact K, unless the larger number of modes that the tolerance needs (outer modes)
// takes less than half the time. With outer modes, 1,000 final residuals are checked with the exact K. An inner solve
// may repeat its correction with residuals from an intermediate number of modes (middle modes).
//
// Auto chooses Modes if its estimated time is below that of every method that computes with K. If Modes converges more
// slowly than estimated, another method replaces it.
const Modes Method = "modes"

// modesChoice is the plan of Modes.
type modesChoice struct {
	spectrum.Density
	spectrum.Torus            // ranges and periods; the last d elements belong to the features
	center         [3]float64 // middle of each range
	inner          nufft.Axes // largest mode indices m_a of the inner solver
	middle, outer  series     // middle modes and outer modes: see Modes
	dense          bool       // transform the inner modes by matrix products
	exact          bool       // compute residuals of α with the exact K rather than outer modes
	gain           float64    // factor by which an inner solve reduces the residual
	tol            float64    // tolerance of the Fourier transforms of the inner modes
	bound          float64    // bound on the error of a kernel value computed from the outer modes
	largest        float64    // estimate of the largest eigenvalue of K
	cutoff         float64    // largest frequency ‖ω‖ of the modes in the preconditioner
	order          int        // order of the preconditioner's Cholesky factor
	maxRemaining   float64    // estimate of the largest eigenvalue of the block of ΦᴴΛ⁻¹Φ for the modes outside the preconditioner
}

// A series is a Fourier series that approximates the kernel. It is empty if m is 0.
type series struct {
	m   nufft.Axes // largest mode indices
	tol float64    // tolerance of the Fourier transforms
}

func (s series) empty() bool { return s.m == nufft.Axes{} }

const (
	// innerContraction is the largest ratio of ‖K − ΦΦᴴ‖ to λ/max w. A step multiplies the residual by this ratio.
	innerContraction = 0.03
	// boxSample is the number of samples that are used to estimate concentration.
	boxSample = 20000
	// checkedRows is the number of rows whose residuals are computed with the exact K.
	checkedRows = 1000
	// lowUnknowns limits the order of the preconditioner's factor.
	lowUnknowns = 3000
	// modesIterations·√(1+g) is the estimated number of iterations of conjugate gradients that multiply a residual
	// by innerContraction, where g is modesChoice.maxRemaining.
	modesIterations = 10
	// modesPerAxis limits the index of a mode.
	modesPerAxis = 1 << 20
	// With at most rigorousModes modes, ‖K − ΦΦᴴ‖ is bounded by n times the largest error of a kernel value. With
	// more modes, it is estimated from the mean density of samples near a sample.
	rigorousModes = 1 << 15
)

// modesSeconds[0] is the time of a Fourier transform and its inverse, in seconds per value of the grid. Spreading
// and interpolating take modesSeconds[1] per sample and modesSeconds[2] for each pair of a sample and a nearby grid
// point. The times were measured on two cores of a Zen 4, 2026-11.
var modesSeconds = [3]float64{6e-8, 8e-8, 8e-10}

func modesEstimate(z *sizes, par Params) (estimate, error) {
	s, ok := spectrum.Of(z.kernel, z.d)
	if z.d > 3 || z.p.Sparse != nil || !ok || len(s.Terms) == 0 {
		return estimate{}, message.Errorf("solvers: modes: needs one to three features and a kernel such as gaussian, matern32 or matern52 with one sigma, or a sum of them, got %s and %v: {use $solver=cg}", features(z.d), z.kernel)
	}
	if z.p.Lambda == 0 {
		return estimate{}, message.Errorf("solvers: modes: lambda must be > 0, got 0: {raise $lambda|use $solver=dual}")
	}
	if err := z.p.checkValues(); err != nil {
		return estimate{}, err
	}
	box := z.box()
	var best estimate
	var err error
	lowest := math.Inf(1)
	for _, variant := range modesWays {
		if !variant.exact && par.Method == Auto && par.NeedsResiduals {
			continue
		}
		choice, e := z.modes(s, par, box, variant.exact, variant.rounds)
		if e != nil {
			err = e
			continue
		}
		candidate := z.modesOf(choice, par)
		// Only residuals by the exact K give proven error bounds of predictions: others must take half the time.
		cost := candidate.cost
		if !variant.exact {
			cost *= 2
		}
		better := best.bytesOf == nil
		if !better {
			bytes, bestBytes := candidate.bytesOf(z.n), best.bytesOf(z.n)
			larger := max(bytes, bestBytes) > z.available
			better = larger && bytes < bestBytes || !larger && cost < lowest
		}
		if better {
			best, lowest = candidate, cost
		}
	}
	if best.bytesOf == nil {
		return best, err
	}
	return best, nil
}

// modesWays lists the ways to compute residuals: by the exact K or not, and after how many rounds with middle modes.
var modesWays = []struct {
	exact  bool
	rounds int
}{{true, 0}, {true, 2}, {true, 1}, {false, 0}, {false, 2}}

// A box holds the range of each feature and its middle. The d features are the last elements of each array.
type box struct {
	length, center [3]float64
	sample         [][3]float64    // up to boxSample samples, relative to the lower ends of the ranges
	concentration  map[int]float64 // cached results of concentrated
}

func (z *sizes) box() *box {
	b := &box{concentration: map[int]float64{}}
	var lower [3]float64
	weighs := func(i int) bool { return z.p.Weights == nil || z.p.Weights[i] > 0 }
	for a := range z.d {
		minimum, maximum := math.Inf(1), math.Inf(-1)
		for i := range z.p.X.Rows {
			if weighs(i) {
				v := z.p.X.Row(i)[a]
				minimum, maximum = min(minimum, v), max(maximum, v)
			}
		}
		lower[3-z.d+a], b.length[3-z.d+a], b.center[3-z.d+a] = minimum, maximum-minimum, minimum/2+maximum/2
	}
	for i := 0; i < z.p.X.Rows; i += (z.p.X.Rows + boxSample - 1) / boxSample {
		if weighs(i) {
			var x [3]float64
			for a, v := range z.p.X.Row(i) {
				q := 3 - z.d + a
				x[q] = v - lower[q]
			}
			b.sample = append(b.sample, x)
		}
	}
	return b
}

// concentrated measures how unevenly the samples are distributed over cells of the box with sides of about h: the
// mean number of other samples in the cell of a random sample, divided by the same mean for an even distribution.
func (b *box) concentrated(h float64) float64 {
	longest, n := max(b.length[0], b.length[1], b.length[2]), float64(len(b.sample))
	level := 0
	for h < longest && level < 20 {
		h, level = 2*h, level+1
	}
	if level == 0 || n < 2 {
		return 1
	}
	if c, ok := b.concentration[level]; ok {
		return c
	}
	cell := longest / float64(int(1)<<level)
	keys := make([]uint64, len(b.sample))
	for i, x := range b.sample {
		for _, v := range x {
			keys[i] = keys[i]<<21 | uint64(v/cell)
		}
	}
	slices.Sort(keys)
	pairs, even := 0.0, n*(n-1)/2
	for i, start := 1, 0; i < len(keys); i++ {
		if keys[i] != keys[start] {
			start = i
		}
		pairs += float64(i - start)
	}
	for _, length := range b.length {
		if length > cell {
			cells := math.Floor(length / cell)
			even *= (cells*cell*cell + (length-cells*cell)*(length-cells*cell)) / (length * length)
		}
	}
	c := max(1, pairs/even)
	if even < 20 && pairs < 20 { // too few pairs of samples in a cell for a reliable ratio
		c = b.concentrated(2 * cell)
	}
	b.concentration[level] = c
	return c
}

// modes chooses the modes for one way in modesWays. It returns an error if an index would exceed modesPerAxis.
func (z *sizes) modes(s spectrum.Density, par Params, b *box, exact bool, rounds int) (c modesChoice, err error) {
	c.Density, c.exact, c.center, c.gain = s, exact, b.center, innerContraction
	smallest := z.p.Lambda
	for _, w := range z.p.Weights {
		smallest = min(smallest, z.p.Lambda/max(w, math.SmallestNonzeroFloat64))
	}
	if rounds > 0 {
		// The factor 0.8 is a margin for errors of the estimated norms.
		c.gain = 0.8 * elementary.Pow(par.tol(), 1/float64(rounds))
	}
	n, variance, length := float64(z.n), s.Kernel(0), b.length
	even := 0.02 * min(innerContraction, c.gain) * smallest / n
	if !exact {
		even = min(even, par.tol()*smallest/math.Sqrt(n)/8)
	}
	c.Torus = s.Wrap(length, even)
	modes := func(omega float64) (m nufft.Axes, err error) {
		for a := 3 - z.d; a < 3; a++ {
			v := math.Ceil(omega * c.Period[a] / (2 * math.Pi))
			if !(v <= modesPerAxis) {
				return m, message.Errorf("solvers: modes: more than %d Fourier modes are needed for a feature of range %.3g and %v: {use $solver=cg|raise $lambda}", modesPerAxis, max(length[0], length[1], length[2]), z.kernel)
			}
			m[a] = int(v)
		}
		return m, nil
	}
	// spread estimates the mean number of samples per unit of volume near a sample, in cubes of side about 2π/omega.
	spread := func(omega float64) float64 {
		v := n * b.concentrated(2*math.Pi/omega)
		for a := 3 - z.d; a < 3; a++ {
			v /= max(length[a], 2*math.Pi/omega)
		}
		return v
	}
	initial := 1 / s.Terms[0].Sigma
	// cutoffFor returns the frequency above which modes may be omitted if ‖K − ΦΦᴴ‖ may be as large as norm.
	cutoffFor := func(norm float64) float64 {
		return spectrum.Decreasing(func(w float64) bool { return max(s.Tail(w, 1), spread(w)*s.At(w)) <= norm }, initial)
	}
	inner := spectrum.Decreasing(func(w float64) bool { return n*s.Tail(w, 1) <= innerContraction*smallest }, initial)
	if m, err := modes(inner); err != nil || float64(m.Half()[0])*float64(m.Half()[1])*float64(m.Half()[2]) > rigorousModes {
		inner = cutoffFor(innerContraction * smallest)
	}
	if c.inner, err = modes(inner); err != nil {
		return c, err
	}
	c.largest = min(n*variance, spread(initial)*s.At(0)) + n*s.Constant
	ratio := c.largest / smallest
	c.tol = max(0.01/max(ratio, 1), 1e-14)
	accurate := func(residual float64) float64 {
		return max(min(c.tol, 0.1*residual*smallest/math.Sqrt(n)/(variance+s.Constant)), 1e-14)
	}
	if rounds > 0 {
		c.middle.tol = accurate(c.gain)
		if c.middle.m, err = modes(max(inner, cutoffFor(c.gain/2*smallest))); err != nil {
			return c, err
		}
	}
	if !exact {
		outer := max(inner, spectrum.Decreasing(func(w float64) bool {
			one := s.Tail(w, 1)
			return math.Sqrt(one*one+spread(w)*s.Tail(w, 2)) <= par.tol()*smallest/4
		}, initial))
		c.outer.tol, c.bound = accurate(par.tol()), s.Tail(outer, 1)+2*float64(z.d)*even
		if c.outer.m, err = modes(outer); err != nil {
			return c, err
		}
	}
	remaining := func(w float64) float64 { return spread(w) * s.At(w) / smallest }
	c.cutoff = min(inner, spectrum.Decreasing(func(w float64) bool { return remaining(w) <= 1 }, initial))
	// The rank of ΦᴴΛ⁻¹Φ is at most n, so that a preconditioner of larger order would not help.
	limit := min(lowUnknowns, max(z.n, 500))
	for c.order = limit + 1; c.order > limit; c.cutoff *= 0.97 {
		c.order = c.lowOrder(c.cutoff, limit)
	}
	c.cutoff /= 0.97
	c.maxRemaining = remaining(c.cutoff)
	return c, nil
}

func (c modesChoice) toeplitz() (m, size nufft.Axes) {
	for a, v := range c.inner {
		m[a] = 2 * v
		size[a] = 4*v + 1
	}
	return m, nufft.SizeOf(m, size)
}

// unknowns is the number of real unknowns of an inner solve.
func (c modesChoice) unknowns() int { return 2 * c.inner.Half().Len() }

// modesOf returns the estimated time and memory of Modes with the choice c.
func (z *sizes) modesOf(c modesChoice, par Params) estimate {
	m, size := c.toeplitz()
	columns := float64(z.columns)
	spread := func(tol float64) float64 {
		return float64(z.n) * (modesSeconds[1] + modesSeconds[2]*elementary.Pow(float64(nufft.Width(tol)), float64(z.d)))
	}
	values := func(m nufft.Axes) float64 { return elementary.Pow(2, float64(z.d)) * 2 * float64(m.Half().Len()) }
	step := modesSeconds[0] * float64(size.Len()) * columns
	// Products of some hundred rows and columns take about twice the time per operation of large products.
	if dense := 2 * 2 * nufft.DenseFlops(c.inner, size) / z.costs().rate * columns; numeric.Wrapper(z.dev) != nil && dense < step {
		step, c.dense = dense, true
	}
	pass := func(terms series) float64 { return modesSeconds[0]*values(terms.m) + spread(terms.tol) }
	setup := pass(series{m, c.tol})
	product := z.gramMulCost(z.t, false) / z.costs().rate
	note := fmt.Sprintf("%s modes, residuals by the exact K", axesText(c.inner, z.d))
	if !c.exact {
		product = float64(z.t) * pass(c.outer)
		note = fmt.Sprintf("%s modes, residuals by %s modes with errors of at most %.2g in the kernel, checked on %d rows", axesText(c.inner, z.d), axesText(c.outer.m, z.d), c.bound, min(checkedRows, z.n))
	}
	rounds := modesRounds(par.tol(), c.gain)
	steps := 1.0 // number of solves by conjugate gradients in one inner solve
	inside := columns * pass(series{c.inner, c.tol})
	if !c.middle.empty() {
		steps = modesRounds(c.gain, innerContraction)
		inside += columns * pass(c.middle)
		note += fmt.Sprintf(", intermediate residuals by %s modes", axesText(c.middle.m, z.d))
	}
	iterations := rounds * steps * modesIterations * math.Sqrt(1+c.maxRemaining)
	rate := z.costs().rate
	flops := 20 * float64(size.Len()) * columns
	return estimate{
		settings:   c,
		iterations: int(iterations),
		step:       step * rate,
		cost:       rate * (setup + iterations*step + rounds*(steps*inside+product)),
		stages:     []stage{{"gram", flops}, {"factor", flop.Potrf(c.order)}, {"solve", flops * iterations}},
		note:       note,
		bytesOf:    func(n int) int64 { return z.modesBytes(c, n) },
	}
}

// modesBytes returns the memory of Modes in bytes: matrices on the device, and the rest in Go memory.
func (z *sizes) modesBytes(c modesChoice, n int) int64 {
	m, size := c.toeplitz()
	unknowns := c.unknowns()
	host := numeric.Total(
		nufft.PlanElements(n, c.inner, c.tol), nufft.PlanElements(n, m, c.tol),
		nufft.Elements(c.inner, size), nufft.DenseElements(c.inner, size), 2*int64(size.Len()), int64(unknowns)*int64(3+2*z.columns),
		numeric.Elements(n, 5+2*z.columns+4*z.t), c.Elements(c.Torus),
	)
	for _, terms := range []series{c.middle, c.outer} {
		if !terms.empty() {
			host = numeric.Total(host, nufft.PlanElements(n, terms.m, terms.tol), 3*int64(terms.m.Half().Len()))
		}
	}
	if !c.middle.empty() {
		host = numeric.Total(host, numeric.Elements(n, 2*z.columns))
	}
	return numeric.Total(z.bytesOfX(n), z.refinedBytes(n), krylov.Bytes[float64](unknowns, z.columns),
		numeric.Bytes(numeric.Elements(unknowns+c.order, z.columns)), numeric.Bytes(numeric.Elements(c.order, c.order)), numeric.Bytes(host))
}

// modesRounds is the estimated number of refinement steps to the relative residual tol if a step multiplies it by gain.
func modesRounds(tol, gain float64) float64 {
	return math.Ceil(elementary.Log(tol) / elementary.Log(min(gain, 0.5)))
}

// axesText formats the numbers of modes as "251×251".
func axesText(m nufft.Axes, d int) (text string) {
	for a := 3 - d; a < 3; a++ {
		if text != "" {
			text += "×"
		}
		text += fmt.Sprint(2*m[a] + 1)
	}
	return text
}

func (c modesChoice) run(w *work) error {
	w.takeover = w.plan.otherCost
	x, err := w.placeX()
	if err != nil {
		return w.fail(err)
	}
	if err := w.refine(x, fallback{method: Modes, make: func() (inner, error) { return w.newModes(c) }}); err != nil || c.exact {
		return err
	}
	return w.checkRows(c, x)
}

// checkRows computes the residuals of up to checkedRows rows with the exact K.
func (w *work) checkRows(c modesChoice, x backend.Matrix[float64]) error {
	s := w.s
	n, res := min(checkedRows, s.n), w.res
	part, fit := backend.NewHost[float64](n, s.d), backend.NewHost[float64](n, s.t)
	alpha, y := backend.NewHost[float64](s.n, s.t), backend.NewHost[float64](1, s.t)
	row := func(i int) int { return int(int64(i) * int64(s.n) / int64(n)) }
	for i := range n {
		s.fill(part.View(i, 0, 1, s.d), s.X, s.meanX, row(i), false)
	}
	for i := range s.n {
		copy(alpha.Row(i), res.Alpha.Row(s.row(i)))
	}
	err := w.Timed("solve", &res.Seconds.Solve, func() error {
		var list [3]backend.Matrix[float64]
		for i, h := range []backend.Host[float64]{part, alpha, fit} {
			var err error
			if list[i], err = w.Mem.New(h.Rows, h.Cols); err != nil {
				return err
			}
			if err := w.B.Upload(list[i], h); err != nil {
				return err
			}
		}
		w.B.GramMul(list[2], s.Kernel, list[0], x, list[1])
		return w.B.Download(fit, list[2])
	})
	if err != nil {
		return w.fail(err)
	}
	shift := s.shift()
	norms, worst := make([]float64, s.t), 0.0
	for i := range n {
		q := row(i)
		s.fill(y, s.Y, nil, q, false)
		for j, v := range y.Row(0) {
			norms[j] = math.Hypot(norms[j], v-fit.Row(i)[j]-shift[min(q, len(shift)-1)]*alpha.Row(q)[j]-res.Intercept[j])
		}
	}
	s.fill(alpha, s.Y, s.meanY, 0, false)
	for j, v := range norms {
		size := numeric.Norm(s.n, func(i int) float64 { return alpha.Row(i)[j] })
		worst = max(worst, numeric.Ratio(v*math.Sqrt(float64(s.n)/float64(n)), size))
	}
	res.Residual, res.Residuals = max(res.Residual, worst), backend.Host[float64]{}
	res.Notes = append(res.Notes, fmt.Sprintf("modes: the relative residual with the exact kernel on %d rows is %.2g", n, worst))
	if !(worst <= w.par.tol()) {
		return &ConvergenceError{Tol: w.par.tol(), Result: res, Reason: fmt.Sprintf("%s Fourier modes do not approximate the kernel well enough", axesText(c.outer.m, s.d))}
	}
	return nil
}

// modal is the inner solver by Fourier modes.
type modal struct {
	*krylov.Solver[float64]
	w    *work
	c    modesChoice
	plan *nufft.Plan // transforms between the samples and the inner modes
	grid interface { // a *nufft.Grid or *nufft.Dense
		Values(dst []float64, f []complex128)
		Modes(f []complex128, values []float64)
	}
	symbol         []float64 // the Fourier series of the Toeplitz matrix EᴴΛ⁻¹E on the grid
	scale          []float64 // diagonal of D (see Modes), divided by √2 for each mode that represents a conjugate pair
	weights        []float64 // diagonal of Λ⁻¹
	values         []float64 // buffer for the values on the grid
	modes          []complex128
	rhs            backend.Matrix[float64]
	preconditioner *lowModes

	middle, outer *approximation // nil if there are no middle or no outer modes
}

// An approximation multiplies by the matrix of a kernel that is given by its Fourier series.
type approximation struct {
	plan *nufft.Plan
	f    []float64 // Fourier coefficients of the kernel
}

// widened is a modal that multiplies by the outer modes instead of the exact K.
type widened struct{ *modal }

func (w *work) newModes(c modesChoice) (inner, error) {
	s := w.s
	m := &modal{w: w, c: c}
	var entries []complex128
	double, size := c.toeplitz()
	err := w.Timed("gram", &w.res.Seconds.Gram, func() error {
		u := backend.NewHost[float64](s.n, s.d)
		s.fill(u, s.X, nil, 0, false)
		for i := range s.n {
			for a, v := range u.Row(i) {
				q := 3 - s.d + a
				u.Row(i)[a] = (v - c.center[q]) / c.Period[q]
			}
		}
		m.weights = make([]float64, s.n)
		shift := s.shift()
		for i := range m.weights {
			m.weights[i] = 1 / shift[min(i, len(shift)-1)]
		}
		ok, err := run.Detached(w.Ctx, func() bool {
			entries = make([]complex128, double.Half().Len())
			nufft.New(u, double, c.tol).Modes(entries, m.weights)
			m.symbol = make([]float64, size.Len())
			nufft.NewGrid(double, size).Values(m.symbol, entries)
			for i := range m.symbol {
				m.symbol[i] /= float64(len(m.symbol))
			}
			m.plan = nufft.New(u, c.inner, c.tol)
			if c.dense {
				m.grid = nufft.NewDense(c.inner, size, w.multiply)
			} else {
				m.grid = nufft.NewGrid(c.inner, size)
			}
			for _, a := range []struct {
				terms  series
				target **approximation
			}{{c.middle, &m.middle}, {c.outer, &m.outer}} {
				if !a.terms.empty() {
					*a.target = &approximation{nufft.New(u, a.terms.m, a.terms.tol), c.Coefficients(c.Torus, a.terms.m)}
				}
			}
			return true
		})
		if !ok {
			return err
		}
		m.values = make([]float64, size.Len())
		m.scale = c.Coefficients(c.Torus, c.inner)
		for index, v := range m.scale {
			m.scale[index] = math.Sqrt(v)
		}
		m.modes = make([]complex128, len(m.scale))
		w.Progress.Done(20 * float64(size.Len()*s.columns()))
		return nil
	})
	if err == nil {
		err = w.Timed("factor", &w.res.Seconds.Factor, func() (err error) {
			m.preconditioner, err = m.newLowModes(entries, double, m.scale)
			return err
		})
	}
	if err != nil {
		return nil, w.fail(err)
	}
	h := c.inner.Half()
	for index := range m.scale {
		if index%h[2] > 0 {
			m.scale[index] /= math.Sqrt2
		}
	}
	order := c.unknowns()
	if m.rhs, err = w.Mem.New(order, s.columns()); err != nil {
		return nil, w.fail(err)
	}
	m.Solver, err = krylov.New(&w.Frame, w.B, krylov.Operator[float64](m), krylov.Preconditioner[float64](m.preconditioner), krylov.Params{
		Order: order, Columns: s.columns(), Products: &w.res.Iters, MaxProducts: w.par.maxIter(), Patience: max(patience, 2*int(modesIterations*math.Sqrt(1+c.maxRemaining))), Review: w.review(modesRounds(w.par.tol(), innerContraction)),
	})
	if err != nil {
		return nil, w.fail(err)
	}
	if c.exact {
		return m, nil
	}
	return widened{m}, nil
}

// multiply implements nufft.Multiply on a device that uses Go memory.
func (w *work) multiply(tA, tB bool, a, b, c backend.Host[float64]) {
	trans := map[bool]backend.Trans{false: backend.NoTrans, true: backend.Transpose}
	wrap := numeric.Wrapper(w.Dev).Wrap
	list := []backend.Matrix[float64]{wrap(a), wrap(b), wrap(c)}
	w.Dev.F64().Gemm(trans[tA], trans[tB], 1, list[0], list[1], 0, list[2])
	numeric.FreeAll(list)
}

// load sets m.modes to m.scale times the coefficients in column j of v, which holds real and imaginary parts. A
// coefficient that represents a pair of conjugate modes has a factor √2.
func (m *modal) load(v backend.Host[float64], j int) {
	for index, d := range m.scale {
		m.modes[index] = complex(d*v.Row(2 * index)[j], d*v.Row(2*index + 1)[j])
	}
}

// store sets column j of v to the products of m.modes and m.scale, in the format that load reads.
func (m *modal) store(v backend.Host[float64], j int) {
	h := m.c.inner.Half()
	for index, d := range m.scale {
		if index%h[2] > 0 {
			d *= 2
		}
		v.Row(2 * index)[j], v.Row(2*index + 1)[j] = d*real(m.modes[index]), d*imag(m.modes[index])
	}
}

// Apply computes q = (I + ΦᴴΛ⁻¹Φ)p. The matrix is I + D(EᴴΛ⁻¹E)D with the matrices D, E and Λ defined at Modes.
func (m *modal) Apply(q, p, _ backend.Matrix[float64]) error {
	rows, columns := p.Dims()
	h := backend.NewHost[float64](rows, columns)
	if err := m.w.B.Download(h, p); err != nil {
		return err
	}
	v := backend.NewHost[float64](rows, 1)
	for j := range columns {
		m.load(h, j)
		m.grid.Values(m.values, m.modes)
		run.Parallel(len(m.symbol), func(first, last int) {
			for i := first; i < last; i++ {
				m.values[i] *= m.symbol[i]
			}
		})
		m.grid.Modes(m.modes, m.values)
		m.store(v, 0)
		for i, add := range v.Data {
			h.Row(i)[j] += add
		}
	}
	m.w.Progress.Done(20 * float64(len(m.values)*columns))
	return m.w.B.Upload(q, h)
}

// solve computes α by conjugate gradients with the inner modes. It then corrects α with residuals by the middle
// modes, if there are any, until the residual is small enough or decreases slowly.
func (m *modal) solve(r backend.Matrix[float64], goal []float64) error {
	w := m.w
	rows, columns := r.Dims()
	h := backend.NewHost[float64](rows, columns)
	if err := w.B.Download(h, r); err != nil {
		return w.fail(err)
	}
	norm := func(j int) float64 { return numeric.Norm(rows, func(i int) float64 { return h.Row(i)[j] }) }
	goals, norms := make([]float64, columns), make([]float64, columns)
	for j := range columns {
		norms[j] = norm(j)
		goals[j] = max(goal[j], m.c.gain/2*norms[j])
	}
	if m.middle == nil {
		if err := m.correct(h, goals); err != nil {
			return err
		}
		return w.failed(w.B.Upload(r, h))
	}
	alpha, delta := backend.NewHost[float64](rows, columns), backend.NewHost[float64](rows, columns)
	for round := 0; round < refineRounds; round++ {
		for i := range rows {
			copy(delta.Row(i), h.Row(i))
		}
		if err := m.correct(delta, goals); err != nil {
			return err
		}
		for i := range rows {
			for j, v := range delta.Row(i) {
				alpha.Row(i)[j] += v
			}
		}
		if m.Stopped != "" {
			break
		}
		if !m.middle.multiply(w.Ctx, delta, func(i, j int, f float64) { h.Row(i)[j] -= f + delta.Row(i)[j]/m.weights[i] }) {
			return w.fail(context.Cause(w.Ctx))
		}
		converged, slow := true, false
		for j, previous := range norms {
			norms[j] = norm(j)
			converged = converged && norms[j] <= goals[j]
			slow = slow || norms[j] > goals[j] && !(norms[j] < previous/2)
		}
		if converged || slow {
			break
		}
	}
	return w.failed(w.B.Upload(r, alpha))
}

func (w *work) failed(err error) error {
	if err != nil {
		return w.fail(err)
	}
	return nil
}

// correct overwrites the residuals h of the samples with corrections of α by the inner modes. They reduce the norm of
// column j of the residual to about the larger of goal[j] and innerContraction times the old norm.
func (m *modal) correct(h backend.Host[float64], goal []float64) error {
	w := m.w
	rows, columns := h.Rows, h.Cols
	b := backend.NewHost[float64](m.c.unknowns(), columns)
	goals := make([]float64, columns)
	column := make([]float64, rows)
	for j := range columns {
		// Φ maps the residual of the unknowns β to the residual of the samples, and ‖Φ‖² ≈ c.largest.
		size := numeric.Norm(rows, func(i int) float64 { return h.Row(i)[j] })
		goals[j] = max(goal[j], innerContraction*size) / math.Sqrt(m.c.largest)
		for i := range column {
			column[i] = h.Row(i)[j] * m.weights[i]
		}
		m.plan.Modes(m.modes, column)
		m.store(b, j)
	}
	rhs := m.rhs.View(0, 0, b.Rows, columns)
	if err := w.B.Upload(rhs, b); err != nil {
		return w.fail(err)
	}
	if err := m.Solve(rhs, goals, nil); err != nil {
		return w.fail(err)
	}
	if err := w.B.Download(b, rhs); err != nil {
		return w.fail(err)
	}
	for j := range columns {
		m.load(b, j)
		m.plan.Values(column, m.modes)
		for i, v := range column {
			h.Row(i)[j] = (h.Row(i)[j] - v) * m.weights[i]
		}
	}
	return nil
}

// multiply calls set(i, j, f) with each element f of the product of v and the kernel matrix of the Fourier series. It
// returns false if the context ends early.
func (a *approximation) multiply(ctx context.Context, v backend.Host[float64], set func(i, j int, f float64)) bool {
	column := make([]float64, v.Rows)
	modes := make([]complex128, len(a.f))
	for j := range v.Cols {
		for i := range column {
			column[i] = v.Row(i)[j]
		}
		ok, _ := run.Detached(ctx, func() bool {
			a.plan.Modes(modes, column)
			for index, f := range a.f {
				modes[index] *= complex(f, 0)
			}
			a.plan.Values(column, modes)
			return true
		})
		if !ok {
			return false
		}
		for i, f := range column {
			set(i, j, f)
		}
	}
	return true
}

func (m *modal) product() numeric.Product { return nil }
func (m *modal) direct() bool             { return false }
func (m *modal) stopReason() string       { return m.Stopped }
func (m *modal) switchToCG() bool         { return false }
func (m *modal) endedForFaster() bool     { return m.EndedByReview }
func (m *modal) Free()                    {}
func (m *modal) release() {
	m.Solver.Free()
	m.w.Mem.Free(m.rhs)
	m.preconditioner.release()
}

func (m widened) multiplyByK(v backend.Host[float64]) {
	m.outer.multiply(m.w.Ctx, v, func(i, j int, f float64) { v.Row(i)[j] = f })
}

// lowModes is the preconditioner for the matrix I + ΦᴴΛ⁻¹Φ (see Modes): the Cholesky factor of the block for the modes
// of lowest frequency, and I for all other modes. If the eigenvalues of the block for the other modes are at most 1+g,
// the condition number of the preconditioned matrix is at most about 4(1+g).
type lowModes struct {
	m      *modal
	list   []lowMode
	factor backend.Matrix[float64]
	column backend.Matrix[float64] // order of factor × number of right-hand sides
}

// A lowMode represents a pair of conjugate modes or, for k = 0, one mode.
type lowMode struct {
	k                [3]int
	index, conjugate int     // indices in modal.scale of the mode and of its conjugate; conjugate is −1 if modal.scale does not list the conjugate
	scale            float64 // the mode's diagonal element of D, times √2 for a pair
}

// lowOrder returns the number of real unknowns for the modes of frequency at most omega, or limit + 1 if it is larger.
func (c modesChoice) lowOrder(omega float64, limit int) int {
	volume := elementary.Pow(omega, float64(c.D)) * [...]float64{2, math.Pi, 4 * math.Pi / 3}[c.D-1]
	for a := 3 - c.D; a < 3; a++ {
		volume *= c.Period[a] / (2 * math.Pi)
	}
	if volume > 4*lowUnknowns {
		return limit + 1
	}
	order := 1
	for range c.modesWithin(omega) {
		if order += 2; order > limit {
			return limit + 1
		}
	}
	return order
}

// modesWithin lists one mode of each conjugate pair whose frequency has a norm above 0 and at most omega.
func (c modesChoice) modesWithin(omega float64) iter.Seq[[3]int] {
	return func(yield func(k [3]int) bool) {
		var limit nufft.Axes
		for a := 3 - c.D; a < 3; a++ {
			limit[a] = min(c.inner[a], int(omega*c.Period[a]/(2*math.Pi)))
		}
		for i := -limit[0]; i <= limit[0]; i++ {
			for j := -limit[1]; j <= limit[1]; j++ {
				for l := 0; l <= limit[2]; l++ {
					k := [3]int{i, j, l}
					if l == 0 && (i < 0 || i == 0 && j <= 0) || c.Frequency(k) > omega {
						continue
					}
					if !yield(k) {
						return
					}
				}
			}
		}
	}
}

// lowModes lists mode 0 and the modes of modesWithin. scale is modal.scale, or nil.
func (c modesChoice) lowModes(omega float64, scale []float64) []lowMode {
	h := c.inner.Half()
	list := []lowMode{{}}
	index := func(k [3]int) int {
		return ((k[0]+c.inner[0])*h[1]+k[1]+c.inner[1])*h[2] + k[2]
	}
	list[0].index, list[0].conjugate = index([3]int{}), -1
	for k := range c.modesWithin(omega) {
		mode := lowMode{k: k, index: index(k), conjugate: -1}
		if k[2] == 0 {
			mode.conjugate = index([3]int{-k[0], -k[1], 0})
		}
		list = append(list, mode)
	}
	if scale != nil {
		for i := range list {
			list[i].scale = scale[list[i].index]
			if i > 0 {
				list[i].scale *= math.Sqrt2
			}
		}
	}
	return list
}

// newLowModes factors the block of the normal equations for the modes of low frequency. scale holds the factor of each
// mode. entries are the Fourier sums of the inverse error variances of the samples, for sums and differences of two
// such modes. Each mode has two unknowns, for its cosine and its sine, and the constant has one.
func (m *modal) newLowModes(entries []complex128, double nufft.Axes, scale []float64) (*lowModes, error) {
	w := m.w
	p := &lowModes{m: m, list: m.c.lowModes(m.c.cutoff, scale)}
	order := 2*len(p.list) - 1
	h := double.Half()
	entry := func(k, l [3]int, sign int) (re, im float64) {
		s := [3]int{k[0] + sign*l[0], k[1] + sign*l[1], k[2] + sign*l[2]}
		flip := s[2] < 0
		if flip {
			s = [3]int{-s[0], -s[1], -s[2]}
		}
		f := entries[((s[0]+double[0])*h[1]+s[1]+double[1])*h[2]+s[2]]
		if flip {
			return real(f), -imag(f)
		}
		return real(f), imag(f)
	}
	var err error
	if p.factor, err = w.Mem.New(order, order); err != nil {
		return nil, err
	}
	if p.column, err = w.Mem.New(order, w.s.columns()); err != nil {
		return nil, err
	}
	two := backend.NewHost[float64](2, order)
	for i, a := range p.list {
		clear(two.Data)
		cosine, sine := two.Row(0), two.Row(1)
		for j, b := range p.list[:i+1] {
			f := a.scale * b.scale / 2
			re, im := entry(a.k, b.k, -1)
			re2, im2 := entry(a.k, b.k, 1)
			column := 2*j - 1
			if j == 0 {
				cosine[0], sine[0] = f*(re+re2), f*(im+im2)
				continue
			}
			cosine[column], cosine[column+1] = f*(re+re2), f*(im2-im)
			sine[column], sine[column+1] = f*(im2+im), f*(re-re2)
		}
		row, rows := max(2*i-1, 0), min(i+1, 2)
		cosine[row]++
		if rows == 2 {
			sine[row+1]++
		}
		if err := w.B.Upload(p.factor.View(row, 0, rows, order), two.View(0, 0, rows, order)); err != nil {
			return nil, err
		}
	}
	return p, w.B.Potrf(backend.Lower, p.factor)
}

// Apply computes z = M⁻¹r for the matrix M of the preconditioner.
func (p *lowModes) Apply(z, r backend.Matrix[float64]) error {
	w := p.m.w
	rows, columns := r.Dims()
	h, unknowns := backend.NewHost[float64](rows, columns), backend.NewHost[float64](2*len(p.list)-1, columns)
	if err := w.B.Download(h, r); err != nil {
		return err
	}
	// If mode.k[2] is 0, r has elements for both modes of a conjugate pair, without the factor √2.
	eachLow(p.list, func(mode lowMode, from, to int, sign float64) {
		v, dst := h.Row(from), unknowns.Row(to)
		for j := range columns {
			if dst[j] = v[j]; mode.conjugate >= 0 {
				dst[j] = (v[j] + sign*h.Row(from + 2*(mode.conjugate-mode.index))[j]) / math.Sqrt2
			}
		}
	})
	column := p.column.View(0, 0, unknowns.Rows, columns)
	if err := w.B.Upload(column, unknowns); err != nil {
		return err
	}
	w.B.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, p.factor, column)
	w.B.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, p.factor, column)
	if err := w.B.Download(unknowns, column); err != nil {
		return err
	}
	eachLow(p.list, func(mode lowMode, to, from int, sign float64) {
		v, dst := unknowns.Row(from), h.Row(to)
		for j := range columns {
			if dst[j] = v[j]; mode.conjugate >= 0 {
				dst[j] = v[j] / math.Sqrt2
				h.Row(to + 2*(mode.conjugate-mode.index))[j] = sign * dst[j]
			}
		}
	})
	return w.B.Upload(z, h)
}

// eachLow calls f for the real and the imaginary part of each Fourier mode in list. index is the row of this part
// in the vector of all modes, and lowIndex its row in the factored system. sign is −1 for imaginary parts.
func eachLow(list []lowMode, f func(mode lowMode, index, lowIndex int, sign float64)) {
	for i, mode := range list {
		f(mode, 2*mode.index, max(2*i-1, 0), 1)
		if i > 0 {
			f(mode, 2*mode.index+1, 2*i, -1)
		}
	}
}

func (p *lowModes) release() {
	p.m.w.Mem.Free(p.factor)
	p.m.w.Mem.Free(p.column)
}
