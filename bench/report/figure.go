package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// figure is a picture of y against x, which has a logarithmic axis.
type figure struct {
	name   string // read out in its place
	x, y   string // labels
	logY   bool
	free   bool // x is a quantity and not a parameter: its axis is marked at round values
	series []series
}

// series is a curve: a line with markers and a bar from low to high at each
// point; or, with limit, a dashed line in the colour of the axes; with law, a thin
// dotted line in the curve's colour, such as what was fitted to another; with
// loose, the markers alone. What has no name is not in the legend.
type series struct {
	name              string
	look              int // which colour and marker
	limit, law, loose bool
	points            []point
}

type point struct{ x, y, low, high float64 }

// A figure is small, so that it is read on a phone without being scaled down.
const (
	width  = 330 * vg.Length(1)
	height = 220 * vg.Length(1)
)

// Each curve has a marker and a colour of its own. The colours are defined by
// the page, for light and dark: those of Okabe and Ito (2008), which colour-blind
// eyes tell apart, darkened and lightened to stand out from the paper.
var markers = []draw.GlyphDrawer{
	draw.CircleGlyph{},
	polygon{0, 1.3, 1.1, -0.7, -1.1, -0.7},
	polygon{-0.9, -0.9, 0.9, -0.9, 0.9, 0.9, -0.9, 0.9},
	polygon{0, 1.4, 1.1, 0, 0, -1.4, -1.1, 0},
	polygon{-1.3, 0.45, -0.45, 0.45, -0.45, 1.3, 0.45, 1.3, 0.45, 0.45, 1.3, 0.45, 1.3, -0.45, 0.45, -0.45, 0.45, -1.3, -0.45, -1.3, -0.45, -0.45, -1.3, -0.45},
	polygon{0, -1.3, 1.1, 0.7, -1.1, 0.7},
	polygon{0, 0.6, 0.8, 1.3, 1.3, 0.8, 0.6, 0, 1.3, -0.8, 0.8, -1.3, 0, -0.6, -0.8, -1.3, -1.3, -0.8, -0.6, 0, -1.3, 0.8, -0.8, 1.3},
	polygon{1.3, 0, 0.65, 1.13, -0.65, 1.13, -1.3, 0, -0.65, -1.13, 0.65, -1.13},
}

// polygon is a filled marker: the coordinates of its corners in turn, in units
// of the radius.
type polygon []vg.Length

func (g polygon) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	corners := make([]vg.Point, len(g)/2)
	for i := range corners {
		corners[i] = vg.Point{X: at.X + g[2*i]*style.Radius, Y: at.Y + g[2*i+1]*style.Radius}
	}
	c.FillPolygon(style.Color, corners)
}

// dashes of the limits.
var dashes = [][]vg.Length{{5, 3}, {2, 2}, {8, 3, 2, 3}, {1, 3}}

// The colours in a picture stand for variables of the page's style, which
// replace them: a picture follows the reader's light or dark.
var (
	ink  = color.NRGBA{R: 0x80, A: 0xff}
	rule = color.NRGBA{R: 0x40, A: 0xff}
)

func paint(look int) color.NRGBA {
	return color.NRGBA{G: 0x80, B: uint8(0x10 * (look%len(markers) + 1)), A: 0xff}
}

// asWritten is how vgsvg writes a colour.
func asWritten(c color.NRGBA) string {
	r, g, b, a := c.RGBA()
	scale := 255 / float64(a)
	return fmt.Sprintf("#%02X%02X%02X", int(float64(r)*scale), int(float64(g)*scale), int(float64(b)*scale))
}

var variables = func() *strings.Replacer {
	pairs := []string{asWritten(ink), "var(--ink)", asWritten(rule), "var(--rule)"}
	for i := range markers {
		pairs = append(pairs, asWritten(paint(i)), "var(--look"+strconv.Itoa(i)+")")
	}
	return strings.NewReplacer(append(pairs, shadeVariables()...)...)
}()

// prelude is what vgsvg writes before the first group, up to the width and
// height, which the page decides on.
var prelude = regexp.MustCompile(`(?s)^.*?<svg width="[^"]*" height="[^"]*"`)

// inline writes a canvas as an element of a page.
func inline(c *vgsvg.Canvas, name string) (template.HTML, error) {
	var buf bytes.Buffer
	if _, err := c.WriteTo(&buf); err != nil {
		return "", err
	}
	label := `<svg aria-hidden="true"`
	if name != "" {
		label = fmt.Sprintf(`<svg role="img" aria-label="%s"`, template.HTMLEscapeString(name))
	}
	svg := prelude.ReplaceAllLiteralString(buf.String(), label)
	return template.HTML(variables.Replace(svg)), nil
}

