package learners

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

const lassoName = "lasso"

func init() {
	register(Description{
		Name:    lassoName,
		Tasks:   []Task{Regression, Classification},
		Formula: "minimise Σ w_i (y_i − wᵀx_i − b)² + lambda ‖w‖₁, b not penalised; or subject to ‖w‖₁ ≤ theta",
		Source:  "Tibshirani (1996); Friedman, Hastie and Tibshirani (2010), coordinate descent; Beck and Teboulle (2009), FISTA",
		Outputs: true, classify: true,
		Parameters: []Parameter{
			number("lambda", "1", nonNegative, "λ of Σ(y − wᵀx − b)² + λ‖w‖₁; scikit-learn's alpha is λ/2n").without("theta"),
			number("theta", "", positive, "bound θ of ‖w‖₁ for each output, instead of lambda"),
			oneOf("method", []string{string(CoordinateDescent), string(FISTA), string(ISTA)}, "way to minimise"),
			number("rate", "", positive, "step η of w ← soft(w − η∇, ηλ), ∇ = 2Xᵀ(Xw − y); 1/‖2XᵀX‖ where none is given").with("method", string(ISTA)),
			number("tol", "1e-7", positive, "duality gap relative to ‖y‖² at the end"),
			whole("iterations", "10000", atLeast(1), "most sweeps over the features, or steps"),
			truth("intercept", "true", "fit an unpenalised intercept"),
		},
		fitter: func(v Values) Fitter {
			lambda := v.Number("lambda")
			if v.Has("theta") {
				lambda = 0
			}
			return fitterOf(Lasso{
				Lambda: lambda, Theta: v.Number("theta"), Method: LassoMethod(v.Choice("method")), Rate: v.Number("rate"),
				Tol: v.Number("tol"), MaxIter: v.Whole("iterations"), NoIntercept: !v.Bool("intercept"),
			}.Fit)
		},
		restore: restoreAs[LinearModel],
	})
}

// LassoMethod names a way to minimise the lasso's objective.
type LassoMethod string

const (
	// CoordinateDescent minimises over one weight after the other, most often
	// over those that are not 0: the fast way on most data.
	CoordinateDescent LassoMethod = "coordinate-descent"
	// FISTA is the accelerated proximal gradient w ← soft(w − η∇, ηλ), with
	// a restart when momentum leads uphill (O'Donoghue and Candès 2015). Each
	// step is a product on the device.
	FISTA LassoMethod = "fista"
	// ISTA is the proximal gradient with a fixed step and without momentum.
	ISTA LassoMethod = "ista"
)

// Lasso is linear regression with a penalty that makes weights 0:
// f(x) = wᵀx + b with the w and b that minimise
//
//	Σ_i w_i (y_i − wᵀx_i − b)² + λ‖w‖₁
//
// λ is that of this sum: scikit-learn minimises (1/2n)‖y − Xw‖² + alpha‖w‖₁, so
// that λ = 2n·alpha. From λ = 2‖Xᵀ(y − ȳ)‖_∞ on, w is 0. It is the posterior mode
// under noise N(0, σ²/w_i) and independent Laplace priors of the weights with
// density (1/2τ)exp(−|w|/τ), for λ = 2σ²/τ (Tibshirani 1996).
//
// With Theta the penalty is a bound: the w and b that minimise the sum subject to
// ‖w‖₁ ≤ θ. That is the lasso with the λ ≥ 0 at which ‖w(λ)‖₁ = θ, given by the
// facts and LinearModel.Lambda, or λ = 0 where least squares obeys the bound. The
// fact "l1 norm" is ‖w‖₁ in both forms, of the first output as all facts: θ(λ).
//
// It stops when the duality gap, which bounds how far the objective is from its
// least value, is at most Tol·‖y − ȳ‖², or after MaxIter steps: then the model is the
// best so far, and the fact "warning" says so. With n ≥ d, or up to 2048 features, XᵀX
// is formed on the device, O(nd²) and d² numbers, and a sweep is O(d·changes);
// with more features X is kept, and a sweep is O(nd). Each output is on its own.
// With groups of nearly equal columns it picks one of each, and which one hangs
// by little: use ridge there.
type Lasso struct {
	Lambda      float64     // ≥ 0
	Theta       float64     // > 0: bound of ‖w‖₁, with Lambda 0; 0: none
	Method      LassoMethod // "" is CoordinateDescent
	Rate        float64     // η of ISTA; 0 is 1/‖2XᵀX‖
	Tol         float64     // 0 is 1e-7
	MaxIter     int         // 0 is 10000
	NoIntercept bool        // b = 0
}

