package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// ScaleKind measures time, memory, residual and prediction error of each solver as functions of the number n of
// samples, and of M for solvers with M centers or random features. A solver that exceeds the memory or the time limit
// is skipped, with the reason.
const ScaleKind = "scale"

// A scaled describes a solver of a scale benchmark.
type scaled struct {
	name    string
	formula string // number of operations as a function of the sizes
	memory  string // number of stored elements as a function of the sizes
	m       bool   // whether the solver has M centers or random features
}

var scaleds = []scaled{
	{name: "dual", formula: "n³/3 + n²d", memory: "n²/2"},
	{name: "mixed", formula: "n³/3 + n²d", memory: "n²/4"},
	{name: "cg", formula: "n²·steps + nr²", memory: "n²/4, or nr"},
	{name: "outofcore", formula: "n³/3 + n²d", memory: "n²/2 beside the device"},
	{name: "normal", formula: "nM² + M³", memory: "M²", m: true},
	{name: "falkon", formula: "nM·steps + M³", memory: "M²", m: true},
	{name: "fourier", formula: "nM² + M³", memory: "M²", m: true},
}

// scaledNames lists the solvers: exact solvers first, then solvers with M centers or random features.
func scaledNames() []string {
	var names []string
	for _, s := range scaleds {
		names = append(names, s.name)
	}
	return names
}

// sweep is the parameter of a case that names the size that varies, n or M.
const (
	sweep    = "sweep"
	scaleTol = 1e-6 // tolerance of all solvers
)

func runScale(ctx context.Context, b Benchmark) (*Result, error) {
	b.Centers = cmp.Or(b.Centers, b.Widths[len(b.Widths)/2])
	l, err := b.open(ctx)
	defer l.close()
	if err != nil {
		return nil, err
	}
	w := &scaling{l, l.devices[0]}
	r, err := b.Runner.Run(ctx, ScaleKind, w.implementations(), w.tasks())
	if err != nil {
		return nil, err
	}
	r.Notes = append(r.Notes,
		fmt.Sprintf("data: X ~ N(0, I), d = %d, y = sin(Xw) + noise; Gaussian kernel with 2σ² = 2d, λ = %g; every solver reaches a residual of %.0e of its own system", b.Features, fitLambda, scaleTol),
		"bytes: the most that matrices took on the device, measured; planned: what the plan said before; resident: how much the process grew, what Go keeps for later included",
	)
	return r, nil
}

type scaling struct {
	*setup
	dev backend.Device
}

func (w *scaling) implementations() []Implementation {
	var list []Implementation
	i := w.dev.Info()
	for _, s := range scaleds {
		if slices.Contains(w.Names, s.name) {
			list = append(list, Implementation{
				Name: s.name, Kind: OwnKind, Device: i.Device, Threads: w.Threads[0], Method: s.name,
				Detail: fmt.Sprintf("operations %s, numbers held %s; %s, %s", s.formula, s.memory, i.Device, i.Processor),
			})
		}
	}
	return list
}

func (w *scaling) tasks() []Task {
	var list []Task
	task := func(parameter string, n, m int, wants func(scaled) bool) {
		c := Case{{sweep, parameter}, {"threads", strconv.Itoa(w.Threads[0])}, {"n", strconv.Itoa(n)}, {"m", strconv.Itoa(m)}}
		list = append(list, Task{Case: c, Weight: float64(n) * float64(n), Start: func(context.Context) ([]Entry, error) {
			s := newSynthetic(n, w.Features, fitLambda)
			var entries []Entry
			for _, solver := range scaleds {
				if !slices.Contains(w.Names, solver.name) || !wants(solver) {
					continue
				}
				// The judge's rounding errors change the residual by at most the residual of a direct solver.
				entries = append(entries, w.plannedEntry(w.dev, solver.name, parameter, w.prepare(solver, s, m), scaleTol+ridgeLimit(n, w.Features, "float64", fitLambda)))
			}
			return entries, nil
		}})
	}
	for _, n := range w.Sizes {
		task("n", n, w.Centers, func(scaled) bool { return true })
	}
	if slices.ContainsFunc(scaleds, func(s scaled) bool { return s.m && slices.Contains(w.Names, s.name) }) {
		for _, m := range w.Widths {
			task("m", w.Sizes[len(w.Sizes)-1], m, func(s scaled) bool { return s.m })
		}
	}
	return list
}

// solution is the result of a solver's run. rmse, the error on held-out rows, is nil without such rows.
type solution struct {
	res            *solvers.Result
	residual, rmse func() (float64, error)
}

