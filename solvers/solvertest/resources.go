package solvertest

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/markov"
	"github.com/mercer-go/mercer/solvers"
)

// The tests of this file check memory, progress, cancellation and faults.

// largeProblem returns a problem with matrices so large that the padding of rows is a small part of the memory.
func (c *cell) largeProblem() solvers.Problem {
	r := c.random()
	if c.method == solvers.Primal {
		return c.problem(r, 700, 64, 2)
	}
	if isLinear(c.kernel) {
		return c.problem(r, 160, 64, 2)
	}
	return c.problem(r, 160, c.features, 2)
}

// testMemory checks that the plan is within a tenth of the measured memory, and that all memory is freed.
func testMemory(c *cell) {
	p := c.largeProblem()
	for _, intercept := range []bool{false, true} {
		for _, weights := range [][]float64{nil, p.Weights} {
			q := p
			q.Intercept, q.Weights = intercept, weights
			dev := c.open(c, backend.Config{}) // a new device: its peak is the peak of this solve
			plan, err := solvers.MakePlan(dev, c.form(q), c.par)
			if err != nil {
				c.Fatal(err)
			}
			res, err := solvers.Solve(c.Context(), dev, c.form(q), c.par)
			if err != nil {
				c.Fatal(err)
			}
			now, peak := dev.InUse()
			if now != 0 {
				c.Errorf("%d bytes are left on the device", now)
			}
			if res.Bytes != peak {
				c.Errorf("Bytes is %d, the device measured %d", res.Bytes, peak)
			}
			planned := plan.Bytes
			if x := c.form(q).Sparse; x != nil && planned > peak {
				// The plan counts float32 elements and copies in Go memory, which not every device stores.
				planned -= min(planned-peak, int64(8*x.NNZ()+8*x.Rows))
			}
			if c.method == solvers.Kalman {
				planned -= c.filter(q)
			}
			if c.method == solvers.Modes && planned > peak {
				planned = peak // the plan includes Go memory, which devices do not measure; a test of cmd/mercer does
			}
			if deviation := math.Abs(float64(planned-peak)) / float64(peak); deviation > 0.1 {
				c.Errorf("intercept %v, weights %v: planned %d bytes, measured %d: off by %.0f %%", intercept, weights != nil, plan.Bytes, peak, 100*deviation)
			}
			if plan.Method != c.method || plan.Reason == "" || plan.Flops <= 0 {
				c.Errorf("incomplete plan: %+v", plan)
			}
		}
	}
}

// filter returns the Go memory of the method Kalman, which its plan includes but devices do not measure.
func (c *cell) filter(p solvers.Problem) int64 {
	m, ok := markov.Of(p.Kernel)
	if !ok {
		c.Fatalf("%v has no filter", p.Kernel)
	}
	n, t, columns := p.Y.Rows, p.Y.Cols, p.Y.Cols
	if p.Intercept {
		columns++
	}
	return 8 * (m.Elements(n) + int64(n*(2+2*columns+4*t)))
}

// limited returns the cell's params with a memory limit.
func (c *cell) limited(limit int64) solvers.Params {
	par := c.par
	par.Memory = limit
	return par
}

// watched returns the cell's params with a progress callback.
func (c *cell) watched(progress func(solvers.Progress)) solvers.Params {
	par := c.par
	par.Progress = progress
	return par
}

// testBudget sets the limit to one byte less than planned. The error must report the number of rows that fit.
func testBudget(c *cell) {
	p := c.largeProblem()
	plan, err := solvers.MakePlan(c.dev, c.form(p), c.par)
	if err != nil {
		c.Fatal(err)
	}
	refused := func(dev backend.Device, limit int64) {
		c.Helper()
		_, err := solvers.Solve(c.Context(), dev, c.form(p), c.limited(limit))
		var budget *solvers.BudgetError
		if !errors.As(err, &budget) {
			c.Fatalf("not refused as too large: %v", err)
		}
		if budget.Needed != plan.Bytes || budget.Available != plan.Bytes-1 || budget.Rows != p.X.Rows || budget.Method != c.method {
			c.Errorf("%+v does not describe a plan of %d bytes for %d rows", budget, plan.Bytes, p.X.Rows)
		}
		if _, peak := dev.InUse(); dev != c.dev && peak != 0 {
			c.Errorf("the solve was refused, but only after it had allocated %d bytes", peak)
		}
		if budget.Largest >= p.X.Rows {
			c.Fatalf("%d rows are said to fit, %d do not", budget.Largest, p.X.Rows)
		}
		for _, n := range []int{budget.Largest, budget.Largest + 1} {
			if n == 0 {
				continue
			}
			q := subset(p, upTo(n))
			smallPlan, err := solvers.MakePlan(dev, c.form(q), c.par)
			if err != nil {
				c.Fatal(err)
			}
			fits := smallPlan.Bytes <= budget.Available
			if c.method == solvers.Modes && fits && n > budget.Largest {
				continue // fewer rows also need fewer modes, which Largest does not consider
			}
			if fits != (n == budget.Largest) {
				c.Errorf("a fit of %d rows needs %d of the available %d bytes, but the error says that at most %d rows fit", n, smallPlan.Bytes, budget.Available, budget.Largest)
			}
		}
	}
	refused(c.dev, plan.Bytes-1)
	refused(c.open(c, backend.Config{Memory: plan.Bytes - 1}), 0)
	if _, err := solvers.Solve(c.Context(), c.dev, c.form(p), c.limited(plan.Bytes)); err != nil {
		c.Errorf("the planned memory is not enough: %v", err)
	}
}

