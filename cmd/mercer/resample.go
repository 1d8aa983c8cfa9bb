package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/process"
	"github.com/mercer-go/mercer/internal/texttable"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
)

func (a *app) cvCommand() *cobra.Command {
	var f resampleFlags
	var folds, repeats int
	noStratify := false
	c := &cobra.Command{
		Use:   "cv --target COLUMN [flags] TABLE",
		Short: "Score a learner by cross-validation",
		Long: `Score a learner by k-fold cross-validation: the rows are divided into folds, and
each fold is predicted by a model that is fitted to the other folds. Everything that is
learned from a table, including the scaling of its columns, is learned without the
predicted fold. For classes every fold has the same share of each class, unless
--no-stratify is given.

The output is the mean of each measure over the folds of all repeats, and the
standard deviation.

Several devices, --device cuda/0,cuda/1, share the models.`,
		Args: requireOneFile,
		RunE: a.work(func(ctx context.Context, args []string) error {
			return a.crossValidate(ctx, &f, folds, repeats, !noStratify, args[0])
		}),
	}
	f.addAll(c, &a.input)
	intFlag(c.Flags(), &folds, "folds", 10, 2, "number of folds")
	intFlag(c.Flags(), &repeats, "repeats", 1, 1, "number of times the rows are divided into random folds")
	c.Flags().BoolVar(&noStratify, "no-stratify", false, "divide the rows without regard to their classes")
	return c
}

func (a *app) bootstrapCommand() *cobra.Command {
	var f resampleFlags
	var rounds int
	c := &cobra.Command{
		Use:   "bootstrap --target COLUMN [flags] TABLE",
		Short: "Score a learner by the bootstrap, on out-of-bag rows",
		Long: `Score a learner by the bootstrap: in each round a model is fitted to a sample
of the rows, drawn with replacement and as large as the table, and predicts the
out-of-bag rows, which were not drawn: about 37 % of the rows.

The output is the mean of each measure over the rounds, the standard deviation, and two
estimates of the error. The first averages over the rows the error of each row by the
models that were fitted without it. The second, the 0.632 estimate, is 0.632 times the
first plus 0.368 times the training error of a model of all rows (Efron and Tibshirani,
1997). The error is the root-mean-square error, or the fraction of rows whose class is
wrong.

For numbers the out-of-bag squared error is divided into (f̄ − y)², which is bias² plus the
noise of the target, and the variance of f over the rounds, where f̄ is the mean of the
models that were fitted without the row (Geman, Bienenstock and Doursat, 1992).

Several devices, --device cuda/0,cuda/1, share the models.`,
		Args: requireOneFile,
		RunE: a.work(func(ctx context.Context, args []string) error {
			return a.bootstrap(ctx, &f, rounds, args[0])
		}),
	}
	f.addAll(c, &a.input)
	intFlag(c.Flags(), &rounds, "rounds", 50, 2, "number of models to fit")
	return c
}

// resampleFlags are the flags of cv and bootstrap.
type resampleFlags struct {
	learnerFlags
	objects objectFlags
	table   *dataset.Table // nil until the table has been read
}

// addAll adds the flags of f and the flags of the input table.
func (f *resampleFlags) addAll(c *cobra.Command, input *inputFlags) {
	f.add(c)
	f.objects.add(c)
	input.add(c.Flags())
}

// resampling holds a table whose rows are divided repeatedly into training rows and rows to score.
type resampling struct {
	a           *app
	f           *resampleFlags
	task        learners.Task
	fit         learners.Fitter
	table       *dataset.Table   // the rows of weight > 0
	fullEncoder *dataset.Encoder // encoder learned from all rows; its classes and categories are used in each division
	data        validate.Data
	p           *progress

	weights []float64 // weights of all rows; nil means all 1

	memory       *budget
	devices      []backend.Device // the devices on which models are fitted
	closeDevices func()           // closes the devices
}

