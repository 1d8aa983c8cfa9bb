package learners

import (
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

const kernelRidgeName = "kernel-ridge"

func init() {
	register(Description{
		Name:    kernelRidgeName,
		Tasks:   []Task{Regression, Classification},
		Formula: "(K + lambda W⁻¹) α + b 1 = y; f(x) = Σ α_i k(x_i, x) + b",
		Source:  "Saunders, Gammerman and Vovk (1998), Ridge regression learning algorithm in dual variables",
		Outputs: true, Sparse: true, classify: true, checkpoints: true,
	}, (*KernelRidge).parameters, KernelRidge.Fit)
}

func (l *KernelRidge) parameters() []Parameter {
	return []Parameter{
		medianKernel(&l.Kernel),
		lambdaNumber(&l.Lambda).onlyWithout("lambdas").refusedIf(l.singular), lambdaList(&l.Lambdas),
		intercept(&l.NoIntercept, "fit an unpenalized intercept"),
		oneOf("solver", &l.Solver, "auto", []solvers.Method{solvers.Dual, solvers.Mixed, solvers.CG, solvers.Kalman, solvers.Modes}, "way to solve the system"),
		number("tol", &l.Tol, "1e-8", fraction, "relative residual to reach; if it is not reached, the fit fails"),
		number("accuracy", &l.Accuracy, "0", nonNegative, "bound on the errors of predictions to reach, instead of tol; if it is not reached, the fit fails; 0: tol decides"),
		intParam("iterations", &l.MaxIter, "10000", atLeast(1), "maximum number of products with K, for iterative solvers").onlyWith("solver", "auto", string(solvers.Mixed), string(solvers.CG), string(solvers.Modes)),
		oneOf("operator", &l.Operator, "auto", []solvers.Operator{solvers.Stored64, solvers.Stored32, solvers.Fixed16, solvers.Unstored64, solvers.Unstored32},
			"how an iterative solver keeps K: stored, or evaluated for every product"),
		oneOf("preconditioner", &l.Preconditioner, "auto", solvers.Preconditioners(), "low-rank approximation of K that speeds up cg").onlyWith("solver", string(solvers.CG)),
		intParam("rank", &l.Rank, "0", atLeast(0), "rank of the preconditioner; 0 chooses it").onlyWith("solver", string(solvers.CG)),
		boolParam("bound", &l.Bound, "false", "prove sharp bounds of the errors of predictions, which takes long").onlyWithout("lambdas"),
		seedNumber(&l.Seed).withHelp("seed of the choice of rows for the median distance"),
	}
}

// singular returns the rule that forbids a linear kernel with an intercept and λ = 0.
func (l *KernelRidge) singular() string {
	if _, linear := l.Kernel.(kernels.Linear); linear && !l.NoIntercept && slices.Contains(lambdasOf(l.Lambda, l.Lambdas), 0) {
		return "with the kernel linear() and an intercept the matrix of kernel-ridge is singular at 0; raise it, or use the learner ridge"
	}
	return ""
}

// KernelRidge is f(x) = Σ_i α_i k(x_i, x) + b with (K + λW⁻¹)α + b·1 = y. λ is not multiplied by
// the number n of samples: it equals scikit-learn's alpha, and n times the λ of Falkon.
type KernelRidge struct {
	// Kernel is k. Nil is the Gaussian whose sigma is half the median distance between different
	// rows of x of weight > 0 (at most 500 of them, chosen by Seed).
	Kernel kernels.Kernel
	Lambda float64 // ≥ 0
	// Lambdas has a λ for each target and replaces Lambda; nil means Lambda for all targets.
	// Targets with the same λ share one factorization.
	Lambdas     []float64
	NoIntercept bool   // set b = 0; by default b is fitted without a penalty
	Seed        uint64 // seed of all random choices, also of the choice of rows if Kernel is nil
	// Bound makes Fit compute a sharper bound on the distance between the predictions and those of the exact solution:
	// see Bounded. Fit then also evaluates every kernel value in more than 80 bits, which takes some tenths of a
	// microsecond per value, and factors K + λW⁻¹ once more. Bound needs a positive semidefinite kernel and λ > 0.
	Bound bool

	// The following fields determine how the system is solved: see solvers.Params.
	Solver solvers.Method // solvers.Auto, Dual, Mixed, CG, Kalman or Modes
	Tol    float64        // largest relative residual; a fit that does not reach it fails; 0 means 1e-8
	// Accuracy, if it is not 0, replaces Tol. Iterative solvers then stop when the errors of predictions are proven to
	// be at most Accuracy at every x with k(x, x) ≤ max_i k(x_i, x_i). A fit that does not reach Accuracy fails with an
	// error that gives the proven bound.
	Accuracy       float64
	MaxIter        int              // maximum number of products with K, for iterative solvers; 0 means 10000
	Operator       solvers.Operator // how an iterative solver stores K
	Preconditioner string           // preconditioner of CG
	Rank           int              // rank of the preconditioner; 0 means automatic
}

// KernelRidgeModel is a fitted KernelRidge. It keeps a copy of the samples of weight > 0, which are
// the centers of its kernel functions. Its Facts include ‖f‖² = αᵀKα of the first output.
type KernelRidgeModel struct {
	kernelExpansion
	solutions
	errorBound
	weights []float64 // weights of the points; nil means all 1
	factor  run.Kept[map[float64]*solvers.LeaveOneOut]
}

// points returns the samples x for Fit. If x is sparse and l.Bound is set, it returns a dense copy, and copied is true.
func (l KernelRidge) points(dev backend.Device, x mat.Matrix, o Options) (points numeric.Points, copied bool, err error) {
	points, err = pointsOf("x", x)
	if err != nil || points.Sparse == nil || !l.Bound {
		return points, false, err
	}
	h, err := denseSamples(dev, o, kernelRidgeName, x)
	return numeric.DensePoints(h), true, err
}

// Fit fits the n×d samples x to the n×t targets y, each output separately. If x is a backend.CSR,
// the model keeps it as a sparse matrix, unless Bound is set.
func (l KernelRidge) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *KernelRidgeModel, err error) {
	defer wrapError(kernelRidgeName, l.parameters(), &m, &err)
	defer remarkConstant(&m, &err, y, o)
	points, copied, err := l.points(dev, x, o)
	if copied && err == nil {
		ctx, o = besideCopy(ctx, dev, o, points)
	}
	var hy backend.Host[float64]
	if err == nil {
		hy, err = targets(points.Rows, y)
	}
	if err == nil {
		if paramErr := checkRules(l.parameters()); paramErr != nil {
			err = fmt.Errorf("%s: %s", paramErr.Parameter, paramErr.Rule)
		}
	}
	k := l.Kernel
	if err == nil && o.Centers != nil {
		err = errNoCenters
	}
	if err == nil {
		points, err = numeric.SamplePoints(k, points)
	}
	if err == nil && k == nil {
		k, err = kernelFor(ctx, nil, points, o.Weights, l.Seed)
	}
	if err != nil {
		return nil, err
	}
	par := solvers.Params{
		Method: l.Solver, NeedsAlpha: true, NeedsResiduals: l.Bound || l.Accuracy > 0, Tol: l.Tol, MaxIter: l.MaxIter, Operator: l.Operator, Preconditioner: l.Preconditioner, Rank: l.Rank,
		Memory: o.Memory, Progress: o.Progress, Seed: l.Seed, Checkpoint: o.Checkpoint,
	}
	problem := solvers.Problem{
		Kernel:    k,
		X:         points.Dense,
		Sparse:    points.Sparse,
		Y:         hy,
		Weights:   o.Weights,
		Lambda:    l.Lambda,
		Intercept: !l.NoIntercept,
	}
	if l.Accuracy > 0 {
		strictest := problem
		strictest.Lambda = slices.Min(lambdasOf(l.Lambda, l.Lambdas))
		if par.Tol, err = accuracyTol(l.Accuracy, points, strictest); err != nil {
			return nil, err
		}
	}
	res, err := solveEach(ctx, dev, problem, l.Lambdas, par)
	if err != nil {
		return nil, err
	}
	m = &KernelRidgeModel{
		kernelExpansion: kernelExpansion{model: model{learner: kernelRidgeName}, kernel: k, points: keptPoints(ctx, dev, points, o.Weights), coef: res.Alpha, intercept: res.Intercept},
		solutions:       solutions{solution{lambdasOf(l.Lambda, l.Lambdas)[0], !l.NoIntercept, res}, slices.Clone(l.Lambdas)}, weights: selectPositive(o.Weights, o.Weights),
	}
	if m.points.Rows < points.Rows {
		m.coef = dropZeroWeight(res.Alpha, o.Weights)
	}
	m.facts = expansionNorm(hy, res.Alpha, res.Intercept, o.Weights, m.lambda)
	proven := solvers.Problem{Kernel: k, X: m.points.Dense, Y: hy, Weights: m.weights, Lambda: l.Lambda, Intercept: m.hasIntercept}
	if m.points.Rows < points.Rows {
		proven.Y = dropZeroWeight(hy, o.Weights)
	}
	err = m.setBound(ctx, dev, &m.kernelExpansion, proven, res, l.Lambdas, l.Bound, o)
	res.Residuals = backend.Host[float64]{} // setBound has computed the bound from the residuals
	if err == nil {
		err = m.checkAccuracy(l.Accuracy, dev, &m.kernelExpansion, res)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Alpha returns a copy of the dual coefficients, a row for each sample of weight > 0, or nil if
// the model is not fitted.
func (m *KernelRidgeModel) Alpha() *mat.Dense {
	return denseOf(m.coef)
}

// State implements Model. Its arrays are "centers", n×d, "alpha", n×t, and "intercept", 1×t.
// Samples with weights add "weights", 1×n. Targets with separate λ add "lambdas", 1×t.
func (m *KernelRidgeModel) State() State { return stateOf(m) }

func (m *KernelRidgeModel) fields() []field {
	return slices.Concat(m.expansionFields("centers", "alpha", nil), m.solutionFields(), []field{
		optionalRow("weights", &m.weights, numberOfPoints(&m.points), positive), optionalRow("lambdas", &m.lambdas, colsOf(&m.coef), nonNegative),
		m.errorBound.fields(&m.kernelExpansion, &m.weights, &m.hasIntercept),
	})
}

// lambdasOf returns the list lambdas, or a list that contains only lambda if lambdas is empty.
func lambdasOf(lambda float64, lambdas []float64) []float64 {
	if len(lambdas) == 0 {
		return []float64{lambda}
	}
	return lambdas
}

// solveEach calls solvers.Solve, or solvers.SolveEach if each target has its own λ.
func solveEach(ctx context.Context, dev backend.Device, p solvers.Problem, lambdas []float64, par solvers.Params) (*solvers.Result, error) {
	if len(lambdas) == 0 {
		return solvers.Solve(ctx, dev, p, par)
	}
	return solvers.SolveEach(ctx, dev, p, lambdas, par)
}
