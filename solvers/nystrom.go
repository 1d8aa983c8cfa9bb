package solvers

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/kernels"
)

const (
	// Normal solves the normal equations of M functions by their Cholesky
	// factor: O(nM² + M³), one pass over the samples, and one for each step of
	// refinement where Tol is near the rounding of the sums.
	Normal Method = "normal"
	// Falkon solves them by conjugate gradients (Rudi, Carratino, Rosasco
	// 2017): O(nM) a pass, one pass a step, and O(M³) for the preconditioner.
	Falkon Method = "falkon"
)

// NystromProblem is f(x) = Σ_j β_j k(c_j, x) + b with M centers c_j and the β
// and b that minimize
//
//	Σ_i w_i (y_i − f(x_i))² + λ βᵀ k(c, c) β
//
// so that ‖f‖² is penalized as in Problem, of which it is the solution when every
// sample is a center. λ is unscaled: Falkon's own is λ/n.
type NystromProblem struct {
	Kernel kernels.Kernel
	Data   Rows
	// Centers, M×d, are given or, where they are empty, chosen by Choice.
	Centers   backend.Host[float64]
	Choice    CenterChoice
	Lambda    float64 // ≥ 0
	Intercept bool    // an unpenalized b; otherwise b = 0
}

// StreamParams are the choices of a caller of SolveNystrom and SolveFourier;
// the zero value suits most problems.
type StreamParams struct {
	Method   Method         // Auto, Normal or Falkon
	Memory   int64          // bytes that may be taken on the device; 0: all that it has free
	Progress func(Progress) // nil, or called as the work is done; called by one goroutine at a time
	// Tol is the relative residual of the normal equations that every output
	// must reach; 0 is 1e-6.
	Tol     float64
	MaxIter int // passes over the samples; 0 is 500
	Sample  int // samples of which Falkon's preconditioner is made; 0 chooses, some times M
	// Checkpoint lets Falkon go on where an earlier call was ended, after making
	// its preconditioner again; it costs a pass, for the hash of the samples.
	Checkpoint Checkpoint
}

// NystromResult is a solved NystromProblem. Of Result, Alpha and Coef are empty,
// and Residual is the largest over the outputs of
//
//	‖ΦᵀW(y − Φβ) − λSβ‖ / ‖ΦᵀWy‖,  Φ = k(X, c), S = k(c, c)
//
// Φ and y centered when there is an intercept. It is computed from the samples in
// a pass of its own, or by Normal from the sums over them, a bound of their rounding
// included, where that is below Tol.
type NystromResult struct {
	Result
	Centers backend.Host[float64] // M×d
	Beta    backend.Host[float64] // M×t
}

// SolveNystrom solves p on dev in passes over its samples; it keeps neither them
// nor k(X, c). What it takes grows with M² and not with n.
//
// It refuses what Solve refuses in the same way. When Tol is not reached it
// returns a *ConvergenceError together with the best solution that it found.
func SolveNystrom(ctx context.Context, dev backend.Device, p NystromProblem, par StreamParams) (*NystromResult, error) {
	r, err := newStreamRun(ctx, dev, par, p.Plan)
	if err != nil {
		return nil, err
	}
	defer r.Mem.FreeAll()
	n, d, t := p.Data.Dims()

	var centers backend.Host[float64]
	var q stream.Sampled
	err = r.Timed("centers", &r.res.Seconds.Gram, func() error {
		var err error
		count := 0
		if r.plan.Method == Falkon {
			count = par.sample(n, p.size(), d)
		}
		centers, q, err = p.choose(r, count)
		return err
	})
	if err != nil {
		return nil, r.fail(err)
	}
	s, err := r.solve(p.Data, &stream.Centers{Kernel: p.Kernel, Points: centers, Columns: t}, q, p.Lambda, p.Intercept)
	if err != nil {
		return nil, r.fail(err)
	}
	err = r.finish(s)
	return &NystromResult{Result: *r.res, Centers: centers, Beta: s.Beta}, err
}

// size is M, or more where samples are repeated.
func (p NystromProblem) size() int {
	if p.Centers.Rows > 0 {
		return p.Centers.Rows
	}
	n, _, _ := p.Data.Dims()
	m, _ := p.Choice.sizes(n)
	return m
}

// Plan returns what SolveNystrom would do and take, without reading a sample.
func (p NystromProblem) Plan(dev backend.Device, par StreamParams) (Plan, error) {
	if err := checkStream(dev, p.Kernel, p.Data, p.Lambda, par); err != nil {
		return Plan{}, err
	}
	n, d, t := p.Data.Dims()
	if !p.Kernel.IsPSD() {
		return Plan{}, fmt.Errorf("solvers: the kernel %v is not positive semidefinite, so that there is no ‖f‖ to penalize: use another", p.Kernel)
	}
	if err := p.Choice.check(); err != nil {
		return Plan{}, err
	}
	choice := p.Choice
	if c := p.Centers; c.Rows != 0 {
		if c.Rows < 0 || c.Cols != d || c.Stride < c.Cols || len(c.Data) < (c.Rows-1)*c.Stride+c.Cols {
			return Plan{}, fmt.Errorf("solvers: centers: %d×%d with stride %d and %d elements do not fit %s", c.Rows, c.Cols, c.Stride, len(c.Data), count.Of(d, "feature"))
		}
		if err := checkFinite(context.Background(), "centers", c); err != nil {
			return Plan{}, err
		}
		if err := backend.CheckPoints(p.Kernel, "centers", c); err != nil {
			return Plan{}, fmt.Errorf("solvers: %w", err)
		}
		choice = CenterChoice{}
	}
	m := p.size()
	z := streamSizes{n: n, d: d, t: t, m: m, basis: 2 * float64(d)}
	return z.plan(dev, par, stage{"centers", choice.flops(n, d)}, func(m int) (alone, basis int64) {
		c := choice
		c.Count = m
		return c.bytes(n, d), numeric.Bytes(numeric.Elements(m, d+t)) // the basis: c and a product with k(c, c)
	})
}
