package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Problem is the system (K + λW⁻¹)α + b·1 = y; see the package documentation.
type Problem struct {
	Kernel    kernels.Kernel
	X, Y      backend.Host[float64] // n×d samples, n×t targets; only read
	Weights   []float64             // nil means all 1; each ≥ 0, at least one > 0; a sample of weight 0 is omitted
	Lambda    float64               // ≥ 0
	Intercept bool                  // an unpenalized b; otherwise b = 0

	// Sparse holds the samples if X is empty; nil means that X holds them. Functions that accept sparse samples are
	// Solve, LogEvidence, Variance, NewUncertainty, NewLeaveOneOut, and NewPath except with Primal. Kalman, Modes
	// and the preconditioner "taylor" accept none. For sparse samples, Solve with Primal needs Lambda > 0.
	Sparse *backend.CSR[float64]
}

// points returns X or Sparse.
func (p Problem) points() numeric.Points {
	if p.Sparse != nil {
		return numeric.SparsePoints(*p.Sparse)
	}
	return numeric.DensePoints(p.X)
}

// width is the number of features that a kernel value uses: for sparse samples the mean number of elements, plus 1.
func (p Problem) width() int {
	if p.Sparse != nil {
		return p.Sparse.NNZ()/p.Sparse.Rows + 1
	}
	return p.X.Cols
}

// linear reports whether each method computes weights of the features. For sparse samples only Primal does.
func (p Problem) linear() bool { return isLinear(p.Kernel) && p.Sparse == nil }

// Method names a way to solve a Problem; plan.go lists the methods.
type Method string

// Auto chooses the method with the lowest estimated time that fits in memory.
const Auto Method = ""

// Params are options of Solve; the zero value suits most problems.
type Params struct {
	Method     Method
	NeedsAlpha bool // Auto must not choose Primal, which computes no Alpha
	// NeedsResiduals means that Auto must not choose Modes without the exact K: this variant leaves
	// Result.Residuals empty for a nonlinear kernel.
	NeedsResiduals bool
	Memory         int64          // largest number of bytes to use on the device; 0 means all its free memory
	Progress       func(Progress) // nil, or reports the progress; called by one goroutine at a time

	// Tol is the relative residual that every output must reach, computed in float64 from the data.
	// 0 means 1e-8. If an output does not reach it, Solve returns a *ConvergenceError.
	Tol float64
	// MaxIter is the maximum number of products with K in an iterative method, summed over all
	// outputs and precisions; 0 means 10000.
	MaxIter int
	// Operator specifies how an iterative method stores K; OperatorAuto selects the fastest
	// operator that fits in memory.
	Operator Operator
	// Preconditioner names the low-rank approximation of K in an iterative method; Preconditioners lists the names.
	// "rpcholesky" uses random columns of K, and "taylor" the power series of a Gaussian or polynomial kernel.
	// "none" turns preconditioning off. "" is rpcholesky, or the cheaper of the two if Rank is 0.
	Preconditioner string
	// Rank is the rank of the preconditioner; 0 means a choice by the estimated spectrum of K and the memory. If
	// Rank or Preconditioner is set, Auto chooses among the methods that use it, and other methods return an error.
	Rank int
	// Seed is the seed of all random choices, which change only rounding errors and the number of iterations.
	Seed uint64
	// Checkpoint lets an iterative Solve resume an earlier Solve that ended early.
	Checkpoint Checkpoint

	withoutModes bool // Auto must not choose Modes
}

// Progress describes the progress of a Solve.
type Progress struct {
	Stage    string  // "gram", "factor" or "solve"
	Fraction float64 // fraction of the floating-point operations of all stages that are done; it never decreases and ends with 1
}

// Seconds are wall-clock times. Total includes checks and transfers.
type Seconds struct{ Gram, Factor, Solve, Total float64 }

