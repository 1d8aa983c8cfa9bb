package main

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/tuning"
)

// tuneRows is the default of --rows. The time of a search is proportional to its cube: 15 kernels take about 30 s
// for 2000 rows (one processor, Zen 4, November 2026).
const tuneRows = 2000

// tuneFlags are the flags of `mercer tune`.
type tuneFlags struct {
	tableFlags
	vary, kernels, grid  []string
	learner, model, plot string
	objects              objectFlags
	criterion, search    string
	lambdas              []float64
	reach, testFraction  float64
	steps, folds, rows   int
	ard, noIntercept     bool
	otherDevices         []backend.Device // all devices of --device except the first
	isSet                func(flag string) bool
}

// tunedLearners are the learners whose only varied parameters are a kernel and λ.
var tunedLearners = []string{"kernel-ridge", "gaussian-process", "ridge"}

// These texts are parts of --help.
const (
	tuneCriteria = `For each kernel that is tried, many λ are solved from one decomposition. --by names
the score of a kernel and a λ:

  loo       the mean squared leave-one-out error, in closed form
  gcv       generalized cross-validation, in closed form: the cheapest
  kfold     the mean squared error on folds that are held out
  evidence  the marginal likelihood of a Gaussian process, per row`
	tuneStrategies = `--search names the method that chooses the kernels:

  grid      all length scales multiplied by the same factor, equally spaced
  golden    the same factor, by golden sections
  bayes     a factor for each length scale, by Bayesian search
  gradient  all parameters of the kernel, by derivatives; for evidence only

With several --kernel there is a search from each, and the best result is taken. With
--text or --tree one column is the whole input, and each --kernel is on texts or trees:
for each kernel many λ are solved, and the parameters of the kernel do not change.`
	tuneTargets = `Classes become targets of −1 and 1, one target per class if there are more than two, and
are scored as numbers. An unpenalized intercept is fitted unless --no-intercept is given;
for evidence the mean of the target is subtracted instead.

` + tuneRowsHelp
	tuneRowsHelp = `The search uses --rows of the rows, chosen at random, and the model is fitted to all
rows.`
	sharedDevices = `Several devices, --device cuda/0,cuda/1, share the kernels of a grid and the folds.`
)

// describe adapts --help to the learner that the call names.
func (f *tuneFlags) describe(c *cobra.Command) {
	d, err := learners.Find(f.learner)
	if err != nil {
		return
	}
	switch {
	case f.byGrid():
		f.describeGrid(c, d)
	case f.learner == "ridge":
		c.Flags().Lookup("kernel").Hidden = true // its only possible value is linear()
		c.Long = "Find the λ of ridge, which is (K + λI)α = y with the kernel linear(), and fit with it.\n\n" + tuneCriteria + "\n\n" + tuneTargets
	default:
		c.Long = "Find the parameters of the kernel of " + d.Name + " and the λ of (K + λI)α = y, and fit with them.\n\n" +
			sharedDevices + "\n\n" + tuneCriteria + "\n\n" + tuneStrategies + "\n\n" + tuneTargets
	}
	fitTerminal(c)
}

