package main

import (
	"context"
	"fmt"
	"image/color"
	"math"
	"slices"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/modelfile"
)

// numberInput returns the column of numbers of that name, or the next one after those
// that are taken.
func numberInput(enc *dataset.Encoder, flag, name string, taken ...string) (string, error) {
	var names []string
	for _, in := range enc.Inputs {
		if in.Number != nil && !slices.Contains(taken, in.Name) {
			names = append(names, in.Name)
		}
	}
	switch {
	case name == "" && len(names) == 0:
		return "", usagef("%s: the model has too few columns of numbers", flag)
	case name == "":
		return names[0], nil
	case !slices.Contains(names, name):
		return "", usagef("%s: the model has no column %q of numbers%s", flag, name, didYouMean("", name, names))
	}
	return name, nil
}

// rowsAcross is a table of points that differ in some columns; the others have the
// values that fill empty cells, the median or the most frequent value.
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

// drawable refuses models whose input is no columns.
func drawable(b modelfile.Bundle) error {
	if b.Objects != nil || b.Encoder.Gram {
		return usagef("--model: the input of the model is a kernel matrix, or a column of texts or trees, and no columns to draw over")
	}
	return nil
}

// span is the range of a column with some room at its ends.
func span(values []float64) (low, high float64, err error) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v == v {
			low, high = min(low, v), max(high, v)
		}
	}
	if !(low <= high) {
		return 0, 0, fmt.Errorf("there is no number to draw")
	}
	room := 0.05 * (high - low)
	if room == 0 {
		room = max(1e-3, 0.05*math.Abs(low))
	}
	return low - room, high + room, nil
}

func (a *app) plotBoundaryCommand() *cobra.Command {
	var f modelFlags
	var x, y string
	c := &cobra.Command{
		Use:   "boundary --model FILE [--model FILE …] --out FILE [flags] TABLE",
		Short: "Decision regions, or the fitted surface, over two columns",
		Long: `Draw the rows of a table over two columns, and what the model says there: of classes
the regions in which each is predicted, of two classes the boundary f = 0 and the
margins f = ±1; of numbers contours of the prediction. Other columns have their
median, or most frequent value. Rings are the points of a kernel model that have a
coefficient, for machines with few of them: support or relevance vectors. Of several
models of two classes each has its boundary f = 0 in a color.

` + fittedHelp + `
With {} in a flag it is fitted for each number of --values:

  mercer plot boundary --learner perceptron --target y --textbook \
    --bias {} --values -2,0,2 --out b.svg t.csv`,
	}
	f.add(c, "`FILE` of a model; may be given several times")
	c.Flags().StringVar(&f.values, "values", "", valuesHelp)
	c.Flags().StringVar(&x, "x", "", "`COLUMN` across (default: the first of numbers)")
	c.Flags().StringVar(&y, "y", "", "`COLUMN` upwards (default: the next one)")
	return a.drawing(c, &f.models, func(ctx context.Context, file string) (picture, error) {
		return a.plotBoundary(ctx, c, &f, x, y, file)
	})
}

const fittedHelp = "In place of --model, --target and the flags of mercer fit fit a learner to the table."

// raster is a function on a grid.
type raster struct {
	x, y []float64
	z    *mat.Dense // y × x
}

func (r raster) Dims() (c, rows int)  { return len(r.x), len(r.y) }
func (r raster) Z(c, row int) float64 { return r.z.At(row, c) }
func (r raster) X(c int) float64      { return r.x[c] }
func (r raster) Y(row int) float64    { return r.y[row] }

