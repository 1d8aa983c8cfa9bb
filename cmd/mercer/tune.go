package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
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
	"github.com/mercer-go/mercer/tuning"
)

// tuneFlags are the flags of `mercer tune`.
type tuneFlags struct {
	targets, vary        []string
	kernel, learner      string
	by, search, task     string
	lambdas              []float64
	reach, testFraction  float64
	steps, folds, rows   int
	ard, noIntercept     bool
	noStandardize        bool
	missing, model, plot string
	seed                 uint64
}

// The learners that a kernel and a λ make.
var tunedLearners = []string{"kernel-ridge", "gaussian-process", "ridge"}

func (a *app) tuneCommand() *cobra.Command {
	var f tuneFlags
	c := &cobra.Command{
		Use:   "tune --target COLUMN [--model FILE] [flags] TABLE",
		Short: "Find the kernel's parameters and lambda, and fit with them",
		Long: `Find the parameters of a kernel and the λ of (K + λI)α = y, and fit with them.

For each kernel that is tried a whole path of λ is solved from one decomposition.
It is judged by one of

  loo       the mean squared leave-one-out error, in closed form
  gcv       generalised cross-validation, in closed form: the cheapest
  kfold     the mean squared error on folds that are held out
  evidence  the marginal likelihood of a Gaussian process, per row

and the kernels are chosen by one of

  grid      all length scales multiplied by the same factor, equally spaced
  golden    the same factor, by golden sections
  bayes     a factor for each length scale, by Bayesian search
  gradient  all parameters of the kernel, by derivatives; for evidence only

With --rows the search looks at some of the rows only, and the model is fitted to
all of them. Classes become targets of −1 and 1, one for each of more than two, and
are judged as such. An intercept, which is not penalised, is fitted unless --no-intercept
is given; for evidence the mean of the target is subtracted instead.`,
		Args: oneFile,
		RunE: a.work(func(ctx context.Context, args []string) error { return a.tune(ctx, f, args[0]) }),
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.targets, "target", nil, "`COLUMN` to learn; repeat it for several")
	flags.StringVar(&f.task, "task", "", "regression or classification (default: classification of texts, regression of numbers)")
	flags.StringVar(&f.kernel, "kernel", "", "`TEXT` of the kernel that the search begins at (default: gaussian, sigma the median distance)")
	flags.BoolVar(&f.ard, "ard", false, "one length scale for each feature, where no kernel is given")
	flags.StringVar(&f.by, "by", tuning.Criteria[0], "what to judge by: "+strings.Join(tuning.Criteria, ", "))
	flags.StringVar(&f.search, "search", "", "how to search: "+strings.Join(tuning.Strategies, ", ")+" (default: grid; gradient for evidence)")
	flags.StringSliceVar(&f.vary, "vary", nil, "`NAMES` of the parameters that vary (default: the length scales)")
	flags.Float64Var(&f.reach, "reach", 30, "how many times larger or smaller than at the start they may become")
	flags.IntVar(&f.steps, "steps", 0, "kernels to try (default: 15; with bayes 10, and 10 for each parameter)")
	flags.Float64SliceVar(&f.lambdas, "lambdas", nil, "`NUMBERS` to try as lambda (default: 1e-8 to 1e3 times the mean of k(x, x), two a decade, and more near the best)")
	flags.IntVar(&f.folds, "folds", 5, "folds of kfold")
	flags.IntVar(&f.rows, "rows", 0, "rows to search with, chosen at random (default: all)")
	flags.BoolVar(&f.noIntercept, "no-intercept", false, "fit none")
	flags.StringVar(&f.learner, "learner", "", "`NAME` of the learner to fit with what was found: "+strings.Join(tunedLearners, ", ")+" (default: kernel-ridge; ridge for the kernel linear(), gaussian-process of numbers for evidence)")
	flags.StringVar(&f.model, "model", "", "`FILE` to write the model to (safetensors); without it nothing is fitted")
	flags.StringVar(&f.plot, "plot", "", "`FILE` to draw the scores to (PNG)")
	flags.Float64Var(&f.testFraction, "test-fraction", 0, "part of the rows to hold out and to score the model on, 0 to 1")
	flags.BoolVar(&f.noStandardize, "no-standardize", false, "use the numbers as they are")
	flags.StringVar(&f.missing, "missing", "impute", "empty cells: impute or refuse")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of every random choice")
	a.input.add(flags)
	return c
}

