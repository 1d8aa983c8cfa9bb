package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	counted "github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/fitreport"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/process"
	"github.com/mercer-go/mercer/internal/texttable"
	"github.com/mercer-go/mercer/internal/tfidf"
	"github.com/mercer-go/mercer/internal/webpage"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// fitFlags are the flags of `mercer fit`.
type fitFlags struct {
	learnerFlags
	model, plot  string
	testFraction float64
	calibrate    float64
	centersFrom  string
	trace        bool
	epochs       *epochTrace // records the epochs for --trace
	checkpoint   solvers.Checkpoint
	objects      objectFlags
}

const checkpointEvery = 30 * time.Second

func (a *app) fitCommand() *cobra.Command {
	var f fitFlags
	c := &cobra.Command{
		Use:   "fit --target COLUMN --model FILE [flags] TABLE",
		Short: "Fit a model to a table and save it",
		Long: `Fit a model to a table and save it.

Columns of text become one column for each value, empty cells are replaced by the median
(text: by the most frequent value), and numbers are standardized to mean 0 and variance
1. The model stores what is learned from the training rows, so that predict takes raw
rows. mercer help tables describes the formats of TABLE, and which targets are classes.`,
		Args: requireOneFile,
		RunE: a.work(func(ctx context.Context, args []string) error { return a.fit(ctx, f, args[0]) }),
	}
	refuseFlags(c, f.refusals)
	f.add(c)
	f.objects.add(c)
	c.Flags().StringVar(&f.model, "model", "", "`FILE` to write the model to (safetensors)")
	c.Flags().StringVar(&f.plot, "plot", "", "`FILE` to write a page of the report into, with the predictions of the held-out rows: .html")
	c.Flags().StringVar(&f.checkpoint.Dir, "checkpoint", "", "`FOLDER` for the state of an iterative solver, from which the same fit can resume")
	c.Flags().StringVar(&f.centersFrom, "centers-from", "", "`FILE` of a table whose rows are the centers, instead of rows of TABLE")
	c.Flags().DurationVar(&f.checkpoint.Every, "checkpoint-every", checkpointEvery, "`TIME` between two checkpoints")
	c.Flags().Float64Var(&f.testFraction, "test-fraction", 0, "fraction of the rows to hold out and to score the model on, 0 to 1")
	c.Flags().Float64Var(&f.calibrate, "calibrate", 0, "fraction of the other rows to hold out for prediction intervals (mercer predict --interval), 0 to 1")
	c.Flags().BoolVar(&f.trace, "trace", false, "report the loss and the mistakes of each epoch; mercer plot epochs draws them")
	c.Flags().BoolVar(&f.stream, "stream", false, "read the table in passes, for a table larger than the memory: "+strings.Join(streamLearners(), ", "))
	a.input.add(c.Flags())
	return c
}

// tablesCommand returns the help topic "tables".
func tablesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tables",
		Short: "Formats of tables, and which targets are classes",
		Long: `A table is a file in one of these formats, which its first bytes show:

  CSV        with a header line. The delimiter is that of --delimiter, or the
             most frequent of , ; tab | in the header, or spaces. A first
             column without a name, the index of pandas, is left out. --decimal
             and --thousands say what commas in numbers mean
  LIBSVM     features x1, x2, … (and x0 where the index 0 occurs), target label
  NPY, NPZ   of NumPy: features x1, x2, … and target y, of the arrays X and y
  NPZ, MTX   sparse matrices of SciPy and Matrix Market: features x1, x2, …;
             the target is an array y in the NPZ file, or that of --labels
  Parquet
  Arrow      IPC files, which Feather files of version 2 are, and streams
  JSON       objects whose keys name the columns, one after the other (JSON
             lines) or in an array
  IDX        the format of MNIST: the target label comes from
             train-labels-idx1-ubyte beside train-images-idx3-ubyte

All but NPZ and Parquet may be compressed by gzip or zstd; - is the standard input.

A target of texts holds classes. For learners of classification, a target of integers
also holds classes; with --task classification every target does.

Columns of text become one column for each value, empty cells are replaced by the median
(text: by the most frequent value), and numbers are standardized to mean 0 and variance 1
unless --no-standardize is given. All values are learned from the training rows. Texts of
a column that were unseen in training become zeros; --unknown error refuses them.`,
	}
}

