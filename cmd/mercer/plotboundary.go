package main

import (
	"context"
	"fmt"
	"image/color"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
)

func (a *app) plotBoundaryCommand() *cobra.Command {
	var f modelFlags
	var x, y string
	c := &cobra.Command{
		Use:   "boundary --model FILE [--model FILE …] --out FILE [flags] TABLE",
		Short: "Decision regions, or the fitted surface, over two columns",
		Long: `Draw the rows of a table over two columns, and the predictions of the model there. For
classes the picture shows the region in which each class is predicted, and for two
classes also the boundary f = 0 and the margins f = ±1. For numbers it shows contours of
the prediction. All other columns have their median or most frequent value. Rings mark
support vectors, relevance vectors, centers, and the points of a kernel perceptron with
a coefficient. With several models of two classes, each boundary f = 0 has its own
color. Lines f = 0 at which f does not change its sign are also drawn, and areas where
f = 0 are gray: the legend names the class that is predicted there.

The axes are to the scale of the model, so that distances are not distorted: without
standardization (--no-standardize, --textbook) one unit of either column has the same
length; with standardization, one standard deviation of either column has the same length. If one axis would be more than four times as
long as the other, or several models differ in their scales, the axes are not to scale,
and the title says so.

` + fittedHelp + `
With {} in a flag the learner is fitted once for each number of --values:

  mercer plot boundary --learner perceptron --target y --textbook \
    --bias {} --values -2,0,2 --out b.svg t.csv`,
	}
	f.add(c, "`FILE` of a model; may be given several times")
	c.Flags().StringVar(&f.values, "values", "", valuesHelp)
	c.Flags().StringVar(&x, "x", "", "`COLUMN` of the horizontal axis (default: the first column of numbers)")
	c.Flags().StringVar(&y, "y", "", "`COLUMN` of the vertical axis (default: the next column of numbers)")
	return a.drawCommand(c, &f.models, func(ctx context.Context, file string) (picture, error) {
		return a.plotBoundary(ctx, c, &f, x, y, file)
	})
}

const fittedHelp = "Without --model, a learner is fitted to the table by --target and the flags of mercer fit."