// A plannedFit is a fit with its plan, or err, the reason why the fit is not possible.
type plannedFit struct {
	plan solvers.Plan
	err  error
	fit  func() (solution, error)
}

// plannedEntry returns the entry of a solver whose residual may be at most limit, or the reason for its absence.
func (l *setup) plannedEntry(dev backend.Device, name, sweep string, f plannedFit, limit float64) Entry {
	e := Entry{Implementation: name, Optional: true}
	if f.err != nil {
		e.Reason = strings.TrimPrefix(f.err.Error(), "solvers: ")
		return e
	}
	key := name + " " + sweep
	if e.Reason = cmp.Or(exceeds(f.plan.Bytes, dev), l.timeEstimates.skipReason(key, f.plan.Flops, l.Limit)); e.Reason != "" {
		return e
	}
	metrics := map[string]float64{plannedMetric: float64(f.plan.Bytes)}
	var last solution
	var duration time.Duration
	first := true
	e.Work = f.plan.Flops
	e.Run = func() error {
		growth := func() float64 { return 0 }
		if first {
			growth = watchResident()
		}
		start := time.Now()
		var err error
		last, err = f.fit()
		duration = time.Since(start)
		l.timeEstimates.record(key, f.plan.Flops, duration)
		if bytes := growth(); first && bytes > 0 {
			metrics[residentMetric] = bytes
		}
		first = false
		return err
	}
	e.Took = func() time.Duration { return duration }
	e.Check = func() *Check {
		return checked(limit, func() (residual float64, err error) {
			if last.rmse != nil {
				metrics[rmseMetric], err = last.rmse()
			}
			metrics[bytesMetric], metrics[itersMetric] = float64(last.res.Bytes), float64(last.res.Iters)
			residual, errR := last.residual()
			metrics[residualMetric] = residual
			return residual, errors.Join(err, errR)
		})
	}
	e.Metrics = func() map[string]float64 { return metrics }
	return e
}

func (w *scaling) prepare(solver scaled, s *synthetic, m int) plannedFit {
	stream := solvers.StreamParams{Method: solvers.Normal, Memory: w.Memory, Tol: scaleTol}
	rows := solvers.InMemory(s.x, s.y, nil, nil)
	switch solver.name {
	case "normal", "falkon":
		stream.Method = solvers.Method(solver.name)
		p := solvers.NystromProblem{Kernel: s.kernel, Data: rows, Lambda: s.lambda, Choice: solvers.CenterChoice{Count: m}}
		plan, err := p.Plan(w.dev, stream)
		return plannedFit{plan, err, func() (solution, error) {
			res, err := solvers.SolveNystrom(w.ctx, w.dev, p, stream)
			if err != nil {
				return solution{}, err
			}
			f := function{points: res.Centers, coef: res.Beta.Data}
			return solution{&res.Result, func() (float64, error) { return w.judge(s).normalResidual(f) }, func() (float64, error) { return w.judge(s).rmse(f) }}, nil
		}}
	case "fourier":
		plan, err := solvers.FourierProblem{Kernel: s.kernel, Data: rows, Count: m, Lambda: s.lambda}.Plan(w.dev, stream)
		return plannedFit{plan, err, func() (solution, error) {
			l := learners.FourierRidge{Kernel: s.kernel, Lambda: s.lambda, Features: m, Tol: scaleTol, NoIntercept: true}
			model, err := l.Fit(w.ctx, w.dev, matrixOf(s.x), matrixOf(s.y), learners.Options{Memory: w.Memory})
			if err != nil {
				return solution{}, err
			}
			res := model.Solved()
			return solution{res, func() (float64, error) { return res.Residual, nil }, func() (float64, error) {
				p, err := model.Predict(w.ctx, w.dev, matrixOf(s.testX))
				if err != nil {
					return 0, err
				}
				return floats.Distance(p.RawMatrix().Data, s.testY.Data, 2) / math.Sqrt(heldOut), nil
			}}, nil
		}}
	}
	p := solvers.Problem{Kernel: s.kernel, X: s.x, Y: s.y, Lambda: s.lambda}
	par := solvers.Params{Method: solvers.Method(solver.name), Tol: scaleTol, Memory: w.Memory}
	plan, err := solvers.MakePlan(w.dev, p, par)
	return plannedFit{plan, err, func() (solution, error) {
		res, err := solvers.Solve(w.ctx, w.dev, p, par)
		if err != nil {
			return solution{}, err
		}
		f := function{points: s.x, coef: res.Alpha.Data}
		return solution{res, func() (float64, error) { return w.judge(s).residual(f) }, func() (float64, error) { return w.judge(s).rmse(f) }}, nil
	}}
}
