package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/process"
	"github.com/mercer-go/mercer/internal/texttable"
	"github.com/mercer-go/mercer/learners"
)

func (a *app) cvCommand() *cobra.Command {
	var f resampleFlags
	var folds, repeats int
	whole := false
	c := &cobra.Command{
		Use:   "cv --target COLUMN [flags] TABLE",
		Short: "Score a learner by cross-validation",
		Long: `Score a learner by k-fold cross-validation: the rows are divided into parts, and
each part is predicted by a model of the others. What is learned from a table,
the scaling of its columns included, is learned without the part. For classes every
part has its share of each, unless --no-stratify.

The output is the mean of each measure over the parts, of all repeats, and the
standard deviation.

Several devices, --device cuda/0,cuda/1, share the models.`,
		Args: oneFile,
		RunE: a.work(func(ctx context.Context, args []string) error {
			return a.crossValidate(ctx, &f, folds, repeats, !whole, args[0])
		}),
	}
	f.addAll(c, &a.input)
	intFlag(c.Flags(), &folds, "folds", 10, 2, "parts of the rows")
	intFlag(c.Flags(), &repeats, "repeats", 1, 1, "divide the rows so many times, each time anew")
	c.Flags().BoolVar(&whole, "no-stratify", false, "divide the rows whatever their classes")
	return c
}

func (a *app) bootstrapCommand() *cobra.Command {
	var f resampleFlags
	var rounds int
	c := &cobra.Command{
		Use:   "bootstrap --target COLUMN [flags] TABLE",
		Short: "Score a learner by the bootstrap: rows out of the bag",
		Long: `Score a learner by the bootstrap: in each round a model is fitted to as many
rows as there are, drawn with replacement, and predicts those that were not drawn,
about 37 % of them.

The output is the mean of each measure over the rounds, the standard deviation,
and two estimates of the error: that of a row by the models that did not see it,
averaged over the rows, and 0.632 of it with 0.368 of the error on the rows that
a model of all was fitted to (Efron and Tibshirani, 1997). The error is the root
of the mean squared error, or the part of the rows whose class is wrong.

For numbers the squared error out of the bag is divided into (f̄ − y)², the bias and the
noise of the target, and the variance of f over the rounds, f̄ the mean of the models
that did not see the row (Geman, Bienenstock and Doursat, 1992).

Several devices, --device cuda/0,cuda/1, share the models.`,
		Args: oneFile,
		RunE: a.work(func(ctx context.Context, args []string) error {
			return a.bootstrap(ctx, &f, rounds, args[0])
		}),
	}
	f.addAll(c, &a.input)
	intFlag(c.Flags(), &rounds, "rounds", 50, 2, "models to fit")
	return c
}

// resampleFlags are the flags of cv and bootstrap.
type resampleFlags struct {
	learnerFlags
	objects objectFlags
	all     *dataset.Table // once it was read
}

// addAll adds the flags of a table too.
func (f *resampleFlags) addAll(c *cobra.Command, input *inputFlags) {
	f.add(c)
	f.objects.add(c)
	input.add(c.Flags())
}

// resampling fits a learner to some rows of a table and scores it on others, again
// and again.
type resampling struct {
	a    *app
	f    *resampleFlags
	task learners.Task
	fit  learners.Fitter
	all  *dataset.Table
	full *dataset.Encoder // of all rows: for classes and categories
	x, y *mat.Dense       // of all rows, where the input is texts, trees or a Gram matrix; otherwise nil
	p    *progress

	weights []float64 // of all rows; nil: all 1

	fitted func(m learners.Model, took time.Duration) // looks at each model; may be nil

	mu      sync.Mutex
	unknown []dataset.Unknown // of the rows that were held out, of all models

	memory  *budget
	devices []backend.Device // that share the models
	close   func()           // of the devices
}