func (l *Lasso) check() error {
	if l.Method == "" {
		l.Method = CoordinateDescent
	}
	if l.Tol == 0 {
		l.Tol = 1e-7
	}
	if l.MaxIter == 0 {
		l.MaxIter = 10000
	}
	if err := nonNegative.check(l.Lambda); err != nil {
		return fmt.Errorf("lambda %w", err)
	}
	if l.Theta != 0 {
		if err := positive.check(l.Theta); err != nil {
			return fmt.Errorf("theta %w", err)
		}
		if l.Lambda != 0 {
			return fmt.Errorf("theta replaces lambda: one of them must be 0, got %v and %v", l.Theta, l.Lambda)
		}
	}
	if l.Rate != 0 {
		if err := positive.check(l.Rate); err != nil {
			return fmt.Errorf("rate %w", err)
		}
		if l.Method != ISTA {
			return fmt.Errorf("rate belongs to the method %q, got %q", ISTA, l.Method)
		}
	}
	if err := positive.check(l.Tol); err != nil {
		return fmt.Errorf("tol %w", err)
	}
	if err := atLeast(1).check(float64(l.MaxIter)); err != nil {
		return fmt.Errorf("iterations %w", err)
	}
	if l.Method != CoordinateDescent && l.Method != FISTA && l.Method != ISTA {
		return fmt.Errorf("no method is called %q; there are %q, %q and %q", l.Method, CoordinateDescent, FISTA, ISTA)
	}
	return nil
}

// Fit fits the n×d samples x to the n×t targets y, each output on its own.
func (l Lasso) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*LinearModel, error) {
	models, err := l.path(ctx, dev, x, y, []float64{l.Lambda}, o)
	if err != nil {
		return nil, fmt.Errorf("learners: lasso: %w", err)
	}
	return models[0], nil
}

// Path fits a model for each λ of lambdas, each from where the one before ended:
// in the order from the largest to the smallest it costs little more than the
// last alone. l.Lambda is not looked at. Nil lambdas are 100, evenly spaced in
// their logarithms, from where all weights are 0 to a thousandth of that. The
// models are in the order of lambdas.
func (l Lasso) Path(ctx context.Context, dev backend.Device, x, y mat.Matrix, lambdas []float64, o Options) ([]*LinearModel, error) {
	for i, v := range lambdas {
		if err := nonNegative.check(v); err != nil {
			return nil, fmt.Errorf("learners: lasso: lambda %d of the path %w", i+1, err)
		}
	}
	if l.Theta != 0 {
		return nil, fmt.Errorf("learners: lasso: a path has lambdas, and no theta")
	}
	l.Lambda = 0
	models, err := l.path(ctx, dev, x, y, lambdas, o)
	if err != nil {
		return nil, fmt.Errorf("learners: lasso: %w", err)
	}
	return models, nil
}

func (l Lasso) path(ctx context.Context, dev backend.Device, x, y mat.Matrix, lambdas []float64, o Options) ([]*LinearModel, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	c, err := newCentred(ctx, dev, x, y, o, !l.NoIntercept)
	if err != nil {
		return nil, err
	}
	t, err := newTask(ctx, dev, o, lassoName, c.n, c.normalBytes)
	if err != nil {
		return nil, err
	}
	a, err := c.normal(t)
	if err != nil {
		return nil, err
	}
	defer a.free()
	if lambdas == nil {
		most := 0.0
		for _, v := range a.moments.c.Data {
			most = max(most, 2*math.Abs(v))
		}
		for i := range 100 {
			lambdas = append(lambdas, most*math.Pow(1e-3, float64(i)/99))
		}
	}
	norms := a.diagonal()
	var p proximal
	if l.Method == CoordinateDescent {
		p = newCoordinate(a)
	} else if p, err = newFista(a, l); err != nil {
		return nil, err
	}
	order := make([]int, len(lambdas))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return -compare(lambdas[i], lambdas[k]) })
	models := make([]*LinearModel, len(lambdas))
	for i := range models {
		models[i] = &LinearModel{linear: linear{model: model{learner: lassoName}, coef: backend.NewHost[float64](c.d, c.t)}, fitted: !l.NoIntercept, penalty: slices.Repeat([]float64{lambdas[i]}, c.t)}
	}
	for j := range c.t {
		s := &lassoState{w: make([]float64, c.d), q: make([]float64, c.d), c: a.moments.c.Row(j), norms: norms, total: a.moments.s[j]}
		for done, i := range order {
			m := models[i]
			share := 1 / float64(len(order)*c.t)
			s.base, s.share, s.warning = (float64(j*len(order)+done))*share, share, ""
			w, mu := s.w, lambdas[i]/2
			if l.Theta > 0 {
				w, mu, err = s.bounded(p, l)
			} else {
				err = p.minimise(s, mu, l)
			}
			if err != nil {
				return nil, err
			}
			for p, v := range w {
				m.coef.Row(p)[j] = v
			}
			m.penalty[j] = 2 * mu
			if j == 0 {
				m.facts = []Fact{{"iterations", s.steps}, {"weights not 0", s.support()}, {"l1 norm", blas64.Asum(vectorOf(w))}, {"duality gap", 2 * s.gap}}
				if l.Theta > 0 {
					m.facts = append(m.facts, Fact{"lambda", 2 * mu})
				}
			}
			if s.warning != "" {
				m.facts = append(m.facts, Fact{"warning", fmt.Sprintf("output %d has not converged: %s", j+1, s.warning)})
			}
		}
	}
	for _, m := range models {
		m.intercept = c.intercepts(m.coef)
	}
	return models, t.at("solve", 1)
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// proximal minimises ½‖y − Xw‖² + μ‖w‖₁ from s.w on.
type proximal interface {
	minimise(s *lassoState, mu float64, l Lasso) error
}

