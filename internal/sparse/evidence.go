package sparse

import (
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
)

// evidence is the state of a relevance vector machine for regression. Its methods maximize the log evidence of the
// targets t. Φ has the values of the basis functions at the rows. The model consists of the functions j with a
// finite α_j. Σ and μ are the covariance and the mean of the posterior of their weights. S and Q determine the
// best α_j of a function (Tipping and Faul 2003). W is the diagonal matrix of the weights of the rows.
type evidence struct {
	t              *run.Task
	g              backend.Host[float64] // ΦᵀWΦ
	total          float64               // tᵀWt
	n              float64               // sum of the weights of the rows
	minVariance    float64               // lower bound on σ², from the rounding errors of t
	beta           float64               // 1/σ²
	alpha          []float64             // α of all functions; +Inf outside the model
	active         []int                 // indices of the functions in the model
	position       []int                 // position[j] is the index of function j in active, or −1
	mean                                 // μ and Q for the targets t
	second         *mean                 // μ and Q for the second t in tᵀC⁻¹t, or nil if it equals the first t
	residualSquare float64               // ‖t − Φμ‖² at the last posterior
	sigma          [][]float64           // Σ
	root           backend.Host[float64] // R in Σ = RRᵀ
	s              []float64             // S of all functions (Tipping and Faul, eq. 24)
	value          float64               // the log evidence
	trace          []float64
	work           [4][]float64 // memory for the matrices of the methods posterior and statistics

	best    model  // the model with the largest evidence so far
	warning string // why the steps ended before tol was reached; "" if tol was reached
}

// mean holds the quantities that are linear in the targets t. Σ is the posterior covariance.
type mean struct {
	c  []float64 // ΦᵀWt
	mu []float64 // ΣΦᵀWt/σ²
	q  []float64 // Q of all functions (Tipping and Faul, eq. 25)
}

func newMean(m int) mean { return mean{c: make([]float64, m), q: make([]float64, m)} }

// means returns the field mean and, if it is not nil, second. A change of the model must update every returned mean.
func (e *evidence) means() []*mean {
	if e.second == nil {
		return []*mean{&e.mean}
	}
	return []*mean{&e.mean, e.second}
}

