package sparse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// laplace is the state of a relevance vector machine for two classes. Its methods maximize Laplace's approximation
// of the log evidence. Fields without a comment are as in the type evidence.
type laplace struct {
	t              *run.Task
	phi            *basis
	phiDevice      backend.Matrix[float64] // Φ
	squares        backend.Matrix[float64] // the squares of the elements of Φ
	positive       []bool                  // whether each row is in the second class
	base, fraction float64                 // progress before this model is fitted, and the progress that it adds
	laplaceState
	trace   []float64
	steps   int
	modes   int    // number of modes of the posterior that were computed
	warning string // why the steps ended before tol was reached; "" if tol was reached
}

// laplaceState holds the variables that a step changes.
type laplaceState struct {
	alpha     []float64
	active    []int
	position  []int
	mu        []float64
	curvature []float64 // the elements w_i y_i(1 − y_i) of the diagonal matrix B, where y_i is the probability at the mode; never modified in place
	slope     []float64 // the elements w_i(t_i − y_i) of W(t − y) at the mode, for the targets t_i of 0 or 1; never modified in place
	s, q      []float64
	q2        []float64 // the statistic Q2 of each basis function; the method statistics defines it
	tilt      []float64 // Φᵀg; the method statistics defines g
	value     float64
}

func (s laplaceState) clone() laplaceState {
	s.alpha, s.active, s.position, s.mu = slices.Clone(s.alpha), slices.Clone(s.active), slices.Clone(s.position), slices.Clone(s.mu)
	s.s, s.q, s.q2, s.tilt = slices.Clone(s.s), slices.Clone(s.q), slices.Clone(s.q2), slices.Clone(s.tilt)
	return s
}

func newLaplace(t *run.Task, b *basis) (*laplace, error) {
	p := &laplace{t: t, phi: b}
	square := backend.NewHost[float64](b.phi.Rows, b.phi.Cols)
	for i := range square.Rows {
		if i%64 == 0 && t.Ctx.Err() != nil {
			return nil, context.Cause(t.Ctx)
		}
		to := square.Row(i)
		for j, v := range b.phi.Row(i) {
			to[j] = v * v
			if math.IsInf(to[j]*b.total, 1) {
				return nil, kernels.Overflow(errors.New("the squares of the values of the kernel overflow: scale the features down"))
			}
		}
	}
	var err error
	if p.phiDevice, err = backend.Place(t.B, b.phi); err != nil {
		return nil, err
	}
	if p.squares, err = backend.Place(t.B, square); err != nil {
		p.phiDevice.Free()
		return nil, err
	}
	return p, nil
}

func (p *laplace) free() {
	p.phiDevice.Free()
	p.squares.Free()
}

// begin sets the targets to column c of signs, and the model to φ_0.
func (p *laplace) begin(signs backend.Host[float64], c int) {
	m := p.phi.phi.Cols
	p.laplaceState = laplaceState{
		alpha: make([]float64, m), position: slices.Repeat([]int{-1}, m),
		s: make([]float64, m), q: make([]float64, m), q2: make([]float64, m), tilt: make([]float64, m),
	}
	for j := range p.alpha {
		p.alpha[j] = math.Inf(1)
	}
	p.positive, p.trace, p.steps, p.modes, p.warning = make([]bool, signs.Rows), nil, 0, 0, ""
	for i := range p.positive {
		p.positive[i] = signs.Row(i)[c] > 0
	}
	p.set(0, 1)
}

// set changes the α of function j. An α of +Inf removes the function.
func (p *laplace) set(j int, alpha float64) {
	pos := p.position[j]
	p.alpha[j] = alpha
	switch {
	case pos < 0:
		p.position[j] = len(p.active)
		p.active, p.mu = append(p.active, j), append(p.mu, 0)
	case math.IsInf(alpha, 1):
		last := len(p.active) - 1
		p.active[pos], p.mu[pos] = p.active[last], p.mu[last]
		p.position[p.active[pos]] = pos
		p.active, p.mu, p.position[j] = p.active[:last], p.mu[:last], -1
	}
}

