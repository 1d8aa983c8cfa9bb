package learners

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/attempt"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/evidence"
	"github.com/mercer-go/mercer/internal/markov"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

const gaussianProcessName = "gaussian-process"

func init() {
	register(Description{
		Name:    gaussianProcessName,
		Tasks:   []Task{Regression},
		Formula: "y = f(x) + m + noise, f ~ GP(0, s² k), noise ~ N(0, s² lambda); k, lambda and s maximize p(y)",
		Source:  "Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, 2.2 and 5.4.1",
		Outputs: true,
		Sparse:  true,
	}, (*GaussianProcess).parameters, GaussianProcess.Fit)
}

func (l *GaussianProcess) parameters() []Parameter {
	return []Parameter{
		medianKernel(&l.Kernel).withHelp("kernel function; with optimize, the start of the search"),
		number("lambda", &l.Lambda, "0.1", positive, "variance of the noise, relative to the scale s²; with optimize, the start of the search").requiredInGo(),
		inverted("optimize", &l.Fixed, "find the parameters of the kernel and lambda that maximize the marginal likelihood"),
		ardParameter(&l.ARD, &l.Kernel),
		intParam("restarts", &l.Restarts, "2", atLeast(0), "number of additional random starts of the search").onlyWith("optimize", "true"),
		inverted("scale", &l.UnitScale, "fit the scale s²; otherwise it is 1"),
		intercept(&l.NoIntercept, "subtract the mean m of y; otherwise it is 0"),
		boolParam("bound", &l.Bound, "false", "prove sharp bounds of the errors of predictions, which takes long"),
		seedNumber(&l.Seed).withHelp("seed of the restarts and of the rows for the median distance"),
	}
}

// GaussianProcess is regression with a Gaussian process: y = f(x) + m + noise, where f has the covariance s²k and the
// noise of a sample of weight w has the variance s²λ/w. The posterior mean of f is the solution of kernel ridge
// regression, (K + λW⁻¹)α = y − m, where m is the weighted mean of y. s² maximizes the likelihood in closed form. A
// sample of weight w counts as w samples. All outputs have the same kernel and λ; each output has its own s².
//
// For a target that is constant up to rounding the likelihood has no maximum. The prediction of such a target is
// m, its s² is 1, and the search for kernel and λ uses only the other targets.
type GaussianProcess struct {
	// Kernel is k. Nil is the Gaussian kernel whose sigma is chosen as in KernelRidge; with ARD it
	// has a separate sigma for each feature.
	Kernel kernels.Kernel
	Lambda float64 // > 0
	// Fixed keeps kernel and λ. By default L-BFGS maximizes the log marginal likelihood over all continuous
	// parameters of the kernel and λ, starting at the given values and at Restarts other points. With 800 samples or
	// more, the search begins with a subset of the samples, which Seed chooses, and only its best point is
	// improved with all samples.
	Fixed       bool
	ARD         bool
	Restarts    int
	UnitScale   bool // s² = 1
	NoIntercept bool // set m = 0; by default m is the weighted mean of y
	Seed        uint64
	// Bound makes Fit compute a sharper bound on the distance between the predictions and those of
	// the exact solution with the kernel, λ and m of the model: see KernelRidge.Bound.
	Bound bool
}

// GaussianProcessModel is a fitted GaussianProcess. It keeps a copy of the samples of weight > 0,
// and after the first call of Variance the factor of K + λW⁻¹.
type GaussianProcessModel struct {
	kernelExpansion // the posterior mean of f, plus m
	solution
	errorBound
	weights  []float64 // weights of the points
	scale    []float64 // s²
	evidence float64   // log p(y)
	factor   run.Kept[map[float64]*solvers.Uncertainty]
}