func newEvidence(t *run.Task, b *basis, y backend.Host[float64]) (*evidence, error) {
	n, m := b.phi.Rows, b.phi.Cols
	e := &evidence{
		t: t, g: backend.NewHost[float64](m, m), mean: newMean(m), n: b.total,
		alpha: make([]float64, m), position: slices.Repeat([]int{-1}, m), s: make([]float64, m),
	}
	var mean, spread float64
	for i := range n {
		v := y.Row(i)[0]
		mean += b.weight[i] / b.total * v
		e.total += b.weight[i] * v * v
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
	g, err := backend.Place(t.B, e.g)
	if err != nil {
		return nil, err
	}
	defer g.Free()
	v, err := t.B.New(m, 1)
	if err != nil {
		return nil, err
	}
	defer v.Free()
	err = run.Placed(t.B, scaled, right, func(phi, y backend.Matrix[float64]) error {
		t.B.Syrk(backend.Lower, backend.Transpose, 1, phi, 0, g)
		t.B.Gemm(backend.Transpose, backend.NoTrans, 1, phi, y, 0, v)
		if err := t.B.Download(numeric.Column(e.c), v); err != nil {
			return err
		}
		return t.B.Download(e.g, g)
	})
	if err != nil {
		return nil, err
	}
	for i := range m {
		if i%64 == 0 && t.Ctx.Err() != nil {
			return nil, context.Cause(t.Ctx)
		}
		for j := range i {
			e.g.Data[j*m+i] = e.g.Data[i*m+j]
		}
		e.alpha[i] = math.Inf(1)
	}
	e.minVariance = 1e-12 * spread
	e.work[0], b.phi = b.phi.Data, backend.Host[float64]{} // Φ is no longer needed, and its memory is reused
	// The initial σ is a tenth of the standard deviation of t.
	e.beta = 100 / spread
	return e, t.Step("gram", 0.1)
}

// model holds the functions, their α, and β. They determine the posterior and its log evidence, value.
type model struct {
	active []int
	alpha  []float64
	beta   float64
	value  float64
}

// These errors report that the evidence of a model is not a finite number.
var (
	errOverflow       = errors.New("values of y or of the kernel overflow: scale them down")
	errKernelOverflow = errors.New("values of the kernel overflow: scale the features down")
)

// refusal returns a warning if err means that the posterior after a step cannot be computed, and "" for all other
// errors. The fit then returns an earlier model with this warning.
func refusal(err error) string {
	switch {
	case errors.Is(err, backend.ErrNotPosDef):
		return "the basis functions of a further step are dependent to working precision; the result is the best model before this step: a kernel with a smaller length scale may fit better"
	case errors.Is(err, errNoMode), errors.Is(err, errOverflow), errors.Is(err, errKernelOverflow):
		return fmt.Sprintf("the result is the best model before a step that failed: %v", err)
	}
	return ""
}

// keepBest handles the error of a step: if refusal returns a warning, it restores the model with the largest
// evidence and sets the warning. Otherwise it returns err.
func (e *evidence) keepBest(err error) error {
	warning := refusal(err)
	if warning == "" || e.best.active == nil {
		return err
	}
	for len(e.active) > 0 {
		e.remove(e.active[len(e.active)-1])
	}
	for p, j := range e.best.active {
		e.insert(j, e.best.alpha[p])
	}
	e.beta, e.warning = e.best.beta, warning
	return e.posterior()
}

func (e *evidence) insert(j int, alpha float64) {
	e.alpha[j], e.position[j] = alpha, len(e.active)
	e.active = append(e.active, j)
}

// remove removes function j from the model. The last element of active moves to the index of j.
func (e *evidence) remove(j int) {
	p, last := e.position[j], len(e.active)-1
	e.active[p] = e.active[last]
	e.position[e.active[p]] = p
	e.active = e.active[:last]
	e.alpha[j], e.position[j] = math.Inf(1), -1
}

// refresh computes Σ, μ, S, Q and the evidence.
func (e *evidence) refresh() error {
	if err := e.posterior(); err != nil {
		return err
	}
	return e.statistics()
}

// matrix returns a zero matrix in the memory of work[i], which it reuses.
func (e *evidence) matrix(i, rows, cols int) backend.Host[float64] {
	if cap(e.work[i]) < rows*cols {
		e.work[i] = nil // lets the collector free the old memory before the allocation
		e.work[i] = make([]float64, rows*cols)
	}
	data := e.work[i][:rows*cols]
	clear(data)
	return backend.Host[float64]{Rows: rows, Cols: cols, Stride: cols, Data: data}
}

func (e *evidence) posterior() error {
	k := len(e.active)
	g, h, inverse := e.matrix(0, k, k), e.matrix(1, k, k), e.matrix(2, k, k)
	for p, j := range e.active {
		row, from, to := e.g.Row(j), g.Row(p), h.Row(p)
		for q, i := range e.active {
			from[q] = row[i]
			to[q] = e.beta * row[i]
		}
		to[p] += e.alpha[j]
		inverse.Row(p)[p] = 1
	}
	// A row of Σ has one more element for the function that the next step may add.
	sigma := e.matrix(3, k, k+1).View(0, 0, k, k)
	// If the device uses Go memory, the operations below overwrite h, inverse and sigma.
	b := e.t.B
	mh, err := backend.Place(b, h)
	if err != nil {
		return err
	}
	defer mh.Free()
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
	b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, mh, mi)
	ms, err := backend.Place(b, sigma)
	if err != nil {
		return err
	}
	defer ms.Free()
	b.Syrk(backend.Lower, backend.Transpose, 1, mi, 0, ms) // Σ = L⁻ᵀL⁻¹ for H = LLᵀ
	for _, d := range []struct {
		to   backend.Host[float64]
		from backend.Matrix[float64]
	}{{h, mh}, {inverse, mi}, {sigma, ms}} {
		if err := b.Download(d.to, d.from); err != nil {
			return err
		}
	}
	e.sigma = make([][]float64, k)
	halves := make([][]float64, len(e.means())) // L⁻¹Φᵀt
	for i, l := range e.means() {
		l.mu, halves[i] = make([]float64, k), make([]float64, k)
		for p := range k {
			for q, v := range inverse.Row(p)[:p+1] {
				halves[i][p] += v * l.c[e.active[q]]
			}
		}
	}
	// Replace L⁻¹, whose upper triangle is zero, by its transpose R.
	e.root = inverse
	const block = 32 // the rows of a block remain in the cache while its columns are written
	for from := 0; from < k; from += block {
		for q := range k {
			for p := max(from, q); p < min(from+block, k); p++ {
				v := inverse.Row(p)[q]
				inverse.Row(p)[q] = 0
				inverse.Row(q)[p] = v
				sigma.Row(q)[p] = sigma.Row(p)[q]
			}
		}
	}
	logH, logA := 0.0, 0.0
	for p, j := range e.active {
		e.sigma[p] = sigma.Data[p*sigma.Stride:][: k : k+1]
		for i, l := range e.means() {
			l.mu[p] = e.beta * numeric.Dot(e.root.Row(p)[p:], halves[i][p:])
		}
		logH += 2 * elementary.Log(h.Row(p)[p])
		logA += elementary.Log(e.alpha[j])
	}
	e.residualSquare = e.total
	for p, j := range e.active {
		e.residualSquare += e.mu[p] * (numeric.Dot(g.Row(p), e.mu) - 2*e.c[j])
	}
	e.residualSquare = max(e.residualSquare, e.total*epsilon)
	// The marginal covariance C of t has log|C| = N log σ² + log|H| − log|A|. Both terms of tᵀC⁻¹t are ≥ 0.
	quadratic := e.beta * e.residualSquare
	for p, j := range e.active {
		quadratic += e.alpha[j] * e.mu[p] * e.mu[p]
	}
	e.value = -(e.n*elementary.Log(2*math.Pi/e.beta) + logH - logA + quadratic) / 2
	if e.value-e.value != 0 {
		return errOverflow
	}
	if e.best.active == nil || e.value >= e.best.value {
		e.best = model{slices.Clone(e.active), make([]float64, k), e.beta, e.value}
		for p, j := range e.active {
			e.best.alpha[p] = e.alpha[j]
		}
	}
	return nil
}

