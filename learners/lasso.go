package learners

import (
	"context"
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/lsq"
	"github.com/mercer-go/mercer/internal/numeric"
	"gonum.org/v1/gonum/mat"
)

const lassoName = "lasso"

func init() {
	register(Description{
		Name:    lassoName,
		Grid:    "lambda=0.001×,0.003×,0.01×,0.03×,0.1×,0.3×",
		Tasks:   []Task{Regression, Classification},
		Formula: "minimize Σ w_i (y_i − wᵀx_i − b)² + lambda ‖w‖₁, b not penalized; or subject to ‖w‖₁ ≤ theta",
		Source:  "Tibshirani (1996); Friedman, Hastie and Tibshirani (2010), coordinate descent; Beck and Teboulle (2009), FISTA",
		Outputs: true, classify: true, Sparse: true,
	}, (*Lasso).parameters, Lasso.Fit)
}

func (l *Lasso) parameters() []Parameter {
	return []Parameter{
		number("lambda", &l.Lambda, "1", nonNegative, "λ of Σ(y − wᵀx − b)² + λ‖w‖₁; scikit-learn's alpha is λ/2n").onlyWithout("theta"),
		number("theta", &l.Theta, "", positive, "bound θ of ‖w‖₁ for each output, instead of lambda"),
		oneOf("method", &l.Method, "", []LassoMethod{CoordinateDescent, FISTA, ISTA}, "way to minimize"),
		number("rate", &l.Rate, "", positive, "step η of w ← soft(w − η∇, ηλ), ∇ = 2Xᵀ(Xw − y); 1/‖2XᵀX‖ by default").onlyWith("method", string(ISTA)),
		number("tol", &l.Tol, "1e-7", positive, "duality gap, relative to ‖y‖², at which the fit stops"),
		intParam("iterations", &l.MaxIter, "10000", atLeast(1), "maximum number of sweeps over the features, or of steps"),
		intercept(&l.NoIntercept, "fit an unpenalized intercept"),
	}
}

// LassoMethod names a method to minimize the lasso's objective.
type LassoMethod = lsq.LassoMethod

// The methods of Lasso: see package lsq.
const (
	CoordinateDescent = lsq.CoordinateDescent
	FISTA             = lsq.FISTA
	ISTA              = lsq.ISTA
)

// Lasso is linear regression with a penalty that makes weights 0: f(x) = wᵀx + b with the w and b that minimize
//
//	Σ_i w_i (y_i − wᵀx_i − b)² + λ‖w‖₁
//
// scikit-learn minimizes (1/2n)‖y − Xw‖² + alpha‖w‖₁, so that λ = 2n·alpha. If λ ≥ 2‖Xᵀ(y − ȳ)‖_∞, where ȳ is the mean
// of y, w is 0. The solution is the posterior mode under noise N(0, σ²/w_i) and independent Laplace priors of the
// weights with density (1/2τ)exp(−|w|/τ), for λ = 2σ²/τ (Tibshirani 1996).
//
// With Theta, w and b minimize the sum of squares subject to ‖w‖₁ ≤ θ. The solution is that of the penalty for the λ ≥
// 0 at which ‖w(λ)‖₁ = θ, or for λ = 0 if least squares satisfies the constraint. The Facts and LinearModel.Lambda
// contain this λ. In both forms the Fact "l1 norm" is ‖w‖₁ of the first output.
//
// The fit stops when the duality gap, which bounds the distance of the objective from its minimum, is at most Tol·‖y −
// ȳ‖². After MaxIter steps Fit returns the best model found, with a Fact "warning". Outputs are fitted separately.
//
// For n ≥ d or d ≤ 2048, the device forms XᵀX, d² numbers, in O(nd²) operations, and a pass over the weights takes O(d)
// operations for each weight that changes. Otherwise a pass takes O(nd) operations; for sparse samples, time
// proportional to the number of their elements. From a group of nearly equal columns the lasso selects one, and small
// changes of the data can change the selection; ridge does not have this defect.
type Lasso struct {
	Lambda      float64     // ≥ 0
	Theta       float64     // if > 0, the bound on ‖w‖₁ (Lambda must be 0); 0 means no bound
	Method      LassoMethod // "" means CoordinateDescent
	Rate        float64     // step size η of ISTA; 0 means 1/‖2XᵀX‖
	Tol         float64     // bound on the duality gap relative to ‖y − ȳ‖²; 0 means 1e-7
	MaxIter     int         // maximum number of steps; 0 means 10000
	NoIntercept bool        // set b = 0; by default b is fitted without a penalty
}

// Fit fits the n×d samples x to the n×t targets y, each output separately.
func (l Lasso) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *LinearModel, err error) {
	defer wrapError(lassoName, l.parameters(), &m, &err)
	models, err := l.path(ctx, dev, x, y, []float64{l.Lambda}, o)
	if err != nil {
		return nil, err
	}
	return models[0], nil
}

// Path fits a model for each λ of lambdas. Each fit starts at the preceding solution, so a path of decreasing λ
// takes little more time than its last model alone. l.Lambda is ignored. If lambdas is nil, Path uses 100 values,
// equally spaced in their logarithms, from the smallest λ at which all weights are 0 down to a thousandth of this
// λ. The models are in the order of lambdas.
func (l Lasso) Path(ctx context.Context, dev backend.Device, x, y mat.Matrix, lambdas []float64, o Options) (models []*LinearModel, err error) {
	defer wrapError(lassoName, l.parameters(), &models, &err)
	for i, v := range lambdas {
		if err := nonNegative.check(v); err != nil {
			return nil, fmt.Errorf("lambda %d of the path %w", i+1, err)
		}
	}
	if l.Theta != 0 {
		return nil, errors.New("theta must be 0 for a path, which varies lambda")
	}
	l.Lambda = 0
	return l.path(ctx, dev, x, y, lambdas, o)
}

func (l Lasso) path(ctx context.Context, dev backend.Device, x, y mat.Matrix, lambdas []float64, o Options) ([]*LinearModel, error) {
	f := newFitting(ctx, dev, lassoName, l.parameters(), x, y, o)
	d := f.points.Cols
	var features []int32
	f.points, features = f.points.Used()
	c, t := f.centered(!l.NoIntercept, (*lsq.Samples).LassoBytes)
	if f.err != nil {
		return nil, f.err
	}
	fits, err := c.Lasso(t, lsq.Lasso{Lambdas: lambdas, Theta: l.Theta, Method: l.Method, Rate: l.Rate, Tol: l.Tol, MaxIter: l.MaxIter})
	if err != nil {
		return nil, err
	}
	constant := constantWarning(constantTargets(f.y, o.Weights), f.y.Cols)
	models := make([]*LinearModel, len(fits))
	for i, r := range fits {
		facts := []Fact{{"iterations", r.Iters}, {"weights not 0", r.Support}, {"l1 norm", r.Norm}, {"duality gap", r.Gap}}
		if l.Theta > 0 {
			facts = append(facts, Fact{"lambda", r.Lambda[0]})
		}
		models[i] = newLinearModel(lassoName, !l.NoIntercept, numeric.Restored(r.Coef, features, d), r.Intercept, r.Lambda, warned(warned(facts, r.Warnings...), constant))
	}
	return models, nil
}