// refusals lists the flags that have no effect with the learner or with --stream.
func (f *fitFlags) refusals() []refusal {
	d := f.description()
	list := func(names []string) string { return strings.Join(names, ", ") }
	return []refusal{
		{f.stream, "calibrate", "rows cannot be held out with --stream; leave one of them out", ""},
		{f.stream, "test-fraction", "rows cannot be held out with --stream; put them in another file, and score it by mercer evaluate", ""},
		{f.stream, "text tree", "a column of texts or trees cannot be read in passes; leave --stream out", ""},
		{d.Name != "nystrom-ridge", "centers-from", d.Name + " has no centers; use nystrom-ridge", ""},
		{f.objects.flag() != "", "centers-from", "the centers of texts and trees are rows of TABLE; leave --centers-from out", ""},
		{!d.Checkpoints(), "checkpoint checkpoint-every", d.Name + " writes no checkpoints; these learners do: " + list(checkpointLearners()), ""},
		{!d.ReadsRows(), "stream", d.Name + " needs the whole table in memory; learners that support --stream: " + list(streamLearners()), ""},
		{!d.Traces(), "trace", fmt.Sprint(hasEpochs(d)), ""},
	}
}

// check returns an error for the first wrong flag.
func (f *fitFlags) check() error {
	if err := f.objects.replaceKernel(&f.learnerFlags); err != nil {
		return err
	}
	if err := f.learnerFlags.check("fit"); err != nil {
		return err
	}
	f.epochs = &epochTrace{learner: f.learner}
	switch {
	case f.model == "":
		return usagef("fit needs --model FILE: where to write the model, such as m.safetensors")
	case isFile(f.checkpoint.Dir):
		return fmt.Errorf("--checkpoint: %s is a file; give the name of a folder", f.checkpoint.Dir)
	case f.checkpoint.Every <= 0:
		return usagef("--checkpoint-every: must be > 0, got %v", f.checkpoint.Every)
	case f.checkpoint.Every != checkpointEvery && f.checkpoint.Dir == "":
		return usagef("--checkpoint-every: needs --checkpoint FOLDER")
	case !(f.testFraction >= 0 && f.testFraction < 1):
		return usagef("--test-fraction: must be ≥ 0 and < 1, got %v", f.testFraction)
	case f.testFraction > 0 && len(f.targets) == 0:
		return usagef("--test-fraction: needs --target COLUMN, because the held-out rows are scored")
	case !(f.calibrate >= 0 && f.calibrate < 1):
		return usagef("--calibrate: must be ≥ 0 and < 1, got %v", f.calibrate)
	case f.calibrate > 0 && len(f.targets) == 0:
		return usagef("--calibrate: needs --target COLUMN, the target of the prediction intervals")
	}
	return nil
}

// insteadOfMemory returns advice on how to fit a table that exceeds the memory.
func (f *fitFlags) insteadOfMemory() string {
	switch names := streamLearners(); {
	case f.objects.text != "" || f.objects.tree != "" || f.gram:
		return ""
	case slices.Contains(names, f.learner):
		return "; --stream reads the table in passes"
	default:
		return "; --stream reads the table in passes for --learner " + strings.Join(names, " or ")
	}
}

