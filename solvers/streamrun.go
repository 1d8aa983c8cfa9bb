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
	"github.com/mercer-go/mercer/internal/krylov"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/kernels"
)

// streamRun is one SolveNystrom or SolveFourier in progress: what they share.
type streamRun struct {
	run.Frame
	start time.Time
	par   StreamParams
	plan  Plan
	res   *Result
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
	case p.Sample < 0:
		return fmt.Errorf("solvers: the number of samples for the preconditioner must be ≥ 0, got %d", p.Sample)
	case p.Checkpoint.Every < 0:
		return fmt.Errorf("solvers: the time between checkpoints must be ≥ 0, got %v", p.Checkpoint.Every)
	case p.MaxIter < 0:
		return fmt.Errorf("solvers: the number of iterations must be ≥ 0, got %d", p.MaxIter)
	case p.Method != Auto && p.Method != Normal && p.Method != Falkon:
		return fmt.Errorf("solvers: no method for data in passes is called %q: there are %q and %q", p.Method, Normal, Falkon)
	}
	return nil
}

// limits returns Tol and MaxIter, or what stands for 0.
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

// sample is the number of samples for Falkon's preconditioner, of d features.
// More of them cost 2M² each and save passes over all n: with s samples for each
// center, falkonPasses(s) are needed, and the sum of both is least where
// s^1.55 = 2500 n/M². What they take on the host stays below M² numbers.
func (p StreamParams) sample(n, m, d int) int {
	if p.Sample > 0 {
		return min(n, p.Sample)
	}
	s := math.Pow(2500*float64(n)/float64(m)/float64(m), 1/1.55)
	largest := max(5, float64(m)/float64(max(d, 1)))
	return min(n, int(float64(m)*min(max(s, 2), largest)))
}

// checkStream holds the rules of a problem whose samples come in passes.
func checkStream(dev backend.Device, k kernels.Kernel, data Rows, lambda float64, par StreamParams) error {
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
	if k == nil {
		return errors.New("solvers: the kernel is missing")
	}
	_, d, _ := data.Dims()
	if err := k.Check(d); err != nil {
		return fmt.Errorf("solvers: %w", err)
	}
	return nil
}

// newStreamRun begins when the problem's plan can be had.
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
		res:   &Result{Method: plan.Method, Plan: plan},
	}, nil
}

// fail names the method in an error that is not about the samples.
func (r *streamRun) fail(err error) error {
	var about stream.SampleError
	if errors.As(err, &about) {
		return err
	}
	return fmt.Errorf("solvers: %s: %w", r.plan.Method, err)
}

// solve finds β by the planned method; q is what Falkon's preconditioner is made
// of.
func (r *streamRun) solve(data Rows, phi stream.Basis, q stream.Sampled, lambda float64, intercept bool) (*stream.Solution, error) {
	saved, err := r.checkpointer(data, phi, lambda, intercept)
	if err != nil {
		return nil, err
	}
	w, err := stream.NewEquations(r.Ctx, r.B, r.Mem, sourceOf(data), phi, lambda, intercept)
	if err != nil {
		return nil, err
	}
	if saved != nil {
		w.Checkpoints = &stream.Checkpoints{Due: saved.due, Save: func(s stream.State) error {
			return saved.write(&state{Passes: &s.Pass, Iters: s.Iters, best: s.Best, State: krylov.State{X: s.X, R: s.R, P: s.P}})
		}}
		if st := saved.take(); st != nil {
			w.Checkpoints.Resumed = &stream.State{Pass: *st.Passes, Iters: st.Iters, Best: st.best, X: st.X, R: st.R, P: st.P}
		}
	}
	seconds := map[string]*float64{"gram": &r.res.Seconds.Gram, "factor": &r.res.Seconds.Factor}
	timed := func(stage string, body func() error) error { return r.Timed(stage, seconds[stage], body) }
	var pre *stream.Preconditioner
	if r.plan.Method == Normal {
		pre, err = w.Normal(timed)
	} else {
		pre, err = w.Falkon(timed, phi.(*stream.Centers), q)
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
		s, err = w.Iterate(pre, tol, maxIter)
		return err
	})
	if err == nil && s.Reason == "" {
		err = saved.done()
	}
	return s, err
}

// checkpointer returns what writes the checkpoints; nil when none are asked for, or the
// method is direct. It reads the samples once, for their hash.
func (r *streamRun) checkpointer(data Rows, phi stream.Basis, lambda float64, intercept bool) (*checkpointer, error) {
	if r.par.Checkpoint.Dir == "" || r.plan.Method != Falkon {
		return nil, nil
	}
	h := sha256.New()
	tol, _ := r.par.limits()
	n, d, t := data.Dims()
	fmt.Fprintf(h, "%s%s %d %d %d %x %v %x %d\n", checkpointMagic, r.plan.Method, n, d, t, lambda, intercept, tol, r.par.Sample)
	fmt.Fprintf(h, "centers %v\n", phi.(*stream.Centers).Kernel) // no other basis goes with Falkon
	hashHost(h, phi.(*stream.Centers).Points)
	var buffer []byte
	err := data.Pass(r.Ctx, func(b Block) error {
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

// finish fills the Result, and says when Tol was not reached.
func (r *streamRun) finish(s *stream.Solution) error {
	r.res.Intercept, r.res.Residual, r.res.Iters = s.Bias, s.Residual, s.Iters
	r.res.Bytes = r.Mem.PeakBytes()
	r.res.Seconds.Total = time.Since(r.start).Seconds()
	if err := context.Cause(r.Ctx); err != nil {
		return r.fail(err)
	}
	if s.Reason != "" {
		tol, _ := r.par.limits()
		return &ConvergenceError{Method: r.plan.Method, Residual: s.Residual, Tol: tol, Iters: s.Iters, Reason: s.Reason, Result: r.res}
	}
	r.Progress.Finish()
	return nil
}