// Solution is the solution of a Problem for one λ. Row i of Alpha belongs to row i of Problem.X.
type Solution struct {
	// Alpha holds the n×t dual coefficients, 0 for samples of weight 0. It is empty after Primal.
	Alpha backend.Host[float64]
	// Coef holds the d×t weights w of a linear kernel, f(x) = wᵀx + b. For sparse samples only
	// Primal computes it. It is empty for other kernels.
	Coef backend.Host[float64]
	// Intercept is b, one number for each output; all are 0 without an intercept.
	Intercept []float64
	// Residual is the relative residual in the 2-norm over the samples of weight > 0, the largest value over the
	// outputs:
	//
	//	primal   ‖XᵀW(y − Xw) − λw‖ / ‖XᵀWy‖
	//	others   ‖(K + λW⁻¹)α + b·1 − y‖ / ‖y‖
	//
	// With an intercept, the second residual includes the equation 1ᵀα = 0. The norms then use y centered by its
	// weighted mean, and for primal also centered X. The residual is 0 if the numerator and the divisor are both 0.
	//
	// If y is nearly orthogonal to every column of X, XᵀWy consists of rounding errors. Their relative bound is c =
	// 10√(n+d)·2⁻⁵³ (Higham and Mary 2019). Let S = ‖W^½X‖‖W^½y‖. If ‖XᵀWy‖ < S/1000, the divisor is at least
	// cS/Params.Tol.
	Residual float64
}

// Result is a solved Problem. Row i of Residuals belongs to row i of Problem.X.
type Result struct {
	Method Method // the method that gave the solution
	Solution
	// Residuals holds y − (K + λW⁻¹)α − b·1, n×t, computed in float64; it is 0 for samples of weight 0. It is empty
	// for a linear kernel, after Primal, and after Modes without the exact K.
	Residuals backend.Host[float64]
	// RSS holds Σ_i w_i (y_i − f(x_i))² of each output after Primal with a dense X. It is nil
	// after other methods and after SolveEach.
	RSS     []float64
	Plan    Plan
	Bytes   int64 // measured peak memory of this Solve on the device
	Seconds Seconds

	Iters    int      // number of products with K + λW⁻¹ in the iteration; 0 for a direct method
	Rank     int      // rank of the preconditioner; 0 means none
	Jitter   float64  // shift of the diagonal of a matrix that is factored only as a preconditioner; it does not change the solution
	Fallback string   // why the planned method failed, and what replaced it; "" if it did not fail
	Notes    []string // remarks for the user, one line each
	// Constant lists the columns of Y, counted from 0, that are constant up to rounding. Only
	// SolveNystrom and SolveFourier set it.
	Constant []int
}

// Solve solves p on dev.
//
// Before work starts, Solve returns an error for an invalid Problem and a *BudgetError for a
// Problem that does not fit in memory. The error for an invalid value names its row and column,
// counted from 1. If the matrix is not positive definite to working precision, the error wraps
// *backend.PivotError and says how large λ must be. If the residual exceeds Params.Tol, the error
// is a *ConvergenceError with the best solution found. Within about 0.1 s after ctx is done, Solve
// returns an error that wraps context.Cause(ctx). Solve frees all device memory before it returns.
//
// If Auto chooses Modes and it converges too slowly, Solve continues with the cheapest other method.
func Solve(ctx context.Context, dev backend.Device, p Problem, par Params) (*Result, error) {
	start, reached := time.Now(), 0.0
	report := par.Progress
	if report != nil && par.Method == Auto {
		par.Progress = func(q Progress) {
			reached = q.Fraction
			report(q)
		}
	}
	plan, res, err := solve(ctx, dev, p, par, start)
	var inaccurate *ConvergenceError
	if par.Method != Auto || plan.Method != Modes || !(errors.As(err, &inaccurate) || errors.Is(err, backend.ErrNotPosDef)) {
		return res, err
	}
	if report != nil {
		par.Progress = func(q Progress) { report(Progress{q.Stage, reached + (1-reached)*q.Fraction}) }
	}
	return solveAgain(ctx, dev, p, par, start, err)
}

// solveAgain solves with another method after Modes has ended with the error err.
func solveAgain(ctx context.Context, dev backend.Device, p Problem, par Params, start time.Time, err error) (*Result, error) {
	par.withoutModes = true
	_, res, otherErr := solve(ctx, dev, p, par, start)
	if errors.As(otherErr, new(*BudgetError)) {
		return nil, err // err may be a *ConvergenceError with the best solution by Modes
	}
	if otherErr != nil {
		return nil, otherErr
	}
	text := fmt.Sprintf("%s; went on with %s", err, res.Method)
	if res.Fallback != "" {
		text += "; " + res.Fallback
	}
	res.Fallback = text
	return res, nil
}