// draw draws f.
func (f figure) draw() (template.HTML, error) {
	p := plot.New()
	p.BackgroundColor = nil
	plain(p, f.x, f.y)
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color = rule
	p.Add(grid)

	var xs []float64
	top, bottom := 0., math.Inf(1)
	curves, limits := 0, 0
	// Limits and laws first, so that the curves lie over them.
	for _, under := range []bool{true, false} {
		for _, s := range f.series {
			if (s.limit || s.law) != under || len(s.points) == 0 {
				continue
			}
			for _, q := range s.points {
				if !s.law {
					xs = append(xs, q.x)
				}
				top, bottom = max(top, q.y, q.high), min(bottom, q.y, q.low)
			}
			switch {
			case s.limit:
				limits++
			case !s.law && !f.free:
				s.points = aside(s.points, curves)
				curves++
			}
			if err := add(p, s, limits-1); err != nil {
				return "", err
			}
		}
	}
	if len(xs) == 0 {
		return "", fmt.Errorf("bench: report: %s: there is nothing to draw", f.name)
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.Ticker(ticks(xs))
	if f.free {
		p.X.Tick.Marker = logTicks{}
	}
	p.X.Min, p.X.Max = xs[0]/margin, xs[len(xs)-1]*margin
	p.Y.Min, p.Y.Max = 0, 1.06*top
	if f.logY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, logTicks{}
		p.Y.Min, p.Y.Max = bottom/1.2, 1.2*top
	}
	c := vgsvg.New(width, height)
	p.Draw(draw.Crop(draw.New(c), 0, -6, 3, 0))
	return inline(c, f.name)
}

// plain gives the axes of p their labels and the page's letters and ink.
func plain(p *plot.Plot, x, y string) {
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, style := range []*text.Style{&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font.Variant = "Sans"
		style.Font.Size = 9
		style.Color = ink
	}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.LineStyle.Color, a.Tick.LineStyle.Color = ink, ink
		a.Padding = 4
	}
}

// margin is the room on the left and on the right, a factor of x.
const margin = 1.08

// aside moves a curve a little to the right of the one before, so that their
// bars do not hide each other: the first four are centred on x.
func aside(points []point, curve int) []point {
	moved := slices.Clone(points)
	for i := range moved {
		moved[i].x *= math.Exp2(0.03 * (float64(curve) - 1.5))
	}
	return moved
}

// add adds a curve to p.
func add(p *plot.Plot, s series, limits int) error {
	line, marks, bars, err := s.parts(limits)
	if err != nil {
		return err
	}
	if !s.loose {
		p.Add(line)
	}
	if !s.limit && !s.law {
		p.Add(bars, marks)
	}
	return nil
}

// parts makes what a curve is drawn of.
func (s series) parts(limits int) (*plotter.Line, *plotter.Scatter, *plotter.YErrorBars, error) {
	xys := make(plotter.XYs, len(s.points))
	spread := make(plotter.YErrors, len(s.points))
	for i, q := range s.points {
		xys[i].X, xys[i].Y = q.x, q.y
		spread[i].Low, spread[i].High = q.low-q.y, q.high-q.y
	}
	line, err := plotter.NewLine(xys)
	if err != nil {
		return nil, nil, nil, err
	}
	marks, err := plotter.NewScatter(xys)
	if err != nil {
		return nil, nil, nil, err
	}
	bars, err := plotter.NewYErrorBars(struct {
		plotter.XYs
		plotter.YErrors
	}{xys, spread})
	if err != nil {
		return nil, nil, nil, err
	}
	line.LineStyle = draw.LineStyle{Color: paint(s.look), Width: 1.6}
	if s.limit {
		line.LineStyle = draw.LineStyle{Color: ink, Width: 1.2, Dashes: dashes[limits%len(dashes)]}
	}
	if s.law {
		line.LineStyle = draw.LineStyle{Color: paint(s.look), Width: 1, Dashes: []vg.Length{1.5, 2}}
	}
	marks.GlyphStyle = draw.GlyphStyle{Color: paint(s.look), Radius: 3.2, Shape: markers[s.look%len(markers)]}
	if s.loose { // nothing else tells where it is
		marks.GlyphStyle.Radius = 4.2
	}
	bars.LineStyle = draw.LineStyle{Color: paint(s.look), Width: 0.9}
	bars.CapWidth = 4
	return line, marks, bars, nil
}

// swatch draws the sample of a curve for a legend.
func (s series) swatch(limits int) (template.HTML, error) {
	s.points = []point{{x: 1, y: 1, low: 1, high: 1}}
	line, marks, _, err := s.parts(limits)
	if err != nil {
		return "", err
	}
	c := vgsvg.New(30, 12)
	area := draw.New(c)
	if !s.loose {
		line.Thumbnail(&area)
	}
	if !s.limit && !s.law {
		marks.Thumbnail(&area)
	}
	return inline(c, "")
}

// ticks marks the values that were measured; those too near to the one before
// have no label.
type ticks []float64

// nearest is the least distance of two labels, as a part of the axis.
const nearest = 0.1

func (t ticks) Ticks(low, high float64) []plot.Tick {
	list := make([]plot.Tick, len(t))
	labelled := math.Inf(-1)
	for i, v := range t {
		list[i].Value = v
		at := math.Log(v/low) / math.Log(high/low)
		if at-labelled >= nearest {
			list[i].Label = strconv.FormatFloat(v, 'g', -1, 64)
			labelled = at
		}
	}
	return list
}
