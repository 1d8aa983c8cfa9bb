package sums

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/solvers"
)

// equations are the normal equations of f(x) = φ(x)ᵀβ,
//
//	(G + λS) β = z,  G = ΦᵀΦ,  z = Φᵀy
//
// If there is an intercept, Φ and y are centered by their means. λ is unscaled.
type equations struct {
	gram    backend.Host[float64] // G, M×M; only its lower triangle is read
	right   backend.Host[float64] // z, M×t
	penalty backend.Host[float64] // S, M×M; only its lower triangle is read; a matrix without rows means S = I
	lambda  float64               // ≥ 0

	rows    float64
	meanPhi []float64 // mean of φ over the samples; set if there is an intercept
	meanY   []float64
}

// equationSolution is the solution of equations.
type equationSolution struct {
	beta     backend.Host[float64] // M×t
	residual float64               // the largest ‖z − (G + λS)β‖ / ‖z‖ of a target
	jitter   float64               // number added to the diagonal before factorization; refinement removes its effect
	iters    int                   // steps of refinement
}

// equationSteps is the maximum number of steps of refinement, which ends when a step does not halve the residual.
const equationSteps = 20

// solve solves e on dev by the Cholesky factor of G + λS and steps of refinement with the residual in float64. tol
// is the relative residual to reach, where 0 means 1e-6. memory limits the bytes on the device, where 0 means all
// free memory.
//
// If the matrix is singular to working precision, its diagonal is increased before the factorization, as for
// solvers.Normal, and refinement removes the effect. solve returns the same errors as solvers.SolveNystrom.
func (e *equations) solve(ctx context.Context, dev backend.Device, tol float64, memory int64) (*equationSolution, error) {
	if tol == 0 {
		tol = 1e-6
	}
	if err := e.check(ctx, dev, tol, memory); err != nil {
		return nil, err
	}
	m, t := e.right.Rows, e.right.Cols
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
	res := &equationSolution{beta: backend.NewHost[float64](m, t)}
	if err := e.factor(b, h, l, res); err != nil {
		return nil, failEquations(err)
	}
	if err := e.refine(b, mem, h, stream.Factored{B: b, L: l}, tol, res); err != nil {
		return nil, failEquations(err)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, failEquations(err)
	}
	if !(res.residual <= tol) {
		return res, &solvers.ConvergenceError{Tol: tol, Reason: "rounding error prevents further progress",
			Result: &solvers.Result{Method: solvers.Normal, Solution: solvers.Solution{Coef: res.beta, Residual: res.residual}, Jitter: res.jitter, Iters: res.iters}}
	}
	return res, nil
}

func failEquations(err error) error { return fmt.Errorf("sums: normal equations: %w", err) }

func (e *equations) check(ctx context.Context, dev backend.Device, tol float64, memory int64) error {
	switch {
	case memory < 0:
		return fmt.Errorf("sums: memory must be ≥ 0 bytes, got %d", memory)
	case !(tol > 0 && tol < 1):
		return fmt.Errorf("sums: the tolerance must be ≥ 0 and below 1, got %v", tol)
	case !(e.lambda >= 0) || math.IsInf(e.lambda, 1):
		return fmt.Errorf("sums: lambda must be a finite number ≥ 0, got %v", e.lambda)
	}
	m, t := e.right.Rows, e.right.Cols
	for i := range m {
		for j, v := range e.gram.Row(i)[:i+1] {
			if v-v != 0 {
				return failEquations(message.Errorf("the matrix G is %v at row %d, column %d: values overflow: {scale the features and targets down}", v, i+1, j+1))
			}
		}
		for j, v := range e.right.Row(i) {
			if v-v != 0 {
				return failEquations(message.Errorf("Φᵀy is %v at row %d, column %d: values overflow: {scale the features and targets down}", v, i+1, j+1))
			}
		}
	}
	required := numeric.Bytes(numeric.Total(numeric.Elements(m, 2*m), numeric.Elements(3*m, t)))
	available := run.Available(dev, memory)
	if required > available {
		return &solvers.BudgetError{Method: solvers.Normal, Rows: m, Needed: required, Available: available, Advice: "{use fewer functions|$memory}"}
	}
	run.ReportPlan(ctx, dev, required)
	return nil
}