// check sets the defaults and returns the first flag that is wrong.
func (f *tuneFlags) check() error {
	evidence := f.by == string(tuning.Evidence)
	if f.search == "" {
		f.search = string(tuning.Grid)
		if evidence {
			f.search = string(tuning.Gradient)
		}
	}
	k, err := f.parseKernel()
	if err != nil {
		return err
	}
	_, linear := k.(kernels.Linear)
	switch {
	case len(f.targets) == 0:
		return usagef("tune needs --target COLUMN: the column to learn")
	case slices.Contains(f.targets, ""):
		return usagef("--target: the name of the column is empty")
	case twice(f.targets) != "":
		return usagef("--target: %q is given twice", twice(f.targets))
	case !slices.Contains(tuning.Criteria, f.by):
		return usagef("--by: there is no %q%s; there are: %s", f.by, didYouMean("", f.by, tuning.Criteria), strings.Join(tuning.Criteria, ", "))
	case !slices.Contains(tuning.Strategies, f.search):
		return usagef("--search: there is no %q%s; there are: %s", f.search, didYouMean("", f.search, tuning.Strategies), strings.Join(tuning.Strategies, ", "))
	case f.search == string(tuning.Gradient) && !evidence:
		return usagef("--search: gradient needs --by evidence, which has derivatives")
	case f.search == string(tuning.Gradient) && f.plot != "":
		return usagef("--plot: gradient looks at no surface; use --search grid, golden or bayes")
	case f.task != "" && f.task != string(learners.Regression) && f.task != string(learners.Classification):
		return usagef("--task: want regression or classification, got %q", f.task)
	case f.learner != "" && !slices.Contains(tunedLearners, f.learner):
		return usagef("--learner: tune finds a kernel and a lambda for %s, not for %q", strings.Join(tunedLearners, ", "), f.learner)
	case f.learner == "ridge" && !linear:
		return usagef("--learner: ridge is for --kernel 'linear()'")
	case f.ard && f.kernel != "":
		return usagef("--ard: is for the kernel that is chosen where none is given; write 'gaussian(sigma=[1,1,…])' instead")
	case f.missing != "impute" && f.missing != "refuse":
		return usagef("--missing: want impute or refuse, got %q", f.missing)
	case !(f.testFraction >= 0 && f.testFraction < 1):
		return usagef("--test-fraction: must be ≥ 0 and < 1, got %v", f.testFraction)
	case !(f.reach > 1) || math.IsInf(f.reach, 1):
		return usagef("--reach: must be a finite number > 1, got %v", f.reach)
	case f.steps < 0 || f.rows < 0:
		return usagef("--steps and --rows: must be ≥ 0, got %d and %d", f.steps, f.rows)
	case f.folds < 2:
		return usagef("--folds: must be ≥ 2, got %d", f.folds)
	}
	for _, l := range f.lambdas {
		if !(l >= 0) || math.IsInf(l, 1) {
			return usagef("--lambdas: each must be a finite number ≥ 0, got %v", l)
		}
	}
	return nil
}

