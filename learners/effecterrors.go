package learners

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/adjoint"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// averages computes weighted averages over the rows of x: of the derivative of a function with respect to each feature,
// or for a feature in the list binary, of the change of the function between the two values of the feature.
type averages struct {
	x       backend.Host[float64]
	weights []float64 // the weights; their sum is 1
	binary  []int
	levels  [][2]float64 // the smaller and the larger value of each feature in the list binary
}

func newAverages(x backend.Host[float64], p EffectParams) (a averages, err error) {
	if err := numeric.CheckWeights(p.Options.Weights, x.Rows); err != nil {
		return a, err
	}
	a = averages{x: x, weights: slices.Clone(p.Options.Weights), binary: p.Binary}
	if a.weights == nil {
		a.weights = slices.Repeat([]float64{1}, x.Rows)
	}
	total := 0.0
	for _, w := range a.weights {
		total += w
	}
	floats.Scale(1/total, a.weights)
	for k, q := range p.Binary {
		if q < 0 || q >= x.Cols || slices.Contains(p.Binary[:k], q) {
			return a, fmt.Errorf("binary: %d is listed twice, or is not the index of a feature from 0 to %d", q, x.Cols-1)
		}
		values := map[float64]bool{}
		low, high := math.Inf(1), math.Inf(-1)
		for i := range x.Rows {
			v := x.Row(i)[q]
			values[v], low, high = true, min(low, v), max(high, v)
		}
		if len(values) != 2 {
			return a, fmt.Errorf("binary: the feature with index %d has %s in x: a binary feature has 2", q, count.Of(len(values), "value"))
		}
		a.levels = append(a.levels, [2]float64{low, high})
	}
	return a, nil
}

func (a averages) onlyBinary() bool { return len(a.binary) == a.x.Cols }

// atLevel returns a copy of a.x in which the feature binary[q] has the value levels[q][level] in every row.
func (a averages) atLevel(q, level int) backend.Host[float64] {
	x := backend.NewHost[float64](a.x.Rows, a.x.Cols)
	for i := range x.Rows {
		copy(x.Row(i), a.x.Row(i))
		x.Row(i)[a.binary[q]] = a.levels[q][level]
	}
	return x
}

// differences returns, for each row and output, the change of the sum of the given functions when the feature binary[q]
// changes from its smaller to its larger value.
func (a averages) differences(ctx context.Context, dev backend.Device, q int, sums ...predictor) (*mat.Dense, error) {
	out := mat.NewDense(a.x.Rows, len(sums[0].intercept), nil)
	for level, sign := range []float64{-1, 1} {
		x := denseOf(a.atLevel(q, level))
		for _, p := range sums {
			f, err := p.predict(ctx, dev, x)
			if err != nil {
				return nil, err
			}
			out.Apply(func(i, j int, v float64) float64 { return v + sign*f.At(i, j) }, out)
		}
	}
	return out, nil
}

// averageKernel returns m×d averages: row l holds the averages for the function k(·, z_l) of point l of z.
func (a averages) averageKernel(ctx context.Context, dev backend.Device, k kernels.Kernel, z numeric.Points) (backend.Host[float64], error) {
	weights := numeric.Column(a.weights)
	l := adjoint.GramLoss{Kernel: k, X: a.x, Z: denseForm(z)}
	l.Weights.U, l.Weights.V = weights, numeric.Column(numeric.Repeated(1.0, z.Rows))
	g := &adjoint.Gradients{Shift: backend.NewHost[float64](z.Rows, a.x.Cols)}
	if !a.onlyBinary() {
		var err error
		if g, err = adjoint.GramGradient(ctx, dev, l, adjoint.WantShift); err != nil {
			return backend.Host[float64]{}, err
		}
	}
	for q, feature := range a.binary {
		for l := range z.Rows {
			g.Shift.Row(l)[feature] = 0
		}
		for level, sign := range []float64{-1, 1} {
			f, err := expansion("", k, numeric.DensePoints(a.atLevel(q, level)), weights, []float64{0}).predict(ctx, dev, denseOf(l.Z))
			if err != nil {
				return backend.Host[float64]{}, err
			}
			for l := range z.Rows {
				g.Shift.Row(l)[feature] += sign * f.At(l, 0)
			}
		}
	}
	return g.Shift, nil
}

