package learners

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
)

// evidence is the log evidence of a relevance vector machine for regression, and
// what maximises it. Function j is in the model while α_j is finite.
type evidence struct {
	t      *task
	g      backend.Host[float64] // ΦᵀWΦ
	c      []float64             // ΦᵀWt
	total  float64               // tᵀWt
	n      float64               // Σw
	least  float64               // σ² is not let below: rounding of t
	beta   float64               // 1/σ²
	alpha  []float64             // of all functions; +Inf outside the model
	active []int                 // those in the model
	place  []int                 // of a function in active; −1
	mu     []float64
	sigma  [][]float64           // Σ
	root   backend.Host[float64] // R, Σ = RRᵀ, of the last refresh
	s, q   []float64             // S and Q of all functions (Tipping and Faul, eq. 24 and 25)
	value  float64               // the log evidence
	trace  []float64
}

func newEvidence(t *task, b *basis, y backend.Host[float64]) (*evidence, error) {
	n, m := b.phi.Rows, b.phi.Cols
	e := &evidence{
		t: t, g: backend.NewHost[float64](m, m), c: make([]float64, m), n: b.total,
		alpha: make([]float64, m), place: filledInts(m, -1), s: make([]float64, m), q: make([]float64, m),
	}
	constant := true
	var mean, spread float64
	for i := range n {
		v := y.Row(i)[0]
		constant = constant && v == y.Row(0)[0]
		mean += b.weight[i] / b.total * v
		e.total += b.weight[i] * v * v
	}
	if constant {
		return nil, errors.New("y is constant: there is no noise to be found")
	}
	if math.IsInf(e.total, 1) || e.total == 0 {
		return nil, errors.New("the squares of the values of y are out of range: scale y")
	}
	scaled, right := b.phi, backend.NewHost[float64](n, 1)
	for i, w := range b.weight {
		v := y.Row(i)[0]
		spread += w / b.total * (v - mean) * (v - mean)
		right.Data[i] = math.Sqrt(w) * v
		if w != 1 {
			for j := range scaled.Row(i) {
				scaled.Row(i)[j] *= math.Sqrt(w)
			}
		}
	}
	g, err := t.b.New(m, m)
	if err != nil {
		return nil, err
	}
	defer g.Free()
	v, err := t.b.New(m, 1)
	if err != nil {
		return nil, err
	}
	defer v.Free()
	err = placed(t.b, scaled, right, func(phi, y backend.Matrix[float64]) error {
		t.b.Syrk(backend.Lower, backend.Transpose, 1, phi, 0, g)
		t.b.Gemm(backend.Transpose, backend.NoTrans, 1, phi, y, 0, v)
		if err := t.b.Download(backend.Host[float64]{Rows: m, Cols: 1, Stride: 1, Data: e.c}, v); err != nil {
			return err
		}
		return t.b.Download(e.g, g)
	})
	if err != nil {
		return nil, err
	}
	for i := range m {
		if i%64 == 0 && t.ctx.Err() != nil {
			return nil, context.Cause(t.ctx)
		}
		for j := range i {
			e.g.Data[j*m+i] = e.g.Data[i*m+j]
		}
		e.alpha[i] = math.Inf(1)
	}
	// As in Tipping's own programs: a tenth of the deviation of t. With less
	// noise than there is at first, more functions come in than stay, and the
	// maximum that is found is better than one that is come to from below.
	e.least = 1e-12 * spread
	e.beta = 100 / spread
	return e, t.at("gram", 0.1)
}

// insert puts function j into the model, without Σ and μ.
func (e *evidence) insert(j int, alpha float64) {
	e.alpha[j], e.place[j] = alpha, len(e.active)
	e.active = append(e.active, j)
}

// remove takes function j out of the model, without Σ and μ; the last takes its
// place.
func (e *evidence) remove(j int) {
	p, last := e.place[j], len(e.active)-1
	e.active[p] = e.active[last]
	e.place[e.active[p]] = p
	e.active = e.active[:last]
	e.alpha[j], e.place[j] = math.Inf(1), -1
}