// fitReport is the output of `mercer fit`.
type fitReport struct {
	Program string `json:"program"` // always "fit"; mercer bench import reads it
	fitreport.Report
	Task        learners.Task     `json:"task"`
	Assumed     string            `json:"task_assumed,omitempty"`
	Kernel      string            `json:"kernel,omitempty"`
	Lambda      *float64          `json:"lambda,omitempty"`
	Parameters  map[string]string `json:"parameters"` // the given parameters and the defaults
	N           int               `json:"n"`
	D           int               `json:"d"`
	OnlyScaled  bool              `json:"only_scaled,omitempty"` // the features were divided by their standard deviations, but not centered
	Texts       []textColumn      `json:"texts,omitempty"`       // columns of text with many features
	Remarks     []string          `json:"remarks,omitempty"`     // warnings about columns that look like dates or identifiers
	Dropped     []string          `json:"dropped,omitempty"`
	Weight      string            `json:"weight,omitempty"`           // name of the column of the weights
	Left        int               `json:"rows_of_weight_0,omitempty"` // number of rows of weight 0, which the field n excludes
	ClassWeight []string          `json:"class_weight,omitempty"`     // the value of --class-weight
	Device      string            `json:"device"`
	Planned     int64             `json:"planned_bytes,omitempty"` // planned peak memory of the whole process; peak_bytes is the measured value
	process.Used
	Seconds fitSeconds `json:"seconds"`
	Test    *score     `json:"test,omitempty"`

	Epochs []learners.Epoch `json:"epochs,omitempty"` // set by --trace

	Calibrated int    `json:"calibration_rows,omitempty"` // number of rows held out for prediction intervals
	Model      string `json:"model"`

	order []string        // names of the parameters that the user gave, and lambda, in the order of the learner's description
	facts []learners.Fact // facts about the model in the order of the report
}

// A textColumn is a column of text with tf-idf features, or a column with more than manyFeatures indicator features:
// its values may be codes or names.
type textColumn struct {
	Column   string `json:"column"`
	Features int    `json:"features"`
	NGrams   string `json:"ngrams,omitempty"` // what the n-grams of --tfidf consist of: words or characters
}

const manyFeatures = 20

// remarks returns the texts of warnings about columns.
func (a *app) remarks(list []dataset.ColumnWarning) (texts []string) {
	for _, r := range list {
		texts = append(texts, fmt.Sprintf("column %.60q %s", r.Column, r.Message(flagOf(a.command))))
	}
	return texts
}

func textColumns(enc *dataset.Encoder) (list []textColumn) {
	for _, in := range enc.Inputs {
		if in.TFIDF != nil {
			unit := "words"
			if in.TFIDF.Analyzer != tfidf.Word {
				unit = "characters"
			}
			list = append(list, textColumn{in.Name, in.TFIDF.Len(), unit})
		}
		if in.Text != nil && len(in.Text.Categories) > manyFeatures {
			list = append(list, textColumn{Column: in.Name, Features: len(in.Text.Categories)})
		}
	}
	return list
}

// fitSeconds lists parts of the wall time in seconds. The rest is the time for encoding, saving and other work.
type fitSeconds struct {
	Read   float64 `json:"read"`
	Gram   float64 `json:"gram"` // this and the next two fields are 0 for learners without a solver
	Factor float64 `json:"factor"`
	Solve  float64 `json:"solve"`
	Total  float64 `json:"total"`
}