// testProgress checks that calls of the progress callback do not overlap, that stages follow each other, and that the
// fractions increase from 0 to 1.
func testProgress(c *cell) {
	p := c.largeProblem()
	var inside atomic.Int32
	var reported []solvers.Progress
	_, err := solvers.Solve(c.Context(), c.dev, c.form(p), c.watched(func(s solvers.Progress) {
		if inside.Add(1) != 1 {
			c.Error("called by two goroutines at a time")
		}
		reported = append(reported, s)
		inside.Add(-1)
	}))
	if err != nil {
		c.Fatal(err)
	}
	stages, last := []string{"gram", "factor", "solve"}, reported[0]
	ended := map[string]bool{} // stages that have ended
	for i, s := range reported {
		if s.Stage != last.Stage {
			ended[last.Stage] = true
		}
		if !slices.Contains(stages, s.Stage) || ended[s.Stage] || !(s.Fraction >= last.Fraction) || s.Fraction > 1 {
			c.Errorf("call %d reports the progress %+v after %+v: stages must follow each other, with increasing fractions", i, s, last)
		}
		last = s
	}
	if len(reported) < 5 || reported[0].Fraction != 0 || last.Fraction != 1 || last.Stage != "solve" {
		c.Errorf("%d calls, from %+v to %+v", len(reported), reported[0], last)
	}
}

// testCanceled cancels the context of Solve before Solve starts and while Solve runs.
func testCanceled(c *cell) {
	p := c.largeProblem()
	cause := errors.New("the reason")
	var reported []float64
	if _, err := solvers.Solve(c.Context(), c.dev, c.form(p), c.watched(func(s solvers.Progress) { reported = append(reported, s.Fraction) })); err != nil {
		c.Fatal(err)
	}
	// The last report is sent when the work is complete: canceling then would have no effect.
	all := len(reported) - 1
	for _, fraction := range []float64{-1, 0, reported[all/5], reported[all/2], reported[all*4/5], reported[all-1]} {
		ctx, cancel := context.WithCancelCause(c.Context())
		if fraction < 0 {
			cancel(cause)
		}
		res, err := solvers.Solve(ctx, c.dev, c.form(p), c.watched(func(s solvers.Progress) {
			if s.Fraction >= fraction {
				cancel(cause)
			}
		}))
		cancel(nil)
		if !errors.Is(err, cause) || res != nil {
			c.Errorf("canceled at %v: got %v, error %v", fraction, res, err)
		}
		c.nothingLeft()
	}
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	if _, err := solvers.Solve(ctx, c.dev, c.form(p), c.par); !errors.Is(err, context.Canceled) {
		c.Errorf("not context.Canceled: %v", err)
	}
}

// testFaults makes one call to the device fail in each run: each of the first 40 calls, and some later ones.
func testFaults(c *cell) {
	if c.able {
		c.Skip("the faults are those of a device without optional abilities")
	}
	c.forEach(func(c *cell, p solvers.Problem) {
		p.Weights = nil
		for n := 1; ; n += 1 + n/40*4 {
			calls := 0
			dev := &device{Device: c.dev, inject: func() error {
				if calls++; calls == n {
					return errFault
				}
				return nil
			}}
			_, err := solvers.Solve(c.Context(), dev, c.form(p), c.par)
			c.nothingLeft()
			if calls < n {
				if err != nil {
					c.Fatalf("no call failed, but: %v", err)
				}
				if n < 5 {
					c.Fatalf("only %d calls could fail", n-1)
				}
				return
			}
			if !errors.Is(err, errFault) {
				c.Fatalf("call %d failed, the error is: %v", n, err)
			}
		}
	})
}
