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
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
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
	var about sampleError
	if errors.As(err, &about) {
		return err
	}
	return fmt.Errorf("solvers: %s: %w", r.plan.Method, err)
}

// solve finds β by the planned method; q is what Falkon's preconditioner is made
// of.
func (r *streamRun) solve(data Rows, phi basis, q sampled, lambda float64, intercept bool) (*solution, error) {
	saved, err := r.checkpointer(data, phi, lambda, intercept)
	if err != nil {
		return nil, err
	}
	w, err := newStreamed(r.Ctx, r.B, r.Mem, data, phi, lambda, intercept)
	if err != nil {
		return nil, err
	}
	w.checkpointer = saved
	var pre krylov.Preconditioner[float64]
	var sums *keptSums
	if r.plan.Method == Normal {
		pre, sums, err = r.normal(w)
	} else {
		pre, err = r.falkon(w, phi.(*centered), q)
	}
	if err != nil {
		return nil, err
	}
	var s *solution
	r.res.Constant = w.feed.constant()
	err = r.Timed("solve", &r.res.Seconds.Solve, func() error {
		tol, maxIter := r.par.limits()
		var err error
		s, err = w.iterate(pre, sums, tol, maxIter)
		return err
	})
	if err == nil && s.reason == "" {
		err = saved.done()
	}
	return s, err
}

// checkpointer returns what writes the checkpoints; nil when none are asked for, or the
// method is direct. It reads the samples once, for their hash.
func (r *streamRun) checkpointer(data Rows, phi basis, lambda float64, intercept bool) (*checkpointer, error) {
	if r.par.Checkpoint.Dir == "" || r.plan.Method != Falkon {
		return nil, nil
	}
	h := sha256.New()
	tol, _ := r.par.limits()
	n, d, t := data.Dims()
	fmt.Fprintf(h, "%s%s %d %d %d %x %v %x %d\n", checkpointMagic, r.plan.Method, n, d, t, lambda, intercept, tol, r.par.Sample)
	phi.(*centered).hash(h) // no other basis goes with Falkon
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
	return openCheckpointer(r.par.Checkpoint, hex.EncodeToString(h.Sum(nil)), phi.size(), t, r.res, func(st *state) error { return st.checkPasses(phi.size(), t) })
}

// normal sums H in the lower triangle of a matrix and factors it. H of functions
// that are nearly dependent is singular to working precision; what is added to
// its diagonal for the factor is no more than its rounding, and the refinement
// takes it out again. Should the factor fail yet, H is summed again with more. H itself
// is kept above the diagonal.
func (r *streamRun) normal(w *streamed) (krylov.Preconditioner[float64], *keptSums, error) {
	a, err := r.Mem.New(w.m, w.m)
	if err != nil {
		return nil, nil, err
	}
	sums := &keptSums{a: a}
	const tries = 3
	jitter := 4 * numeric.Epsilon // of the trace
	for try := 1; ; try++ {
		err := r.Timed("gram", &r.res.Seconds.Gram, func() error {
			w.basis.penalty(a, w.lambda)
			return w.first(a)
		})
		if err != nil {
			return nil, nil, err
		}
		err = r.Timed("factor", &r.res.Seconds.Factor, func() error {
			var err error
			if sums.diag, err = numeric.Diagonal(w.b, a); err != nil {
				return err
			}
			if err := numeric.Mirror(w.b, a); err != nil {
				return err
			}
			r.res.Jitter = jitter * numeric.Trace(sums.diag)
			w.b.AddDiag([]float64{r.res.Jitter}, a)
			if err := w.b.Potrf(backend.Lower, a); err != nil {
				return err
			}
			sums.own, err = numeric.Diagonal(w.b, a)
			return err
		})
		var pivot *backend.PivotError
		switch {
		case err == nil:
			return factored{w.b, a}, sums, nil
		case !errors.As(err, &pivot):
			return nil, nil, err
		case numeric.Overflowed(pivot):
			return nil, nil, numeric.ExplainPivot(pivot, "the normal equations are not finite at function %d: values overflow: scale the features and targets down", pivot.Index+1)
		case try == tries && notPSD(w.basis) != nil: // λS has negative eigenvalues too
			return nil, nil, numeric.ExplainPivot(pivot, "the normal equations are not positive definite at function %d (pivot %.3g): %s", pivot.Index+1, pivot.Value, numeric.IndefiniteAdvice(notPSD(w.basis)))
		case try == tries:
			return nil, nil, numeric.ExplainPivot(pivot, "the normal equations are not positive definite at function %d (pivot %.3g): {raise $lambda|use fewer $centers}", pivot.Index+1, pivot.Value)
		}
		r.res.Notes = append(r.res.Notes, fmt.Sprintf("the factor failed at function %d with %.3g added to the diagonal; the samples were read again", pivot.Index+1, r.res.Jitter))
		jitter *= 1000
	}
}

// notPSD returns the kernel of a basis where that is not positive semidefinite by
// construction, and nil otherwise.
func notPSD(phi basis) kernels.Kernel {
	if c, ok := phi.(*centered); ok && !c.kernel.IsPSD() {
		return c.kernel
	}
	return nil
}

// falkon sums z in a first pass and makes the preconditioner.
func (r *streamRun) falkon(w *streamed, c *centered, q sampled) (krylov.Preconditioner[float64], error) {
	err := r.Timed("gram", &r.res.Seconds.Gram, func() error { return w.first(nil) })
	if err != nil {
		return nil, err
	}
	var f *falkon
	err = r.Timed("factor", &r.res.Seconds.Factor, func() error {
		var err error
		f, r.res.Jitter, err = newFalkon(w, c, q)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// finish fills the Result, and says when Tol was not reached.
func (r *streamRun) finish(s *solution) error {
	r.res.Intercept, r.res.Residual, r.res.Iters = s.bias, s.residual, s.iters
	r.res.Bytes = r.Mem.PeakBytes()
	r.res.Seconds.Total = time.Since(r.start).Seconds()
	if err := context.Cause(r.Ctx); err != nil {
		return r.fail(err)
	}
	if s.reason != "" {
		tol, _ := r.par.limits()
		return &ConvergenceError{Method: r.plan.Method, Residual: s.residual, Tol: tol, Iters: s.iters, Reason: s.reason, Result: r.res}
	}
	r.Progress.Finish()
	return nil
}
