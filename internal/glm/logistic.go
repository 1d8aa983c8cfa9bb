package glm

import (
	"cmp"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// Solver names a method to minimize the loss of logistic regression.
type Solver string

const (
	Auto    Solver = ""                 // Newton if its step takes no more operations than the loss; otherwise LBFGS until it has taken as many operations as Newton would take, and then Newton
	Newton  Solver = "newton"           // iteratively reweighted least squares: few steps of O(nd²C² + d³C³)
	LBFGS   Solver = "lbfgs"            // L-BFGS steps of O(ndC), preconditioned by the diagonal of XᵀX, and by XᵀX when the steps have taken O(nd²) operations, as many as computing XᵀX
	Descent Solver = "gradient-descent" // many steps of O(ndC)
	SGD     Solver = "sgd"              // stochastic gradient descent by batches of samples; the result is an approximation
)

// Solvers lists all solvers except Auto.
var Solvers = []Solver{Newton, LBFGS, Descent, SGD}

// newtonUnknowns is the maximum number of unknowns for which Auto uses Newton's method (a Hessian of 32 MiB).
const newtonUnknowns = 2048

// Problem is logistic regression for n samples of C classes. The solution consists of the W and b that minimize
//
//	Σ_i w_i (−ln Pr(y_i | x_i)) + (λ/2)‖W‖²
//
// For two classes W has one column, and Pr(second | x) = 1/(1 + e^−f) with f = wᵀx + b. For C > 2 classes
// the probabilities are the softmax of C columns, or, with Reference, of C − 1 columns and f_C = 0.
type Problem struct {
	X         numeric.Points // the samples, n×d
	Class     []int          // class of each sample; −1 for a sample of weight 0
	Classes   int            // the number C of classes
	Weights   []float64      // w; nil if all weights are 1
	Lambda    float64        // λ ≥ 0
	Intercept bool           // whether to fit an unpenalized b; otherwise b = 0
	Reference bool           // whether the last of C > 2 classes has f = 0; implied if Lambda is 0
}

// columns returns the number of columns of W, and whether the last class is the reference.
func (p Problem) columns() (int, bool) {
	switch {
	case p.Classes == 2:
		return 1, false
	case p.Reference || p.Lambda == 0:
		return p.Classes - 1, true
	}
	return p.Classes, false
}

// Params holds the settings of a solver. A zero field selects its default.
type Params struct {
	Solver  Solver
	Tol     float64 // tolerance of the remaining decrease of the loss, relative to the loss; 0 means 1e-6 for Descent, 1e-2 for SGD, and 1e-9 otherwise. SGD does not stop at Tol, but warns if it does not reach Tol
	MaxIter int     // maximum number of iterations; 0 means 100 for Newton, 1000 for Auto and LBFGS, 20000 for Descent, and 20 epochs for SGD
	Rate    float64 // step size of Descent and SGD for the mean loss; 0 selects it automatically
	Batch   int     // batch size of SGD; 0 means 32
	Seed    uint64  // seed of the order of the samples in SGD
}

// Bytes returns the device memory that Solve takes for n samples, in bytes. For sparse samples it also counts the
// steps of L-BFGS in Go memory.
func (l Params) Bytes(dev backend.Device, p Problem, n int) int64 {
	c, _ := p.columns()
	return l.bytes(dev, p.X, n, c)
}

func (l Params) bytes(dev backend.Device, x numeric.Points, n, c int) int64 {
	d := x.Cols
	var extra int64
	if l.Solver == Newton || l.Solver == Auto && (d+1)*c <= newtonUnknowns {
		extra = hessianBytes(n, d, c)
	}
	if l.Solver != Newton && l.Solver != SGD && d <= metricFeatures(x) {
		extra = max(extra, metricBytes(d, c))
	}
	if x.Sparse != nil {
		unknowns := (d + 1) * c
		extra += 8 * int64(3*lbfgsPairs(unknowns)+8) * int64(unknowns)
	}
	if l.Solver == SGD {
		extra = 8 * int64(l.batch()) * int64(d+c)
	}
	return logitBytes(dev.F64(), x, n, c) + extra
}

func (l Params) batch() int {
	if l.Batch == 0 {
		return 32
	}
	return l.Batch
}

// limit returns MaxIter, or the given default if MaxIter is 0.
func (l Params) limit(standard int) int {
	if l.MaxIter == 0 {
		return standard
	}
	return l.MaxIter
}

// Result is the minimum or, with a Warning, the point at which the solver ended.
type Result struct {
	Coef        backend.Host[float64] // W: d×1 for two classes, d×C for more; without Problem.Reference its rows sum to 0 if λ is 0
	Intercept   []float64             // the intercepts b
	Solver      Solver
	Iters       int
	Evaluations int     // number of evaluations of the loss and its gradient
	Loss        float64 // value of the objective
	Gradient    float64 // largest absolute entry of the gradient of the objective
	Gain        float64 // estimated remaining decrease, relative to the loss; Tol bounds it
	Warning     string  // why the solver ended before Tol was reached; "" if Tol was reached
}

// Solve minimizes the loss of p. The result has a Warning if MaxIter or rounding errors end the
// solver before it reaches Tol. If Lambda is 0 and the classes are separable, there is no minimum.
// Separable classes are an error if MaxIter is 0. If MaxIter is set, the result has a Warning:
// Descent takes all steps, and the other solvers end when the current W separates the classes.
func Solve(t *run.Task, p Problem, par Params) (*Result, error) {
	columns, reference := p.columns()
	f, err := newLogit(t, p.X, p.Class, p.Weights, columns, reference, p.Lambda, p.Intercept)
	if err != nil {
		return nil, err
	}
	defer f.free()
	r, end, err := par.minimize(f)
	if err != nil {
		return nil, err
	}
	// Rounding and the noise of SGD may give a loss slightly above the loss at θ = 0.
	if start := f.total * elementary.Log(float64(p.Classes)); !(end.value <= 2*start) {
		return nil, message.Errorf("%s diverged: the loss is %.3g, and %.3g with w = 0: {lower $rate}", r.Solver, end.value, start)
	}
	r.Evaluations, r.Loss = f.evals, end.value
	r.Coef, r.Intercept = f.coef(end.theta)
	if reference && !p.Reference {
		centerColumns(r.Coef, r.Intercept)
	}
	for _, g := range end.gradient.Data {
		r.Gradient = max(r.Gradient, math.Abs(g))
	}
	return r, nil
}

// An ending is the reason why a solver stopped.
type ending int

const (
	stalled    ending = iota // no step makes the loss smaller
	exhausted                // the limit of iterations was reached
	handedOver               // the next stage takes less time
	converged
)

// minimize returns the last point, and a result with the fields that describe the end of the iteration.
func (l Params) minimize(f *logit) (r *Result, p *point, err error) {
	first, reported := math.NaN(), 0.0
	progress := func(tol, gain float64) error { // progress on a logarithmic scale: 0 at the first gain, 1 at the gain tol
		if math.IsNaN(first) {
			first = max(gain, 10*tol)
		}
		if gain > 0 {
			reported = max(reported, min(elementary.Log(first/gain)/elementary.Log(first/tol), 0.99))
		}
		return f.t.Step("fit", reported)
	}
	r = &Result{}
	if l.Solver == SGD {
		r.Solver, r.Iters = SGD, l.limit(20)
		theta, err := f.stochastic(l.Rate, l.batch(), r.Iters, l.Seed, func(fraction float64) error { return f.t.Step("fit", fraction) })
		if err == nil {
			p, err = f.pointAt(theta)
		}
		if err == nil {
			r.Gain, err = f.gain(p, &diagonalMetric{l: f})
			r.warn(exhausted, cmp.Or(l.Tol, 1e-2))
		}
		return r, p, err
	}
	f.fixed = l.MaxIter > 0
	if p, err = f.start(); err != nil {
		return nil, nil, err
	}
	for _, s := range l.stages(f) {
		tol := cmp.Or(l.Tol, s.tol)
		previousIters := r.Iters
		report := func(iter int, gain, value float64) error {
			r.Gain = gain
			f.t.Traced(run.Epoch{Number: previousIters + iter, Loss: value})
			return progress(tol, gain)
		}
		var m metric
		if s.solver != Newton {
			if m, err = f.metricOf(s); err != nil {
				return nil, nil, err
			}
		}
		var reason ending
		steps, maxIter := 0, max(l.limit(s.limit)-r.Iters, 0)
		switch s.solver {
		case Newton:
			p, steps, reason, err = f.newton(p, tol, maxIter, report)
		case Descent:
			p, steps, reason, err = f.descend(p, m, l.Rate, tol, maxIter, report)
		default:
			p, steps, reason, err = f.lbfgs(p, m, tol, maxIter, s.evaluations, report)
		}
		r.Solver = s.solver
		if r.Iters += steps; err != nil || reason != handedOver {
			r.warn(reason, tol)
			break
		}
	}
	if err == nil {
		if separated, _ := f.separated(); separated {
			r.Gain, err = f.gain(p, &diagonalMetric{l: f})
			r.Warning = fmt.Sprintf("%s ended after %s, where the loss may still fall by about %.2g times its value: "+unbounded, r.Solver, count.Of(r.Iters, "iteration"), r.Gain)
		}
		f.t.Traced(run.Epoch{Number: r.Iters, Loss: p.value})
	}
	if err == nil {
		err = f.t.Step("fit", 1)
	}
	return r, p, err
}

// warn sets the warning of r if the solver ended for the given reason before it reached tol.
func (r *Result) warn(reason ending, tol float64) {
	if reason == converged || r.Gain <= tol {
		return
	}
	description := "did not converge within " + count.Of(r.Iters, "iteration")
	switch {
	case r.Solver == SGD:
		description = "ended after " + count.Of(r.Iters, "epoch")
	case reason == stalled:
		description = "found no step that makes the loss smaller after " + count.Of(r.Iters, "iteration")
	}
	r.Warning = fmt.Sprintf("%s %s: the loss may still fall by about %.2g times its value, more than the tolerance of %.2g: {raise $lambda|raise $tol|raise $iterations}", r.Solver, description, r.Gain, tol)
}

// stage is a solver, and the number of evaluations of the loss after which the next stage replaces it.
type stage struct {
	solver      Solver
	tol         float64
	limit       int // maximum number of iterations, including earlier stages
	full        bool
	evaluations int
}

// stages chooses the solvers and their order. A stage ends when it has taken as many operations as the next stage is
// expected to take, so that all stages take at most about twice as many operations as the fastest stage.
func (l Params) stages(f *logit) []stage {
	const lasting = math.MaxInt32
	newton := stage{Newton, 1e-9, 100, false, lasting}
	switch l.Solver {
	case Newton:
		return []stage{newton}
	case Descent:
		return []stage{{Descent, 1e-6, 20000, f.d <= metricFeatures(f.points), lasting}}
	}
	c := f.costs()
	mayNewton := l.Solver == Auto && (f.d+1)*f.c <= newtonUnknowns
	// Without a penalty, the factorization in Newton's method detects linearly dependent features.
	if mayNewton && (f.lambda == 0 || c.hessian <= newtonShare*c.eval) {
		return []stage{newton}
	}
	// If computing the full metric takes no longer than a few evaluations, begin with it.
	diagonal, full := stage{LBFGS, 1e-9, 1000, false, lasting}, stage{LBFGS, 1e-9, 1000, true, lasting}
	var stages []stage
	if f.d > metricFeatures(f.points) {
		stages = []stage{diagonal}
	} else {
		if c.metric > fewEvaluations*c.eval {
			diagonal.evaluations = int(c.metric / c.eval)
			stages = []stage{diagonal}
		}
		stages = append(stages, full)
	}
	if mayNewton {
		stages[len(stages)-1].evaluations = int(newtonSteps * (c.hessian + c.eval) / (c.eval + c.solve))
		newton.limit += 1000
		stages = append(stages, newton)
	}
	return stages
}

const (
	// newtonSteps is a cautious estimate: Newton's method takes about 6 steps if L-BFGS takes 10 or more.
	newtonSteps    = 8
	newtonShare    = 0.75
	fewEvaluations = 4
)

// costs are times in units of one operation of a large matrix product (two cores of an AMD EPYC of family 25 with
// AVX-512, November 2026). Each operation of a product of X and one column takes `thin` units.
type costs struct{ eval, hessian, metric, solve float64 }

func (l *logit) costs() costs {
	n, d, c, stored := float64(l.n), float64(l.d), float64(l.c), float64(l.points.Elements(l.n))
	const thin, exp, moved, call = 6.7, 60, 10, 1e6
	columns := thin + c - 1
	return costs{
		eval:    4*stored*columns + exp*n*c + call,
		hessian: n*(d+1)*(d+1)*c*c + moved*n*(d+1)*c*(c+1)/2 + elementary.Pow((d+1)*c, 3)/3,
		metric:  n*d*d + d*d*d/3,
		solve:   2 * d * d * columns,
	}
}

// centerColumns subtracts the mean over the classes from W and b, which changes no probability and minimizes ‖W‖².
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
