package learners

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

const kernelLogisticName = "kernel-logistic"

func init() {
	register(Description{
		Name:    kernelLogisticName,
		Tasks:   []Task{Classification},
		Formula: "minimise Σ w_i (−ln Pr(y_i | x_i)) + (lambda/2) Σ_c α_cᵀKα_c, f_c = Σ α_ic k(x_i, x) + b_c, probabilities as in logistic",
		Source:  "Zhu and Hastie (2005), Kernel logistic regression and the import vector machine; Rasmussen and Williams (2006), section 3.4",
		Parameters: []Parameter{
			medianKernel,
			number("lambda", "1", positive, "penalty of the norms beside the sum of the losses"),
			truth("intercept", "true", "fit unpenalised intercepts"),
			number("tol", "1e-06", positive, "relative residual of λα = w(y − p)"),
			whole("iterations", "0", atLeast(0), "maximum number of Newton steps; 0: 100, or 500 where lambda is too small for a system in α"),
			seedNumber.withHelp("seed of the choice of rows for the median distance"),
		},
		fitter: func(v Values) Fitter {
			return fitterOf(KernelLogistic{
				Kernel: v.Kernel("kernel"), Lambda: v.Number("lambda"), NoIntercept: !v.Bool("intercept"),
				Tol: v.Number("tol"), MaxIter: v.Whole("iterations"), Seed: v.Seed(),
			}.Fit)
		},
		restore: restoreAs[KernelLogisticModel],
	})
}

// KernelLogistic is logistic regression in the space of a kernel: the α and b
// that minimise
//
//	Σ_i w_i (−ln Pr(y_i | x_i)) + (λ/2) Σ_c α_cᵀKα_c,  f_c = Σ_i α_ic k(x_i, ·) + b_c
//
// with one f for two classes, Pr(second | x) = 1/(1 + e^−f), and the softmax of
// K for K > 2. There is one minimum, where λα_ic = w_i([y_i = c] − p_ic).
//
// It is found by Newton's method for all classes at once. With g = w([y = c] − p) and
// the weights W_ab = w p_a([a = b] − p_b) of the Hessian at the present f, a step
// (δ, ε) of (α, b) solves
//
//	(λ + WK)δ + W1ε = g − λα,  1ᵀWKδ + 1ᵀW1ε = 1ᵀg
//
// by conjugate gradients in the metric of K, δᵀKδ + sε², where the operator is
// symmetric (Shewchuk 1994, section B3), as precisely as the outer residual is worth
// (Dembo, Eisenstat and Steihaug 1982), and is shortened until the objective falls.
//
// Cost: O(n²d) for K and 2n²C for each product with it, C columns at once: about
// a hundred for λ = 1 and a thousand for λ = 1e-4; memory n². For many samples
// take logistic on features of fourier-ridge or nystrom-ridge, or svc, which keeps
// few samples.
//
// A fit that ends before Tol is reached returns the model of its last step, with
// the fact "warning".
type KernelLogistic struct {
	Kernel      kernels.Kernel // nil: as in KernelRidge
	Lambda      float64        // > 0
	NoIntercept bool
	Tol         float64 // of ‖λα − w(y − p)‖ / ‖w(y − p)‖; 0 is 1e-6
	MaxIter     int     // Newton steps; 0 is 100, and 500 over the factor
	Seed        uint64  // of the choice of rows where Kernel is nil
}

// Fit fits the n×d samples x to the n×1 labels y.
func (l KernelLogistic) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*KernelLogisticModel, error) {
	m, err := l.fit(ctx, dev, x, y, o)
	return named(kernelLogisticName, m, err)
}

func (l KernelLogistic) fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*KernelLogisticModel, error) {
	switch {
	case !positive.ok(l.Lambda):
		return nil, fmt.Errorf("lambda must be %s, got %v: any samples that differ can be separated by a kernel, and without a penalty α grows without end", positive.text, l.Lambda)
	case !nonNegative.ok(l.Tol):
		return nil, fmt.Errorf("tol must be %s, got %v", nonNegative.text, l.Tol)
	case l.MaxIter < 0:
		return nil, fmt.Errorf("iterations must be ≥ 0, got %d", l.MaxIter)
	}
	hx, hy, err := checked(dev, x, y, o)
	if err != nil {
		return nil, err
	}
	classes, index, err := classesOf(hy, o.Weights, o.Classes)
	if err != nil {
		return nil, err
	}
	k, err := kernelFor(ctx, l.Kernel, hx, o.Weights, l.Seed)
	if err != nil {
		return nil, err
	}
	used := o.Weights
	centers := keepPositive(hx, used)
	index, used = keepIndex(index, used), positiveOf(used)
	t, err := newTask(ctx, dev, o, kernelLogisticName, centers.Rows, func(n int) int64 { return kernelLogitBytes(n, hx.Cols, classes.Columns()) })
	if err != nil {
		return nil, err
	}
	f := newKernelLogit(t, k, centers, index, used, classes.Columns(), l.Lambda, !l.NoIntercept, o.Memory)
	tol, most, more := l.Tol, l.MaxIter, l.MaxIter
	if tol == 0 {
		tol = 1e-6
	}
	if most == 0 {
		most, more = 100, 500
	}
	short, err := f.minimise(tol, most)
	if err != nil {
		return nil, err
	}
	if short != nil && f.joint() && (l.MaxIter == 0 || short.stalled) {
		m, err := f.byBasis(index, tol, more)
		if err != nil {
			return nil, err
		}
		if m != nil {
			m.classes = classes
			return m, nil
		}
	}
	m := newKernelLogisticModel(f, f.alpha, f.b)
	m.classes = classes
	m.facts = []Fact{{"newton steps", f.steps}, {"products with K", f.products}, {"residual", f.residual()}, {"loss", f.value}, {squaredNorm, f.square(f.f, f.alpha, f.b)}}
	if short != nil {
		m.facts = append(m.facts, Fact{"warning", short.Error()})
	}
	return m, t.at("fit", 1)
}

