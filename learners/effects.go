package learners

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

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

// Effects are the marginal effects of the features on the outputs of a model: the derivatives of
// the outputs at n rows, and their averages.
type Effects struct {
	Rows []*mat.Dense // for each output o the n×d derivatives ∂f_o(x_i)/∂x_ip
	Mean *mat.Dense   // t×d: the averages of the derivatives over the rows
	// StdErr is t×d, the standard errors of Mean if the kernel, λ and the samples are fixed and the
	// targets have independent noise. It is nil unless the model is one of KernelRidge.
	StdErr *mat.Dense
}

// ErrNoDerivative is wrapped by the error of MarginalEffects if the outputs of the model have no
// derivatives, or not at each of the rows.
var ErrNoDerivative = errors.New("no derivative")

// MarginalEffects returns the derivatives of f with respect to the features at the n rows of x. The
// outputs of a classifier are its decision values. f must be xW + b or a sum of kernel functions:
// for models that count votes or neighbors it returns an error that wraps ErrNoDerivative, and so it does
// if the kernel has no derivative at a row: see kernels.Corner.
//
// For a model of KernelRidge the standard error of the average g_pᵀα over the rows, with g_lp =
// Σ_i w_i ∂k(x_i, x_l)/∂x_ip / Σ_i w_i for the samples x_l, is
//
//	σ‖V^(−1/2) P g_p‖,  α = P y,  σ² = (1/m) Σ_l v_l (y_l − f(x_l))²
//
// with the weights v of the m samples, V = diag(v), and without an intercept P = (K + λV⁻¹)⁻¹. This
// is the estimate of Hainmueller and Hazlett (2014), Kernel regularized least squares, section 4.2,
// and of their R package KRLS, which has no weights and no intercept, but standardizes y.
//
// The derivatives take O(nmd) operations for each output, and the standard errors as long as a fit
// with d targets. o.Weights are the weights w of the rows of x in the averages, and o.Memory and
// o.Progress apply to the standard errors; the other options are not used.
func MarginalEffects(ctx context.Context, dev backend.Device, m Model, x mat.Matrix, o Options) (e *Effects, err error) {
	if numeric.IsNil(m) {
		return nil, errors.New("learners: effects: no model was given")
	}
	if c, ok := m.(*ClassifyModel); ok {
		m = c.fitted()
	}
	defer named(m.Learner()+": effects", nil, &e, &err)
	sums, err := expansionsOf(m)
	if err != nil {
		return nil, err
	}
	points, err := sums[0].check(dev, x)
	if err != nil {
		return nil, err
	}
	if available, known := backend.HostMemory(); known && numeric.Bytes(numeric.Elements(points.Rows, points.Cols)) > available/int64(len(sums[0].intercept)+1) {
		return nil, fmt.Errorf("the derivatives of %s by %s need more memory than the %.1f GB that are available: pass fewer rows", count.Of(points.Rows, "row"), count.Of(points.Cols, "feature"), float64(available)/1e9)
	}
	hx := denseForm(points)
	mean, err := averaging(hx.Rows, o.Weights)
	if err != nil {
		return nil, err
	}
	e = &Effects{Mean: mat.NewDense(len(sums[0].intercept), hx.Cols, nil)}
	for j := range sums[0].intercept {
		d := mat.NewDense(hx.Rows, hx.Cols, nil)
		for _, p := range sums {
			if err := p.addDerivatives(ctx, dev, d, hx, j); err != nil {
				return nil, err
			}
		}
		if err := checkPredicted("derivative", dense(d), 0); err != nil {
			return nil, err
		}
		for i, w := range mean {
			floats.AddScaled(e.Mean.RawRowView(j), w, d.RawRowView(i))
		}
		e.Rows = append(e.Rows, d)
	}
	if k, ok := m.(*KernelRidgeModel); ok {
		e.StdErr, err = k.meanErrors(ctx, dev, hx, mean, o)
	}
	return e, err
}

// denseForm returns points as a dense matrix, which shares their memory unless they are sparse.
func denseForm(p numeric.Points) backend.Host[float64] {
	if p.Sparse == nil {
		return p.Dense
	}
	return dense(densePoints(p))
}

// expansionsOf returns predictors of a kernel expansion or of xW + b, whose sum is the function of m.
func expansionsOf(m Model) ([]predictor, error) {
	switch m := m.(type) {
	case *FourierRidgeModel:
		return []predictor{
			expansion(m.learner, stream.Cosines, m.frequencies, m.cosines, m.intercept),
			expansion(m.learner, stream.Sines, m.frequencies, m.sines, make([]float64, len(m.intercept))),
		}, nil
	case *SVCModel:
		if m.classes.Len() > 2 {
			return nil, fmt.Errorf("the decision values have %w: for more than two classes they are votes", ErrNoDerivative)
		}
		return []predictor{expansion(m.learner, m.kernel, m.points, m.coef, m.b)}, nil
	case interface{ predictor() predictor }:
		return []predictor{m.predictor()}, nil
	}
	return nil, fmt.Errorf("the model has %w, because it is neither linear nor a sum of kernel functions", ErrNoDerivative)
}