func (a *app) fit(ctx context.Context, f fitFlags, file string) error {
	start := time.Now()
	if err := f.check(); err != nil {
		return err
	}
	if err := a.input.check(); err != nil {
		return err
	}
	if err := a.checkOutput(ctx, "--model", f.model, file, a.input.labels); err != nil {
		return err
	}
	if f.plot != "" {
		if _, err := extensionOf("--plot", f.plot, ".html"); err != nil {
			return err
		}
		if err := a.checkOutput(ctx, "--plot", f.plot, file, a.input.labels, f.model); err != nil {
			return err
		}
	}
	dev, err := a.open()
	if err != nil {
		return err
	}
	defer dev.Close()
	if f.stream {
		return a.fitStream(ctx, &f, dev, file, start)
	}

	memory := a.newBudget(dev)
	table, err := a.table(file, memory)
	if err != nil {
		return err
	}
	task := f.taskFor(table)
	fitter, err := f.settings.Fitter(task)
	if err != nil {
		return f.flagged(err)
	}
	rules := f.objects.rules(f.rules(task))
	rowsRead := table.Rows()
	if table, _, err = rules.Weighted(table); err != nil {
		return err
	}
	train, test, err := holdOut("--test-fraction", "test", table, f.testFraction, f.seed, rules)
	if err != nil {
		return err
	}
	train, calibration, err := holdOut("--calibrate", "calibrate", train, f.calibrate, f.seed, rules)
	if err != nil {
		return err
	}
	enc, err := dataset.Learn(train, rules)
	if err != nil {
		return err
	}
	if err := memory.planEncoding(table, enc, f.insteadOfMemory()); err != nil {
		return err
	}
	enc = a.input.apply(enc)
	b := modelfile.Bundle{Encoder: enc}
	var x mat.Matrix
	var y *mat.Dense
	if x, b.Objects, err = a.trainingFeatures(ctx, enc, train, f.objects.kernel); err == nil && len(enc.Outputs) > 0 {
		y, err = enc.Targets(train)
	}
	if err != nil {
		return err
	}
	// The rows to score are encoded first, so that an error in them is reported before the fit.
	var xTest, xCal mat.Matrix
	var yTest, yCal *mat.Dense
	var testClasses []string
	if test != nil {
		if xTest, yTest, testClasses, err = a.encodeScored(ctx, b, test); err != nil {
			return f.heldOutError(err, table, task, "--test-fraction")
		}
	}
	if calibration != nil {
		if xCal, yCal, err = a.encodeWith(ctx, b, calibration); err != nil {
			return f.heldOutError(err, table, task, "--calibrate")
		}
	}
	readTime := time.Since(start)

	p := a.newProgress()
	options := f.options(enc, p)
	options.Checkpoint = f.checkpoint
	if _, options.Weights, err = rules.Weighted(train); err != nil {
		return err
	}
	if options.Weights, err = f.reweight(options.Weights, enc.Classes(), y); err != nil {
		return err
	}
	if options.Keys, err = f.keys(enc, train); err != nil {
		return err
	}
	if options.Centers, err = a.centers(ctx, &f, enc, memory); err != nil {
		return err
	}
	if f.trace {
		options.Trace = f.epochs.add
	}
	m, err := fitter(memory.fitting(ctx, &options), dev, x, y, options)
	p.close()
	if err != nil {
		return err
	}
	r := newFitReport(a.command, m, dev)
	if f.trace {
		if err := f.epochs.check(); err != nil {
			return err
		}
		r.Epochs = f.epochs.epochs
	}
	r.setParameters(&f.learnerFlags, task)
	r.Assumed = f.assumed(table, task)
	r.Planned = memory.total()
	if test != nil {
		_, weights, err := rules.Weighted(test)
		if err != nil {
			return err
		}
		if r.Test, err = a.scoreOf(ctx, dev, m, testClasses, xTest, yTest, weights); err != nil {
			return err
		}
	}
	if calibration != nil {
		if b.Calibration, err = learners.Calibrate(ctx, dev, m, xCal, yCal); err != nil {
			return err
		}
		r.Calibrated = calibration.Rows()
	}
	r.N, r.D, r.Left = train.Rows(), enc.Width(), rowsRead-table.Rows()
	if b.Objects != nil {
		r.D, r.Kernel, r.Parameters["kernel"] = 1, b.Objects.Kernel, b.Objects.Kernel
	}
	r.Seconds.Read = readTime.Seconds()
	r.Remarks = a.remarks(enc.ColumnWarnings(train))
	b.Model = m
	return a.finish(ctx, &f, r, b, file, start)
}

// centers returns the features of the rows of --centers-from, or nil without this flag.
func (a *app) centers(ctx context.Context, f *fitFlags, enc *dataset.Encoder, memory *budget) (mat.Matrix, error) {
	if f.centersFrom == "" {
		return nil, nil
	}
	t, err := a.table(f.centersFrom, memory)
	if err != nil {
		return nil, err
	}
	return a.features(ctx, modelfile.Bundle{Encoder: withoutTargets(enc)}, t)
}

