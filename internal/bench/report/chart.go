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

	"github.com/mercer-go/mercer/internal/bench"
	"github.com/mercer-go/mercer/internal/webpage"
)

// width and height are the size of a chart, which fits on a phone without scaling.
const (
	width  = 330 * vg.Length(1)
	height = 220 * vg.Length(1)
)

// markers holds the marker of each curve. The colors of the curves, in the style sheet, are those of Okabe and Ito
// (2008), darker or lighter for contrast with the background.
var markers = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.RingGlyph{}, draw.PlusGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.SquareGlyph{},
}

// dashes holds the dash pattern of each dashed curve.
var dashes = [][]vg.Length{{5, 3}, {2, 2}, {8, 3, 2, 3}, {1, 3}}

// The plot is drawn in these colors. The function inline replaces each color by a variable of the page's style sheet.
var (
	ink  = color.NRGBA{R: 0x80, A: 0xff}
	rule = color.NRGBA{R: 0x40, A: 0xff}
)

func colorOf(i int) color.NRGBA {
	return color.NRGBA{G: 0x80, B: uint8(0x10 * (i%len(markers) + 1)), A: 0xff}
}

var variables = func() *strings.Replacer {
	written := func(c color.NRGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) } // the form in which vgsvg writes colors
	pairs := []string{written(ink), "var(--ink)", written(rule), "var(--rule)"}
	for i := range markers {
		pairs = append(pairs, written(colorOf(i)), "var(--look"+strconv.Itoa(i)+")")
	}
	return strings.NewReplacer(pairs...)
}()

// prelude matches the beginning of the text of vgsvg, up to the size of the picture.
var prelude = regexp.MustCompile(`(?s)^.*?<svg width="[^"]*" height="[^"]*"`)

// inline returns the SVG of a canvas as an element of a page, with the given hints.
func inline(c *vgsvg.Canvas, attributes string, hints ...webpage.Hint) (template.HTML, error) {
	var buf bytes.Buffer
	if _, err := c.WriteTo(&buf); err != nil {
		return "", err
	}
	return template.HTML(webpage.WithHints(variables.Replace(prelude.ReplaceAllLiteralString(buf.String(), "<svg "+attributes)), hints)), nil
}

// picture draws a chart. styleOf maps the name of a curve to the number of its marker and color.
func picture(name string, c *bench.Chart, styleOf func(string) int) (template.HTML, error) {
	p := plot.New()
	p.BackgroundColor = nil
	p.X.Label.Text, p.Y.Label.Text = c.X, c.Y
	for _, style := range []*text.Style{&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font.Variant, style.Font.Size, style.Color = "Sans", 9, ink
	}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.LineStyle.Color, a.Tick.LineStyle.Color, a.Padding, a.Scale = ink, ink, 4, plot.LogScale{}
	}
	grid := plotter.NewGrid()
	grid.Vertical.Width, grid.Horizontal.Color = 0, rule
	p.Add(grid)
	var xs []float64
	low, high := math.Inf(1), 0.0
	for _, curve := range c.Curves {
		for _, q := range curve.Points {
			xs, low, high = append(xs, q.X), min(low, q.Low), max(high, q.High)
		}
		line, marks, bars, err := plotters(styleOf(curve.Name), curve)
		if err != nil {
			return "", err
		}
		if p.Add(line); !curve.Dashed {
			p.Add(bars, marks)
		}
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.Ticker(ticks(xs)), logTicks{}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = xs[0]/1.08, xs[len(xs)-1]*1.08, low/1.2, high*1.2
	canvas := vgsvg.New(width, height)
	area := draw.Crop(draw.New(canvas), 0, -6, 3, 0)
	p.Draw(area)
	area = p.DataCanvas(area)
	x, y := p.Transforms(&area)
	var hints []webpage.Hint
	for _, curve := range c.Curves {
		for _, q := range curve.Points {
			hints = append(hints, webpage.Hint{
				X: x(q.X).Points(), Y: (height - y(q.Y)).Points(),
				Text: fmt.Sprintf("%s\n%s: %.4g\n%s: %.4g", curve.Name, c.X, q.X, c.Y, q.Y),
			})
		}
	}
	return inline(canvas, fmt.Sprintf(`role="img" aria-label="%s"`, template.HTMLEscapeString(name)), hints...)
}

// plotters returns the line, the markers and the error bars of curve i.
func plotters(i int, c bench.Curve) (*plotter.Line, *plotter.Scatter, *plotter.YErrorBars, error) {
	xys, spread := make(plotter.XYs, len(c.Points)), make(plotter.YErrors, len(c.Points))
	for k, q := range c.Points {
		xys[k].X, xys[k].Y = q.X, q.Y
		spread[k].Low, spread[k].High = q.Low-q.Y, q.High-q.Y
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
	line.LineStyle = draw.LineStyle{Color: colorOf(i), Width: 1.6}
	if c.Dashed {
		line.LineStyle = draw.LineStyle{Color: ink, Width: 1.2, Dashes: dashes[i%len(dashes)]}
	}
	marks.GlyphStyle = draw.GlyphStyle{Color: colorOf(i), Radius: 3.2, Shape: markers[i%len(markers)]}
	bars.LineStyle, bars.CapWidth = draw.LineStyle{Color: colorOf(i), Width: 0.9}, 4
	return line, marks, bars, nil
}

// swatch draws the line and the marker of curve i for the legend.
func swatch(i int, c bench.Curve) (template.HTML, error) {
	c.Points = []bench.Point{{X: 1, Y: 1, Low: 1, High: 1}}
	line, marks, _, err := plotters(i, c)
	if err != nil {
		return "", err
	}
	canvas := vgsvg.New(30, 12)
	area := draw.New(canvas)
	if line.Thumbnail(&area); !c.Dashed {
		marks.Thumbnail(&area)
	}
	return inline(canvas, `aria-hidden="true"`)
}

// ticks has a tick for each measured value. A tick has no label if it is too near the preceding label.
type ticks []float64

// Ticks implements plot.Ticker.
func (t ticks) Ticks(low, high float64) []plot.Tick {
	const nearest = 0.1 // minimum distance of two labels, as a fraction of the axis
	list := make([]plot.Tick, len(t))
	labeled := math.Inf(-1)
	for i, v := range t {
		list[i].Value = v
		if position := math.Log(v/low) / math.Log(high/low); position-labeled >= nearest {
			list[i].Label = strconv.FormatFloat(v, 'g', -1, 64)
			labeled = position
		}
	}
	return list
}

// logTicks has ticks at 1, 2, … 9 times the powers of ten. The powers of ten have labels. If there are fewer than three
// of them, other ticks have labels, too. An axis with fewer than three ticks gets the ticks of a linear axis instead.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(low, high float64) []plot.Tick {
	var list []plot.Tick
	for _, t := range (plot.LogTicks{Prec: -1}).Ticks(low, high) {
		if t.Value >= low && t.Value <= high {
			list = append(list, plot.Tick{Value: t.Value})
		}
	}
	for _, digits := range []string{"1", "125", "123456789"} {
		labels := 0
		for i := range list {
			first := strconv.FormatFloat(list[i].Value, 'e', 0, 64)[:1]
			if strings.Contains(digits, first) {
				list[i].Label = strconv.FormatFloat(list[i].Value, 'g', 6, 64)
				labels++
			}
		}
		if labels >= 3 {
			return list
		}
	}
	return plot.DefaultTicks{}.Ticks(low, high)
}