// kernelLogit is one Fit in progress.
type kernelLogit struct {
	t         *task
	k         kernels.Kernel
	x         backend.Host[float64]
	y         backend.Host[float64] // n×C: 1 for the class of the column
	weights   []float64
	lambda    float64
	intercept bool
	memory    int64

	f, g, alpha backend.Host[float64] // n×C; g = [y = c] − p at f
	b           []float64
	value       float64
	steps       int
	products    int // with K

	gram    backend.Matrix[float64] // K, the lower triangle
	in, out backend.Matrix[float64] // n×C
}

// kernelLogitBytes is K, x, the vectors on the device and those of the loop.
func kernelLogitBytes(n, d, c int) int64 {
	return 8 * int64(n) * (int64(n) + int64(d) + 20*int64(c))
}

func newKernelLogit(t *task, k kernels.Kernel, x backend.Host[float64], index []int, weights []float64, c int, lambda float64, intercept bool, memory int64) *kernelLogit {
	n := x.Rows
	m := &kernelLogit{
		t: t, k: k, x: x, weights: weights, lambda: lambda, intercept: intercept, memory: memory,
		y: backend.NewHost[float64](n, c), f: backend.NewHost[float64](n, c), alpha: backend.NewHost[float64](n, c), b: make([]float64, c),
	}
	for i, class := range index {
		if c > 1 {
			m.y.Row(i)[class] = 1
		} else {
			m.y.Row(i)[0] = float64(class)
		}
	}
	m.g, m.value = m.objective(m.f, m.alpha, m.b)
	return m
}

func (m *kernelLogit) weight(i int) float64 {
	if m.weights == nil {
		return 1
	}
	return m.weights[i]
}

// objective returns [y = c] − p at f, without cancellation where p is near 0 or 1,
// and the value of what is minimised.
func (m *kernelLogit) objective(f, alpha backend.Host[float64], b []float64) (g backend.Host[float64], value float64) {
	g = backend.NewHost[float64](f.Rows, f.Cols)
	for i := range f.Rows {
		row, target := f.Row(i), m.y.Row(i)
		value += m.weight(i) * gap(g.Row(i), row, target)
	}
	return g, value + m.lambda/2*m.square(f, alpha, b)
}

// square returns Σ ‖f_c‖² = Σ α_cᵀKα_c over the columns for the scores f = Kα + b.
func (m *kernelLogit) square(f, alpha backend.Host[float64], b []float64) (sum float64) {
	for i := range f.Rows {
		for c, a := range alpha.Row(i) {
			sum += a * (f.Row(i)[c] - b[c])
		}
	}
	return max(sum, 0)
}

// gap sets g to [y = c] − p for the scores f of a sample, target being [y = c],
// and returns −ln Pr(y).
func gap(g, f, target []float64) (loss float64) {
	if len(f) == 1 {
		sign := 2*target[0] - 1
		z := -sign * f[0] // the loss is ln(1 + e^z)
		e := math.Exp(-math.Abs(z))
		g[0] = sign * e / (1 + e)
		if z > 0 {
			g[0] = sign / (1 + e)
		}
		return max(z, 0) + math.Log1p(e)
	}
	most, sum, rest, own := slices.Max(f), 0.0, 0.0, 0.0
	for c, v := range f {
		e := math.Exp(v - most)
		sum += e
		g[c] = -e
		if target[c] == 1 {
			own = v
		} else {
			rest += e
		}
	}
	for c := range g {
		if target[c] == 1 {
			g[c] = rest
		}
		g[c] /= sum
	}
	if own == most {
		return math.Log1p(rest)
	}
	return most - own + math.Log(sum)
}

// KernelLogisticModel is a fitted KernelLogistic. Its centers are all samples of
// weight > 0; its facts are Newton steps, the relative residual of the equations of the
// minimum, the value of the objective, and over the factor the number of basis
// functions.
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
	return softmax(f), nil
}

// Alpha returns a copy of the dual coefficients, a column for each class or one
// for two classes; nil when the model is not fitted.
func (m *KernelLogisticModel) Alpha() *mat.Dense {
	return denseOf(m.coef)
}

func newKernelLogisticModel(m *kernelLogit, alpha backend.Host[float64], b []float64) *KernelLogisticModel {
	fit := &KernelLogisticModel{lambda: m.lambda}
	fit.kernelExpansion = kernelExpansion{model{learner: kernelLogisticName}, m.k, m.x, alpha, b}
	return fit
}

// State implements Model. Its arrays are "centers", "alpha", "intercept" and
// "labels".
func (m *KernelLogisticModel) State() State { return stateOf(m) }

func (m *KernelLogisticModel) fields() []field {
	return append(m.classFields("centers", "alpha"), lambdaField(&m.lambda))
}
