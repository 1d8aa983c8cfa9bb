package learners

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/run"
)

const bayesRidgeName = "bayes-ridge"

func init() {
	register(Description{
		Name:    bayesRidgeName,
		Tasks:   []Task{Regression, Classification},
		Formula: "y = wᵀx + b + noise, w ~ N(0, σ_w² I), noise ~ N(0, σ²); σ_w and σ maximise p(y)",
		Source:  "MacKay (1992), Bayesian interpolation; Bishop (2006), 3.5",
		Outputs: true, classify: true,
		Parameters: []Parameter{
			number("tol", "1e-8", positive, "largest change of the fitted values in a step, relative to ‖y‖, at the end"),
			whole("iterations", "1000", atLeast(1), "most steps"),
			truth("intercept", "true", "fit an intercept, flat a priori"),
		},
		fitter: func(v Values) Fitter {
			return fitterOf(BayesRidge{Tol: v.Number("tol"), MaxIter: v.Whole("iterations"), NoIntercept: !v.Bool("intercept")}.Fit)
		},
		restore: restoreAs[BayesRidgeModel],
	})
}

// BayesRidge is ridge regression that finds its λ from the samples. The noise
// has the variance σ²/w_i and the weights have the prior N(0, σ_w² I); both
// variances maximise the evidence p(y | X, σ, σ_w), and λ = σ²/σ_w². MacKay's
// steps are repeated until the fitted values settle:
//
//	γ = Σ_i s_i/(s_i + λ),  σ_w² = ‖w‖²/γ,  σ² = Σ_i w_i(y_i − f(x_i))²/(Σw_i − γ)
//
// with the eigenvalues s_i of XᵀX, which are computed once: O(nd² + d³) where
// n ≥ d, and O(n²d + n³) otherwise. That one decomposition runs on the host.
// scikit-learn's BayesianRidge with its four Gamma parameters 0 is the same;
// its defaults of 1e-6 matter little. Each output has its own variances.
type BayesRidge struct {
	Tol         float64 // 0 is 1e-8: change of the fitted values relative to ‖y − ȳ‖
	MaxIter     int     // 0 is 1000
	NoIntercept bool    // b = 0
}

// BayesRidgeModel is a fitted BayesRidge: the mean of the posterior, and what
// its variance needs.
type BayesRidgeModel struct {
	linear
	fitted   bool                  // with an intercept
	center   []float64             // x̄
	vectors  backend.Host[float64] // r×d: eigenvectors of XᵀX, one a row
	spread   backend.Host[float64] // t×r: variances of w along them
	rest     []float64             // the variance of w in any other direction: σ_w²
	noise    []float64             // σ²
	evidence []float64             // log p(y)
}

// Fit fits the n×d samples x to the n×t targets y, each output on its own.
func (l BayesRidge) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*BayesRidgeModel, error) {
	m, err := l.fit(ctx, dev, x, y, o)
	return named(bayesRidgeName, m, err)
}

func (l BayesRidge) fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*BayesRidgeModel, error) {
	if l.Tol == 0 {
		l.Tol = 1e-8
	}
	if l.MaxIter == 0 {
		l.MaxIter = 1000
	}
	if err := positive.check(l.Tol); err != nil {
		return nil, fmt.Errorf("tol %w", err)
	}
	if err := atLeast(1).check(float64(l.MaxIter)); err != nil {
		return nil, fmt.Errorf("iterations %w", err)
	}
	c, err := newCentred(ctx, dev, x, y, o, !l.NoIntercept)
	if err != nil {
		return nil, err
	}
	t, err := newTask(ctx, dev, o, bayesRidgeName, c.n, func(n int) int64 {
		if n < c.d {
			return 8 * (int64(n)*int64(c.d+c.t) + int64(n)*int64(n))
		}
		return c.momentBytes(n)
	})
	if err != nil {
		return nil, err
	}
	e, err := c.spectrum(t)
	if err != nil {
		return nil, err
	}
	m := &BayesRidgeModel{
		linear: linear{model: model{learner: bayesRidgeName}, coef: backend.NewHost[float64](c.d, c.t)},
		fitted: !l.NoIntercept, center: make([]float64, c.d),
		vectors: e.vectors, spread: backend.NewHost[float64](c.t, len(e.values)),
	}
	for p := range m.center {
		m.center[p] = c.meanX[0][p] + c.meanX[1][p]
	}
	most := 0
	for j := range c.t {
		f, err := e.evidence(t, j, c.weight, l)
		if err != nil {
			return nil, err
		}
		most = max(most, f.steps)
		for i, s := range e.values {
			m.spread.Row(j)[i] = f.noise / (s + f.lambda)
			// Σ_i v_i √s_i a_i/(s_i + λ)
			along := math.Sqrt(s) * e.along.Row(j)[i] / (s + f.lambda)
			for p, v := range e.vectors.Row(i) {
				m.coef.Row(p)[j] += v * along
			}
		}
		m.rest, m.noise, m.evidence = append(m.rest, f.noise/f.lambda), append(m.noise, f.noise), append(m.evidence, f.evidence)
	}
	m.intercept = c.intercepts(m.coef)
	m.facts = []Fact{{"steps", most}, {"noise deviation", math.Sqrt(m.noise[0])}, {"lambda", m.noise[0] / m.rest[0]}, {"log evidence", m.evidence[0]}, {squaredNorm, coefNorm(m.coef)}}
	return m, t.at("solve", 1)
}