// newResampling reads the table and opens the devices, which the caller closes.
func (a *app) newResampling(ctx context.Context, f *resampleFlags, command, file string) (r *resampling, err error) {
	if err := f.objects.replaceKernel(&f.learnerFlags); err != nil {
		return nil, err
	}
	if err := f.check(command); err != nil {
		return nil, err
	}
	if len(f.targets) == 0 {
		return nil, usagef("%s needs --target COLUMN: what the predictions are compared with", command)
	}
	r = &resampling{a: a, f: f}
	devices, closeAll, err := a.openDevices()
	if err != nil {
		return nil, err
	}
	r.devices = devices
	r.closeDevices = func() {
		if r.p != nil {
			r.p.close()
		}
		r.reportEmpty()
		closeAll()
	}
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	r.memory = a.newBudget(r.devices[0])
	if f.table == nil {
		if f.table, err = a.table(file, r.memory); err != nil {
			return nil, err
		}
	}
	r.task = f.taskFor(f.table)
	if r.fit, err = f.fitter(r.task); err != nil {
		return nil, err
	}
	if len(f.classes) > 0 && r.task != learners.Classification {
		_, err := f.classFactors(nil, nil)
		return nil, err
	}
	t, err := validate.NewTable(f.table, f.objects.rules(f.rules(r.task)), nil)
	if err != nil {
		return nil, err
	}
	t.Encoder = a.input.apply(t.Encoder)
	if err := r.encodeAll(ctx, t); err != nil {
		return nil, err
	}
	r.p = a.newProgress()
	return r, nil
}

// encodeAll encodes all rows of a table, to find errors about the whole table, and computes once the kernel values of
// texts, trees and a Gram matrix, which do not depend on the division into training and other rows.
func (r *resampling) encodeAll(ctx context.Context, t *validate.Table) (err error) {
	r.table, r.fullEncoder, r.weights = t.Table, t.Encoder, t.Weights
	if err := r.memory.planEncoding(r.table, r.fullEncoder, ""); err != nil {
		return err
	}
	x, _, err := r.a.trainingFeatures(ctx, r.fullEncoder, r.table, r.f.objects.kernel)
	if err != nil {
		return err
	}
	y, err := r.fullEncoder.Targets(r.table)
	if err != nil {
		return err
	}
	if _, err := r.f.reweight(r.weights, r.fullEncoder.Classes(), y); err != nil {
		return err // an error about the whole table, not about one fold
	}
	r.data = t
	if r.f.objects.kernel != nil || r.fullEncoder.Gram {
		r.data = validate.Samples{X: x, Y: y, Weights: r.weights}
	}
	r.data = classWeighted{r.data, &r.f.weightFlags, r.fullEncoder.Classes()}
	return nil
}

// classWeighted is a validate.Data that multiplies the weights of training rows by class weights.
type classWeighted struct {
	validate.Data
	flags   *weightFlags
	classes []string
}

func (d classWeighted) Split(train, test []int) (*validate.Part, error) {
	p, err := d.Data.Split(train, test)
	if err == nil {
		p.Train.Weights, err = d.flags.reweight(p.Train.Weights, d.classes, p.Train.Y)
	}
	return p, err
}

// runner returns a Runner that fits models to subsets of the rows in the remaining memory.
func (r *resampling) runner(ctx context.Context) (context.Context, validate.Runner) {
	o := learners.Options{Classes: r.fullEncoder.Classes(), Progress: r.p.report}
	fitCtx := r.memory.fitting(ctx, &o)
	return fitCtx, validate.Runner{Data: r.data, Devices: r.devices, Options: o}
}

// checkFolds returns an error if there are more folds than rows.
func checkFolds(t *dataset.Table, folds int) error {
	if n := t.Rows(); n == 1 {
		return fmt.Errorf("%s: the table has only one row, but at least two are needed: one to hold out and one to fit", t.Source)
	} else if folds > n {
		return usagef("--folds: %s cannot be divided into %d folds; give --folds %d or fewer", count(n, "row"), folds, n)
	}
	return nil
}

// kFold divides the rows. If stratify is true, each fold has the same fraction of each class.
func (r *resampling) kFold(folds int, stratify bool) (validate.Splits, error) {
	if err := checkFolds(r.table, folds); err != nil {
		return nil, err
	}
	var strata []int
	if stratify && r.task == learners.Classification {
		y, err := r.fullEncoder.Targets(r.table)
		if err != nil {
			return nil, err
		}
		for _, v := range mat.Col(nil, 0, y) {
			strata = append(strata, int(v))
		}
	}
	return validate.KFold(r.table.Rows(), folds, strata, r.f.seed)
}

