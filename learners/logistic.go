package learners

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"gonum.org/v1/gonum/mat"
)

const logisticName = "logistic"

func init() {
	register(Description{
		Name:    logisticName,
		Tasks:   []Task{Classification},
		Formula: "minimise Σ w_i (−ln Pr(y_i | x_i)) + (lambda/2)‖W‖², Pr(c | x) = e^f_c / Σ e^f_j, f_c = w_cᵀx + b_c; two classes: Pr(second) = 1/(1 + e^−f)",
		Source:  "Bishop (2006), Pattern Recognition and Machine Learning, section 4.3; Nocedal (1980) for L-BFGS",
		Parameters: []Parameter{
			number("lambda", "1", nonNegative, "penalty of ‖W‖²/2 beside the sum of the losses; 1/C in scikit-learn"),
			truth("intercept", "true", "fit unpenalised intercepts"),
			oneOf("solver", logisticSolvers, "auto is newton for up to 600 unknowns, lbfgs for more"),
			truth("reference", "false", "of more than two classes: the last has f = 0, K−1 columns, Pr(c) = e^f_c/(1 + Σ e^f_j); weights of the form e^−f have the other sign"),
			number("tol", "0", nonNegative, "part of the loss that it may still fall by; 0: 1e-9 of newton, 1e-6 of the others"),
			whole("iterations", "0", atLeast(0), "most iterations; 0: 100 of newton, 1000 of lbfgs, 20000 of gradient-descent; sgd: epochs, 0: 20"),
			number("rate", "0", nonNegative, "step of gradient-descent and sgd; 0: chosen").with("solver", string(LogisticDescent), string(LogisticSGD)),
			whole("batch", "32", atLeast(1), "samples in one step of sgd").with("solver", string(LogisticSGD)),
			seedNumber,
		},
		fitter: func(v Values) Fitter {
			solver := v.Choice("solver")
			if solver == "auto" {
				solver = ""
			}
			return fitterOf(Logistic{
				Lambda: v.Number("lambda"), NoIntercept: !v.Bool("intercept"), Solver: LogisticSolver(solver), Reference: v.Bool("reference"),
				Tol: v.Number("tol"), MaxIter: v.Whole("iterations"), Rate: v.Number("rate"), Batch: v.Whole("batch"), Seed: v.Seed(),
			}.Fit)
		},
		restore: restoreAs[LogisticModel],
	})
}

var logisticSolvers = []string{"auto", string(LogisticNewton), string(LogisticLBFGS), string(LogisticDescent), string(LogisticSGD)}

// LogisticSolver names a way to minimise the objective of Logistic.
type LogisticSolver string

const (
	LogisticAuto    LogisticSolver = ""                 // newton for up to 600 unknowns, lbfgs for more
	LogisticNewton  LogisticSolver = "newton"           // iteratively reweighted least squares: O(nd²C² + d³C³) each step, few steps
	LogisticLBFGS   LogisticSolver = "lbfgs"            // in the metric of XᵀX: O(nd²) once, O(ndC) each step
	LogisticDescent LogisticSolver = "gradient-descent" // O(ndC) each step, many steps
	LogisticSGD     LogisticSolver = "sgd"              // stochastic: steps by batches of samples; an approximation
)

// newtonUnknowns is up to how many unknowns LogisticAuto takes Newton's method.
const newtonUnknowns = 600

// Logistic is logistic regression: the W and b that minimise
//
//	Σ_i w_i (−ln Pr(y_i | x_i)) + (λ/2)‖W‖²
//
// which is n times the mean cross-entropy + (λ/2n)‖W‖². Two classes have one
// column, Pr(second | x) = 1/(1 + e^−f), f = wᵀx + b; K classes the softmax of K
// columns, Pr(c | x) = e^f_c / Σ_j e^f_j, or with Reference K−1 columns beside
// f_K = 0, Pr(c | x) = e^f_c/(1 + Σ_{j<K} e^f_j); the form
// e^{−vᵀx}/(1 + Σ e^{−v_jᵀx}) has v = −w. The intercepts are not
// penalised. λ is 1/C of scikit-learn.
//
// With λ > 0 there is one minimum, except that the K intercepts may all be
// changed by the same number: theirs sum to 0. With λ = 0 there is one only
// when the classes cannot be separated; Fit then gives an error that says so,
// and takes the K−1 columns of Reference, whose minimum is the same function.
//
// Where the solver stops before Tol is reached Fit gives an error. Not for
// boundaries that are no planes: see KernelLogistic.
type Logistic struct {
	Lambda      float64 // ≥ 0
	NoIntercept bool
	Solver      LogisticSolver
	Reference   bool
	Tol         float64 // part of the loss that it may still fall by, about; 0: 1e-9 of newton, 1e-6 of lbfgs and gradient-descent
	MaxIter     int     // 0: 100 of newton, 1000 of lbfgs, 20000 of gradient-descent, 20 epochs of sgd
	Rate        float64 // of gradient-descent and sgd, on the mean loss; 0: chosen
	Batch       int     // of sgd; 0 is 32
	Seed        uint64  // of the order of sgd
}

