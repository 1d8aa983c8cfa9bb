package learners

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/solvers"
)

// Sampler is implemented by models of Ridge, NystromRidge and FourierRidge, which must have been fitted with Std.
type Sampler interface {
	Model
	// Sample returns draws of the function f + b from its posterior, without noise. Each draw is n×outputs, for
	// the n rows of x. The mean of the draws is the result of Predict, and their variance the result of Variance
	// minus the noise s²λ. The same seed gives the same draws. Sample takes nM² operations for M features, centers
	// or random features. For centers it also takes n²M + n³/3 operations and memory for an n×n matrix.
	Sample(ctx context.Context, dev backend.Device, x mat.Matrix, draws int, seed uint64) ([]*mat.Dense, error)
}

func posteriorParameters(std, unit *bool) []Parameter {
	return []Parameter{
		boolParam("std", std, "false", "keep the posterior in the model, for standard deviations and intervals").onlyFor(Regression),
		inverted("scale", unit, "fit the scale s² of the process; otherwise it is 1, so that lambda is the variance of the noise").onlyWith("std", "true"),
	}
}

// process holds the posterior of a Gaussian process whose mean is the prediction of the model. It is empty unless the
// model was fitted with Std.
type process struct{ posterior solvers.Posterior }

func (p *process) hasPosterior() bool { return p.posterior.Factors.Rows > 0 }

// Scale returns the scale s² of the process for each output, or nil if the model was fitted without Std. The noise of a
// sample of weight w has the variance s²λ/w.
func (p *process) Scale() []float64 { return slices.Clone(p.posterior.Scale) }

// LogLikelihood returns the log marginal likelihood of the samples under the approximated process, summed over the
// outputs, or 0 if the model was fitted without Std. With an intercept it is the restricted likelihood, in which
// the intercept is integrated out.
func (p *process) LogLikelihood() float64 { return p.posterior.Log }

var errNoPosterior = errors.New("the model did not keep its posterior: fit it with std = true")

// setPosterior sets the posterior to q, unless q is nil, and returns facts about it. bounded is
// true if q.Bound is a bound on the evidence.
func (p *process) setPosterior(q *solvers.Posterior, bounded bool) (facts []Fact) {
	if q == nil {
		return nil
	}
	p.posterior = *q
	facts = append(facts, Fact{"log evidence", q.Log})
	if bounded {
		facts = append(facts, Fact{"log evidence bound", q.Bound})
	}
	return append(facts, Fact{"noise deviation", math.Sqrt(q.Lambda * q.Scale[0])})
}

// variance returns the variances of new targets at the rows of x for the model whose predictor is m
// and whose basis is phi.
func (p *process) variance(ctx context.Context, dev backend.Device, m predictor, phi stream.Basis, x mat.Matrix) (out *mat.Dense, err error) {
	defer wrapError(m.learner+": variance", nil, &out, &err)
	m.needsDiagonal = true
	points, err := m.checkRows(dev, x)
	if err != nil {
		return nil, err
	}
	if !p.hasPosterior() {
		return nil, errNoPosterior
	}
	q, basis := &p.posterior, m.fixed[0]
	return m.variances(m.packing(ctx, dev, points), points, q.Scale, q.Lambda, func(ctx context.Context, x numeric.Points) ([]float64, error) {
		run.ReportPlan(ctx, dev, numeric.Total(q.VarianceBytes(dev, x), copiesOf(basis, 2)))
		return q.Variance(ctx, dev, phi, x)
	})
}

