package learners

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/evidence"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/internal/verified"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

const fourierRidgeName = "fourier-ridge"

func init() {
	register(Description{
		Name:    fourierRidgeName,
		Grid:    "lambda=0.0001,0.001,0.01,0.1,1,10",
		Tasks:   []Task{Regression, Classification},
		Formula: "minimize Σ w_i (y_i − f(x_i))² + lambda‖β‖²; f(x) = Σ_j β_j cos(ω_jᵀx) + β′_j sin(ω_jᵀx) + b with random ω_j",
		Source:  "Rahimi and Recht (2007), Random features for large-scale kernel machines",
		Outputs: true, classify: true,
		rows: rowsFitterOf((*FourierRidge).parameters, FourierRidge.FitRows),
	}, (*FourierRidge).parameters, FourierRidge.Fit)
}

func (l *FourierRidge) parameters() []Parameter {
	return append([]Parameter{
		medianKernel(&l.Kernel), lambdaNumber(&l.Lambda),
		intercept(&l.NoIntercept, "fit an unpenalized intercept"),
		intParam("features", &l.Features, "", atLeast(1), "number M of random features, two for each frequency; memory grows with M²").withAutoDefault("about 10√n"),
		number("tol", &l.Tol, "1e-6", fraction, "relative residual of the normal equations to reach"),
		boundParam(&l.Bound),
		seedNumber(&l.Seed).withHelp("seed of the frequencies, and of rows for the median distance"),
		boolParam("optimize", &l.Optimize, "false", "find the parameters of the kernel and lambda that maximize the likelihood").onlyFor(Regression),
		ardParameter(&l.ARD, &l.Kernel).onlyWith("optimize", "true"),
	}, posteriorParameters(&l.Std, &l.UnitScale)...)
}

// FourierRidge is ridge regression on M random Fourier features of a translation invariant kernel:
//
//	f(x) = Σ_j β_j cos(ω_jᵀx) + β′_j sin(ω_jᵀx) + b
//
// As M grows, f approaches the prediction of KernelRidge with the same λ; the error of the
// approximated kernel is about √(2/M).
type FourierRidge struct {
	Kernel      kernels.Kernel // a kernel that solvers.FourierProblem accepts; nil means the default of KernelRidge
	Lambda      float64        // ≥ 0
	NoIntercept bool           // set b = 0; by default b is fitted without a penalty
	Features    int            // M, raised to an even number; 0 means about 10√n
	Tol         float64        // relative residual of the normal equations; 0 means 1e-6
	Seed        uint64         // seed of all random choices
	Bound       bool           // compute sharp bounds on the errors of predictions: see Bounded; needs λ > 0
	// Std makes the model keep the posterior of a Gaussian process. Its prior covariance is s² times the approximated
	// kernel, and its posterior mean is f. Variance needs the posterior, which takes 8M² bytes. If M is not much larger
	// than the number of samples, the variance far from them may be far below that of the exact process. s² maximizes
	// the likelihood. Std needs λ > 0.
	Std       bool
	UnitScale bool // s² = 1, so that the variance of the noise is λ
	// Optimize searches for the parameters of the kernel and the λ that maximize the likelihood of the process
	// whose covariance is the approximated kernel, starting at Kernel and Lambda (Lázaro-Gredilla and others 2010,
	// Sparse spectrum Gaussian process regression). The search uses at most 2,000 features and max(2,000, 10¹⁰/M²)
	// samples, but at most 50,000 samples; Seed chooses the samples. Fit returns an error for sums of kernels and
	// for rationalquadratic, because their frequencies are discontinuous in the parameters.
	Optimize bool
	ARD      bool // one length scale for each feature, if Kernel is nil
}

// FourierRidgeModel is a fitted FourierRidge. It keeps the frequencies.
type FourierRidgeModel struct {
	model
	solution
	errorBound
	process
	kernel      kernels.Kernel
	frequencies numeric.Points        // ω_j, D×d for D frequencies
	cosines     backend.Host[float64] // β, D×t
	sines       backend.Host[float64] // β′, D×t
	intercept   []float64
}

// Fit fits the n×d samples x to the n×t targets y, each output separately. A backend.CSR is not copied
// to a dense matrix, unless Optimize is set.
func (l FourierRidge) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *FourierRidgeModel, err error) {
	s, err := sparseOf("x", x)
	if err == nil && s != nil && !l.Optimize {
		defer wrapError(fourierRidgeName, l.parameters(), &m, &err)
		hy, err := targets(s.Rows, y)
		if err != nil {
			return nil, err
		}
		return l.fit(ctx, dev, solvers.RowNumbers(*s, hy, o.Weights, o.Keys), s, pointRows{numeric.SparsePoints(*s), hy, o.Weights}, o)
	}
	data, err := inMemory(dev, fourierRidgeName, l.Kernel, x, y, o)
	if err != nil {
		return nil, err
	}
	if s != nil {
		ctx, o = besideCopy(ctx, dev, o, numeric.DensePoints(backend.Host[float64]{Rows: s.Rows, Cols: s.Cols}))
	}
	if m, err = l.FitRows(ctx, dev, data, o); err == nil && s != nil {
		m.remark(copyWarning(fourierRidgeName, s.Rows, s.Cols))
	}
	return m, err
}

