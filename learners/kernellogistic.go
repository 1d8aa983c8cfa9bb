package learners

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/glm"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

const kernelLogisticName = "kernel-logistic"

func init() {
	register(Description{
		Name:    kernelLogisticName,
		Grid:    "lambda=0.001,0.01,0.1,1,10",
		Tasks:   []Task{Classification},
		traces:  true,
		Formula: "minimize Σ w_i (−ln Pr(y_i | x_i)) + (lambda/2) Σ_c α_cᵀKα_c, f_c = Σ α_ic k(x_i, x) + b_c, probabilities as in logistic",
		Source:  "Zhu and Hastie (2005), Kernel logistic regression and the import vector machine; Rasmussen and Williams (2006), section 3.4",
	}, (*KernelLogistic).parameters, KernelLogistic.Fit)
}

func (l *KernelLogistic) parameters() []Parameter {
	return []Parameter{
		medianKernel(&l.Kernel),
		number("lambda", &l.Lambda, "0.01", positive, "factor of the penalty of the norms, which is added to the sum of the losses; not scaled by the number of rows").requiredInGo(),
		intercept(&l.NoIntercept, "fit unpenalized intercepts"),
		number("tol", &l.Tol, "1e-06", positive, "relative residual of λα = w(y − p)"),
		intParam("iterations", &l.MaxIter, "0", atLeast(0), "maximum number of Newton steps; 0: 100, or 500 if a small lambda makes the fit use a factor of K"),
		seedNumber(&l.Seed).withHelp("seed of the choice of rows for the median distance"),
	}
}

// KernelLogistic is logistic regression in the space of a kernel: the α and b that minimize
//
//	Σ_i w_i (−ln Pr(y_i | x_i)) + (λ/2) Σ_c α_cᵀKα_c,  f_c = Σ_i α_ic k(x_i, ·) + b_c
//
// For two classes there is one f, with Pr(second | x) = 1/(1 + e^−f); for K > 2 classes Pr is the softmax of K
// values f_c. The minimum is unique. Newton's method finds it: see glm.KernelProblem.
//
// The kernel matrix K of n samples takes O(n²d) operations and n² numbers of memory. A product of it with C columns
// takes 2n²C operations. A fit takes about a hundred products for λ = 1 and a thousand for λ = 1e-4. For many
// samples use logistic on features of fourier-ridge or nystrom-ridge, or use svc.
//
// If a fit ends before it reaches Tol, it returns the model of its last step with the fact "warning".
type KernelLogistic struct {
	Kernel      kernels.Kernel // nil means the default of KernelRidge
	Lambda      float64        // > 0; without a penalty α would diverge if the classes are separable
	NoIntercept bool           // set b = 0; by default b is fitted without a penalty
	Tol         float64        // upper limit of ‖λα − w(y − p)‖ / ‖w(y − p)‖; 0 means 1e-6
	MaxIter     int            // maximum number of Newton steps; 0 means 100, or 500 if the fit uses a factor of K
	Seed        uint64         // seed of the choice of rows if Kernel is nil
}

// Fit fits the n×d samples x to the n×1 labels y.
func (l KernelLogistic) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *KernelLogisticModel, err error) {
	defer wrapError(kernelLogisticName, l.parameters(), &m, &err)
	f := newFitting(ctx, dev, kernelLogisticName, l.parameters(), x, y, o)
	classes, index := f.classes()
	k := f.kernel(l.Kernel, l.Seed)
	p := glm.KernelProblem{
		Kernel: k, X: f.keptX(), Class: selectPositive(index, o.Weights), Classes: classes.Len(), Weights: selectPositive(o.Weights, o.Weights),
		Lambda: l.Lambda, Intercept: !l.NoIntercept,
	}
	t := f.task(p.X.Rows, p.Bytes)
	if f.err != nil {
		return nil, f.err
	}
	r, err := glm.SolveKernel(t, p, glm.KernelParams{Tol: l.Tol, MaxIter: l.MaxIter, Memory: o.Memory})
	if err != nil {
		return nil, err
	}
	facts := []Fact{{"newton steps", r.Steps}, {"products with K", r.Products}, {"residual", r.Residual}, {"loss", r.Loss}, {squaredNorm, r.Square}}
	if r.Rank > 0 {
		facts = []Fact{{"newton steps", r.Steps}, {"basis functions", r.Rank}, {"loss", r.Loss}, {squaredNorm, r.Square}, {"residual", r.Residual}}
	}
	return &KernelLogisticModel{kernelClassifier{kernelExpansion{model{kernelLogisticName, warned(facts, r.Warning)}, k, numeric.DensePoints(p.X), r.Alpha, r.Intercept}, classified{classes}}, l.Lambda}, nil
}

// KernelLogisticModel is a fitted KernelLogistic. Its centers are all samples of weight > 0.
type KernelLogisticModel struct {
	kernelClassifier
	lambda float64
}

// Proba implements Prober.
func (m *KernelLogisticModel) Proba(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	f, err := m.Decision(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	return glm.Probabilities(f), nil
}

// Alpha returns a copy of the dual coefficients, a column for each class or one for two classes,
// or nil if the model is not fitted.
func (m *KernelLogisticModel) Alpha() *mat.Dense {
	return denseOf(m.coef)
}

// State implements Model. Its arrays are "centers", "alpha", "intercept" and "labels".
func (m *KernelLogisticModel) State() State { return stateOf(m) }

func (m *KernelLogisticModel) fields() []field {
	return append(m.classFields("centers", "alpha"), lambdaField(&m.lambda))
}
