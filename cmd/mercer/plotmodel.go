package main

import (
	"cmp"
	"context"
	"fmt"
	"image/color"
	"math"
	"slices"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot/plotter"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/learners"
)

// numberInput returns the name of a column of numbers: name or, if that is "", the first such column not in
// excluded. It returns an error for a model of sparse features.
func numberInput(enc *dataset.Encoder, flag, name string, excluded ...string) (string, error) {
	if enc.Sparse() {
		return "", usagef("%s: the features of the model are sparse, and a picture needs columns of a dense table", flag)
	}
	var names []string
	for _, in := range enc.Inputs {
		if in.Number != nil && !slices.Contains(excluded, in.Name) {
			names = append(names, in.Name)
		}
	}
	switch {
	case name == "" && len(names) == 0:
		return "", usagef("%s: the model has no column of numbers for this axis", flag)
	case name == "":
		return names[0], nil
	case !slices.Contains(names, name):
		return "", usagef("%s: the model has no column %q of numbers%s", flag, name, didYouMean("", name, names))
	}
	return name, nil
}

// rowsAcross returns a table of points that differ only in the given columns. The other columns have the value that
// replaces empty cells.
func rowsAcross(enc *dataset.Encoder, n int, values map[string][]float64) (*dataset.Table, error) {
	var columns []dataset.Column
	for _, in := range enc.Inputs {
		switch v, ok := values[in.Name]; {
		case ok:
			columns = append(columns, dataset.Numbers(in.Name, v))
		case in.Number != nil:
			columns = append(columns, dataset.Numbers(in.Name, slices.Repeat([]float64{in.Number.Fill}, n)))
		default:
			columns = append(columns, dataset.Texts(in.Name, slices.Repeat([]string{in.Text.Fill}, n)))
		}
	}
	return dataset.NewTable("", columns...)
}

// checkDrawable returns an error for models whose input has no columns.
func checkDrawable(b modelfile.Bundle) error {
	if b.Objects != nil || b.Encoder.Gram {
		return usagef("--model: the input of the model is a kernel matrix or a column of texts or trees: there are no columns to draw over")
	}
	return nil
}

// paddedRange returns the range of the values, enlarged by a margin at both ends.
func paddedRange(values []float64) (low, high float64, err error) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v == v {
			low, high = min(low, v), max(high, v)
		}
	}
	if !(low <= high) {
		return 0, 0, fmt.Errorf("every value to be drawn is NaN")
	}
	margin := 0.05 * (high - low)
	if margin == 0 {
		margin = max(1e-3, 0.05*math.Abs(low))
	}
	return low - margin, high + margin, nil
}

func (a *app) plotCurveCommand() *cobra.Command {
	var f modelFlags
	var x string
	var level float64
	c := &cobra.Command{
		Use:   "curve --model FILE [--model FILE …] --out FILE [flags] TABLE",
		Short: "Fitted functions over one column, with an error band",
		Long: `Draw the target of a table's rows over one column, and the predictions of one or more
models; all other columns have their median or most frequent value. If the model has
standard deviations, the band is ± 2 standard deviations of a new target; with --interval
LEVEL it is the prediction interval.

` + fittedHelp + `
With {} in a flag the learner is fitted once for each number of --values. With a small λ
this approaches least squares on x, x², …:

  mercer plot curve --target y --kernel 'polynomial(degree={},c=1)' \
    --lambda 1e-4 --values 1,10 --out c.svg t.csv`,
	}
	f.add(c, "`FILE` of a model; may be given several times")
	c.Flags().StringVar(&f.values, "values", "", valuesHelp)
	c.Flags().StringVar(&x, "x", "", "`COLUMN` of the horizontal axis (default: the first column of numbers)")
	addInterval(c.Flags(), &level)
	return a.drawCommand(c, &f.models, func(ctx context.Context, file string) (picture, error) {
		return a.plotCurve(ctx, c, &f, x, level, file)
	})
}

