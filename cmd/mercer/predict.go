package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/process"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
)

// predictFlags are the flags of `mercer predict`.
type predictFlags struct {
	model, out           string
	proba, decision, std bool
	bound, stream        bool
	interval             float64
	samples              int // number of functions to draw from the posterior distribution
	seed                 uint64
	keep                 []string // names of columns of the table that are copied to the output
}

func (a *app) predictCommand() *cobra.Command {
	var f predictFlags
	c := &cobra.Command{
		Use:   "predict --model FILE [flags] TABLE > predictions.csv",
		Short: "Predict a row for each row of a table",
		Long: `Predict a row for each row of a table: CSV with the header "prediction", or
"prediction_NAME" for each of several targets. The table has the columns that
the model was fitted with, in any order; other columns are ignored. It may
be in any format that mercer fit reads. --keep COLUMNS copies columns of the table, such as
a key, unchanged to the output; the index of pandas, a first column without a name, is
called index.

--out FILE writes the format of its ending: .csv, .csv.gz, .json (an array of one object
for each row), .npy (numbers only), .npz (an array for each column), .parquet or .arrow.

A classifier predicts labels. --proba adds a column "probability_CLASS" for each class.
--decision adds the decision values: "decision" for two classes, where > 0 means the
second, and "decision_CLASS" for each of more classes. A model of svc fitted with
--probability predicts the most probable class. A model of one-class-svm predicts
inlier, f ≥ 0, or outlier.

--std adds "std", or "std_NAME" for each of several targets: the standard
deviation of a new target, noise included, of models that know it
(gaussian-process, bayes-ridge and others).

--samples N adds "sample_1" to "sample_N", or "sample_1_NAME" and so on: draws of
the function from its posterior, without noise. Each is one function at all rows,
of models of ridge, nystrom-ridge and fourier-ridge fitted with --std.

--bound adds "bound", or "bound_NAME" for each of several targets: a proven bound on the
distance between the prediction and the prediction of the exact solution. Models of
kernel-ridge and gaussian-process have bounds. Models of ridge, nystrom-ridge and
fourier-ridge have bounds after small fits, and after fits with --bound. After a fit with
--bound the bounds are sharp, and computing them takes long.

--interval LEVEL adds "lower" and "upper", or "lower_NAME" and "upper_NAME":
the target of a row drawn like the training rows lies between them with about
that probability, whatever the distribution. For classes it adds "in_set_CLASS" for each
class: 1 if the class is in the prediction set, which contains the true class with that
probability. Models of kernel-ridge, and of ridge fitted with --intervals, have intervals
by the jackknife+, which guarantees the probability 2 LEVEL - 1. Every model fitted with
--calibrate has split conformal intervals, which guarantee LEVEL. For the jackknife+ each
run factors a matrix, which takes about as long as the fit; after --calibrate, intervals
take no longer than a prediction.`,
		Args: requireOneFile,
		RunE: a.work(func(ctx context.Context, args []string) error { return a.predict(ctx, f, args[0]) }),
	}
	a.addModel(c, &f.model)
	c.Flags().StringVar(&f.out, "out", "", "`FILE` to write if no error occurs, ending in "+strings.Join(predictExtensions, ", ")+" (default: CSV to the standard output)")
	c.Flags().StringSliceVar(&f.keep, "keep", nil, "`COLUMNS` of the table to copy beside the predictions")
	c.Flags().BoolVar(&f.proba, "proba", false, "add the probabilities of the classes")
	c.Flags().BoolVar(&f.std, "std", false, "add the standard deviations of new targets")
	c.Flags().BoolVar(&f.bound, "bound", false, "add proven bounds of the errors of the computation")
	addInterval(c.Flags(), &f.interval)
	c.Flags().IntVar(&f.samples, "samples", 0, "`NUMBER` of draws of the function from its posterior to add")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "seed of the draws")
	c.Flags().BoolVar(&f.stream, "stream", false, streamHelp)
	c.Flags().BoolVar(&f.decision, "decision", false, "add the decision values of the classes")
	return c
}