func (e *equations) sum() backend.Host[float64] {
	m := e.gram.Rows
	h := backend.NewHost[float64](m, m)
	for i := range m {
		row := h.Row(i)
		copy(row[:i+1], e.gram.Row(i))
		if e.penalty.Rows == 0 {
			row[i] += e.lambda
			continue
		}
		for j, v := range e.penalty.Row(i)[:i+1] {
			row[j] += e.lambda * v
		}
	}
	return h
}

// factor sets l to the Cholesky factor of h, increasing the diagonal if necessary.
func (e *equations) factor(b backend.Backend[float64], h, l backend.Matrix[float64], res *equationSolution) error {
	diagonal, err := numeric.Diagonal(b, h)
	if err != nil {
		return err
	}
	j := numeric.Jitter{Added: 4 * numeric.Epsilon * numeric.Trace(diagonal), Growth: 1000, MaxAttempts: 3}
	err = numeric.FactorJittered(&j, b, l, func() error { numeric.Copy(b, l, h); return nil })
	res.jitter = j.Added
	var pivot *backend.PivotError
	switch {
	case !errors.As(err, &pivot):
		return err
	case numeric.Overflowed(pivot):
		return numeric.ExplainPivot(pivot, "they are not finite at function %d: values overflow: scale the features and targets down", pivot.Index+1)
	}
	return numeric.ExplainPivot(pivot, "they are not positive definite at function %d (pivot %.3g): {raise $lambda|use fewer $centers|use fewer $features}", pivot.Index+1, pivot.Value)
}

// refine repeats β ← β + (LLᵀ)⁻¹(z − Hβ) from β = 0 (Björck 1987), as long as each step halves the residual.
func (e *equations) refine(b backend.Backend[float64], mem *run.Arena, h backend.Matrix[float64], l stream.Factored, tol float64, res *equationSolution) error {
	m, t := e.right.Rows, e.right.Cols
	var beta, r, step backend.Matrix[float64]
	for _, to := range []*backend.Matrix[float64]{&beta, &r, &step} {
		var err error
		if *to, err = mem.New(m, t); err != nil {
			return err
		}
	}
	size := make([]float64, t)
	for j := range size {
		size[j] = numeric.ScaleOf(numeric.Norm(m, func(i int) float64 { return e.right.Row(i)[j] }), 0, 0, tol) // the rounding error of z counts as 0
	}
	residual := backend.NewHost[float64](m, t)
	if err := b.Upload(r, e.right); err != nil {
		return err
	}
	ones := numeric.Repeated(1.0, t)
	for attempt := range equationSteps {
		if err := l.Apply(step, r); err != nil {
			return err
		}
		b.ColAxpy(ones, step, beta)
		if err := b.Upload(r, e.right); err != nil {
			return err
		}
		b.Symm(backend.Lower, -1, h, beta, 1, r)
		if err := b.Download(residual, r); err != nil {
			return err
		}
		maxResidual := 0.0
		for j := range size {
			maxResidual = max(maxResidual, numeric.Ratio(numeric.Norm(m, func(i int) float64 { return residual.Row(i)[j] }), size[j]))
		}
		if maxResidual-maxResidual != 0 {
			return message.Errorf("the solution is not finite: {scale the features and targets down|raise $lambda}")
		}
		if attempt > 0 && !(maxResidual < res.residual) {
			return nil
		}
		stalled := attempt > 0 && !(maxResidual < 0.5*res.residual)
		res.residual, res.iters = maxResidual, attempt+1
		if err := b.Download(res.beta, beta); err != nil {
			return err
		}
		if stalled || maxResidual == 0 {
			return nil
		}
	}
	return nil
}
