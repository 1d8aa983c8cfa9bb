package learners

import (
	"context"
	"errors"
	"fmt"
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
)

// Effects are the marginal effects of the features on the outputs of a model: the derivatives of the outputs at n
// rows, and their averages. For a feature of EffectParams.Binary they are differences of the outputs instead.
type Effects struct {
	Rows []*mat.Dense // for each output o the n×d derivatives ∂f_o(x_i)/∂x_ip
	Mean *mat.Dense   // t×d: the averages of the derivatives over the rows
	// StdErr is t×d, the standard errors of Mean. It is nil with EffectParams.NoStdErr, and if the
	// model has no standard errors: see MarginalEffects.
	StdErr *mat.Dense
}

// EffectParams are the parameters of MarginalEffects.
type EffectParams struct {
	// Binary lists features that have exactly two values in the rows. The effect of such a feature on a row is f
	// at the larger value minus f at the smaller value, with the other features of the row.
	Binary []int
	// NoStdErr omits the standard errors, which take much longer than the effects for KernelRidge,
	// and for models whose formula in MarginalEffects contains q_p.
	NoStdErr bool
	// Weights are the weights of the rows in the averages. Memory and Progress apply to the
	// standard errors of kernel ridge regression. The other options are not used.
	Options
}

// ErrNoDerivative is wrapped by the error of MarginalEffects if an output of the model has no
// derivative at one of the rows with respect to a feature that is not in EffectParams.Binary.
var ErrNoDerivative = errors.New("no derivative")

// maxCovariances is the largest n²(d + 10) for which priorVariances computes variances, for n rows and d features.
const maxCovariances = 2e10

// MarginalEffects returns the derivatives of f with respect to the d features at the n rows of x. The outputs of a
// classifier are its decision values. f must be xW + b or a sum of kernel functions. The error wraps ErrNoDerivative
// for models that count votes or neighbors, and if the kernel has no derivative at a row with respect to a feature that
// is not in p.Binary: see kernels.Nondifferentiable.
//
// The m training samples x_l have the weights v_l, V = diag(v) and the kernel matrix K. f is a weighted sum of
// functions, such as k(·, x_l) for each x_l. The vector g_p holds the averages of their derivatives with respect to
// feature p: g_lp = Σ_i w_i ∂k(x_i, x_l)/∂x_ip / Σ_i w_i. For a feature of p.Binary a difference of k replaces the
// derivative. The matrix P maps the targets to the coefficients α. s is the scale of the process, and Φ and S are
// those of the model's method Variance. The prior variance of the average is s²q_p with q_p = Σ_ij w_i w_j ∂²k(x_i,
// x_j)/∂x_ip∂x_jp / (Σ_i w_i)². The standard errors are
//
//	KernelRidge               σ‖V^(−1/2) P g_p‖,  α = P y,  σ² = (1/m) Σ_l v_l (y_l − f(x_l))²
//	GaussianProcess           s√(q_p − g_pᵀ(K + λV⁻¹)⁻¹g_p)
//	NystromRidge              s√(q_p − g_pᵀS⁻¹g_p + λ g_pᵀ(ΦᵀVΦ + λS)⁻¹g_p)
//	Ridge, FourierRidge       s√λ √(g_pᵀ(ΦᵀVΦ + λI)⁻¹g_p)
//	BayesRidge, RVM           √(g_pᵀΣg_p), with the posterior covariance Σ of the coefficients
//
// Without weights and intercept, the errors of KernelRidge are those of Hainmueller and Hazlett (2014), Kernel
// regularized least squares, section 4.2; the error of a difference is multiplied by √2 as in their R package KRLS. The
// other errors are posterior standard deviations (Rasmussen and Williams 2006, section 9.4).
//
// Ridge, NystromRidge and FourierRidge need Std. For GaussianProcess and NystromRidge, StdErr is nil if n²(d + 10) >
// 2·10¹⁰, or if the kernel has no second derivatives (see kernels.NewMixed) and not all features are binary.
//
// The derivatives take O(nmd) operations for each output and all q_p together O(n²d). The standard errors of
// KernelRidge take as long as a fit with d targets.
func MarginalEffects(ctx context.Context, dev backend.Device, m Model, x mat.Matrix, p EffectParams) (e *Effects, err error) {
	if numeric.IsNil(m) {
		return nil, errors.New("learners: effects: no model was given")
	}
	if c, ok := m.(*ClassifyModel); ok {
		m = c.regressor()
	}
	defer wrapError(m.Learner()+": effects", nil, &e, &err)
	sums, err := expansionsOf(m)
	if err != nil {
		return nil, err
	}
	points, err := sums[0].check(dev, x)
	if err != nil {
		return nil, err
	}
	if available, ok := backend.HostMemory(); ok && numeric.Bytes(numeric.Elements(points.Rows, points.Cols)) > available/int64(len(sums[0].intercept)+1) {
		return nil, fmt.Errorf("the derivatives of %s by %s need more memory than the %.1f GB that are available: pass fewer rows", count.Of(points.Rows, "row"), count.Of(points.Cols, "feature"), float64(available)/1e9)
	}
	a, err := newAverages(denseForm(points), p)
	if err != nil {
		return nil, err
	}
	e = &Effects{Mean: mat.NewDense(len(sums[0].intercept), a.x.Cols, nil)}
	for j := range sums[0].intercept {
		d := mat.NewDense(a.x.Rows, a.x.Cols, nil)
		for _, p := range sums {
			if err := a.addDerivatives(ctx, dev, d, p, j); err != nil {
				return nil, err
			}
		}
		e.Rows = append(e.Rows, d)
	}
	for q, feature := range a.binary {
		changes, err := a.differences(ctx, dev, q, sums...)
		if err != nil {
			return nil, err
		}
		for j, d := range e.Rows {
			d.SetCol(feature, mat.Col(nil, j, changes))
		}
	}
	for j, d := range e.Rows {
		if err := checkPredicted("derivative", dense(d), 0); err != nil {
			return nil, err
		}
		for i, w := range a.weights {
			floats.AddScaled(e.Mean.RawRowView(j), w, d.RawRowView(i))
		}
	}
	if !p.NoStdErr {
		e.StdErr, err = a.standardErrors(ctx, dev, m, p.Options)
	}
	return e, err
}

