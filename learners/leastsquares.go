package learners

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/lsq"
	"github.com/mercer-go/mercer/internal/numeric"
	"gonum.org/v1/gonum/mat"
)

const leastSquaresName = "least-squares"

func init() {
	register(Description{
		Name:    leastSquaresName,
		Tasks:   []Task{Regression, Classification},
		Formula: "minimize Σ w_i (y_i − wᵀx_i − b)²; if w is not unique, the w of minimum norm",
		Source:  "Björck (1996), Numerical methods for least squares problems; Widrow and Hoff (1960), lms",
		Outputs: true, classify: true, traces: true, Sparse: true,
	}, (*LeastSquares).parameters, LeastSquares.Fit)
}

func (l *LeastSquares) parameters() []Parameter {
	return []Parameter{
		intercept(&l.NoIntercept, "fit an intercept"),
		twoChoices("method", &l.LMS, "direct", "lms", "lms: w ← w + rate (y − wᵀx − b) x for each row in turn, an approximation"),
		number("rate", &l.Rate, "", positive, "step of lms; 1/max(‖x‖² + 1) by default").onlyWith("method", "lms"),
		intParam("epochs", &l.Epochs, "100", atLeast(1), "number of passes of lms over the rows").onlyWith("method", "lms"),
	}
}

// LeastSquares is linear regression: f(x) = wᵀx + b with the w and b that minimize Σ_i w_i (y_i − wᵀx_i − b)², which is
// maximum likelihood for noise N(0, σ²/w_i). If the columns of x, after centering for an intercept, are linearly
// dependent, the result is the w with the smallest ‖w‖, as in LAPACK's xGELSD. The Facts give the rank.
//
// The normal equations are factored on the device, with a step of refinement (Björck 1987), in O(nd² + d³) operations
// and d² numbers of memory. If the condition number of the triangular factor is above 1e4, or there are fewer rows than
// columns, Fit uses a QR factorization of x on the host instead. For sparse samples LSQR (Paige and Saunders 1982)
// finds the same w. The Facts are then only the number of iterations and ‖w‖².
//
// The Fact "forward error" bounds the relative error of w due to rounding (Golub and Van Loan 2013, 5.3.7; LAPACK
// Users' Guide, 4.5.1). For columns scaled to norm 1 with the condition number κ, and the machine precision ε, it is
//
//	ε (2κ + κ² ‖y − Xw‖/‖Xw‖) ‖y‖/‖Xw‖
//
// The Facts "noise variance" and "log likelihood" describe the first output: the unbiased estimate of σ², and the
// likelihood at the σ² that maximizes it.
type LeastSquares struct {
	NoIntercept bool    // set b = 0; by default b is fitted
	LMS         bool    // approximate the solution by the LMS rule of Widrow and Hoff (1960), with a step for each sample
	Rate        float64 // step size of LMS; 0 means 1/max w_i(‖x_i‖² + 1)
	Epochs      int     // epochs of LMS; 0 means 100
}

// Fit fits the n×d samples x to the n×t targets y, each output separately.
func (l LeastSquares) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *LinearModel, err error) {
	defer wrapError(leastSquaresName, l.parameters(), &m, &err)
	defer remarkConstant(&m, &err, y, o)
	f := newFitting(ctx, dev, leastSquaresName, l.parameters(), x, y, o)
	if l.LMS {
		return l.lms(f)
	}
	d := f.points.Cols
	var features []int32
	if f.err == nil {
		f.points, features = f.points.Used()
	}
	c, t := f.centered(!l.NoIntercept, (*lsq.Samples).LeastSquaresBytes)
	if f.err != nil {
		return nil, f.err
	}
	s, err := c.LeastSquares(t)
	if err != nil {
		return nil, err
	}
	if f.points.Sparse != nil {
		facts := warned([]Fact{{"method", s.Method}, {"iterations", s.Iters}, {squaredNorm, coefNorm(s.Coef)}}, s.Warning)
		return newLinearModel(leastSquaresName, !l.NoIntercept, numeric.Restored(s.Coef, features, d), s.Intercept, make([]float64, s.Coef.Cols), facts), t.Step("solve", 1)
	}
	facts := []Fact{{"method", s.Method}, {"condition", s.Condition}}
	if s.Rank < c.Features() {
		facts = append(facts, Fact{"rank", fmt.Sprintf("%d of %d columns; the weights of minimum norm", s.Rank, c.Features())})
	}
	facts = append(facts, Fact{"forward error", s.ForwardError}, Fact{squaredNorm, coefNorm(s.Coef)})
	facts = append(facts, noiseFacts(s.Squares[0], o.Weights, f.x.Rows, s.Rank, !l.NoIntercept)...)
	return newLinearModel(leastSquaresName, !l.NoIntercept, s.Coef, s.Intercept, make([]float64, s.Coef.Cols), facts), t.Step("solve", 1)
}

// lms fits LeastSquares by lsq.LMS.
func (l LeastSquares) lms(f *fitting) (*LinearModel, error) {
	t := f.task(f.points.Rows, func(int) int64 { return 8 * int64(f.points.Cols) * int64(f.y.Cols) })
	if f.err != nil {
		return nil, f.err
	}
	r, err := lsq.LMS{Rate: l.Rate, Epochs: l.Epochs, Intercept: !l.NoIntercept}.Fit(t, f.points, f.y, f.o.Weights)
	if err != nil {
		return nil, err
	}
	facts := append([]Fact{{squaredNorm, coefNorm(r.Coef)}}, noiseFacts(r.Squares[0], f.o.Weights, f.points.Rows, f.points.Cols, !l.NoIntercept)...)
	if l.Rate == 0 {
		facts = append(facts, Fact{"rate", r.Rate})
	}
	return newLinearModel(leastSquaresName, !l.NoIntercept, r.Coef, r.Intercept, make([]float64, f.y.Cols), facts), nil
}
