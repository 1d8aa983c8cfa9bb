package learners

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// Append returns the model that a fit with the same kernel, λ and centers or frequencies would return for the samples
// of m together with the samples x and y, up to rounding; m is not changed. m is a model of Ridge, NystromRidge or
// FourierRidge that was fitted with Std. Append uses only the fields Weights and Memory of o. Append takes O(rM² + M³)
// operations for r samples and M features, centers or random features, and does not need the earlier samples.
func Append[M Model](ctx context.Context, dev backend.Device, m M, x, y mat.Matrix, o Options) (M, error) {
	return applyUpdate(m, "append", func(p *process, u updatable) (Model, error) { return p.update(ctx, dev, u, x, y, o, 1) })
}

// Remove is the inverse of Append: x, y and o.Weights must be those of samples that m was fitted
// to. Rounding errors stay as large as for all samples, even if nearly all samples are removed.
func Remove[M Model](ctx context.Context, dev backend.Device, m M, x, y mat.Matrix, o Options) (M, error) {
	return applyUpdate(m, "remove", func(p *process, u updatable) (Model, error) { return p.update(ctx, dev, u, x, y, o, -1) })
}

// Merge returns the model that a fit to the samples of both models m and other would return, up to rounding. The models
// must have been fitted with Std to different samples, with the same kernel, λ, intercept and centers or frequencies.
// Models with centers must have been fitted on the same kind of processor. Merge takes O(M³) operations.
func Merge[M Model](ctx context.Context, dev backend.Device, m M, other Model) (M, error) {
	return applyUpdate(m, "merge", func(p *process, u updatable) (Model, error) {
		if numeric.IsNil(other) {
			return nil, errors.New("no other model was given")
		}
		v, ok := other.(updatable)
		if !ok || v.Learner() != u.Learner() {
			return nil, fmt.Errorf("the other model was fitted by %s, not by %s", other.Learner(), u.Learner())
		}
		return p.merge(ctx, dev, u, v)
	})
}

func applyUpdate[M Model](m M, operation string, change func(p *process, u updatable) (Model, error)) (out M, err error) {
	if numeric.IsNil(m) {
		return out, fmt.Errorf("learners: %s: no model was given", operation)
	}
	u, ok := any(m).(updatable)
	if !ok {
		return out, fmt.Errorf("learners: %s: a model of %s cannot be updated: use ridge, nystrom-ridge or fourier-ridge with std = true", operation, m.Learner())
	}
	defer wrapError(m.Learner()+": "+operation, nil, &out, &err)
	p := u.asProcess()
	if _, outputs := m.Dims(); outputs == 0 {
		return out, errNotFitted
	}
	if !p.hasPosterior() {
		return out, errNoPosterior
	}
	r, err := change(p, u)
	if err != nil {
		return out, err
	}
	return r.(M), nil
}

// updatable is a model of Ridge, NystromRidge or FourierRidge.
type updatable interface {
	Model
	asProcess() *process
	// linearForm returns the model as a linear function of the basis phi, whose points are
	// p.fixed[0], with the coefficients beta and the intercept bias.
	linearForm() (p predictor, phi stream.Basis, beta backend.Host[float64], bias []float64)
	// withPosterior returns the model with the posterior q and the given coefficients of the basis and intercept.
	withPosterior(q *solvers.Posterior, beta backend.Host[float64], bias []float64) Model
}

func (p *process) asProcess() *process { return p }

func (p *process) update(ctx context.Context, dev backend.Device, u updatable, x, y mat.Matrix, o Options, sign float64) (Model, error) {
	m, phi, beta, bias := u.linearForm()
	m.needsDiagonal = true
	points, err := m.check(dev, x)
	if err != nil {
		return nil, err
	}
	hy, err := targets(points.Rows, y)
	switch {
	case err != nil:
	case hy.Cols != beta.Cols:
		err = fmt.Errorf("y has %s, but the model has %s", count.Of(hy.Cols, "column"), count.Of(beta.Cols, "output"))
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
		return nil, err
	}
	q, beta, bias, err := p.posterior.Update(ctx, dev, phi, points, hy, o.Weights, sign, beta, bias)
	if err != nil {
		return nil, err
	}
	return u.withPosterior(q, beta, bias), nil
}

