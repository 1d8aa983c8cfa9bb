package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/stream"
)

// Equations are the normal equations of f(x) = φ(x)ᵀβ whose sums over the samples were computed
// elsewhere, such as on many machines:
//
//	(G + λS) β = z,  G = ΦᵀWΦ,  z = ΦᵀWy
//
// SolveNystrom (S = k(c, c)), SolveFourier (S = I) and the method Primal (Φ = X, S = I) solve the
// same equations; with an intercept Φ and y are centered by their weighted means. λ is unscaled.
type Equations struct {
	Gram    backend.Host[float64] // G, M×M; its lower triangle is read
	Right   backend.Host[float64] // z, M×t
	Penalty backend.Host[float64] // S, M×M, its lower triangle; without rows S = I
	Lambda  float64               // ≥ 0
}

// EquationsResult is the solution of Equations.
type EquationsResult struct {
	Beta     backend.Host[float64] // M×t
	Residual float64               // the largest ‖z − (G + λS)β‖ / ‖z‖ of an output
	Jitter   float64               // added to the diagonal of the factor; the solution does not contain it
	Iters    int                   // steps of refinement
	Notes    []string              // remarks for a user
}

// equationSteps bounds the steps of refinement. Each takes O(M²); refinement ends when a step
// does not halve the residual.
const equationSteps = 20

// SolveEquations solves e on dev by the Cholesky factor of G + λS and steps of refinement with
// the residual in float64: O(M³) operations, and memory for 2M² + 3Mt numbers. Of par it uses
// Memory and Tol.
//
// If the factor is singular to working precision, its diagonal is increased as for Normal by no
// more than its rounding error, 4ε times the trace, or 1000 times that if the factorization fails
// again. Refinement removes the effect. Errors are those of SolveNystrom; e is not modified.
func SolveEquations(ctx context.Context, dev backend.Device, e Equations, par StreamParams) (*EquationsResult, error) {
	if err := e.check(ctx, dev, par); err != nil {
		return nil, err
	}
	m, t := e.Right.Rows, e.Right.Cols
	b := dev.F64().With(ctx, nil)
	mem := run.NewArena(dev, b)
	defer mem.FreeAll()
	h, err := mem.New(m, m)
	if err != nil {
		return nil, failEquations(err)
	}
	l, err := mem.New(m, m)
	if err != nil {
		return nil, failEquations(err)
	}
	if err := b.Upload(h, e.sum()); err != nil {
		return nil, failEquations(err)
	}
	res := &EquationsResult{Beta: backend.NewHost[float64](m, t)}
	if err := e.factor(b, h, l, res); err != nil {
		return nil, failEquations(err)
	}
	tol, _ := par.limits()
	if err := e.refine(b, mem, h, stream.Factored{B: b, L: l}, tol, res); err != nil {
		return nil, failEquations(err)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, failEquations(err)
	}
	if !(res.Residual <= tol) {
		return res, &ConvergenceError{Method: Normal, Residual: res.Residual, Tol: tol, Iters: res.Iters, Reason: "rounding error prevents further progress",
			Result: &Result{Method: Normal, Coef: res.Beta, Residual: res.Residual, Jitter: res.Jitter, Iters: res.Iters}}
	}
	return res, nil
}

func failEquations(err error) error { return fmt.Errorf("solvers: normal equations: %w", err) }

func (e Equations) check(ctx context.Context, dev backend.Device, par StreamParams) error {
	if dev == nil {
		return errors.New("solvers: no device was given")
	}
	if err := par.check(); err != nil {
		return err
	}
	if !(e.Lambda >= 0) || math.IsInf(e.Lambda, 1) {
		return fmt.Errorf("solvers: lambda must be a finite number ≥ 0, got %v", e.Lambda)
	}
	m := e.Gram.Rows
	if m <= 0 || e.Right.Cols <= 0 || e.Gram.Cols != m || e.Right.Rows != m || e.Penalty.Rows != 0 && (e.Penalty.Rows != m || e.Penalty.Cols != m) {
		return failEquations(fmt.Errorf("the matrix G is %d×%d, z %d×%d and S %d×%d: they must be M×M, M×t and M×M", e.Gram.Rows, e.Gram.Cols, e.Right.Rows, e.Right.Cols, e.Penalty.Rows, e.Penalty.Cols))
	}
	for _, a := range []struct {
		name string
		h    backend.Host[float64]
	}{{"G", e.Gram}, {"z", e.Right}, {"S", e.Penalty}} {
		if h := a.h; h.Rows > 0 && (h.Stride < h.Cols || len(h.Data) < (h.Rows-1)*h.Stride+h.Cols) {
			return failEquations(fmt.Errorf("%s: %d×%d with stride %d does not fit %s", a.name, h.Rows, h.Cols, h.Stride, count.Of(len(h.Data), "element")))
		}
	}
	if err := checkFinite(ctx, "z", e.Right); err != nil {
		return err
	}
	for i := range m {
		for j, v := range e.Gram.Row(i)[:i+1] {
			if v-v != 0 {
				return failEquations(fmt.Errorf("the matrix G is %v at row %d, column %d: values overflow: scale the features and targets down", v, i+1, j+1))
			}
		}
	}
	need := numeric.Bytes(numeric.Total(numeric.Elements(m, 2*m), numeric.Elements(3*m, e.Right.Cols)))
	available := run.Available(dev, par.Memory)
	if need > available {
		return &BudgetError{Method: Normal, Rows: m, Needed: need, Available: available, Advice: "{use fewer functions|$memory}"}
	}
	run.ReportPlan(ctx, dev, need)
	return nil
}