// FitRows is like Fit, for samples that are read in passes and need not fit into memory. data includes the weights
// and keys of the samples; the weights and keys of o are ignored.
func (l FourierRidge) FitRows(ctx context.Context, dev backend.Device, data solvers.Rows, o Options) (m *FourierRidgeModel, err error) {
	defer wrapError(fourierRidgeName, l.parameters(), &m, &err)
	return l.fit(ctx, dev, data, nil, data, o)
}

// fit fits the samples of data. If sparse is not nil, data gives the number of each row of sparse in place of its
// features, and dense gives the features.
func (l FourierRidge) fit(ctx context.Context, dev backend.Device, data solvers.Rows, sparse *backend.CSR[float64], dense solvers.Rows, o Options) (*FourierRidgeModel, error) {
	if err := o.refuseUnused(); err != nil {
		return nil, err
	}
	k, err := kernelForRows(ctx, l.Kernel, data, sparse, l.Seed)
	if err != nil {
		return nil, err
	}
	result := &searchResult{list: []evidence.Candidate{{Kernel: k, Lambda: l.Lambda}}}
	if l.Optimize {
		if result, err = l.search(ctx, dev, k, data, o); err != nil {
			return nil, err
		}
	}
	var res *solvers.StreamResult
	best, facts, err := result.fit(func(k kernels.Kernel, lambda float64) (err error) {
		res, err = solvers.SolveFourier(ctx, dev, solvers.FourierProblem{
			Kernel: k, Data: data, Sparse: sparse, Count: l.Features, Seed: l.Seed,
			Lambda: lambda, Intercept: !l.NoIntercept,
		}, solvers.StreamParams{Memory: o.Memory, Progress: o.Progress, Tol: l.Tol, Posterior: l.Std, UnitScale: l.UnitScale})
		return err
	})
	if err != nil {
		return nil, err
	}
	k, l.Lambda = best.Kernel, best.Lambda
	pairs, t := res.Frequencies.Rows, res.Beta.Cols
	m := &FourierRidgeModel{
		model:  model{fourierRidgeName, warned(append(facts, Fact{"features", 2 * pairs}, Fact{"passes", res.Iters}), constantWarning(res.Constant, t))},
		kernel: k, frequencies: numeric.DensePoints(res.Frequencies), solution: solution{l.Lambda, !l.NoIntercept, &res.Result},
		cosines: copyOf(res.Beta.View(0, 0, pairs, t)), sines: copyOf(res.Beta.View(pairs, 0, pairs, t)),
		intercept: res.Intercept,
	}
	m.facts = append(m.facts, m.setPosterior(res.Posterior, false)...)
	if sparse != nil {
		runtime.GC() // frees the transposed frequencies before the bound packs the frequencies once more
	}
	d := m.frequencies.Cols
	p := &verified.Primal{Lambda: fourierPenalty(k, l.Lambda, pairs, d), Intercept: m.hasIntercept, Sums: res.Sums}
	if err := m.makePrimal(ctx, dev, &m.model, "beta", m.verified(), p, dense, nil, &res.Result, float64(d+100), m.rounding, l.Bound, o); err != nil {
		return nil, err
	}
	return m, nil
}

func (l FourierRidge) search(ctx context.Context, dev backend.Device, k kernels.Kernel, data solvers.Rows, o Options) (*searchResult, error) {
	n, _, _ := data.Dims()
	p := solvers.FourierProblem{Count: min(cmp.Or(l.Features, int(10*math.Sqrt(float64(n)))), searchFunctions), Seed: l.Seed, Intercept: !l.NoIntercept}
	s := processSearch{kernel: k, lambda: l.Lambda, ard: l.ARD, noIntercept: l.NoIntercept, unitScale: l.UnitScale, seed: l.Seed}
	s.rows = int(min(max(searchRows, 1e10/float64(p.Count*p.Count)), 50000))
	ctx, o = s.reserveCopy(ctx, dev, data, o)
	s.evaluate = func(subset solvers.Rows) (func(kernels.Kernel, float64) (*solvers.Evidence, error), error) {
		p.Data = subset
		return func(k kernels.Kernel, lambda float64) (*solvers.Evidence, error) {
			p.Kernel, p.Lambda = k, lambda
			res, err := solvers.SolveFourier(ctx, dev, p, solvers.StreamParams{Memory: o.Memory, Posterior: true, Gradient: true, UnitScale: l.UnitScale})
			if err != nil {
				return nil, err
			}
			return &solvers.Evidence{Log: res.Posterior.Log, Scale: res.Posterior.Scale, Gradient: res.Gradient}, nil
		}, nil
	}
	return s.search(ctx, dev, data, o)
}