// refresh computes Σ, μ, S, Q and the evidence from α and β.
func (e *evidence) refresh() error {
	k, m := len(e.active), len(e.alpha)
	e.root, e.sigma = backend.Host[float64]{}, nil // room for the new ones
	h, g := backend.NewHost[float64](k, k), backend.NewHost[float64](k, m)
	inverse := backend.NewHost[float64](k, k)
	for p, j := range e.active {
		copy(g.Row(p), e.g.Row(j))
		for q, i := range e.active {
			h.Row(p)[q] = e.beta * e.g.Row(j)[i]
		}
		h.Row(p)[p] += e.alpha[j]
		inverse.Row(p)[p] = 1
	}
	// A row of Σ has room for the function that a step may add.
	sigma := backend.NewHost[float64](k, k+1).View(0, 0, k, k)
	// On a device that uses Go memory all of these are changed where they are.
	b := e.t.b
	mh, err := backend.Place(b, h)
	if err != nil {
		return err
	}
	defer mh.Free()
	mg, err := backend.Place(b, g)
	if err != nil {
		return err
	}
	defer mg.Free()
	mi, err := backend.Place(b, inverse)
	if err != nil {
		return err
	}
	defer mi.Free()
	if err := b.Potrf(backend.Lower, mh); err != nil {
		if errors.Is(err, backend.ErrNotPosDef) {
			return fmt.Errorf("the basis functions in the model are dependent to working precision: use a kernel with a smaller length scale: %w", err)
		}
		return err
	}
	b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, mh, mg)
	b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, mh, mi)
	ms, err := backend.Place(b, sigma)
	if err != nil {
		return err
	}
	defer ms.Free()
	b.Gemm(backend.Transpose, backend.NoTrans, 1, mi, mi, 0, ms) // Σ = L⁻ᵀL⁻¹
	for _, d := range []struct {
		to   backend.Host[float64]
		from backend.Matrix[float64]
	}{{h, mh}, {g, mg}, {inverse, mi}, {sigma, ms}} {
		if err := b.Download(d.to, d.from); err != nil {
			return err
		}
	}
	// R is the transpose of L⁻¹, whose upper triangle is zero.
	e.root = inverse
	e.sigma, e.mu = make([][]float64, k), make([]float64, k)
	half := make([]float64, k) // L⁻¹Φᵀt
	for p := range k {
		for q := range p + 1 {
			v := inverse.Row(p)[q]
			inverse.Row(p)[q], inverse.Row(q)[p] = 0, v
			half[p] += v * e.c[e.active[q]]
		}
	}
	logH, logA := 0.0, 0.0
	for p, j := range e.active {
		e.sigma[p] = sigma.Data[p*sigma.Stride:][: k : k+1]
		for r := p; r < k; r++ {
			e.mu[p] += e.beta * e.root.Row(p)[r] * half[r]
		}
		logH += 2 * math.Log(h.Row(p)[p])
		logA += math.Log(e.alpha[j])
	}
	// S_j = β φᵀφ − β² ‖L⁻¹Φᵀφ‖², Q_j = β φᵀ(t − Φμ).
	squares, fit := make([]float64, m), make([]float64, m)
	for p, j := range e.active {
		for i, v := range g.Row(p) {
			squares[i] += v * v
		}
		axpy(e.mu[p], e.g.Row(j), fit)
	}
	for j := range e.s {
		e.s[j] = e.beta * (e.g.Row(j)[j] - e.beta*squares[j])
		e.q[j] = e.beta * (e.c[j] - fit[j])
	}
	// log|C| = N log σ² + log|H| − log|A|, tᵀC⁻¹t = β tᵀ(t − Φμ); the latter
	// as β‖t − Φμ‖² + μᵀAμ, which does not cancel.
	quadratic := e.beta * e.residual()
	for p, j := range e.active {
		quadratic += e.alpha[j] * e.mu[p] * e.mu[p]
	}
	e.value = -(e.n*math.Log(2*math.Pi/e.beta) + logH - logA + quadratic) / 2
	if e.value-e.value != 0 {
		return errors.New("values of y or of the kernel overflow: scale them down")
	}
	return nil
}

// residual is ‖t − Φμ‖².
func (e *evidence) residual() float64 {
	sum := e.total
	for p, j := range e.active {
		fit := 0.0
		for q, i := range e.active {
			fit += e.g.Row(j)[i] * e.mu[q]
		}
		sum += e.mu[p] * (fit - 2*e.c[j])
	}
	return max(sum, e.total*epsilon)
}

// gamma is Σγ_j, the number of weights that the samples determine.
func (e *evidence) gamma() float64 {
	sum := 0.0
	for p, j := range e.active {
		sum += 1 - e.alpha[j]*e.sigma[p][p]
	}
	return sum
}

