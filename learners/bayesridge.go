package learners

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/lsq"
	"github.com/mercer-go/mercer/internal/numeric"
)

const bayesRidgeName = "bayes-ridge"

func init() {
	register(Description{
		Name:    bayesRidgeName,
		Tasks:   []Task{Regression, Classification},
		Formula: "y = wᵀx + b + noise, w ~ N(0, σ_w² I), noise ~ N(0, σ²); σ_w and σ maximize p(y)",
		Source:  "MacKay (1992), Bayesian interpolation; Bishop (2006), 3.5",
		Outputs: true, classify: true,
	}, (*BayesRidge).parameters, BayesRidge.Fit)
}

func (l *BayesRidge) parameters() []Parameter {
	return []Parameter{
		number("tol", &l.Tol, "1e-8", positive, "largest change of the fitted values in the last step, relative to ‖y‖"),
		intParam("iterations", &l.MaxIter, "1000", atLeast(1), "maximum number of steps"),
		intercept(&l.NoIntercept, "fit an intercept, with a flat prior"),
	}
}

// BayesRidge is ridge regression that determines λ from the samples. The noise of sample i with the weight v_i has
// the variance σ²/v_i, and the coefficients w have the prior N(0, σ_w² I). MacKay's iteration finds the σ² and
// σ_w² that maximize the evidence p(y | X, σ, σ_w), and λ = σ²/σ_w². For n samples of d features it takes O(nd² +
// d³) operations if n ≥ d, otherwise O(n²d + n³). scikit-learn's BayesianRidge computes the same model if its four
// Gamma parameters are 0, and nearly the same with the defaults of 1e-6. Each output has its own variances.
type BayesRidge struct {
	Tol         float64 // the steps end when the fitted values change by less than Tol·‖y − ȳ‖; 0 means 1e-8
	MaxIter     int     // maximum number of steps; 0 means 1000
	NoIntercept bool    // set b = 0; by default b has a flat prior
}

// BayesRidgeModel is a fitted BayesRidge: the mean of the posterior and the matrices of its variance.
type BayesRidgeModel struct {
	linear
	hasIntercept bool // whether the model was fitted with an intercept
	posterior    lsq.Posterior
	evidence     []float64 // log p(y)
}

// Fit fits the n×d samples x to the n×t targets y, each output separately. If the steps have not
// converged after MaxIter, Fit returns the model of the last step, and its Facts include a "warning".
func (l BayesRidge) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *BayesRidgeModel, err error) {
	defer wrapError(bayesRidgeName, l.parameters(), &m, &err)
	defer remarkConstant(&m, &err, y, o)
	f := newFitting(ctx, dev, bayesRidgeName, l.parameters(), x, y, o)
	c, t := f.centered(!l.NoIntercept, (*lsq.Samples).EvidenceBytes)
	if f.err != nil {
		return nil, f.err
	}
	r, err := c.Evidence(t, l.Tol, l.MaxIter)
	if err != nil {
		return nil, err
	}
	facts := []Fact{{"steps", r.Steps}, {"noise deviation", math.Sqrt(r.Noise[0])}, {"lambda", r.Noise[0] / r.Prior[0]}, {"log evidence", r.Evidence[0]}, {squaredNorm, coefNorm(r.Coef)}}
	return &BayesRidgeModel{
		linear: linear{model{bayesRidgeName, warned(facts, r.Warnings...)}, r.Coef, r.Intercept}, hasIntercept: !l.NoIntercept,
		posterior: r.Posterior, evidence: r.Evidence,
	}, nil
}

// Noise returns σ² of each output.
func (m *BayesRidgeModel) Noise() []float64 { return slices.Clone(m.posterior.Noise) }

// Prior returns the prior variance σ_w² of the weights of each output.
func (m *BayesRidgeModel) Prior() []float64 { return slices.Clone(m.posterior.Prior) }

// LogEvidence returns log p(y | X) of each output. A sample of weight w counts as w samples.
func (m *BayesRidgeModel) LogEvidence() []float64 { return slices.Clone(m.evidence) }

// Variance returns the n×t variances of new targets at the rows of x: σ² + (x − x̄)ᵀΣ(x − x̄), with the posterior
// covariance Σ of w and the mean x̄ of the training samples. Without an intercept x̄ is 0.
func (m *BayesRidgeModel) Variance(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	v := m.posterior.Vectors
	p := predictor{
		learner: bayesRidgeName, features: v.Cols, intercept: m.posterior.Offsets(), fixed: []numeric.Points{numeric.DensePoints(v)},
		apply: func(b backend.Backend[float64], out, x backend.Matrix[float64], fixed []backend.Matrix[float64]) {
			b.Gemm(backend.NoTrans, backend.Transpose, 1, x, fixed[0], 0, out)
		},
	}
	points, err := p.checkRows(dev, x)
	if err != nil {
		return nil, predictError(m.learner, err)
	}
	var out *mat.Dense
	sums := p
	sums.linear = true // predictPoints then plans no memory for packed points, which only kernels need
	err = p.inBlocks(ctx, points, func(ctx context.Context, _ int, x numeric.Points) error {
		products, err := sums.predictPoints(ctx, dev, x)
		if err == nil {
			out = appendRows(out, m.posterior.Variance(x.Dense, dense(products)))
		}
		return err
	})
	return checked(m.learner, "variance", out, err)
}

// State implements Model. Its arrays are "coef", d×t, "intercept", "noise", "prior" and "evidence",
// 1×t, "center", 1×d, "vectors", r×d, and "spread", t×r, for r eigenvectors of XᵀX.
func (m *BayesRidgeModel) State() State { return stateOf(m) }

func (m *BayesRidgeModel) fields() []field {
	d, t := rowsOf(&m.coef), colsOf(&m.coef)
	p := &m.posterior
	return append(m.coefFields(nil), boolField("intercept", &m.hasIntercept),
		rowField("noise", &p.Noise, t, nonNegative), rowField("prior", &p.Prior, t, nonNegative), rowField("evidence", &m.evidence, t, anyNumber),
		rowField("center", &p.Center, d, anyNumber), matrixField("vectors", &p.Vectors, nil, d), matrixField("spread", &p.Spread, t, rowsOf(&p.Vectors)), derived(m.checkSpread))
}

func (m *BayesRidgeModel) checkSpread() error {
	for j := range m.posterior.Spread.Rows {
		if slices.ContainsFunc(m.posterior.Spread.Row(j), func(v float64) bool { return v < 0 }) {
			return fmt.Errorf("array \"spread\": row %d has a negative variance", j+1)
		}
	}
	return nil
}
