package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/bench/pypeer"
	"github.com/mercer-go/mercer/solvers"
)

// FitKind measures whole fits, from arrays or a file to a model, by Mercer and by other libraries:
//
//	ridge      (K + λI)α = y, from X and y to α
//	nystrom    ridge regression with kernel functions at M given centers, from X and y to β
//	svr        ε-support vector regression, which LIBSVM solves in scikit-learn
//	neighbors  for every sample, the mean target of its nearest samples
//	file       from a CSV file to the file of a kernel ridge model
//	linear     ridge regression, λ = 1, with an intercept
//	lasso      a path of 100 penalties, also by glmnet
//	logistic   logistic regression of two classes, also by glmnet and LIBLINEAR
//
// All implementations get the same kernel, λ, precision and number of threads. One routine computes all residuals;
// for lasso and logistic they are the excess of the objective over its minimum. The file sparse.go has the fits of
// sparse data. Only ridge is also measured in float32. The times include transfers to a GPU, but not importing a
// library and passing the data to it.
const FitKind = "fit"

const (
	fitLambda  = 0.1
	fitTol     = 1e-10 // tolerance of Mercer's solvers; a direct solver in float64 reaches a smaller residual
	directName = " direct"
	processGP  = " GP"
	sklearn    = "scikit-learn"
)

type fitBench struct {
	*setup
	folder string // folder for the files of the fit "file"
}