// lassoState is an output's weights, and what belongs to them.
type lassoState struct {
	w, q        []float64 // w and XᵀXw
	c           []float64 // Xᵀy
	norms       []float64 // ‖x_p‖²
	total       float64   // ‖y‖²
	gap         float64   // the last duality gap
	steps       int
	base, share float64 // of the progress
	warning     string  // why it has not converged
}

func (s *lassoState) support() (n int) {
	for _, w := range s.w {
		if w != 0 {
			n++
		}
	}
	return n
}

// soft is the proximal map of μ|·|.
func soft(v, mu float64) float64 {
	switch {
	case v > mu:
		return v - mu
	case v < -mu:
		return v + mu
	}
	return 0
}

var errLassoOverflow = errors.New("values of x or y overflow: scale them down")

// settled updates the duality gap. With r = y − Xw the point s·r, s the largest
// number ≤ 1 for which ‖Xᵀ(s·r)‖_∞ ≤ μ, is dual feasible, so that
//
//	gap = ½‖r‖²(1 + s²) + μ‖w‖₁ − s·rᵀy ≥ 0
//
// bounds the objective's distance from its least value (Kim et al. 2007). It
// also says when the work must stop.
func (s *lassoState) settled(t *task, mu float64, l Lasso) (bool, error) {
	var most, ones, cw, wq float64
	for p, w := range s.w {
		most = max(most, math.Abs(s.c[p]-s.q[p]))
		ones += math.Abs(w)
		cw += s.c[p] * w
		wq += w * s.q[p]
	}
	squares := max(s.total-2*cw+wq, 0)
	scale := 1.0
	if most > mu {
		scale = mu / most
	}
	s.gap = squares/2*(1+scale*scale) + mu*ones - scale*(s.total-cw)
	if s.gap-s.gap != 0 {
		return false, errLassoOverflow
	}
	// The gap is a difference of numbers near ‖y‖²/2. Without a penalty it is
	// squares/2, which says nothing; then it is the gradient that must vanish:
	// also of a weight that is 0, by which the objective can fall at least so much.
	limit := l.Tol * s.total / 2
	if mu == 0 {
		s.gap = 0
		for p := range s.w {
			slope := math.Abs(s.c[p] - s.q[p])
			s.gap = max(s.gap, slope*math.Abs(s.w[p]))
			if s.norms[p] > 0 {
				s.gap = max(s.gap, slope/s.norms[p]*slope)
			}
		}
	}
	err := t.at("solve", s.base+s.share*min(1, float64(s.steps)/float64(l.MaxIter)))
	return s.gap <= max(limit, 8*epsilon*s.total), err
}

// unsettled says that MaxIter steps were not enough: w is kept as it is.
func (s *lassoState) unsettled(l Lasso, what string) {
	s.warning = fmt.Sprintf("after %d %s the duality gap is %.2g of ‖y‖², not %.2g: raise lambda, tol or iterations, or standardize x",
		s.steps, what, 2*s.gap/s.total, l.Tol)
}
