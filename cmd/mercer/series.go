package main

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The methods below draw series on a panel, above the earlier series. A series with the name "" has no entry in the
// legend. The panel stores the first error.

// setError stores an error in the panel if the panel has no error yet.
func (p *panel) setError(err error) {
	if p.err == nil {
		p.err = err
	}
}

// grid draws grid lines at the ticks.
func (p *panel) grid() {
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{0xe0}, color.Gray{0xe0}
	p.Add(grid)
}

// addLegend adds an entry to the legend, unless the name is empty.
func (p *panel) addLegend(name string, thumbnail plot.Thumbnailer) {
	if name != "" {
		p.Legend.Add(name, thumbnail)
	}
}

// solid returns a line style with the given width in points. If dashes are given, they are the
// lengths of the dashes and of the gaps between them, in points.
func solid(clr color.Color, width float64, dashes ...float64) draw.LineStyle {
	style := draw.LineStyle{Color: clr, Width: vg.Points(width)}
	for _, d := range dashes {
		style.Dashes = append(style.Dashes, vg.Points(d))
	}
	return style
}

// line draws a line. An HTML page shows up to 200 of its points if it has a name or a class.
func (p *panel) line(name string, points plotter.XYs, style draw.LineStyle) {
	series := cmp.Or(p.class, name)
	var hints plotter.XYs
	for i := 0; i < len(points) && series != ""; i += (len(points) + 199) / 200 {
		hints = append(hints, points[i])
	}
	p.add(series, hints, p.stroke(name, points, style))
}

// stroke returns a line and adds an entry to the legend.
func (p *panel) stroke(name string, points plotter.XYs, style draw.LineStyle) plot.Plotter {
	line, err := plotter.NewLine(points)
	if err != nil {
		p.setError(err)
		return nil
	}
	line.LineStyle = style
	p.addLegend(name, line)
	return line
}

// add adds the plotters of a series, unless an earlier step failed.
func (p *panel) add(series string, points plotter.XYs, list ...plot.Plotter) {
	if p.err == nil {
		p.Add(hintGroup{series: series, points: points, x: p.X.Label.Text, y: p.Y.Label.Text})
		p.Add(list...)
		p.Add(hintGroup{series: series, end: true})
	}
}

// dashes draws a dashed reference line.
func (p *panel) dashes(name string, ends plotter.XYs) {
	p.add("", nil, p.stroke(name, ends, solid(color.Gray{0x50}, 1, 4, 3)))
}

// marked draws a line with its points.
func (p *panel) marked(name string, clr color.Color, points plotter.XYs) {
	p.add(cmp.Or(p.class, name), points, p.stroke(name, points, solid(clr, 1.5)), p.glyphs(draw.GlyphStyle{Color: clr, Radius: 0.8 * vg.Millimeter, Shape: draw.CircleGlyph{}}, points))
}

// polygon fills an area. If border.Width is 0, the area has no border.
func (p *panel) polygon(corners plotter.XYs, fill color.Color, border draw.LineStyle) {
	area, err := plotter.NewPolygon(corners)
	if err != nil {
		p.setError(err)
		return
	}
	area.Color, area.LineStyle = fill, border
	p.Add(area)
}

// band fills the area between two curves.
func (p *panel) band(clr color.Color, low, high plotter.XYs) {
	high = slices.Clone(high)
	slices.Reverse(high)
	p.polygon(append(slices.Clone(low), high...), faint(clr), draw.LineStyle{})
}

// dots draws points.
func (p *panel) dots(name string, marker draw.GlyphStyle, points plotter.XYs) {
	dots := p.glyphs(marker, points)
	if p.add(cmp.Or(p.class, name), points, dots); dots != nil {
		p.addLegend(name, dots)
	}
}

// glyphs returns a plotter of points, or nil if they cannot be drawn.
func (p *panel) glyphs(marker draw.GlyphStyle, points plotter.XYs) *plotter.Scatter {
	dots, err := plotter.NewScatter(points)
	if err != nil {
		p.setError(err)
		return nil
	}
	dots.GlyphStyle = marker
	return dots
}

