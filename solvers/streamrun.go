package solvers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/internal/krylov"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/rowkey"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/kernels"
)

// streamRun is the state of a call of SolveNystrom or SolveFourier.
type streamRun struct {
	run.Frame
	start     time.Time
	par       StreamParams
	plan      Plan
	res       *Result
	posterior *stream.Posterior // set by solve if par.Posterior is set
	gradient  []float64         // set by solve if par.Gradient is set
}

const (
	streamTol     = 1e-6
	streamMaxIter = 500
)

func (p StreamParams) check() error {
	switch {
	case p.Memory < 0:
		return fmt.Errorf("solvers: memory must be ≥ 0 bytes, got %d", p.Memory)
	case !(p.Tol >= 0 && p.Tol < 1):
		return fmt.Errorf("solvers: the tolerance must be ≥ 0 and below 1, got %v", p.Tol)
	case p.Checkpoint.Every < 0:
		return fmt.Errorf("solvers: the time between checkpoints must be ≥ 0, got %v", p.Checkpoint.Every)
	case p.MaxIter < 0:
		return fmt.Errorf("solvers: the number of iterations must be ≥ 0, got %d", p.MaxIter)
	case p.Method != Auto && p.Method != Normal && p.Method != Falkon:
		return fmt.Errorf("solvers: no method for samples read in passes is called %q; the methods are %q and %q", p.Method, Normal, Falkon)
	}
	return nil
}

// limits returns Tol and MaxIter, or their defaults if they are 0.
func (p StreamParams) limits() (tol float64, maxIter int) {
	tol, maxIter = p.Tol, p.MaxIter
	if tol == 0 {
		tol = streamTol
	}
	if maxIter == 0 {
		maxIter = streamMaxIter
	}
	return tol, maxIter
}

// sample returns how many of the n samples Falkon uses for its preconditioner, for m centers and d features. This
// number minimizes an estimate of the time: 2m² operations for each sample used, plus falkonPasses passes over all n
// samples. To limit the memory, the number is at most max(5, m/d) times m.
func (p StreamParams) sample(n, m, d int) int {
	if p.samples > 0 {
		return min(n, p.samples)
	}
	s := elementary.Pow(2500*float64(n)/float64(m)/float64(m), 1/1.55)
	largest := max(5, float64(m)/float64(max(d, 1)))
	return min(n, int(float64(m)*min(max(s, 2), largest)))
}

// checkStream checks the rules for a problem whose samples are read in passes.
func checkStream(dev backend.Device, k kernels.Kernel, data Rows, sparse *backend.CSR[float64], lambda float64, par StreamParams) error {
	if dev == nil {
		return errors.New("solvers: no device was given")
	}
	if err := par.check(); err != nil {
		return err
	}
	if err := checkRows(data); err != nil {
		return err
	}
	if !(lambda >= 0) || math.IsInf(lambda, 1) {
		return fmt.Errorf("solvers: lambda must be a finite number ≥ 0, got %v", lambda)
	}
	switch {
	case par.Posterior && !(lambda > 0):
		return message.Errorf("solvers: the variance of the noise is proportional to lambda, so that a posterior needs lambda > 0: {raise $lambda}")
	case par.Gradient && !par.Posterior:
		return errors.New("solvers: Gradient differentiates the likelihood of the posterior: also set Posterior")
	case par.Posterior && par.Method == Falkon:
		return fmt.Errorf("solvers: the method %s does not compute the matrices of the posterior: use %s", Falkon, Normal)
	case par.Posterior && par.Checkpoint.Dir != "":
		return fmt.Errorf("solvers: checkpoint: the method %s, which computes the posterior, writes no checkpoint: leave it out", Normal)
	}
	if k == nil {
		return errors.New("solvers: the kernel is missing")
	}
	n, d, _ := data.Dims()
	if sparse != nil {
		if err := sparse.Check(); err != nil {
			return fmt.Errorf("solvers: x: %w", err)
		}
		if sparse.Rows != n || d != 1 {
			return fmt.Errorf("solvers: for %s of sparse samples, X must hold the indices of the rows: it is %d×%d, not %d×1", count.Of(sparse.Rows, "row"), n, d, sparse.Rows)
		}
		d = sparse.Cols
	}
	if err := k.Check(d); err != nil {
		return fmt.Errorf("solvers: %w", err)
	}
	return nil
}