// statistics computes S and Q from Σ = RRᵀ, μ, and β = 1/σ²:
//
//	S_j = β φᵀφ − β² ‖RᵀΦᵀφ‖²,  Q_j = β φᵀ(t − Φμ)
func (e *evidence) statistics() error {
	k, m := len(e.active), len(e.alpha)
	g := e.matrix(0, k, m)
	squares := make([]float64, m)
	for p, j := range e.active {
		copy(g.Row(p), e.g.Row(j))
	}
	for _, l := range e.means() {
		copy(l.q, l.c)
		for p, j := range e.active {
			numeric.Axpy(-l.mu[p], e.g.Row(j), l.q)
		}
		floats.Scale(e.beta, l.q)
	}
	to, err := backend.Place(e.t.B, e.matrix(1, k, m))
	if err != nil {
		return err
	}
	defer to.Free()
	err = run.Placed(e.t.B, e.root, g, func(root, from backend.Matrix[float64]) error {
		e.t.B.Gemm(backend.Transpose, backend.NoTrans, 1, root, from, 0, to)
		return e.t.B.Sync()
	})
	if err != nil {
		return err
	}
	if err := e.t.B.Download(g, to); err != nil {
		return err
	}
	for p := range k {
		for i, v := range g.Row(p) {
			squares[i] += v * v
		}
	}
	for j := range e.s {
		e.s[j] = e.beta * (e.g.Row(j)[j] - e.beta*squares[j])
	}
	return nil
}

// gamma returns the sum of all γ_j, the effective number of weights that the samples determine.
func (e *evidence) gamma() float64 {
	sum := 0.0
	for p, j := range e.active {
		sum += 1 - e.alpha[j]*e.sigma[p][p]
	}
	return sum
}

func (e *evidence) record() { e.trace = append(e.trace, e.value) }

// updateNoise replaces β by the result of the fixed-point iteration, or of EM if the first result decreases the
// evidence. If both decrease it, β does not change. The method returns the gain.
func (e *evidence) updateNoise() (float64, error) {
	previous, beta, residualSquare, gamma := e.value, e.beta, e.residualSquare, e.gamma()
	for _, noise := range []float64{residualSquare / max(e.n-gamma, epsilon*e.n), (residualSquare + gamma/beta) / e.n} {
		e.beta = 1 / max(noise, e.minVariance)
		if err := e.posterior(); err != nil {
			return 0, err
		}
		if e.value >= previous {
			return e.value - previous, nil
		}
	}
	e.beta = beta
	return 0, e.posterior()
}