// averaging returns the weights of n rows, divided by their sum.
func averaging(n int, weights []float64) ([]float64, error) {
	if err := numeric.CheckWeights(weights, n); err != nil {
		return nil, err
	}
	mean := slices.Clone(weights)
	if mean == nil {
		mean = slices.Repeat([]float64{1}, n)
	}
	sum := 0.0
	for _, w := range mean {
		sum += w
	}
	floats.Scale(1/sum, mean)
	return mean, nil
}

// addDerivatives adds to d the derivatives of output j at the rows of x.
func (p predictor) addDerivatives(ctx context.Context, dev backend.Device, d *mat.Dense, x backend.Host[float64], j int) error {
	if p.linear {
		w := p.fixed[0].Dense
		for i := range x.Rows {
			for q := range x.Cols {
				d.Set(i, q, d.At(i, q)+w.Row(q)[j])
			}
		}
		return nil
	}
	l := adjoint.GramLoss{Kernel: p.kernel, X: x, Z: denseForm(p.fixed[0])}
	if err := kernels.CheckGrad(l.Kernel, x.Cols); err != nil {
		return err
	}
	if err := checkCorners(ctx, l); err != nil {
		return err
	}
	l.Weights.U, l.Weights.V = backend.NewHost[float64](x.Rows, 1), p.fixed[1].Dense.View(0, j, l.Z.Rows, 1)
	for i := range x.Rows {
		l.Weights.U.Row(i)[0] = 1
	}
	g, err := adjoint.GramGradient(ctx, dev, l, adjoint.WantX)
	if err != nil {
		return err
	}
	for i := range x.Rows {
		floats.Add(d.RawRowView(i), g.X.Row(i))
	}
	return nil
}

// checkCorners returns an error that names the first row of l.X at which the kernel has no derivative.
func checkCorners(ctx context.Context, l adjoint.GramLoss) error {
	first := atomic.Int64{}
	first.Store(int64(l.X.Rows))
	run.Parallel(l.X.Rows, func(from, to int) {
		for i := from; i < to && ctx.Err() == nil; i++ {
			if kernels.Corner(l.Kernel, l.X.Row(i), func(yield func([]float64) bool) {
				for j := 0; j < l.Z.Rows && yield(l.Z.Row(j)); j++ {
				}
			}) {
				for at := first.Load(); int64(i) < at && !first.CompareAndSwap(at, int64(i)); at = first.Load() {
				}
				return
			}
		}
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if i := first.Load(); i < int64(l.X.Rows) {
		return fmt.Errorf("x: row %d: %v has %w where a row coincides with a point of the model, or for some kernels in one feature: use a smooth kernel, such as gaussian or matern32", i+1, l.Kernel, ErrNoDerivative)
	}
	return nil
}

// meanErrors returns the standard errors of the average derivatives.
func (m *KernelRidgeModel) meanErrors(ctx context.Context, dev backend.Device, x backend.Host[float64], mean []float64, o Options) (*mat.Dense, error) {
	n, outputs := m.points.Rows, m.coef.Cols
	l := adjoint.GramLoss{Kernel: m.kernel, X: x, Z: denseForm(m.points)}
	l.Weights.U, l.Weights.V = backend.Host[float64]{Rows: len(mean), Cols: 1, Stride: 1, Data: mean}, backend.NewHost[float64](n, 1)
	for i := range n {
		l.Weights.V.Row(i)[0] = 1
	}
	g, err := adjoint.GramGradient(ctx, dev, l, adjoint.WantShift)
	if err != nil {
		return nil, err
	}
	weight := func(i int) float64 {
		if m.weights == nil {
			return 1
		}
		return m.weights[i]
	}
	// squares returns Σ a_ij²/v_i of each column j.
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
	out := mat.NewDense(outputs, x.Cols, nil)
	for _, lambda := range m.different(outputs) {
		if lambda == 0 {
			continue // the residuals are 0
		}
		res, err := solvers.Solve(ctx, dev, solvers.Problem{
			Kernel: m.kernel, X: m.points.Dense, Sparse: m.points.Sparse, Y: g.Shift, Weights: m.weights, Lambda: lambda, Intercept: m.fitted,
		}, solvers.Params{NeedsAlpha: true, Memory: o.Memory, Progress: o.Progress})
		if err != nil {
			return nil, err
		}
		norms := squares(res.Alpha)
		for _, j := range m.byLambda(outputs)[lambda] {
			for p, v := range norms {
				out.Set(j, p, lambda*math.Sqrt(noise[j]/float64(n)*v))
			}
		}
	}
	return out, nil
}
