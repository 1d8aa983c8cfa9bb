package solvers

import (
	"context"
	"fmt"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// Problem is (K + λW⁻¹)α + b·1 = y; see the package's comment.
type Problem struct {
	Kernel    kernels.Kernel
	X, Y      backend.Host[float64] // n×d samples, n×t targets; only read
	Weights   []float64             // nil: all 1; ≥ 0, some > 0; a sample of weight 0 is left out
	Lambda    float64               // ≥ 0
	Intercept bool                  // an unpenalised b; otherwise b = 0
}

// Method names a way to solve a Problem.
type Method string

const (
	Auto   Method = ""       // the cheaper one, by the cost model of choose.go
	Dual   Method = "dual"   // Cholesky of K + λW⁻¹: O(n²d + n³)
	Primal Method = "primal" // Cholesky of XᵀWX + λI: O(nd² + d³); kernels.Linear only
)

// Params are the choices of a caller; the zero value is right for most.
type Params struct {
	Method   Method
	Memory   int64          // bytes that may be taken on the device; 0: all that it has free
	Progress func(Progress) // nil, or told of the work as it is done; called by one goroutine at a time
}

// Progress is how far a Solve has come.
type Progress struct {
	Stage    string  // "gram", "factor" or "solve"
	Fraction float64 // of the whole, by floating-point operations: never falls, ends with 1
}

// Seconds are wall-clock times. Total includes checks and transfers.
type Seconds struct{ Gram, Factor, Solve, Total float64 }

// Result is a solved Problem. Numbers of rows are those of Problem.X.
type Result struct {
	Method Method
	// Alpha holds the n×t dual coefficients, 0 for samples of weight 0. It is
	// empty after Primal.
	Alpha backend.Host[float64]
	// Coef holds the d×t weights w of a linear kernel, f(x) = wᵀx + b, after
	// either method. It is empty for other kernels.
	Coef backend.Host[float64]
	// Intercept is b, one entry for each output; zeros without intercept.
	Intercept []float64
	// Residual is the largest over the outputs of the relative residual in
	// the 2-norm of the system that was solved, over the samples of weight > 0:
	//
	//	dual     ‖(K + λW⁻¹)α + b·1 − y‖ / ‖y‖
	//	primal   ‖XᵀW(y − Xw) − λw‖ / ‖XᵀWy‖
	//
	// With an intercept the dual one includes the equation 1ᵀα = 0, and X and
	// y of the primal one are centred by their weighted means. 0/0 is 0.
	Residual float64
	Plan     Plan
	Bytes    int64 // the most that this Solve had on the device, measured
	Seconds  Seconds
}

// Solve solves p on dev.
//
// It refuses, before work starts, a Problem that breaks a rule (the error
// names row and column, counted from 1) or that does not fit the memory
// (*BudgetError). A matrix that is not positive definite to working precision
// gives an error that wraps *backend.PivotError and says how large λ must be.
// Once ctx is done, Solve returns within about 0.1 s an error that wraps
// context.Cause(ctx). On every return the memory of the device has been given
// back.
func Solve(ctx context.Context, dev backend.Device, p Problem, par Params) (*Result, error) {
	start := time.Now()
	if par.Memory < 0 {
		return nil, fmt.Errorf("solvers: memory must be ≥ 0 bytes, got %d", par.Memory)
	}
	plan, err := MakePlan(dev, p, par.Method)
	if err != nil {
		return nil, err
	}
	if err := plan.fits(dev, par.Memory); err != nil {
		return nil, err
	}
	if err := p.checkValues(ctx); err != nil {
		return nil, err
	}

	w := newWork(ctx, dev, p, par, plan)
	defer w.mem.freeAll()
	if plan.Method == Primal {
		err = w.primal()
	} else {
		err = w.dual()
	}
	if err != nil {
		return nil, err
	}
	w.progress.finish()
	w.res.Bytes = w.mem.peak()
	w.res.Seconds.Total = time.Since(start).Seconds()
	return w.res, nil
}

// work is one Solve in progress.
type work struct {
	ctx      context.Context
	b        backend.Backend[float64] // under ctx, counting progress
	mem      *memory
	s        *samples
	plan     Plan
	progress *progress
	res      *Result
}

func newWork(ctx context.Context, dev backend.Device, p Problem, par Params, plan Plan) *work {
	w := &work{
		ctx:      ctx,
		s:        newSamples(p),
		plan:     plan,
		progress: newProgress(par.Progress, plan),
		res:      &Result{Method: plan.Method, Plan: plan, Intercept: make([]float64, p.Y.Cols)},
	}
	w.b = dev.F64().With(ctx, w.progress.done)
	w.mem = newMemory(dev, w.b)
	return w
}

// fail names the method in an error of the backend.
func (w *work) fail(err error) error {
	return fmt.Errorf("solvers: %s: %w", w.plan.Method, err)
}

// timed runs one stage: it waits for the stage's work and takes its time.
func (w *work) timed(stage string, seconds *float64, f func() error) error {
	start := time.Now()
	w.progress.enter(stage)
	err := f()
	if err == nil {
		err = w.b.Sync()
	}
	*seconds += time.Since(start).Seconds()
	return err
}