// scores fits n models to the training rows of splits, and scores each on its other rows.
func (r *resampling) scores(ctx context.Context, n int, splits validate.Splits, onFit func(learners.Model, time.Duration), explain func(i int, err error) error) ([]*validate.Score, error) {
	fitCtx, runner := r.runner(ctx)
	scores, err := runner.Scores(fitCtx, r.fit, n, splits, onFit)
	return scores, explainFit(err, explain)
}

// explainFit applies explain to a *validate.FitError, to say in which fit the error occurred.
func explainFit(err error, explain func(i int, err error) error) error {
	if fitErr := (*validate.FitError)(nil); errors.As(err, &fitErr) {
		return explain(fitErr.Fit, fitErr.Err)
	}
	return err
}

// ofFolds returns a function that adds the number of the held-out fold to an error of a fit.
func ofFolds(folds int) func(i int, err error) error {
	return func(i int, err error) error {
		return fmt.Errorf("%w; in the fit without fold %d of %d", err, i%folds+1, folds)
	}
}

// reportUnknown prints the number of held-out rows with texts that did not occur in training.
func (r *resampling) reportUnknown() {
	if t, ok := r.data.(classWeighted).Data.(*validate.Table); ok {
		r.a.reportUnknown(r.table.Source, "held-out row", t.Unknown())
	}
}

// reportEmpty prints the columns that have no values in some training sets. Models of these sets omit the columns.
func (r *resampling) reportEmpty() {
	d, _ := r.data.(classWeighted)
	if t, ok := d.Data.(*validate.Table); ok {
		r.a.reportEmpty(t)
	}
}

func (a *app) reportEmpty(t *validate.Table) {
	for _, name := range t.EmptyColumns() {
		a.notice("%s: column %.60q has no value in the training rows of some models; these models leave it out", t.Source, name)
	}
}

func (a *app) crossValidate(ctx context.Context, f *resampleFlags, folds, repeats int, stratify bool, file string) error {
	r, err := a.newResampling(ctx, f, "cv", file)
	if err != nil {
		return err
	}
	defer r.closeDevices()
	splits, err := r.kFold(folds, stratify)
	if err != nil {
		return err
	}
	scores, err := r.scores(ctx, folds*repeats, splits, nil, ofFolds(folds))
	if err != nil {
		return err
	}
	r.p.close()
	r.reportUnknown()
	return a.printReport(ctx, resampleReport{Learner: f.learner, Task: r.task, Assumed: f.assumed(r.table, r.task), N: r.table.Rows(), Folds: folds, Repeats: repeats, Measures: validate.Measures(scores), Planned: r.memory.total()})
}

// outOfBag computes the bootstrap estimate of the error.
func (r *resampling) outOfBag(ctx context.Context, rounds int) (*validate.OutOfBag, error) {
	fitCtx, runner := r.runner(ctx)
	b, err := runner.OutOfBag(fitCtx, r.fit, rounds, r.f.seed)
	if err != nil && !errors.As(err, new(*validate.FitError)) {
		return nil, fmt.Errorf("%s: %w", r.table.Source, err)
	}
	return b, explainFit(err, func(i int, err error) error {
		if i == rounds {
			return err
		}
		return fmt.Errorf("%w; in round %d of the bootstrap; another --seed draws other rows", err, i+1)
	})
}

func (a *app) bootstrap(ctx context.Context, f *resampleFlags, rounds int, file string) error {
	r, err := a.newResampling(ctx, f, "bootstrap", file)
	if err != nil {
		return err
	}
	defer r.closeDevices()
	b, err := r.outOfBag(ctx, rounds)
	if err != nil {
		return err
	}
	r.p.close()
	r.reportUnknown()
	e632 := b.E632()
	report := resampleReport{
		Learner: f.learner, Task: r.task, Assumed: f.assumed(r.table, r.task), N: r.table.Rows(), Rounds: rounds, Measures: validate.Measures(b.Scores),
		OutOfBag: &b.Error, RowsOut: b.N, Apparent: &b.Apparent, E632: &e632, Planned: r.memory.total(),
		Bias: numeric.NilIfNaN(b.Bias2), Variance: numeric.NilIfNaN(b.Variance),
	}
	return a.printReport(ctx, report)
}

// rowsAt returns a copy of the rows with the given indices.
func rowsAt(m *mat.Dense, rows []int) *mat.Dense {
	_, cols := m.Dims()
	selected := mat.NewDense(len(rows), cols, nil)
	for i, r := range rows {
		selected.SetRow(i, m.RawRowView(r))
	}
	return selected
}

