package solvers

import (
	"fmt"
	"math"

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

// Modes is iterative refinement with a kernel of equispaced Fourier modes (Greengard, Rachh and Barnett
// 2022), for one to three features and sums of Gaussian and Matérn kernels with one length scale. With the
// samples in a box of sides L_a and periods T_a > L_a, the kernel is
//
//	k(x, z) ≈ Σ_j S(2πj/T)/∏T_a exp(2πi Σ_a j_a(x_a−z_a)/T_a),   |j_a| ≤ m_a,
//
// where S is the spectral density, and K ≈ ΦΦᴴ. The inner solver uses enough modes to make ‖K −
// ΦΦᴴ‖ a small fraction of λ/max w. For a residual r it solves (I + ΦᴴΛ⁻¹Φ)β = ΦᴴΛ⁻¹r with Λ = λW⁻¹
// by conjugate gradients, and returns the correction Λ⁻¹(r − Φβ). ΦᴴΛ⁻¹Φ is a Toeplitz matrix
// between two diagonal matrices, so its product with a vector takes two Fourier transforms.
// Residuals are computed with the exact K, or, where this takes less time, with the larger number
// of modes that the tolerance needs. In that case the residuals of 1,000 rows are computed again at
// the end with the exact K. Auto chooses Modes if it is estimated to take less time than every
// method that computes with K. If Modes does not converge as estimated, for example because the
// samples are clustered, another method replaces it.
const Modes Method = "modes"

// modesChoice is the plan of Modes.
type modesChoice struct {
	spectrum.Density
	middle, period [3]float64 // middle and period of each feature, in the last d elements
	inner, outer   nufft.Axes // largest mode indices m_a of the inner solver and of the residuals
	dense          bool       // whether the inner modes are transformed by matrix products
	exact          bool       // whether residuals are computed with the exact K, without outer modes
	tol, outerTol  float64    // tolerances of the inner and outer Fourier transforms
	bound          float64    // bound on the error of a kernel value computed from the outer modes
	largest        float64    // estimate of the largest eigenvalue of K
	low            float64    // largest frequency ‖ω‖ of the modes in the preconditioner
	order          int        // order of the preconditioner's Cholesky factor
	its            int        // estimated number of iterations of conjugate gradients
}

const (
	// innerContraction is the largest allowed ratio of ‖K − ΦΦᴴ‖ to λ/max w. A step of refinement
	// multiplies the residual by about this ratio.
	innerContraction = 0.03
	// checkedRows is the number of rows whose residuals are computed with the exact K.
	checkedRows = 1000
	// lowUnknowns limits the order of the preconditioner's factor.
	lowUnknowns = 3000
	// modesPerAxis limits the index of a mode.
	modesPerAxis = 1 << 20
	// With at most rigorousModes modes, ‖K − ΦΦᴴ‖ is bounded by n times the largest error of a
	// kernel value. With more modes, the norm is estimated as for evenly spread samples.
	rigorousModes = 1 << 15
)

// modesSeconds[0] is the time in seconds of a transform and its inverse per value of the grid. The time of
// spreading samples onto the grid and interpolating back is modesSeconds[1] per sample and modesSeconds[2]
// per sample and grid point near it. All are measured on two cores of a Zen 4, 2026-11.
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
	choice, err := z.modes(s, par, true)
	if err != nil {
		return estimate{}, err
	}
	best := z.modesOf(choice, par)
	if par.Method == Auto && par.NeedsResiduals {
		return best, nil
	}
	if choice, err = z.modes(s, par, false); err == nil && !choice.exact {
		wide := z.modesOf(choice, par)
		need, needExact := wide.bytesOf(z.n), best.bytesOf(z.n)
		if larger := max(need, needExact) > z.available; larger && need < needExact || !larger && wide.cost < best.cost {
			best = wide
		}
	}
	return best, nil
}