func (a *app) plotBoundary(ctx context.Context, c *cobra.Command, f *modelFlags, xName, yName, file string) (pic picture, err error) {
	list, close, err := a.drawn(ctx, c, f, file)
	if err != nil {
		return pic, err
	}
	defer close()
	b, t := list[0].b, list[0].t
	if xName != "" && xName == yName {
		return pic, usagef("--y: is the column of --x; give another")
	}
	for _, m := range list {
		if err := drawable(m.b); err != nil {
			return pic, err
		}
		if xName, err = numberInput(m.b.Encoder, "--x", xName, yName); err != nil {
			return pic, err
		}
		if yName, err = numberInput(m.b.Encoder, "--y", yName, xName); err != nil {
			return pic, err
		}
	}
	xs, err := t.Numbers(xName)
	if err != nil {
		return pic, err
	}
	ys, err := t.Numbers(yName)
	if err != nil {
		return pic, err
	}
	const grid = 160
	r := raster{}
	for _, axis := range []struct {
		values []float64
		to     *[]float64
	}{{xs, &r.x}, {ys, &r.y}} {
		low, high, err := span(axis.values)
		if err != nil {
			return pic, err
		}
		*axis.to = floats.Span(make([]float64, grid), low, high)
	}
	across := map[string][]float64{}
	for _, v := range r.y {
		across[xName] = append(across[xName], r.x...)
		across[yName] = append(across[yName], slices.Repeat([]float64{v}, grid)...)
	}
	p := newPanel(b.Model.Learner(), xName, yName)
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	var truth *mat.Dense
	if len(b.Encoder.Outputs) > 0 {
		truth, _ = b.Encoder.Targets(t) // a table without targets is drawn without their colors
	}
	k, ok := b.Model.(learners.Classifier)
	for i, m := range list {
		o, err := a.across(ctx, m.dev, m.b, grid*grid, across)
		if err != nil {
			return pic, err
		}
		switch {
		case len(list) > 1:
			other, both := m.b.Model.(learners.Classifier)
			if !ok || !both || len(o.decision.RawMatrix().Data) != grid*grid || !slices.Equal(k.Classes().Names, other.Classes().Names) {
				return pic, usagef("%s: the boundaries of several models are drawn where all have the same two classes; draw it alone", m.name)
			}
			addBoundary(p, r, o, m.name, 2+i)
		case ok:
			drawRegions(p, r, k.Classes(), o)
		default:
			if err := drawContours(p, r, o.values, b.Encoder.TargetNames(), xs, ys); err != nil {
				return pic, err
			}
		}
	}
	if ok {
		if err := addClassRows(p, k.Classes(), xs, ys, truth); err != nil {
			return pic, err
		}
	}
	if len(list) == 1 {
		if err := drawPoints(p, b, xName, yName); err != nil {
			return pic, err
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = r.x[0], r.x[grid-1], r.y[0], r.y[grid-1]
	lines := 4 // of the legend
	if ok {
		lines = len(list) + k.Classes().Len()
	}
	p.Y.Max += legendRoom(lines) * (p.Y.Max - p.Y.Min)
	return picture{title: fmt.Sprintf("%s over %s and %s", b.Model.Learner(), xName, yName), rows: [][]*plot.Plot{{p}}}, nil
}

// across applies the model to n points that differ in some columns.
func (a *app) across(ctx context.Context, dev backend.Device, b modelfile.Bundle, n int, values map[string][]float64) (outcome, error) {
	t, err := rowsAcross(b.Encoder, n, values)
	if err != nil {
		return outcome{}, err
	}
	x, err := b.Encoder.Features(t)
	if err != nil {
		return outcome{}, err
	}
	return a.outcomes(ctx, dev, b.Model, x, false)
}

// faint is a color as a background.
func faint(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	return color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: 0x38}
}

// cells are the regions of classes, each grid point a cell in the color of its class.
type cells struct {
	raster
	look func(value float64) color.Color
}

// Plot implements plot.Plotter: neighboring cells of one color are one rectangle.
func (s cells) Plot(c draw.Canvas, p *plot.Plot) {
	tx, ty := p.Transforms(&c)
	dx, dy := (s.x[1]-s.x[0])/2, (s.y[1]-s.y[0])/2
	for i := range s.y {
		for j := 0; j < len(s.x); {
			end := j
			for end < len(s.x) && s.Z(end, i) == s.Z(j, i) {
				end++
			}
			low, high := max(s.x[j]-dx, s.x[0]), min(s.x[end-1]+dx, s.x[len(s.x)-1])
			bottom, top := max(s.y[i]-dy, s.y[0]), min(s.y[i]+dy, s.y[len(s.y)-1])
			c.FillPolygon(s.look(s.Z(j, i)), []vg.Point{{X: tx(low), Y: ty(bottom)}, {X: tx(high), Y: ty(bottom)}, {X: tx(high), Y: ty(top)}, {X: tx(low), Y: ty(top)}})
			j = end
		}
	}
}

// legendRoom is the part of a panel's height to add at the top for a legend and a gap, each
// line of which takes some 5.5 % of what there is then.
func legendRoom(lines int) float64 {
	part := 0.055 * float64(min(lines+1, 12))
	return part / (1 - part)
}

// addBoundary adds where one of several models decides between two classes, in color k.
func addBoundary(p *plot.Plot, r raster, o outcome, name string, k int) {
	r.z = mat.NewDense(len(r.y), len(r.x), slices.Clone(o.decision.RawMatrix().Data))
	style := draw.LineStyle{Color: curveColors[k%len(curveColors)], Width: vg.Points(1.6)}
	if k >= len(curveColors) {
		style.Dashes = []vg.Length{vg.Points(float64(2 + k/len(curveColors))), vg.Points(2)}
	}
	line := plotter.NewContour(r, []float64{0}, nil)
	line.LineStyles = []draw.LineStyle{style}
	p.Add(line)
	p.Legend.Add(name, &plotter.Line{LineStyle: style})
}

// classColor is the color of the rows and the region of a class.
func classColor(class int) color.Color { return curveColors[class%len(curveColors)] }

// drawRegions draws where each class is predicted.
func drawRegions(p *plot.Plot, r raster, classes learners.Classes, o outcome) {
	r.z = mat.NewDense(len(r.y), len(r.x), slices.Clone(o.values.RawMatrix().Data))
	p.Add(cells{r, func(v float64) color.Color { return faint(classColor(classes.Index(v))) }})
	if _, cols := o.decision.Dims(); cols == 1 {
		r.z = mat.NewDense(len(r.y), len(r.x), slices.Clone(o.decision.RawMatrix().Data))
		for _, level := range []float64{-1, 0, 1} {
			line := plotter.NewContour(r, []float64{level}, nil)
			line.LineStyles = []draw.LineStyle{{Color: color.Black, Width: vg.Points(1.6)}}
			if level != 0 {
				line.LineStyles = []draw.LineStyle{{Color: color.Black, Width: vg.Points(0.9), Dashes: []vg.Length{vg.Points(4), vg.Points(3)}}}
			}
			p.Add(line)
		}
	}
}

// addClassRows adds the rows in the colors of their classes.
func addClassRows(p *plot.Plot, classes learners.Classes, xs, ys []float64, truth *mat.Dense) error {
	if truth == nil {
		return addRows(p, "rows", color.Black, xs, ys, func(int) bool { return true })
	}
	for class, name := range classes.Names {
		err := addRows(p, name, classColor(class), xs, ys, func(i int) bool { return truth.At(i, 0) == classes.Labels[class] })
		if err != nil {
			return err
		}
	}
	return nil
}

// drawContours draws the levels of a prediction of numbers, and the rows.
func drawContours(p *plot.Plot, r raster, values *mat.Dense, targets []string, xs, ys []float64) error {
	r.z = mat.NewDense(len(r.y), len(r.x), nil)
	for i := range r.y {
		for j := range r.x {
			r.z.Set(i, j, values.At(i*len(r.x)+j, 0))
		}
	}
	low, high := mat.Min(r.z), mat.Max(r.z)
	heat := cells{r, func(v float64) color.Color {
		if high == low {
			return shade(0)
		}
		return shade(math.Floor(12*(v-low)/(high-low)) / 16)
	}}
	p.Add(heat)
	name := "f"
	if len(targets) > 0 {
		name = targets[0]
	}
	for _, v := range []float64{low, (low + high) / 2, high} {
		p.Legend.Add(fmt.Sprintf("%s = %s", name, short(v)), swatch{heat.look(min(v, math.Nextafter(high, low)))})
	}
	return addRows(p, "", color.NRGBA{R: 0xe6, G: 0x9f, A: 0xff}, xs, ys, func(int) bool { return true })
}

// addRows adds the rows for which some is true as dots.
func addRows(p *plot.Plot, name string, look color.Color, xs, ys []float64, some func(i int) bool) error {
	var points plotter.XYs
	for i := range xs {
		if some(i) && xs[i] == xs[i] && ys[i] == ys[i] {
			points = append(points, plotter.XY{X: xs[i], Y: ys[i]})
		}
	}
	if len(points) == 0 {
		return nil
	}
	dots, err := newDots(points, look)
	if err != nil {
		return err
	}
	p.Add(dots)
	if name != "" {
		p.Legend.Add(name, dots)
	}
	return nil
}

// mostRings is the part of a model's samples up to which its points are worth a ring.
const mostRings = 2000

// drawPoints rings the points of sparse kernel models.
func drawPoints(p *plot.Plot, b modelfile.Bundle, xName, yName string) error {
	parts := learners.PartsOf(b.Model)
	if parts.Points == nil || parts.Coef == nil {
		return nil
	}
	columns := plainColumns(b)
	at := func(name string) int { return slices.IndexFunc(columns, func(c column) bool { return c.name == name }) }
	i, j := at(xName), at(yName)
	n, _ := parts.Points.Dims()
	if n > mostRings {
		return nil
	}
	var points plotter.XYs
	for k := range n {
		row := parts.Points.RawRowView(k)
		points = append(points, plotter.XY{X: columns[i].mean + columns[i].scale*row[i], Y: columns[j].mean + columns[j].scale*row[j]})
	}
	rings, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	rings.GlyphStyle = draw.GlyphStyle{Color: color.Black, Radius: 1.3 * vg.Millimeter, Shape: draw.RingGlyph{}}
	p.Add(rings)
	p.Legend.Add("points of the model", rings)
	return nil
}

func (a *app) plotCurveCommand() *cobra.Command {
	var f modelFlags
	var x string
	var level float64
	c := &cobra.Command{
		Use:   "curve --model FILE [--model FILE …] --out FILE [flags] TABLE",
		Short: "Fitted functions over one column, with an error band",
		Long: `Draw the target of the rows of a table over one column, and the predictions of one
model or several; other columns have their median, or most frequent value. The band
of a model is ± 2 standard deviations of a new target where the model knows them, or
with --interval LEVEL its prediction interval.

` + fittedHelp + `
With {} in a flag it is fitted for each number of --values; of least squares on x, x², … it
is the limit for a small λ:

  mercer plot curve --target y --kernel 'polynomial(degree={},c=1)' \
    --lambda 1e-4 --values 1,10 --out c.svg t.csv`,
	}
	f.add(c, "`FILE` of a model; may be given several times")
	c.Flags().StringVar(&f.values, "values", "", valuesHelp)
	c.Flags().StringVar(&x, "x", "", "`COLUMN` across (default: the first of numbers)")
	addInterval(c.Flags(), &level)
	return a.drawing(c, &f.models, func(ctx context.Context, file string) (picture, error) {
		return a.plotCurve(ctx, c, &f, x, level, file)
	})
}

func (a *app) plotCurve(ctx context.Context, c *cobra.Command, f *modelFlags, xName string, level float64, file string) (pic picture, err error) {
	list, close, err := a.drawn(ctx, c, f, file)
	if err != nil {
		return pic, err
	}
	defer close()
	var p *plot.Plot
	for k, m := range list {
		if err := a.addCurve(ctx, &p, k, m, &xName, level); err != nil {
			return pic, err
		}
	}
	// A function that leaves the rows far behind would leave them no room.
	if y, err := list[0].t.Numbers(list[0].b.Encoder.TargetNames()[0]); err == nil {
		if low, high, err := span(y); err == nil {
			p.Y.Min, p.Y.Max = max(p.Y.Min, low-0.5*(high-low)), min(p.Y.Max, high+0.7*(high-low))
		}
	}
	return picture{title: "Prediction over " + xName, rows: [][]*plot.Plot{{p}}}, nil
}

// addCurve adds the curve of model k; the first makes the panel and adds the rows.
func (a *app) addCurve(ctx context.Context, panel **plot.Plot, k int, m drawn, xName *string, level float64) error {
	dev, b, t := m.dev, m.b, m.t
	if err := drawable(b); err != nil {
		return err
	}
	if _, ok := b.Model.(learners.Classifier); ok {
		return usagef("%s is a model of classes; mercer plot boundary draws those", m.name)
	}
	if err := checkInterval(level, b); err != nil {
		return err
	}
	var err error
	if *xName, err = numberInput(b.Encoder, "--x", *xName); err != nil {
		return err
	}
	xs, err := t.Numbers(*xName)
	if err != nil {
		return err
	}
	low, high, err := span(xs)
	if err != nil {
		return err
	}
	const points = 400
	grid := floats.Span(make([]float64, points), low, high)
	rows, err := rowsAcross(b.Encoder, points, map[string][]float64{*xName: grid})
	if err != nil {
		return err
	}
	x, err := b.Encoder.Features(rows)
	if err != nil {
		return err
	}
	o, err := a.outcomes(ctx, dev, b.Model, x, false)
	if err != nil {
		return err
	}
	c, err := a.coverOf(ctx, dev, b, x, o.values, level)
	if err != nil {
		return err
	}
	if u, ok := b.Model.(learners.Uncertain); ok && level == 0 {
		v, err := u.Variance(ctx, dev, x)
		if err != nil {
			return err
		}
		c.lower, c.upper = mat.DenseCopyOf(o.values), mat.DenseCopyOf(o.values)
		c.lower.Apply(func(i, j int, f float64) float64 { return f - 2*math.Sqrt(v.At(i, j)) }, c.lower)
		c.upper.Apply(func(i, j int, f float64) float64 { return f + 2*math.Sqrt(v.At(i, j)) }, c.upper)
	}
	look := curveColors[k%len(curveColors)]
	target := b.Encoder.TargetNames()[0]
	p := *panel
	if p == nil {
		p = newPanel("", *xName, target)
		p.Legend.TextStyle.Font.Size = vg.Points(9)
		addGrid(p)
		if y, err := t.Numbers(target); err == nil {
			if err := addRows(p, "rows", color.Gray{0x80}, xs, y, func(int) bool { return true }); err != nil {
				return err
			}
		}
		*panel = p
	}
	at := func(values *mat.Dense) plotter.XYs {
		line := make(plotter.XYs, points)
		for i, v := range grid {
			line[i].X, line[i].Y = v, values.At(i, 0)
		}
		return line
	}
	if c.lower != nil {
		if err := addBand(p, look, at(c.lower), at(c.upper)); err != nil {
			return err
		}
	}
	return addLine(p, m.name, at(o.values), draw.LineStyle{Color: look, Width: vg.Points(1.8)})
}

func (a *app) plotCalibrationCommand() *cobra.Command {
	models := make([]string, 1)
	c := &cobra.Command{
		Use:   "calibration --model FILE --out FILE [flags] TABLE",
		Short: "Predicted probabilities against observed frequencies",
		Long: `Draw for each class how often it occurs among the rows that were given a probability,
in ten bins of equal width, and how many rows each bin has.`,
	}
	c.Flags().StringVar(&models[0], "model", "", "`FILE` of the model")
	return a.drawing(c, &models, func(ctx context.Context, file string) (picture, error) {
		return a.plotCalibration(ctx, models[0], file)
	})
}

func (a *app) plotCalibration(ctx context.Context, model, file string) (pic picture, err error) {
	dev, b, t, _, err := a.openModel(model, file, false)
	if err != nil {
		return pic, err
	}
	defer dev.Close()
	prober, ok := b.Model.(learners.Prober)
	if !ok {
		return pic, usagef("--model: this model of %s knows no probabilities%s", b.Model.Learner(), fittedWith(b.Model, "probability"))
	}
	x, truth, err := a.encodeWith(ctx, b, t)
	if err != nil {
		return pic, err
	}
	o, err := a.outcomes(ctx, dev, b.Model, x, true)
	if err != nil {
		return pic, err
	}
	p := newPanel("", "predicted probability", "observed frequency")
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	addGrid(p)
	if err := addDashes(p, "", plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}}); err != nil {
		return pic, err
	}
	counts := newPanel("", "predicted probability", "rows")
	counts.Legend.TextStyle.Font.Size = vg.Points(9)
	addGrid(counts)
	classes := prober.Classes()
	first := 0
	if classes.Len() == 2 {
		first = 1 // the other says the same
	}
	for k := first; k < min(classes.Len(), first+len(curveColors)); k++ {
		line, bars := reliability(o.proba, truth, classes, k)
		for panel, points := range map[*plot.Plot]plotter.XYs{p: line, counts: bars} {
			if err := addMarkedLine(panel, classes.Names[k], curveColors[k%len(curveColors)], points); err != nil {
				return pic, err
			}
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	counts.X.Min, counts.X.Max, counts.Y.Min = 0, 1, 0
	counts.Y.Max *= 1 + legendRoom(classes.Len()-first)
	return picture{title: b.Model.Learner() + ": calibration of " + count(classes.Len(), "class"), rows: [][]*plot.Plot{{p, counts}}}, nil
}

// reliability returns for each bin of probabilities of class k that has rows their mean
// and how often the class occurs, and how many they are.
func reliability(proba, truth *mat.Dense, classes learners.Classes, k int) (line, counts plotter.XYs) {
	const bins = 10
	var n, sum, hits [bins]float64
	rows, _ := proba.Dims()
	for i := range rows {
		v := proba.At(i, k)
		bin := min(int(v*bins), bins-1)
		n[bin]++
		sum[bin] += v
		if truth.At(i, 0) == classes.Labels[k] {
			hits[bin]++
		}
	}
	for bin := range bins {
		counts = append(counts, plotter.XY{X: (float64(bin) + 0.5) / bins, Y: n[bin]})
		if n[bin] > 0 {
			line = append(line, plotter.XY{X: sum[bin] / n[bin], Y: hits[bin] / n[bin]})
		}
	}
	return line, counts
}