func (a *app) predict(ctx context.Context, f predictFlags, file string) error {
	if f.out != "" {
		if err := a.checkOutput(ctx, "--out", f.out, file, a.input.labels, f.model); err != nil {
			return err
		}
	}
	ext := ".csv"
	if f.out != "" {
		var err error
		if ext, err = predictExtension(f.out, a.json); err != nil {
			return err
		}
	}
	if duplicate(f.keep) != "" {
		return usagef("--keep: %q is given twice", duplicate(f.keep))
	}
	isSet := a.command.Flags().Changed
	if isSet("samples") && f.samples < 1 {
		return usagef("--samples: must be ≥ 1, got %d", f.samples)
	}
	if isSet("seed") && f.samples == 0 {
		return usagef("--seed: has no effect without --samples")
	}
	if f.samples > 0 && f.stream {
		return usagef("--samples: a draw needs all rows in memory: omit --stream")
	}
	a.input.keep = f.keep
	dev, b, t, memory, err := a.openModel(f.model, file, f.stream)
	if err != nil {
		return err
	}
	defer dev.Close()
	if err := f.defined(b); err != nil {
		return err
	}
	if err := checkInterval(f.interval, b); err != nil {
		return err
	}
	if b, err = a.complete(ctx, b, f.std || f.interval > 0 && b.Calibration == nil); err != nil {
		return err
	}
	cells, err := a.keptCells(ctx, f.keep, t, file)
	if err != nil {
		return err
	}
	rows, err := a.apply(ctx, dev, b, t, file, extraResults{proba: f.proba, std: f.std, bound: f.bound, interval: f.interval, samples: f.samples, seed: f.seed}, memory)
	if err != nil {
		return err
	}
	p, err := newPredictions(f, b, rows)
	if err != nil {
		return err
	}
	if err := p.insertKept(f.keep, cells); err != nil {
		return err
	}
	if a.json {
		memory.note(memory.dataBytes() + p.textBytes())
		p.Planned, p.Used = memory.total(), process.Read()
	}
	text, err := a.format(p, ext)
	if err != nil {
		return err
	}
	if f.out != "" {
		return a.writeFile(ctx, "--out", f.out, text)
	}
	return a.print(ctx, string(text))
}

// addModel adds --model and the flags of input tables. With --model, --help shows only the flags of that model.
func (a *app) addModel(c *cobra.Command, model *string) {
	c.Flags().StringVar(model, "model", "", "`FILE` of the model; --model FILE --help shows what it can do")
	a.input.add(c.Flags())
	beforeHelp(c, func() {
		if *model == "" {
			return
		}
		b, err := modelfile.Load(*model)
		if err != nil {
			c.Long += "\n\n" + wrapped("--model: "+oneLine(err), terminalWidth)
			return
		}
		b.Model = validate.Scorable(b.Model)
		for name, err := range map[string]error{
			"proba": predictFlags{proba: true}.defined(b), "decision": predictFlags{decision: true}.defined(b),
			"std": predictFlags{std: true}.defined(b), "bound": predictFlags{bound: true}.defined(b), "samples": predictFlags{samples: 1}.defined(b), "interval": checkInterval(0.9, b),
		} {
			if flag := c.Flags().Lookup(name); flag != nil {
				flag.Hidden = err != nil
			}
		}
		c.Long += "\n\n" + wrapped(*model+" is a model of "+b.Model.Learner()+".", terminalWidth)
	})
}