// fitStream fits a learner to a table that is read in passes.
func (a *app) fitStream(ctx context.Context, f *fitFlags, dev backend.Device, file string, start time.Time) error {
	s, err := a.stream(file)
	if err != nil {
		return err
	}
	firstRows, err := s.Head()
	if err != nil {
		return err
	}
	task := f.taskFor(firstRows)
	fitter, err := f.settings.RowsFitter(task)
	if err != nil {
		return f.flagged(err)
	}
	enc, err := s.Learn(ctx, f.rules(task))
	if err != nil {
		return err
	}
	enc = a.input.apply(enc)
	rows, err := learners.Rows(s, enc)
	if err != nil {
		return err
	}
	if rows, err = f.reweightRows(ctx, rows, enc.Classes()); err != nil {
		return err
	}
	readTime := time.Since(start)

	p := a.newProgress()
	options := f.options(enc, p)
	options.Checkpoint = f.checkpoint
	if options.Centers, err = a.centers(ctx, f, enc, a.newBudget(dev)); err != nil {
		return err
	}
	m, err := fitter(ctx, dev, rows, options)
	p.close()
	if err != nil {
		return err
	}
	r := newFitReport(a.command, m, dev)
	r.setParameters(&f.learnerFlags, task)
	r.Assumed = f.assumed(firstRows, task)
	r.N, r.D, _ = rows.Dims()
	r.Left, r.Remarks = s.ZeroWeightRows(), a.remarks(s.ColumnWarnings())
	r.Seconds.Read = readTime.Seconds()
	return a.finish(ctx, f, r, modelfile.Bundle{Model: m, Encoder: enc}, file, start)
}

// finish saves the model and prints the report.
func (a *app) finish(ctx context.Context, f *fitFlags, r fitReport, b modelfile.Bundle, file string, start time.Time) error {
	r.Dropped, r.Weight, r.ClassWeight = f.drop, f.weight, f.classes
	b.Fit = r.savedJSON()
	r.Texts, r.OnlyScaled = textColumns(b.Encoder), b.Encoder.OnlyScaled()
	err := a.commit(ctx, func() error { return modelfile.Save(f.model, b) })
	if err != nil {
		return err
	}
	r.Model = f.model
	r.Seconds.Total = time.Since(start).Seconds()
	r.Used = process.Read()
	err = a.printJSONOrText(ctx, r, r.text)
	if err == nil && f.plot != "" {
		err = a.writeFitPage(ctx, f.plot, r, file, b.Encoder.TargetNames())
	}
	if err != nil { // the error also mentions the saved model
		return fmt.Errorf("%w; the model was saved at %s", err, f.model)
	}
	return nil
}

// writeFitPage writes the page of a report.
func (a *app) writeFitPage(ctx context.Context, path string, r fitReport, file string, targets []string) error {
	pic, err := r.picture(file, targets)
	if err != nil {
		return err
	}
	page, err := pic.render(path, pixels{})
	if err != nil {
		return err
	}
	return a.writeFile(ctx, "--plot", path, page)
}

// heldOutError describes an error in a row that the given flag held out. It advises to split the rows differently,
// unless the error also occurs in an encoding of the whole table.
func (f *fitFlags) heldOutError(testErr error, table *dataset.Table, task learners.Task, flag string) error {
	enc, err := dataset.Learn(table, f.objects.rules(f.rules(task)))
	if err == nil && enc.Raw() != "" {
		_, err = enc.Targets(table)
	} else if err == nil {
		_, _, err = encode(enc, table)
	}
	if err != nil {
		return fmt.Errorf("%w; the row was held out by %s", err, flag)
	}
	return fmt.Errorf("%w; the row was held out by %s: give another --seed, or leave %[2]s out", testErr, flag)
}

// encode returns the features and targets of a table; y is nil if there are no targets.
func encode(enc *dataset.Encoder, t *dataset.Table) (x mat.Matrix, y *mat.Dense, err error) {
	if x, err = enc.Encode(t); err != nil || len(enc.Outputs) == 0 {
		return x, nil, err
	}
	y, err = enc.Targets(t)
	return x, y, err
}