func (a *app) tuneCommand() *cobra.Command {
	var f tuneFlags
	c := &cobra.Command{
		Use:   "tune --target COLUMN [--model FILE] [flags] TABLE",
		Short: "Find the kernel's parameters and lambda, and fit with them",
		Long: "Find the parameters of a kernel and the λ of (K + λI)α = y, and fit with them.\n\n" +
			sharedDevices + "\n\n" + tuneCriteria + "\n\n" + tuneStrategies + "\n\n" + tuneTargets + `

Other learners are tuned by a grid and scored on held-out folds, rvm and rvc also with
--by evidence; mercer tune --learner NAME --help describes the grid:

  mercer tune --learner svc --target y --grid C=0.1,1 --model m.st t.csv
  mercer tune --learner rvm --target y --by evidence t.csv`,
		Args: requireOneFile,
		RunE: a.work(func(ctx context.Context, args []string) error { return a.tune(ctx, f, args[0]) }),
	}
	flags := c.Flags()
	beforeHelp(c, func() { f.describe(c) })
	refuseFlags(c, f.refusals)
	f.isSet = flags.Changed
	f.tableFlags.add(flags)
	f.weightFlags.add(flags)
	flags.StringVar(&f.task, "task", "", "regression or classification (default: classification of texts, regression of numbers)")
	flags.StringArrayVar(&f.kernels, "kernel", nil, "`TEXT` of the kernel at which the search starts; may be given several times (default: gaussian, sigma the median distance)")
	flags.BoolVar(&f.ard, "ard", false, "one length scale for each feature, if no kernel is given")
	flags.StringVar(&f.criterion, "by", tuning.Criteria[0], "criterion: "+strings.Join(tuning.Criteria, ", "))
	flags.StringVar(&f.search, "search", "", "search method: "+strings.Join(tuning.Strategies, ", ")+" (default: grid; gradient for evidence)")
	flags.StringSliceVar(&f.vary, "vary", nil, "`NAMES` of the parameters that vary, '' for none (default: the length scales)")
	flags.Float64Var(&f.reach, "reach", 30, "largest factor by which a parameter may differ from the start")
	intFlag(flags, &f.steps, "steps", 0, 0, "number of kernels to try (default: 15; with bayes 10, plus 10 for each parameter; with --grid 7)")
	flags.Float64SliceVar(&f.lambdas, "lambdas", nil, "the only `NUMBERS` to try as lambda (default: 1e-8 to 1e3 times the mean of k(x, x), two per decade, and more near the best)")
	flags.Lookup("lambdas").DefValue = "" // otherwise the help would print "[]" as the default
	flags.StringArrayVar(&f.grid, "grid", nil, "`NAME=VALUES` of a parameter of the learner, with commas between values; may be given several times")
	intFlag(flags, &f.folds, "folds", 5, 2, "number of folds of --by kfold")
	intFlag(flags, &f.rows, "rows", tuneRows, 0, "number of rows to search with, chosen at random; 0 means all")
	flags.BoolVar(&f.noIntercept, "no-intercept", false, "do not fit an intercept")
	flags.StringVar(&f.learner, "learner", "", "`NAME` of the learner: "+strings.Join(append(slices.Clone(tunedLearners), gridLearners()...), ", ")+" (default: kernel-ridge; ridge for the kernel linear(), gaussian-process of numbers for evidence)")
	flags.StringVar(&f.model, "model", "", "`FILE` to write the model to (safetensors); without it no model is fitted")
	flags.StringVar(&f.plot, "plot", "", "`FILE` to draw the scores into: .png, .svg or .html")
	flags.Float64Var(&f.testFraction, "test-fraction", 0, "fraction of the rows to hold out and to score the model on, 0 to 1")
	f.objects.add(c)
	a.input.add(flags)
	return c
}

// refusals lists the flags that have no effect on this search.
func (f *tuneFlags) refusals() []refusal {
	f.setDefaults()
	grid, gradient := f.byGrid(), f.search == string(tuning.Gradient)
	d, _ := learners.Find(f.learner)
	has := func(name string) bool {
		_, ok := d.Parameter(name)
		return ok
	}
	varies := true
	if list, err := f.parseKernels(); err == nil { // if a kernel is invalid, check will report the error
		varies = slices.ContainsFunc(list, candidate.varies) && !(f.isSet("vary") && len(f.vary) == 0)
	}
	// If the learner is unknown or not supported, check will report the error.
	tuned := f.learner == "" || slices.Contains(tunedLearners, f.learner)
	validCriterion := slices.Contains(tuning.Criteria, f.criterion) && (!grid || f.bayesian() && f.criterion == string(tuning.Evidence))
	byGrid := f.learner + " is tuned by a grid of one factor of the length scales; see --grid"
	return []refusal{
		{grid && !has("kernel"), "kernel vary reach steps tree", f.learner + " has no kernel", ""},
		{grid && !has("kernel") && f.objects.analyzer == "", "text", needsTFIDF(f.learner), "tfidf"},
		{grid && d.LinearByDefault() && len(f.kernels) == 0, "vary reach steps", "without --kernel, " + f.learner + " uses linear(), which has no parameter", "learner"},
		{grid && !has("lambda"), "lambdas", f.learner + " has no lambda", ""},
		{grid && !has("intercept"), "no-intercept", f.learner + " has no intercept to leave out", ""},
		{grid, "ard", byGrid, ""},
		{grid && !(f.isSet("search") && f.search == string(tuning.Grid)), "search", byGrid, ""},
		{grid && !f.isSet("by") && !f.bayesian(), "by", "", ""},                            // only hides the flag from the help; checkGrid reports wrong values
		{grid && !f.isSet("task") && !d.Supports(learners.Classification), "task", "", ""}, // only hides the flag from the help; checkGrid reports a wrong task
		{!grid && tuned, "grid", strings.Join(tunedLearners, ", ") + " are tuned by --kernel, --vary and --lambdas, not by --grid", ""},
		{gradient && f.criterion == string(tuning.Evidence), "vary reach steps lambdas", "gradient varies all parameters and lambda by derivatives; use --search grid, golden or bayes", ""},
		{gradient && f.criterion == string(tuning.Evidence), "plot", "gradient computes no grid of scores to draw; use --search grid, golden or bayes", ""},
		{f.criterion != string(tuning.KFold) && validCriterion, "folds", "is for --by kfold", "by"},
		{f.objects.flag() != "", "vary reach steps", "the search does not vary the parameters of a kernel on texts or trees; give several --kernel", ""},
		{f.learner == "ridge", "vary tree", "ridge uses the kernel linear(), which has no parameter", ""},
		{f.learner == "ridge" && f.objects.analyzer == "", "text", needsTFIDF(f.learner), "tfidf"},
		{!varies, "reach steps", "no parameter of the kernel varies", ""},
		{len(f.kernels) > 0, "ard", "has no effect with --kernel; write --kernel 'gaussian(sigma=[1,1,…])' instead", ""},
	}
}

