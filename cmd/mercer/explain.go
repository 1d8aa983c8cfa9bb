package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/texttable"
	"github.com/mercer-go/mercer/internal/webpage"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
	"github.com/mercer-go/mercer/solvers"
)

// explainFlags are the flags of `mercer explain`.
type explainFlags struct {
	model, out string
	rows       int
	curves     int
	repeats    int
	seed       uint64
	noErrors   bool
}

func (a *app) explainCommand() *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use:   "explain --model FILE [flags] TABLE",
		Short: "Show importance, effects and partial dependence of columns",
		Long: `Show how the predictions of a model depend on the columns of a table. The table has the
columns of the fit, including the targets.

  importance  decrease of the score (R², or for classes the accuracy) when
              the values of the column are shuffled, and its standard
              deviation over the repetitions (Breiman 2001)
  effect      marginal effect: the derivative of the prediction with respect
              to a column of numbers, averaged over the rows, in the units
              of the table, and its quartiles over the rows. For a column
              with two values, which the table shows, it is the difference
              between the predictions for them. ± error is the standard
              error, for kernel-ridge (Hainmueller and Hazlett 2014) and for
              models with a posterior. For classes it is the effect on the
              decision value.

--out draws the partial dependence on the most important columns: the prediction as a function
of one column, averaged over the other columns of all rows (Friedman 2001). For classes it is
the probability, or without probabilities the decision value. --json prints the numbers.`,
		Args: requireOneFile,
		RunE: a.work(func(ctx context.Context, args []string) error { return a.explainModel(ctx, f, args[0]) }),
	}
	a.addModel(c, &f.model)
	c.Flags().StringVar(&f.out, "out", "", "`FILE` to draw the partial dependence into: .png, .svg or .html")
	intFlag(c.Flags(), &f.rows, "rows", 20, 0, "`NUMBER` of columns to print; 0 prints all")
	intFlag(c.Flags(), &f.curves, "curves", 9, 1, "`NUMBER` of columns whose partial dependence is computed")
	intFlag(c.Flags(), &f.repeats, "repeats", 10, 1, "number of times each column is shuffled")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "seed of the shuffling")
	c.Flags().BoolVar(&f.noErrors, "no-errors", false, "leave out the standard errors of effects, which may take long for many rows")
	return c
}

// explanation is the output of `mercer explain --json`.
type explanation struct {
	Program    string            `json:"program"` // always "explain"
	Learner    string            `json:"learner"`
	Device     string            `json:"device"`
	N          int               `json:"n"`
	Outputs    []string          `json:"outputs"`              // names of the targets, or of the classes that have a decision value
	Columns    []explainedColumn `json:"columns"`              // the most important column first
	NoEffects  string            `json:"no_effects,omitempty"` // why there are no Effects
	Dependence []string          `json:"dependence,omitempty"` // names of the outputs of Dependence in Columns: Outputs, or all classes
	Probable   bool              `json:"probable,omitempty"`   // whether the values of Dependence are probabilities
	classes    bool              // whether the model predicts classes
}

// explainedColumn describes a column of the table, or a feature of a sparse table.
type explainedColumn struct {
	Column     string      `json:"column"`
	Importance *importance `json:"importance,omitempty"`
	Effects    []effect    `json:"effects,omitempty"` // one effect for each output; nil if the column is not numeric
	Binary     []float64   `json:"binary,omitempty"`  // the values of a column with exactly two values; its Effects are differences between the predictions at these values
	Dependence *dependence `json:"dependence,omitempty"`

	input        dataset.Input
	first, width int // index of the column's first feature, and number of its features
}

// importance is the decrease of the score when a column is shuffled.
type importance struct {
	Mean  float64   `json:"mean"`
	Std   float64   `json:"std"`
	Drops []float64 `json:"drops"`
}

// effect describes the derivatives of an output with respect to a column.
type effect struct {
	Mean      float64    `json:"mean"`
	StdErr    *float64   `json:"std_error,omitempty"`
	Quartiles [3]float64 `json:"quartiles"`
}

// dependence is the partial dependence on a column. Means[i][j] is the mean of output i if the
// column has the number Values[j] or the text Levels[j] in every row.
type dependence struct {
	Values []float64   `json:"values,omitempty"`
	Levels []string    `json:"levels,omitempty"`
	Means  [][]float64 `json:"means"`
}