func (a *app) tune(ctx context.Context, f tuneFlags, file string) error {
	start := time.Now()
	if err := f.check(); err != nil {
		return err
	}
	for _, out := range []struct{ flag, path string }{{"--model", f.model}, {"--plot", f.plot}} {
		if out.path != "" {
			if err := a.checkOutput(ctx, out.flag, out.path, file, a.input.labels); err != nil {
				return err
			}
		}
	}
	if f.model != "" && f.model == f.plot {
		return usagef("--plot: %s is the file of the model; give another name", f.plot)
	}
	kernel, err := f.parseKernel()
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
	task := f.taskFor(all)
	if err := f.chooseLearner(kernel, task); err != nil {
		return err
	}
	enc, err := dataset.Learn(train, dataset.Rules{
		Targets: f.targets, Labels: task == learners.Classification, AnyLabels: f.task == string(learners.Classification),
		Standardize: !f.noStandardize, RefuseMissing: f.missing == "refuse",
	})
	if err != nil {
		return err
	}
	x, y, err := encode(enc, train)
	if err != nil {
		return err
	}
	var xTest, yTest *mat.Dense
	if test != nil {
		if xTest, yTest, err = encode(enc, test); err != nil {
			return fmt.Errorf("%w; the row was held out by --test-fraction", err)
		}
	}

	targets := y
	if task == learners.Classification {
		if targets, err = learners.Signs(y, enc.Classes()); err != nil {
			return err
		}
	}
	xs, ys := f.sample(x, targets)
	if kernel == nil {
		if kernel, err = f.startKernel(ctx, xs); err != nil {
			return err
		}
	}
	if err := f.checkVary(kernel); err != nil {
		return err
	}
	p := a.newProgress()
	res, err := tuning.Search(ctx, dev, f.problem(kernel, xs, ys), f.params(p.report))
	p.close()
	if err != nil {
		return err
	}
	r := newTuneReport(f, res, dev, xs)
	r.N, r.D = x.Dims()
	if f.plot != "" {
		image, err := drawSurface(res)
		if err != nil {
			return err
		}
		if err := a.writeFile(ctx, "--plot", f.plot, image); err != nil {
			return err
		}
		r.Plot = f.plot
	}
	if f.model != "" || test != nil {
		m, err := a.fitTuned(ctx, dev, f, task, res, enc, x, y)
		if err != nil {
			return err
		}
		if test != nil {
			if r.Test, err = a.scoreOf(ctx, dev, m, enc.Classes(), xTest, yTest); err != nil {
				return err
			}
		}
		if f.model != "" {
			if err := a.commit(ctx, func() error { return modelfile.Save(f.model, modelfile.Bundle{Model: m, Encoder: enc}) }); err != nil {
				return err
			}
			r.Learner, r.Model = m.Learner(), f.model
		}
	}
	r.Seconds = time.Since(start).Seconds()
	if a.json {
		return a.printJSON(ctx, r)
	}
	return a.print(ctx, r.text())
}

// parseKernel is the kernel of --kernel, nil without one.
func (f *tuneFlags) parseKernel() (kernels.Kernel, error) {
	if f.kernel == "" {
		return nil, nil
	}
	k, err := kernels.Parse(f.kernel)
	if err == nil {
		err = k.Check(-1)
	}
	if err != nil {
		return nil, usagef("--kernel: %s", oneLine(err))
	}
	return k, nil
}

// checkVary refuses names of parameters that the kernel does not have, or that
// cannot vary by a factor.
func (f *tuneFlags) checkVary(k kernels.Kernel) error {
	var names []string
	for _, p := range kernels.Params(k) {
		if p.Log && p.Value > 0 {
			names = append(names, p.Name)
		}
	}
	for _, name := range f.vary {
		if !slices.Contains(names, name) {
			return usagef("--vary: %v has no parameter %q that can vary%s; there are: %s", k, name, didYouMean("", name, names), strings.Join(names, ", "))
		}
	}
	return nil
}

// startKernel is the Gaussian of the median distance.
func (f *tuneFlags) startKernel(ctx context.Context, x *mat.Dense) (kernels.Kernel, error) {
	sigma, err := learners.MedianDistance(ctx, x, nil, f.seed)
	if err != nil {
		return nil, err
	}
	if f.ard {
		_, d := x.Dims()
		return kernels.Gaussian{Sigmas: slices.Repeat([]float64{sigma}, d)}, nil
	}
	return kernels.Gaussian{Sigma: sigma}, nil
}