// trainingFeatures returns the matrix to which a learner is fitted for the rows of a table and, for a kernel k of
// texts or trees, the objects that the model file stores.
func (a *app) trainingFeatures(ctx context.Context, enc *dataset.Encoder, train *dataset.Table, k objects.Kernel) (mat.Matrix, *modelfile.Objects, error) {
	p := a.newProgress()
	defer p.close()
	return modelfile.TrainingFeatures(ctx, enc, train, k, a.objectOptions(p))
}

// encodeTraining encodes the rows of a fit. For a Gram matrix, x holds the points of the kernel precomputed().
func encodeTraining(enc *dataset.Encoder, t *dataset.Table) (x mat.Matrix, y *mat.Dense, err error) {
	if x, _, err = modelfile.TrainingFeatures(context.Background(), enc, t, nil, objects.Options{}); err == nil && len(enc.Outputs) > 0 {
		y, err = enc.Targets(t)
	}
	return x, y, err
}

// newFitReport makes the report of a fit; the warnings name the flags of c.
func newFitReport(c *cobra.Command, m learners.Model, dev backend.Device) fitReport {
	name := flagOf(c)
	r := fitReport{Program: "fit", Report: fitreport.New(m, name), Device: dev.Info().Device, facts: learners.FactsOf(m, name)}
	if k, ok := m.(learners.Solved); ok && k.Solved() != nil {
		s := k.Solved().Seconds
		r.Seconds = fitSeconds{Gram: s.Gram, Factor: s.Factor, Solve: s.Solve}
	}
	if k, ok := m.State().Params["kernel"].(string); ok {
		r.Kernel = k
	}
	return r
}

// setParameters sets the parameters of the learner in the report.
func (r *fitReport) setParameters(f *learnerFlags, task learners.Task) {
	r.Task, r.Parameters = task, map[string]string{}
	for _, p := range f.description().Parameters {
		text, has := f.settings.Text(p.Name)
		if !has || !f.settings.Effective(p) {
			continue
		}
		r.Parameters[p.Name] = text
		if _, said := f.paramTexts[p.Name]; said || p.Name == "lambda" {
			r.order = append(r.order, p.Name)
		}
	}
	if lambda, has := f.settings.Number("lambda"); has && r.Parameters["lambda"] != "" {
		r.Lambda = &lambda
	}
}

// picture returns the page of the report.
func (r fitReport) picture(file string, targets []string) (pic picture, err error) {
	if r.Test != nil {
		if pic, err = scorePicture(r.Test, r.Learner, targets); err != nil {
			return pic, err
		}
		pic.tables = r.Test.cards()
		pic.tables[0].Title = "Scores on the held-out rows"
	}
	report := tableCard("Fit", "", append([][]string{{"property", "value"}}, r.lines()...))
	for _, row := range report.Rows {
		row[1].Words = true
	}
	pic.tables = append([]webpage.Card{report}, pic.tables...)
	if len(r.Epochs) > 0 {
		pic.rows = append(pic.rows, epochPanels(r.Epochs)...)
		pic.tables = append(pic.tables, tableCard("Epochs", "", r.epochs()))
	}
	pic.title, pic.facts = "Fit of "+r.Learner, []string{"table " + file, "model " + r.Model}
	return pic, nil
}

func (r fitReport) text() string {
	text := texttable.Format("ll", wrapRows(r.lines()))
	if len(r.Epochs) > 0 {
		text += "\n" + texttable.Format("rrr", r.epochs())
	}
	return text
}

func (r fitReport) epochs() [][]string {
	table := [][]string{{"epoch", "mistakes", "loss"}}
	for _, e := range r.Epochs {
		mistakes := ""
		if e.Mistakes != nil {
			mistakes = fmt.Sprint(*e.Mistakes)
		}
		table = append(table, []string{fmt.Sprint(e.Number), mistakes, fourDigits(e.Loss)})
	}
	return table
}