// Frequencies returns a copy of the ω_j, one per row, or nil if the model is not fitted.
func (m *FourierRidgeModel) Frequencies() *mat.Dense {
	return densePoints(m.frequencies)
}

// Coef returns copies of the coefficients of the cosines and of the sines, with a row for each
// frequency, or nil if the model is not fitted.
func (m *FourierRidgeModel) Coef() (cosines, sines *mat.Dense) {
	return denseOf(m.cosines), denseOf(m.sines)
}

// Dims implements Model.
func (m *FourierRidgeModel) Dims() (features, outputs int) {
	return m.frequencies.Cols, m.cosines.Cols
}

// Predict implements Model: cos(xωᵀ)β + sin(xωᵀ)β′ + b, without storing the matrix of features.
func (m *FourierRidgeModel) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	points, err := m.waves(stream.Cosines, m.cosines, m.intercept).checkRows(dev, x)
	if err != nil {
		return nil, predictError(m.learner, err)
	}
	f, err := m.predictPoints(ctx, dev, points)
	if err == nil {
		err = checkPredicted("prediction", dense(f), 0)
	}
	if err != nil {
		return nil, predictError(m.learner, err)
	}
	return f, nil
}

func (m *FourierRidgeModel) predictPoints(ctx context.Context, dev backend.Device, points numeric.Points) (f *mat.Dense, err error) {
	cosines, sines := m.waves(stream.Cosines, m.cosines, m.intercept), m.waves(stream.Sines, m.sines, make([]float64, len(m.intercept)))
	err = cosines.inBlocks(ctx, points, func(ctx context.Context, _ int, x numeric.Points) error {
		sum, err := cosines.predictPoints(ctx, dev, x)
		if err != nil {
			return err
		}
		sineSum, err := sines.predictPoints(ctx, dev, x)
		if err == nil {
			sum.Add(sum, sineSum)
			f = appendRows(f, dense(sum))
		}
		return err
	})
	return f, err
}

// waves returns the predictor of the sum of the cosines or of the sines, with the coefficients beta.
func (m *FourierRidgeModel) waves(k kernels.Kernel, beta backend.Host[float64], intercept []float64) predictor {
	p := expansion(m.learner, k, m.frequencies, beta, intercept)
	p.kernel = nil // unlike kernels, cosines accept every finite point
	return p
}

// Kernel returns the kernel of the fit.
func (m *FourierRidgeModel) Kernel() kernels.Kernel { return m.kernel }

// Intercept returns a copy of b, one entry for each output.
func (m *FourierRidgeModel) Intercept() []float64 { return slices.Clone(m.intercept) }

// Variance implements Uncertain, for a model that was fitted with FourierRidge.Std:
//
//	s²λ((φ − φ̄)ᵀ(ΦᵀWΦ + λI)⁻¹(φ − φ̄) + 1/Σw + 1)
//
// with the M random features φ of x, the centered features Φ of the samples, their weighted mean φ̄ before centering,
// the weights w, and W = diag(w). Without an intercept φ̄ and 1/Σw are 0. A row of x takes M² operations.
func (m *FourierRidgeModel) Variance(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.variance(ctx, dev, m.waves(stream.Cosines, m.cosines, m.intercept), stream.FourierOf(m.kernel, m.frequencies.Dense), x)
}

// Sample implements Sampler.
func (m *FourierRidgeModel) Sample(ctx context.Context, dev backend.Device, x mat.Matrix, draws int, seed uint64) ([]*mat.Dense, error) {
	return m.sample(ctx, dev, m.waves(stream.Cosines, m.cosines, m.intercept), m, stream.FourierOf(m.kernel, m.frequencies.Dense), x, draws, seed)
}

// State implements Model. Its arrays are "frequencies", D×d, "cosines" and "sines", D×t, and
// "intercept", 1×t. Std adds the arrays of the posterior: "posterior", M×M, "scale" and
// "quadratic", 1×t, "likelihood", 1×4, and with an intercept "shift", 1×M.
func (m *FourierRidgeModel) State() State { return stateOf(m) }

func (m *FourierRidgeModel) fields() []field {
	list := append(m.solutionFields(), pointsField("frequencies", &m.kernel, &m.frequencies),
		matrixField("cosines", &m.cosines, numberOfPoints(&m.frequencies), nil),
		matrixField("sines", &m.sines, numberOfPoints(&m.frequencies), colsOf(&m.cosines)),
		rowField("intercept", &m.intercept, colsOf(&m.cosines), anyNumber))
	list = append(list, m.processFields(func() int { return 2 * m.cosines.Rows }, colsOf(&m.cosines), 0, &m.lambda)...)
	return append(list, m.errorBound.field(func() (int, int, bool) { return 2 * m.cosines.Rows, m.cosines.Cols, false }, nil, &m.hasIntercept))
}
