package learners

import (
	"cmp"
	"context"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/sparse"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

const rvcName = "rvc"

func init() {
	register(Description{
		Name:    rvcName,
		Tasks:   []Task{Classification},
		Formula: "Pr(y=1|x) = 1/(1 + exp(−Σ_j μ_j φ_j(x))), φ_0 = 1, φ_j = k(x_j, ·), μ_j ~ N(0, 1/α_j); α maximizes Laplace's evidence, and most α are ∞",
		Source:  "Tipping (2001), Sparse Bayesian learning and the relevance vector machine; Tipping and Faul (2003)",
	}, (*RVC).parameters, RVC.Fit)
}

func (l *RVC) parameters() []Parameter {
	return append([]Parameter{medianKernel(&l.Kernel)}, evidenceParameters(&l.Tol, "0.1", &l.MaxIter, &l.Seed)...)
}

// RVC is the relevance vector machine for classification. The log odds of the second of two classes are f(x) = Σ_j μ_j
// φ_j(x) with the basis φ_0 = 1 and φ_j = k(x_j, ·) and the prior N(0, 1/α_j) of the weights. The posterior of the
// weights is approximated by a Gaussian about its mode μ (Laplace's approximation) with the covariance Σ = (ΦᵀBΦ +
// A)⁻¹. Here Φ_ij = φ_j(x_i), A = diag(α), B = diag(w_i p_i(1 − p_i)), and p_i is the probability of the second class
// for sample i. α maximizes the evidence
//
//	Σ_i w_i log p(y_i | μ) − ½ μᵀAμ + ½ log|A| + ½ log|Σ|
//
// by the steps of Tipping and Faul (2003), each of which adds, changes or deletes a basis function. Several steps are
// made at once. If they do not raise the evidence, they are undone, and Newton steps for all α and single steps follow.
// For K > 2 classes there are K machines, each for one class against the rest, and the probabilities of the classes are
// normalized to sum to 1.
//
// Φ is stored on the device and takes 2n² numbers. For m functions in the model, a batch of steps costs several Newton
// steps of O(nm²) and one product of O(n²m) operations. If a fit ends before it reaches Tol, the Facts include a
// "warning".
type RVC struct {
	Kernel  kernels.Kernel // nil means the Gaussian whose sigma is half the median distance between rows
	Tol     float64        // the fit ends when no step is expected to raise the log evidence by more than Tol; 0 means 0.1
	MaxIter int            // maximum number of steps per machine; 0 means max(1000, 10n)
	Seed    uint64         // seed of the choice of the rows whose distances give sigma if Kernel is nil
}

// RVCModel is a fitted RVC. Its decision values are the log odds of the second of two classes, or of each class
// against the rest. The numbers of steps and the log evidence in its facts are sums over the machines.
type RVCModel struct {
	kernelClassifier             // the points are the relevance vectors of all machines
	traces           [][]float64 // log evidence of each machine; nil for a restored model
}

// Fit fits the n×d samples x, whose classes are the different values of the n×1 matrix y.
func (l RVC) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *RVCModel, err error) {
	defer wrapError(rvcName, l.parameters(), &m, &err)
	f := newFitting(ctx, dev, rvcName, l.parameters(), x, y, o)
	classes, index := f.classes()
	k := f.kernel(l.Kernel, l.Seed)
	t := f.task(f.x.Rows, func(n int) int64 { return sparse.Bytes("", n, n, f.x.Cols) })
	if f.err != nil {
		return nil, f.err
	}
	p := sparse.Problem{Kernel: k, X: f.keptX(), Weights: positiveWeights(o.Weights, f.x.Rows)}
	r, err := sparse.Classification(t, p, f.keptRows(classes.targets(index)), sparse.Params{Tol: l.Tol, MaxIter: cmp.Or(l.MaxIter, max(1000, 10*f.x.Rows))})
	if err != nil {
		return nil, err
	}
	facts := []Fact{{"relevance vectors", r.Functions}, {"machines", r.Coef.Cols}, {"steps", r.Steps}, {"modes", r.Modes}, {"log evidence", r.Evidence}}
	return &RVCModel{kernelClassifier{kernelExpansion{model{rvcName, warned(facts, r.Warning)}, k, numeric.DensePoints(r.Points), r.Coef, r.Intercept}, classified{classes}}, r.Traces}, nil
}

// Relevance returns a copy of the relevance vectors.
func (m *RVCModel) Relevance() *mat.Dense { return densePoints(m.points) }

// Traces returns the log evidence of each machine at the start and after each batch of steps that
// raised it, or nil for a restored model.
func (m *RVCModel) Traces() [][]float64 {
	var list [][]float64
	for _, t := range m.traces {
		list = append(list, slices.Clone(t))
	}
	return list
}

// Proba implements Prober.
func (m *RVCModel) Proba(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	f, err := m.Decision(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	return sparse.Probabilities(f), nil
}

// State implements Model. For m relevance vectors, d features and c two-class models, its arrays are "points", m×d,
// "weights", m×c, "intercept", 1×c, and the arrays of the classes.
func (m *RVCModel) State() State { return stateOf(m) }

func (m *RVCModel) fields() []field { return m.classFields("points", "weights") }
