package learners

import (
	"context"
	"fmt"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

const nystromRidgeName = "nystrom-ridge"

func init() {
	var rules []string
	for _, r := range solvers.CenterRules() {
		rules = append(rules, string(r))
	}
	centers := whole("centers", "", atLeast(1), "number of kernel functions, M; memory grows with M²")
	centers.Default, centers.chosen = "about 10√n", true
	register(Description{
		Name:    nystromRidgeName,
		Tasks:   []Task{Regression, Classification},
		Formula: "minimise Σ w_i (y_i − f(x_i))² + lambda βᵀk(c, c)β; f(x) = Σ_j β_j k(c_j, x) + b with M centers c_j among the samples",
		Source:  "Rudi, Carratino and Rosasco (2017), FALKON: an optimal large scale kernel method",
		Outputs: true, classify: true, checkpoints: true,
		Parameters: []Parameter{
			medianKernel, lambdaNumber.withHelp("λ, not scaled by the number of rows: Falkon's own is λ/n"),
			truth("intercept", "false", "fit an unpenalised intercept"),
			centers,
			oneOf("choice", rules, "how the centers are chosen among the samples"),
			oneOf("solver", []string{"auto", string(solvers.Normal), string(solvers.Falkon)}, "way to solve the normal equations"),
			number("tol", "1e-6", fraction, "relative residual of the normal equations to reach"),
			seedNumber.withHelp("seed of the choice of centers, and of rows for the median distance"),
		},
		fitter:  func(v Values) Fitter { return fitterOf(nystromRidgeOf(v).Fit) },
		rows:    func(v Values) RowsFitter { return rowsFitterOf(nystromRidgeOf(v).FitRows) },
		restore: restoreNystromRidge,
	})
}

// nystromRidgeOf is the learner with those parameters.
func nystromRidgeOf(v Values) NystromRidge {
	return NystromRidge{
		Kernel: v.Kernel("kernel"), Lambda: v.Number("lambda"), Intercept: v.Bool("intercept"),
		Centers: v.Whole("centers"), Choice: solvers.CenterRule(v.Choice("choice")),
		Solver: streamMethod(v.Choice("solver")), Tol: v.Number("tol"), Seed: v.Seed(),
	}
}

// streamMethod is the method of a parameter "solver".
func streamMethod(text string) solvers.Method {
	if text == "auto" {
		return solvers.Auto
	}
	return solvers.Method(text)
}

// NystromRidge is kernel ridge regression with kernel functions at M centers
// instead of at all samples: f(x) = Σ_j β_j k(c_j, x) + b with the β and b that
// minimise
//
//	Σ_i w_i (y_i − f(x_i))² + λ βᵀ k(c, c) β
//
// With every sample a center it is KernelRidge. λ is unscaled; with Falkon's
// convention it is λ_Falkon·n. The work grows with nM or nM², the memory with
// M².
type NystromRidge struct {
	Kernel    kernels.Kernel     // nil is chosen as in KernelRidge
	Lambda    float64            // ≥ 0
	Intercept bool               // an unpenalised b; otherwise b = 0
	Centers   int                // M; 0 is about 10√n
	Choice    solvers.CenterRule // "" is solvers.UniformCenters
	Solver    solvers.Method     // solvers.Auto, solvers.Normal or solvers.Falkon
	Tol       float64            // relative residual of the normal equations; 0 is 1e-6
	Seed      uint64             // of every random choice
}

// NystromRidgeModel is a fitted NystromRidge. It keeps the centers.
type NystromRidgeModel struct {
	kernel    kernels.Kernel
	lambda    float64
	fitted    bool // with an intercept
	centers   backend.Host[float64]
	beta      backend.Host[float64]
	intercept []float64
	solved    *solvers.Result
}

// Fit fits the n×d samples x to the n×t targets y, each output on its own.
func (l NystromRidge) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (*NystromRidgeModel, error) {
	hx, hy, err := samples(x, y)
	if err != nil {
		return nil, fmt.Errorf("learners: nystrom-ridge: %w", err)
	}
	if l.Kernel == nil {
		sigma, err := medianDistance(ctx, hx, o.Weights, l.Seed)
		if err != nil {
			return nil, fmt.Errorf("learners: nystrom-ridge: %w", err)
		}
		l.Kernel = kernels.Gaussian{Sigma: sigma}
	}
	return l.FitRows(ctx, dev, solvers.InMemory(hx, hy, o.Weights), o)
}

// FitRows is Fit for samples that are read in passes and need not fit into
// memory. They bring their weights along: those of o are not looked at.
func (l NystromRidge) FitRows(ctx context.Context, dev backend.Device, data solvers.Rows, o Options) (*NystromRidgeModel, error) {
	m, err := l.fitRows(ctx, dev, data, o)
	if err != nil {
		return nil, fmt.Errorf("learners: nystrom-ridge: %w", err)
	}
	return m, nil
}

func (l NystromRidge) fitRows(ctx context.Context, dev backend.Device, data solvers.Rows, o Options) (*NystromRidgeModel, error) {
	k, err := kernelForRows(ctx, l.Kernel, data, l.Seed)
	if err != nil {
		return nil, err
	}
	res, err := solvers.SolveNystrom(ctx, dev, solvers.NystromProblem{
		Kernel: k, Data: data, Lambda: l.Lambda, Intercept: l.Intercept,
		Choice: solvers.CenterChoice{Rule: l.Choice, Count: l.Centers, Seed: l.Seed},
	}, solvers.StreamParams{Method: l.Solver, Memory: o.Memory, Progress: o.Progress, Tol: l.Tol, Checkpoint: o.Checkpoint})
	if err != nil {
		return nil, err
	}
	return &NystromRidgeModel{
		kernel: k, lambda: l.Lambda, fitted: l.Intercept,
		centers: copyOf(res.Centers), beta: res.Beta, intercept: res.Intercept, solved: &res.Result,
	}, nil
}

// kernelForRows returns k or, where it is nil, the Gaussian whose sigma is the median
// distance of a sample of the rows.
func kernelForRows(ctx context.Context, k kernels.Kernel, data solvers.Rows, seed uint64) (kernels.Kernel, error) {
	if k != nil {
		return k, nil
	}
	some, err := solvers.Sample(ctx, data, sigmaRows, seed)
	if err != nil {
		return nil, err
	}
	sigma, err := medianDistance(ctx, some, nil, seed)
	return kernels.Gaussian{Sigma: sigma}, err
}

// copyOf returns a copy of h without gaps.
func copyOf(h backend.Host[float64]) backend.Host[float64] {
	c := backend.NewHost[float64](h.Rows, h.Cols)
	for i := range h.Rows {
		copy(c.Row(i), h.Row(i))
	}
	return c
}

// Learner returns "nystrom-ridge".
func (m *NystromRidgeModel) Learner() string { return nystromRidgeName }

// Dims implements Model.
func (m *NystromRidgeModel) Dims() (features, outputs int) {
	if m == nil {
		return 0, 0
	}
	return m.centers.Cols, m.beta.Cols
}

// Predict implements Model: k(x, centers)β + b, without storing the matrix of
// kernel values.
func (m *NystromRidgeModel) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.predictor().predict(ctx, dev, x)
}