func (a *app) plotBoundary(ctx context.Context, c *cobra.Command, f *modelFlags, xName, yName, file string) (pic picture, err error) {
	list, closeAll, err := a.drawnModels(ctx, c, f, file)
	if err != nil {
		return pic, err
	}
	defer closeAll()
	b, t := list[0].b, list[0].t
	if xName != "" && xName == yName {
		return pic, usagef("--y: names the same column as --x; give another")
	}
	for _, m := range list {
		if err := checkDrawable(m.b); err != nil {
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
	r := raster{z: mat.NewDense(grid, grid, nil)}
	for _, axis := range []struct {
		values []float64
		to     *[]float64
	}{{xs, &r.x}, {ys, &r.y}} {
		low, high, err := paddedRange(axis.values)
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
	title, kernel := titleOf(list, f.values)
	p := newPanel(title, xName, yName)
	var truth *mat.Dense
	if len(b.Encoder.Outputs) > 0 {
		truth, _ = a.truthOf(b, t) // an error means that the table has no targets: its rows are drawn in one color
	}
	k, ok := b.Model.(learners.Classifier)
	var level *zeroLevel // the set f = 0 of a single model of two classes; otherwise nil
	for i, m := range list {
		o, x, err := a.predictAcross(ctx, m.dev, m.b, grid*grid, across)
		if err != nil {
			return pic, err
		}
		level = nil
		_, probable := learners.As[learners.Prober](m.b.Model)
		_, svc := m.b.Model.(*learners.SVCModel) // an SVC with probabilities predicts by its probabilities, so that f = 0 is not the boundary of its regions
		if classifier, ok := m.b.Model.(learners.Classifier); ok && !(svc && probable) && len(o.Decision.RawMatrix().Data) == grid*grid {
			level, err = newZeroLevel(r, m.b.Model, classifier.Classes(), x, o, func(xs, ys []float64) ([]float64, error) {
				o, _, err := a.predictAcross(ctx, m.dev, m.b, len(xs), map[string][]float64{xName: xs, yName: ys})
				if err != nil {
					return nil, err
				}
				return o.Decision.RawMatrix().Data, nil
			})
			if err != nil {
				return pic, err
			}
		}
		switch {
		case len(list) > 1:
			classifier, isClassifier := m.b.Model.(learners.Classifier)
			if !ok || !isClassifier || level == nil || !slices.Equal(k.Classes().Names, classifier.Classes().Names) {
				return pic, usagef("%s: several models can be drawn together only if all have the same two classes; draw this model alone", m.name)
			}
			addBoundary(p, level, strings.TrimPrefix(m.name, title+", "), 2+i)
		case ok:
			drawRegions(p, r, k.Classes(), o, level)
		default:
			drawContours(p, r, o.Values, b.Encoder.TargetNames(), xs, ys)
		}
	}
	if ok {
		addClassRows(p, k.Classes(), xs, ys, truth)
	}
	if len(list) == 1 {
		drawPoints(p, b, xName, yName)
		if level != nil {
			level.addNames(p)
		}
		if ok && k.Classes().Len() > len(curveColors) {
			addRegionNames(p, r, k.Classes())
		}
	}
	p.setRange(r.x[0], r.x[grid-1], r.y[0], r.y[grid-1])
	if p.ratio = unitRatio(list, xName, yName); p.ratio > 0 {
		if shape := (p.X.Max - p.X.Min) / (p.Y.Max - p.Y.Min) / p.ratio; shape > 4 || shape < 0.25 {
			p.ratio = 0
		}
	}
	if p.ratio == 0 {
		p.Title.Text += ", axes not to scale"
	}
	p.Title.Text += kernel
	return picture{title: fmt.Sprintf("%s over %s and %s", title, xName, yName), rows: [][]*panel{{p}}}, nil
}

// titleOf returns the name of the learner as the title of a picture of boundaries. For a single model, kernel is a
// comma and the kernel with rounded numbers; otherwise it is "".
func titleOf(list []drawnModel, values string) (title, kernel string) {
	m := list[0].b.Model
	switch k, ok := m.(interface{ Kernel() kernels.Kernel }); {
	case len(list) > 1 && values == "":
		return "boundary of " + count(len(list), "model"), ""
	case len(list) == 1 && ok && k.Kernel() != nil:
		kernel = ", " + roundedKernel(k.Kernel())
	}
	return m.Learner(), kernel
}

// roundedKernel returns a kernel with rounded numbers, for a title.
func roundedKernel(k kernels.Kernel) string {
	return longNumber.ReplaceAllStringFunc(k.String(), func(text string) string {
		v, _ := strconv.ParseFloat(text, 64) // no error, because longNumber matches only valid numbers
		return fourDigits(v)
	})
}

// longNumber matches a number with too many digits for a title.
var longNumber = regexp.MustCompile(`[0-9]+\.[0-9]{4,}(e[-+]?[0-9]+)?`)

// predictAcross applies the model to n points. They differ only in the given columns.
func (a *app) predictAcross(ctx context.Context, dev backend.Device, b modelfile.Bundle, n int, values map[string][]float64) (o validate.Outcome, x *mat.Dense, err error) {
	t, err := rowsAcross(b.Encoder, n, values)
	if err != nil {
		return o, nil, err
	}
	if x, err = b.Encoder.Features(t); err != nil {
		return o, nil, err
	}
	o, err = a.outcomes(ctx, dev, b.Model, x, false)
	return o, x, err
}

// unitRatio returns panel.ratio for the columns xName and yName: the number by which the models divide values of xName,
// divided by the number for yName. It returns 0 if two models have different ratios.
func unitRatio(list []drawnModel, xName, yName string) (ratio float64) {
	for i, m := range list {
		var x, y float64
		for _, c := range plainColumns(m.b) {
			switch c.name {
			case xName:
				x = c.scale
			case yName:
				y = c.scale
			}
		}
		if i > 0 && ratio != x/y {
			return 0
		}
		ratio = x / y
	}
	return ratio
}

// addBoundary draws the boundary between two classes in color k, for one of several models.
func addBoundary(p *panel, level *zeroLevel, name string, k int) {
	style := curveStyle(k, 1.6)
	level.add(p, style)
	p.Legend.Add(name, &plotter.Line{LineStyle: style})
}

// classMarker returns the marker of class k of n classes. Any two classes differ in color or shape.
func classMarker(k, n int) draw.GlyphStyle {
	marker := draw.GlyphStyle{Color: curveColors[k%len(curveColors)], Radius: 0.7 * vg.Millimeter, Shape: draw.CircleGlyph{}}
	if n > len(curveColors) {
		marker.Color = hue(float64(k)/float64(n), []float64{0.85, 0.6, 0.4}[k%3])
		marker.Radius, marker.Shape = 0.9*vg.Millimeter, classShapes[k%len(classShapes)]
	}
	return marker
}

// The number of shapes is coprime to 3, so that each shape occurs with all 3 levels of lightness in classMarker.
var classShapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}}

// hue returns the saturated color at the fraction h of the color circle, darkened by the factor light.
func hue(h, light float64) color.Color {
	channel := func(shift float64) uint8 {
		_, fraction := math.Modf(h + shift)
		return uint8(255 * light * min(max(math.Abs(6*fraction-3)-1, 0), 1))
	}
	return color.NRGBA{R: channel(0), G: channel(2. / 3), B: channel(1. / 3), A: 0xff}
}

// drawRegions draws the region in which each class is predicted.
func drawRegions(p *panel, r raster, classes learners.Classes, o validate.Outcome, level *zeroLevel) {
	r.z.CloneFrom(mat.NewDense(len(r.y), len(r.x), o.Values.RawMatrix().Data))
	if level != nil {
		level.assignClasses(r.z, classes)
	}
	p.Add(boxes{list: cells(r, func(v float64) color.Color {
		if math.IsInf(v, 0) {
			return flatColor
		}
		return faint(classMarker(classes.Index(v), classes.Len()).Color)
	})})
	if level == nil {
		return
	}
	p.contour(level.raster, -1, marginStyle)
	p.contour(level.raster, 1, marginStyle)
	level.add(p, zeroStyle)
}

var (
	zeroStyle   = solid(color.Black, 1.6)
	marginStyle = solid(color.Black, 0.9, 4, 3)
)

// flatColor is the color of areas in which f = 0.
var flatColor = color.Gray{0xd0}

// addRegionNames writes the name of each class into the widest part of its region.
func addRegionNames(p *panel, r raster, classes learners.Classes) {
	// depth is the distance from each cell to the nearest cell of another class, in steps along rows and columns.
	rows, cols := r.z.Dims()
	depth := mat.NewDense(rows, cols, nil)
	relax := func(i, j, di, dj int) {
		d := 0.0
		if k, l := i+di, j+dj; k >= 0 && k < rows && l >= 0 && l < cols && r.z.At(k, l) == r.z.At(i, j) {
			d = depth.At(k, l)
		}
		depth.Set(i, j, min(depth.At(i, j), d+1))
	}
	for i := range rows {
		for j := range cols {
			depth.Set(i, j, math.Inf(1))
			relax(i, j, -1, 0)
			relax(i, j, 0, -1)
		}
	}
	deepest, deepestPoint := map[float64]float64{}, map[float64]plotter.XY{}
	for i := rows - 1; i >= 0; i-- {
		for j := cols - 1; j >= 0; j-- {
			relax(i, j, 1, 0)
			relax(i, j, 0, 1)
			if class := r.z.At(i, j); depth.At(i, j) > deepest[class] {
				deepest[class], deepestPoint[class] = depth.At(i, j), plotter.XY{X: r.x[j], Y: r.y[i]}
			}
		}
	}
	var names plotter.XYLabels
	for k, class := range classes.Labels {
		if deepest[class] > 3 && p.Legend.style.Width(classes.Names[k]) < 1.5*vg.Centimeter { // the region has space for a short name
			names.XYs, names.Labels = append(names.XYs, deepestPoint[class]), append(names.Labels, classes.Names[k])
		}
	}
	labels, err := plotter.NewLabels(names)
	if err != nil {
		p.setError(err)
		return
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i] = p.Legend.style
		labels.TextStyle[i].Font.Size, labels.TextStyle[i].Font.Weight = vg.Points(11), 3 // the names are bold
		labels.TextStyle[i].XAlign, labels.TextStyle[i].YAlign = draw.XCenter, draw.YCenter
	}
	p.Add(struct{ plot.Plotter }{labels}) // in this wrapper, the labels have no method GlyphBoxes, for which plot would reserve space beside the axes
}