// sample is --rows of the rows, in their order.
func (f *tuneFlags) sample(x, y *mat.Dense) (xs, ys *mat.Dense) {
	n, d := x.Dims()
	if f.rows == 0 || f.rows >= n {
		return x, y
	}
	_, t := y.Dims()
	rows := rand.New(rand.NewPCG(f.seed, tuneStream)).Perm(n)[:f.rows]
	slices.Sort(rows)
	xs, ys = mat.NewDense(f.rows, d, nil), mat.NewDense(f.rows, t, nil)
	for i, r := range rows {
		xs.SetRow(i, x.RawRowView(r))
		ys.SetRow(i, y.RawRowView(r))
	}
	return xs, ys
}

// tuneStream keeps the choice of rows apart from other uses of the seed.
const tuneStream = 0x74756e65 // "tune"

func (f *tuneFlags) params(report func(solvers.Progress)) tuning.Params {
	return tuning.Params{
		Criterion: tuning.Criterion(f.by), Strategy: tuning.Strategy(f.search), Vary: f.vary, Reach: f.reach,
		Steps: f.steps, Lambdas: f.lambdas, Folds: f.folds, Seed: f.seed, Progress: report,
	}
}

// problem is what is searched for; for evidence the targets are centred.
func (f *tuneFlags) problem(k kernels.Kernel, x, y *mat.Dense) solvers.Problem {
	evidence := f.by == string(tuning.Evidence)
	if evidence && !f.noIntercept {
		y = mat.DenseCopyOf(y)
		n, t := y.Dims()
		for j := range t {
			mean := mat.Sum(y.ColView(j)) / float64(n)
			for i := range n {
				y.Set(i, j, y.At(i, j)-mean)
			}
		}
	}
	return solvers.Problem{Kernel: k, X: hostOf(x), Y: hostOf(y), Intercept: !evidence && !f.noIntercept}
}

func hostOf(m *mat.Dense) backend.Host[float64] {
	r := m.RawMatrix()
	return backend.Host[float64]{Rows: r.Rows, Cols: r.Cols, Stride: r.Stride, Data: r.Data}
}

// taskFor is what --task says, or classification of a target of texts.
func (f *tuneFlags) taskFor(t *dataset.Table) learners.Task {
	switch {
	case f.task != "":
		return learners.Task(f.task)
	case len(f.targets) == 1 && allTexts(t, f.targets[0]):
		return learners.Classification
	}
	return learners.Regression
}

// chooseLearner sets the learner where none is named.
func (f *tuneFlags) chooseLearner(k kernels.Kernel, task learners.Task) error {
	_, linear := k.(kernels.Linear)
	switch {
	case f.learner == "gaussian-process" && task == learners.Classification:
		return usagef("--learner: gaussian-process is for numbers, not for classes; use kernel-ridge")
	case task == learners.Classification && len(f.targets) > 1:
		return usagef("--target: classes are told by one column, %d are named", len(f.targets))
	case f.learner != "":
	case f.by == string(tuning.Evidence) && task == learners.Regression:
		f.learner = "gaussian-process"
	case linear: // the same model by the cheaper way
		f.learner = "ridge"
	default:
		f.learner = "kernel-ridge"
	}
	return nil
}

// fitTuned fits the learner with what was found to all rows.
func (a *app) fitTuned(ctx context.Context, dev backend.Device, f tuneFlags, task learners.Task, res *tuning.Result, enc *dataset.Encoder, x, y *mat.Dense) (learners.Model, error) {
	d, err := learners.Find(f.learner)
	if err != nil {
		return nil, err
	}
	given := map[string]string{"lambda": exact(res.Lambda()), "intercept": strconv.FormatBool(!f.noIntercept)}
	if f.learner != "ridge" {
		given["kernel"] = res.Kernel().String()
	}
	if f.learner == "gaussian-process" {
		if !(res.Lambda() > 0) {
			return nil, usagef("--learner: gaussian-process needs a lambda > 0, and 0 was found; use kernel-ridge")
		}
		given["optimise"] = "false"
	}
	fit, err := d.Make(task, given)
	if err != nil {
		return nil, err
	}
	p := a.newProgress()
	defer p.close()
	return fit(ctx, dev, x, y, learners.Options{Classes: enc.Classes(), Progress: p.report})
}
