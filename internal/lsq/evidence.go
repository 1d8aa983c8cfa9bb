package lsq

import (
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/spread"
)

// EvidenceFit is the posterior of w under noise of variance σ²/w_i and a prior
// N(0, σ_w² I), with the variances that maximize the evidence.
type EvidenceFit struct {
	Coef      backend.Host[float64] // the mean of w
	Intercept []float64
	Posterior
	Evidence []float64 // the log evidence log p(y) of each output
	Steps    int       // the largest number of steps over the outputs
	Warnings []string  // one warning for each output whose iteration ended before it reached tol
}

// Posterior holds the posterior variance of w and the variance of the noise.
type Posterior struct {
	Center  []float64             // the mean x̄ of the samples
	Vectors backend.Host[float64] // r×d: eigenvectors of XᵀX, one in each row
	Spread  backend.Host[float64] // t×r: variances of w along the eigenvectors
	Prior   []float64             // σ_w² of each output: the variance of w in the directions orthogonal to Vectors
	Noise   []float64             // σ² of each output
}

// Offsets returns −Vx̄, with V = Vectors and x̄ = Center.
func (p Posterior) Offsets() []float64 {
	b := make([]float64, p.Vectors.Rows)
	for i := range b {
		for q, v := range p.Vectors.Row(i) {
			b[i] -= v * p.Center[q]
		}
	}
	return b
}

// Variance returns the n×t variances σ² + (x − x̄)ᵀΣ(x − x̄) of new targets at the rows of x, where Σ is the
// posterior covariance of w. projections holds V(x − x̄) for each row x, n×r.
func (p Posterior) Variance(x, projections backend.Host[float64]) backend.Host[float64] {
	variances := backend.NewHost[float64](x.Rows, len(p.Noise))
	for i := range x.Rows {
		orthogonal := 0.0
		if p.Vectors.Rows < x.Cols {
			for q, v := range x.Row(i) {
				orthogonal += (v - p.Center[q]) * (v - p.Center[q])
			}
			for _, a := range projections.Row(i) {
				orthogonal -= a * a
			}
			orthogonal = max(orthogonal, 0)
		}
		for j, noise := range p.Noise {
			sum := noise + orthogonal*p.Prior[j]
			for k, a := range projections.Row(i) {
				sum += a * a * p.Spread.Row(j)[k]
			}
			variances.Row(i)[j] = sum
		}
	}
	return variances
}

// CoefVariance returns the t×d variances of the elements of w.
func (p Posterior) CoefVariance() backend.Host[float64] {
	variances := backend.NewHost[float64](len(p.Noise), p.Vectors.Cols)
	for j := range variances.Rows {
		for q := range variances.Cols {
			orthogonal, sum := 1.0, 0.0
			for i := range p.Vectors.Rows {
				v := p.Vectors.Row(i)[q]
				orthogonal -= v * v
				sum += v * v * p.Spread.Row(j)[i]
			}
			if p.Vectors.Rows < variances.Cols {
				sum += max(0, orthogonal) * p.Prior[j]
			}
			variances.Row(j)[q] = sum
		}
	}
	return variances
}

// EvidenceBytes returns the memory of Evidence for n rows, in bytes: XᵀX on the device and on the host, a copy of
// XᵀX, and its eigenvectors. With fewer rows than features, XXᵀ replaces XᵀX, and the memory includes X.
func (c *Samples) EvidenceBytes(n int) int64 {
	if n < c.d {
		return 8 * (int64(n)*int64(c.d+c.t) + 4*int64(n)*int64(n))
	}
	return c.momentBytes(n) + 3*8*int64(c.d)*int64(c.d)
}