// sum returns the lower triangle of G + λS.
func (e Equations) sum() backend.Host[float64] {
	m := e.Gram.Rows
	h := backend.NewHost[float64](m, m)
	for i := range m {
		row := h.Row(i)
		copy(row[:i+1], e.Gram.Row(i))
		if e.Penalty.Rows == 0 {
			row[i] += e.Lambda
			continue
		}
		for j, v := range e.Penalty.Row(i)[:i+1] {
			row[j] += e.Lambda * v
		}
	}
	return h
}

// factor sets l to the Cholesky factor of h, increasing the diagonal if necessary.
func (e Equations) factor(b backend.Backend[float64], h, l backend.Matrix[float64], res *EquationsResult) error {
	before, err := numeric.Diagonal(b, h)
	if err != nil {
		return err
	}
	j := numeric.Jitter{Added: 4 * numeric.Epsilon * numeric.Trace(before), Times: 1000, Tries: 3}
	j.Failed = func(p *backend.PivotError) {
		res.Notes = append(res.Notes, fmt.Sprintf("the factor failed at function %d with %.3g added to the diagonal", p.Index+1, j.Added))
	}
	err = numeric.FactorJittered(&j, b, l, func() error { numeric.Copy(b, l, h); return nil })
	res.Jitter = j.Added
	var pivot *backend.PivotError
	switch {
	case !errors.As(err, &pivot):
		return err
	case numeric.Overflowed(pivot):
		return numeric.ExplainPivot(pivot, "they are not finite at function %d: values overflow: scale the features and targets down", pivot.Index+1)
	}
	return numeric.ExplainPivot(pivot, "they are not positive definite at function %d (pivot %.3g): {raise $lambda|use fewer $centers|use fewer $features}", pivot.Index+1, pivot.Value)
}

// refine repeats β ← β + (LLᵀ)⁻¹(z − Hβ) from β = 0 (Björck 1987), as long as each step halves
// the residual.
func (e Equations) refine(b backend.Backend[float64], mem *run.Arena, h backend.Matrix[float64], l stream.Factored, tol float64, res *EquationsResult) error {
	m, t := e.Right.Rows, e.Right.Cols
	var beta, r, step backend.Matrix[float64]
	for _, to := range []*backend.Matrix[float64]{&beta, &r, &step} {
		var err error
		if *to, err = mem.New(m, t); err != nil {
			return err
		}
	}
	size := make([]float64, t)
	for j := range size {
		size[j] = numeric.ScaleOf(numeric.Norm(m, func(i int) float64 { return e.Right.Row(i)[j] }), 0, 0, tol) // z is exact
	}
	left := backend.NewHost[float64](m, t)
	if err := b.Upload(r, e.Right); err != nil {
		return err
	}
	ones := numeric.Repeated(1.0, t)
	for try := range equationSteps {
		if err := l.Apply(step, r); err != nil {
			return err
		}
		b.ColAxpy(ones, step, beta)
		if err := b.Upload(r, e.Right); err != nil {
			return err
		}
		b.Symm(backend.Lower, -1, h, beta, 1, r)
		if err := b.Download(left, r); err != nil {
			return err
		}
		worst := 0.0
		for j := range size {
			worst = numeric.Larger(worst, numeric.Ratio(numeric.Norm(m, func(i int) float64 { return left.Row(i)[j] }), size[j]))
		}
		if worst-worst != 0 {
			return message.Errorf("the solution is not finite: {scale the features and targets down|raise $lambda}")
		}
		if try > 0 && !(worst < res.Residual) {
			return nil
		}
		enough := try > 0 && !(worst < 0.5*res.Residual)
		res.Residual, res.Iters = worst, try+1
		if err := b.Download(res.Beta, beta); err != nil {
			return err
		}
		if enough || worst == 0 {
			return nil
		}
	}
	return nil
}

// Basis returns the random features of p for samples of d features: the frequencies ω, M/2×d,
// that SolveFourier draws from Kernel, Orthogonal and Seed, and the scale of the basis
//
//	scale · (cos ω_1ᵀx, …, cos ω_Dᵀx, sin ω_1ᵀx, …, sin ω_Dᵀx),  D = M/2
//
// FourierResult.Beta already includes the scale. Count must be given.
func (p FourierProblem) Basis(ctx context.Context, d int) (omega backend.Host[float64], scale float64, err error) {
	switch {
	case p.Kernel == nil:
		return omega, 0, errors.New("solvers: the kernel is missing")
	case p.Count <= 0 || d <= 0:
		return omega, 0, fmt.Errorf("solvers: the numbers of random features and of features must be ≥ 1, got %d and %d", p.Count, d)
	}
	if err := p.Kernel.Check(d); err != nil {
		return omega, 0, fmt.Errorf("solvers: %w", err)
	}
	if isotropic, err := stream.Isotropic(p.Kernel, d); err != nil {
		return omega, 0, err
	} else if p.Orthogonal && !isotropic {
		return omega, 0, fmt.Errorf("solvers: the frequencies of the kernel %v have no orthogonal directions", p.Kernel)
	}
	f, err := p.basis(ctx, p.Count, d)
	if err != nil {
		return omega, 0, fmt.Errorf("solvers: %w", err)
	}
	return f.Frequencies, f.Scale, nil
}