// addClassRows adds the rows with the markers of their classes.
func addClassRows(p *panel, classes learners.Classes, xs, ys []float64, truth *mat.Dense) {
	if truth == nil {
		p.rows("rows", rowMarker(color.Black), xs, ys, nil)
		return
	}
	for class, name := range classes.Names {
		p.rows(name, classMarker(class, classes.Len()), xs, ys, func(i int) bool { return truth.At(i, 0) == classes.Labels[class] })
	}
	p.rows("another class", rowMarker(color.Black), xs, ys, func(i int) bool { return math.IsNaN(truth.At(i, 0)) })
}

// drawContours draws the contours of a numeric prediction, and the rows.
func drawContours(p *panel, r raster, values *mat.Dense, targets []string, xs, ys []float64) {
	column := mat.Col(nil, 0, values)
	low, high := floats.Min(column), floats.Max(column)
	const bands = 12
	band := func(v float64) float64 {
		if high == low {
			return 0
		}
		return min(math.Floor(bands*(v-low)/(high-low)), bands-1)
	}
	for i, v := range column {
		r.z.Set(i/len(r.x), i%len(r.x), band(v))
	}
	bandColor := func(band float64) color.Color { return shade(band / 16) } // divided by 16, not by bands, so that markers of rows remain visible on the darkest band
	p.Add(boxes{list: cells(r, bandColor)})
	name := "f"
	if len(targets) > 0 {
		name = targets[0]
	}
	for _, v := range []float64{low, (low + high) / 2, high} {
		p.Legend.Add(fmt.Sprintf("%s = %s", name, fourDigits(v)), swatch{bandColor(band(v))})
	}
	p.rows("", rowMarker(color.NRGBA{R: 0xe6, G: 0x9f, A: 0xff}), xs, ys, nil)
}

