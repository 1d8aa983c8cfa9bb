package learners

import (
	"cmp"
	"context"
	"errors"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/evidence"
	"github.com/mercer-go/mercer/internal/verified"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

const nystromRidgeName = "nystrom-ridge"

func init() {
	register(Description{
		Name:    nystromRidgeName,
		Grid:    "lambda=0.0001,0.001,0.01,0.1,1,10",
		Tasks:   []Task{Regression, Classification},
		Formula: "minimize Σ w_i (y_i − f(x_i))² + lambda βᵀk(c, c)β; f(x) = Σ_j β_j k(c_j, x) + b with M centers c_j among the samples",
		Source:  "Rudi, Carratino and Rosasco (2017), FALKON: an optimal large scale kernel method",
		Outputs: true, classify: true, checkpoints: true, Sparse: true,
		rows: rowsFitterOf((*NystromRidge).parameters, NystromRidge.FitRows),
	}, (*NystromRidge).parameters, NystromRidge.Fit)
}

func (l *NystromRidge) parameters() []Parameter {
	return append([]Parameter{
		medianKernel(&l.Kernel), lambdaNumber(&l.Lambda).withHelp("λ, not scaled by the number of rows; Falkon's λ is λ/n"),
		intercept(&l.NoIntercept, "fit an unpenalized intercept"),
		intParam("centers", &l.Centers, "", atLeast(1), "number of kernel functions, M; memory grows with M²").withAutoDefault("about 10√n"),
		oneOf("choice", &l.Choice, "", solvers.CenterRules(), "how the centers are chosen among the samples"),
		oneOf("solver", &l.Solver, "auto", []solvers.Method{solvers.Normal, solvers.Falkon}, "way to solve the normal equations"),
		number("tol", &l.Tol, "1e-6", fraction, "relative residual of the normal equations to reach"),
		boundParam(&l.Bound),
		seedNumber(&l.Seed).withHelp("seed of the choice of centers, and of rows for the median distance"),
		boolParam("optimize", &l.Optimize, "false", "find the parameters of the kernel and lambda that maximize the bound of the likelihood").onlyFor(Regression),
		ardParameter(&l.ARD, &l.Kernel).onlyWith("optimize", "true"),
	}, posteriorParameters(&l.Std, &l.UnitScale)...)
}

// NystromRidge is kernel ridge regression with kernel functions at M centers instead of at all
// samples: f(x) = Σ_j β_j k(c_j, x) + b with the β and b that minimize
//
//	Σ_i w_i (y_i − f(x_i))² + λ βᵀ k(c, c) β
//
// If every sample is a center, f is the solution of KernelRidge. λ is not multiplied by n: it is n
// times the λ of Falkon. The number of operations grows with nM or nM², the memory with M².
type NystromRidge struct {
	Kernel      kernels.Kernel     // nil means the default of KernelRidge
	Lambda      float64            // ≥ 0
	NoIntercept bool               // set b = 0; by default b is fitted without a penalty
	Centers     int                // M; 0 means about 10√n
	Choice      solvers.CenterRule // rule that chooses the centers; "" means solvers.UniformCenters
	Solver      solvers.Method     // solvers.Auto, solvers.Normal or solvers.Falkon
	Tol         float64            // relative residual of the normal equations; 0 means 1e-6
	Seed        uint64             // seed of all random choices
	Bound       bool               // compute sharp bounds on the errors of predictions: see Bounded; needs λ > 0 and dense samples
	// Std makes the model keep the posterior of the Gaussian process with the covariance s²k, whose mean is f. Variance
	// needs the posterior. It takes 8M² bytes, and the fit takes twice as long. The process is the deterministic
	// training conditional (Quiñonero-Candela and Rasmussen 2005, 5.2). s² maximizes the likelihood and is then reduced
	// for the variance that the centers do not explain: see solvers.Posterior. Std needs λ > 0.
	Std       bool
	UnitScale bool // s² = 1, so that the variance of the noise is λ
	// Optimize searches for the parameters of the kernel and the λ that maximize the lower bound of Titsias (2009)
	// on the likelihood of the exact process. The search starts at Kernel and Lambda, and takes at most 2,000
	// samples and 2,000 centers, which Seed chooses; if all these samples can be centers, it maximizes the
	// likelihood itself. Optimize needs dense samples.
	Optimize bool
	ARD      bool // one length scale for each feature, if Kernel is nil
}

// NystromRidgeModel is a fitted NystromRidge. It keeps the centers.
type NystromRidgeModel struct {
	kernelExpansion
	solution
	errorBound
	process
}

// Fit fits the n×d samples x to the n×t targets y, each output separately. If x is a backend.CSR,
// the samples and the centers are stored as sparse matrices. Without Options.Keys, a dense matrix
// with the same elements gives other centers, unless all samples are centers. Options.Centers replaces
// the choice of centers by given points, which need not be samples.
func (l NystromRidge) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *NystromRidgeModel, err error) {
	if s, err := sparseOf("x", x); err != nil || s != nil {
		defer wrapError(nystromRidgeName, l.parameters(), &m, &err)
		if err != nil {
			return nil, err
		}
		hy, err := targets(s.Rows, y)
		if err != nil {
			return nil, err
		}
		return l.fit(ctx, dev, solvers.RowNumbers(*s, hy, o.Weights, o.Keys), s, o)
	}
	data, err := inMemory(dev, nystromRidgeName, l.Kernel, x, y, o)
	if err != nil {
		return nil, err
	}
	return l.FitRows(ctx, dev, data, o)
}