// rows draws markers at the rows for which include returns true; a nil include means all rows. Without such rows
// there is no entry in the legend.
func (p *panel) rows(name string, marker draw.GlyphStyle, xs, ys []float64, include func(i int) bool) {
	var points plotter.XYs
	for i := range xs {
		if (include == nil || include(i)) && xs[i] == xs[i] && ys[i] == ys[i] {
			points = append(points, plotter.XY{X: xs[i], Y: ys[i]})
		}
	}
	if len(points) > 0 {
		p.dots(name, marker, points)
	}
}

// rowMarker returns the marker of a row.
func rowMarker(clr color.Color) draw.GlyphStyle {
	return draw.GlyphStyle{Color: clr, Radius: 0.7 * vg.Millimeter, Shape: draw.CircleGlyph{}}
}

// raster is a function of x and y at the points of a grid.
type raster struct {
	x, y []float64
	z    *mat.Dense // values of the function, with a row for each y and a column for each x
}

func (r raster) Dims() (c, rows int)  { return len(r.x), len(r.y) }
func (r raster) Z(c, row int) float64 { return r.z.At(row, c) }
func (r raster) X(c int) float64      { return r.x[c] }
func (r raster) Y(row int) float64    { return r.y[row] }

// contour draws the line on which a function has the value level.
func (p *panel) contour(r raster, level float64, style draw.LineStyle) {
	line := plotter.NewContour(r, []float64{level}, nil)
	line.LineStyles = []draw.LineStyle{style}
	p.Add(levelSet{line})
}

// levelSet is a plotter.Contour with a faster method GlyphBoxes, which returns boxes at two corners of the grid.
type levelSet struct{ *plotter.Contour }

// GlyphBoxes implements plot.GlyphBoxer.
func (s levelSet) GlyphBoxes(p *plot.Plot) []plot.GlyphBox {
	xmin, xmax, ymin, ymax := s.DataRange()
	margin := vg.Rectangle{Min: vg.Point{X: -2.5, Y: -2.5}, Max: vg.Point{X: 2.5, Y: 2.5}}
	return []plot.GlyphBox{
		{X: p.X.Norm(xmin), Y: p.Y.Norm(ymin), Rectangle: margin},
		{X: p.X.Norm(xmax), Y: p.Y.Norm(ymax), Rectangle: margin},
	}
}

// box is a filled rectangle, which may have a text in its middle.
type box struct {
	x0, x1, y0, y1 float64
	fill           color.Color
	text           string
	ink            color.Color // color of the text
}

// boxes are adjacent rectangles without visible gaps between them.
type boxes struct {
	list    []box
	style   text.Style
	overlap vg.Length // overlap of each box with the boxes to the right and above
}

// Plot implements plot.Plotter.
func (s boxes) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, b := range s.list {
		x0, x1, y0, y1 := x(b.x0), x(b.x1)+s.overlap, y(b.y0), y(b.y1)+s.overlap
		c.FillPolygon(b.fill, c.ClipPolygonXY([]vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}}))
		if b.text != "" {
			style := s.style
			style.Color = b.ink
			c.FillText(style, vg.Point{X: (x0 + x1) / 2, Y: (y0 + y1) / 2}, b.text)
		}
	}
}

// DataRange implements plot.DataRanger.
func (s boxes) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax, ymin, ymax = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, b := range s.list {
		xmin, xmax, ymin, ymax = min(xmin, b.x0), max(xmax, b.x1), min(ymin, b.y0), max(ymax, b.y1)
	}
	return xmin, xmax, ymin, ymax
}

// cells returns boxes for the grid points of a raster, in the colors of their values. Equal adjacent cells of a
// row, and equal adjacent rows, form one box.
func cells(r raster, colorOf func(value float64) color.Color) (list []box) {
	dx, dy := (r.x[1]-r.x[0])/2, (r.y[1]-r.y[0])/2
	for i := 0; i < len(r.y); {
		last := i
		for last+1 < len(r.y) && slices.Equal(r.z.RawRowView(last+1), r.z.RawRowView(i)) {
			last++
		}
		for j := 0; j < len(r.x); {
			end := j
			for end < len(r.x) && r.Z(end, i) == r.Z(j, i) {
				end++
			}
			list = append(list, box{
				x0: max(r.x[j]-dx, r.x[0]), x1: min(r.x[end-1]+dx, r.x[len(r.x)-1]),
				y0: max(r.y[i]-dy, r.y[0]), y1: min(r.y[last]+dy, r.y[len(r.y)-1]), fill: colorOf(r.Z(j, i)),
			})
			j = end
		}
		i = last + 1
	}
	return list
}