// Fit fits the n×d samples x to the n×t targets y.
func (l GaussianProcess) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *GaussianProcessModel, err error) {
	defer wrapError(gaussianProcessName, l.parameters(), &m, &err)
	defer remarkConstant(&m, &err, y, o)
	f := newFitting(ctx, dev, gaussianProcessName, l.parameters(), x, y, o)
	if f.err != nil {
		return nil, f.err
	}
	points, hy := f.points, f.y
	if l.Bound && points.Sparse != nil {
		h, err := denseSamples(dev, o, gaussianProcessName, x)
		if err != nil {
			return nil, err
		}
		points = numeric.DensePoints(h)
		ctx, o = besideCopy(ctx, dev, o, points)
	}
	if l.Kernel == nil {
		sigma, err := medianDistance(ctx, points, o.Weights, l.Seed)
		if err != nil {
			return nil, err
		}
		l.Kernel = kernels.Gaussian{Sigma: sigma}
		if l.ARD {
			l.Kernel = kernels.Gaussian{Sigmas: slices.Repeat([]float64{sigma}, points.Cols)}
		}
	}
	m = &GaussianProcessModel{weights: positiveWeights(o.Weights, points.Rows)}
	m.learner, m.intercept = gaussianProcessName, make([]float64, hy.Cols)
	centered := hy
	if !l.NoIntercept {
		m.intercept, centered = evidence.Center(hy, o.Weights)
		for _, j := range constantTargets(hy, o.Weights) {
			for i := range centered.Rows {
				centered.Row(i)[j] = 0
			}
		}
	}
	p := solvers.Problem{Kernel: l.Kernel, X: points.Dense, Sparse: points.Sparse, Y: centered, Weights: o.Weights, Lambda: l.Lambda}
	par := solvers.EvidenceParams{FitScale: !l.UnitScale, Memory: o.Memory}
	progress := newProgress(o)
	candidates, evaluations, partEvaluations := []evidence.Candidate{{Kernel: l.Kernel, Lambda: l.Lambda}}, 0, 0
	if !l.Fixed {
		// The number of evaluations is not known in advance.
		candidates, err = evidence.Maximize(ctx, dev, p, evidence.Params{EvidenceParams: par, Restarts: l.Restarts, Seed: l.Seed, Report: func(full, partial int) {
			evaluations, partEvaluations = full, partial
			progress.Report("optimize", 0.9*(1-elementary.Exp(-float64(full+partial)/30/float64(l.Restarts+1))))
		}})
		if err != nil {
			return nil, err
		}
	}
	method := solvers.Dual
	if _, ok := markov.Of(p.Kernel); ok && points.Cols == 1 {
		method = solvers.Auto
	}
	var res *solvers.Result
	index, warning, err := attempt.Candidates{
		Len: len(candidates),
		Name: func(i int) string {
			return fmt.Sprintf("kernel %v, lambda %.4g", candidates[i].Kernel, candidates[i].Lambda)
		},
		Refused: attempt.Numeric,
		Fit: func(i int) (err error) {
			p.Kernel, p.Lambda = candidates[i].Kernel, candidates[i].Lambda
			start := progress.Fraction()
			res, err = solvers.Solve(ctx, dev, p, solvers.Params{Method: method, Memory: o.Memory, Progress: func(q solvers.Progress) {
				progress.Report(q.Stage, start+(1-start)*q.Fraction)
			}})
			return err
		},
	}.First()
	if err != nil {
		return nil, err
	}
	e, err := solvers.LogEvidence(ctx, dev, p, par)
	if err != nil {
		return nil, err
	}
	m.kernel, m.lambda, m.scale, m.evidence, m.result = p.Kernel, p.Lambda, e.Scale, e.Log, res
	m.points, m.coef = keptPoints(ctx, dev, points, o.Weights), dropZeroWeight(res.Alpha, o.Weights)
	if evaluations > 0 {
		m.facts = append(m.facts, Fact{"evaluations", evaluations})
		if partEvaluations > 0 {
			m.facts = append(m.facts, Fact{"evaluations on a part of the rows", partEvaluations})
		}
		m.facts = append(m.facts, Fact{"lambda found", m.lambda})
		m.remark(cmp.Or(warning, candidates[index].Warning))
	}
	m.facts = append(m.facts, Fact{"log likelihood", m.evidence}, Fact{"noise deviation", math.Sqrt(m.lambda * m.scale[0])})
	m.facts = append(m.facts, expansionNorm(p.Y, res.Alpha, res.Intercept, o.Weights, m.lambda)...)
	for _, j := range constantTargets(hy, o.Weights) { // the solver fitted these targets as 0
		for i := range res.Residuals.Rows {
			res.Residuals.Row(i)[j] = hy.Row(i)[j] - m.intercept[j]
		}
	}
	p = solvers.Problem{Kernel: m.kernel, X: m.points.Dense, Y: dropZeroWeight(hy, o.Weights), Weights: m.weights, Lambda: m.lambda}
	if err := m.setBound(ctx, dev, &m.kernelExpansion, p, res, nil, l.Bound, o); err != nil {
		return nil, err
	}
	res.Residuals = backend.Host[float64]{} // setBound has computed the bound from the residuals
	return m, nil
}

