package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/modelfile"
	"github.com/mercer-go/mercer/solvers"
)

// fitFlags are the flags of `mercer fit`.
type fitFlags struct {
	learner, kernel, solver, missing, model string
	targets                                 []string
	lambda, testFraction                    float64
	seed                                    uint64
	intercept                               *bool // nil: the learner's default
	noStandardize                           bool
}

// The names of the learners; the first is the default.
var learnerNames = []string{"kernel-ridge", "ridge"}

var solverNames = []string{"auto", "dual", "primal"}

func (a *app) fitCommand() *cobra.Command {
	var f fitFlags
	c := &cobra.Command{
		Use:   "fit --target COLUMN --model FILE [flags] TABLE",
		Short: "Fit a model to a table and save it",
		Long: `Fit a model to a table and save it.

kernel-ridge solves (K + λI)α = y, ridge the same with a linear kernel and an
unpenalised intercept. Columns of text become one column for each value, empty
cells the median (text: the most frequent value), and numbers are brought to
mean 0 and variance 1. All of that is learnt from the training rows and stored
in the model, so that predict takes raw rows.

TABLE is a file in one of these formats, told by its first bytes:
CSV with a header line; LIBSVM; NPY or NPZ of numpy (features x1, x2, … and the
target y, of the arrays X and y); IDX, the format of MNIST (the target label
comes from train-labels-idx1-ubyte beside train-images-idx3-ubyte). All but NPZ
may be compressed by gzip; - is the standard input.

Kernels: linear(), polynomial(degree=3,c=1), gaussian(sigma=2), laplacian(sigma=2),
exponential(sigma=2), matern32(sigma=2), matern52(sigma=2), and sums, products
and scalings of them, such as '0.5*linear() + gaussian(sigma=3)'.`,
		Args: oneFile,
		RunE: a.work(func(ctx context.Context, args []string) error { return a.fit(ctx, f, args[0]) }),
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.learner, "learner", learnerNames[0], "`NAME` of the learner: "+strings.Join(learnerNames, " or "))
	flags.StringVar(&f.kernel, "kernel", "", "`TEXT` of the kernel (default: gaussian, sigma the median distance)")
	flags.Float64Var(&f.lambda, "lambda", 1, "λ of (K + λI)α = y, ≥ 0, not scaled by the number of rows")
	flags.StringArrayVar(&f.targets, "target", nil, "`COLUMN` to learn; repeat it for several")
	flags.StringVar(&f.model, "model", "", "`FILE` to write the model to (safetensors)")
	a.input.add(flags)
	flags.BoolFunc("intercept", "fit an unpenalised intercept (default for ridge)", f.setIntercept(true))
	flags.BoolFunc("no-intercept", "fit none (default for kernel-ridge)", f.setIntercept(false))
	flags.BoolVar(&f.noStandardize, "no-standardize", false, "use the numbers as they are")
	flags.StringVar(&f.missing, "missing", "impute", "empty cells: impute or refuse")
	flags.Float64Var(&f.testFraction, "test-fraction", 0, "part of the rows to hold out and to score the model on, 0 to 1")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of every random choice")
	flags.StringVar(&f.solver, "solver", "auto", "`NAME` of the solver: "+strings.Join(solverNames, ", "))
	return c
}

// setIntercept is the value of --intercept, and of --no-intercept with the
// opposite meaning.
func (f *fitFlags) setIntercept(yes bool) func(string) error {
	return func(text string) error {
		on, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("want true or false, got %q", text)
		}
		if f.intercept != nil && *f.intercept != (on == yes) {
			return errors.New("contradicts an earlier flag; give one of --intercept and --no-intercept")
		}
		f.intercept = new(on == yes)
		return nil
	}
}