// title returns the displayed name of a measure. If some models lack the measure, it gives the number of the others.
func title(m validate.Measure, models string) string {
	if n := len(m.Defined()); n < len(m.Scores) {
		return fmt.Sprintf("%s (%d of %s)", titles[m.Name], n, count(len(m.Scores), models))
	}
	return titles[m.Name]
}

// titles are the display names of measures.
var titles = map[string]string{"rmse": "RMSE", "mae": "MAE", "r2": "R²", "accuracy": "accuracy", "log_loss": "log loss", "auc": "AUC"}

// resampleReport is the output of cv and bootstrap.
type resampleReport struct {
	Learner  string             `json:"learner"`
	Task     learners.Task      `json:"task"`
	Assumed  string             `json:"task_assumed,omitempty"`
	N        int                `json:"n"`
	Folds    int                `json:"folds,omitempty"`
	Repeats  int                `json:"repeats,omitempty"`
	Rounds   int                `json:"rounds,omitempty"`
	Measures []validate.Measure `json:"measures"`
	// The next four fields are set by the bootstrap.
	OutOfBag *float64 `json:"error_out_of_bag,omitempty"`
	RowsOut  int      `json:"rows_out_of_bag,omitempty"` // number of rows that are out of bag in at least one round; OutOfBag is the mean over these rows
	Apparent *float64 `json:"error_apparent,omitempty"`
	E632     *float64 `json:"error_632,omitempty"`
	// Bias and Variance are set for numeric targets. Their sum is the square of OutOfBag.
	Bias     *float64 `json:"bias2_and_noise,omitempty"`
	Variance *float64 `json:"variance,omitempty"`

	Planned int64 `json:"planned_bytes,omitempty"` // planned peak memory of the whole process; peak_bytes is the measured value
	process.Used
}

func (r resampleReport) text() string {
	rows := [][]string{{"learner", r.Learner, ""}, {"data", count(r.N, "row"), ""}}
	if r.Assumed != "" {
		rows = append(rows, []string{"task", r.Assumed, ""})
	}
	if r.Folds > 0 {
		rows = append(rows, []string{"models", fmt.Sprintf("%d folds, %s", r.Folds, count(r.Repeats, "repeat")), ""})
	} else {
		rows = append(rows, []string{"models", count(r.Rounds, "round"), ""})
	}
	text := texttable.Format("lll", rows) + "\n"
	models := "round"
	if r.Folds > 0 {
		models = "fold"
	}
	rows = [][]string{{"measure", "mean", "standard deviation", "lowest", "highest"}}
	for _, m := range r.Measures {
		line := []string{title(m, models), "", "", "", ""}
		if values, s := m.Defined(), m.Summary(); s.N > 0 {
			line = []string{line[0], fourDigits(s.Mean), fourDigits(s.SD), fourDigits(slices.Min(values)), fourDigits(slices.Max(values))}
		}
		rows = append(rows, line)
	}
	text += texttable.Format("lrrrr", rows)
	if r.OutOfBag != nil {
		name := "root-mean-square error"
		if r.Task == learners.Classification {
			name = "fraction of rows whose class is wrong"
		}
		text += "\n" + texttable.Format("lr", [][]string{
			{name, ""}, {r.outOfRows(), fourDigits(*r.OutOfBag)}, {"training rows", fourDigits(*r.Apparent)}, {"0.632 estimate", fourDigits(*r.E632)},
		})
	}
	if r.Variance != nil {
		text += "\n" + texttable.Format("lr", [][]string{
			{"out-of-bag mean squared error", fourDigits(*r.Bias + *r.Variance)}, {"bias² and noise", fourDigits(*r.Bias)}, {"variance", fourDigits(*r.Variance)},
		})
	}
	return text
}

// outOfRows returns a phrase about the out-of-bag rows, with their number if some rows were never out of bag.
func (r resampleReport) outOfRows() string {
	if r.RowsOut < r.N {
		return fmt.Sprintf("out-of-bag rows (%d of %d)", r.RowsOut, r.N)
	}
	return "out-of-bag rows"
}

func (a *app) printReport(ctx context.Context, r resampleReport) error {
	r.Used = process.Read()
	return a.printJSONOrText(ctx, r, r.text)
}
