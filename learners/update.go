package learners

import (
	"context"
	"errors"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/solvers"
)

// update returns the posterior, the coefficients for phi and the intercept after samples were appended,
// or removed if sign is −1.
func (p *process) update(ctx context.Context, dev backend.Device, m predictor, phi stream.Basis, x, y mat.Matrix, o Options, sign float64, beta backend.Host[float64]) (q *solvers.Posterior, b backend.Host[float64], bias []float64, err error) {
	var none struct{}
	defer named(m.learner+": update", nil, &none, &err)
	points, err := m.check(dev, x)
	if err != nil {
		return nil, b, nil, err
	}
	hy, err := targets(points.Rows, y)
	switch {
	case err != nil:
	case !p.hasPosterior():
		err = errNoPosterior
	case hy.Cols != beta.Cols:
		err = errors.New("y has another number of columns than in the fit")
	default:
		err = checkFinite("y", hy)
	}
	if err == nil {
		err = numeric.CheckWeights(o.Weights, points.Rows)
	}
	if err == nil {
		err = o.refuseUnused()
	}
	if err == nil {
		basis := m.fixed[0]
		err = solvers.Reserve(ctx, dev, o.Memory, "update", points.Rows, func(n int) int64 {
			return numeric.Total(p.posterior.UpdateBytes(n, hy.Cols), points.PlacedBytes(dev.F64(), n), basis.PlacedBytes(dev.F64(), basis.Rows))
		})
	}
	if err != nil {
		return nil, b, nil, err
	}
	return p.posterior.Update(ctx, dev, phi, points, hy, o.Weights, sign, beta, m.intercept)
}

// Append returns the model that a fit with the same kernel, λ and centers would return for the samples of
// m and those of x and y together, up to rounding; m is not changed. m must have been fitted with
// NystromRidge.Std. Of o only Weights and Memory are used. It takes O(rM² + M³) operations for r
// samples, and does not need the earlier ones.
func (m *NystromRidgeModel) Append(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*NystromRidgeModel, error) {
	return m.updated(ctx, dev, x, y, o, 1)
}

// Remove is the inverse of Append: x, y and the weights are those of samples of the fit. If nearly all
// samples are removed, the rounding errors are those of the sums of all samples.
func (m *NystromRidgeModel) Remove(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*NystromRidgeModel, error) {
	return m.updated(ctx, dev, x, y, o, -1)
}

func (m *NystromRidgeModel) updated(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options, sign float64) (*NystromRidgeModel, error) {
	q, beta, bias, err := m.update(ctx, dev, m.predictor(), m.basis(), x, y, o, sign, m.coef)
	if err != nil {
		return nil, err
	}
	u := &NystromRidgeModel{
		kernelExpansion: kernelExpansion{model: model{nystromRidgeName, []Fact{{"centers", m.points.Rows}}}, kernel: m.kernel, points: m.points, coef: beta, intercept: bias},
		solution:        solution{m.lambda, m.fitted, nil},
	}
	u.facts = append(u.facts, u.keep(q, true)...)
	return u, nil
}

// Append is NystromRidgeModel.Append for a model that was fitted with FourierRidge.Std, and the same
// frequencies.
func (m *FourierRidgeModel) Append(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*FourierRidgeModel, error) {
	return m.updated(ctx, dev, x, y, o, 1)
}

// Remove is the inverse of Append: see NystromRidgeModel.Remove.
func (m *FourierRidgeModel) Remove(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*FourierRidgeModel, error) {
	return m.updated(ctx, dev, x, y, o, -1)
}

func (m *FourierRidgeModel) updated(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options, sign float64) (*FourierRidgeModel, error) {
	pairs, t := m.cosines.Rows, m.cosines.Cols
	coef, phi := backend.NewHost[float64](2*pairs, t), stream.FourierOf(m.kernel, m.frequencies.Dense)
	for i := range pairs {
		for j := range t {
			coef.Row(i)[j], coef.Row(pairs + i)[j] = m.cosines.Row(i)[j]/phi.Scale, m.sines.Row(i)[j]/phi.Scale
		}
	}
	q, beta, bias, err := m.update(ctx, dev, m.waves(stream.Cosines, m.cosines, m.intercept), phi, x, y, o, sign, coef)
	if err != nil {
		return nil, err
	}
	for i := range beta.Data {
		beta.Data[i] *= phi.Scale
	}
	u := &FourierRidgeModel{
		model: model{fourierRidgeName, []Fact{{"features", 2 * pairs}}}, solution: solution{m.lambda, m.fitted, nil},
		kernel: m.kernel, frequencies: m.frequencies, intercept: bias,
		cosines: beta.View(0, 0, pairs, t), sines: beta.View(pairs, 0, pairs, t),
	}
	u.facts = append(u.facts, u.keep(q, false)...)
	return u, nil
}