// check returns the first flag that is wrong.
func (f *fitFlags) check() error {
	switch {
	case len(f.targets) == 0:
		return usagef("fit needs --target COLUMN: the column to learn")
	case slices.Contains(f.targets, ""):
		return usagef("--target: the name of the column is empty")
	case twice(f.targets) != "":
		return usagef("--target: %q is given twice", twice(f.targets))
	case f.model == "":
		return usagef("fit needs --model FILE: where to write the model, such as m.safetensors")
	case !slices.Contains(learnerNames, f.learner):
		return usagef("--learner: there is no %q%s; there are: %s", f.learner, didYouMean("", f.learner, learnerNames), strings.Join(learnerNames, ", "))
	case !slices.Contains(solverNames, f.solver):
		return usagef("--solver: there is no %q%s; there are: %s", f.solver, didYouMean("", f.solver, solverNames), strings.Join(solverNames, ", "))
	case f.missing != "impute" && f.missing != "refuse":
		return usagef("--missing: want impute or refuse, got %q", f.missing)
	case !(f.lambda >= 0) || math.IsInf(f.lambda, 1):
		return usagef("--lambda: must be a finite number ≥ 0, got %v", f.lambda)
	case !(f.testFraction >= 0 && f.testFraction < 1):
		return usagef("--test-fraction: must be ≥ 0 and < 1, got %v", f.testFraction)
	case f.learner == "ridge" && f.kernel != "":
		return usagef("--kernel: ridge has a linear kernel; leave it out, or use --learner kernel-ridge")
	case f.learner == "kernel-ridge" && f.solver == "primal":
		return usagef("--solver: kernel-ridge has no primal; use --learner ridge for a linear model")
	}
	return nil
}

// twice returns a name that is in the list more than once, or "".
func twice(names []string) string {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return name
		}
	}
	return ""
}

// fitter is what the learners have in common.
type fitter func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (learners.Model, error)

// fitter returns the learner that the flags describe.
func (f *fitFlags) fitter() (fitter, error) {
	if f.learner == "ridge" {
		l := learners.Ridge{Lambda: f.lambda, NoIntercept: f.intercept != nil && !*f.intercept, Method: method(f.solver)}
		return func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (learners.Model, error) {
			return asModel(l.Fit(ctx, dev, x, y, o))
		}, nil
	}
	l := learners.KernelRidge{Lambda: f.lambda, Intercept: f.intercept != nil && *f.intercept, Seed: f.seed}
	if f.kernel != "" {
		k, err := kernels.Parse(f.kernel)
		if err == nil {
			err = k.Check(-1)
		}
		if err != nil {
			return nil, usagef("--kernel: %s", oneLine(err))
		}
		if _, linear := k.(kernels.Linear); linear && l.Intercept && l.Lambda == 0 {
			return nil, usagef("--lambda: with the kernel linear() and --intercept the matrix of kernel-ridge is singular at 0; raise it, or use --learner ridge")
		}
		l.Kernel = k
	}
	return func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (learners.Model, error) {
		return asModel(l.Fit(ctx, dev, x, y, o))
	}, nil
}