// FitRows is like Fit, for samples that are read in passes and need not fit into memory. data includes the weights
// and keys of the samples; the weights and keys of o are ignored.
func (l NystromRidge) FitRows(ctx context.Context, dev backend.Device, data solvers.Rows, o Options) (m *NystromRidgeModel, err error) {
	defer wrapError(nystromRidgeName, l.parameters(), &m, &err)
	return l.fit(ctx, dev, data, nil, o)
}

// fit fits the samples of data. If sparse is not nil, the rows of sparse are the samples, and data
// has the row numbers in place of features.
func (l NystromRidge) fit(ctx context.Context, dev backend.Device, data solvers.Rows, sparse *backend.CSR[float64], o Options) (*NystromRidgeModel, error) {
	if l.Bound && sparse != nil {
		return nil, errors.New("bound: no sharp bound is known for sparse samples: give dense samples")
	}
	var centers backend.Host[float64]
	if o.Centers != nil {
		switch {
		case sparse != nil:
			return nil, errors.New("centers: the samples must be dense if the centers are given")
		case l.Centers != 0 || l.Choice != "" && l.Choice != solvers.UniformCenters:
			return nil, errors.New("centers: omit the number and the choice of centers, because the centers are given")
		}
		var err error
		if centers, err = gonum.Host("centers", o.Centers); err != nil {
			return nil, err
		}
	}
	k, err := kernelForRows(ctx, l.Kernel, data, sparse, l.Seed)
	if err != nil {
		return nil, err
	}
	result := &searchResult{list: []evidence.Candidate{{Kernel: k, Lambda: l.Lambda}}}
	if l.Optimize {
		if sparse != nil {
			return nil, errors.New("optimize: the search for the parameters of the kernel needs dense samples")
		}
		if result, err = l.search(ctx, dev, k, data, centers, o); err != nil {
			return nil, err
		}
	}
	p := solvers.NystromProblem{
		Data: data, Sparse: sparse, Intercept: !l.NoIntercept, Centers: centers,
		Choice: solvers.CenterChoice{Rule: l.Choice, Count: l.Centers, Seed: l.Seed},
	}
	var res *solvers.StreamResult
	best, facts, err := result.fit(func(k kernels.Kernel, lambda float64) (err error) {
		p.Kernel, p.Lambda = k, lambda
		res, err = solvers.SolveNystrom(ctx, dev, p, solvers.StreamParams{Method: l.Solver, Memory: o.Memory, Progress: o.Progress, Tol: l.Tol, Checkpoint: o.Checkpoint, Posterior: l.Std, UnitScale: l.UnitScale})
		return err
	})
	if err != nil {
		return nil, err
	}
	k, l.Lambda = best.Kernel, best.Lambda
	m := &NystromRidgeModel{
		kernelExpansion: kernelExpansion{
			model:  model{nystromRidgeName, warned(append(facts, Fact{"centers", res.Centers.Rows}, Fact{"passes", res.Iters}), constantWarning(res.Constant, res.Beta.Cols))},
			kernel: k, points: p.Points(copyOf(res.Centers)), coef: res.Beta, intercept: res.Intercept,
		},
		solution: solution{l.Lambda, !l.NoIntercept, &res.Result},
	}
	m.facts = append(m.facts, m.setPosterior(res.Posterior, true)...)
	var r func() *verified.Roundoff
	if k.IsPSD() {
		r = func() *verified.Roundoff { return m.roundoffOn(dev, &m.kernelExpansion) }
	}
	problem := &verified.Primal{Lambda: verified.Exact(l.Lambda), Centers: true, Intercept: m.hasIntercept, Sums: res.Sums}
	if err := m.makePrimal(ctx, dev, &m.model, "beta", m.verified(), problem, data, sparse, &res.Result, verified.Steps(k, 1, m.points.Cols), r, l.Bound, o); err != nil {
		return nil, err
	}
	return m, nil
}