// newStreamRun makes the plan and starts the run.
func newStreamRun(ctx context.Context, dev backend.Device, par StreamParams, planOf func(backend.Device, StreamParams) (Plan, error)) (*streamRun, error) {
	start := time.Now()
	plan, err := planOf(dev, par)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("solvers: %w", context.Cause(ctx))
	}
	run.ReportPlan(ctx, dev, plan.Bytes)
	return &streamRun{
		Frame: run.New(ctx, dev, newProgress(par.Progress, plan)),
		start: start,
		par:   par,
		plan:  plan,
		res:   &Result{Method: plan.Method, Plan: plan.public()},
	}, nil
}

// fail adds the name of the method to an error, unless the error already names a sample.
func (r *streamRun) fail(err error) error {
	var sample stream.SampleError
	if errors.As(err, &sample) {
		return err
	}
	return fmt.Errorf("solvers: %s: %w", r.plan.Method, err)
}

// solve computes β by the planned method. q holds the samples for Falkon's preconditioner.
func (r *streamRun) solve(data Rows, sparse *backend.CSR[float64], phi stream.Basis, q stream.Sampled, lambda float64, intercept bool) (*stream.Solution, error) {
	saved, err := r.checkpointer(data, sparse, phi, lambda, intercept)
	if err != nil {
		return nil, err
	}
	source := sourceOf(data)
	source.Sparse = sparse
	w, err := stream.NewEquations(r.Ctx, r.B, r.Mem, source, r.plan.samples, phi, stream.Penalty{Lambda: lambda, Intercept: intercept})
	if err != nil {
		return nil, err
	}
	if saved != nil {
		w.Checkpoints = &stream.Checkpoints{Due: saved.due, Save: func(s stream.State) error {
			return saved.write(&state{Passes: &s.Pass, Iters: s.Iters, best: s.Best, State: krylov.State{X: s.X, R: s.R, P: s.P}})
		}}
		if st := saved.takeState(); st != nil {
			w.Checkpoints.Resumed = &stream.State{Pass: *st.Passes, Iters: st.Iters, Best: st.best, X: st.X, R: st.R, P: st.P}
		}
	}
	seconds := map[string]*float64{"gram": &r.res.Seconds.Gram, "factor": &r.res.Seconds.Factor}
	timed := func(stage string, body func() error) error { return r.Timed(stage, seconds[stage], body) }
	var pre *stream.Preconditioner
	centers, nystrom := phi.(*stream.Centers)
	switch {
	case r.plan.Method == Falkon:
		pre, err = w.Falkon(timed, centers, q)
	case nystrom && (r.par.Posterior || !centers.Kernel.IsPSD()):
		pre, err = w.FullFalkon(timed, centers, r.par.Gradient)
	default:
		pre, err = w.Normal(timed)
	}
	if err != nil {
		return nil, err
	}
	r.res.Jitter, r.res.Notes = pre.Jitter, append(r.res.Notes, pre.Notes...)
	var s *stream.Solution
	r.res.Constant = w.Constant()
	err = r.Timed("solve", &r.res.Seconds.Solve, func() error {
		tol, maxIter := r.par.limits()
		var err error
		if s, err = w.Iterate(pre, tol, maxIter); err == nil && r.par.Posterior && s.Reason == "" {
			r.posterior, err = w.Posterior(pre, s, r.par.UnitScale)
			if err == nil && r.par.Gradient {
				r.gradient, err = w.Gradient(pre, s, r.posterior)
			}
		}
		return err
	})
	if err == nil && s.Reason == "" {
		err = saved.remove()
	}
	return s, err
}