func (a *app) explainModel(ctx context.Context, f explainFlags, file string) error {
	if f.out != "" {
		if _, err := extensionOf("--out", f.out, pictures...); err != nil {
			return err
		}
		if err := a.checkOutput(ctx, "--out", f.out, file, a.input.labels, f.model); err != nil {
			return err
		}
	}
	dev, b, t, _, err := a.openModel(f.model, file, false)
	if err != nil {
		return err
	}
	defer dev.Close()
	if b.Objects != nil || b.Encoder.Gram {
		return usagef("--model: the model has no columns to explain: its input is a kernel matrix, or one column of texts or trees")
	}
	t, weights, _, err := a.scoreWeights(b.Encoder, t)
	if err != nil {
		return err
	}
	x, truth, names, err := a.encodeScored(ctx, b, t)
	if err != nil {
		return err
	}
	n, _ := x.Dims()
	e := &explanation{Program: "explain", Learner: b.Model.Learner(), Device: dev.Info().Device, N: n, Outputs: b.Encoder.TargetNames(), Columns: columnsOf(b.Encoder)}
	if c, ok := b.Model.(learners.Classifier); ok {
		e.classes, e.Outputs = true, c.Classes().Names
		if len(e.Outputs) == 2 {
			e.Outputs = e.Outputs[1:]
		}
	}
	if len(e.Outputs) == 0 {
		e.Outputs = []string{"f"}
	}
	p := a.newProgress()
	defer p.close()
	o := learners.Options{Weights: weights, Classes: names, Progress: p.report, Memory: int64(a.memory)}
	if truth != nil {
		if err := e.addImportance(ctx, dev, b, x, truth, validate.ImportanceParams{Repeats: f.repeats, Seed: f.seed, Options: o}); err != nil {
			return err
		}
	}
	if err := e.addEffects(ctx, dev, b, x, learners.EffectParams{Options: o, NoStdErr: f.noErrors}); err != nil {
		return err
	}
	if e.NoEffects != "" {
		a.notice("%s: no marginal effects: %s", f.model, e.NoEffects)
	}
	if f.out != "" || a.json {
		if err := e.addDependence(ctx, dev, b, x, o, f.curves); err != nil {
			return err
		}
	}
	if f.out != "" {
		pic, err := e.picture()
		if err != nil {
			return err
		}
		pic.facts = []string{"model " + f.model + " of " + e.Learner, "table " + file + ", " + count(e.N, "row")}
		pic.tables = e.cards()
		image, err := pic.render(f.out, pixels{})
		if err != nil {
			return err
		}
		if err := a.writeFile(ctx, "--out", f.out, image); err != nil {
			return err
		}
	}
	return a.printJSONOrText(ctx, e, func() string { return e.text(f.rows) })
}

// columnsOf returns the columns of the table, or the features of a sparse table, in the order of the encoder.
func columnsOf(enc *dataset.Encoder) (list []explainedColumn) {
	features, first := enc.FeatureNames(), 0
	for _, in := range enc.Inputs {
		names, width := []string{in.Name}, 1 // every column in names has width features
		switch {
		case in.Text != nil:
			width = len(in.Text.Categories)
		case in.Sparse != nil:
			names = features[first : first+in.Sparse.Columns]
		case in.TFIDF != nil:
			width = in.TFIDF.Len()
		}
		for _, name := range names {
			list = append(list, explainedColumn{Column: name, input: in, first: first, width: width})
			first += width
		}
	}
	return list
}

// addImportance sets the importance of each column, and sorts the columns by it.
func (e *explanation) addImportance(ctx context.Context, dev backend.Device, b modelfile.Bundle, x mat.Matrix, truth *mat.Dense, p validate.ImportanceParams) error {
	for _, c := range e.Columns {
		p.Widths = append(p.Widths, c.width)
	}
	drops, err := validate.Importance(ctx, dev, b.Model, x, truth, p)
	if err != nil {
		return err
	}
	for k := range e.Columns {
		s := validate.NewSummary(drops[k])
		e.Columns[k].Importance = &importance{Mean: s.Mean, Std: s.SD, Drops: drops[k]}
	}
	slices.SortStableFunc(e.Columns, func(p, q explainedColumn) int { return cmp.Compare(q.Importance.Mean, p.Importance.Mean) })
	return nil
}