// modes chooses the periods, the numbers of modes, and the order of the preconditioner. If exact is set,
// or the tolerance needs too many modes, residuals are computed with the exact K.
func (z *sizes) modes(s spectrum.Density, par Params, exact bool) (c modesChoice, err error) {
	c.Density, c.exact = s, exact
	var side [3]float64
	smallest := z.p.Lambda
	for i := range z.p.X.Rows {
		if z.p.Weights != nil {
			smallest = min(smallest, z.p.Lambda/max(z.p.Weights[i], math.SmallestNonzeroFloat64))
		}
	}
	for a := range z.d {
		low, high := math.Inf(1), math.Inf(-1)
		for i := range z.p.X.Rows {
			if z.p.Weights == nil || z.p.Weights[i] > 0 {
				v := z.p.X.Row(i)[a]
				low, high = min(low, v), max(high, v)
			}
		}
		side[3-z.d+a], c.middle[3-z.d+a] = high-low, low/2+high/2
	}
	n, top := float64(z.n), s.Kernel(0)
	even := 0.02 * innerContraction * smallest / n
	if !exact {
		even = min(even, par.tol()*smallest/math.Sqrt(n)/8)
	}
	reach := solveDecreasing(func(r float64) bool { return s.Kernel(r) <= even }, s.Terms[0].Sigma)
	for a := 3 - z.d; a < 3; a++ {
		c.period[a] = side[a] + reach
	}
	modes := func(omega float64) (m nufft.Axes, ok bool) {
		for a := 3 - z.d; a < 3; a++ {
			v := math.Ceil(omega * c.period[a] / (2 * math.Pi))
			if !(v <= modesPerAxis) {
				return m, false
			}
			m[a] = int(v)
		}
		return m, true
	}
	// spread is the number of samples in a unit of volume if they are spread evenly.
	spread := func(omega float64) float64 {
		v := n
		for a := 3 - z.d; a < 3; a++ {
			v /= max(side[a], 2*math.Pi/omega)
		}
		return v
	}
	start := 1 / s.Terms[0].Sigma
	rigorous := solveDecreasing(func(w float64) bool { return n*s.Tail(w, 1) <= innerContraction*smallest }, start)
	inner := rigorous
	if m, ok := modes(rigorous); !ok || float64(m.Half()[0])*float64(m.Half()[1])*float64(m.Half()[2]) > rigorousModes {
		inner = solveDecreasing(func(w float64) bool {
			return max(s.Tail(w, 1), spread(w)*s.At(w)) <= innerContraction*smallest
		}, start)
	}
	outer := solveDecreasing(func(w float64) bool {
		one := s.Tail(w, 1)
		return math.Sqrt(one*one+spread(w)*s.Tail(w, 2)) <= par.tol()*smallest/4
	}, start)
	outer = max(outer, inner)
	var ok bool
	if c.inner, ok = modes(inner); !ok {
		return c, message.Errorf("solvers: modes: more than %d Fourier modes are needed for a feature of range %.3g and %v: {use $solver=cg|raise $lambda}", modesPerAxis, max(side[0], side[1], side[2]), z.kernel)
	}
	if m, ok := modes(outer); ok && !exact {
		c.outer, c.bound = m, s.Tail(outer, 1)+2*float64(z.d)*s.Kernel(reach)
	} else {
		c.exact = true
	}
	c.largest = min(n*top, spread(start)*s.At(0)) + n*s.Constant
	ratio := c.largest / smallest
	c.tol = max(0.01/max(ratio, 1), 1e-14)
	c.outerTol = max(min(c.tol, 0.1*par.tol()*smallest/math.Sqrt(n)/(top+s.Constant)), 1e-14)
	rest := func(w float64) float64 { return spread(w) * s.At(w) / smallest }
	c.low = min(inner, solveDecreasing(func(w float64) bool { return rest(w) <= 1 }, start))
	// ΦᴴΛ⁻¹Φ has at most n nonzero eigenvalues, so that a small number of samples needs no
	// preconditioner of high order.
	limit := min(lowUnknowns, max(z.n, 500))
	for c.order = limit + 1; c.order > limit; c.low *= 0.97 {
		c.order = c.lowOrder(c.low)
	}
	c.low /= 0.97
	c.its = int(10 * math.Sqrt(1+rest(c.low)))
	return c, nil
}