// setRange sets the ranges of the axes.
func (p *panel) setRange(xmin, xmax, ymin, ymax float64) {
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = xmin, xmax, ymin, ymax
}

// logarithmic gives an axis a logarithmic scale.
func logarithmic(a *plot.Axis) { a.Scale, a.Tick.Marker = plot.LogScale{}, logTicks{} }

// namesOnly removes the line and the ticks of an axis, because they would cross the names.
func namesOnly(a *plot.Axis) { a.Tick.Length, a.LineStyle.Width, a.Padding = 0, 0, vg.Points(4) }

// upright turns the labels of the x axis by 90°.
func (p *panel) upright() {
	l := &p.X.Tick.Label
	l.Rotation, l.XAlign, l.YAlign = math.Pi/2, draw.XRight, draw.YCenter
}

// curveColors are the colors of Okabe and Ito (2008), which readers with color blindness can distinguish.
var curveColors = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}, color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff}, color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.RGBA{R: 0xf0, G: 0xe4, B: 0x42, A: 0xff}, color.RGBA{R: 0x20, G: 0x20, B: 0x20, A: 0xff},
}

// curveStyle returns the style of curve k: a color, and dashes if an earlier curve has the color.
func curveStyle(k int, width float64) draw.LineStyle {
	style := solid(curveColors[k%len(curveColors)], width)
	if k >= len(curveColors) {
		style.Dashes = []vg.Length{vg.Points(float64(2 + k/len(curveColors))), vg.Points(2)}
	}
	return style
}

// faint returns a lighter color for a background.
func faint(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	return color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: 0x38}
}

// shade returns a color between white for a fraction of 0 and dark blue for 1. The darkness is proportional to the
// square root of the fraction, so that even a small fraction differs visibly from white.
func shade(fraction float64) color.Color {
	v := math.Sqrt(fraction)
	mix := func(from, to float64) uint8 { return uint8(from + (to-from)*v) }
	return color.RGBA{R: mix(255, 8), G: mix(255, 64), B: mix(255, 129), A: 255}
}

// swatch is a box in the legend that shows a color.
type swatch struct{ color color.Color }

// Thumbnail implements plot.Thumbnailer.
func (s swatch) Thumbnail(c *draw.Canvas) {
	area := []vg.Point{{X: c.Min.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Max.Y}, {X: c.Min.X, Y: c.Max.Y}}
	c.FillPolygon(s.color, area)
	c.StrokeLines(solid(color.Gray{0x80}, 0.5), append(area, area[0]))
}

// plainTicks are the ticks of gonum/plot with labels of minimum length: 25, not 25.00.
type plainTicks struct{}

// Ticks implements plot.Ticker.
func (plainTicks) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i, t := range ticks {
		if !t.IsMinor() {
			ticks[i].Label = strconv.FormatFloat(t.Value, 'g', 6, 64)
		}
	}
	return ticks
}

// decades are ticks on an axis of decimal logarithms, at powers of ten and on a short axis also at 2 and 5 times these.
type decades struct{}

// logTicks are the ticks of decades on a logarithmic axis.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(low, high float64) []plot.Tick {
	ticks := decades{}.Ticks(math.Log10(low), math.Log10(high))
	for i := range ticks {
		ticks[i].Value = math.Pow(10, ticks[i].Value)
	}
	return ticks
}

// Ticks implements plot.Ticker.
func (decades) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	labelStep := int(math.Ceil((high - low) / 7))
	for d := int(math.Floor(low)); d <= int(math.Ceil(high)); d++ {
		for _, m := range []float64{1, 2, 5} {
			v := float64(d) + math.Log10(m)
			if v < low || v > high || m > 1 && high-low > 3 {
				continue
			}
			label := ""
			if d%labelStep == 0 || m > 1 {
				label = strconv.FormatFloat(m*math.Pow(10, float64(d)), 'g', 6, 64)
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: label})
		}
	}
	return ticks
}
