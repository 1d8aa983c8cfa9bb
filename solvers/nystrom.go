package solvers

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/kernels"
)

const (
	// Normal solves the normal equations of M basis functions by their Cholesky factor, in O(nM² + M³) operations and
	// one pass over the samples, or more passes for refinement if Tol is near the rounding error of the sums.
	Normal Method = "normal"
	// Falkon solves the normal equations by preconditioned conjugate gradients (Rudi, Carratino, Rosasco 2017). A
	// step is a pass over the samples and takes O(nM) operations, and the preconditioner takes O(M³).
	Falkon Method = "falkon"
)

// NystromProblem is the fit of f(x) = Σ_j β_j k(c_j, x) + b with M centers c_j. The coefficients β and b minimize
//
//	Σ_i w_i (y_i − f(x_i))² + λ βᵀ k(c, c) β
//
// as in Problem, where βᵀ k(c, c) β is ‖f‖². If every sample is a center, the solution is that of
// Problem. λ is unscaled; the λ of Rudi, Carratino and Rosasco is this λ divided by n.
//
// Kernel must be positive semidefinite or take precomputed values. SolveNystrom returns an error if a factorization
// shows that precomputed k(c, c) are indefinite.
type NystromProblem struct {
	Kernel kernels.Kernel
	Data   Rows
	// Sparse, if not nil, holds the features of the samples, and the only feature of a sample in Data is the index
	// of its row in Sparse, from 0: see RowNumbers.
	Sparse *backend.CSR[float64]
	// Centers holds the M×d centers in the form of Data. If it is empty, Choice chooses them.
	Centers   backend.Host[float64]
	Choice    CenterChoice
	Lambda    float64 // ≥ 0
	Intercept bool    // an unpenalized b; otherwise b = 0
}

// Posterior is the Gaussian process whose mean is the solution of SolveNystrom or SolveFourier.
type Posterior = stream.Posterior

// Sums holds the sums over the samples that describe a solution of SolveNystrom or SolveFourier.
type Sums = stream.Sums

// StreamParams are options of SolveNystrom and SolveFourier; the zero value suits most problems.
type StreamParams struct {
	Method   Method         // Auto, Normal or Falkon
	Memory   int64          // largest number of bytes to use on the device; 0 means all its free memory
	Progress func(Progress) // nil, or reports the progress; called by one goroutine at a time
	// Tol is the relative residual of the normal equations that every output must reach; 0 means 1e-6.
	Tol     float64
	MaxIter int // maximum number of passes over the samples; 0 means 500
	// Checkpoint makes Falkon save its state and resume from the state of an earlier call that ended early. Every
	// call then takes an additional pass to hash the samples.
	Checkpoint Checkpoint
	// Posterior adds the Posterior to the result, for O(nM²) operations, one more pass, and twice the memory. The
	// method must be Normal, and λ > 0. If UnitScale is set, s² is 1; otherwise it is estimated.
	Posterior, UnitScale bool
	// Gradient adds the gradient of the likelihood, for 3nM² + 4M³ further operations. It needs Posterior.
	Gradient bool

	samples int // number of samples for Falkon's preconditioner; only tests set it; 0 means a multiple of M
}

// StreamResult is the solution of SolveNystrom or SolveFourier. In Result, Alpha and Coef are
// empty, and Residual is the largest value over the outputs of
//
//	‖ΦᵀW(y − Φβ) − λSβ‖ / ‖ΦᵀWy‖
//
// where Φ = k(X, c) and S = k(c, c) for centers c, and S = I for Fourier features. With an intercept, Φ and y are
// centered. Residual is computed from the samples in a separate pass, which Normal omits if an upper bound from its
// sums is below Tol; Residual is then this bound.
type StreamResult struct {
	Result
	Centers     backend.Host[float64] // centers of SolveNystrom, M×d; for sparse samples their row numbers, M×1
	Frequencies backend.Host[float64] // frequencies ω of SolveFourier, M/2×d
	// Beta holds the M×t coefficients. For Fourier features, those of the cosines come before those of the sines.
	Beta backend.Host[float64]
	// Posterior is nil unless StreamParams.Posterior is set.
	Posterior *Posterior
	// Sums is nil unless Normal computed the solution and its residual in one pass.
	Sums *Sums
	// Gradient, if StreamParams.Gradient is set, holds derivatives with respect to the kernel's parameters, then ln λ,
	// as in Evidence.Gradient. For centers, they are derivatives of Posterior.Bound with fixed centers. For Fourier
	// features, they are derivatives of Posterior.Log, where each frequency is a fixed random number divided by the
	// length scale (Lázaro-Gredilla and others 2010).
	Gradient []float64
}