// lines returns the names and texts of the lines of the report.
func (r fitReport) lines() [][]string {
	rows := [][]string{{"learner", r.Learner}}
	add := func(name, format string, args ...any) {
		rows = append(rows, []string{name, fmt.Sprintf(format, args...)})
	}
	if r.Assumed != "" {
		add("task", "%s", r.Assumed)
	}
	if r.Kernel != "" {
		add("kernel", "%s", r.Kernel)
	}
	for _, name := range r.order {
		if !slices.Contains([]string{"kernel", "intercept", "solver", "seed", "iterations", "operator", "preconditioner", "rank"}, name) {
			add(name, "%s", r.Parameters[name])
		}
	}
	targets := count(r.Outputs, "target")
	if r.Task == learners.Classification {
		targets = fmt.Sprintf("%d classes", len(r.Classes))
	}
	if r.Task == learners.Novelty {
		add("data", "%s, %s", count(r.N, "row"), count(r.D, "feature"))
	} else {
		add("data", "%s, %s, %s", count(r.N, "row"), count(r.D, "feature"), targets)
	}
	if len(r.Dropped) > 0 {
		add("dropped", "%s", strings.Join(r.Dropped, ", "))
	}
	if r.Weight != "" {
		zero := ""
		if r.Left > 0 {
			zero = fmt.Sprintf("; %s of weight 0 left out", count(r.Left, "row"))
		}
		add("weights", "column %s%s", r.Weight, zero)
	}
	if len(r.ClassWeight) > 0 {
		add("class weights", "%s", strings.Join(r.ClassWeight, ", "))
	}
	if r.OnlyScaled {
		add("features", "sparse: divided by their standard deviations, not centered")
	}
	for i, c := range r.Texts {
		if i == 5 {
			add("", "and %s", count(len(r.Texts)-i, "more column"))
			break
		}
		if c.NGrams != "" {
			add("tf-idf", "column %.60q makes %s, from n-grams of %s", c.Column, count(c.Features, "feature"), c.NGrams)
			continue
		}
		add("text", "column %.60q makes %d of the features", c.Column, c.Features)
	}
	for i, text := range r.Remarks {
		if i == 5 {
			add("", "and %s", count(len(r.Remarks)-i, "more remark"))
			break
		}
		add("remark", "%s", text)
	}
	add("device", "%s", r.Device)
	if r.Residual != nil {
		iterations := ""
		if r.Iterations > 0 {
			iterations = ", " + count(r.Iterations, "iteration")
		}
		add("solver", "%s, residual %.1e%s", r.Solver, *r.Residual, iterations)
		add("chosen", "%s", r.Reason)
		if r.Fallback != "" {
			add("changed", "%s", r.Fallback)
		}
		for _, note := range r.Notes {
			add("note", "%s", note)
		}
		add("memory", "%s", humanBytes(r.MemoryBytes))
	}
	for _, f := range r.facts {
		if v, ok := f.Value.(float64); ok {
			add(f.Name, "%s", fourDigits(v))
		} else {
			add(f.Name, "%v", f.Value)
		}
	}
	s := r.Seconds
	if r.Residual != nil && s.Total > 0 {
		add("time", "%s (read %s, gram %s, factor %s, solve %s)", seconds(s.Total), seconds(s.Read), seconds(s.Gram), seconds(s.Factor), seconds(s.Solve))
	} else if s.Total > 0 {
		add("time", "%s (read %s)", seconds(s.Total), seconds(s.Read))
	}
	if r.Test != nil {
		add("held out", "%s", r.Test.line())
	}
	if r.Calibrated > 0 {
		add("calibrated", "on %s", count(r.Calibrated, "row"))
	}
	if r.Model != "" {
		add("model", "%s", r.Model)
	}
	return rows
}

// wrapRows wraps the second of two columns so that the table fits a terminal.
func wrapRows(rows [][]string) [][]string {
	first := 0
	for _, row := range rows {
		first = max(first, utf8.RuneCountInString(row[0]))
	}
	var list [][]string
	for _, row := range rows {
		for _, line := range strings.Split(wrapped(row[1], max(terminalWidth-first-2, 20)), "\n") {
			list = append(list, []string{row[0], line})
			row[0] = ""
		}
	}
	return list
}

// count returns n and the word, in the plural unless n is 1.
func count(n int, word string) string { return counted.Of(n, word) }

func plural(word string, n int) string { return counted.Word(n, word) }