func (a *app) plotCurve(ctx context.Context, c *cobra.Command, f *modelFlags, xName string, level float64, file string) (pic picture, err error) {
	list, closeAll, err := a.drawnModels(ctx, c, f, file)
	if err != nil {
		return pic, err
	}
	defer closeAll()
	for _, m := range list {
		if err := checkDrawable(m.b); err != nil {
			return pic, err
		}
		if _, ok := m.b.Model.(learners.Classifier); ok {
			return pic, usagef("%s is a model of classes; mercer plot boundary draws models of classes", m.name)
		}
		if err := checkInterval(level, m.b); err != nil {
			return pic, err
		}
		if xName, err = numberInput(m.b.Encoder, "--x", xName); err != nil {
			return pic, err
		}
	}
	t, target := list[0].t, list[0].b.Encoder.TargetNames()[0]
	xs, err := t.Numbers(xName)
	if err != nil {
		return pic, err
	}
	low, high, err := paddedRange(xs)
	if err != nil {
		return pic, err
	}
	grid := floats.Span(make([]float64, 400), low, high)
	p := newPanel("", xName, target)
	p.grid()
	y, noTruth := t.Numbers(target)
	if noTruth == nil {
		p.rows("rows", rowMarker(color.Gray{0x80}), xs, y, nil)
	}
	for k, m := range list {
		if err := a.addCurve(ctx, p, curveColors[k%len(curveColors)], m, xName, grid, level); err != nil {
			return pic, err
		}
	}
	if low, high, err := paddedRange(y); noTruth == nil && err == nil { // without these limits, a prediction far from the targets would compress the rest of the picture
		p.Y.Min, p.Y.Max = max(p.Y.Min, low-0.5*(high-low)), min(p.Y.Max, high+0.5*(high-low))
	}
	return picture{title: "Prediction over " + xName, rows: [][]*panel{{p}}}, nil
}

// addCurve draws the predictions of a model on a grid of values of a column, with a band: the prediction intervals
// if level is not 0, or ± 2σ for a model with a variance.
func (a *app) addCurve(ctx context.Context, p *panel, clr color.Color, m drawnModel, xName string, grid []float64, level float64) error {
	o, x, err := a.predictAcross(ctx, m.dev, m.b, len(grid), map[string][]float64{xName: grid})
	if err != nil {
		return err
	}
	c, err := a.coverOf(ctx, m.dev, m.b, x, o.Values, level)
	if err != nil {
		return err
	}
	if u, ok := learners.As[learners.Uncertain](m.b.Model); ok && level == 0 {
		v, err := u.Variance(ctx, m.dev, x)
		if err != nil {
			return err
		}
		c.lower, c.upper = mat.DenseCopyOf(o.Values), mat.DenseCopyOf(o.Values)
		c.lower.Apply(func(i, j int, f float64) float64 { return f - 2*math.Sqrt(v.At(i, j)) }, c.lower)
		c.upper.Apply(func(i, j int, f float64) float64 { return f + 2*math.Sqrt(v.At(i, j)) }, c.upper)
	}
	curveOf := func(values *mat.Dense) plotter.XYs {
		line := make(plotter.XYs, len(grid))
		for i, v := range grid {
			line[i].X, line[i].Y = v, values.At(i, 0)
		}
		return line
	}
	if c.lower != nil {
		p.band(clr, curveOf(c.lower), curveOf(c.upper))
	}
	p.line(m.name, curveOf(o.Values), solid(clr, 1.8))
	return nil
}

func (a *app) plotCalibrationCommand() *cobra.Command {
	models := make([]string, 1)
	c := &cobra.Command{
		Use:   "calibration --model FILE --out FILE [flags] TABLE",
		Short: "Predicted probabilities against observed frequencies",
		Long: `Draw for each class its frequency against the predicted probability, in ten bins of equal
width, and the number of rows in each bin. Rows of a class that the model does not know
count as rows without a class. If there are more than seven classes, the picture shows one
curve for all probabilities together and the curves of the six classes whose
probabilities differ most from the frequencies on average.`,
	}
	c.Flags().StringVar(&models[0], "model", "", "`FILE` of the model")
	return a.drawCommand(c, &models, func(ctx context.Context, file string) (picture, error) {
		return a.plotCalibration(ctx, models[0], file)
	})
}