// priorVariances returns the variances of the averages of a Gaussian process with the covariance k,
// or nil if n²(d + 10) exceeds maxCovariances or the process has no derivatives.
func (a averages) priorVariances(ctx context.Context, dev backend.Device, k kernels.Kernel) ([]float64, error) {
	n, d := a.x.Rows, a.x.Cols
	if float64(n)*float64(n)*float64(d+10) > maxCovariances {
		return nil, nil
	}
	rows := backend.NewHost[float64](n, d)
	if !a.onlyBinary() {
		mixed, err := kernels.NewMixed(k, d)
		if err != nil {
			return nil, nil //nolint:nilerr // the effects have no standard errors
		}
		points := make([]kernels.MixedPoint, n)
		for i := range points {
			if points[i], err = mixed.Point(a.x.Row(i)); err != nil {
				return nil, err
			}
		}
		run.Parallel(n, func(from, to int) {
			weights := make([]float64, n)
			for i := from; i < to && ctx.Err() == nil; i++ {
				// Row i is paired with the next n/2 rows in cyclic order. If n is even, the pair of i and i + n/2
				// occurs twice, so each occurrence has half of the weight.
				for s := 1; s <= n/2; s++ {
					weights[(i+s)%n] = 2 * a.weights[i] * a.weights[(i+s)%n]
					if 2*s == n {
						weights[(i+s)%n] /= 2
					}
				}
				weights[i] = a.weights[i] * a.weights[i]
				mixed.AddRow(rows.Row(i), points[i], points, weights)
				clear(weights)
			}
		})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	prior := make([]float64, d)
	for i := range n {
		floats.Add(prior, rows.Row(i))
	}
	for q, feature := range a.binary {
		prior[feature] = 0
		for level, sign := range []float64{-1, 1} {
			f := expansion("", k, numeric.DensePoints(a.atLevel(q, level)), numeric.Column(a.weights), []float64{0})
			changes, err := a.differences(ctx, dev, q, f)
			if err != nil {
				return nil, err
			}
			prior[feature] += sign * numeric.Dot(a.weights, changes.RawMatrix().Data)
		}
	}
	return prior, nil
}

// standardErrors returns the standard errors of the averages of m, or nil: see MarginalEffects.
func (a averages) standardErrors(ctx context.Context, dev backend.Device, m Model, o Options) (*mat.Dense, error) {
	var variances, scale []float64 // variances of the features, and scale of the outputs
	var err error
	switch m := m.(type) {
	case *KernelRidgeModel:
		return m.meanErrors(ctx, dev, a, o)
	case *GaussianProcessModel:
		scale = m.scale
		variances, err = m.effectVariances(ctx, dev, a)
	case *RVMModel:
		scale = []float64{1}
		variances, err = m.effectVariances(ctx, dev, a)
	case *BayesRidgeModel:
		variance := denseOf(m.posterior.CoefVariance())
		for q, feature := range a.binary {
			step := a.levels[q][1] - a.levels[q][0]
			for j := range variance.RawMatrix().Rows {
				variance.Set(j, feature, step*step*variance.At(j, feature))
			}
		}
		variance.Apply(func(_, _ int, v float64) float64 { return math.Sqrt(v) }, variance)
		return variance, nil
	case updatable:
		if q := &m.asProcess().posterior; m.asProcess().hasPosterior() {
			_, phi, _, _ := m.linearForm()
			scale = q.Scale
			variances, err = a.posteriorVariances(ctx, dev, q, phi)
		}
	}
	if variances == nil || err != nil {
		return nil, err
	}
	out := mat.NewDense(len(scale), len(variances), nil)
	out.Apply(func(j, p int, _ float64) float64 { return math.Sqrt(scale[j] * max(0, variances[p])) }, out)
	return out, checkPredicted("standard error", dense(out), 0)
}

// posteriorVariances returns the variances of the averages, divided by s² for the scale s in MarginalEffects.
func (a averages) posteriorVariances(ctx context.Context, dev backend.Device, q *solvers.Posterior, phi stream.Basis) (prior []float64, err error) {
	var blocks []backend.Host[float64]
	switch phi := phi.(type) {
	case *stream.Centers:
		if q.Factors.Rows > q.Factors.Cols {
			if prior, err = a.priorVariances(ctx, dev, phi.Kernel); prior == nil || err != nil {
				return nil, err
			}
		}
		g, err := a.averageKernel(ctx, dev, phi.Kernel, phi.Points)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, g)
	case *stream.Features: // feature l is the value of the linear kernel for the unit vector l
		unit := backend.NewHost[float64](phi.Columns, phi.Columns)
		for l := range unit.Rows {
			unit.Row(l)[l] = 1
		}
		g, err := a.averageKernel(ctx, dev, kernels.Linear{}, numeric.DensePoints(unit))
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, g)
	case *stream.Fourier:
		for _, wave := range []kernels.Kernel{stream.Cosines, stream.Sines} {
			g, err := a.averageKernel(ctx, dev, kernels.Scaled{Weight: phi.Scale, Kernel: wave}, numeric.DensePoints(phi.Frequencies))
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, g)
		}
	}
	g := backend.NewHost[float64](a.x.Cols, 0)
	for p := range g.Rows {
		for _, block := range blocks {
			for l := range block.Rows {
				g.Data = append(g.Data, block.Row(l)[p])
			}
		}
	}
	g.Cols = len(g.Data) / g.Rows
	g.Stride = g.Cols
	return q.Functionals(ctx, dev, phi, g, prior)
}