// objective returns the log posterior of μ up to a constant, and the log odds f of the samples.
func (p *laplace) objective(values backend.Host[float64], mu []float64) (sum float64, f []float64) {
	f = make([]float64, values.Cols)
	for a, m := range mu {
		numeric.Axpy(m, values.Row(a), f)
	}
	for i, z := range f {
		if p.positive[i] {
			z = -z
		}
		// Subtract log(1 + e^z) without overflow.
		sum -= p.phi.weight[i] * (math.Max(z, 0) + math.Log1p(elementary.Exp(-math.Abs(z))))
	}
	for a, j := range p.active {
		sum -= p.alpha[j] * mu[a] * mu[a] / 2
	}
	return sum, f
}

// newtonSteps is the maximum number of Newton steps, which no known fit reaches.
const newtonSteps = 100

// errNoMode reports that Newton's method has not reached the mode.
var errNoMode = fmt.Errorf("the mode of the posterior was not found in %d Newton steps", newtonSteps)

// functions returns the columns of Φ in list as rows.
func (p *laplace) functions(list []int) backend.Host[float64] {
	n := p.phi.phi.Rows
	values := backend.NewHost[float64](len(list), n)
	for a, j := range list {
		if j > 0 {
			copy(values.Row(a), p.phi.phi.Row(j - 1)[1:])
			continue
		}
		for i := range n {
			values.Row(a)[i] = 1
		}
	}
	return values
}

func scaledColumns(h backend.Host[float64], factors []float64) backend.Host[float64] {
	scaled := backend.NewHost[float64](h.Rows, h.Cols)
	for r := range h.Rows {
		floats.MulTo(scaled.Row(r), h.Row(r), factors)
	}
	return scaled
}

// mode computes the mode of the posterior, starting from μ, and the log evidence at the mode.
func (p *laplace) mode() error {
	n, k := p.phi.phi.Rows, len(p.active)
	values := p.functions(p.active)
	current, f := p.objective(values, p.mu)
	slope, curvature, root := make([]float64, n), make([]float64, n), make([]float64, n)
	p.modes++
	for range newtonSteps {
		gradient := make([]float64, k)
		for i := range n {
			y, target := expit(f[i]), 0.0
			if p.positive[i] {
				target = 1
			}
			w := p.phi.weight[i]
			slope[i], curvature[i] = w*(target-y), w*y*expit(-f[i])
			root[i] = math.Sqrt(curvature[i])
		}
		for a, j := range p.active {
			gradient[a] = numeric.Dot(values.Row(a), slope) - p.alpha[j]*p.mu[a]
		}
		step, logH, err := p.newton(scaledColumns(values, root), gradient)
		if err != nil {
			return err
		}
		decrement := numeric.Dot(gradient, step)
		if decrement <= 1e-12*(1+math.Abs(current)) {
			p.value = current - logH/2
			for _, j := range p.active {
				p.value += elementary.Log(p.alpha[j]) / 2
			}
			if p.value-p.value != 0 {
				return errKernelOverflow
			}
			p.slope, p.curvature = slope, curvature
			return nil
		}
		length := 1.0
		for ; ; length /= 2 {
			mu := slices.Clone(p.mu)
			numeric.Axpy(length, step, mu)
			next, odds := p.objective(values, mu)
			if next >= current+1e-4*length*decrement || length < 1e-10 {
				p.mu, current, f = mu, next, odds
				break
			}
		}
	}
	return errNoMode
}