// note records the evidence after a step.
func (e *evidence) note() { e.trace = append(e.trace, e.value) }

// better sets β where that raises the evidence, by the fixed point or else by EM,
// and returns the gain.
func (e *evidence) better() (float64, error) {
	before, beta := e.value, e.beta
	residual, gamma := e.residual(), e.gamma()
	for _, noise := range []float64{
		residual / max(e.n-gamma, epsilon*e.n),
		(residual + gamma/beta) / e.n,
	} {
		e.beta = 1 / max(noise, e.least)
		if err := e.refresh(); err != nil {
			return 0, err
		}
		if e.value >= before {
			return e.value - before, nil
		}
	}
	e.beta = beta
	return 0, e.refresh()
}

// unfinished is the error when the steps were not enough.
func (e *evidence) unfinished(limit int, gain, tol float64) error {
	return fmt.Errorf("after %s the log evidence still grows by %.2g a step, not %.2g: raise tol or iterations", count.Of(limit, "step"), gain, tol)
}

// fixedPoint maximises the evidence by Tipping's steps from the model of all
// functions. A function is dropped when α_j Σ_jj is 1 but for rounding: the
// samples say nothing about its weight, so that the evidence is as good without.
func (e *evidence) fixedPoint(tol float64, limit int) error {
	for j := range e.alpha {
		e.insert(j, e.n/e.g.Row(j)[j]*e.beta/100)
	}
	if err := e.refresh(); err != nil {
		return err
	}
	first := math.Abs(e.value)
	gain := 0.0
	for step := 1; step <= limit; step++ {
		if err := e.t.at("solve", 0.1+0.85*progressOf(gain, first, tol, step)); err != nil {
			return err
		}
		before, beta := e.value, e.beta
		alpha := make([]float64, len(e.active))
		mean := make([]float64, len(e.active)) // of μ_j², for EM
		for p, j := range e.active {
			alpha[p] = e.alpha[j]
			mean[p] = e.mu[p]*e.mu[p] + e.sigma[p][p]
			gamma := max(1-e.alpha[j]*e.sigma[p][p], 0)
			e.alpha[j] = min(gamma/(e.mu[p]*e.mu[p]), 1e12*e.beta*e.g.Row(j)[j])
			if e.alpha[j] == 0 || math.IsNaN(e.alpha[j]) { // γ and μ are 0
				e.alpha[j] = 1e12 * e.beta * e.g.Row(j)[j]
			}
		}
		residual, gamma := e.residual(), 0.0
		for p := range e.active {
			gamma += 1 - alpha[p]*e.sigma[p][p]
		}
		e.beta = 1 / max(residual/max(e.n-gamma, epsilon*e.n), e.least)
		if err := e.refresh(); err != nil {
			return err
		}
		if e.value < before {
			for p, j := range e.active {
				e.alpha[j] = 1 / mean[p]
			}
			e.beta = 1 / max((residual+gamma/beta)/e.n, e.least)
			if err := e.refresh(); err != nil {
				return err
			}
		}
		if e.value < before-1e-9*(1+math.Abs(before)) {
			return fmt.Errorf("the log evidence fell from %v to %v: the basis functions are dependent to working precision: use %q or a kernel with a smaller length scale", before, e.value, Sequential)
		}
		gain = e.value - before
		dropped, err := e.drop()
		if err != nil {
			return err
		}
		e.note()
		if gain <= tol && !dropped {
			return nil
		}
	}
	return e.unfinished(limit, gain, tol)
}

// drop leaves out the functions that are not determined, all but one of them.
func (e *evidence) drop() (bool, error) {
	var list []int
	for p, j := range e.active {
		if e.alpha[j] >= 1e9*e.beta*e.g.Row(j)[j] || 1-e.alpha[j]*e.sigma[p][p] < 1e-10 {
			list = append(list, j)
		}
	}
	if len(list) == len(e.active) {
		list = list[1:]
	}
	if len(list) == 0 {
		return false, nil
	}
	for _, j := range list {
		e.remove(j)
	}
	return true, e.refresh()
}

// progressOf is the share of the work: the logarithm of the gain falls about
// evenly, and 300 steps are usual.
func progressOf(gain, first, tol float64, step int) float64 {
	if gain <= tol {
		return min(float64(step)/300, 1) / 2
	}
	return gapProgress(gain, first, tol)
}