func (a *app) plotCalibration(ctx context.Context, model, file string) (pic picture, err error) {
	dev, b, t, _, err := a.openModel(model, file, false)
	if err != nil {
		return pic, err
	}
	defer dev.Close()
	prober, ok := learners.As[learners.Prober](b.Model)
	if !ok {
		return pic, usagef("--model: this model of %s has no probabilities%s", b.Model.Learner(), fittedWith(b.Model, "probability"))
	}
	truth, err := a.truthOf(b, t)
	if err != nil {
		return pic, err
	}
	x, err := a.features(ctx, b, t)
	if err != nil {
		return pic, err
	}
	o, err := a.outcomes(ctx, dev, b.Model, x, true)
	if err != nil {
		return pic, err
	}
	p := newPanel("", "predicted probability", "observed frequency")
	p.grid()
	p.dashes("", plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}})
	counts := newPanel("", "predicted probability", "rows")
	counts.grid()
	classes := prober.Classes()
	title := b.Model.Learner() + ": calibration of " + count(classes.Len(), "class")
	curves := make([]calibration, classes.Len())
	for k := range curves {
		curves[k] = reliability(o.Proba, truth, classes, k)
	}
	switch {
	case classes.Len() == 2:
		curves = curves[1:] // the curve of the first class has the same information
	case classes.Len() > maxCurves+1:
		slices.SortStableFunc(curves, func(a, b calibration) int { return cmp.Compare(b.error, a.error) })
		classIndices := make([]int, classes.Len())
		for k := range classIndices {
			classIndices[k] = k
		}
		curves = append([]calibration{reliability(o.Proba, truth, classes, classIndices...)}, curves[:maxCurves]...)
		title += fmt.Sprintf(", the %d farthest off", maxCurves)
	}
	for k, c := range curves {
		clr := curveColors[k]
		if c.name == allClasses {
			clr = color.Black
		}
		p.marked(c.name, clr, c.line)
		counts.marked(c.name, clr, c.counts)
	}
	p.setRange(0, 1, 0, 1)
	counts.X.Min, counts.X.Max, counts.Y.Min = 0, 1, 0.8
	logarithmic(&counts.Y)
	return picture{title: title, rows: [][]*panel{{p, counts}}}, nil
}

const allClasses = "all classes"

// truthOf returns the targets of a table. If the class of a row did not occur in training, the target is NaN, and a
// notice gives the number of these rows. If all rows are of this kind, truthOf returns an error.
func (a *app) truthOf(b modelfile.Bundle, t *dataset.Table) (*mat.Dense, error) {
	truth, err := b.Encoder.Targets(t)
	if err == nil || b.Encoder.Labels == nil {
		return truth, err
	}
	unknown := 0
	truth = mat.NewDense(t.Rows(), 1, nil)
	for i := range t.Rows() {
		if rowTarget, err := b.Encoder.Targets(t.Select([]int{i})); err == nil {
			truth.Set(i, 0, rowTarget.At(0, 0))
		} else {
			truth.Set(i, 0, math.NaN())
			unknown++
		}
	}
	if unknown == t.Rows() {
		return nil, err
	}
	a.notice("%s; the class of %s is unknown", a.oneLine(err), count(unknown, "row"))
	return truth, nil
}

// maxCurves is the maximum number of classes with a calibration curve of their own.
const maxCurves = 6

// calibration compares predicted probabilities with observed frequencies.
type calibration struct {
	name         string
	line, counts plotter.XYs
	error        float64 // mean difference between probability and frequency
}

// reliability divides the predicted probabilities of the selected classes into bins. For each nonempty bin it
// returns the mean probability, the frequency of the classes, and the number of probabilities. The error is a
// weighted mean of |mean probability − frequency|.
func reliability(proba, truth *mat.Dense, classes learners.Classes, selected ...int) calibration {
	const bins = 10
	var n, sum, hits [bins]float64
	rows, _ := proba.Dims()
	for i := range rows {
		for _, k := range selected {
			v := proba.At(i, k)
			bin := min(int(v*bins), bins-1)
			n[bin]++
			sum[bin] += v
			if truth.At(i, 0) == classes.Labels[k] {
				hits[bin]++
			}
		}
	}
	c := calibration{name: classes.Names[selected[0]]}
	if len(selected) > 1 {
		c.name = allClasses
	}
	for bin := range bins {
		if n[bin] > 0 {
			c.counts = append(c.counts, plotter.XY{X: (float64(bin) + 0.5) / bins, Y: n[bin]})
			c.line = append(c.line, plotter.XY{X: sum[bin] / n[bin], Y: hits[bin] / n[bin]})
			c.error += math.Abs(sum[bin]-hits[bin]) / float64(rows*len(selected))
		}
	}
	return c
}
