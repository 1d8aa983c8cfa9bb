package glm

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/run"
)

// Solver is a way to minimize the loss of logistic regression.
type Solver string

const (
	Auto    Solver = ""                 // Newton for up to 600 unknowns, LBFGS for more
	Newton  Solver = "newton"           // iteratively reweighted least squares: O(nd²C² + d³C³) each step, few steps
	LBFGS   Solver = "lbfgs"            // in the metric of XᵀX: O(nd²) once, O(ndC) each step
	Descent Solver = "gradient-descent" // O(ndC) each step, many steps
	SGD     Solver = "sgd"              // stochastic: steps by batches of samples; an approximation
)

// Solvers lists all but Auto.
var Solvers = []Solver{Newton, LBFGS, Descent, SGD}

// newtonUnknowns is up to how many unknowns Auto takes Newton's method.
const newtonUnknowns = 600

// Problem is logistic regression of n samples of C classes: the W and b that minimize
//
//	Σ_i w_i (−ln Pr(y_i | x_i)) + (λ/2)‖W‖²
//
// Two classes have one column, Pr(second | x) = 1/(1 + e^−f), f = wᵀx + b; C classes the
// softmax of C columns, or with Reference C−1 columns beside f_C = 0.
type Problem struct {
	X         backend.Host[float64] // n×d
	Class     []int                 // of each sample; −1 for one of weight 0
	Classes   int                   // C
	Weights   []float64             // w; nil: all 1
	Lambda    float64               // ≥ 0
	Intercept bool                  // fit b, not penalized; otherwise it is 0
	Reference bool                  // for C > 2; with Lambda 0 it is taken anyway
}

// columns is the number of columns of W, and whether the last class is the reference.
func (p Problem) columns() (int, bool) {
	switch {
	case p.Classes == 2:
		return 1, false
	case p.Reference || p.Lambda == 0:
		return p.Classes - 1, true
	}
	return p.Classes, false
}

// Params are the settings of a solver. The zero value of each has a default.
type Params struct {
	Solver  Solver
	Tol     float64 // part of the loss that it may still fall by, about; 0: 1e-9 of Newton, 1e-6 of LBFGS and Descent
	MaxIter int     // 0: 100 of Newton, 1000 of LBFGS, 20000 of Descent, 20 epochs of SGD
	Rate    float64 // of Descent and SGD, on the mean loss; 0: chosen
	Batch   int     // of SGD; 0 is 32
	Seed    uint64  // of the order of SGD
}

// For returns p with the solver that Auto stands for.
func (l Params) For(p Problem) Params {
	if l.Solver == Auto {
		l.Solver = LBFGS
		if c, _ := p.columns(); (p.X.Cols+1)*c <= newtonUnknowns {
			l.Solver = Newton
		}
	}
	return l
}

// Bytes is what Solve takes on the device where there are n samples.
func (l Params) Bytes(p Problem, n int) int64 {
	c, _ := p.columns()
	return l.For(p).bytes(n, p.X.Cols, c)
}

func (l Params) bytes(n, d, c int) int64 {
	e := logitBytes(n, d, c)
	switch l.Solver {
	case Newton:
		e += hessianBytes(n, d, c)
	case LBFGS:
		if d <= metricFeatures {
			e += metricBytes(d, c)
		}
	case SGD:
		e += 8 * int64(l.batch()) * int64(d+c)
	}
	return e
}

func (l Params) batch() int {
	if l.Batch == 0 {
		return 32
	}
	return l.Batch
}

// limit is MaxIter or the given default.
func (l Params) limit(standard int) int {
	if l.MaxIter == 0 {
		return standard
	}
	return l.MaxIter
}

// Result is the minimum.
type Result struct {
	Coef        backend.Host[float64] // W: d×1 for two classes, d×C for more; without Problem.Reference its rows sum to 0 where λ is 0
	Intercept   []float64             // b
	Solver      Solver
	Iters       int
	Evaluations int     // of the loss and its gradient
	Loss        float64 // what was minimized
	Gradient    float64 // the largest entry of its gradient
}

// Solve minimizes the loss of p. Where the solver stops before Tol is reached it is an
// error.
func Solve(t *run.Task, p Problem, par Params) (*Result, error) {
	par = par.For(p)
	columns, reference := p.columns()
	f, err := newLogit(t, p.X, p.Class, p.Weights, columns, reference, p.Lambda, p.Intercept)
	if err != nil {
		return nil, err
	}
	defer f.free()
	theta, iterations, err := par.minimize(f)
	if err != nil {
		return nil, err
	}
	gradient := f.zero()
	value, err := f.eval(theta, gradient)
	if err != nil {
		return nil, err
	}
	// Noise of the last steps of SGD may leave the loss a little above that of 0.
	if start, err := f.eval(f.zero(), f.zero()); err != nil {
		return nil, err
	} else if !(value <= 2*start) {
		return nil, message.Errorf("%s diverged: the loss is %.3g, and %.3g with w = 0: {rate}", par.Solver, value, start)
	}
	r := &Result{Solver: par.Solver, Iters: iterations, Evaluations: f.evals, Loss: value}
	r.Coef, r.Intercept = f.coef(theta)
	if reference && !p.Reference {
		centerColumns(r.Coef, r.Intercept)
	}
	for _, g := range gradient.Data {
		r.Gradient = max(r.Gradient, math.Abs(g))
	}
	return r, nil
}

func (l Params) minimize(f *logit) (theta backend.Host[float64], iterations int, err error) {
	tol := l.Tol
	if tol == 0 {
		if tol = 1e-6; l.Solver == Newton {
			tol = 1e-9
		}
	}
	first, reported := math.NaN(), 0.0
	at := func(_ int, gain float64) error { // on the way from the first gain to tol
		if math.IsNaN(first) {
			first = max(gain, 10*tol)
		}
		if gain > 0 {
			reported = max(reported, min(math.Log(first/gain)/math.Log(first/tol), 0.99))
		}
		return f.t.Step("fit", reported)
	}
	switch l.Solver {
	case Newton:
		theta, iterations, err = f.newton(tol, l.limit(100), at)
	case LBFGS:
		var m metric = f.diagonalMetric()
		if f.d <= metricFeatures {
			if m, err = f.fullMetric(); err != nil {
				return theta, 0, err
			}
		}
		defer m.free()
		theta, iterations, err = f.lbfgs(m, tol, l.limit(1000), at)
	case Descent:
		theta, iterations, err = f.descend(l.Rate, tol, l.limit(20000), at)
	case SGD:
		iterations = l.limit(20)
		theta, err = f.stochastic(l.Rate, l.batch(), iterations, l.Seed, func(fraction float64) error { return f.t.Step("fit", fraction) })
	}
	if err != nil {
		return theta, iterations, err
	}
	return theta, iterations, f.t.Step("fit", 1)
}

// centerColumns takes the mean over the classes from W and b, which changes no
// probability: the form in which the penalty of ‖W‖² would leave them.
func centerColumns(w backend.Host[float64], b []float64) {
	for p := -1; p < w.Rows; p++ {
		row := b
		if p >= 0 {
			row = w.Row(p)
		}
		mean := 0.0
		for _, v := range row {
			mean += v / float64(len(row))
		}
		for c := range row {
			row[c] -= mean
		}
	}
}