// maxRings is the maximum number of points with rings.
const maxRings = 2000

// ringLabels maps names that Facts returns for sparse kernel models to the legend's names for points with rings.
var ringLabels = map[string]string{"support vectors": "support vectors", "relevance vectors": "relevance vectors", "support": "points with a coefficient", "centers": "centers"}

// drawPoints draws rings around the points of sparse kernel models.
func drawPoints(p *panel, b modelfile.Bundle, xName, yName string) {
	model := b.Model
	if n, ok := model.(validate.Novelty); ok {
		model = n.Model
	}
	name := ""
	if d, ok := model.(learners.Describer); ok {
		for _, fact := range d.Facts() {
			name += ringLabels[fact.Name]
		}
	}
	parts := learners.PartsOf(model)
	if name == "" || parts.Points == nil {
		return
	}
	columns := plainColumns(b)
	columnIndex := func(name string) int { return slices.IndexFunc(columns, func(c column) bool { return c.name == name }) }
	i, j := columnIndex(xName), columnIndex(yName)
	n, _ := parts.Points.Dims()
	if n > maxRings {
		return
	}
	var points plotter.XYs
	for k := range n {
		row := mat.Row(nil, k, parts.Points)
		points = append(points, plotter.XY{X: columns[i].mean + columns[i].scale*row[i], Y: columns[j].mean + columns[j].scale*row[j]})
	}
	p.dots(name, draw.GlyphStyle{Color: color.Black, Radius: 1.3 * vg.Millimeter, Shape: draw.RingGlyph{}}, points)
}