// bayesian reports whether --by evidence is possible for the learner, in addition to kfold.
func (f *tuneFlags) bayesian() bool {
	return f.learner == "rvm" || f.learner == "rvc" || f.learner == "nystrom-ridge" || f.learner == "fourier-ridge"
}

// byGrid reports whether the learner is tuned by a grid.
func (f *tuneFlags) byGrid() bool { return slices.Contains(gridLearners(), f.learner) }

// setDefaults sets the search and the criterion if the flags do not set them.
func (f *tuneFlags) setDefaults() {
	if f.byGrid() && !f.isSet("by") {
		f.criterion = string(tuning.KFold)
	}
	if f.learner == "ridge" && len(f.kernels) == 0 {
		f.kernels = []string{"linear()"}
	}
	if f.search != "" {
		return
	}
	f.search = string(tuning.Grid)
	if f.criterion == string(tuning.Evidence) && !f.byGrid() {
		f.search = string(tuning.Gradient)
	}
}

// check returns an error for the first wrong flag.
func (f *tuneFlags) check() error {
	evidence := f.criterion == string(tuning.Evidence)
	if err := f.objects.check(); err != nil {
		return err
	}
	if err := f.objects.checkUnusedFlags(&f.tableFlags); err != nil {
		return err
	}
	list, err := f.parseKernels()
	if err != nil {
		return err
	}
	switch {
	case len(f.targets) == 0:
		return usagef("tune needs --target COLUMN: the column to learn")
	case !slices.Contains(tuning.Criteria, f.criterion):
		return usagef("--by: %q is not known%s; the choices are: %s", f.criterion, didYouMean("", f.criterion, tuning.Criteria), strings.Join(tuning.Criteria, ", "))
	case !slices.Contains(tuning.Strategies, f.search):
		return usagef("--search: %q is not known%s; the choices are: %s", f.search, didYouMean("", f.search, tuning.Strategies), strings.Join(tuning.Strategies, ", "))
	case f.task != "" && f.task != string(learners.Regression) && f.task != string(learners.Classification):
		return usagef("--task: want regression or classification, got %q", f.task)
	case f.learner != "" && !slices.Contains(tunedLearners, f.learner) && !f.byGrid():
		names := append(slices.Clone(tunedLearners), gridLearners()...)
		return usagef("--learner: tune does not support %q%s; it supports %s", f.learner, didYouMean("", f.learner, names), strings.Join(names, ", "))
	case f.byGrid():
		// The call of checkGrid below checks the flags of this search.
	case f.search == string(tuning.Gradient) && !evidence:
		return usagef("--search: gradient needs --by evidence, which has derivatives")
	case f.learner == "ridge" && slices.ContainsFunc(list, func(c candidate) bool { return !c.linear() }):
		return usagef("--learner: ridge is for --kernel 'linear()'")
	case f.learner != "" && f.model == "" && f.testFraction == 0:
		return usagef("--learner: has no effect without --model or --test-fraction")
	}
	if err := f.tableFlags.check(); err != nil {
		return err
	}
	switch {
	case !(f.testFraction >= 0 && f.testFraction < 1):
		return usagef("--test-fraction: must be ≥ 0 and < 1, got %v", f.testFraction)
	case !(f.reach > 1) || math.IsInf(f.reach, 1):
		return usagef("--reach: must be a finite number > 1, got %v", f.reach)
	}
	if f.byGrid() {
		if err := f.checkGrid(); err != nil {
			return err
		}
	}
	for _, l := range f.lambdas {
		if !(l >= 0) || math.IsInf(l, 1) {
			return usagef("--lambdas: each must be a finite number ≥ 0, got %v", l)
		}
	}
	return nil
}
