package learners

import (
	"cmp"
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/lsq"
	"gonum.org/v1/gonum/mat"
)

const ridgeConstrainedName = "ridge-constrained"

func init() {
	register(Description{
		Name:    ridgeConstrainedName,
		Grid:    "theta=0.001×,0.01×,0.03×,0.1×,0.3×,1×,3×,10×",
		Tasks:   []Task{Regression, Classification},
		Formula: "minimize Σ w_i (y_i − wᵀx_i − b)² subject to ‖w‖² ≤ theta",
		Source:  "Golub and von Matt (1991), Quadratically constrained least squares and quadratic problems; Moré and Sorensen (1983)",
		Outputs: true, classify: true,
	}, (*RidgeConstrained).parameters, RidgeConstrained.Fit)
}

func (l *RidgeConstrained) parameters() []Parameter {
	return []Parameter{
		number("theta", &l.Theta, "0", nonNegative, "bound θ of ‖w‖², for each output; 0: ‖w‖² of ridge with lambda 1"),
		intercept(&l.NoIntercept, "fit an intercept, to which the bound does not apply"),
	}
}

// RidgeConstrained is ridge regression with a bound instead of a penalty: f(x) = wᵀx + b with the w and b that minimize
//
//	Σ_i w_i (y_i − wᵀx_i − b)²   subject to   ‖w‖² ≤ θ
//
// for each output. If the least-squares solution of minimum norm satisfies the bound, it is the result. Otherwise the
// result is the solution of ridge regression with the λ > 0 at which ‖w(λ)‖² = θ, to a relative error of 1e-10.
// Newton's method finds λ as the root of 1/‖w(λ)‖ − 1/√θ (Moré and Sorensen 1983; Hebden 1973). The facts state for the
// first output whether the constraint is active (λ > 0), and the value of ‖w‖² without the constraint.
//
// Each Newton step is a Cholesky factorization on the device and takes O(m³) operations, where m is the smaller of the
// numbers of features and rows. Each output takes about five steps. The memory is XᵀX or XXᵀ, m² numbers, and X if
// there are fewer rows than features. If the constraint is not active, or rows or features are nearly dependent, a QR
// factorization takes two more copies of X.
type RidgeConstrained struct {
	Theta       float64 // ≥ 0; 0 means ‖w‖² of ridge with λ = 1, for each output
	NoIntercept bool    // set b = 0; by default b is fitted and not subject to the bound
}

// Fit fits the n×d samples x to the n×t targets y, each output separately.
func (l RidgeConstrained) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *LinearModel, err error) {
	defer wrapError(ridgeConstrainedName, l.parameters(), &m, &err)
	defer remarkConstant(&m, &err, y, o)
	f := newFitting(ctx, dev, ridgeConstrainedName, l.parameters(), x, y, o)
	c, t := f.centered(!l.NoIntercept, (*lsq.Samples).BoundedBytes)
	if f.err != nil {
		return nil, f.err
	}
	r, err := c.Bounded(t, l.Theta, o.Memory)
	if err != nil {
		return nil, err
	}
	facts := []Fact{{"steps", r.Steps}, {"theta", cmp.Or(l.Theta, r.Norm)}, {"lambda", r.Lambda[0]}, {squaredNorm, r.Norm}, {"unconstrained squared norm", r.Free}, {"constraint active", r.Lambda[0] > 0}}
	return newLinearModel(ridgeConstrainedName, !l.NoIntercept, r.Coef, r.Intercept, r.Lambda, facts), nil
}
