package evidence

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/floats"
)

const (
	// minAll is the minimum number of samples for which a search begins with a part of the samples.
	minAll = 800
	// minPart and maxPart bound the number of samples in this part.
	minPart, maxPart = 400, 2000
)

// partSearch returns a search that uses only a part of the samples, or nil if
//   - there are fewer than minAll samples,
//   - Evaluate is set,
//   - the kernel reads its values from a matrix by the index of a sample, or
//   - a target is 0 for all samples of the part.
func (h *search) partSearch() *search {
	p := h.problem
	var rows []int // rows of weight > 0
	for i := range p.Y.Rows {
		if p.Weights == nil || p.Weights[i] > 0 {
			rows = append(rows, i)
		}
	}
	n := len(rows)
	readsEntries := slices.ContainsFunc(kernels.Compile(p.Kernel).Stats, func(s kernels.Stat) bool { return s.Kind == kernels.Entry })
	if n < minAll || readsEntries || h.par.Evaluate != nil {
		return nil
	}
	rand.New(rand.NewPCG(h.par.Seed, 3)).Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	rows = rows[:min(max(minPart, n/4), maxPart)]
	slices.Sort(rows)
	x := numeric.DensePoints(p.X)
	if p.Sparse != nil {
		x = numeric.SparsePoints(*p.Sparse)
	}
	x = x.Take(rows)
	p.X, p.Sparse, p.Y = x.Dense, x.Sparse, numeric.DensePoints(p.Y).Take(rows).Dense
	if nonzeroColumns(p.Y).Cols < p.Y.Cols {
		return nil
	}
	if p.Weights != nil {
		p.Weights = make([]float64, len(rows))
		for k, i := range rows {
			p.Weights[k] = h.problem.Weights[i]
		}
	}
	g := &search{ctx: h.ctx, dev: h.dev, problem: p, par: h.par, params: h.params, start: h.start, low: h.low, high: h.high}
	if report := h.par.Report; report != nil {
		g.par.Report = func(evaluations, _ int) { report(h.evaluations, evaluations) }
		h.par.Report = func(evaluations, _ int) { report(evaluations, g.evaluations) }
	}
	return g
}

// climbParts runs a local search with a part of the samples from each start, evaluates the end points with all samples,
// and continues from the best of them. Without a usable end point, the slice ends remains empty.
func (h *search) climbParts(starts [][]float64) error {
	g := h.partSearch()
	if g == nil {
		return nil
	}
	var bestPoint []float64
	value := math.Inf(1)
	for _, x := range starts {
		end, err := g.climbEnd(x)
		if h.ctx.Err() != nil {
			return err
		}
		if err != nil || end == nil || slices.ContainsFunc(h.ends, func(other []float64) bool { return floats.Distance(end, other, math.Inf(1)) < 0.1 }) {
			continue
		}
		h.evaluate(end)
		if err := h.fatalError(); err != nil {
			return err
		}
		if math.IsInf(h.value, 1) {
			continue
		}
		h.ends = append(h.ends, end)
		if h.value < value {
			bestPoint, value = end, h.value
		}
	}
	if bestPoint == nil {
		return nil
	}
	bestPoint = g.clipToStart(bestPoint)
	curvature, err := g.curvature(bestPoint)
	if err != nil {
		h.ends = nil
		return h.fatalError()
	}
	floats.Scale(float64(h.problem.Y.Rows)/float64(g.problem.Y.Rows), curvature.Data)
	return h.finish(bestPoint, curvature)
}

// clipToStart returns x with the kernel's parameters limited to a factor of 100 from their start, if this lowers
// the log likelihood of the part of the samples by at most 1 for each changed parameter.
func (h *search) clipToStart(x []float64) []float64 {
	h.evaluate(x)
	limit, y := h.value, slices.Clone(x)
	for i, q := range h.params {
		if q.Log {
			y[i] = min(max(x[i], h.start[i]-elementary.Log(100)), h.start[i]+elementary.Log(100))
		}
		if y[i] != x[i] {
			limit++
		}
	}
	if h.evaluate(y); h.value < limit {
		return y
	}
	return x
}

// climbEnd returns the best point that a climb from x evaluates, or nil if there is none.
func (h *search) climbEnd(x []float64) ([]float64, error) {
	h.bestPoint, h.bestValue = nil, math.Inf(1)
	err := h.climb(slices.Clone(x), 1e-3)
	return h.bestPoint, err
}