// addEffects sets the effects of the columns of numbers, or the reason why there are none.
func (e *explanation) addEffects(ctx context.Context, dev backend.Device, b modelfile.Bundle, x mat.Matrix, p learners.EffectParams) error {
	if b.Encoder.Sparse() {
		e.NoEffects = "the features of the model are sparse"
		return nil
	}
	m := b.Model
	if novelty, ok := m.(validate.Novelty); ok {
		m = novelty.Model
	}
	for k, c := range e.Columns {
		if e.Columns[k].Binary = binaryLevels(c, x); e.Columns[k].Binary != nil {
			p.Binary = append(p.Binary, c.first)
		}
	}
	effects, err := learners.MarginalEffects(ctx, dev, m, x, p)
	if errors.Is(err, learners.ErrNoDerivative) {
		e.NoEffects = oneLine(err)
		return nil
	}
	if err != nil {
		return err
	}
	for k, c := range e.Columns {
		if c.input.Number == nil {
			continue
		}
		unit := c.input.Number.Slope()
		if c.Binary != nil { // the effect is a difference of predictions, and does not depend on the unit of the column
			unit = 1
		}
		for j, rows := range effects.Rows {
			v := mat.Col(nil, c.first, rows)
			floats.Scale(unit, v)
			columnEffect := effect{Mean: unit * effects.Mean.At(j, c.first)}
			if effects.StdErr != nil {
				deviation := unit * effects.StdErr.At(j, c.first)
				columnEffect.StdErr = &deviation
			}
			w := slices.Clone(p.Options.Weights)
			stat.SortWeighted(v, w)
			for q := range columnEffect.Quartiles {
				columnEffect.Quartiles[q] = stat.Quantile(0.25*float64(q+1), stat.LinInterp, v, w)
			}
			e.Columns[k].Effects = append(e.Columns[k].Effects, columnEffect)
		}
	}
	return nil
}

// binaryLevels returns the two values of a numeric column that has exactly two values in x, and otherwise nil.
func binaryLevels(c explainedColumn, x mat.Matrix) []float64 {
	if c.input.Number == nil {
		return nil
	}
	levels := mat.Col(nil, c.first, x)
	slices.Sort(levels)
	levels = slices.Compact(levels)
	if len(levels) != 2 {
		return nil
	}
	return []float64{tableValue(c, levels[0]), tableValue(c, levels[1])}
}

// tableValue converts a feature of a numeric column to the units of the table.
func tableValue(c explainedColumn, feature float64) float64 {
	value := c.input.Number.Mean + feature*c.input.Number.Scale
	// Rounding to 12 digits removes the rounding errors of standardization and its inverse.
	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 12, 64), 64); err == nil {
		return rounded
	}
	return value
}

// addDependence sets the partial dependence on the first min(maxColumns, len(e.Columns)) columns.
func (e *explanation) addDependence(ctx context.Context, dev backend.Device, b modelfile.Bundle, x mat.Matrix, o learners.Options, maxColumns int) error {
	if b.Encoder.Sparse() {
		return nil
	}
	e.Dependence = e.Outputs
	if _, ok := learners.As[learners.Prober](b.Model); ok {
		e.Dependence, e.Probable = b.Model.(learners.Classifier).Classes().Names, true
	}
	maxColumns = min(maxColumns, len(e.Columns))
	for k := range e.Columns[:maxColumns] {
		c, d := &e.Columns[k], &dependence{}
		p := validate.DependenceParams{First: c.first, Weights: o.Weights}
		if c.input.Number != nil {
			for _, v := range validate.Grid(mat.Col(nil, c.first, x)) {
				p.Grid = append(p.Grid, []float64{v})
				d.Values = append(d.Values, tableValue(*c, v))
			}
		} else {
			d.Levels = c.input.Text.Categories
			for level := range d.Levels {
				p.Grid = append(p.Grid, make([]float64, c.width))
				p.Grid[level][level] = 1
			}
		}
		means, err := validate.Dependence(ctx, dev, b.Model, x, p)
		if err != nil {
			return err
		}
		for j := range e.Dependence {
			d.Means = append(d.Means, mat.Col(nil, j, means))
		}
		c.Dependence = d
		o.Progress(solvers.Progress{Stage: "dependence", Fraction: float64(k+1) / float64(maxColumns)})
	}
	return nil
}

func (e *explanation) text(rows int) string {
	head := [][]string{{"learner", e.Learner}, {"rows", strconv.Itoa(e.N)}}
	text := texttable.Format("lr", head)
	for j := range e.Outputs {
		table, format := e.table(j)
		title := ""
		if len(e.Outputs) > 1 {
			title = e.Outputs[j] + "\n"
		}
		text += "\n" + title + texttable.Format(format, append(table[:1:1], firstOf(table[1:], rows)...)) + omittedText(len(table)-1, rows, "column")
		if e.NoEffects != "" { // the table is the same for each output
			break
		}
	}
	return text
}

// cards returns the tables of a page, one for each output.
func (e *explanation) cards() (list []webpage.Card) {
	for j, name := range e.Outputs {
		table, _ := e.table(j)
		if len(e.Outputs) == 1 || e.NoEffects != "" {
			return []webpage.Card{tableCard("Columns", "", table)}
		}
		list = append(list, tableCard("Effects on "+name, name, table))
	}
	return list
}