// newton returns H⁻¹g and log|H| for H = RRᵀ + A, where R is the argument root and A the diagonal matrix of the α.
func (p *laplace) newton(root backend.Host[float64], gradient []float64) (step []float64, logH float64, err error) {
	b, k := p.t.B, len(p.active)
	h, err := b.New(k, k)
	if err != nil {
		return nil, 0, err
	}
	defer h.Free()
	alpha := make([]float64, k)
	for a, j := range p.active {
		alpha[a] = p.alpha[j]
	}
	v, err := backend.Copy(b, numeric.Column(gradient))
	if err != nil {
		return nil, 0, err
	}
	defer v.Free()
	factor := backend.NewHost[float64](k, k)
	step = make([]float64, k)
	err = run.Placed(b, root, backend.Host[float64]{}, func(r, _ backend.Matrix[float64]) error {
		b.Syrk(backend.Lower, backend.NoTrans, 1, r, 0, h)
		b.AddDiag(alpha, h)
		if err := b.Potrf(backend.Lower, h); err != nil {
			return fmt.Errorf("the basis functions in the model are dependent to working precision: use a kernel with a smaller length scale: %w", err)
		}
		b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, h, v)
		b.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, h, v)
		if err := b.Download(factor, h); err != nil {
			return err
		}
		return b.Download(numeric.Column(step), v)
	})
	for a := range k {
		logH += 2 * elementary.Log(factor.Row(a)[a])
	}
	return step, logH, err
}

// statistics computes S, Q and Q2 of all functions at the mode. W holds the weights of the samples, t the targets 0
// and 1, y the probabilities, and B = W diag(y(1 − y)). Φ_A has the columns of Φ for the functions of the model, A
// their parameters α on its diagonal, and H = Φ_AᵀBΦ_A + A = LLᵀ is their Hessian. φ is the column for function j:
//
//	S_j = φᵀBφ − ‖L⁻¹Φ_AᵀBφ‖²,  Q_j = φᵀW(t − y),  Q2_j = Q_j − φᵀg + (L⁻¹Φ_AᵀBφ)ᵀ(L⁻¹Φ_Aᵀg)
//	g_i = w_i y_i(1 − y_i)(1 − 2y_i) φ_iᵀH⁻¹φ_i,  φ_i row i of Φ_A
//
// Q·Q2 takes the place of Q² in the formulas of Tipping and Faul, because B changes with the mode.
func (p *laplace) statistics() error {
	n, m, k := p.phi.phi.Rows, p.phi.phi.Cols, len(p.active)
	b, values, alpha := p.t.B, p.functions(p.active), make([]float64, k)
	vectors := backend.NewHost[float64](n, 3)
	for a, j := range p.active {
		alpha[a] = p.alpha[j]
	}
	cross, err := b.New(k, m)
	if err != nil {
		return err
	}
	defer cross.Free()
	h, err := b.New(k, k)
	if err != nil {
		return err
	}
	defer h.Free()
	sums, err := b.New(m, 3)
	if err != nil {
		return err
	}
	defer sums.Free()
	t, q, phiG := backend.NewHost[float64](k, m), backend.NewHost[float64](m, 3), make([]float64, k)
	activePhi, err := backend.Copy(b, values)
	if err != nil {
		return err
	}
	defer activePhi.Free()
	err = run.Placed(b, scaledColumns(values, p.curvature), backend.Host[float64]{}, func(scaled, _ backend.Matrix[float64]) error {
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, scaled, p.phiDevice, 0, cross)
		b.Gemm(backend.NoTrans, backend.Transpose, 1, scaled, activePhi, 0, h)
		b.AddDiag(alpha, h)
		if err := b.Potrf(backend.Lower, h); err != nil {
			return err
		}
		b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, h, cross)
		b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, h, activePhi)
		if err := b.Download(values, activePhi); err != nil { // L⁻¹Φ_Aᵀ
			return err
		}
		return b.Download(t, cross)
	})
	if err != nil {
		return err
	}
	g := make([]float64, n)
	for a := range k {
		for i, v := range values.Row(a) {
			g[i] += v * v
		}
	}
	for i, v := range p.slope {
		// lean is 1 − 2y: v/w = t − y is 1 − y for rows in the second class, and −y for other rows.
		w := p.phi.weight[i]
		lean := 2*v/w + 1
		if p.positive[i] {
			lean = 2*v/w - 1
		}
		g[i] *= p.curvature[i] * lean
		vectors.Row(i)[0], vectors.Row(i)[1], vectors.Row(i)[2] = v, g[i], p.curvature[i]
	}
	for a := range k {
		phiG[a] = numeric.Dot(values.Row(a), g)
	}
	err = run.Placed(b, vectors, backend.Host[float64]{}, func(vectors, _ backend.Matrix[float64]) error {
		b.Gemm(backend.Transpose, backend.NoTrans, 1, p.phiDevice, vectors.View(0, 0, n, 2), 0, sums.View(0, 0, m, 2))
		b.Gemm(backend.Transpose, backend.NoTrans, 1, p.squares, vectors.View(0, 2, n, 1), 0, sums.View(0, 2, m, 1))
		return b.Download(q, sums)
	})
	if err != nil {
		return err
	}
	for j := range m {
		p.q[j], p.tilt[j], p.s[j] = q.Row(j)[0], q.Row(j)[1], q.Row(j)[2]
		p.q2[j] = p.q[j] - p.tilt[j]
	}
	for a := range k {
		numeric.Axpy(phiG[a], t.Row(a), p.q2)
		for j, v := range t.Row(a) {
			p.s[j] -= v * v
		}
	}
	// For functions outside the model, an S that does not exceed its rounding error is set to 0.
	for j := range m {
		if p.position[j] < 0 && p.s[j] <= dependentTol*q.Row(j)[2] {
			p.s[j] = 0
		}
	}
	return nil
}