func (p *process) merge(ctx context.Context, dev backend.Device, u, v updatable) (Model, error) {
	m, phi, beta, bias := u.linearForm()
	n, _, gamma, shift := v.linearForm()
	other := v.asProcess()
	if dev == nil {
		return nil, errNoDevice
	}
	if !other.hasPosterior() {
		return nil, fmt.Errorf("the other model: %w", errNoPosterior)
	}
	a, b := &p.posterior, &other.posterior
	for _, difference := range []struct {
		name    string
		differs bool
	}{
		{"the number of features", m.features != n.features},
		{"the number of outputs", beta.Cols != gamma.Cols},
		{"the kernel", kernelText(u) != kernelText(v)},
		{"lambda", a.Lambda != b.Lambda},
		{"the intercept: one model has none", (a.Shift == nil) != (b.Shift == nil)},
		{"the scale: one model has the scale 1", a.Unit != b.Unit},
		{"the centers or frequencies", !samePoints(m.fixed[0], n.fixed[0])},
		{"the Cholesky factor of the kernel matrix of the centers: fit both models on the same processor", !sameRoots(a, b)},
	} {
		if difference.differs {
			return nil, errors.New("the models differ in " + difference.name)
		}
	}
	basis := m.fixed[0]
	err := solvers.Reserve(ctx, dev, 0, "merge", 1, func(int) int64 {
		return 2 * numeric.Total(a.UpdateBytes(1, beta.Cols), basis.PlacedBytes(dev.F64(), basis.Rows))
	})
	if err != nil {
		return nil, err
	}
	q, beta, bias, err := a.Merge(ctx, dev, phi, b, [2]backend.Host[float64]{beta, gamma}, [2][]float64{bias, shift})
	if err != nil {
		return nil, err
	}
	return u.withPosterior(q, beta, bias), nil
}

func kernelText(m Model) string {
	if k, ok := m.(interface{ Kernel() kernels.Kernel }); ok {
		return k.Kernel().String()
	}
	return ""
}

// samePoints reports whether the points of two bases have equal coordinates in the same order.
func samePoints(a, b numeric.Points) bool {
	if a.Rows != b.Rows || a.Cols != b.Cols {
		return false
	}
	for i := range a.Rows {
		if !slices.Equal(a.Point(i), b.Point(i)) {
			return false
		}
	}
	return true
}

// sameRoots reports whether two posteriors have equal Cholesky factors of the kernel matrix of the centers.
func sameRoots(a, b *solvers.Posterior) bool {
	m := a.Factors.Cols
	if a.Factors.Rows != b.Factors.Rows || m != b.Factors.Cols {
		return false
	}
	for j := range m {
		if a.Factors.Rows > m && !slices.Equal(a.Factors.Row(j)[j:], b.Factors.Row(j)[j:]) {
			return false
		}
	}
	return true
}

func (m *NystromRidgeModel) linearForm() (predictor, stream.Basis, backend.Host[float64], []float64) {
	return m.predictor(), m.basis(), m.coef, m.intercept
}

func (m *NystromRidgeModel) withPosterior(q *solvers.Posterior, beta backend.Host[float64], bias []float64) Model {
	u := &NystromRidgeModel{
		kernelExpansion: kernelExpansion{model: model{nystromRidgeName, []Fact{{"centers", m.points.Rows}}}, kernel: m.kernel, points: m.points, coef: beta, intercept: bias},
		solution:        solution{m.lambda, m.hasIntercept, nil},
	}
	u.facts = append(u.facts, u.setPosterior(q, true)...)
	return u
}

func (m *RidgeModel) linearForm() (predictor, stream.Basis, backend.Host[float64], []float64) {
	p, d := m.predictor(), m.coef.Rows
	p.linear, p.fixed = false, []numeric.Points{{Cols: d}} // linear is false so that x becomes dense
	return p, &stream.Features{Columns: d}, m.coef, m.intercept
}

func (m *RidgeModel) withPosterior(q *solvers.Posterior, beta backend.Host[float64], bias []float64) Model {
	u := &RidgeModel{
		linear:    linear{model{ridgeName, []Fact{{squaredNorm, coefNorm(beta)}}}, beta, bias},
		solutions: solutions{solution{m.lambda, m.hasIntercept, nil}, nil},
	}
	u.facts = append(u.facts, u.setPosterior(q, false)...)
	return u
}