// variances returns s²(v + λ), with a column for each s² in scale and a row for each point; latent returns the
// values v for a block of points.
func (p predictor) variances(ctx context.Context, points numeric.Points, scale []float64, lambda float64, latent func(ctx context.Context, x numeric.Points) ([]float64, error)) (*mat.Dense, error) {
	out := mat.NewDense(points.Rows, len(scale), nil)
	err := p.inBlocks(ctx, points, func(ctx context.Context, first int, x numeric.Points) error {
		v, err := latent(ctx, x)
		for i, q := range v {
			for j, s := range scale {
				out.Set(first+i, j, s*(q+lambda))
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, checkPredicted("variance", dense(out), 0)
}

// sample returns draws of f + b at the rows of x: see Sampler.
func (p *process) sample(ctx context.Context, dev backend.Device, m predictor, mean Model, phi stream.Basis, x mat.Matrix, count int, seed uint64) (draws []*mat.Dense, err error) {
	defer wrapError(m.learner+": sample", nil, &draws, &err)
	m.needsDiagonal = true
	points, err := m.checkRows(dev, x)
	switch {
	case err != nil:
		return nil, err
	case !p.hasPosterior():
		return nil, errNoPosterior
	case count < 1:
		return nil, fmt.Errorf("the number of draws must be ≥ 1, got %d", count)
	}
	ctx, copied := m.packing(ctx, dev, points), m.copies(points)
	if points = m.convert(points); copied { // a draw needs all points at the same time
		ctx = run.Beside(ctx, points.CopyBytes(points.Rows))
	}
	outputs := len(p.posterior.Scale)
	bytes := func(n int) int64 {
		basis := m.fixed[0]
		return numeric.Total(p.posterior.SampleBytes(dev, n, count*outputs), points.PlacedBytes(dev.F64(), n), copiesOf(basis, 3))
	}
	if err := solvers.Reserve(ctx, dev, 0, "sample", points.Rows, bytes); err != nil {
		return nil, err
	}
	f, err := mean.Predict(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	h, err := p.posterior.Sample(ctx, dev, phi, m.kernel, points, count*outputs, rand.New(rand.NewPCG(seed, 3)))
	if err != nil {
		return nil, err
	}
	for k := range count {
		draw := mat.DenseCopyOf(f)
		draw.Apply(func(i, j int, v float64) float64 {
			return v + math.Sqrt(p.posterior.Scale[j])*h.Row(i)[k*outputs+j]
		}, draw)
		draws = append(draws, draw)
	}
	return draws, nil
}

// processFields returns the fields of the posterior of a model with the number of basis functions that size returns.
// The model's fields must list λ before them. The matrix of the posterior's factors has extraRows more rows than
// columns.
func (p *process) processFields(size, outputs size, extraRows int, lambda *float64) []field {
	q := &p.posterior
	numbers := []float64{q.Weight, q.Log, q.Bound, q.ResidualTrace}
	ifPosterior := func(f field) field {
		return field{
			save: func(s State) {
				if p.hasPosterior() {
					f.save(s)
				}
			},
			load: func(s State) error {
				if !p.hasPosterior() {
					return nil
				}
				return f.load(s)
			},
		}
	}
	return []field{
		optional("posterior", matrixField("posterior", &q.Factors, func() int { return size() + extraRows }, size)),
		optionalRow("shift", &q.Shift, size, anyNumber),
		ifPosterior(rowField("scale", &q.Scale, outputs, positive)),
		ifPosterior(boolField("unit_scale", &q.Unit)),
		ifPosterior(rowField("quadratic", &q.Quadratic, outputs, nonNegative)),
		ifPosterior(rowField("likelihood", &numbers, exactly(4), anyNumber)),
		ifPosterior(derived(func() error {
			q.Lambda, q.Weight, q.Log, q.Bound, q.ResidualTrace = *lambda, numbers[0], numbers[1], numbers[2], numbers[3]
			if !(q.Lambda > 0 && q.Weight > 0) {
				return fmt.Errorf("a posterior needs lambda and a sum of weights > 0, got %v and %v", q.Lambda, q.Weight)
			}
			for i := range size() {
				if !(q.Factors.Row(i + extraRows)[i] > 0) || extraRows > 0 && !(q.Factors.Row(i)[i] > 0) {
					return fmt.Errorf("array %q: the diagonal of a factor is not positive at basis function %d", "posterior", i+1)
				}
			}
			return nil
		})),
	}
}

// Variance implements Uncertain, for a model that was fitted with NystromRidge.Std. For the scale s² of the process it
// is
//
//	s²(k(x, x) − φᵀS⁻¹φ + λ(φ − φ̄)ᵀ(ΦᵀWΦ + λS)⁻¹(φ − φ̄) + λ/Σw + λ)
//
// with the centers c, φ = k(c, x), S = k(c, c), the weighted mean φ̄ of φ over the samples X, and Φ = k(X, c) centered;
// without an intercept φ̄ and λ/Σw are 0. Variance takes 2M² operations for each row of x.
func (m *NystromRidgeModel) Variance(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.variance(ctx, dev, m.predictor(), m.basis(), x)
}

func (m *NystromRidgeModel) basis() stream.Basis {
	return &stream.Centers{Kernel: m.kernel, Points: m.points, Columns: 1}
}

// Sample implements Sampler.
func (m *NystromRidgeModel) Sample(ctx context.Context, dev backend.Device, x mat.Matrix, draws int, seed uint64) ([]*mat.Dense, error) {
	return m.sample(ctx, dev, m.predictor(), m, m.basis(), x, draws, seed)
}

// LikelihoodBound returns the lower bound of Titsias (2009) on the log marginal likelihood of the
// exact process with the kernel and λ of the model, or 0 if it was fitted without Std.
func (m *NystromRidgeModel) LikelihoodBound() float64 { return m.posterior.Bound }

// copiesOf returns the bytes of the given number of copies of the points of a basis.
func copiesOf(basis numeric.Points, count int) int64 { return basis.CopyBytes(count * basis.Rows) }
