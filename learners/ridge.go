package learners

import (
	"context"
	"errors"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/lsq"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/verified"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

const ridgeName = "ridge"

func init() {
	register(Description{
		Name:    ridgeName,
		Tasks:   []Task{Regression, Classification},
		Formula: "minimize Σ w_i (y_i − wᵀx_i − b)² + lambda ‖w‖², b not penalized",
		Source:  "Hoerl and Kennard (1970), Ridge regression: biased estimation for nonorthogonal problems",
		Outputs: true, classify: true, Sparse: true,
	}, (*Ridge).parameters, Ridge.Fit)
}

func (l *Ridge) parameters() []Parameter {
	return append([]Parameter{
		lambdaNumber(&l.Lambda).withHelp("λ of Σ(y − wᵀx − b)² + λ‖w‖², not scaled by the number of rows; 0 is least squares").onlyWithout("lambdas"),
		lambdaList(&l.Lambdas),
		intercept(&l.NoIntercept, "fit an unpenalized intercept"),
		oneOf("solver", &l.Method, "auto", []solvers.Method{solvers.Dual, solvers.Primal}, "way to solve the system"),
		boolParam("intervals", &l.Intervals, "false", "keep the samples in the model, for prediction intervals").onlyFor(Regression),
		boundParam(&l.Bound).onlyWithout("lambdas"),
	}, posteriorParameters(&l.Std, &l.UnitScale)...)
}

// Ridge is linear regression with a penalty: f(x) = wᵀx + b with the w and b that minimize
//
//	Σ_i w_i (y_i − wᵀx_i − b)² + λ‖w‖²
//
// The intercept b is not penalized. λ is not multiplied by n; it equals scikit-learn's alpha. For sparse samples the
// solver is conjugate gradients; Intervals, Std and λ = 0 need a dense copy of sparse samples. With λ = 0, as in the
// zero value of Ridge, the result is the least-squares solution; x, or with an intercept the centered x, must then have
// full column rank.
type Ridge struct {
	Lambda      float64        // ≥ 0
	Lambdas     []float64      // a λ for each target, instead of Lambda; nil means Lambda for all
	NoIntercept bool           // set b = 0; by default b is fitted without a penalty
	Method      solvers.Method // solvers.Auto takes the cheaper of primal and dual, which agree up to rounding
	Intervals   bool           // keep a copy of the samples in the model for its Intervals
	Bound       bool           // compute sharp bounds on the errors of predictions: see Bounded; needs λ > 0
	// Std makes the model keep the posterior of the Bayesian linear regression whose mean is f,
	// with weights N(0, s²I) and noise N(0, s²λ/w_i). Variance, Append, Remove and Merge need the
	// posterior, which takes 8d² bytes. s² maximizes the likelihood. Std needs one λ > 0.
	Std       bool
	UnitScale bool // s² = 1, so that the variance of the noise is λ
}

// RidgeModel is a fitted Ridge. Its facts describe the first output: ‖w‖² and, for noise N(0, σ²/weight), the log
// likelihood and the estimate ‖r‖²/(n − p) of σ², with n residuals r and p parameters.
type RidgeModel struct {
	linear
	solutions
	errorBound
	process
	samples ridgeSamples
	factor  run.Kept[map[float64]*lsq.Jackknife]
}

// Fit fits the n×d samples x to the n×t targets y, each output separately.
func (l Ridge) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *RidgeModel, err error) {
	defer wrapError(ridgeName, l.parameters(), &m, &err)
	defer remarkConstant(&m, &err, y, o)
	points, copied, err := l.points(dev, x, o)
	if copied && err == nil {
		ctx, o = besideCopy(ctx, dev, o, points)
	}
	var hy backend.Host[float64]
	if err == nil {
		hy, err = targets(points.Rows, y)
	}
	if err == nil {
		err = o.refuseUnused()
	}
	if err == nil && l.Bound && len(l.Lambdas) > 0 {
		err = errors.New("bound: no sharp bound is known if each target has its own lambda: give one lambda for all targets")
	}
	if err == nil && l.Std && len(l.Lambdas) > 0 {
		err = errors.New("std: the posterior needs one lambda for all targets")
	}
	if err == nil && l.Std && dev != nil {
		err = reservePosterior(ctx, dev, points, hy.Cols, o)
	}
	if err != nil {
		return nil, err
	}
	usedPoints, features := points.Used()
	res, err := solveEach(ctx, dev, solvers.Problem{
		Kernel:    kernels.Linear{},
		X:         usedPoints.Dense,
		Sparse:    usedPoints.Sparse,
		Y:         hy,
		Weights:   o.Weights,
		Lambda:    l.Lambda,
		Intercept: !l.NoIntercept,
	}, l.Lambdas, solvers.Params{Method: l.Method, Memory: o.Memory, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	coef := res.Coef
	if coef.Rows == 0 { // sparse samples were fitted in the dual
		coef = usedPoints.Weights(res.Alpha)
	}
	m = &RidgeModel{
		linear:    linear{model: model{learner: ridgeName}, coef: numeric.Restored(coef, features, points.Cols), intercept: res.Intercept},
		solutions: solutions{solution{lambdasOf(l.Lambda, l.Lambdas)[0], !l.NoIntercept, res}, slices.Clone(l.Lambdas)},
	}
	squares := res.RSS
	if squares == nil {
		if squares, err = lsq.Squares(ctx, points, hy.View(0, 0, hy.Rows, 1), m.coef.View(0, 0, points.Cols, 1), m.intercept, o.Weights); err != nil {
			return nil, err
		}
	}
	if l.Intervals {
		m.samples = ridgeSamples{dropZeroWeight(points.Dense, o.Weights), dropZeroWeight(hy, o.Weights), selectPositive(o.Weights, o.Weights)}
	}
	m.facts = append([]Fact{{squaredNorm, coefNorm(m.coef)}}, noiseFacts(squares[0], o.Weights, points.Rows, points.Cols, m.hasIntercept)...)
	if l.Std {
		if err := m.learnPosterior(ctx, dev, points, hy, l.UnitScale, o); err != nil {
			return nil, err
		}
	}
	p := &verified.Primal{Lambda: verified.Exact(l.Lambda), Intercept: m.hasIntercept}
	for _, lambda := range l.Lambdas {
		p.Lambdas = append(p.Lambdas, verified.Exact(lambda))
	}
	if err := m.makePrimal(ctx, dev, &m.model, "w", m.verified(), p, pointRows{points, hy, o.Weights}, nil, res, 2, m.rounding, l.Bound, o); err != nil {
		return nil, err
	}
	if copied {
		m.remark(copyWarning(ridgeName, points.Rows, points.Cols))
	}
	return m, nil
}

// points returns the samples; copied reports whether they are a dense copy of sparse samples, which Intervals, Std
// and λ = 0 need.
func (l Ridge) points(dev backend.Device, x mat.Matrix, o Options) (points numeric.Points, copied bool, err error) {
	points, err = pointsOf("x", x)
	if err != nil || points.Sparse == nil || !l.Intervals && !l.Std && !slices.Contains(lambdasOf(l.Lambda, l.Lambdas), 0) {
		if points.Sparse != nil { // the solver checks dense samples
			err = points.CheckFinite("x")
		}
		return points, false, err
	}
	h, err := denseSamples(dev, o, ridgeName, x)
	return numeric.DensePoints(h), true, err
}

// State implements Model. For d features and t targets its arrays are "coef", d×t, and "intercept",
// 1×t. Targets with separate λ add "lambdas", 1×t. If the field Intervals was set, the n samples are
// stored too: "samples", n×d, "targets", n×t, and for weighted samples "weights", 1×n. If the field Std
// was set, there are the arrays that FourierRidgeModel stores for the posterior covariance, here d×d.
func (m *RidgeModel) State() State { return stateOf(m) }

func (m *RidgeModel) fields() []field {
	list := append(append(m.coefFields(nil), m.solutionFields()...), m.processFields(rowsOf(&m.coef), colsOf(&m.coef), 0, &m.lambda)...)
	return append(list,
		optionalRow("lambdas", &m.lambdas, colsOf(&m.coef), nonNegative),
		optional("samples", matrixField("samples", &m.samples.x, nil, rowsOf(&m.coef))),
		optional("targets", matrixField("targets", &m.samples.y, rowsOf(&m.samples.x), colsOf(&m.coef))),
		optionalRow("weights", &m.samples.weights, rowsOf(&m.samples.x), positive),
		m.errorBound.field(func() (int, int, bool) { return m.coef.Rows, m.coef.Cols, false }, nil, &m.hasIntercept))
}