func runFit(ctx context.Context, b Benchmark) (*Result, error) {
	l, err := b.open(ctx)
	defer l.close()
	if err != nil {
		return nil, err
	}
	c := &fitBench{setup: l}
	if err := c.fits(); err != nil {
		return nil, err
	}
	if c.folder, err = os.MkdirTemp("", "mercer-bench-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(c.folder)
	if c.Data == sparseData {
		return c.runSparse(ctx)
	}
	r, err := b.Runner.Run(ctx, FitKind, c.implementations(), c.tasks(c.start))
	if err != nil {
		return nil, err
	}
	r.Notes = append(c.methods,
		fmt.Sprintf("data: X ~ N(0, I), d = %d, y = sin(Xw) + noise; Gaussian kernel with 2σ² = 2d, λ = %g", c.Features, fitLambda),
		"residual: of ridge and file ‖(K+λI)α−y‖/‖y‖, of linear ‖Xᵀ(y−Xw)−λw‖/‖Xᵀy‖ with X and y centered, of nystrom ‖Φᵀ(y−Φβ)−λSβ‖/‖Φᵀy‖, of svr the duality gap relative to the objective of f = 0, of neighbors the largest error of 100 means relative to the largest |y|, of lasso and logistic (F − F*)/F(0), the largest of a path; Mercer computes all of them in float64",
		"linear, lasso and logistic: features with correlation 0.1, and an intercept only in linear; in lasso and logistic each implementation with the largest of the tolerances 10, 1, 0.1, … that leads to this residual",
	)
	return r, nil
}

// fits returns an error if the matrices of gonum and scikit-learn exceed the memory for a size.
func (c *fitBench) fits() error {
	if c.Data == sparseData || !slices.Contains(c.Peers, "gonum") && !slices.Contains(c.Peers, sklearn) {
		return nil // all other implementations check their memory themselves
	}
	// scikit-learn stores the pairwise distances, K, a copy of K and the factor.
	n := slices.Max(c.Sizes)
	return refuse(FitKind, "n =", "the four matrices that gonum and scikit-learn may hold", n, c.judges.Info().Memory,
		func(n int) int64 { return 4 * 8 * int64(n) * int64(n) })
}

func (c *fitBench) implementations() []Implementation {
	var list []Implementation
	for _, d := range c.devices {
		mercer := ownImplementation(d)
		mercer.Threads, mercer.Method = c.Threads[0], "auto"
		mercer.Detail += fmt.Sprintf("; the method that it chooses itself, to a residual of %.0e", fitTol)
		list = append(list, mercer)
		mercer.Name, mercer.Method, mercer.Detail = mercer.Name+directName, "direct", "the same device, by a Cholesky factor in the precision of the case"
		list = append(list, mercer)
	}
	for _, p := range c.peers {
		e := p.implementation(c.Threads[0])
		if p.Library != nil {
			e.Detail += ", by hand: SymOuterK, exp, mat.Cholesky"
		}
		if p.Name == "glmnet" || p.Name == "liblinear" {
			e.Threads = 1
		}
		process := e
		if p.Name == sklearn && p.Python != nil {
			e.Detail = "KernelRidge, Nystroem + Ridge, SVR (LIBSVM), KNeighborsRegressor, Ridge, lasso_path, LogisticRegression (lbfgs): " + p.Python.Detail
			process.Detail = "GaussianProcessRegressor without its search for parameters"
		}
		if list = append(list, e); p.Name == sklearn {
			process.Name += processGP
			list = append(list, process)
		}
	}
	return list
}

// A contest describes a case for Mercer on each device, and for Python libraries, which run a task of peers.py.
type contest struct {
	mercer     func(d backend.Device) []competitor
	task       string
	parameters map[string]any
	sendData   func(*pypeer.Process) error // sends the data; nil if the task reads a file
	result     func(*pypeer.Process) (function, error)
	residual   func(function) (float64, error)
	limit      float64  // maximum residual
	peers      []string // names of the libraries that are measured
	tolerant   bool     // whether each implementation uses the largest of its tolerances that leads to a residual within the limit
}

func (c *fitBench) start(_ context.Context, fit, precision string, _, n int) ([]Entry, error) {
	var k contest
	var j judge
	var err error
	switch fit {
	case "linear":
		k, j, err = c.linearRidge(n)
	case "lasso":
		k, j, err = c.lasso(n)
	case "logistic":
		k, j, err = c.logistic(n)
	default:
		j = c.judge(newSynthetic(n, c.Features, fitLambda))
		switch fit {
		case "ridge":
			k = c.ridge(j, precision)
		case "nystrom":
			k = c.nystrom(j)
		case "svr":
			k = c.svr(j)
		case "neighbors":
			k = c.neighbors(j)
		default:
			k, err = c.file(j)
		}
	}
	if err != nil {
		return nil, err
	}
	var list []competitor
	for _, d := range c.devices {
		list = append(list, k.mercer(d)...)
	}
	for _, p := range c.peers {
		switch {
		case !slices.Contains(k.peers, p.Name):
		case p.Name == "gonum":
			list = append(list, c.byGonum(p, j.synthetic, precision))
		default:
			list = append(list, byPython(p, p.Name, k))
			if p.Name == sklearn && fit == "ridge" {
				if k.task = "process"; precision == "float32" && p.Python != nil {
					p = Peer{Missing: "computes only in float64"}
				}
				list = append(list, byPython(p, sklearn+processGP, k))
			}
		}
	}
	entries := make([]Entry, len(list))
	for i, w := range list {
		entries[i] = w.entry(j, k.residual, k.limit)
	}
	return entries, nil
}

type competitor struct {
	Entry
	result func() (function, error) // the function that the last run has fitted
}

// newCompetitor returns a competitor whose Run calls fit. result converts the last value of fit to a function.
func newCompetitor[R any](name string, fit func() (R, error), result func(R) (function, error)) competitor {
	var last R
	return competitor{
		Entry: Entry{Implementation: name, Run: func() (err error) {
			last, err = fit()
			return err
		}},
		result: func() (function, error) { return result(last) },
	}
}

// entry returns the Entry of w. After the first run it checks the fitted function.
func (w competitor) entry(j judge, residual func(function) (float64, error), limit float64) Entry {
	metrics := map[string]float64{}
	w.Check = func() *Check {
		return checked(limit, func() (float64, error) {
			f, err := w.result()
			if err != nil {
				return 0, err
			}
			if metrics[residualMetric], err = residual(f); err != nil {
				return 0, err
			}
			if f.tolerance > 0 {
				metrics[toleranceMetric] = f.tolerance
			}
			if f.linear.Data != nil || f.values != nil || j.synthetic == nil { // without held-out rows
				return metrics[residualMetric], nil
			}
			metrics[rmseMetric], err = j.rmse(f)
			return metrics[residualMetric], err
		})
	}
	w.Metrics = func() map[string]float64 { return metrics }
	return w.Entry
}

func byPython(p Peer, name string, k contest) competitor {
	w := competitor{Entry: Entry{Implementation: name, Reason: p.Missing, Optional: true}}
	if p.Python == nil {
		return w
	}
	w.Close = func() { _ = p.Python.Clear() } // ignore an error: if the process has ended, the next case reports it
	if k.sendData != nil {
		if err := k.sendData(p.Python); err != nil {
			w.Reason = err.Error()
		}
	}
	var last time.Duration
	w.Run = func() (err error) {
		last, err = p.Python.Run(k.task, k.parameters)
		return err
	}
	w.Took = func() time.Duration { return last }
	w.result = func() (function, error) { return k.result(p.Python) }
	if k.tolerant {
		k.parameters = maps.Clone(k.parameters)
		return w.atEqualObjective(func(tol float64) { k.parameters["tol"] = tol }, k.residual)
	}
	return w
}

func (l *setup) bySolver(d backend.Device, s *synthetic, name string, method solvers.Method) competitor {
	p := solvers.Problem{Kernel: s.kernel, X: s.x, Y: s.y, Lambda: s.lambda}
	par := solvers.Params{Method: method, Tol: fitTol, Memory: l.Memory}
	w := newCompetitor(name, func() (*solvers.Result, error) { return solvers.Solve(l.ctx, d, p, par) }, func(res *solvers.Result) (function, error) {
		if method == solvers.Auto {
			l.methods = append(l.methods, fmt.Sprintf("n = %d: %s chose %s: %s", s.x.Rows, name, res.Method, res.Plan.Reason))
		}
		return function{points: s.x, coef: res.Alpha.Data}, nil
	})
	if plan, err := solvers.MakePlan(d, p, par); err == nil {
		w.Reason = exceeds(plan.Bytes, d)
	}
	return w
}