// newtonStep takes a Newton step in the logarithms of β and of all α of the model, and returns the gain of the
// evidence. It does not update S and Q.
func (e *evidence) newtonStep() (float64, error) {
	k := len(e.active)
	previous, beta, alpha := e.value, e.beta, make([]float64, k)
	for p, j := range e.active {
		alpha[p] = e.alpha[j]
	}
	step, slope, err := e.newton(alpha)
	if err != nil {
		return 0, err
	}
	for t := firstLength(step); slope > 0 && t > 1e-3; t /= 4 {
		e.beta = min(beta*elementary.Exp(t*step[k]), 1/e.minVariance)
		for p, j := range e.active {
			e.alpha[j] = alpha[p] * elementary.Exp(t*step[p])
		}
		if err := e.posterior(); err == nil && e.value >= previous {
			return e.value - previous, nil
		}
		if e.t.Ctx.Err() != nil {
			return 0, context.Cause(e.t.Ctx)
		}
	}
	e.beta = beta
	for p, j := range e.active {
		e.alpha[j] = alpha[p]
	}
	return 0, e.posterior()
}

// firstLength returns the initial fraction of a step, at which no logarithm changes by more than 4.
func firstLength(step []float64) float64 {
	return min(1, 4/floats.Norm(step, math.Inf(1)))
}

// newton returns the step H⁻¹g and the slope gᵀH⁻¹g. The vector g is the gradient of the log evidence with respect
// to log α and, last, log β. With A = diag(α), M = ΣAΣ, v = ΣAμ and γ_j = 1 − α_jΣ_jj,
//
//	2g_j = 1 − α_jΣ_jj − α_jμ_j²,  2g_β = N − Σ_j γ_j − β‖t − Φμ‖²
//
// H is the negative Hessian,
//
//	2H_jk = [j = k] α_j(Σ_jj + μ_j²) − α_jα_kΣ_jk(Σ_jk + 2μ_jμ_k)
//	2H_jβ = α_j(M_jj − Σ_jj + 2μ_jv_j)
//	2H_ββ = β‖t − Φμ‖² + Σ_j α_j(Σ_jj − M_jj) − 2μᵀAv
//
// If this matrix is not positive definite, H is its expectation without the elements H_jβ (Patterson and Thompson
// 1971, Recovery of inter-block information when block sizes are unequal). Its elements for the α are
// ½(δ_jk − √(α_jα_k)Σ_jk)².
func (e *evidence) newton(alpha []float64) (step []float64, slope float64, err error) {
	k := len(alpha)
	g, h := backend.NewHost[float64](k+1, 1), backend.NewHost[float64](k+1, k+1)
	v, inner := make([]float64, k), make([]float64, k) // v and diag(M)
	for p := range k {
		for q, s := range e.sigma[p] {
			v[p] += s * alpha[q] * e.mu[q]
			inner[p] += s * s * alpha[q]
		}
	}
	noise := e.beta * e.residualSquare
	last := noise
	list := e.means()
	mu2 := list[len(list)-1].mu
	g.Data[k] = (e.n - e.gamma() - noise) / 2
	for p, s := range e.sigma {
		a, mu, row := alpha[p], e.mu[p], h.Row(p)
		g.Data[p] = (1 - a*s[p] - a*mu*mu2[p]) / 2
		for q := range p + 1 {
			row[q] = -a * alpha[q] * s[q] * (s[q] + mu*mu2[q] + mu2[p]*e.mu[q]) / 2
		}
		row[p] += a * (s[p] + mu*mu2[p]) / 2
		h.Row(k)[p] = a * (inner[p] - s[p] + 2*mu*v[p]) / 2
		last += a*(s[p]-inner[p]) - 2*mu*a*v[p]
	}
	h.Row(k)[k] = last / 2
	if e.second != nil { // β is fixed at 1
		clear(h.Row(k))
		g.Data[k], h.Row(k)[k] = 0, 1
	}
	step, err = e.solve(h, g)
	if errors.Is(err, backend.ErrNotPosDef) {
		for p, s := range e.sigma {
			row := h.Row(p)
			for q := range p + 1 {
				row[q] = alpha[p] * alpha[q] * s[q] * s[q] / 2
			}
			w := 1 - alpha[p]*s[p]
			row[p] = w*w/2 + 1e-8
			h.Row(k)[p] = 0
		}
		h.Row(k)[k] = max(e.n, 1) / 2
		step, err = e.solve(h, g)
	}
	if errors.Is(err, backend.ErrNotPosDef) {
		return g.Data, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for i, s := range step {
		slope += g.Data[i] * s
	}
	return step, slope, nil
}

// solve returns H⁻¹g for the lower triangle of H.
func (e *evidence) solve(h, g backend.Host[float64]) ([]float64, error) {
	b := e.t.B
	mh, err := backend.Copy(b, h)
	if err != nil {
		return nil, err
	}
	defer mh.Free()
	mv, err := backend.Copy(b, g)
	if err != nil {
		return nil, err
	}
	defer mv.Free()
	if err := b.Potrf(backend.Lower, mh); err != nil {
		return nil, err
	}
	b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, mh, mv)
	b.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, mh, mv)
	step := backend.NewHost[float64](g.Rows, 1)
	return step.Data, b.Download(step, mv)
}