// solve is Solve, but does not continue with another method after Modes.
func solve(ctx context.Context, dev backend.Device, p Problem, par Params, start time.Time) (Plan, *Result, error) {
	plan, err := makePlan(ctx, dev, p, par)
	if err != nil {
		return plan, nil, err
	}
	if ctx.Err() != nil {
		return plan, nil, fmt.Errorf("solvers: %w", context.Cause(ctx))
	}
	if err := plan.fits(p.points().Evaluating(ctx, dev), dev); err != nil {
		return plan, nil, err
	}
	w := newWork(ctx, dev, p, par, plan)
	defer w.Mem.FreeAll()
	if err := w.s.checkValues(); err != nil {
		return plan, nil, err
	}
	err = plan.settings.run(w)
	w.res.Bytes = w.Mem.PeakBytes()
	w.res.Seconds.Total = time.Since(start).Seconds()
	if err != nil {
		return plan, nil, err
	}
	w.Progress.Finish()
	return plan, w.res, nil
}

// check checks the params by the rules that all methods share.
func (par Params) check() error {
	switch {
	case par.Memory < 0:
		return fmt.Errorf("solvers: memory must be ≥ 0 bytes, got %d", par.Memory)
	case !(par.Tol >= 0) || math.IsInf(par.Tol, 1):
		return fmt.Errorf("solvers: tol must be a finite number ≥ 0, got %v", par.Tol)
	case par.MaxIter < 0:
		return fmt.Errorf("solvers: the number of iterations must be ≥ 0, got %d", par.MaxIter)
	case par.Rank < 0:
		return fmt.Errorf("solvers: the rank of the preconditioner must be ≥ 0, got %d", par.Rank)
	case par.Rank > 0 && par.Preconditioner == "none":
		return fmt.Errorf("solvers: the rank is %d, but the preconditioner \"none\" has no rank: leave one of the two out", par.Rank)
	case par.Checkpoint.Every < 0:
		return fmt.Errorf("solvers: the time between checkpoints must be ≥ 0, got %v", par.Checkpoint.Every)
	}
	if err := par.Operator.check(); err != nil {
		return err
	}
	return checkPreconditioner(par.Preconditioner)
}

func (par Params) tol() float64 {
	if par.Tol == 0 {
		return 1e-8
	}
	return par.Tol
}

func (par Params) preconditioner() string {
	if par.Preconditioner == "" {
		return "rpcholesky"
	}
	return par.Preconditioner
}

func (par Params) maxIter() int {
	if par.MaxIter == 0 {
		return 10000
	}
	return par.MaxIter
}

// call is the state of a call that uses the samples of one Problem.
type call struct {
	run.Frame
	s *samples
}

// work is the state of one Solve.
type work struct {
	call
	par          Params
	plan         Plan
	res          *Result
	checkpointer *checkpointer // nil without checkpoints
	onHost       bool          // factors are in the memory of the host
	takeover     float64       // cost of the direct method that replaces a method of Auto that takes longer than planned; 0 if there is none
}

func newWork(ctx context.Context, dev backend.Device, p Problem, par Params, plan Plan) *work {
	return &work{
		call: call{run.New(ctx, dev, newProgress(par.Progress, plan)), newSamples(p)},
		par:  par,
		plan: plan,
		res:  &Result{Method: plan.Method, Plan: plan.public(), Solution: Solution{Intercept: make([]float64, p.Y.Cols)}},
	}
}

// notifier adapts report to run.NewProgress.
func notifier(report func(Progress)) func(stage string, fraction float64) {
	if report == nil {
		return nil
	}
	return func(stage string, fraction float64) { report(Progress{Stage: stage, Fraction: fraction}) }
}

func newProgress(report func(Progress), plan Plan) *run.Progress {
	fractions := map[string]float64{}
	for _, s := range plan.stages {
		fractions[s.name] += s.flops / plan.Flops
	}
	return run.NewProgress(notifier(report), fractions, plan.Flops)
}

// fail adds the name of the planned method to err.
func (w *work) fail(err error) error {
	return fmt.Errorf("solvers: %s: %w", w.plan.Method, err)
}