// asModel keeps a nil *M from becoming a Model that is not nil.
func asModel[M learners.Model](m M, err error) (learners.Model, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

func method(name string) solvers.Method {
	if name == "auto" {
		return solvers.Auto
	}
	return solvers.Method(name)
}

// fitReport is what `mercer fit` prints.
type fitReport struct {
	Learner     string     `json:"learner"`
	Kernel      string     `json:"kernel,omitempty"`
	Lambda      float64    `json:"lambda"`
	N           int        `json:"n"`
	D           int        `json:"d"`
	Outputs     int        `json:"outputs"`
	Device      string     `json:"device"`
	Solver      string     `json:"solver"`
	Residual    float64    `json:"residual"`
	MemoryBytes int64      `json:"memory_bytes"`
	Seconds     fitSeconds `json:"seconds"`
	Test        *score     `json:"test,omitempty"`
	Model       string     `json:"model"`
}

// fitSeconds splits the wall time; what is left of the total is encoding,
// saving and the like.
type fitSeconds struct {
	Read   float64 `json:"read"`
	Gram   float64 `json:"gram"`
	Factor float64 `json:"factor"`
	Solve  float64 `json:"solve"`
	Total  float64 `json:"total"`
}

func (a *app) fit(ctx context.Context, f fitFlags, file string) error {
	start := time.Now()
	if err := f.check(); err != nil {
		return err
	}
	if err := a.checkOutput(ctx, "--model", f.model, file, a.input.labels); err != nil {
		return err
	}
	learn, err := f.fitter()
	if err != nil {
		return err
	}
	dev, err := a.open()
	if err != nil {
		return err
	}
	defer dev.Close()

	all, err := a.table(file)
	if err != nil {
		return err
	}
	train, test := all, (*dataset.Table)(nil)
	if f.testFraction > 0 {
		if train, test = all.Split(f.testFraction, f.seed); train.Rows() == 0 || test.Rows() == 0 {
			return usagef("--test-fraction: %v of %s leaves %d to learn from and %d to test on", f.testFraction, count(all.Rows(), "row"), train.Rows(), test.Rows())
		}
	}
	enc, err := dataset.Learn(train, f.rules())
	if err != nil {
		return err
	}
	x, y, err := encode(enc, train)
	if err != nil {
		return err
	}
	// Before the solve, so that a row that cannot be scored does not cost the fit.
	var xTest, yTest *mat.Dense
	if test != nil {
		if xTest, yTest, err = encode(enc, test); err != nil {
			return f.heldOut(err, all)
		}
	}
	read := time.Since(start)

	p := a.newProgress()
	m, err := learn(ctx, dev, x, y, learners.Options{Progress: p.report})
	p.close()
	if err != nil {
		return err
	}
	r := newFitReport(m, dev)
	if test != nil {
		if r.Test, err = a.scoreOf(ctx, dev, m, xTest, yTest); err != nil {
			return err
		}
	}
	if err := a.commit(ctx, func() error { return modelfile.Save(f.model, modelfile.Bundle{Model: m, Encoder: enc}) }); err != nil {
		return err
	}
	r.N, r.D = x.Dims()
	r.Lambda, r.Model = f.lambda, f.model
	r.Seconds.Read, r.Seconds.Total = read.Seconds(), time.Since(start).Seconds()
	if a.json {
		err = a.printJSON(ctx, r)
	} else {
		err = a.print(ctx, r.text())
	}
	if err != nil { // the work is not lost
		return fmt.Errorf("%w; the model was saved at %s", err, f.model)
	}
	return nil
}

func (f *fitFlags) rules() dataset.Rules {
	return dataset.Rules{Targets: f.targets, Standardize: !f.noStandardize, RefuseMissing: f.missing == "refuse"}
}

// heldOut adds to the fault of a row of the test table what to do about it:
// another split helps unless the table as a whole has a fault.
func (f *fitFlags) heldOut(fault error, all *dataset.Table) error {
	enc, err := dataset.Learn(all, f.rules())
	if err == nil {
		_, _, err = encode(enc, all)
	}
	if err != nil {
		return fmt.Errorf("%w; the row was held out by --test-fraction", err)
	}
	return fmt.Errorf("%w; the row was held out by --test-fraction: give another --seed, or no --test-fraction", fault)
}

// encode returns the features and targets of a table.
func encode(enc *dataset.Encoder, t *dataset.Table) (x, y *mat.Dense, err error) {
	if x, err = enc.Features(t); err != nil {
		return nil, nil, err
	}
	y, err = enc.Targets(t)
	return x, y, err
}

func newFitReport(m learners.Model, dev backend.Device) fitReport {
	s := &solvers.Result{}
	if k, ok := m.(learners.Solved); ok {
		s = k.Solved()
	}
	_, outputs := m.Dims()
	r := fitReport{
		Learner:     m.Learner(),
		Outputs:     outputs,
		Device:      dev.Info().Device,
		Solver:      string(s.Method),
		Residual:    s.Residual,
		MemoryBytes: s.Bytes,
		Seconds:     fitSeconds{Gram: s.Seconds.Gram, Factor: s.Seconds.Factor, Solve: s.Seconds.Solve},
	}
	if k, ok := m.State().Params["kernel"].(string); ok {
		r.Kernel = k
	}
	return r
}

// text is the report for eyes.
func (r fitReport) text() string {
	rows := [][]string{{"learner", r.Learner}}
	add := func(name, format string, args ...any) {
		rows = append(rows, []string{name, fmt.Sprintf(format, args...)})
	}
	if r.Kernel != "" {
		add("kernel", "%s", r.Kernel)
	}
	add("lambda", "%s", exact(r.Lambda))
	add("data", "%s, %s, %s", count(r.N, "row"), count(r.D, "feature"), count(r.Outputs, "target"))
	add("device", "%s", r.Device)
	add("solver", "%s, residual %.1e", r.Solver, r.Residual)
	add("memory", "%s", humanBytes(r.MemoryBytes))
	s := r.Seconds
	add("time", "%s (read %s, gram %s, factor %s, solve %s)", seconds(s.Total), seconds(s.Read), seconds(s.Gram), seconds(s.Factor), seconds(s.Solve))
	if r.Test != nil {
		add("held out", "%s, RMSE %s, MAE %s, R² %s", count(r.Test.N, "row"), short(r.Test.RMSE), short(r.Test.MAE), short(r.Test.R2))
	}
	add("model", "%s", r.Model)
	return table("ll", rows)
}

// count is n and the word, in the plural where it belongs.
func count(n int, word string) string { return strconv.Itoa(n) + " " + plural(word, n) }

func plural(word string, n int) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