// curvature returns the symmetric part of the finite differences of the gradient at x, as a matrix.
func (h *search) curvature(x []float64) (c numeric.Small, err error) {
	const step = 0.01
	h.evaluate(x)
	gradient := slices.Clone(h.gradient)
	c = numeric.NewSmall(len(x), len(x))
	for i := range x {
		y := slices.Clone(x)
		y[i] += step
		h.evaluate(y)
		if h.err != nil {
			return c, h.err
		}
		for j, v := range h.gradient {
			d := (v - gradient[j]) / step / 2
			c.Set(i, j, c.At(i, j)+d)
			c.Set(j, i, c.At(j, i)+d)
		}
	}
	return c, nil
}

// finish continues from x with all samples by the quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno
// (Nocedal and Wright 2006, chapter 6). The first matrix has the eigenvectors of curvature and the absolute values of
// its eigenvalues. The method ends
//   - when the predicted increase is below 10⁻⁵ and all derivatives are below 10⁻³,
//   - when two successive steps increase the log likelihood by less than 10⁻⁵ each, or
//   - when no step along the direction increases the log likelihood, or after maxEvaluations evaluations.
func (h *search) finish(x []float64, curvature numeric.Small) error {
	n := len(x)
	x = slices.Clone(x)
	h.evaluate(x)
	curvature = definite(curvature)
	value, gradient := h.value, slices.Clone(h.gradient)
	for first, smallSteps := h.evaluations, 0; h.evaluations-first < maxEvaluations && smallSteps < 2; {
		step := newtonStep(curvature, gradient)
		slope := -numeric.Dot(step, gradient)
		if slope/2 < 1e-5 && floats.Norm(gradient, math.Inf(1)) < 1e-3 {
			return nil
		}
		y, length := make([]float64, n), 1.0
		for ; ; length /= 4 {
			floats.AddScaledTo(y, x, length, step)
			h.evaluate(y)
			if err := h.fatalError(); err != nil {
				return err
			}
			if h.value <= value-1e-4*length*slope {
				break
			}
			if length < 1e-6 {
				return nil
			}
		}
		if value-h.value < 1e-5 {
			smallSteps++
		} else {
			smallSteps = 0
		}
		// BFGS update of B = curvature: B − Bs(Bs)ᵀ/sᵀBs + ddᵀ/sᵀd for the step s and the change d of the gradient.
		s, d, bs := make([]float64, n), make([]float64, n), make([]float64, n)
		floats.SubTo(s, y, x)
		floats.SubTo(d, h.gradient, gradient)
		for i := range n {
			bs[i] = numeric.Dot(curvature.Data[i*n:(i+1)*n], s)
		}
		if sd, sbs := numeric.Dot(s, d), numeric.Dot(s, bs); sd > 1e-8*length*slope && sbs > 0 {
			for i := range n {
				numeric.Axpy(-bs[i]/sbs, bs, curvature.Data[i*n:(i+1)*n])
				numeric.Axpy(d[i]/sd, d, curvature.Data[i*n:(i+1)*n])
			}
		}
		copy(x, y)
		value, gradient = h.value, slices.Clone(h.gradient)
	}
	return nil
}

const minCurvature = 0.01

// definite returns b with each eigenvalue v replaced by max(|v|, minCurvature).
func definite(b numeric.Small) numeric.Small {
	values, vectors := b.Eigen(context.Background())
	out := numeric.NewSmall(b.Rows, b.Cols)
	for k, v := range values {
		direction := vectors.Data[k*b.Cols : (k+1)*b.Cols]
		for i := range b.Rows {
			numeric.Axpy(max(math.Abs(v), minCurvature)*direction[i], direction, out.Data[i*b.Cols:(i+1)*b.Cols])
		}
	}
	return out
}

// newtonStep returns −B⁻¹g for a symmetric matrix B, whose eigenvalues are raised to minCurvature. The step is at
// most 1 along each eigenvector.
func newtonStep(b numeric.Small, g []float64) []float64 {
	n := len(g)
	step := make([]float64, n)
	values, vectors := numeric.Small{Rows: n, Cols: n, Data: slices.Clone(b.Data)}.Eigen(context.Background())
	for k, v := range values {
		direction := vectors.Data[k*n : (k+1)*n]
		length := numeric.Dot(direction, g) / max(v, minCurvature)
		numeric.Axpy(-min(max(length, -1), 1), direction, step)
	}
	return step
}