// checkpointer returns nil unless Falkon must write checkpoints. It reads the samples once to hash them.
func (r *streamRun) checkpointer(data Rows, sparse *backend.CSR[float64], phi stream.Basis, lambda float64, intercept bool) (*checkpointer, error) {
	if r.par.Checkpoint.Dir == "" || r.plan.Method != Falkon {
		return nil, nil
	}
	h := sha256.New()
	tol, _ := r.par.limits()
	n, d, t := data.Dims()
	fmt.Fprintf(h, "%s%s %d %d %d %x %v %x %d\n", checkpointMagic, r.plan.Method, n, d, t, lambda, intercept, tol, r.par.samples)
	fmt.Fprintf(h, "centers %v\n", phi.(*stream.Centers).Kernel) // Falkon's basis is always *stream.Centers
	hashPoints(h, phi.(*stream.Centers).Points)
	if sparse != nil {
		hashPoints(h, numeric.SparsePoints(*sparse))
	}
	var buffer []byte
	err := data.Pass(r.Ctx, false, func(b Block) error {
		for i := range b.X.Rows {
			buffer = appendFloats(appendFloats(buffer[:0], b.X.Row(i)), b.Y.Row(i))
			weight := 1.0
			if b.Weights != nil {
				weight = b.Weights[i]
			}
			h.Write(appendFloats(buffer, []float64{weight}))
			if i%4096 == 0 && r.Ctx.Err() != nil {
				return context.Cause(r.Ctx)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return openCheckpointer(r.par.Checkpoint, hex.EncodeToString(h.Sum(nil)), phi.Size(), t, r.res, func(st *state) error { return st.checkPasses(phi.Size(), t) })
}

// finish sets the Result and returns an error if Tol was not reached.
func (r *streamRun) finish(s *stream.Solution) error {
	r.res.Intercept, r.res.Residual, r.res.Iters = s.Bias, s.Residual, s.Iters
	r.res.Bytes = r.Mem.PeakBytes()
	if r.posterior != nil {
		r.res.Bytes += numeric.Bytes(int64(len(r.posterior.Factors.Data)))
	}
	r.res.Seconds.Total = time.Since(r.start).Seconds()
	if err := context.Cause(r.Ctx); err != nil {
		return r.fail(err)
	}
	if s.Reason != "" {
		tol, _ := r.par.limits()
		return &ConvergenceError{Tol: tol, Reason: s.Reason, Result: r.res}
	}
	r.Progress.Finish()
	return nil
}

// Rows are samples that are read in passes, block by block, and need not fit in memory: see InMemory.
type Rows interface {
	// Dims returns the number of samples, of features and of outputs.
	Dims() (n, d, t int)
	// Pass reads all samples in order, divided into blocks, and calls use for each block. It returns the first
	// error of reading or of use, or the cause of ctx if ctx is done. Every pass reads the same samples, but the
	// blocks may differ. use must not change or retain a block. If keyed is true, blocks must hold Keys, unless the
	// samples have no keys.
	Pass(ctx context.Context, keyed bool, use func(b Block) error) error
}

// Block is a block of samples of a Rows.
type Block struct {
	X, Y    backend.Host[float64] // r×d and r×t
	Weights []float64             // weights of the rows; nil means all 1
	// Keys holds a key for each row; equal samples have equal keys. nil means that the solver computes keys from
	// the numbers in X. The keys and a seed determine the samples that are drawn, regardless of their order.
	Keys []uint64
}

// InMemory returns Rows that refer to the matrices x and y and never change them. weights and keys may be nil.
func InMemory(x, y backend.Host[float64], weights []float64, keys []uint64) Rows {
	return inMemory{x, y, weights, keys}
}

// RowNumbers returns the Rows for NystromProblem.Sparse = x: their only feature is the index of a row of x, from 0.
// If keys is nil, RowNumbers computes keys from the elements of each row.
func RowNumbers(x backend.CSR[float64], y backend.Host[float64], weights []float64, keys []uint64) Rows {
	numbers := backend.NewHost[float64](x.Rows, 1)
	for i := range numbers.Data {
		numbers.Data[i] = float64(i)
	}
	if keys == nil {
		keys = make([]uint64, x.Rows)
		for i := range keys {
			columns, values := x.Row(i)
			keys[i] = rowkey.Of(values)
			for _, c := range columns {
				keys[i] = rowkey.Join(keys[i], uint64(c))
			}
		}
	}
	return InMemory(numbers, y, weights, keys)
}

// IsInMemory reports whether data was made by InMemory or RowNumbers.
func IsInMemory(data Rows) bool {
	_, ok := data.(inMemory)
	return ok
}

type inMemory struct {
	x, y    backend.Host[float64]
	weights []float64
	keys    []uint64
}

func (m inMemory) Dims() (n, d, t int) { return m.x.Rows, m.x.Cols, m.y.Cols }

func (m inMemory) Pass(ctx context.Context, _ bool, use func(b Block) error) error {
	return use(Block{X: m.x, Y: m.y, Weights: m.weights, Keys: m.keys})
}

// sourceOf converts data to the interface of package stream.
func sourceOf(data Rows) stream.Source {
	n, d, t := data.Dims()
	return stream.Source{N: n, D: d, T: t, Pass: func(ctx context.Context, keyed bool, use func(b stream.Piece) error) error {
		return data.Pass(ctx, keyed, func(b Block) error { return use(stream.Piece(b)) })
	}}
}

// checkRows checks data without a pass over the samples.
func checkRows(data Rows) error {
	if data == nil {
		return errors.New("solvers: the samples are missing")
	}
	if m, ok := data.(inMemory); ok {
		if m.keys != nil && len(m.keys) != m.x.Rows {
			return fmt.Errorf("solvers: there are %s for %s: give one key for each row", count.Of(len(m.keys), "key"), count.Of(m.x.Rows, "row"))
		}
		return Problem{Kernel: anyKernel, X: m.x, Y: m.y, Weights: m.weights}.checkShapes()
	}
	if n, d, t := data.Dims(); n <= 0 || d <= 0 || t <= 0 {
		return fmt.Errorf("solvers: the samples are empty: %s, %s, %s", count.Of(n, "row"), count.Of(d, "feature"), count.Of(t, "output"))
	}
	return nil
}

var anyKernel kernels.Kernel = kernels.Linear{}

// streamSizes holds the properties that determine the plan of a problem whose samples are read in passes.
type streamSizes struct {
	n, d, t, m int
	basis      float64 // counted operations for one value of Φ
	stored     stream.Stored
	whole      bool // whether Normal factors S = k(c, c) = TᵀT and T⁻ᵀHT⁻¹ rather than H = ΦᵀWΦ + λS
	posterior  bool
	gradient   bool
}

const (
	// valueCost is the part of the estimated time of one basis value that its counted operations do not include.
	valueCost = 100
)

// falkonPasses is the expected number of products with H = ΦᵀWΦ + λS in Falkon, for s samples per center. On
// nycflights13 with n = 50,000, M = 1000, λ = 1, residual 1e-6, s = 1, 2, 5 and 10 took 62, 40, 24 and 18 products.
func falkonPasses(s float64) float64 { return 3 + 60*elementary.Pow(max(s, 0.1), -0.55) }

// streamEstimate is the estimated cost and memory of a method.
type streamEstimate struct {
	method Method
	stages []stage
	cost   float64
	bytes  int64
}

// pass returns the counted operations and the estimated time of one product with the matrix of the normal equations.
func (z streamSizes) pass() (flops, cost float64) {
	values := float64(z.n) * float64(z.m)
	thin := 4 * float64(z.t)
	return values * (z.basis + thin), values * (z.basis + valueCost + min(thin/rateThin, thin+200))
}

// estimate returns the estimate for Normal or Falkon. sample is the number of samples for the preconditioner, and
// extraBytes the memory of the basis.
func (z streamSizes) estimate(m Method, sample int, extraBytes int64) streamEstimate {
	flops, cost := z.pass()
	matrix, gram, factor := numeric.Bytes(numeric.Elements(z.m, z.m)), flop.Syrk(z.m, z.n), flop.Potrf(z.m)
	passes, solve := 0.0, 2*flop.Symm(z.m, z.t) // Normal usually needs no iterations
	if m == Falkon {
		matrix, passes = stream.FalkonBytes(z.m), falkonPasses(float64(sample)/float64(z.m))
		gram, solve = 0, passes*flops
		factor += flop.Syrk(z.m, sample) + flop.Potrf(z.m) + flop.Trsm(z.m, sample)
	}
	if m == Normal && z.whole {
		matrix, passes = stream.FalkonBytes(z.m), 1
		gram, solve, factor = gram+flop.Trsm(z.m, z.n), passes*flops, 2*factor
	}
	if z.posterior {
		extraBytes = numeric.Total(extraBytes, stream.PosteriorBytes(z.n, z.m, z.t))
		passes, solve = passes+1, solve+flops
	}
	if z.gradient {
		extraBytes = numeric.Total(extraBytes, stream.GradientBytes(z.n, z.m, z.d, z.t, z.whole))
		passes, solve = passes+1, solve+flops+3*flop.Syrk(z.m, z.n)
	}
	return streamEstimate{
		method: m,
		stages: []stage{{"gram", flops + gram}, {"factor", factor}, {"solve", solve}},
		cost:   (1+passes)*cost + gram/rateProduct + factor/ratePotrf,
		bytes:  numeric.Total(extraBytes, stream.Bytes(z.n, z.m, z.d, z.t, z.stored), matrix, stream.IterationBytes(z.m, z.t)),
	}
}

// plan chooses the method. centerStage is the stage that computes the basis. extra(m) returns the bytes of this
// stage, and of the basis while the method runs, for m basis functions.
func (z streamSizes) plan(dev backend.Device, par StreamParams, centerStage stage, extra func(m int) (stageBytes, basis int64)) (Plan, error) {
	available := run.Available(dev, par.Memory)
	if rated, ok := dev.(flop.Rated); z.stored == 0 && ok && rated.Rates().Bytes > 0 {
		z.stored = 2 // the device does not use Go memory
	}
	z.stored = max(z.stored, 1)
	z.posterior, z.gradient = par.Posterior, par.Gradient
	estimateFor := func(method Method, m int) streamEstimate {
		s := z
		s.m = m
		stageBytes, basis := extra(m)
		e := s.estimate(method, par.sample(z.n, m, z.d), basis)
		e.bytes = max(e.bytes, stageBytes)
		return e
	}
	normal, falkon := estimateFor(Normal, z.m), estimateFor(Falkon, z.m)
	best, reason := normal, "requested"
	switch {
	case par.Posterior:
		if par.Method == Auto {
			reason = "the method that computes the posterior"
		}
	case par.Method == Normal && par.Checkpoint.Dir != "":
		return Plan{}, noCheckpoint(Normal, Falkon)
	case par.Method == Auto && par.Checkpoint.Dir != "":
		best, reason = falkon, "the method that writes checkpoints"
	case par.Method == Falkon:
		best = falkon
	case par.Method == Auto:
		if falkon.cost < normal.cost && falkon.bytes <= run.Allowed(dev, par.Memory) {
			best = falkon
		}
		reason = fmt.Sprintf("cheaper: %s %.3g (nm² + m³/3), %s %.3g %s", Normal, normal.cost, Falkon, falkon.cost, operations)
	}
	if z.stored == 2 {
		z.stored = stream.AllPieces
		if bytes := estimateFor(best.method, z.m).bytes; bytes <= available {
			best.bytes, reason = bytes, reason+"; the samples stay on the device"
		} else {
			z.stored = 2
		}
	}
	plan := Plan{Method: best.method, Reason: reason, Bytes: best.bytes, samples: z.stored, stages: append([]stage{centerStage}, best.stages...), rows: z.n, available: available}
	for _, s := range plan.stages {
		plan.Flops += s.flops
	}
	plan.bytesOf = func(int) int64 { return best.bytes }
	if plan.Bytes <= available {
		return plan, nil
	}
	largest := run.Largest(z.m, func(m int) int64 { return estimateFor(best.method, m).bytes }, available)
	advice := "{$memory|use fewer features or outputs}"
	if largest > 0 {
		advice = fmt.Sprintf("{use at most %d of the %s|$memory}", largest, count.Of(z.m, "function"))
	}
	return plan, &BudgetError{Method: best.method, Rows: z.n, Needed: plan.Bytes, Available: available, Advice: advice}
}