// solveDecreasing returns a number v slightly above the smallest v at which within(v) is true.
// within must be true for all larger numbers too.
func solveDecreasing(within func(v float64) bool, start float64) float64 {
	high := start
	for i := 0; i < 200 && !within(high); i++ {
		high *= 2
	}
	low := high / 2
	for i := 0; i < 200 && within(low); i++ {
		low, high = low/2, low
	}
	for range 6 {
		if mid := (low + high) / 2; within(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// toeplitz returns the largest mode indices of the Toeplitz matrix's entries, and the size of its grid.
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
	// Products of some hundred rows and columns run at about half the rate of large products.
	if dense := 2 * 2 * nufft.DenseFlops(c.inner, size) / z.costs().rate * columns; numeric.Wrapper(z.dev) != nil && dense < step {
		step, c.dense = dense, true
	}
	setup := modesSeconds[0]*values(m) + spread(c.tol)
	pass := columns * (modesSeconds[0]*values(c.inner) + spread(c.tol))
	product := z.gramMulCost(z.t, false) / z.costs().rate
	note := fmt.Sprintf("%s modes, residuals by the exact K", axesText(c.inner, z.d))
	if !c.exact {
		product = float64(z.t) * (modesSeconds[0]*values(c.outer) + spread(c.outerTol))
		note = fmt.Sprintf("%s modes, residuals by %s modes with errors of at most %.2g in the kernel, checked on %d rows", axesText(c.inner, z.d), axesText(c.outer, z.d), c.bound, min(checkedRows, z.n))
	}
	rounds := modesRounds(par.tol())
	rate := z.costs().rate
	flops := 20 * float64(size.Len()) * columns
	return estimate{
		how:     c,
		its:     c.its,
		step:    step * rate,
		cost:    rate * (setup + float64(c.its)*step + rounds*(pass+product)),
		stages:  []stage{{"gram", flops}, {"factor", flop.Potrf(c.order)}, {"solve", flops * float64(c.its)}},
		note:    note,
		bytesOf: func(n int) int64 { return z.modesBytes(c, n) },
	}
}

// modesBytes returns the memory of Modes in bytes. On the device it holds matrices. In Go memory it
// holds the Fourier transforms, the entries of the Toeplitz matrix, the diagonal matrix, vectors of
// unknowns and of samples, and the solutions and residuals of the last and the best iterate.
func (z *sizes) modesBytes(c modesChoice, n int) int64 {
	m, size := c.toeplitz()
	unknowns := c.unknowns()
	host := numeric.Total(
		nufft.PlanElements(n, c.inner, c.tol), nufft.PlanElements(n, m, c.tol),
		nufft.Elements(c.inner, size), nufft.DenseElements(c.inner, size), 2*int64(size.Len()), int64(unknowns)*int64(3+2*z.columns),
		numeric.Elements(n, 5+2*z.columns+4*z.t),
	)
	if !c.exact {
		host = numeric.Total(host, nufft.PlanElements(n, c.outer, c.outerTol), 3*int64(c.outer.Half().Len()))
	}
	return numeric.Total(z.place(n), z.refinedBytes(n), krylov.Bytes[float64](unknowns, z.columns),
		numeric.Bytes(numeric.Elements(unknowns+c.order, z.columns)), numeric.Bytes(numeric.Elements(c.order, c.order)), numeric.Bytes(host))
}

// modesRounds is the estimated number of steps of refinement.
func modesRounds(tol float64) float64 {
	return math.Ceil(math.Log(tol)/math.Log(2*innerContraction)) + 1
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
	w.takeover = w.plan.other
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
	left, worst := make([]float64, s.t), 0.0
	for i := range n {
		q := row(i)
		s.fill(y, s.Y, nil, q, false)
		for j, v := range y.Row(0) {
			left[j] = math.Hypot(left[j], v-fit.Row(i)[j]-shift[min(q, len(shift)-1)]*alpha.Row(q)[j]-res.Intercept[j])
		}
	}
	s.fill(alpha, s.Y, s.meanY, 0, false)
	for j, v := range left {
		size := numeric.Norm(s.n, func(i int) float64 { return alpha.Row(i)[j] })
		worst = numeric.Larger(worst, numeric.Ratio(v*math.Sqrt(float64(s.n)/float64(n)), size))
	}
	res.Residual, res.Residuals = numeric.Larger(res.Residual, worst), backend.Host[float64]{}
	res.Notes = append(res.Notes, fmt.Sprintf("modes: the relative residual with the exact kernel on %d rows is %.2g", n, worst))
	if !(worst <= w.par.tol()) {
		return &ConvergenceError{Tol: w.par.tol(), Result: res, Reason: fmt.Sprintf("%s Fourier modes do not approximate the kernel well enough", axesText(c.outer, s.d))}
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
	symbol  []float64 // the Fourier series of the Toeplitz matrix on the grid
	scale   []float64 // diagonal matrix D, without the factor √2 of pairs of conjugate modes
	weights []float64 // diagonal of Λ⁻¹
	values  []float64 // buffer for the values on the grid
	modes   []complex128
	rhs     backend.Matrix[float64]
	low     *lowModes

	wide    *nufft.Plan // transforms for the outer modes; nil if residuals use the exact K
	density []float64   // S/∏T at the outer modes
}

// widened is a modal that also computes products with K from the outer modes.
type widened struct{ *modal }

// spectrum returns S(2πj/T)/∏T for each mode j, plus the kernel's constant term for j = 0.
func (c modesChoice) spectrum(m nufft.Axes) []float64 {
	h := m.Half()
	s := make([]float64, h.Len())
	volume := 1.0
	for a := 3 - c.D; a < 3; a++ {
		volume *= c.period[a]
	}
	run.Parallel(len(s), func(first, last int) {
		for at := first; at < last; at++ {
			k := [3]int{at/(h[1]*h[2]) - m[0], at/h[2]%h[1] - m[1], at % h[2]}
			s[at] = c.At(c.frequency(k)) / volume
			if k == [3]int{} {
				s[at] += c.Constant
			}
		}
	})
	return s
}

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
				u.Row(i)[a] = (v - c.middle[q]) / c.period[q]
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
			if !c.exact {
				m.wide, m.density = nufft.New(u, c.outer, c.outerTol), c.spectrum(c.outer)
			}
			return true
		})
		if !ok {
			return err
		}
		m.values = make([]float64, size.Len())
		m.scale = c.spectrum(c.inner)
		for at, v := range m.scale {
			m.scale[at] = math.Sqrt(v)
		}
		m.modes = make([]complex128, len(m.scale))
		w.Progress.Done(20 * float64(size.Len()*s.columns()))
		return nil
	})
	if err == nil {
		err = w.Timed("factor", &w.res.Seconds.Factor, func() (err error) {
			m.low, err = m.newLowModes(entries, double, m.scale)
			return err
		})
	}
	if err != nil {
		return nil, w.fail(err)
	}
	h := c.inner.Half()
	for at := range m.scale {
		if at%h[2] > 0 {
			m.scale[at] /= math.Sqrt2
		}
	}
	order := c.unknowns()
	if m.rhs, err = w.Mem.New(order, s.columns()); err != nil {
		return nil, w.fail(err)
	}
	m.Solver, err = krylov.New(&w.Frame, w.B, krylov.Operator[float64](m), krylov.Preconditioner[float64](m.low), krylov.Params{
		Order: order, Columns: s.columns(), Products: &w.res.Iters, MaxProducts: w.par.maxIter(), Patience: max(patience, 2*c.its), Review: w.review(modesRounds(w.par.tol())),
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

// load computes m.modes as D times the coefficients in column j of v. v holds their real and imaginary
// parts; a coefficient that represents a pair of conjugate modes is multiplied by √2 in v.
func (m *modal) load(v backend.Host[float64], j int) {
	for at, d := range m.scale {
		m.modes[at] = complex(d*v.Row(2 * at)[j], d*v.Row(2*at + 1)[j])
	}
}

// store sets column j of v, in the format of load, to D times m.modes.
func (m *modal) store(v backend.Host[float64], j int) {
	h := m.c.inner.Half()
	for at, d := range m.scale {
		if at%h[2] > 0 {
			d *= 2
		}
		v.Row(2 * at)[j], v.Row(2*at + 1)[j] = d*real(m.modes[at]), d*imag(m.modes[at])
	}
}

// Apply computes q = (I + DTD)p, where T is the Toeplitz matrix.
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

func (m *modal) solve(r backend.Matrix[float64], goal []float64) error {
	w := m.w
	rows, columns := r.Dims()
	h := backend.NewHost[float64](rows, columns)
	if err := w.B.Download(h, r); err != nil {
		return w.fail(err)
	}
	b := backend.NewHost[float64](m.c.unknowns(), columns)
	goals := make([]float64, columns)
	column := make([]float64, rows)
	for j := range columns {
		// The residual of the n samples is Φ times the residual of the unknowns β.
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
	if err := w.B.Upload(r, h); err != nil {
		return w.fail(err)
	}
	return nil
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
	m.low.release()
}

// multiplyByK replaces v by Kv, computed from the outer modes. If the context ends, some columns
// keep their values.
func (m widened) multiplyByK(v backend.Host[float64]) {
	column := make([]float64, v.Rows)
	modes := make([]complex128, len(m.density))
	for j := range v.Cols {
		for i := range column {
			column[i] = v.Row(i)[j]
		}
		ok, _ := run.Detached(m.w.Ctx, func() bool {
			m.wide.Modes(modes, column)
			for at, s := range m.density {
				modes[at] *= complex(s, 0)
			}
			m.wide.Values(column, modes)
			return true
		})
		if !ok {
			return
		}
		for i, f := range column {
			v.Row(i)[j] = f
		}
	}
}

// A lowModes is the preconditioner of Modes: the block of I + ΦᴴΛ⁻¹Φ for the modes of lowest frequency,
// as a Cholesky factor, and I for all other modes. If the block of the other modes is at most (1+g)I, the
// condition number is at most about 4(1+g), because the Schur complement is at least I.
type lowModes struct {
	m      *modal
	list   []lowMode
	factor backend.Matrix[float64]
	column backend.Matrix[float64] // order of factor × number of right-hand sides
}

// A lowMode represents a pair of conjugate modes, or is the mode 0.
type lowMode struct {
	k         [3]int
	at, other int     // indices of the mode and of its conjugate; other is −1 if k₃ ≠ 0 or k = 0
	scale     float64 // √2 times the mode's element of D, or this element for the mode 0
}

// lowOrder returns the number of real unknowns of the modes with ‖ω‖ ≤ omega.
func (c modesChoice) lowOrder(omega float64) int {
	volume := elementary.Pow(omega, float64(c.D)) * [...]float64{2, math.Pi, 4 * math.Pi / 3}[c.D-1]
	for a := 3 - c.D; a < 3; a++ {
		volume *= c.period[a] / (2 * math.Pi)
	}
	if volume > 4*lowUnknowns {
		return 4 * lowUnknowns
	}
	return 2*len(c.lowModes(omega, nil)) - 1
}

// lowModes returns the modes with ‖ω‖ ≤ omega, mode 0 first. scale holds √(S/∏T) of every mode, with
// the spectral density S and the periods T; lowModes copies the scales of the modes that it returns.
func (c modesChoice) lowModes(omega float64, scale []float64) []lowMode {
	h := c.inner.Half()
	var limit nufft.Axes
	for a := 3 - c.D; a < 3; a++ {
		limit[a] = min(c.inner[a], int(omega*c.period[a]/(2*math.Pi)))
	}
	list := []lowMode{{}}
	index := func(k [3]int) int {
		return ((k[0]+c.inner[0])*h[1]+k[1]+c.inner[1])*h[2] + k[2]
	}
	list[0].at, list[0].other = index([3]int{}), -1
	for i := -limit[0]; i <= limit[0]; i++ {
		for j := -limit[1]; j <= limit[1]; j++ {
			for l := 0; l <= limit[2]; l++ {
				k := [3]int{i, j, l}
				if l == 0 && (i < 0 || i == 0 && j <= 0) || c.frequency(k) > omega {
					continue
				}
				mode := lowMode{k: k, at: index(k), other: -1}
				if l == 0 {
					mode.other = index([3]int{-i, -j, 0})
				}
				list = append(list, mode)
			}
		}
	}
	if scale != nil {
		for i := range list {
			list[i].scale = scale[list[i].at]
			if i > 0 {
				list[i].scale *= math.Sqrt2
			}
		}
	}
	return list
}

// frequency returns the frequency ‖ω‖ of mode k.
func (c modesChoice) frequency(k [3]int) (omega float64) {
	for a := 3 - c.D; a < 3; a++ {
		omega = math.Hypot(omega, 2*math.Pi*float64(k[a])/c.period[a])
	}
	return omega
}

// newLowModes factors the block of the low modes. entries holds Σ_j s_j exp(−2πi k·x_j) for |k_a| at most
// double[a], and scale is √(S/∏T). The unknowns of a mode k are the coefficients of √2D cos 2πk·x and of
// −√2D sin 2πk·x.
func (m *modal) newLowModes(entries []complex128, double nufft.Axes, scale []float64) (*lowModes, error) {
	w := m.w
	p := &lowModes{m: m, list: m.c.lowModes(m.c.low, scale)}
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
			at := 2*j - 1
			if j == 0 {
				cosine[0], sine[0] = f*(re+re2), f*(im+im2)
				continue
			}
			cosine[at], cosine[at+1] = f*(re+re2), f*(im2-im)
			sine[at], sine[at+1] = f*(im2+im), f*(re-re2)
		}
		from, rows := max(2*i-1, 0), min(i+1, 2)
		cosine[from]++
		if rows == 2 {
			sine[from+1]++
		}
		if err := w.B.Upload(p.factor.View(from, 0, rows, order), two.View(0, 0, rows, order)); err != nil {
			return nil, err
		}
	}
	return p, w.B.Potrf(backend.Lower, p.factor)
}

// Apply computes z = M⁻¹r.
func (p *lowModes) Apply(z, r backend.Matrix[float64]) error {
	w := p.m.w
	rows, columns := r.Dims()
	h, low := backend.NewHost[float64](rows, columns), backend.NewHost[float64](2*len(p.list)-1, columns)
	if err := w.B.Download(h, r); err != nil {
		return err
	}
	// If k₃ = 0, r holds both modes of a conjugate pair, each without the factor √2.
	eachLow(p.list, func(mode lowMode, from, to int, sign float64) {
		v, dst := h.Row(from), low.Row(to)
		for j := range columns {
			if dst[j] = v[j]; mode.other >= 0 {
				dst[j] = (v[j] + sign*h.Row(from + 2*(mode.other-mode.at))[j]) / math.Sqrt2
			}
		}
	})
	column := p.column.View(0, 0, low.Rows, columns)
	if err := w.B.Upload(column, low); err != nil {
		return err
	}
	w.B.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, p.factor, column)
	w.B.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, p.factor, column)
	if err := w.B.Download(low, column); err != nil {
		return err
	}
	eachLow(p.list, func(mode lowMode, to, from int, sign float64) {
		v, dst := low.Row(from), h.Row(to)
		for j := range columns {
			if dst[j] = v[j]; mode.other >= 0 {
				dst[j] = v[j] / math.Sqrt2
				h.Row(to + 2*(mode.other-mode.at))[j] = sign * dst[j]
			}
		}
	})
	return w.B.Upload(z, h)
}

// eachLow calls f for the real and the imaginary part of each mode. The arguments all and low are the row
// of the part among all unknowns and among the unknowns of the factor, and sign is −1 for imaginary parts.
func eachLow(list []lowMode, f func(mode lowMode, all, low int, sign float64)) {
	for i, mode := range list {
		f(mode, 2*mode.at, max(2*i-1, 0), 1)
		if i > 0 {
			f(mode, 2*mode.at+1, 2*i, -1)
		}
	}
}

func (p *lowModes) release() {
	p.m.w.Mem.Free(p.factor)
	p.m.w.Mem.Free(p.column)
}
