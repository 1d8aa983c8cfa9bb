package learners

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/sparse"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

const rvmName = "rvm"

func evidenceParameters(tol *float64, defaultTol string, maxIter *int, seed *uint64) []Parameter {
	return []Parameter{
		number("tol", tol, defaultTol, positive, "the fit stops when no step raises the log evidence by more than this"),
		intParam("iterations", maxIter, "0", atLeast(0), "maximum number of steps; 0: 1000, or 10 for each sample if more"),
		seedNumber(seed),
	}
}

func init() {
	register(Description{
		Name:    rvmName,
		Tasks:   []Task{Regression},
		Formula: "y = Σ_j μ_j φ_j(x) + noise, φ_0 = 1, φ_j = k(x_j, ·), μ_j ~ N(0, 1/α_j); α and the noise maximize the evidence, and most α are ∞",
		Source:  "Tipping (2001), Sparse Bayesian learning and the relevance vector machine; Tipping and Faul (2003), Fast marginal likelihood maximization",
	}, (*RVM).parameters, RVM.Fit)
}

func (l *RVM) parameters() []Parameter {
	return append([]Parameter{
		medianKernel(&l.Kernel).onlyWith("basis", "kernel"),
		twoChoices("basis", &l.Features, "kernel", "features", "basis functions: of the kernel at the samples, or the features themselves, φ_j(x) = x_j, for a given design matrix"),
		oneOf("method", &l.Method, "", []RVMMethod{Sequential, FixedPoint}, "way to maximize the evidence"),
	}, evidenceParameters(&l.Tol, "0.003", &l.MaxIter, &l.Seed)...)
}

// RVMMethod names a method to maximize the evidence.
type RVMMethod = sparse.Method

// The methods of RVM: see package sparse.
const (
	Sequential = sparse.Sequential
	FixedPoint = sparse.FixedPoint
)

// RVM is the relevance vector machine for regression: f(x) = Σ_j μ_j φ_j(x) with the basis φ_0 = 1 and φ_j = k(x_j, ·),
// the prior N(0, 1/α_j) of the weights and noise of variance σ²/w_i. For w_i = 1 and Φ_ij = φ_j(x_i), the α_j and σ²
// maximize the evidence of the targets t
//
//	p(t) = N(t; 0, C),  C = σ²I + Φ A⁻¹ Φᵀ,  A = diag(α)
//
// At the maximum most α_j are infinite; the model consists of the functions whose α_j is finite. With Σ = (σ⁻²ΦᵀΦ +
// A)⁻¹ and μ = σ⁻²ΣΦᵀt, a new target at x has the mean μᵀφ(x) and the variance σ² + φ(x)ᵀΣφ(x). Except for rounding, no
// step decreases the log evidence. k need not be positive semidefinite. There is one target.
//
// A fit ends before it reaches Tol at the limit of steps, or if its next step is singular to working precision, as for
// targets without noise. It then returns the model of its last step, with a Fact "warning".
//
// The variance treats the fitted α and σ² as known (Tipping 2001, section 2.3), so the standardized errors of new
// targets have a standard deviation somewhat above 1. Far from the relevance vectors the variance decreases to σ²,
// although the uncertainty is large there; gaussian-process has no such defect.
//
// The device forms ΦᵀΦ in O(n³) operations with 2n² numbers of memory, which limits n to about ten thousand.
type RVM struct {
	Kernel kernels.Kernel // nil means the Gaussian whose sigma is half the median distance between rows
	// If Features is set, the basis functions are the features, φ_j(x) = x_j, so that x may be the design matrix
	// of any functions. The relevance vectors of the model are unit vectors, and its kernel is linear.
	Features bool
	Method   RVMMethod // "" means Sequential
	Tol      float64   // smallest gain of the log evidence for which the fit continues; 0 means 0.003
	MaxIter  int       // maximum number of steps; 0 means max(1000, 10n)
	Seed     uint64    // seed of the choice of the rows whose distances give sigma if Kernel is nil
}

