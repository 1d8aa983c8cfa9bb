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
)

// SolveEach is Solve with a λ of its own for each output, p.Lambda not being used:
// column j of the solution is that of lambdas[j].
//
// Outputs with the same λ are solved for together, so that there is one
// factorization for each different λ.
//
// Of the Result, Residual, Bytes, Rank and Jitter are the largest, Iters and
// Seconds the sums over the parts, and Plan is the sum of the work and the largest
// memory of any part. Errors are those of Solve, and name λ where there are
// several.
func SolveEach(ctx context.Context, dev backend.Device, p Problem, lambdas []float64, par Params) (*Result, error) {
	if len(lambdas) != p.Y.Cols {
		return nil, fmt.Errorf("solvers: y has %s, lambda %s: one for each is needed", count.Of(p.Y.Cols, "column"), count.Of(len(lambdas), "value"))
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
		return nil, errors.New("solvers: a checkpoint holds the state of one lambda: give all outputs the same, or no checkpoint")
	}
	e := &each{ctx: ctx, dev: dev, p: p, lambdas: lambdas, different: different, par: par, progress: run.NewProgress(notifier(par.Progress), nil, 1)}
	if err := e.solve(); err != nil {
		return nil, err
	}
	return e.res, nil
}

// each is one SolveEach in progress.
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
	e.res = &Result{Intercept: make([]float64, e.p.Y.Cols)}
	parts := float64(len(e.different))
	for i, l := range e.different {
		if err := e.one(l, float64(i)/parts, float64(i+1)/parts); err != nil {
			return fmt.Errorf("%w (lambda %v)", err, l)
		}
	}
	e.res.Seconds.Total = time.Since(start).Seconds()
	return nil
}

// one solves for the outputs of one λ. Its progress goes from one fraction to another.
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
		e.put(j, k, r.Alpha, r.Coef, r.Intercept)
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

// put makes column from of a solution that of output j.
func (e *each) put(j, from int, alpha, coef backend.Host[float64], intercept []float64) {
	for _, part := range []struct {
		to *backend.Host[float64]
		h  backend.Host[float64]
	}{{&e.res.Alpha, alpha}, {&e.res.Coef, coef}} {
		if part.h.Rows == 0 {
			continue
		}
		if part.to.Rows == 0 {
			*part.to = backend.NewHost[float64](part.h.Rows, len(e.lambdas))
		}
		for i := range part.h.Rows {
			part.to.Row(i)[j] = part.h.Row(i)[from]
		}
	}
	e.res.Intercept[j] = intercept[from]
}

// add brings the plan and the residual up to date.
func (e *each) add(plan Plan, residual float64) {
	if plan.Bytes >= e.res.Plan.Bytes {
		plan.Flops += e.res.Plan.Flops
		e.res.Plan = plan
	} else {
		e.res.Plan.Flops += plan.Flops
	}
	e.res.Residual = numeric.Larger(e.res.Residual, residual)
}