// spectrum is X = U S^½ Vᵀ and y in its terms.
type spectrum struct {
	values   []float64             // S: the eigenvalues of XᵀX that are more than rounding
	vectors  backend.Host[float64] // r×d: V, one a row
	along    backend.Host[float64] // t×r: Uᵀy
	total    []float64             // ‖y‖²
	constant []bool                // y is its mean
	d        int
}

// evidenced are the variances that maximise the evidence of an output.
type evidenced struct {
	noise, lambda, evidence float64
	steps                   int
}

// spectrum decomposes XᵀX, or XXᵀ where that is smaller, on the host.
func (c *centred) spectrum(t *task) (*spectrum, error) {
	s, err := newSecular(t, c)
	if err != nil {
		return nil, err
	}
	if err := t.at("gram", 0.3); err != nil {
		return nil, err
	}
	n := s.m.Rows
	sym := mat.NewSymDense(n, nil)
	for i := range n {
		for j, v := range s.m.Row(i)[:i+1] {
			sym.SetSym(i, j, v)
		}
	}
	var eigen mat.EigenSym
	if ok, err := run.Detached(t.Ctx, func() bool { return eigen.Factorize(sym, true) }); err != nil {
		return nil, err
	} else if !ok {
		return nil, errors.New("the eigenvalues of XᵀX did not converge")
	}
	if err := t.at("factor", 0.9); err != nil {
		return nil, err
	}
	all := eigen.Values(nil)
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	least := float64(max(c.n, c.d)) * epsilon * max(all[n-1], 0)
	e := &spectrum{total: make([]float64, c.t), constant: slices.Repeat([]bool{true}, c.t), d: c.d}
	first := 0
	for first < n && all[first] <= least {
		first++
	}
	slices.Reverse(all[first:])
	e.values = all[first:]
	r := len(e.values)
	if r == 0 {
		return nil, errors.New("every column of x is constant: there is nothing to predict from")
	}
	e.vectors, e.along = backend.NewHost[float64](r, c.d), backend.NewHost[float64](c.t, r)
	for i := range r {
		column := n - 1 - i
		for j := range c.t {
			for k, v := range s.r.Row(j) {
				e.along.Row(j)[i] += v * vectors.At(k, column)
			}
			if !s.dual { // vᵀXᵀy = √s uᵀy
				e.along.Row(j)[i] /= math.Sqrt(e.values[i])
			}
		}
		if !s.dual {
			for p := range c.d {
				e.vectors.Row(i)[p] = vectors.At(p, column)
			}
		}
	}
	row := backend.NewHost[float64](1, c.d)
	ry := backend.NewHost[float64](1, c.t)
	for k := range c.n {
		c.fill(ry, c.y, c.meanY, k)
		for j, v := range ry.Data {
			e.total[j] += v * v
			e.constant[j] = e.constant[j] && v == 0
		}
		if s.dual { // V = XᵀU S^−½
			c.fill(row, c.x, c.meanX, k)
			for i := range r {
				u := vectors.At(k, n-1-i) / math.Sqrt(e.values[i])
				for p, v := range row.Data {
					e.vectors.Row(i)[p] += u * v
				}
			}
		}
	}
	return e, nil
}