// Variance implements Uncertain: s²(k(x, x) − k_xᵀ(K + λW⁻¹)⁻¹k_x + λ) for the kernel values k_x of x and samples.
//
// The first call factors the matrix in n³/3 operations, even if the model was loaded from a file; Prepare does
// this in advance. The model keeps the factor in 8n² bytes of host memory for devices of the same name, unless
// this exceeds half of the memory that the process may still allocate. Each row of x takes 2nd + n² operations.
// DropFactor frees the factor.
func (m *GaussianProcessModel) Variance(ctx context.Context, dev backend.Device, x mat.Matrix) (out *mat.Dense, err error) {
	defer wrapError(gaussianProcessName+": variance", nil, &out, &err)
	p := m.predictor()
	p.needsDiagonal = true
	points, err := p.checkRows(dev, x)
	if err != nil {
		return nil, err
	}
	f := m.factors(dev)
	u, err := f.factorFor(ctx, dev, m.lambda)
	if err != nil {
		return nil, err
	}
	return p.variances(run.Beside(ctx, f.bytes), points, m.scale, m.lambda, func(ctx context.Context, x numeric.Points) ([]float64, error) {
		return u.Variance(ctx, dev, x.Matrix(), 0)
	})
}

func (m *GaussianProcessModel) factors(dev backend.Device) factors[*solvers.Uncertainty] {
	return factors[*solvers.Uncertainty]{m.learner, &m.factor, []float64{m.lambda}, factorBytes(m.kernel, m.points), func(ctx context.Context, lambda float64) (*solvers.Uncertainty, error) {
		return solvers.NewUncertainty(ctx, dev, solvers.Problem{Kernel: m.kernel, X: m.points.Dense, Sparse: m.points.Sparse, Y: m.coef, Weights: m.weights, Lambda: lambda}, 0)
	}}
}

// Prepare implements Preparer, for Variance.
func (m *GaussianProcessModel) Prepare(ctx context.Context, dev backend.Device) error {
	return m.factors(dev).prepare(ctx, dev)
}

// DropFactor frees the factor that Variance keeps, after calls in progress have ended; the next call computes it again.
func (m *GaussianProcessModel) DropFactor() {
	m.factor.Drop()
}

// Scale returns the scale s² of the covariance s²k of each output.
func (m *GaussianProcessModel) Scale() []float64 { return slices.Clone(m.scale) }

// LogLikelihood returns the log marginal likelihood of the samples, summed over the outputs.
func (m *GaussianProcessModel) LogLikelihood() float64 { return m.evidence }

// State implements Model. Its arrays are "centers", n×d, "alpha", n×t,
// "weights", 1×n, "intercept" and "scale", 1×t, and "evidence", 1×1.
func (m *GaussianProcessModel) State() State { return stateOf(m) }

func (m *GaussianProcessModel) fields() []field {
	return append(m.expansionFields("centers", "alpha", nil), paramField("lambda", &m.lambda, positive),
		rowField("weights", &m.weights, numberOfPoints(&m.points), positive), rowField("scale", &m.scale, colsOf(&m.coef), positive),
		numberField("evidence", &m.evidence, anyNumber), m.errorBound.fields(&m.kernelExpansion, &m.weights, nil))
}