// denseForm returns points as a dense matrix. If they are dense, the matrix shares their memory.
func denseForm(p numeric.Points) backend.Host[float64] {
	if p.Sparse == nil {
		return p.Dense
	}
	return dense(densePoints(p))
}

// expansionsOf returns predictors whose sum is the function of m. Each is a kernel expansion or xW + b.
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

// addDerivatives adds to d the derivatives of output j of p at the rows of x. It may add any numbers to the columns of
// the features in a.binary, which the caller replaces.
func (a averages) addDerivatives(ctx context.Context, dev backend.Device, d *mat.Dense, p predictor, j int) error {
	x := a.x
	if p.linear {
		for i := range x.Rows {
			floats.Add(d.RawRowView(i), mat.Col(nil, j, p.fixed[0].Dense))
		}
	}
	if p.linear || a.onlyBinary() {
		return nil
	}
	l := adjoint.GramLoss{Kernel: p.kernel, X: x, Z: denseForm(p.fixed[0])}
	if err := kernels.CheckGrad(l.Kernel, x.Cols); err != nil {
		return err
	}
	if err := a.checkCorners(ctx, l); err != nil {
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

// checkCorners returns an error that names the first row of l.X at which the kernel has no
// derivative with respect to a feature that is not in a.binary.
func (a averages) checkCorners(ctx context.Context, l adjoint.GramLoss) error {
	ignored, corners := make([]bool, l.X.Cols), make([]bool, l.X.Rows)
	for _, q := range a.binary {
		ignored[q] = true
	}
	run.Parallel(l.X.Rows, func(from, to int) {
		for i := from; i < to && ctx.Err() == nil && (i == from || !corners[i-1]); i++ {
			corners[i] = kernels.Nondifferentiable(l.Kernel, l.X.Row(i), func(yield func([]float64) bool) {
				for j := 0; j < l.Z.Rows && yield(l.Z.Row(j)); j++ {
				}
			}, ignored)
		}
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if i := slices.Index(corners, true); i >= 0 {
		return fmt.Errorf("x: row %d: %v has %w there; usually the row, or one of its features, equals a point of the model: use a smooth kernel, such as gaussian or matern32", i+1, l.Kernel, ErrNoDerivative)
	}
	return nil
}