// RVMModel is a fitted RVM.
type RVMModel struct {
	kernelExpansion // the predictive mean; its points are the relevance vectors
	// root is the matrix R of the posterior covariance Σ = RRᵀ. Row 0 belongs to φ_0, every other row to a point.
	root  backend.Host[float64]
	noise float64   // σ²
	trace []float64 // log evidence after each step; nil for a restored model
}

// Fit fits the n×d samples x to the n×1 targets y.
func (l RVM) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *RVMModel, err error) {
	defer wrapError(rvmName, l.parameters(), &m, &err)
	defer remarkConstant(&m, &err, y, o)
	f := newFitting(ctx, dev, rvmName, l.parameters(), x, y, o)
	f.oneTarget()
	var k kernels.Kernel = kernels.Linear{} // x_j is the inner product with the unit vector j
	if !l.Features {
		k = f.kernel(l.Kernel, l.Seed)
	}
	hx := f.x
	t := f.task(hx.Rows, func(n int) int64 {
		if l.Features {
			return sparse.Bytes(l.Method, n, hx.Cols, 2*hx.Cols)
		}
		return sparse.Bytes(l.Method, n, n, hx.Cols)
	})
	if f.err != nil {
		return nil, f.err
	}
	p := sparse.Problem{Kernel: k, X: f.keptX(), Weights: positiveWeights(o.Weights, hx.Rows)}
	if l.Features {
		p.Points = backend.NewHost[float64](hx.Cols, hx.Cols)
		for j := range hx.Cols {
			p.Points.Row(j)[j] = 1
		}
	}
	r, err := sparse.Regression(t, p, f.keptRows(f.y), l.Method, sparse.Params{Tol: l.Tol, MaxIter: cmp.Or(l.MaxIter, max(1000, 10*hx.Rows))})
	if err != nil {
		return nil, err
	}
	facts := []Fact{{"relevance vectors", r.Functions}, {"steps", r.Steps}, {"noise deviation", math.Sqrt(r.Noise)}, {"log evidence", r.Evidence}}
	return &RVMModel{kernelExpansion{model{rvmName, warned(facts, r.Warning)}, k, numeric.DensePoints(r.Points), r.Coef, r.Intercept}, r.Root, r.Noise, r.Traces[0]}, nil
}

// Relevance returns copies of the relevance vectors and their weights.
func (m *RVMModel) Relevance() (points *mat.Dense, weights []float64) {
	return densePoints(m.points), slices.Clone(m.coef.Data)
}

// Noise returns σ².
func (m *RVMModel) Noise() float64 { return m.noise }

// Trace returns the log evidence after each step of Fit, or nil for a restored model.
func (m *RVMModel) Trace() []float64 { return slices.Clone(m.trace) }

// Variance implements Uncertain: σ² + φᵀΣφ, with the basis functions φ of x and the Σ of RVM.
func (m *RVMModel) Variance(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	p := predictor{learner: m.learner}
	if r := m.root.Rows - 1; r > 0 {
		p = expansion(m.learner, m.kernel, m.points, m.root.View(1, 0, r, m.root.Cols), m.root.Row(0))
	}
	s, err := p.predict(ctx, dev, x) // φᵀR
	if err != nil {
		return nil, err
	}
	n, _ := s.Dims()
	v := mat.NewDense(n, 1, nil)
	for i := range n {
		sum := m.noise
		for _, a := range s.RawRowView(i) {
			sum += a * a
		}
		v.Set(i, 0, sum)
	}
	return checked(m.learner, "variance", v, nil)
}

// State implements Model. For m relevance vectors, d features and the factor "root" of the covariance with r columns,
// its arrays are "points", m×d, "weights", m×1, "root", (m+1)×r, "intercept" and "noise", 1×1.
func (m *RVMModel) State() State { return stateOf(m) }

func (m *RVMModel) fields() []field {
	return append(m.expansionFields("points", "weights", exactly(1)),
		matrixField("root", &m.root, func() int { return m.points.Rows + 1 }, nil), numberField("noise", &m.noise, nonNegative))
}