// defined returns an error for requested values that the model does not provide.
func (f predictFlags) defined(b modelfile.Bundle) error {
	m := b.Model
	if _, ok := m.(learners.Classifier); f.decision && !ok {
		return usagef("--decision: %s predicts numbers, and only classes have decision values", m.Learner())
	}
	if _, ok := learners.As[learners.Prober](m); f.proba && !ok {
		return usagef("--proba: this model of %s has no probabilities%s", m.Learner(), fittedWith(m, "probability"))
	}
	_, classes := m.(learners.Classifier)
	if _, ok := learners.As[learners.Uncertain](m); f.std && !ok && classes {
		return usagef("--std: a model of classes has no standard deviation; use --proba or --decision")
	} else if advice := fittedWith(m, "std"); f.std && !ok && advice != "" {
		return usagef("--std: this model of %s has no standard deviation%s", m.Learner(), advice)
	} else if f.std && !ok {
		return usagef("--std: a model of %s has no standard deviation; a model of gaussian-process has one", m.Learner())
	}
	if m, ok := m.(learners.Bounded); f.bound && (!ok || !m.HasBound()) {
		if ok {
			return usagef("--bound: this model of %s has no proven bound; mercer fit --bound proves one, or says why there is none", b.Model.Learner())
		}
		return usagef("--bound: this model of %s has no proven bound; models of these learners have one: %s", b.Model.Learner(),
			strings.Join(learnersThat(func(d learners.Description) bool { _, has := d.Parameter("bound"); return has }), ", "))
	}
	if _, ok := learners.As[learners.Sampler](m); f.samples > 0 && !ok {
		return usagef("--samples: this model of %s has no posterior to draw from; models of ridge, nystrom-ridge and fourier-ridge fitted by mercer fit --std have one", m.Learner())
	}
	if (f.std || f.samples > 0) && b.Encoder.Gram {
		name := "std"
		if !f.std {
			name = "samples"
		}
		return usagef("--%s: needs the kernel value of each row with itself, but the table has only those with the training rows", name)
	}
	return nil
}

// fittedWith returns the advice to fit the model again with the given parameter, or "" if the learner of m lacks it.
func fittedWith(m learners.Model, parameter string) string {
	if d, err := learners.Find(m.Learner()); err == nil {
		if _, has := d.Parameter(parameter); has {
			return "; fit it by mercer fit --" + parameter
		}
	}
	return ""
}

// openModel opens the device, the model and the table for predict and evaluate. With --stream, the table is nil.
func (a *app) openModel(model, file string, stream bool) (dev backend.Device, b modelfile.Bundle, t *dataset.Table, memory *budget, err error) {
	if model == "" {
		return nil, b, nil, nil, usagef("--model FILE is needed: a model that mercer fit wrote")
	}
	if err = a.input.check(); err != nil {
		return nil, b, nil, nil, err
	}
	if b, err = modelfile.Load(model); err != nil {
		return nil, b, nil, nil, err
	}
	if b.Encoder == nil {
		return nil, b, nil, nil, usagef("%s: the model was saved without the rules for its columns, so that only a Go program can use it", model)
	}
	a.input.ofModel = b.Encoder
	if dev, err = a.open(); err != nil {
		return nil, b, nil, nil, err
	}
	memory = a.newBudget(dev) // the budget does not include the model, which is already in memory
	if !stream {
		if t, err = a.table(file, memory); err != nil {
			dev.Close()
			return nil, b, nil, nil, err
		}
	}
	b.Encoder = a.input.apply(b.Encoder)
	b.Model = validate.Scorable(b.Model)
	return dev, b, t, memory, nil
}

// predictions holds the JSON object that --json prints, and the columns of the other formats.
type predictions struct {
	N           int                 `json:"n"`
	Targets     []string            `json:"targets"`
	Classes     []string            `json:"classes,omitempty"`
	Predictions any                 `json:"predictions"` // [][]float64, or []string for classes
	Proba       [][]float64         `json:"probabilities,omitempty"`
	Decision    [][]float64         `json:"decision,omitempty"`
	Std         [][]float64         `json:"std,omitempty"`
	Samples     [][][]float64       `json:"samples,omitempty"` // functions drawn from the posterior, each with the targets of each row
	Bound       [][]float64         `json:"bound,omitempty"`   // proven bounds on the errors of the predicted values
	Lower       [][]float64         `json:"lower,omitempty"`   // lower ends of the prediction intervals
	Upper       [][]float64         `json:"upper,omitempty"`
	Sets        [][]string          `json:"sets,omitempty"`          // classes in the prediction set of each row
	Kept        map[string][]string `json:"kept,omitempty"`          // cells of the columns that --keep names
	Planned     int64               `json:"planned_bytes,omitempty"` // planned peak memory of the whole process; peak_bytes is the measured value
	process.Used

	columns []predictedColumn
}