func (m *NystromRidgeModel) predictor() predictor {
	if features, _ := m.Dims(); features == 0 {
		return predictor{learner: nystromRidgeName}
	}
	return expansion(nystromRidgeName, m.kernel, m.centers, m.beta, m.intercept)
}

// Solved implements Solved.
func (m *NystromRidgeModel) Solved() *solvers.Result {
	if m == nil {
		return nil
	}
	return m.solved
}

// Facts implements Describer.
func (m *NystromRidgeModel) Facts() []Fact {
	if m == nil || m.solved == nil {
		return nil
	}
	return []Fact{{"centers", m.centers.Rows}, {"passes", m.solved.Iters}}
}

// Kernel returns the kernel that the model was fitted with.
func (m *NystromRidgeModel) Kernel() kernels.Kernel { return m.kernel }

// Lambda returns the λ that the model was fitted with.
func (m *NystromRidgeModel) Lambda() float64 { return m.lambda }

// Centers returns a copy of the M×d centers; nil when the model is not fitted.
func (m *NystromRidgeModel) Centers() *mat.Dense {
	if features, _ := m.Dims(); features == 0 {
		return nil
	}
	return denseOf(m.centers)
}

// Beta returns a copy of the M×t coefficients; nil when the model is not fitted.
func (m *NystromRidgeModel) Beta() *mat.Dense {
	if features, _ := m.Dims(); features == 0 {
		return nil
	}
	return denseOf(m.beta)
}

// Intercept returns a copy of b, one entry for each output.
func (m *NystromRidgeModel) Intercept() []float64 { return slices.Clone(m.intercept) }

// State implements Model. Its arrays are "centers", M×d, "beta", M×t, and
// "intercept", 1×t.
func (m *NystromRidgeModel) State() State {
	s := State{Learner: nystromRidgeName, Params: map[string]any{}, Arrays: map[string]backend.Host[float64]{}}
	if features, _ := m.Dims(); features == 0 {
		return s
	}
	s.Params["kernel"], s.Params["lambda"], s.Params["intercept"] = m.kernel.String(), m.lambda, m.fitted
	s.Arrays["centers"], s.Arrays["beta"], s.Arrays["intercept"] = m.centers, m.beta, rowOf(m.intercept)
	return s
}

func restoreNystromRidge(s State) (Model, error) {
	m := &NystromRidgeModel{}
	text, err := param[string](s, "kernel")
	if err != nil {
		return nil, err
	}
	if m.kernel, err = kernels.Parse(text); err != nil {
		return nil, err
	}
	if m.lambda, err = s.lambda(); err != nil {
		return nil, err
	}
	if m.fitted, err = param[bool](s, "intercept"); err != nil {
		return nil, err
	}
	if m.centers, err = s.array("centers", -1, -1); err != nil {
		return nil, err
	}
	if err := m.kernel.Check(m.centers.Cols); err != nil {
		return nil, err
	}
	if m.beta, err = s.array("beta", m.centers.Rows, -1); err != nil {
		return nil, err
	}
	b, err := s.array("intercept", 1, m.beta.Cols)
	if err != nil {
		return nil, err
	}
	m.intercept = b.Row(0)
	return m, nil
}