// reservePosterior reports the plan of learnPosterior, or returns an error if this memory is not free.
func reservePosterior(ctx context.Context, dev backend.Device, x numeric.Points, t int, o Options) error {
	prior := solvers.Posterior{Factors: backend.Host[float64]{Rows: x.Cols, Cols: x.Cols}}
	posteriorBytes := int64(0)
	if numeric.Wrapper(dev) != nil { // the posterior of the model is in the memory of the host
		posteriorBytes = numeric.Bytes(numeric.Elements(x.Cols, x.Cols))
	}
	return solvers.Reserve(ctx, dev, o.Memory, "posterior", x.Rows, func(n int) int64 {
		return numeric.Total(prior.UpdateBytes(n, t), x.PlacedBytes(dev.F64(), n), posteriorBytes)
	})
}

// learnPosterior computes the posterior of the model from the n×d samples x and the n×t targets y,
// in O(nd² + d³) operations.
func (m *RidgeModel) learnPosterior(ctx context.Context, dev backend.Device, x numeric.Points, y backend.Host[float64], unit bool, o Options) error {
	if !(m.lambda > 0) {
		return errors.New("std: lambda must be > 0: the posterior for lambda = 0 has no prior")
	}
	d, t := m.coef.Rows, m.coef.Cols
	var mean, ybar []float64
	if m.hasIntercept {
		part := numeric.PartOf(x.Rows, o.Weights)
		a, err := part.Mean(ctx, x.Dense)
		if err != nil {
			return err
		}
		b, err := part.Mean(ctx, y)
		if err != nil {
			return err
		}
		mean, ybar = a[0], b[0]
	}
	prior := stream.Prior(m.lambda, unit, d, t, mean)
	q, _, _, err := prior.Update(ctx, dev, &stream.Features{Columns: d}, x, y, o.Weights, 1, backend.NewHost[float64](d, t), ybar)
	if err == nil {
		m.facts = append(m.facts, m.setPosterior(q, false)...)
	}
	return err
}

// Variance implements Uncertain, for a model that was fitted with Ridge.Std. For the scale s² of the process it is
//
//	s²λ((x − x̄)ᵀ(XᵀWX + λI)⁻¹(x − x̄) + 1/Σw + 1)
//
// with the weighted mean x̄ of the samples and X centered; without an intercept x̄ and 1/Σw are 0.
func (m *RidgeModel) Variance(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	p, phi, _, _ := m.linearForm()
	return m.variance(ctx, dev, p, phi, x)
}

// Sample implements Sampler.
func (m *RidgeModel) Sample(ctx context.Context, dev backend.Device, x mat.Matrix, draws int, seed uint64) ([]*mat.Dense, error) {
	p, phi, _, _ := m.linearForm()
	return m.sample(ctx, dev, p, m, phi, x, draws, seed)
}

func (m *FourierRidgeModel) linearForm() (predictor, stream.Basis, backend.Host[float64], []float64) {
	pairs, t := m.cosines.Rows, m.cosines.Cols
	coef := backend.NewHost[float64](2*pairs, t)
	if pairs == 0 {
		return m.waves(stream.Cosines, m.cosines, m.intercept), nil, coef, nil
	}
	phi := stream.FourierOf(m.kernel, m.frequencies.Dense)
	for i := range pairs {
		for j := range t {
			coef.Row(i)[j], coef.Row(pairs + i)[j] = m.cosines.Row(i)[j]/phi.Scale, m.sines.Row(i)[j]/phi.Scale
		}
	}
	return m.waves(stream.Cosines, m.cosines, m.intercept), phi, coef, m.intercept
}

func (m *FourierRidgeModel) withPosterior(q *solvers.Posterior, beta backend.Host[float64], bias []float64) Model {
	pairs, t := m.cosines.Rows, m.cosines.Cols
	scale := stream.FourierOf(m.kernel, m.frequencies.Dense).Scale
	for i := range beta.Data {
		beta.Data[i] *= scale
	}
	u := &FourierRidgeModel{
		model: model{fourierRidgeName, []Fact{{"features", 2 * pairs}}}, solution: solution{m.lambda, m.hasIntercept, nil},
		kernel: m.kernel, frequencies: m.frequencies, intercept: bias,
		cosines: beta.View(0, 0, pairs, t), sines: beta.View(pairs, 0, pairs, t),
	}
	u.facts = append(u.facts, u.setPosterior(q, false)...)
	return u
}