// SolveEach is Solve with a separate λ for each output; it ignores p.Lambda. Column j of the solution is the
// solution for lambdas[j]. There is one factorization for each different λ.
//
// In the Result, Residual, Bytes, Rank and Jitter are the largest values over the different λ. Iters and Seconds
// are sums. Plan has the sum of the operations and the largest memory. The errors are those of Solve; with several
// λ, an error names its λ.
func SolveEach(ctx context.Context, dev backend.Device, p Problem, lambdas []float64, par Params) (*Result, error) {
	if len(lambdas) != p.Y.Cols {
		return nil, fmt.Errorf("solvers: y has %s, but lambda has %s: each column needs one value", count.Of(p.Y.Cols, "column"), count.Of(len(lambdas), "value"))
	}
	for j, l := range lambdas {
		if !(l >= 0) || math.IsInf(l, 1) {
			return nil, fmt.Errorf("solvers: lambda of column %d must be a finite number ≥ 0, got %v", j+1, l)
		}
	}
	var different []float64
	for _, l := range lambdas {
		if !slices.Contains(different, l) {
			different = append(different, l)
		}
	}
	if len(different) <= 1 {
		if len(different) == 1 {
			p.Lambda = different[0]
		}
		return Solve(ctx, dev, p, par)
	}
	p.Lambda = different[0]
	if err := p.checkShapes(); err != nil {
		return nil, err
	}
	if par.Checkpoint.Dir != "" {
		return nil, errors.New("solvers: a checkpoint holds the state of one lambda: give all outputs the same lambda, or no checkpoint")
	}
	e := &each{ctx: ctx, dev: dev, p: p, lambdas: lambdas, different: different, par: par, progress: run.NewProgress(notifier(par.Progress), nil, 1)}
	if err := e.solve(); err != nil {
		return nil, err
	}
	return e.res, nil
}

// each is the state of one SolveEach.
type each struct {
	ctx                context.Context
	dev                backend.Device
	p                  Problem
	lambdas, different []float64
	par                Params
	res                *Result
	progress           *run.Progress
}

func (e *each) solve() error {
	start := time.Now()
	e.res = &Result{Solution: Solution{Intercept: make([]float64, e.p.Y.Cols)}}
	total := float64(len(e.different))
	for i, l := range e.different {
		if err := e.one(l, float64(i)/total, float64(i+1)/total); err != nil {
			return fmt.Errorf("%w (lambda %v)", err, l)
		}
	}
	e.res.Seconds.Total = time.Since(start).Seconds()
	return nil
}

// one solves for the outputs whose λ is lambda. It reports its progress by fractions between its arguments from and to.
func (e *each) one(lambda, from, to float64) error {
	var columns []int
	for j, l := range e.lambdas {
		if l == lambda {
			columns = append(columns, j)
		}
	}
	p, par := e.p, e.par
	p.Lambda, p.Y = lambda, backend.NewHost[float64](e.p.Y.Rows, len(columns))
	for i := range p.Y.Rows {
		for k, j := range columns {
			p.Y.Row(i)[k] = e.p.Y.Row(i)[j]
		}
	}
	par.Progress = func(q Progress) { e.progress.Report(q.Stage, from+(to-from)*q.Fraction) }
	r, err := Solve(e.ctx, e.dev, p, par)
	if err != nil {
		return err
	}
	for k, j := range columns {
		e.copyColumn(j, k, r)
	}
	e.add(r.Plan, r.Residual)
	t := e.res
	t.Method, t.Bytes, t.Rank, t.Jitter = r.Method, max(t.Bytes, r.Bytes), max(t.Rank, r.Rank), max(t.Jitter, r.Jitter)
	t.Iters += r.Iters
	t.Seconds.Gram += r.Seconds.Gram
	t.Seconds.Factor += r.Seconds.Factor
	t.Seconds.Solve += r.Seconds.Solve
	if t.Fallback == "" {
		t.Fallback = r.Fallback
	}
	for _, note := range r.Notes {
		if !slices.Contains(t.Notes, note) {
			t.Notes = append(t.Notes, note)
		}
	}
	return nil
}

func (e *each) copyColumn(j, column int, r *Result) {
	for _, pair := range []struct {
		to *backend.Host[float64]
		h  backend.Host[float64]
	}{{&e.res.Alpha, r.Alpha}, {&e.res.Coef, r.Coef}, {&e.res.Residuals, r.Residuals}} {
		if pair.h.Rows == 0 {
			continue
		}
		if pair.to.Rows == 0 {
			*pair.to = backend.NewHost[float64](pair.h.Rows, len(e.lambdas))
		}
		for i := range pair.h.Rows {
			pair.to.Row(i)[j] = pair.h.Row(i)[column]
		}
	}
	e.res.Intercept[j] = r.Intercept[column]
}

// add adds a plan to Result.Plan, and raises Result.Residual to residual.
func (e *each) add(plan Plan, residual float64) {
	if plan.Bytes >= e.res.Plan.Bytes {
		plan.Flops += e.res.Plan.Flops
		e.res.Plan = plan.public()
	} else {
		e.res.Plan.Flops += plan.Flops
	}
	e.res.Residual = max(e.res.Residual, residual)
}
