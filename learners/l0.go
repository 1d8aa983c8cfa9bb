package learners

import (
	"context"
	"fmt"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/lsq"
	"gonum.org/v1/gonum/mat"
)

const l0Name = "l0"

func init() {
	register(Description{
		Name:    l0Name,
		Grid:    "support=1,2,3,4,5,6,8,10,15,20",
		Tasks:   []Task{Regression, Classification},
		Formula: "minimize Σ w_i (y_i − wᵀx_i − b)² + lambda ‖w‖₀, or subject to ‖w‖₀ ≤ support; up to 64 columns the global minimum, for more columns a local minimum",
		Source:  "Gatu and Kontoghiorghes (2006), Branch-and-bound algorithms for computing the best-subset regression models; Blumensath and Davies (2008), Iterative thresholding for sparse approximations; Foucart (2011), Hard thresholding pursuit",
		Outputs: true, classify: true,
	}, (*L0).parameters, L0.Fit)
}

func (l *L0) parameters() []Parameter {
	return []Parameter{
		number("lambda", &l.Lambda, "1", nonNegative, "λ of Σ(y − wᵀx − b)² + λ‖w‖₀").onlyWith("support", "0"),
		intParam("support", &l.Support, "0", atLeast(0), "maximum number of weights that are not 0, instead of lambda; 0: lambda decides"),
		intParam("iterations", &l.MaxIter, "1000", atLeast(1), "maximum number of steps of the local method, for more than 64 columns"),
		intercept(&l.NoIntercept, "fit an unpenalized intercept"),
	}
}

// L0 is linear regression with few nonzero weights: f(x) = wᵀx + b with the w and b that minimize
//
//	Σ_i w_i (y_i − wᵀx_i − b)²   subject to ‖w‖₀ ≤ Support
//
// or, with Support 0, the sum plus the penalty λ‖w‖₀, where ‖w‖₀ is the number of nonzero weights. For up to 64 columns
// L0 searches for the best subset by branch and bound. The search takes up to two seconds for each output; for up to 24
// columns it always completes. The Fact "best subset" reports whether it completed.
//
// With more columns, or if the search did not complete, L0 uses a local method whose result need not be the optimum.
// Each step is one of iterative hard thresholding (Blumensath and Davies 2008), followed by least squares on the
// selected columns. If MaxIter steps do not suffice, Fit returns the model of the last step, and its Facts include a
// "warning". A step takes O(d²) operations for n ≥ d or d ≤ 2048, otherwise O(nd), and O(s³) more for s selected
// weights. For a path, or if many columns are strongly correlated, lasso is the safer choice.
type L0 struct {
	Lambda      float64 // ≥ 0; used when Support is 0
	Support     int     // ≥ 0
	MaxIter     int     // maximum number of steps; 0 means 1000
	NoIntercept bool    // set b = 0; by default b is fitted without a penalty
}

// Fit fits the n×d samples x to the n×t targets y, each output separately.
func (l L0) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *LinearModel, err error) {
	defer wrapError(l0Name, l.parameters(), &m, &err)
	defer remarkConstant(&m, &err, y, o)
	f := newFitting(ctx, dev, l0Name, l.parameters(), x, y, o)
	if f.err == nil && l.Support > f.x.Cols {
		f.fail(fmt.Errorf("support is %d, but x has %s", l.Support, count.Of(f.x.Cols, "column")))
	}
	p := lsq.L0{Lambda: l.Lambda, Support: l.Support, MaxIter: l.MaxIter}
	c, t := f.centered(!l.NoIntercept, func(c *lsq.Samples, n int) int64 { return c.L0Bytes(p, n) })
	if f.err != nil {
		return nil, f.err
	}
	r, err := c.L0(t, p)
	if err != nil {
		return nil, err
	}
	penalty := make([]float64, r.Coef.Cols)
	if l.Support == 0 {
		penalty = slices.Repeat([]float64{l.Lambda}, r.Coef.Cols)
	}
	m = newLinearModel(l0Name, !l.NoIntercept, r.Coef, r.Intercept, penalty, nil)
	m.facts = []Fact{{"weights not 0", len(m.Support(0))}, {"best subset", r.Complete}}
	if r.Steps > 0 {
		m.facts = append(m.facts, Fact{"steps", r.Steps})
	}
	m.facts = warned(m.facts, r.Warnings...)
	return m, nil
}
