package main

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"math"
	"regexp"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mercer-go/mercer/internal/webpage"
)

// htmlPage returns a page with the tables of the picture and a card for each panel.
func (pic picture) htmlPage() ([]byte, error) {
	page := webpage.Page{Title: pic.title, Facts: pic.facts, Cards: pic.tables}
	for _, row := range pic.rows {
		for _, p := range row {
			if p == nil {
				continue
			}
			title := p.Title.Text
			p.Title.Text = ""
			svg, err := svgPage([][]*panel{{p}}, pixels{}, true)
			if err != nil {
				return nil, err
			}
			if title == "" {
				title = p.Y.Label.Text + " over " + p.X.Label.Text
			}
			page.Cards = append(page.Cards, webpage.Card{Title: title, Picture: inlined(svg, title)})
		}
	}
	var b bytes.Buffer
	err := page.Write(&b)
	return b.Bytes(), err
}

// inlined returns an SVG picture as an element of a page. The page sets the size of the element.
func inlined(svg []byte, title string) template.HTML {
	text := regexp.MustCompile(`(?s)^.*?<svg width="[^"]*" height="[^"]*"`).ReplaceAllLiteralString(string(svg), `<svg class="paper" role="img" aria-label="`+html.EscapeString(title)+`"`)
	return template.HTML(text)
}

// tableCard returns a card with a table. The first row of the table is its head.
func tableCard(title, series string, table [][]string) webpage.Card {
	c := webpage.Card{Title: title, Series: series, Wide: len(table[0]) > 5, Head: table[0]}
	for _, row := range table[1:] {
		cells := make([]webpage.Cell, len(row))
		for i, text := range row {
			cells[i].Text = text
		}
		c.Rows = append(c.Rows, cells)
	}
	return c
}

// A hintGroup is drawn before and after each series of a panel. In the SVG of an HTML page it makes the elements of
// the series a group with the values of the points, which the page shows at the mouse pointer.
type hintGroup struct {
	series string // name of the series, by which the reader of the page can select it, or "" for no group
	end    bool
	points plotter.XYs
	x, y   string   // the full labels of the axes; the drawn labels may be shorter
	texts  []string // the texts shown for the points; nil means their coordinates
}

// The library that draws the SVG has no groups. A hintGroup draws the texts groupBegin, with the name of the group,
// and groupEnd. The function grouped replaces them by tags.
const (
	groupBegin = "\x02begin "
	groupEnd   = "\x02end"
)

var groupTags = regexp.MustCompile("(?s)<text [^>]*>\x02(begin|end)(?: (.*?))?</text>\n?")

// Plot implements plot.Plotter.
func (m hintGroup) Plot(c draw.Canvas, p *plot.Plot) {
	svg := svgUnder(c.Canvas)
	if svg == nil || !svg.interactive {
		return
	}
	if m.series != "" {
		text := groupBegin + m.series
		if m.end {
			text = groupEnd
		}
		svg.Canvas.FillString(p.Title.TextStyle.Handler.Cache().Lookup(p.Title.TextStyle.Font, 1), vg.Point{}, text)
	}
	const maxHints = 2000 // maximum number of points of a series whose values are stored
	step := (len(m.points) + maxHints - 1) / maxHints
	x, y := p.Transforms(&c)
	for i := 0; i < len(m.points); i += step {
		point := m.points[i]
		px, py := x(point.X), y(point.Y)
		if px < c.Min.X || px > c.Max.X || py < c.Min.Y || py > c.Max.Y {
			continue
		}
		h := webpage.Hint{X: px.Points(), Y: (svg.height - py).Points(), Series: m.series}
		if m.texts != nil {
			h.Text = m.texts[i]
		} else {
			h.Text = fmt.Sprintf("%s: %s\n%s: %s", m.x, valueOn(p.X, point.X), m.y, valueOn(p.Y, point.Y))
		}
		if m.series != "" {
			h.Text = m.series + "\n" + h.Text
		}
		svg.hints = append(svg.hints, h)
	}
}

// svgUnder returns the SVG to which a canvas draws, or nil for another format.
func svgUnder(c vg.Canvas) *svgCanvas {
	switch c := c.(type) {
	case *svgCanvas:
		return c
	case draw.Canvas:
		return svgUnder(c.Canvas)
	case *draw.Canvas:
		return svgUnder(c.Canvas)
	}
	return nil
}

// valueOn returns the text of a value on an axis: the name of a tick at the value, or a number.
func valueOn(a plot.Axis, v float64) string {
	switch ticks := a.Tick.Marker.(type) {
	case plot.ConstantTicks:
		for _, t := range ticks {
			if t.Value == v {
				return t.Label
			}
		}
	case decades:
		return fourDigits(math.Pow(10, v))
	}
	return fourDigits(v)
}

// grouped returns the SVG with tags for the groups of its series.
func grouped(svg []byte) []byte {
	return groupTags.ReplaceAllFunc(svg, func(tag []byte) []byte {
		match := groupTags.FindSubmatch(tag)
		if string(match[1]) == "end" {
			return []byte("</g>\n")
		}
		return fmt.Appendf(nil, "<g data-series=\"%s\">\n", match[2])
	})
}