// search searches for the kernel and λ with a subset of the samples. If all samples of the subset can be centers,
// it maximizes the likelihood of the exact process, which takes a tenth of the time. centers holds
// Options.Centers, or is empty.
func (l NystromRidge) search(ctx context.Context, dev backend.Device, k kernels.Kernel, data solvers.Rows, centers backend.Host[float64], o Options) (*searchResult, error) {
	s := processSearch{kernel: k, lambda: l.Lambda, ard: l.ARD, noIntercept: l.NoIntercept, unitScale: l.UnitScale, seed: l.Seed, rows: searchRows}
	ctx, o = s.reserveCopy(ctx, dev, data, o)
	s.evaluate = func(subset solvers.Rows) (func(kernels.Kernel, float64) (*solvers.Evidence, error), error) {
		rows, _, _ := subset.Dims()
		count := cmp.Or(l.Centers, rows)
		if centers.Rows == 0 && count >= rows {
			return nil, nil
		}
		selected := centers
		if selected.Rows == 0 {
			var err error
			if selected, err = (solvers.CenterChoice{Count: count, Seed: l.Seed}).Sample(ctx, subset); err != nil {
				return nil, err
			}
		}
		selected = selected.View(0, 0, min(selected.Rows, searchFunctions), selected.Cols)
		return func(k kernels.Kernel, lambda float64) (*solvers.Evidence, error) {
			res, err := solvers.SolveNystrom(ctx, dev, solvers.NystromProblem{Kernel: k, Data: subset, Centers: selected, Lambda: lambda, Intercept: !l.NoIntercept},
				solvers.StreamParams{Memory: o.Memory, Posterior: true, Gradient: true, UnitScale: l.UnitScale})
			if err != nil {
				return nil, err
			}
			return &solvers.Evidence{Log: res.Posterior.Bound, Scale: res.Posterior.Scale, Gradient: res.Gradient}, nil
		}, nil
	}
	return s.search(ctx, dev, data, o)
}

// Centers returns a copy of the M×d centers, or nil if the model is not fitted.
func (m *NystromRidgeModel) Centers() *mat.Dense {
	return densePoints(m.points)
}

// Beta returns a copy of the M×t coefficients, or nil if the model is not fitted.
func (m *NystromRidgeModel) Beta() *mat.Dense {
	return denseOf(m.coef)
}

// State implements Model. For M centers, d features and t targets its arrays are "centers", M×d, "beta", M×t, and
// "intercept", 1×t. Std adds the arrays of the posterior: "posterior", (M+1)×M, "scale" and "quadratic", 1×t,
// "likelihood", 1×4, and with an intercept "shift", 1×M.
func (m *NystromRidgeModel) State() State { return stateOf(m) }

func (m *NystromRidgeModel) fields() []field {
	list := append(m.expansionFields("centers", "beta", nil), m.solutionFields()...)
	list = append(list, m.processFields(numberOfPoints(&m.points), colsOf(&m.coef), 1, &m.lambda)...)
	return append(list, m.errorBound.fields(&m.kernelExpansion, nil, &m.hasIntercept))
}