// effectVariances returns the variances of the averages, divided by s² for the scale s in MarginalEffects.
func (m *GaussianProcessModel) effectVariances(ctx context.Context, dev backend.Device, a averages) ([]float64, error) {
	variances, err := a.priorVariances(ctx, dev, m.kernel)
	if variances == nil || err != nil {
		return nil, err
	}
	g, err := a.averageKernel(ctx, dev, m.kernel, m.points)
	if err != nil {
		return nil, err
	}
	u, err := m.factors(dev).factorFor(ctx, dev, m.lambda)
	if err != nil {
		return nil, err
	}
	solution := numeric.Clone(g)
	if err := u.Solve(ctx, dev, solution, 0); err != nil {
		return nil, err
	}
	for l := range g.Rows {
		for p, v := range g.Row(l) {
			variances[p] -= v * solution.Row(l)[p]
		}
	}
	return variances, nil
}

func (m *RVMModel) effectVariances(ctx context.Context, dev backend.Device, a averages) ([]float64, error) {
	variances := make([]float64, a.x.Cols)
	r := m.root.Rows - 1 // the average derivative of the constant function φ_0 is 0
	if r <= 0 {
		return variances, nil
	}
	g, err := a.averageKernel(ctx, dev, m.kernel, m.points)
	if err != nil {
		return nil, err
	}
	var product mat.Dense
	product.Mul(denseOf(g).T(), denseOf(m.root.View(1, 0, r, m.root.Cols)))
	for p := range variances {
		variances[p] = numeric.Dot(product.RawRowView(p), product.RawRowView(p))
	}
	return variances, nil
}

func (m *KernelRidgeModel) meanErrors(ctx context.Context, dev backend.Device, a averages, o Options) (*mat.Dense, error) {
	n, outputs := m.points.Rows, m.coef.Cols
	g, err := a.averageKernel(ctx, dev, m.kernel, m.points)
	if err != nil {
		return nil, err
	}
	weight := func(i int) float64 {
		if m.weights == nil {
			return 1
		}
		return m.weights[i]
	}
	// squares returns Σ_i a_ij²/v_i for each column j of a, with the weight v_i of sample i.
	squares := func(a backend.Host[float64]) []float64 {
		sum := make([]float64, a.Cols)
		for i := range a.Rows {
			for j, v := range a.Row(i) {
				sum[j] += v * v / weight(i)
			}
		}
		return sum
	}
	noise := squares(m.coef) // the residual of sample i is λα_i/v_i
	out := mat.NewDense(outputs, a.x.Cols, nil)
	for _, lambda := range m.distinctLambdas(outputs) {
		if lambda == 0 {
			continue // the residuals are 0
		}
		res, err := solvers.Solve(ctx, dev, solvers.Problem{
			Kernel: m.kernel, X: m.points.Dense, Sparse: m.points.Sparse, Y: g, Weights: m.weights, Lambda: lambda, Intercept: m.hasIntercept,
		}, solvers.Params{NeedsAlpha: true, Memory: o.Memory, Progress: o.Progress})
		if err != nil {
			return nil, err
		}
		norms := squares(res.Alpha)
		for _, feature := range a.binary {
			norms[feature] *= 2
		}
		for _, j := range m.byLambda(outputs)[lambda] {
			for p, v := range norms {
				out.Set(j, p, lambda*math.Sqrt(noise[j]/float64(n)*v))
			}
		}
	}
	return out, nil
}