// table returns the importances and effects for an output, with a head as first row, and the format of its columns.
func (e *explanation) table(output int) (table [][]string, format string) {
	head, format := []string{"column"}, "l"
	if e.Columns[0].Importance != nil {
		head, format = append(head, "importance", "± std"), format+"rr"
	}
	effects, deviations := e.NoEffects == "", false
	for _, c := range e.Columns {
		if len(c.Effects) > 0 {
			deviations = c.Effects[output].StdErr != nil
		}
	}
	if effects {
		head, format = append(head, "effect"), format+"r"
		if deviations {
			head, format = append(head, "± error"), format+"r"
		}
		head, format = append(head, "25 %", "50 %", "75 %"), format+"rrr"
	}
	table = [][]string{head}
	for _, c := range e.Columns {
		row := []string{c.Column}
		if len(c.Effects) > 0 && c.Binary != nil {
			row[0] = fmt.Sprintf("%s (%s → %s)", c.Column, fourDigits(c.Binary[0]), fourDigits(c.Binary[1]))
		}
		if c.Importance != nil {
			row = append(row, fourDigits(c.Importance.Mean), fourDigits(c.Importance.Std))
		}
		if len(c.Effects) > 0 {
			columnEffect := c.Effects[output]
			row = append(row, fourDigits(columnEffect.Mean))
			if deviations {
				row = append(row, fourDigits(*columnEffect.StdErr))
			}
			for _, q := range columnEffect.Quartiles {
				row = append(row, fourDigits(q))
			}
		}
		table = append(table, append(row, make([]string, len(head)-len(row))...))
	}
	return table, format
}

// picture draws the partial dependence on each column in a panel. The y axes have the same range.
func (e *explanation) picture() (picture, error) {
	pic := picture{title: "Partial dependence of " + e.Learner}
	const across = 3
	low, high := math.Inf(1), math.Inf(-1)
	var panels []*panel
	for _, c := range e.Columns {
		if c.Dependence == nil {
			continue
		}
		panels = append(panels, e.dependencePanel(c))
		for _, means := range c.Dependence.Means[e.firstCurve():] {
			low, high = min(low, floats.Min(means)), max(high, floats.Max(means))
		}
	}
	if len(panels) == 0 {
		return pic, usagef("--out: the features of the model are sparse, so that there is no partial dependence to draw")
	}
	margin := 0.05*(high-low) + 1e-12*max(math.Abs(high), 1)
	for i, p := range panels {
		p.Y.Min, p.Y.Max = low-margin, high+margin
		if i%across == 0 {
			pic.rows = append(pic.rows, nil)
		}
		last := len(pic.rows) - 1
		pic.rows[last] = append(pic.rows[last], p)
	}
	for len(pic.rows) > 1 && len(pic.rows[len(pic.rows)-1]) < across {
		pic.rows[len(pic.rows)-1] = append(pic.rows[len(pic.rows)-1], nil)
	}
	return pic, nil
}

// firstCurve returns the index of the first curve to draw: 1 for the probabilities of two classes, whose sum is 1.
func (e *explanation) firstCurve() int {
	if len(e.Dependence) == 2 && e.Probable {
		return 1
	}
	return 0
}

// dependencePanel draws the partial dependence on a column: curves for a column of numbers, points for texts.
func (e *explanation) dependencePanel(c explainedColumn) *panel {
	first := e.firstCurve()
	outputs := e.Dependence[first:]
	label := "average prediction"
	switch {
	case e.Probable:
		label = "average probability"
	case e.classes:
		label = "average decision value"
	}
	if len(outputs) == 1 {
		label += " of " + outputs[0]
	}
	p := newPanel("", c.Column, label)
	p.grid()
	for j, name := range outputs {
		if len(outputs) == 1 {
			name = ""
		}
		d := c.Dependence
		points := make(plotter.XYs, len(d.Means[first+j]))
		for i, f := range d.Means[first+j] {
			points[i].X, points[i].Y = float64(i), f
			if d.Levels == nil {
				points[i].X = d.Values[i]
			}
		}
		clr := curveColors[j%len(curveColors)]
		p.class = outputs[j]
		switch {
		case d.Levels != nil:
			p.dots(name, rowMarker(clr), points)
		case len(points) <= 10:
			p.marked(name, clr, points)
		default:
			p.line(name, points, curveStyle(j, 1.8))
		}
	}
	if levels := c.Dependence.Levels; levels != nil {
		var ticks plot.ConstantTicks
		for i, name := range levels {
			ticks = append(ticks, plot.Tick{Value: float64(i), Label: fmt.Sprintf("%.14s", name)})
		}
		p.X.Tick.Marker = ticks
		p.X.Min, p.X.Max = -0.5, float64(len(levels))-0.5
		if len(levels) > 4 {
			p.upright()
		}
	}
	return p
}