// evidence runs MacKay's steps for output j.
func (e *spectrum) evidence(t *task, j int, n float64, l BayesRidge) (f evidenced, err error) {
	a, total := e.along.Row(j), e.total[j]
	outside := total // ‖y‖² in directions that no w reaches
	for _, v := range a {
		outside -= v * v
	}
	outside = max(outside, 0)
	if math.IsInf(total, 1) || total == 0 && !e.constant[j] {
		return f, fmt.Errorf("y: column %d: the squares of its values are out of range: scale y", j+1)
	}
	if total == 0 {
		return f, fmt.Errorf("y: column %d is constant: there is no noise to be found", j+1)
	}
	// Below this a residual is rounding.
	least := total * epsilon * epsilon * n
	f.noise, f.lambda = total/n, total/n // as scikit-learn begins: σ_w = 1
	for f.steps = 1; ; f.steps++ {
		var gamma, squares, residual, change float64
		for i, s := range e.values {
			q := 1 / (s + f.lambda)
			gamma += s * q
			squares += s * a[i] * a[i] * q * q
			r := a[i] * f.lambda * q
			residual += r * r
		}
		residual = max(residual+outside, least)
		noise := residual / max(n-gamma, epsilon*n)
		lambda := noise * gamma / squares
		if squares == 0 || lambda > 1e12*e.values[0] {
			// Nothing but noise: w = 0.
			noise, lambda = total/n, 1e12*e.values[0]
		}
		for i, s := range e.values {
			d := a[i] * s * (1/(s+lambda) - 1/(s+f.lambda))
			change += d * d
		}
		moved := math.Abs(math.Log(noise / f.noise))
		f.noise, f.lambda = noise, lambda
		if change <= l.Tol*l.Tol*total && moved <= max(l.Tol, 4*epsilon) {
			break
		}
		if f.steps == l.MaxIter {
			return f, message.Errorf("output %d has not settled after %s: the fitted values still move by %.2g of ‖y‖: raise {tol} or {iterations}", j+1, count.Of(f.steps, "step"), math.Sqrt(change/total))
		}
		if f.steps%64 == 0 {
			if err := t.at("solve", 0.9); err != nil {
				return f, err
			}
		}
	}
	f.evidence = e.logEvidence(a, outside, n, f.noise, f.lambda)
	return f, nil
}

// logEvidence is log N(y; 0, σ²I + σ_w²XXᵀ) for the n rows.
func (e *spectrum) logEvidence(a []float64, outside, n, noise, lambda float64) float64 {
	sum := outside/noise + n*math.Log(2*math.Pi*noise)
	for i, s := range e.values {
		// noise + σ_w² s = noise·(1 + s/λ)
		sum += math.Log1p(s/lambda) + a[i]*a[i]/(noise*(1+s/lambda))
	}
	return -sum / 2
}

// Noise returns σ² of each output.
func (m *BayesRidgeModel) Noise() []float64 { return slices.Clone(m.noise) }

// Prior returns σ_w² of each output.
func (m *BayesRidgeModel) Prior() []float64 { return slices.Clone(m.rest) }

// LogEvidence returns log p(y | X) of each output, where the samples' weights
// count repetitions.
func (m *BayesRidgeModel) LogEvidence() []float64 { return slices.Clone(m.evidence) }

// Variance returns the n×t variances of new targets at the rows of x: σ² of the
// noise, and (x − x̄)ᵀΣ(x − x̄) of what is not known of w.
func (m *BayesRidgeModel) Variance(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	p := predictor{learner: bayesRidgeName}
	features, outputs := m.Dims()
	r := 0
	if features > 0 {
		// The projections on the eigenvectors come from the device; where
		// they do not span the space, so does x itself.
		r = m.vectors.Rows
		project := backend.NewHost[float64](features, r)
		p.intercept = make([]float64, r)
		for i := range r {
			for q, v := range m.vectors.Row(i) {
				project.Row(q)[i] = v
				p.intercept[i] -= v * m.center[q]
			}
		}
		p.features, p.fixed = features, []backend.Host[float64]{project}
		p.apply = func(b backend.Backend[float64], out, x backend.Matrix[float64], fixed []backend.Matrix[float64]) {
			b.Gemm(backend.NoTrans, backend.NoTrans, 1, x, fixed[0], 0, out)
		}
	}
	along, err := p.predict(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	h, err := gonum.Host("x", x)
	if err != nil {
		return nil, err
	}
	v := mat.NewDense(h.Rows, outputs, nil)
	for i := range h.Rows {
		beyond := 0.0
		if r < features {
			for q, xq := range h.Row(i) {
				beyond += (xq - m.center[q]) * (xq - m.center[q])
			}
			for _, a := range along.RawRowView(i) {
				beyond -= a * a
			}
			beyond = max(beyond, 0)
		}
		for j := range outputs {
			sum := m.noise[j] + beyond*m.rest[j]
			for k, a := range along.RawRowView(i) {
				sum += a * a * m.spread.Row(j)[k]
			}
			v.Set(i, j, sum)
		}
	}
	return v, nil
}

// State implements Model. Its arrays are "coef", d×t, "intercept", "noise",
// "prior" and "evidence", 1×t, "centre", 1×d, "vectors", r×d, and "spread", t×r.
func (m *BayesRidgeModel) State() State { return stateOf(m) }

func (m *BayesRidgeModel) fields() []field {
	d, t := rowsOf(&m.coef), colsOf(&m.coef)
	return append(m.coefFields(nil), flagParam("intercept", &m.fitted),
		rowField("noise", &m.noise, t, nonNegative), rowField("prior", &m.rest, t, nonNegative), rowField("evidence", &m.evidence, t, anyNumber),
		rowField("centre", &m.center, d, anyNumber), matrixField("vectors", &m.vectors, nil, d), matrixField("spread", &m.spread, t, rowsOf(&m.vectors)))
}