// batchSteps limits the steps of a batch, and batchFunctions the functions that it may add.
const batchSteps, batchFunctions = 256, 128

// maximize changes the functions of the model in batches while the evidence increases, then all α together while
// the evidence increases, and then one function at a time. It ends when no step has an expected gain above tol. A
// function that gains less than expected is skipped until all others have been tried. A step to a model that is
// singular to working precision is undone; if only such steps remain, the search ends with a warning.
func (p *laplace) maximize(tol float64, limit int) error {
	if err := p.mode(); err != nil {
		return err
	}
	if err := p.statistics(); err != nil {
		return err
	}
	p.trace = append(p.trace, p.value)
	start := math.Abs(p.value) + 1
	rejected, floor := map[int]bool{}, p.value // rejected: functions whose step did not increase the evidence; floor: the evidence when rejected was last empty
	size, settled := 4, false                  // size: size of a batch; settled: whether the last change of all α gained at most tol
	singular := ""                             // the warning from a function whose posterior could not be computed
	for {
		j, alpha, gain := choose(p.s, p.q, p.q2, p.alpha, p.position, len(p.active), rejected)
		if gain <= tol && settled {
			if p.value <= floor+tol {
				p.warning = singular
				return nil
			}
			clear(rejected)
			floor, singular = p.value, ""
			continue
		}
		if p.steps >= limit {
			p.warning = fmt.Sprintf("after %s a further step would increase the log evidence by about %.2g, more than the tolerance of %.2g: {raise $tol|raise $iterations}", count.Of(limit, "step"), gain, tol)
			return nil
		}
		if err := p.t.Step("solve", p.base+p.fraction*min(progressOf(gain, start, tol, p.steps), 0.999)); err != nil {
			return err
		}
		previous, count := p.clone(), 1
		batch := gain > tol && size > 1
		single := !batch && settled
		var err error
		switch {
		case batch:
			if count, err = p.batch(tol, min(size, limit-p.steps)); err == nil {
				err = p.mode()
			}
		case single:
			p.set(j, alpha)
			err = p.mode()
		default:
			err = p.jointStep()
		}
		if err == nil && p.value > previous.value {
			err = p.statistics()
		}
		if err != nil && refusal(err) == "" {
			return err
		}
		p.steps += count
		increase := p.value - previous.value
		switch {
		case err == nil && increase > 0:
			// A step of all α has converged if the evidence gains at most tol for each function of the model.
			settled = !batch && !single && increase <= tol*float64(len(p.active))
			if batch {
				size = min(2*size, batchSteps)
			}
			p.trace = append(p.trace, p.value)
			continue
		case batch:
			size /= 4
		case single: // the change of the mode has made the actual gain smaller than expected
			rejected[j] = true
		default:
			settled = true
		}
		if single && err != nil {
			singular = refusal(err)
		}
		p.laplaceState = previous
	}
}

