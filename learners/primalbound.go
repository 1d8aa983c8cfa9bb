package learners

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/internal/verified"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// primalSteps estimates the number of steps, of about 4 ns each, that verified.Primal.Bound takes for n samples
// and m functions. valueSteps is the number of steps for one value of a function.
func primalSteps(n, m int, valueSteps float64) float64 {
	return float64(n) * float64(m) * (3*(valueSteps+20) + float64(m)/8)
}

// makePrimal sets the bound of m and adds its facts. The function f of m is the solution of p for the samples of data.
// If sharp is true, makePrimal computes the sharp bound, or returns an error if there is none. Otherwise it makes a
// bound only if o.Prove is set, and a sharp bound only if that takes at most a few hundredths of a second. The function
// r bounds the rounding errors; nil means unknown. Unless sparse is nil, its rows are the samples, and data holds row
// numbers.
func (b *errorBound) makePrimal(ctx context.Context, dev backend.Device, m *model, name string, f *verified.Expansion, p *verified.Primal, data solvers.Rows, sparse *backend.CSR[float64], res *solvers.Result, valueSteps float64, r func() *verified.Roundoff, sharp bool, o Options) error {
	n, d, t := data.Dims()
	size := f.Alpha.Rows
	p.Pass = func(ctx context.Context, use func(x numeric.Points, y backend.Host[float64], weights []float64) error) error {
		return data.Pass(ctx, false, func(block solvers.Block) error {
			x := numeric.DensePoints(block.X)
			if sparse != nil {
				x = numeric.SparsePoints(*sparse).Take(stream.RowNumbers(block.X))
			}
			return use(x, block.Y, block.Weights)
		})
	}
	lambdas := p.Lambdas
	if lambdas == nil {
		lambdas = []verified.Ball{p.Lambda}
	}
	if !sharp && (!o.Prove || slices.ContainsFunc(lambdas, func(v verified.Ball) bool { return !(v.Hi > 0) })) {
		return nil
	}
	if !sharp && (sparse != nil || p.Lambdas != nil || primalSteps(n, size, valueSteps) > provedSteps) {
		if _, ok := data.(pointRows); !ok && !solvers.IsInMemory(data) {
			p.Pass = nil
		}
		if r == nil || p.Pass == nil && p.Sums == nil {
			return nil
		}
		bound, err := p.Rounded(ctx, dev.F64(), f, r())
		if err == nil && finiteBound(bound) < 0 && (p.Pass != nil || p.Enough(bound)) {
			b.bound = bound
			b.addFacts(m, name)
		} else if err != nil && !errors.Is(err, verified.ErrDependent) && !errors.Is(err, verified.ErrSamples) && !errors.Is(err, backend.ErrMemory) {
			return fmt.Errorf("bound: %w", err)
		}
		return nil
	}
	bytes := func(n int) int64 {
		if r, ok := data.(pointRows); ok && r.points.Sparse != nil {
			return p.Bytes(n, size, t) + numeric.Bytes(numeric.Elements(min(n, denseRows(d)), d))
		}
		return p.Bytes(n, size, t)
	}
	if err := solvers.Reserve(ctx, dev, o.Memory, "bound", n, bytes); err != nil && sharp {
		return err
	} else if err != nil {
		return nil
	}
	res.Bytes = max(res.Bytes, bytes(n))
	bound, err := p.Bound(ctx, f)
	switch {
	case err == nil && finiteBound(bound) < 0:
		b.bound = bound
		b.addFacts(m, name)
		return nil
	case errors.Is(err, verified.ErrDependent):
		err = message.Errorf("bound: no bound can be proven: %w: {use fewer $centers}", err)
	case err == nil:
		err = fmt.Errorf("bound: no bound can be proven for target %d, because numbers overflow: scale the features and targets down", finiteBound(bound)+1)
	case errors.Is(err, verified.ErrLambda):
		err = fmt.Errorf("bound: %w", err)
	default:
		return fmt.Errorf("bound: %w", err)
	}
	if !sharp {
		return nil
	}
	return err
}