// newResampling reads the table and opens the devices, which the caller closes.
func (a *app) newResampling(ctx context.Context, f *resampleFlags, command, file string) (r *resampling, err error) {
	if err := f.objects.take(&f.learnerFlags); err != nil {
		return nil, err
	}
	if err := f.check(command); err != nil {
		return nil, err
	}
	if len(f.targets) == 0 {
		return nil, usagef("%s needs --target COLUMN: what the predictions are compared with", command)
	}
	r = &resampling{a: a, f: f}
	if err := r.openDevices(); err != nil {
		return nil, err
	}
	release := r.close
	r.close = func() {
		if r.p != nil {
			r.p.close()
		}
		release()
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	r.memory = a.newBudget(r.devices[0])
	all := f.all
	if all == nil {
		if all, err = a.table(file); err != nil {
			return nil, err
		}
		f.all = all
	}
	r.all, r.task = all, f.taskFor(all)
	if r.fit, err = f.fitter(r.task); err != nil {
		return nil, err
	}
	rules := f.objects.rules(f.rules(r.task))
	if all, r.weights, err = rules.Weighted(all); err != nil {
		return nil, err
	}
	if r.all = all; len(f.classes) > 0 && r.task != learners.Classification {
		_, err := f.ofClasses(nil, nil)
		return nil, err
	}
	if r.full, err = dataset.Learn(all, rules); err != nil {
		return nil, err
	}
	if err := r.memory.encoding(all, r.full, ""); err != nil {
		return nil, err
	}
	if f.objects.kernel != nil || r.full.Gram { // kernel values do not depend on what is held out
		if r.y, err = r.full.Targets(all); err == nil {
			r.x, _, err = a.trainingFeatures(ctx, r.full, all, f.objects.kernel)
		}
	} else {
		_, _, err = encode(r.full, all) // what is wrong with the table as a whole
	}
	if err != nil {
		return nil, err
	}
	r.p = a.newProgress()
	return r, nil
}

// score fits to the rows train on a device and scores on the rows test.
func (r *resampling) score(ctx context.Context, dev backend.Device, train, test []int) (*score, error) {
	d, err := r.encode(train, test)
	if err != nil {
		return nil, err
	}
	names := r.full.Classes()
	options := learners.Options{Classes: names, Keys: d.keys, Weights: d.weights}
	within, start := r.memory.fitting(ctx, &options), time.Now()
	m, err := r.fit(within, dev, d.x, d.y, options)
	if err != nil {
		return nil, err
	}
	if r.fitted != nil {
		r.mu.Lock()
		r.fitted(m, time.Since(start))
		r.mu.Unlock()
	}
	quiet := &app{stderr: r.a.stderr, quiet: true} // of the many predictions
	return quiet.scoreOf(ctx, dev, m, names, d.xTest, d.truth, d.testWeights)
}

// division is a table as rows to fit to and rows to score on. The weights of the former
// are those of the rows and of their classes.
type division struct {
	x, y, xTest, truth   *mat.Dense
	keys                 []uint64
	weights, testWeights []float64
}

// encode returns the samples, targets, keys and weights of the rows. Means, spreads and
// categories of columns are those of train; the classes, and which columns are texts, are
// those of the whole table.
func (r *resampling) encode(train, test []int) (d *division, err error) {
	if r.x != nil {
		d = &division{x: rowsAt(r.x, train), y: rowsAt(r.y, train), xTest: rowsAt(r.x, test), truth: rowsAt(r.y, test)}
	} else if d, err = r.encodeTables(r.all.Select(train), r.all.Select(test)); err != nil {
		return nil, err
	}
	d.testWeights = weightsAt(r.weights, test)
	d.weights, err = r.f.times(weightsAt(r.weights, train), r.full.Classes(), d.y)
	return d, err
}

func (r *resampling) encodeTables(t, held *dataset.Table) (*division, error) {
	rules := r.f.rules(r.task)
	rules.AnyLabels = true // of the whole table they were not too many
	enc, err := dataset.Learn(t, rules)
	if err != nil {
		return nil, err
	}
	enc.Labels = r.full.Labels
	for i, in := range r.full.Inputs {
		if in.Number == nil && enc.Inputs[i].Number != nil { // the texts were held out
			enc.Inputs[i] = in
		}
	}
	enc = r.a.input.apply(enc)
	d := &division{}
	if d.x, d.y, err = encode(enc, t); err == nil {
		d.keys, err = r.f.keys(enc, t)
	}
	if err == nil {
		d.xTest, d.truth, err = encode(enc, held)
	}
	if err == nil {
		r.mu.Lock()
		r.unknown = dataset.MergeUnknown(r.unknown, enc.Unknown(held))
		r.mu.Unlock()
	}
	return d, err
}

// rowsAt returns a copy of some rows.
func rowsAt(m *mat.Dense, rows []int) *mat.Dense {
	_, cols := m.Dims()
	part := mat.NewDense(len(rows), cols, nil)
	for i, r := range rows {
		part.SetRow(i, m.RawRowView(r))
	}
	return part
}

// measure is a figure over many models. A model for which it is not defined, such as an AUC
// in a fold without a class, has a null in Scores and no part in the mean.
type measure struct {
	Name   string     `json:"name"`
	Mean   *float64   `json:"mean"` // null: it is defined for no model
	SD     *float64   `json:"sd"`
	Scores []*float64 `json:"scores"` // of each fold, one repeat after the other, or of each round
}

// defined returns the scores that are.
func (m measure) defined() (values []float64) {
	for _, v := range m.Scores {
		if v != nil {
			values = append(values, *v)
		}
	}
	return values
}

// title is the measure's name for eyes, with the number of models that it is the mean of
// where others have none.
func (m measure) title(models string) string {
	if n := len(m.defined()); n < len(m.Scores) {
		return fmt.Sprintf("%s (%d of %s)", titles[m.Name], n, count(len(m.Scores), models))
	}
	return titles[m.Name]
}

// measures collects the figures of the scores of models, nil for one without rows to score.
// A measure that the learner's task lacks is left out.
func measures(scores []*score) []measure {
	var list []measure
	classes := slices.ContainsFunc(scores, func(s *score) bool { return s != nil && s.Accuracy != nil })
	for _, f := range []struct {
		name string
		of   func(*score) *float64
		has  bool
	}{
		{"rmse", func(s *score) *float64 { return s.RMSE }, !classes}, {"mae", func(s *score) *float64 { return s.MAE }, !classes}, {"r2", func(s *score) *float64 { return s.R2 }, !classes},
		{"accuracy", func(s *score) *float64 { return s.Accuracy }, classes}, {"log_loss", func(s *score) *float64 { return s.LogLoss }, false}, {"auc", func(s *score) *float64 { return s.AUC }, classes},
	} {
		m := measure{Name: f.name}
		for _, s := range scores {
			var v *float64
			if s != nil {
				v = f.of(s)
			}
			m.Scores = append(m.Scores, v)
		}
		values := m.defined()
		if spread := learners.NewSummary(values); spread.N > 0 {
			m.Mean, m.SD = &spread.Mean, &spread.SD
		}
		if f.has || len(values) > 0 {
			list = append(list, m)
		}
	}
	return list
}

// titles are the names of measures for eyes.
var titles = map[string]string{"rmse": "RMSE", "mae": "MAE", "r2": "R²", "accuracy": "accuracy", "log_loss": "log loss", "auc": "AUC"}

// resampleReport is what cv and bootstrap print.
type resampleReport struct {
	Learner  string        `json:"learner"`
	Task     learners.Task `json:"task"`
	Assumed  string        `json:"task_assumed,omitempty"`
	N        int           `json:"n"`
	Folds    int           `json:"folds,omitempty"`
	Repeats  int           `json:"repeats,omitempty"`
	Rounds   int           `json:"rounds,omitempty"`
	Measures []measure     `json:"measures"`
	// Of the bootstrap.
	OutOfBag *float64 `json:"error_out_of_bag,omitempty"`
	RowsOut  int      `json:"rows_out_of_bag,omitempty"` // in some round at least: OutOfBag is the mean over them
	Apparent *float64 `json:"error_apparent,omitempty"`
	E632     *float64 `json:"error_632,omitempty"`
	// Of numbers: their sum is the square of OutOfBag.
	Bias     *float64 `json:"bias2_and_noise,omitempty"`
	Variance *float64 `json:"variance,omitempty"`

	Planned int64 `json:"planned_bytes,omitempty"` // of memory for the whole process, beside peak_bytes
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
		line := []string{m.title(models), "", "", "", ""}
		if values := m.defined(); len(values) > 0 {
			line = []string{line[0], short(*m.Mean), short(*m.SD), short(slices.Min(values)), short(slices.Max(values))}
		}
		rows = append(rows, line)
	}
	text += texttable.Format("lrrrr", rows)
	if r.OutOfBag != nil {
		name := "root of the mean squared error"
		if r.Task == learners.Classification {
			name = "part of the rows whose class is wrong"
		}
		text += "\n" + texttable.Format("lr", [][]string{
			{name, ""}, {r.outOfBag(), short(*r.OutOfBag)}, {"rows that were learned", short(*r.Apparent)}, {"0.632 estimate", short(*r.E632)},
		})
	}
	if r.Variance != nil {
		text += "\n" + texttable.Format("lr", [][]string{
			{"mean squared error out of the bag", short(*r.Bias + *r.Variance)}, {"bias² and noise", short(*r.Bias)}, {"variance", short(*r.Variance)},
		})
	}
	return text
}

// outOfBag says of how many rows the error is, where some were in every bag.
func (r resampleReport) outOfBag() string {
	if r.RowsOut < r.N {
		return fmt.Sprintf("rows out of the bag (%d of %d)", r.RowsOut, r.N)
	}
	return "rows out of the bag"
}

func (a *app) printReport(ctx context.Context, r resampleReport) error {
	r.Used = process.Read()
	return a.report(ctx, r, r.text)
}