// model returns the regression that approximates the classifier at the mode μ: with targets Φμ + B⁻¹W(t − y) and
// the noise precisions B, described in laplaceState. The argument list holds the functions of the regression,
// beginning with the functions of the model. The field second of the result gives the factors Q2.
func (p *laplace) model(list []int) (*evidence, error) {
	k, size, second := len(p.active), len(list), newMean(len(list))
	e := &evidence{
		t: p.t, g: backend.NewHost[float64](size, size), mean: newMean(size), second: &second, beta: 1,
		alpha: make([]float64, size), position: slices.Repeat([]int{-1}, size), s: make([]float64, size),
	}
	values := p.functions(list)
	b := p.t.B
	g, err := b.New(size, size)
	if err != nil {
		return nil, err
	}
	defer g.Free()
	err = run.Placed(b, scaledColumns(values, p.curvature), values, func(scaled, values backend.Matrix[float64]) error {
		b.Gemm(backend.NoTrans, backend.Transpose, 1, scaled, values, 0, g)
		return b.Download(e.g, g)
	})
	if err != nil {
		return nil, err
	}
	for i, j := range list {
		e.alpha[i] = p.alpha[j]
		e.c[i] = p.q[j] + numeric.Dot(e.g.Row(i)[:k], p.mu)
		second.c[i] = e.c[i] - p.tilt[j]
		if i < k {
			e.insert(i, p.alpha[j])
		}
	}
	return e, e.refresh()
}

// batch takes from 1 to `limit` steps of Tipping and Faul among the functions of the model and the most promising
// functions outside it, and returns the number of steps.
func (p *laplace) batch(tol float64, limit int) (int, error) {
	list := append(slices.Clone(p.active), p.promisingFunctions(tol)...)
	e, err := p.model(list)
	if err != nil {
		return 1, err
	}
	steps := 0
	for steps < limit {
		i, alpha, gain := e.choose()
		if gain <= tol {
			break
		}
		e.setAlpha(i, alpha)
		steps++
	}
	for i, j := range list {
		if e.alpha[i] != p.alpha[j] {
			p.set(j, e.alpha[i])
		}
	}
	for a, j := range p.active {
		p.mu[a] = e.mu[e.position[slices.Index(list, j)]]
	}
	return max(steps, 1), nil
}

// jointStep takes a Newton step in the logarithms of all α of the model, and shortens the step until
// the evidence increases.
func (p *laplace) jointStep() error {
	e, err := p.model(p.active)
	if err != nil {
		return err
	}
	alpha := slices.Clone(e.alpha)
	step, slope, err := e.newton(alpha)
	if err != nil {
		return err
	}
	previous, mu := p.value, p.mu
	for t := firstLength(step); slope > 0 && t > 1e-3; t /= 4 {
		for a, j := range p.active {
			p.alpha[j] = alpha[a] * elementary.Exp(t*step[a])
		}
		p.mu = slices.Clone(mu)
		err := p.mode()
		if err != nil && refusal(err) == "" {
			return err
		}
		if err == nil && p.value > previous {
			return nil
		}
	}
	p.value = previous
	return nil
}

// promisingFunctions returns at most batchFunctions functions outside the model whose expected gain
// exceeds tol, in descending order of the gain.
func (p *laplace) promisingFunctions(tol float64) []int {
	var list []int
	gains := make([]float64, len(p.s))
	for j := range gains {
		if p.position[j] < 0 {
			if _, gains[j] = bestAlpha(p.s[j], p.q[j]*p.q2[j], p.alpha[j], false, len(p.active)); gains[j] > tol {
				list = append(list, j)
			}
		}
	}
	slices.SortFunc(list, func(i, j int) int { return cmp.Or(cmp.Compare(gains[j], gains[i]), cmp.Compare(i, j)) })
	return list[:min(len(list), batchFunctions)]
}