// Evidence iterates MacKay's update
//
//	γ = Σ_i s_i/(s_i + λ),  σ_w² = ‖w‖²/γ,  σ² = Σ_i w_i(y_i − f(x_i))²/(Σw_i − γ)
//
// with the eigenvalues s_i of XᵀX and λ = σ²/σ_w², until the fitted values change by less than
// tol·‖y − ȳ‖, for at most maxIter steps.
func (c *Samples) Evidence(t *run.Task, tol float64, maxIter int) (*EvidenceFit, error) {
	e, err := c.spectrum(t)
	if err != nil {
		return nil, err
	}
	m := &EvidenceFit{
		Coef:      backend.NewHost[float64](c.d, c.t),
		Posterior: Posterior{Center: make([]float64, c.d), Vectors: e.vectors, Spread: backend.NewHost[float64](c.t, len(e.eigenvalues))},
	}
	for p := range m.Center {
		m.Center[p] = c.meanX[0][p] + c.meanX[1][p]
	}
	for j := range c.t {
		f, err := e.evidence(t, j, c.weight, tol, maxIter)
		if err != nil {
			return nil, err
		}
		m.Steps = max(m.Steps, f.steps)
		if f.warning != "" {
			m.Warnings = append(m.Warnings, f.warning)
		}
		for i, s := range e.eigenvalues {
			m.Spread.Row(j)[i] = f.noise / (s + f.lambda)
			// w = Σ_i v_i √s_i a_i/(s_i + λ), where X = Σ_i √s_i u_i v_iᵀ and a_i = u_iᵀy
			coefficient := math.Sqrt(s) * e.coordinates.Row(j)[i] / (s + f.lambda)
			for p, v := range e.vectors.Row(i) {
				m.Coef.Row(p)[j] += v * coefficient
			}
		}
		m.Prior, m.Noise, m.Evidence = append(m.Prior, f.noise/f.lambda), append(m.Noise, f.noise), append(m.Evidence, f.evidence)
	}
	m.Intercept = c.intercepts(m.Coef)
	return m, t.Step("solve", 1)
}

// spectrum holds the decomposition X = U S^½ Vᵀ and the coordinates Uᵀy.
type spectrum struct {
	eigenvalues []float64             // S: the eigenvalues of XᵀX that exceed rounding errors
	vectors     backend.Host[float64] // r×d: V, one vector in each row
	coordinates backend.Host[float64] // t×r: Uᵀy
	total       []float64             // ‖y‖² of each output
	constant    []bool                // whether each output is constant up to rounding, and 0 without an intercept
	mean        []float64             // mean of y; 0 without an intercept
	d           int
}

// evidenceFit holds the variances that maximize the evidence of an output.
type evidenceFit struct {
	noise, lambda, evidence float64
	steps                   int
	warning                 string // why the iteration ended before tol was reached, or ""
}

// spectrum decomposes XᵀX, or XXᵀ if it is smaller, on the host.
func (c *Samples) spectrum(t *run.Task) (*spectrum, error) {
	s, x, err := newSecular(t, c)
	if err != nil {
		return nil, err
	}
	if err := t.Step("gram", 0.3); err != nil {
		return nil, err
	}
	n := s.m.Rows
	values, vectors := numeric.Small{Rows: n, Cols: n, Data: numeric.Clone(s.m).Data}.Eigen(t.Ctx)
	if err := t.Step("factor", 0.9); err != nil {
		return nil, err
	}
	minValue := float64(max(c.n, c.d)) * epsilon * max(values[0], 0)
	r := 0
	for r < n && values[r] > minValue {
		r++
	}
	e := &spectrum{eigenvalues: values[:r], total: make([]float64, c.t), constant: make([]bool, c.t), mean: make([]float64, c.t), d: c.d}
	if r == 0 {
		return nil, errors.New("every column of x is constant: there is nothing to predict from")
	}
	e.coordinates = backend.NewHost[float64](c.t, r)
	if s.dual {
		e.vectors = rightVectors(x, vectors, e.eigenvalues)
	} else {
		e.vectors = backend.NewHost[float64](r, c.d)
	}
	for i := range r {
		v := vectors.Data[i*n : (i+1)*n]
		for j := range c.t {
			e.coordinates.Row(j)[i] = numeric.Dot(s.r.Row(j), v)
			if !s.dual { // the product is vᵀXᵀy = √s uᵀy
				e.coordinates.Row(j)[i] /= math.Sqrt(e.eigenvalues[i])
			}
		}
		if !s.dual {
			copy(e.vectors.Row(i), v)
		}
	}
	for j := range c.t {
		var s spread.Spread
		for k := range c.n {
			s.Add(c.y.Row(c.positive.Row(k))[j])
		}
		e.mean[j] = s.Mean()
		e.constant[j] = s.Constant() && (c.intercept || e.mean[j] == 0)
	}
	ry := backend.NewHost[float64](1, c.t)
	for k := range c.n {
		c.fillY(ry, k)
		for j, v := range ry.Data {
			e.total[j] += v * v
		}
	}
	return e, nil
}