// predictPrimal is PredictBound for a model with the function f. The function r bounds the rounding errors of f.
func (b *errorBound) predictPrimal(ctx context.Context, dev backend.Device, p predictor, predictPoints func(context.Context, backend.Device, numeric.Points) (*mat.Dense, error), f *verified.Expansion, r func() *verified.Roundoff, x mat.Matrix) (values, bounds *mat.Dense, err error) {
	defer wrapError(p.learner+": bound", nil, &values, &err)
	points, err := p.checkRows(dev, x)
	if err != nil {
		return nil, nil, err
	}
	if b.bound == nil {
		return nil, nil, fmt.Errorf("the model has no bound: fit it with lambda > 0 and bound = true")
	}
	if !b.bound.Rounded {
		return b.evaluateAt(ctx, f, points)
	}
	return b.roundAt(ctx, dev, p, predictPoints, f, r(), points)
}

// PredictBound implements Bounded.
func (m *RidgeModel) PredictBound(ctx context.Context, dev backend.Device, x mat.Matrix) (values, bounds *mat.Dense, err error) {
	p := m.predictor()
	return m.predictPrimal(ctx, dev, p, p.predictPoints, m.verified(), m.rounding, x)
}

// rounding returns the bounds on the rounding errors of the functions of the model.
func (m *RidgeModel) rounding() *verified.Roundoff { return verified.NewCoordinates(m.coef.Rows) }

func (m *RidgeModel) verified() *verified.Expansion {
	return &verified.Expansion{Alpha: m.coef, Intercept: m.intercept, Features: func() func(int, []float64) verified.Ball {
		return func(j int, x []float64) verified.Ball { return verified.Exact(x[j]) }
	}}
}

// PredictBound implements Bounded.
func (m *NystromRidgeModel) PredictBound(ctx context.Context, dev backend.Device, x mat.Matrix) (values, bounds *mat.Dense, err error) {
	r := func() *verified.Roundoff { return m.roundoffOn(dev, &m.kernelExpansion) }
	p := m.predictor()
	return m.predictPrimal(ctx, dev, p, p.predictPoints, m.verified(), r, x)
}

// PredictBound implements Bounded.
func (m *FourierRidgeModel) PredictBound(ctx context.Context, dev backend.Device, x mat.Matrix) (values, bounds *mat.Dense, err error) {
	return m.predictPrimal(ctx, dev, m.waves(stream.Cosines, m.cosines, m.intercept), m.predictPoints, m.verified(), m.rounding, x)
}

func (m *FourierRidgeModel) rounding() *verified.Roundoff {
	return verified.NewWaves(m.frequencies, stream.Cosines, stream.Sines)
}

// verified returns the function of the model in the form of package verified: the cosines, then the sines.
func (m *FourierRidgeModel) verified() *verified.Expansion {
	pairs, t := m.cosines.Rows, m.cosines.Cols
	beta := backend.NewHost[float64](2*pairs, t)
	for j := range pairs {
		copy(beta.Row(j), m.cosines.Row(j))
		copy(beta.Row(pairs+j), m.sines.Row(j))
	}
	return &verified.Expansion{Alpha: beta, Intercept: m.intercept, Features: func() func(int, []float64) verified.Ball {
		inner, angles := verified.NewKernel(kernels.Linear{}), make([]verified.Ball, pairs)
		return func(j int, x []float64) verified.Ball {
			if j >= pairs {
				return verified.Sin(angles[j-pairs])
			}
			angles[j] = inner.Eval(m.frequencies.Dense.Row(j), x)
			return verified.Cos(angles[j])
		}
	}}
}

// fourierPenalty returns λD/k(0, 0), the penalty of the coefficients of a random Fourier model with D pairs of
// functions.
func fourierPenalty(k kernels.Kernel, lambda float64, pairs, d int) verified.Ball {
	zero := make([]float64, d)
	return verified.Div(verified.Mul(verified.Exact(lambda), verified.Exact(float64(pairs))), verified.NewKernel(k).Eval(zero, zero))
}

func boundParam(field *bool) Parameter {
	return boolParam("bound", field, "false", "prove bounds of the errors of predictions, which takes long")
}

// pointRows is a solvers.Rows that returns points in dense blocks.
type pointRows struct {
	points  numeric.Points
	y       backend.Host[float64]
	weights []float64
}

func (r pointRows) Dims() (n, d, t int) { return r.points.Rows, r.points.Cols, r.y.Cols }

func (r pointRows) Pass(_ context.Context, _ bool, use func(b solvers.Block) error) error {
	return denseBlocks(r.points, func(i int, x backend.Host[float64]) error {
		block := solvers.Block{X: x, Y: r.y.View(i, 0, x.Rows, r.y.Cols)}
		if r.weights != nil {
			block.Weights = r.weights[i : i+x.Rows]
		}
		return use(block)
	})
}