// SolveNystrom solves p on dev in memory that grows with M², where M is the number of centers, rather than with n. It
// reads the samples in several passes. A device with its own memory stores the samples if they fit.
//
// It returns an error for the same inputs as Solve. If it does not reach Tol, it returns a *ConvergenceError together
// with the best solution that it found.
func SolveNystrom(ctx context.Context, dev backend.Device, p NystromProblem, par StreamParams) (*StreamResult, error) {
	if p.Data != nil && p.Sparse == nil { // report the host memory of a piece of the samples and of the centers
		n, d, _ := p.Data.Dims()
		m := max(p.size(), 0)
		ctx = run.Beside(run.Packing(ctx, dev, n, d), numeric.Bytes(numeric.Elements(max(stream.PieceRows(n, m), 0)+m, max(d, 0))))
	}
	r, err := newStreamRun(ctx, dev, par, p.Plan)
	if err != nil {
		return nil, err
	}
	defer r.Mem.FreeAll()
	if p.Sparse != nil {
		if err := (Problem{Kernel: p.Kernel, Sparse: p.Sparse, Y: backend.NewHost[float64](1, 1)}).checkValues(); err != nil {
			return nil, err
		}
	}
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
	s, err := r.solve(p.Data, p.Sparse, &stream.Centers{Kernel: p.Kernel, Points: p.Points(centers), Columns: t}, q, p.Lambda, p.Intercept)
	if err != nil {
		return nil, r.fail(err)
	}
	err = r.finish(s)
	return &StreamResult{Result: *r.res, Centers: centers, Beta: s.Beta, Posterior: r.posterior, Gradient: r.gradient, Sums: s.Sums}, err
}

// Points converts h to points. The rows of h are features, or row numbers of p.Sparse.
func (p NystromProblem) Points(h backend.Host[float64]) numeric.Points {
	if p.Sparse == nil {
		return numeric.DensePoints(h)
	}
	return numeric.SparsePoints(p.Sparse.TakeRows(stream.RowNumbers(h)))
}

// size is an upper bound on M. Equal samples can make M smaller.
func (p NystromProblem) size() int {
	if p.Centers.Rows > 0 {
		return p.Centers.Rows
	}
	n, _, _ := p.Data.Dims()
	m, _ := p.Choice.sizes(n)
	return m
}

// Plan returns the plan of SolveNystrom without reading a sample.
func (p NystromProblem) Plan(dev backend.Device, par StreamParams) (Plan, error) {
	if err := checkStream(dev, p.Kernel, p.Data, p.Sparse, p.Lambda, par); err != nil {
		return Plan{}, err
	}
	n, d, t := p.Data.Dims()
	width := float64(d)
	if p.Sparse != nil {
		width = sparseFeature * float64(Problem{Sparse: p.Sparse}.width())
	}
	if precomputed, _ := kernels.IsPrecomputed(p.Kernel); !precomputed && !p.Kernel.IsPSD() {
		return Plan{}, fmt.Errorf("solvers: the kernel %v is not positive semidefinite, so that there is no ‖f‖ to penalize: use another kernel", p.Kernel)
	}
	if err := p.Choice.check(); err != nil {
		return Plan{}, err
	}
	choice := p.Choice
	if c := p.Centers; c.Rows != 0 {
		if c.Rows < 0 || c.Cols != d || c.Stride < c.Cols || len(c.Data) < (c.Rows-1)*c.Stride+c.Cols {
			return Plan{}, fmt.Errorf("solvers: centers: the shape %d×%d with stride %d and %s is invalid for samples of %s", c.Rows, c.Cols, c.Stride, count.Of(len(c.Data), "element"), count.Of(d, "feature"))
		}
		if err := numeric.DensePoints(c).CheckFinite("centers"); err != nil {
			return Plan{}, fmt.Errorf("solvers: %w", err)
		}
		if p.Sparse != nil {
			for i, row := range stream.RowNumbers(c) {
				if row < 0 || row >= n {
					return Plan{}, fmt.Errorf("solvers: centers: center %d is row %d, but x has the rows 0 to %d", i+1, row, n-1)
				}
			}
		} else if err := backend.CheckPoints(p.Kernel, "centers", c); err != nil {
			return Plan{}, fmt.Errorf("solvers: %w", err)
		}
		choice = CenterChoice{}
	}
	m := p.size()
	z := streamSizes{n: n, d: d, t: t, m: m, basis: 2 * width, whole: par.Posterior || !p.Kernel.IsPSD()}
	if p.Sparse != nil {
		z.stored = 1
	}
	return z.plan(dev, par, stage{"centers", choice.flops(n, int(width))}, func(m int) (stageBytes, basis int64) {
		c := choice
		c.Count = m
		rowBytes := p.rowBytes(dev, d)
		// The basis holds c and the product of k(c, c) and t columns.
		basis = numeric.Total(numeric.Bytes(numeric.Elements(m, t)), rowBytes(m))
		if p.Sparse != nil {
			basis = numeric.Total(basis, rowBytes(stream.PieceRows(n, m)))
		}
		return c.bytes(n, rowBytes), basis
	})
}

// rowBytes returns a function that computes the device memory of a number of rows of X, and for sparse samples also
// the memory of their copy in Go memory.
func (p NystromProblem) rowBytes(dev backend.Device, d int) func(rows int) int64 {
	if p.Sparse == nil {
		return func(rows int) int64 { return numeric.Bytes(numeric.Elements(rows, d)) }
	}
	x := numeric.SparsePoints(*p.Sparse)
	return func(rows int) int64 { return numeric.Total(x.PlacedBytes(dev.F64(), rows), x.CopyBytes(rows)) }
}