// rightVectors overwrites the n×d matrix X with the r×d matrix Vᵀ = S^−½UᵀX, and returns Vᵀ. The r largest eigenvalues
// of XXᵀ are the diagonal of S, and their eigenvectors are the rows of u.
func rightVectors(x backend.Host[float64], u numeric.Small, eigenvalues []float64) backend.Host[float64] {
	const width = 256 // number of columns that are copied and replaced together
	run.Parallel((x.Cols+width-1)/width, func(first, last int) {
		block := backend.NewHost[float64](x.Rows, width)
		for j := first * width; j < min(last*width, x.Cols); j += width {
			cols := min(width, x.Cols-j)
			for k := range x.Rows {
				copy(block.Row(k), x.Row(k)[j:j+cols])
			}
			for i, s := range eigenvalues {
				row := x.Row(i)[j : j+cols]
				clear(row)
				for k := range x.Rows {
					numeric.Axpy(u.At(i, k)/math.Sqrt(s), block.Row(k)[:cols], row)
				}
			}
		}
	})
	return x.View(0, 0, len(eigenvalues), x.Cols)
}

func (e *spectrum) evidence(t *run.Task, j int, n, tol float64, maxIter int) (f evidenceFit, err error) {
	a, total := e.coordinates.Row(j), e.total[j]
	outside := total // squared norm of the component of y orthogonal to the range of X
	for _, v := range a {
		outside -= v * v
	}
	outside = max(outside, 0)
	if !e.constant[j] && (math.IsInf(total, 1) || total == 0) {
		return f, fmt.Errorf("y: column %d: the squares of its values are out of range: scale y", j+1)
	}
	if e.constant[j] {
		// Set w = 0. The variance of the noise is the squared rounding error of y, but at least a small
		// number whose quotient by λ does not underflow.
		clear(a)
		f.noise, f.lambda = max(elementary.Pow(epsilon*e.mean[j], 2), 0x1p-900), 1e12*e.eigenvalues[0]
		f.evidence = e.logEvidence(a, 0, n, f.noise, f.lambda)
		return f, nil
	}
	// A squared residual below minResidual consists of rounding errors.
	minResidual := total * epsilon * epsilon * n
	f.noise, f.lambda = total/n, total/n // initial values as in scikit-learn: σ_w = 1
	for f.steps = 1; ; f.steps++ {
		var gamma, squares, residual, change float64
		for i, s := range e.eigenvalues {
			q := 1 / (s + f.lambda)
			gamma += s * q
			squares += s * a[i] * a[i] * q * q
			r := a[i] * f.lambda * q
			residual += r * r
		}
		residual = max(residual+outside, minResidual)
		noise := residual / max(n-gamma, epsilon*n)
		lambda := noise * gamma / squares
		if squares == 0 || lambda > 1e12*e.eigenvalues[0] {
			// The maximum of the evidence is at w = 0, where all of y is noise.
			noise, lambda = total/n, 1e12*e.eigenvalues[0]
		}
		for i, s := range e.eigenvalues {
			d := a[i] * s * (1/(s+lambda) - 1/(s+f.lambda))
			change += d * d
		}
		moved := math.Abs(elementary.Log(noise / f.noise))
		f.noise, f.lambda = noise, lambda
		if change <= tol*tol*total && moved <= max(tol, 4*epsilon) {
			break
		}
		if f.steps == maxIter {
			f.warning = fmt.Sprintf("output %d has not converged in %s: the last step changed the fitted values by %.2g of ‖y‖: {raise $tol|raise $iterations}", j+1, count.Of(f.steps, "step"), math.Sqrt(change/total))
			break
		}
		if f.steps%64 == 0 {
			if err := t.Step("solve", 0.9); err != nil {
				return f, err
			}
		}
	}
	f.evidence = e.logEvidence(a, outside, n, f.noise, f.lambda)
	return f, nil
}

// logEvidence returns log N(y; 0, σ²I + σ_w²XXᵀ) for the n rows.
func (e *spectrum) logEvidence(a []float64, outside, n, noise, lambda float64) float64 {
	sum := outside/noise + n*elementary.Log(2*math.Pi*noise)
	for i, s := range e.eigenvalues {
		// With σ_w² = noise/λ, the variance noise + σ_w² s is noise·(1 + s/λ).
		sum += math.Log1p(s/lambda) + a[i]*a[i]/(noise*(1+s/lambda))
	}
	return -sum / 2
}