func (l Logistic) check() error {
	for _, p := range []struct {
		name  string
		value float64
	}{{"lambda", l.Lambda}, {"tol", l.Tol}, {"rate", l.Rate}, {"iterations", float64(l.MaxIter)}, {"batch", float64(l.Batch)}} {
		if err := nonNegative.check(p.value); err != nil {
			return fmt.Errorf("%s %w", p.name, err)
		}
	}
	for _, s := range logisticSolvers[1:] {
		if l.Solver == LogisticAuto || string(l.Solver) == s {
			return nil
		}
	}
	return fmt.Errorf("no solver is called %q; there are: newton, lbfgs, gradient-descent, sgd", l.Solver)
}

// Fit fits the n×d samples x to the n×1 labels y.
func (l Logistic) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*LogisticModel, error) {
	m, err := l.fit(ctx, dev, x, y, o)
	return named(logisticName, m, err)
}

func (l Logistic) fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*LogisticModel, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	hx, hy, err := checked(dev, x, y, o)
	if err != nil {
		return nil, err
	}
	classes, index, err := classesOf(hy, o.Weights, o.Classes)
	if err != nil {
		return nil, err
	}
	columns, reference := classes.Columns(), classes.Len() > 2 && (l.Reference || l.Lambda == 0)
	if reference {
		columns--
	}
	if l.Solver == LogisticAuto {
		l.Solver = LogisticLBFGS
		if (hx.Cols+1)*columns <= newtonUnknowns {
			l.Solver = LogisticNewton
		}
	}
	t, err := newTask(ctx, dev, o, logisticName, hx.Rows, func(n int) int64 { return l.bytes(n, hx.Cols, columns) })
	if err != nil {
		return nil, err
	}
	f, err := newLogit(t, hx, index, o.Weights, columns, reference, l.Lambda, !l.NoIntercept)
	if err != nil {
		return nil, err
	}
	defer f.free()
	theta, iterations, err := l.minimise(f)
	if err != nil {
		return nil, err
	}
	gradient := f.zero()
	value, err := f.eval(theta, gradient)
	if err != nil {
		return nil, err
	}
	// Noise of the last steps of sgd may leave the loss a little above that of 0.
	if start, err := f.eval(f.zero(), f.zero()); err != nil {
		return nil, err
	} else if !(value <= 2*start) {
		return nil, fmt.Errorf("%s diverged: the loss is %.3g, and %.3g with w = 0: lower the rate", l.Solver, value, start)
	}
	m := &LogisticModel{lambda: l.Lambda}
	m.learner, m.classes = logisticName, classes
	m.coef, m.intercept = f.coef(theta)
	if reference && !l.Reference {
		centreColumns(m.coef, m.intercept)
	}
	steepest := 0.0
	for _, g := range gradient.Data {
		steepest = max(steepest, math.Abs(g))
	}
	m.facts = []Fact{{"method", string(l.Solver)}, {"iterations", iterations}, {"evaluations", f.evals}, {"loss", value}, {"largest gradient", steepest}, {squaredNorm, squares(m.coef)}}
	return m, nil
}

// bytes is what a Fit takes on the device.
func (l Logistic) bytes(n, d, c int) int64 {
	e := logitBytes(n, d, c)
	switch l.Solver {
	case LogisticNewton:
		e += hessianBytes(n, d, c)
	case LogisticLBFGS:
		if d <= metricFeatures {
			e += metricBytes(d, c)
		}
	case LogisticSGD:
		e += 8 * int64(l.batch()) * int64(d+c)
	}
	return e
}

func (l Logistic) batch() int {
	if l.Batch == 0 {
		return 32
	}
	return l.Batch
}

// most is MaxIter or the given default.
func (l Logistic) most(standard int) int {
	if l.MaxIter == 0 {
		return standard
	}
	return l.MaxIter
}

func (l Logistic) minimise(f *logit) (theta backend.Host[float64], iterations int, err error) {
	tol := l.Tol
	if tol == 0 {
		if tol = 1e-6; l.Solver == LogisticNewton {
			tol = 1e-9
		}
	}
	first, told := math.NaN(), 0.0
	at := func(_ int, gain float64) error { // on the way from the first gain to tol
		if math.IsNaN(first) {
			first = max(gain, 10*tol)
		}
		if gain > 0 {
			told = max(told, min(math.Log(first/gain)/math.Log(first/tol), 0.99))
		}
		return f.t.at("fit", told)
	}
	switch l.Solver {
	case LogisticNewton:
		theta, iterations, err = f.newton(tol, l.most(100), at)
	case LogisticLBFGS:
		var m metric = f.diagonalMetric()
		if f.d <= metricFeatures {
			if m, err = f.fullMetric(); err != nil {
				return theta, 0, err
			}
		}
		defer m.free()
		theta, iterations, err = f.lbfgs(m, tol, l.most(1000), at)
	case LogisticDescent:
		theta, iterations, err = f.descend(l.Rate, tol, l.most(20000), at)
	case LogisticSGD:
		iterations = l.most(20)
		theta, err = f.stochastic(l.Rate, l.batch(), iterations, l.Seed, func(fraction float64) error { return f.t.at("fit", fraction) })
	}
	if err != nil {
		return theta, iterations, err
	}
	return theta, iterations, f.t.at("fit", 1)
}

// centreColumns takes the mean over the classes from W and b, which changes no
// probability: the form in which the penalty of ‖W‖² would leave them.
func centreColumns(w backend.Host[float64], b []float64) {
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
