package learners

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

const leastSquaresName = "least-squares"

func init() {
	register(Description{
		Name:    leastSquaresName,
		Tasks:   []Task{Regression, Classification},
		Formula: "minimise Σ w_i (y_i − wᵀx_i − b)²; of many such w the one of minimum norm",
		Source:  "Björck (1996), Numerical methods for least squares problems; Widrow and Hoff (1960), lms",
		Outputs: true, classify: true,
		Parameters: []Parameter{
			truth("intercept", "true", "fit an intercept"),
			oneOf("method", []string{"direct", "lms"}, "lms: w ← w + rate (y − wᵀx − b) x for each row in turn, an approximation"),
			number("rate", "", positive, "step of lms; 1/max(‖x‖² + 1) where none is given").with("method", "lms"),
			whole("epochs", "100", atLeast(1), "passes of lms over the rows").with("method", "lms"),
		},
		fitter: func(v Values) Fitter {
			l := LeastSquares{NoIntercept: !v.Bool("intercept")}
			if v.Choice("method") == "lms" {
				l.LMS, l.Rate, l.Epochs = true, v.Number("rate"), v.Whole("epochs")
			}
			return fitterOf(l.Fit)
		},
		restore: restoreAs[LinearModel],
	})
}

// LeastSquares is linear regression: f(x) = wᵀx + b with the w and b that
// minimise Σ_i w_i (y_i − wᵀx_i − b)², the maximum likelihood under noise
// N(0, σ²/w_i). Where the columns of x (centred, with an intercept) are linearly
// dependent, as the columns of a one-hot code are with an intercept, many w do:
// then it is the one with the smallest ‖w‖, as in LAPACK's xGELSD, and the facts
// give the rank.
//
// The normal equations are formed and factored on the device, with a step of
// refinement (Björck 1987): O(nd² + d³) operations, d² numbers. They square the
// condition of x; so where that of the triangular factor is above 1e4, or there
// are fewer rows than columns, a QR factorisation of x decides and solves, formed
// block by block on the host.
//
// The fact "forward error" bounds the relative error of w by rounding, for columns
// scaled to norm 1 (Golub and Van Loan 2013, 5.3.7; LAPACK Users' Guide, 4.5.1):
//
//	ε (2κ + κ² ‖y − Xw‖/‖Xw‖) ‖y‖/‖Xw‖
//
// The facts "noise variance" and "log likelihood" are of the first output: the unbiased
// estimate of σ², and the likelihood at the one that maximizes it.
type LeastSquares struct {
	NoIntercept bool    // b = 0
	LMS         bool    // by the rule of Widrow and Hoff (1960), the samples in turn: an approximation
	Rate        float64 // step of LMS; 0 is 1/max w_i(‖x_i‖² + 1)
	Epochs      int     // of LMS; 0 is 100
}

// choleskyCondition is the largest condition of the triangular factor up to which
// Cholesky of the normal equations with one step of refinement is kept: it leaves
// an error of εκ²·εκ, which is below that of QR, εκ, while εκ² ≪ 1.
const choleskyCondition = 1e4

// Fit fits the n×d samples x to the n×t targets y, each output on its own.
func (l LeastSquares) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*LinearModel, error) {
	m, err := l.fit(ctx, dev, x, y, o)
	return named(leastSquaresName, m, err)
}

func (l LeastSquares) fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*LinearModel, error) {
	switch {
	case !l.LMS && (l.Rate != 0 || l.Epochs != 0):
		return nil, fmt.Errorf("rate and epochs belong to LMS, got %v and %d", l.Rate, l.Epochs)
	case l.Epochs < 0:
		return nil, fmt.Errorf("epochs must be ≥ 0, got %d", l.Epochs)
	case l.Rate != 0 && !positive.ok(l.Rate):
		return nil, fmt.Errorf("rate must be %s, got %v", positive.text, l.Rate)
	case l.LMS:
		if l.Epochs == 0 {
			l.Epochs = 100
		}
		return l.lms(ctx, dev, x, y, o)
	}
	c, err := newCentred(ctx, dev, x, y, o, !l.NoIntercept)
	if err != nil {
		return nil, err
	}
	t, err := newTask(ctx, dev, o, leastSquaresName, c.n, func(n int) int64 {
		// XᵀX, and then its factor, the weights, their corrections and a block of rows.
		return max(c.qrBytes(n), c.momentBytes(n)+24*int64(c.d)*int64(c.t))
	})
	if err != nil {
		return nil, err
	}
	s := &solution{method: "Cholesky of the normal equations", rank: c.d}
	solved := false
	if c.n >= c.d {
		if solved, err = c.cholesky(t, s); err != nil {
			return nil, err
		}
	}
	if !solved {
		s.method = "QR"
		if err := c.qr(ctx, s); err != nil {
			return nil, err
		}
	}
	left, _, err := c.residual(t, s.coef)
	if err != nil {
		return nil, err
	}
	m := &LinearModel{linear: linear{model{learner: leastSquaresName}, s.coef, c.intercepts(s.coef)}, fitted: !l.NoIntercept, penalty: make([]float64, c.t)}
	m.facts = []Fact{{"method", s.method}, {"condition", s.condition}}
	if s.rank < c.d {
		m.facts = append(m.facts, Fact{"rank", fmt.Sprintf("%d of %d columns; of all best weights those of minimum norm", s.rank, c.d)})
	}
	bound, err := c.forwardError(ctx, s, left)
	if err != nil {
		return nil, err
	}
	m.facts = append(m.facts, Fact{"forward error", bound}, Fact{squaredNorm, coefNorm(s.coef)})
	parameters := s.rank
	if !l.NoIntercept {
		parameters++
	}
	m.facts = append(m.facts, noiseFacts(left[0], o.Weights, c.n, parameters)...)
	return m, t.at("solve", 1)
}