func (e *evidence) warnLimit(limit int, gain, tol float64) {
	e.warning = fmt.Sprintf("after %s a step still increases the log evidence by %.2g, more than the tolerance of %.2g: {raise $tol|raise $iterations}", count.Of(limit, "step"), gain, tol)
}

// fixedPoint maximizes the evidence by Tipping's steps, starting from the model with all functions. It prunes
// function j if α_j Σ_jj = 1 up to rounding errors, because the evidence is then the same without the function.
// The iteration ends when the gain is at most tol and no ln α changes by more than 1e-3.
func (e *evidence) fixedPoint(tol float64, limit int) error {
	for j := range e.alpha {
		if e.g.Row(j)[j] == 0 {
			continue // φ_j is 0 at all samples
		}
		e.insert(j, e.n/e.g.Row(j)[j]*e.beta/100)
	}
	if err := e.refresh(); err != nil {
		return err
	}
	first := math.Abs(e.value)
	gain := 0.0
	for step := 1; step <= limit; step++ {
		if err := e.t.Step("solve", 0.1+0.85*progressOf(gain, first, tol, step)); err != nil {
			return err
		}
		previous, beta := e.value, e.beta
		alpha := make([]float64, len(e.active))
		mean := make([]float64, len(e.active)) // posterior means of the squared weights, for EM
		for p, j := range e.active {
			alpha[p] = e.alpha[j]
			mean[p] = e.mu[p]*e.mu[p] + e.sigma[p][p]
			gamma := max(1-e.alpha[j]*e.sigma[p][p], 0)
			e.alpha[j] = min(gamma/(e.mu[p]*e.mu[p]), 1e12*e.beta*e.g.Row(j)[j])
			if e.alpha[j] == 0 || math.IsNaN(e.alpha[j]) { // γ_j and μ_j are 0
				e.alpha[j] = 1e12 * e.beta * e.g.Row(j)[j]
			}
		}
		residual, gamma := e.residualSquare, 0.0
		for p := range e.active {
			gamma += 1 - alpha[p]*e.sigma[p][p]
		}
		e.beta = 1 / max(residual/max(e.n-gamma, epsilon*e.n), e.minVariance)
		if err := e.refresh(); err != nil {
			return err
		}
		if e.value < previous {
			for p, j := range e.active {
				e.alpha[j] = 1 / mean[p]
			}
			e.beta = 1 / max((residual+gamma/beta)/e.n, e.minVariance)
			if err := e.refresh(); err != nil {
				return err
			}
		}
		if e.value < previous-1e-9*(1+math.Abs(previous)) {
			return fmt.Errorf( // only rounding errors can decrease the evidence
				"the log evidence fell from %v to %v: %w", previous, e.value, backend.ErrNotPosDef)
		}
		gain = e.value - previous
		maxChange := 0.0
		for p, j := range e.active {
			maxChange = max(maxChange, math.Abs(elementary.Log(e.alpha[j]/alpha[p])))
		}
		dropped, err := e.prune()
		if err != nil {
			return err
		}
		e.record()
		if gain <= tol && maxChange <= 1e-3 && !dropped {
			return nil
		}
	}
	e.warnLimit(limit, gain, tol)
	return nil
}

// prune removes the functions whose weights the samples do not determine, except for one function.
func (e *evidence) prune() (bool, error) {
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

// progressOf estimates the completed fraction of the work from the logarithm of the gain, or from the number of
// steps if the gain is at most tol.
func progressOf(gain, first, tol float64, step int) float64 {
	if gain <= tol {
		return min(float64(step)/300, 1) / 2
	}
	return run.LogShare(gain, first, tol)
}
