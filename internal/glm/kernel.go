package glm

import (
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// KernelProblem is kernel logistic regression: it minimizes, over the coefficients α and the intercepts b,
//
//	Σ_i w_i (−ln Pr(y_i | x_i)) + (λ/2) Σ_c α_cᵀKα_c,  f_c(x) = Σ_i α_ic k(x_i, x) + b_c
//
// For C > 2 classes, Pr(c | x) is the softmax of f_1(x), …, f_C(x). Two classes have a single f, and Pr(1 | x) is
// 1/(1 + exp(−f(x))).
//
// Newton's method solves λα = g and 1ᵀg = 0 for g_ic = w_i([y_i = c] − Pr(c | x_i)). Its step (δ, ε) for (α, b) solves
//
//	(λI + WK)δ + W1ε = g − λα,  1ᵀWKδ + 1ᵀW1ε = 1ᵀg,  W = −∂g/∂f
//
// With the second equation divided by a weight s > 0, the matrix is symmetric in the metric δᵀKδ + sε², in which
// conjugate gradients solve the system (Shewchuk 1994, section B3). The tolerance depends on g − λα (Dembo, Eisenstat
// and Steihaug 1982).
type KernelProblem struct {
	Kernel    kernels.Kernel
	X         backend.Host[float64] // the n×d samples
	Class     []int                 // class of each sample
	Classes   int                   // the number C of classes
	Weights   []float64             // w > 0; nil if all weights are 1
	Lambda    float64               // λ > 0
	Intercept bool                  // whether to fit an unpenalized b; otherwise b = 0
}

func (p KernelProblem) columns() int {
	if p.Classes == 2 {
		return 1
	}
	return p.Classes
}

// Bytes returns the device memory of SolveKernel for n samples, in bytes: K, x, and at most 20 matrices of the
// size of α.
func (p KernelProblem) Bytes(n int) int64 {
	return 8 * int64(n) * (int64(n) + int64(p.X.Cols) + 20*int64(p.columns()))
}

// KernelParams holds the settings of SolveKernel.
type KernelParams struct {
	Tol     float64 // bound on ‖λα − w(y − p)‖ / ‖w(y − p)‖; 0 means 1e-6
	MaxIter int     // maximum number of Newton steps; 0 means 100, or 500 if a factor of K is used
	Memory  int64   // maximum number of bytes of device memory; 0 means all free memory of the device
}

// KernelResult is the minimum of the objective or, with a Warning, the point after the last step.
type KernelResult struct {
	Alpha     backend.Host[float64] // n×1 for two classes, n×C for more
	Intercept []float64             // the intercepts b
	Steps     int                   // number of Newton steps
	Products  int                   // number of products with K
	Rank      int                   // rank of the factor of K; 0 if no factor is used
	Residual  float64               // ‖λα − w(y − p)‖ / ‖w(y − p)‖
	Loss      float64               // value of the objective
	Square    float64               // Σ_c α_cᵀKα_c, the squared norm of f
	Warning   string                // why the solver stopped before reaching Tol; "" if it reached Tol
}

// SolveKernel solves p. If rounding errors prevent progress and λ is small enough, it tries again with a factor of
// K. It stops with a Warning after MaxIter steps, or if rounding errors prevent progress.
func SolveKernel(t *run.Task, p KernelProblem, par KernelParams) (*KernelResult, error) {
	f := newKernelLogit(t, p, par.Memory)
	tol, limit, basisLimit := par.Tol, par.MaxIter, par.MaxIter
	if tol == 0 {
		tol = 1e-6
	}
	if limit == 0 {
		limit, basisLimit = 100, 500
	}
	short, err := f.minimize(tol, limit)
	if err != nil {
		return nil, err
	}
	if short != nil && f.joint() && (par.MaxIter == 0 || short.stalled) {
		r, err := f.byBasis(p.Class, tol, basisLimit)
		if r != nil {
			t.Traced(run.Epoch{Number: r.Steps, Loss: r.Loss})
		}
		if r != nil || err != nil {
			return r, err
		}
	}
	r := &KernelResult{
		Alpha: f.alpha, Intercept: f.b, Steps: f.steps, Products: f.products,
		Residual: f.residual(), Loss: f.value, Square: f.square(f.f, f.alpha, f.b),
	}
	if short != nil {
		r.Warning = short.text()
	}
	return r, t.Step("fit", 1)
}

type kernelLogit struct {
	t         *run.Task
	k         kernels.Kernel
	x         backend.Host[float64]
	y         backend.Host[float64] // n×C: 1 if the sample is in the class of the column, otherwise 0
	weights   []float64
	lambda    float64
	intercept bool
	memory    int64

	f, g, alpha backend.Host[float64] // n×C; g = [y = c] − p at f
	b           []float64
	value       float64
	steps       int
	products    int // number of products with K

	gram    backend.Matrix[float64] // K, the lower triangle
	in, out backend.Matrix[float64] // n×C operands and results of products with K
}

func newKernelLogit(t *run.Task, p KernelProblem, memory int64) *kernelLogit {
	n, c := p.X.Rows, p.columns()
	m := &kernelLogit{
		t: t, k: p.Kernel, x: p.X, weights: p.Weights, lambda: p.Lambda, intercept: p.Intercept, memory: memory,
		y: backend.NewHost[float64](n, c), f: backend.NewHost[float64](n, c), alpha: backend.NewHost[float64](n, c), b: make([]float64, c),
	}
	for i, class := range p.Class {
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

// objective returns [y = c] − p at f, without cancellation, and the value of the objective.
func (m *kernelLogit) objective(f, alpha backend.Host[float64], b []float64) (g backend.Host[float64], value float64) {
	g = backend.NewHost[float64](f.Rows, f.Cols)
	for i := range f.Rows {
		row, target := f.Row(i), m.y.Row(i)
		value += m.weight(i) * gap(g.Row(i), row, target)
	}
	return g, value + m.lambda/2*m.square(f, alpha, b)
}

// square returns Σ ‖f_c‖² = Σ α_cᵀKα_c over the columns c, for the scores f = Kα + b.
func (m *kernelLogit) square(f, alpha backend.Host[float64], b []float64) (sum float64) {
	for i := range f.Rows {
		for c, a := range alpha.Row(i) {
			sum += a * (f.Row(i)[c] - b[c])
		}
	}
	return max(sum, 0)
}

// gap sets g to [y = c] − p for the scores f of a sample, where target is [y = c], and returns −ln Pr(y).
func gap(g, f, target []float64) (loss float64) {
	if len(f) == 1 {
		sign := 2*target[0] - 1
		z := -sign * f[0] // the loss is ln(1 + e^z)
		e := elementary.Exp(-math.Abs(z))
		g[0] = sign * e / (1 + e)
		if z > 0 {
			g[0] = sign / (1 + e)
		}
		return max(z, 0) + math.Log1p(e)
	}
	maxScore, sum, otherSum, targetScore := slices.Max(f), 0.0, 0.0, 0.0
	for c, v := range f {
		e := elementary.Exp(v - maxScore)
		sum += e
		g[c] = -e
		if target[c] == 1 {
			targetScore = v
		} else {
			otherSum += e
		}
	}
	for c := range g {
		if target[c] == 1 {
			g[c] = otherSum
		}
		g[c] /= sum
	}
	if targetScore == maxScore {
		return math.Log1p(otherSum)
	}
	return maxScore - targetScore + elementary.Log(sum)
}
