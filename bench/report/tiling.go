package report

import (
	"fmt"
	"html/template"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// tiling is a map over two parameters, both on logarithmic axes: a tile for each
// pair of values, coloured by who wins and how clearly, with a text of its own,
// and lines over them.
type tiling struct {
	name   string // read out in its place
	x, y   string // labels
	xs, ys []int  // rising
	tile   func(x, y int) (tile, bool)
	lines  []line
}

// tile is a place of the map. Two sides are told apart by blue and orange, which
// colour-blind eyes do as well, and by the text.
type tile struct {
	side  int // 0 or 1
	level int // 0: nearly even … shades − 1
	text  string
}

// line lies over the tiles.
type line struct {
	name   string
	style  lineStyle
	points []point // y against x, as everywhere
}

type lineStyle int

const (
	solid  lineStyle = iota // with markers: what was measured
	dashed                  // a rule
	dotted                  // a model
)

// shades is how many levels a side has.
const shades = 4

// levelOf is the shade of a ratio ≥ 1: below 1.1, 1.5, 4 and above.
func levelOf(ratio float64) int {
	switch {
	case ratio < 1.1:
		return 0
	case ratio < 1.5:
		return 1
	case ratio < 4:
		return 2
	}
	return 3
}

// shade stands for the variable of a side's level.
func shade(side, level int) color.NRGBA {
	return color.NRGBA{R: 0x10, G: uint8(0x20 * (side + 1)), B: uint8(0x20 * (level + 1)), A: 0xff}
}

// shadeVariables are pairs for a replacer.
func shadeVariables() (pairs []string) {
	for side := range 2 {
		for level := range shades {
			pairs = append(pairs, asWritten(shade(side, level)), fmt.Sprintf("var(--side%d%d)", side, level))
		}
	}
	return pairs
}

func (s lineStyle) line() draw.LineStyle {
	switch s {
	case dashed:
		return draw.LineStyle{Color: ink, Width: 1, Dashes: []vg.Length{6, 3}}
	case dotted:
		return draw.LineStyle{Color: ink, Width: 1.6, Dashes: []vg.Length{1.5, 2.5}}
	}
	return draw.LineStyle{Color: ink, Width: 1.8}
}

// edges are the borders of tiles around values: halfway between their logarithms.
func edges(values []int) []float64 {
	list := make([]float64, len(values)+1)
	for i := 1; i < len(values); i++ {
		list[i] = math.Sqrt(float64(values[i-1]) * float64(values[i]))
	}
	first, last := float64(values[0]), float64(values[len(values)-1])
	list[0], list[len(values)] = first/math.Sqrt2, last*math.Sqrt2
	if len(values) > 1 {
		list[0], list[len(values)] = first*first/list[1], last*last/list[len(values)-1]
	}
	return list
}

// Plot implements plot.Plotter.
func (t tiling) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	xs, ys := edges(t.xs), edges(t.ys)
	style := text.Style{
		Color: ink, Font: font.From(p.X.Tick.Label.Font, 7), Handler: p.TextHandler,
		XAlign: text.XLeft, YAlign: text.YTop,
	}
	for i, x := range t.xs {
		for j, y := range t.ys {
			place, ok := t.tile(x, y)
			if !ok {
				continue
			}
			low, high := vg.Point{X: trX(xs[i]), Y: trY(ys[j])}, vg.Point{X: trX(xs[i+1]), Y: trY(ys[j+1])}
			const gap = 0.4
			low.X, low.Y, high.X, high.Y = low.X+gap, low.Y+gap, high.X-gap, high.Y-gap
			c.FillPolygon(shade(place.side, place.level), []vg.Point{low, {X: high.X, Y: low.Y}, high, {X: low.X, Y: high.Y}})
			// In the corner that a line along the diagonal leaves free.
			c.FillText(style, vg.Point{X: low.X + 2, Y: high.Y - 2}, place.text)
		}
	}
}

// draw draws t.
func (t tiling) draw() (template.HTML, error) {
	if len(t.xs) == 0 || len(t.ys) == 0 {
		return "", fmt.Errorf("bench: report: %s: there is nothing to draw", t.name)
	}
	p := plot.New()
	p.BackgroundColor = nil
	plain(p, t.x, t.y)
	p.Add(t)
	xs, ys := edges(t.xs), edges(t.ys)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, every(t.xs)
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, every(t.ys)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = xs[0], xs[len(xs)-1], ys[0], ys[len(ys)-1]
	p.X.Padding, p.Y.Padding = 1, 1
	for _, l := range t.lines {
		points := clip(l.points, p.X.Min, p.X.Max, p.Y.Min, p.Y.Max)
		if len(points) == 0 {
			continue
		}
		curve, err := plotter.NewLine(points)
		if err != nil {
			return "", err
		}
		curve.LineStyle = l.style.line()
		p.Add(curve)
		if l.style != solid {
			continue
		}
		marks, err := plotter.NewScatter(points)
		if err != nil {
			return "", err
		}
		marks.GlyphStyle = draw.GlyphStyle{Color: ink, Radius: 2.6, Shape: draw.CircleGlyph{}}
		p.Add(marks)
	}
	c := vgsvg.New(width, 1.25*height)
	p.Draw(draw.Crop(draw.New(c), 0, -6, 3, 0))
	return inline(c, t.name)
}

// clip leaves out what lies outside, but keeps the place where a line between two
// points crosses the border, on logarithmic axes.
func clip(points []point, left, right, bottom, top float64) plotter.XYs {
	var kept plotter.XYs
	inside := func(q point) bool { return q.x >= left && q.x <= right && q.y >= bottom && q.y <= top }
	for i, q := range points {
		if inside(q) {
			if i > 0 && !inside(points[i-1]) {
				kept = append(kept, border(q, points[i-1], inside))
			}
			kept = append(kept, plotter.XY{X: q.x, Y: q.y})
		} else if i > 0 && inside(points[i-1]) {
			kept = append(kept, border(points[i-1], q, inside))
		}
	}
	return kept
}

// border is where the way from a point inside to one outside leaves, by halving.
func border(in, out point, inside func(point) bool) plotter.XY {
	for range 40 {
		middle := point{x: math.Sqrt(in.x * out.x), y: math.Sqrt(in.y * out.y)}
		if inside(middle) {
			in = middle
		} else {
			out = middle
		}
	}
	return plotter.XY{X: in.x, Y: in.y}
}

// every labels every value.
func every(values []int) plot.ConstantTicks {
	list := make(plot.ConstantTicks, len(values))
	for i, v := range values {
		list[i] = plot.Tick{Value: float64(v), Label: strconv.Itoa(v)}
	}
	return list
}

// sideSwatch draws the shades of a side for a legend.
func sideSwatch(side int) (template.HTML, error) {
	c := vgsvg.New(30, 12)
	area := draw.New(c)
	for level := range shades {
		x := vg.Length(level) * 7.5
		area.FillPolygon(shade(side, level), []vg.Point{{X: x, Y: 1}, {X: x + 7, Y: 1}, {X: x + 7, Y: 11}, {X: x, Y: 11}})
	}
	return inline(c, "")
}

// swatch draws a line for a legend.
func (l line) swatch() (template.HTML, error) {
	c := vgsvg.New(30, 12)
	area := draw.New(c)
	area.StrokeLine2(l.style.line(), 0, 6, 30, 6)
	if l.style == solid {
		area.DrawGlyph(draw.GlyphStyle{Color: ink, Radius: 2.6, Shape: draw.CircleGlyph{}}, vg.Point{X: 15, Y: 6})
	}
	return inline(c, "")
}