// textBytes estimates the memory for writing the table, with 20 bytes for each number: twice in a buffer that
// doubles when it grows, and once in a copy.
func (p *predictions) textBytes() int64 { return 3 * 20 * int64(p.N) * int64(len(p.columns)) }

func (p *predictions) add(c predictedColumn) { p.columns = append(p.columns, c) }

// newPredictions makes the table of a model's predictions.
func newPredictions(f predictFlags, b modelfile.Bundle, o modelOutput) (predictions, error) {
	n, _ := o.Values.Dims()
	p := predictions{N: n, Targets: b.Encoder.TargetNames()}
	if err := o.Check(); err != nil {
		return p, err
	}
	add := p.add
	k, ok := b.Model.(learners.Classifier)
	if !ok {
		p.Predictions = rowsOf(o.Values)
		addNumbers(add, "prediction", p.Targets, o.Values)
		if o.variance != nil {
			o.variance.Apply(func(_, _ int, v float64) float64 { return math.Sqrt(v) }, o.variance)
			p.Std = rowsOf(o.variance)
			addNumbers(add, "std", p.Targets, o.variance)
		}
		for i, draw := range o.draws {
			p.Samples = append(p.Samples, rowsOf(draw))
			addNumbers(add, fmt.Sprintf("sample_%d", i+1), p.Targets, draw)
		}
		if o.bounds != nil {
			p.Bound = rowsOf(o.bounds)
			addNumbers(add, "bound", p.Targets, o.bounds)
		}
		if o.lower != nil {
			p.Lower, p.Upper = rowsOf(o.lower), rowsOf(o.upper)
			addNumbers(add, "lower", p.Targets, o.lower)
			addNumbers(add, "upper", p.Targets, o.upper)
		}
		return p, numeric.CheckFinite("the standard deviation", o.variance)
	}
	classes := k.Classes()
	p.Classes = classes.Names
	labels := make([]string, n)
	for i := range labels {
		labels[i] = classes.Names[classes.Index(o.Values.At(i, 0))]
	}
	p.Predictions = labels
	add(predictedColumn{name: "prediction", text: func(i int) string { return labels[i] }})
	if f.proba {
		p.Proba = rowsOf(o.Proba)
		addNumbers(add, "probability", classes.Names, o.Proba)
	}
	if f.decision {
		p.Decision = rowsOf(o.Decision)
		addNumbers(add, "decision", classes.Names, o.Decision)
	}
	if o.sets != nil {
		p.Sets = o.cover.names(classes)
		addNumbers(add, "in_set", classes.Names, o.sets)
	}
	return p, nil
}

// addNumbers adds the columns of m. If m has several columns, their titles end with the given names.
func addNumbers(add func(predictedColumn), prefix string, names []string, m *mat.Dense) {
	_, cols := m.Dims()
	for j := range cols {
		name := prefix
		if cols > 1 {
			name += "_" + names[j]
		}
		number := func(i int) float64 { return m.At(i, j) }
		add(predictedColumn{name: name, text: func(i int) string { return exact(number(i)) }, number: number})
	}
}

func rowsOf(m *mat.Dense) [][]float64 {
	n, _ := m.Dims()
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = m.RawRowView(i)
	}
	return rows
}

// keptCells returns the cells of the named columns of t. If t is nil, it reads them from the file.
func (a *app) keptCells(ctx context.Context, names []string, t *dataset.Table, file string) ([][]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	if t == nil {
		s, err := a.file(file).Open()
		if err != nil {
			return nil, err
		}
		return s.Cells(ctx, names)
	}
	cells := make([][]string, len(names))
	for j, name := range names {
		var err error
		if cells[j], err = t.Cells(name); err != nil {
			return nil, err
		}
	}
	return cells, nil
}

// format formats predictions as one JSON object, or as a file with the given extension.
func (a *app) format(p predictions, ext string) ([]byte, error) {
	if !a.json {
		return p.encode(ext)
	}
	var buf bytes.Buffer
	err := json.NewEncoder(&buf).Encode(p)
	return buf.Bytes(), err
}