// solution is one of a least-squares problem.
type solution struct {
	method    string
	coef      backend.Host[float64] // d×t
	condition float64               // of X with columns scaled to norm 1
	rank      int
}

// cholesky solves the normal equations with columns scaled to norm 1. It returns
// false where they are too ill-conditioned, or overflow.
func (c *centred) cholesky(t *task, s *solution) (bool, error) {
	m, err := c.moments(t)
	if errors.Is(err, errOverflow) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	scale := make([]float64, c.d)
	for p := range scale {
		v := m.g.Row(p)[p]
		if v < math.SmallestNonzeroFloat64/epsilon { // constant, or too small for its square
			return false, nil
		}
		scale[p] = 1 / math.Sqrt(v)
	}
	for p := range scale {
		for q, v := range m.g.Row(p) {
			m.g.Row(p)[q] = v * scale[p] * scale[q]
		}
	}
	a, err := run.Upload(t.B, m.g)
	if err != nil {
		return false, err
	}
	defer a.Free()
	if err := t.B.Potrf(backend.Lower, a); err != nil {
		if errors.Is(err, backend.ErrNotPosDef) {
			err = nil
		}
		return false, err
	}
	if err := t.B.Download(m.g, a); err != nil {
		return false, err
	}
	factor := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: c.d, Stride: m.g.Stride, Data: m.g.Data}
	s.condition = 1 / lapack64.Trcon(lapack.MaxColumnSum, factor, make([]float64, 3*c.d), make([]int, c.d))
	if !(s.condition <= choleskyCondition) {
		return false, nil
	}
	s.coef = backend.NewHost[float64](c.d, c.t)
	right := backend.NewHost[float64](c.d, c.t)
	for p := range c.d {
		for j := range c.t {
			right.Row(p)[j] = m.c.Row(j)[p]
		}
	}
	for range 2 { // the second corrects by the residual of X itself
		for p, v := range scale {
			for j := range c.t {
				right.Row(p)[j] *= v
			}
		}
		step, err := run.Upload(t.B, right)
		if err != nil {
			return false, err
		}
		t.B.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, a, step)
		t.B.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, a, step)
		err = t.B.Download(right, step)
		step.Free()
		if err != nil {
			return false, err
		}
		for p, v := range scale {
			for j := range c.t {
				s.coef.Row(p)[j] += v * right.Row(p)[j]
			}
		}
		if _, right, err = c.residual(t, s.coef); err != nil {
			return false, err
		}
	}
	return true, nil
}

// residual returns ‖y − Xw‖² of each output and Xᵀ(y − Xw).
func (c *centred) residual(t *task, coef backend.Host[float64]) (squares []float64, gradient backend.Host[float64], err error) {
	gradient = backend.NewHost[float64](c.d, c.t)
	w, err := run.Upload(t.B, coef)
	if err != nil {
		return nil, gradient, err
	}
	defer w.Free()
	g, err := t.B.New(c.d, c.t)
	if err != nil {
		return nil, gradient, err
	}
	defer g.Free()
	squares = make([]float64, c.t)
	part := make([]float64, c.t)
	err = c.each(t.Ctx, t.B, func(x, y backend.Matrix[float64], _ int) error {
		t.B.Gemm(backend.NoTrans, backend.NoTrans, -1, x, w, 1, y)
		t.B.Gemm(backend.Transpose, backend.NoTrans, 1, x, y, 1, g)
		if err := t.B.ColDot(part, y, y); err != nil {
			return err
		}
		for j, v := range part {
			squares[j] += v
		}
		return nil
	})
	if err == nil {
		err = t.B.Download(gradient, g)
	}
	return squares, gradient, err
}

// forwardError is the largest of the bounds of all outputs. ‖Xw‖² = ‖y‖² −
// ‖y − Xw‖², since the residual is orthogonal to Xw.
func (c *centred) forwardError(ctx context.Context, s *solution, squares []float64) (float64, error) {
	norms, err := c.norms(ctx, c.y, c.meanY)
	if err != nil {
		return 0, err
	}
	most := 0.0
	for j, total := range norms {
		left := math.Sqrt(squares[j])
		fitted := math.Sqrt(max((total-left)*(total+left), 0))
		if total == 0 || s.rank == 0 {
			continue // w = 0 exactly
		}
		most = max(most, epsilon*(2*s.condition+s.condition*s.condition*left/fitted)*total/fitted)
	}
	return most, nil
}
