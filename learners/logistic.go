package learners

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/glm"
	"github.com/mercer-go/mercer/internal/numeric"
	"gonum.org/v1/gonum/mat"
)

const logisticName = "logistic"

func init() {
	register(Description{
		Name:    logisticName,
		Grid:    "lambda=0.001,0.01,0.1,1,10,100",
		Tasks:   []Task{Classification},
		Sparse:  true,
		traces:  true,
		Formula: "minimize Σ w_i (−ln Pr(y_i | x_i)) + (lambda/2)‖W‖², Pr(c | x) = e^f_c / Σ e^f_j, f_c = w_cᵀx + b_c; two classes: Pr(second) = 1/(1 + e^−f)",
		Source:  "Bishop (2006), Pattern Recognition and Machine Learning, section 4.3; Nocedal (1980) for L-BFGS",
	}, (*Logistic).parameters, Logistic.Fit)
}

func (l *Logistic) parameters() []Parameter {
	return []Parameter{
		number("lambda", &l.Lambda, "1", nonNegative, "factor of the penalty ‖W‖²/2, which is added to the sum of the losses; 1/C in scikit-learn"),
		intercept(&l.NoIntercept, "fit unpenalized intercepts"),
		oneOf("solver", &l.Solver, "auto", []LogisticSolver{LogisticNewton, LogisticLBFGS, LogisticDescent, LogisticSGD}, "auto counts operations: newton if its steps cost little, otherwise lbfgs, followed by newton if lbfgs takes long"),
		boolParam("reference", &l.Reference, "false", "for more than two classes: the last class has f = 0, W has K−1 columns, and Pr(c) = e^f_c/(1 + Σ e^f_j); texts that write e^−f have weights of the opposite sign"),
		number("tol", &l.Tol, "0", nonNegative, "remaining decrease relative to the loss, estimated by gᵀM⁻¹g/2 for the gradient g and M near the Hessian; 0: 1e-6 for gradient-descent, 1e-2 for sgd, which only reports it, 1e-9 for the others"),
		intParam("iterations", &l.MaxIter, "0", atLeast(0), "maximum number of iterations; 0: 100 for newton, 1000 for auto and lbfgs, 20000 for gradient-descent; for sgd epochs, 0: 20"),
		number("rate", &l.Rate, "0", nonNegative, "step of gradient-descent and sgd; 0: chosen automatically").onlyWith("solver", string(LogisticDescent), string(LogisticSGD)),
		intParam("batch", &l.Batch, "32", atLeast(1), "number of samples in one step of sgd").onlyWith("solver", string(LogisticSGD)),
		seedNumber(&l.Seed),
	}
}

// LogisticSolver names a method to minimize the objective of Logistic.
type LogisticSolver = glm.Solver

// The solvers of Logistic: see package glm. With "" the fit chooses a solver.
const (
	LogisticNewton  = glm.Newton
	LogisticLBFGS   = glm.LBFGS
	LogisticDescent = glm.Descent
	LogisticSGD     = glm.SGD
)

// Logistic is logistic regression. For samples x_i with labels y_i and weights w_i, it finds W and b that minimize
//
//	F = Σ_i w_i (−ln Pr(y_i | x_i)) + (λ/2)‖W‖²
//
// where λ is the field Lambda, which is 1/C for scikit-learn's C. Let f = Wᵀx + b. For two classes f is a number, and
// the second class has the probability 1/(1 + e^−f). For K > 2 classes f has K elements, and Pr(c|x) = e^f_c/Σ_j e^f_j.
//
// A constant added to all K intercepts does not change the probabilities: Fit returns intercepts that sum to 0. If λ
// is 0, each row of W sums to 0, too. With Reference, the last intercept and the last column of W are 0 instead.
//
// If λ is 0 and the classes are linearly separable, F has no minimum. Fit then returns an error or, if MaxIter is set,
// the model of the last iteration, with a Fact "warning".
//
// The Fact "remaining decrease" estimates (F − min F)/F as gᵀM⁻¹g/(2F), where g is the gradient of F and M is its
// Hessian or an approximation of the Hessian. If the solver ends before the estimate is at most Tol, Fit returns the
// model of the last step, with a Fact "warning". For nonlinear boundaries see KernelLogistic.
type Logistic struct {
	Lambda      float64 // ≥ 0
	NoIntercept bool    // whether b = 0; by default b is fitted without a penalty
	Solver      LogisticSolver
	Reference   bool    // whether the last of K > 2 classes has f = 0
	Tol         float64 // largest remaining decrease at which the solver stops, and above which sgd gives a warning; 0 means 1e-6 for gradient-descent, 1e-2 for sgd and 1e-9 for the others
	MaxIter     int     // maximum number of iterations; 0 means 100 for newton, 1000 for auto and lbfgs, 20000 for gradient-descent and 20 epochs for sgd
	Rate        float64 // step size of gradient-descent and sgd for the mean loss; 0 selects it automatically
	Batch       int     // batch size of sgd; 0 means 32
	Seed        uint64  // seed of the order of the samples in sgd
}

// Fit fits the n×d samples x to the n×1 labels y.
func (l Logistic) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *LogisticModel, err error) {
	defer wrapError(logisticName, l.parameters(), &m, &err)
	f := newFitting(ctx, dev, logisticName, l.parameters(), x, y, o)
	classes, index := f.classes()
	points, features := f.points, []int32(nil)
	if l.Lambda > 0 { // without a penalty a feature of zeros must remain, because Solve returns an error for it
		points, features = points.Used()
	}
	p := glm.Problem{X: points, Class: index, Classes: classes.Len(), Weights: o.Weights, Lambda: l.Lambda, Intercept: !l.NoIntercept, Reference: l.Reference}
	par := glm.Params{Solver: l.Solver, Tol: l.Tol, MaxIter: l.MaxIter, Rate: l.Rate, Batch: l.Batch, Seed: l.Seed}
	t := f.task(points.Rows, func(n int) int64 { return par.Bytes(dev, p, n) })
	if f.err != nil {
		return nil, f.err
	}
	r, err := glm.Solve(t, p, par)
	if err != nil {
		return nil, err
	}
	facts := []Fact{{"method", string(r.Solver)}, {"iterations", r.Iters}, {"evaluations", r.Evaluations}, {"loss", r.Loss}, {"remaining decrease", r.Gain}, {"largest gradient", r.Gradient}, {squaredNorm, squares(r.Coef)}}
	return &LogisticModel{linearClassifier{linear{model{logisticName, warned(facts, r.Warning)}, numeric.Restored(r.Coef, features, f.points.Cols), r.Intercept}, classified{classes}}, l.Lambda}, nil
}

// LogisticModel is a fitted Logistic: f(x) = Wᵀx + b, where W has one column for two classes and K columns for K >
// 2 classes. With Logistic.Reference the last column is 0. The decision values f are the log odds of the second of
// two classes, or for K > 2 classes the logarithms of the probabilities up to a common constant.
type LogisticModel struct {
	linearClassifier
	lambda float64
}

// Proba implements Prober.
func (m *LogisticModel) Proba(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	f, err := m.Decision(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	return glm.Probabilities(f), nil
}

// State implements Model. Its arrays are "coef", "intercept" and "labels".
func (m *LogisticModel) State() State { return stateOf(m) }

func (m *LogisticModel) fields() []field {
	return append(m.linearClassifier.fields(), lambdaField(&m.lambda))
}
