package main

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// panel is a pair of axes of a picture, with the title above and the legend below.
type panel struct {
	*plot.Plot
	Legend legend

	// ratio is the length of a unit on the y axis divided by that on the x axis. If it is 0, the axes fill the panel.
	ratio float64
	class string // the reader of a page selects all series of a class together; "" means that each series is selected by its own name
	err   error  // first error in drawing a series
}

// newPanel returns an empty panel in the common style.
func newPanel(title, x, y string) *panel {
	p := &panel{Plot: plot.New()}
	p.BackgroundColor = nil // the page draws the background
	p.Title.Text = title
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.X.Tick.Marker, p.Y.Tick.Marker = plainTicks{}, plainTicks{}
	p.Legend.style = p.Plot.Legend.TextStyle
	p.Legend.style.Font.Size = vg.Points(9)
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.Legend.style,
		&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label,
	} {
		style.Font.Variant = "Sans"
	}
	return p
}

// legend explains the markers of a panel.
type legend struct {
	style   text.Style
	entries []legendEntry
}

type legendEntry struct {
	name       string
	thumbnails []plot.Thumbnailer
}

// Add adds an entry.
func (l *legend) Add(name string, thumbnails ...plot.Thumbnailer) {
	l.entries = append(l.entries, legendEntry{name, thumbnails})
}

const (
	legendLines = 30
	markWidth   = 6 * vg.Millimeter
	markGap     = 1.5 * vg.Millimeter
	legendGap   = 2 * vg.Millimeter // distance between the label of the x axis and the legend
)

// layout returns the width of a column of the legend, and the numbers of columns and of visible entries.
func (l *legend) layout(width vg.Length) (column vg.Length, columns, visible int) {
	for _, e := range l.entries {
		column = max(column, markWidth+4*markGap+l.style.Width(e.name))
	}
	if column == 0 {
		return 0, 1, 0
	}
	column = min(column, width)
	columns = int(width / column)
	return column, columns, min(len(l.entries), columns*legendLines)
}

// line returns the height of an entry.
func (l *legend) line() vg.Length { return 1.25 * l.style.Font.Size }

// height returns the height of the legend with the gap above it.
func (l *legend) height(width vg.Length) vg.Length {
	_, columns, visible := l.layout(width)
	if visible == 0 {
		return 0
	}
	return legendGap + vg.Length((visible+columns-1)/columns)*l.line()
}

// draw draws the legend at the top of c. If not all entries fit, the last line says how many are missing.
func (l *legend) draw(c draw.Canvas) {
	width := c.Max.X - c.Min.X
	column, columns, visible := l.layout(width)
	style := l.style
	style.YAlign = draw.YCenter
	for i, e := range l.entries[:visible] {
		x := c.Min.X + vg.Length(i%columns)*column
		y := c.Max.Y - legendGap - (vg.Length(i/columns)+0.5)*l.line()
		if i == visible-1 && visible < len(l.entries) {
			e = legendEntry{name: fmt.Sprintf("and %d more", len(l.entries)-i)}
		}
		halfHeight := 0.4 * l.line()
		for _, m := range e.thumbnails {
			m.Thumbnail(&draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
				Min: vg.Point{X: x, Y: y - halfHeight}, Max: vg.Point{X: x + markWidth, Y: y + halfHeight},
			}})
		}
		c.FillText(style, vg.Point{X: x + markWidth + markGap, Y: y}, truncated(style, e.name, column-markWidth-markGap))
	}
}

// truncated returns the text s, shortened if it is wider than width.
func truncated(style text.Style, s string, width vg.Length) string {
	letters := []rune(s)
	for n := len(letters) - 1; n > 0 && style.Width(s) > width; n-- {
		s = string(letters[:n]) + "…"
	}
	return s
}

// pageSize returns the size of a page of panels, where width × height is the size of a panel without its legend. The
// height of a page with a single panel is smaller if the axes do not need the whole height.
func pageSize(rows [][]*panel, width, height vg.Length) (w, h vg.Length) {
	w = vg.Length(len(rows[0])) * width
	legend := legendHeight(rows, tilesOf(rows, 0).width(w))
	h = vg.Length(len(rows)) * (height + legend)
	if len(rows) == 1 && len(rows[0]) == 1 {
		tile := tilesOf(rows, legend).At(draw.Canvas{Rectangle: vg.Rectangle{Max: vg.Point{X: w, Y: h}}}, 0, 0)
		h -= tile.Max.Y - rows[0][0].scaled(tile).Max.Y
	}
	return w, h
}

// legendHeight returns the height of the tallest legend in panels of the given width.
func legendHeight(rows [][]*panel, width vg.Length) (height vg.Length) {
	for _, row := range rows {
		for _, p := range row {
			if p != nil {
				height = max(height, p.Legend.height(width))
			}
		}
	}
	return height
}

const (
	titleHeight = 9 * vg.Millimeter  // height of the title above the axes
	labelRoom   = 25 * vg.Millimeter // difference between the width of a panel and the width available for the label of an axis
)

type tiles struct{ draw.Tiles }

// tilesOf divides a page into areas for panels. legend is the height of a legend.
func tilesOf(rows [][]*panel, legend vg.Length) tiles {
	const margin = 3 * vg.Millimeter
	return tiles{draw.Tiles{
		Rows: len(rows), Cols: len(rows[0]), PadX: 2 * margin, PadY: titleHeight + legend + margin,
		PadTop: titleHeight + margin, PadBottom: legend + margin, PadLeft: margin, PadRight: 1.5 * margin,
	}}
}

// width returns the width of a panel on a page.
func (t tiles) width(page vg.Length) vg.Length {
	return (page - t.PadLeft - t.PadRight - vg.Length(t.Cols-1)*t.PadX) / vg.Length(t.Cols)
}

// drawPanels draws rows with equal numbers of panels on a page and aligns their axes. A nil panel stays blank.
func drawPanels(rows [][]*panel, page draw.Canvas) {
	page.SetColor(color.White)
	page.Fill(page.Rectangle.Path())
	tiles := tilesOf(rows, 0)
	width := tiles.width(page.Max.X - page.Min.X)
	tiles = tilesOf(rows, legendHeight(rows, width))
	plots := make([][]*plot.Plot, len(rows))
	titles, titleCounts := map[*panel]string{}, make([]int, len(rows))
	for i, row := range rows {
		plots[i] = make([]*plot.Plot, len(row))
		for j, p := range row {
			if p != nil {
				plots[i][j] = p.Plot
				titles[p], p.Title.Text = p.Title.Text, "" // drawPanels draws the title itself, because gonum/plot would align the title with the ticks
				tile := tiles.At(page, j, i)
				p.X.Label.Text = truncated(p.X.Label.TextStyle, p.X.Label.Text, tile.Max.X-tile.Min.X-labelRoom)
				p.Y.Label.Text = truncated(p.Y.Label.TextStyle, p.Y.Label.Text, tile.Max.Y-tile.Min.Y-labelRoom)
				if titles[p] != "" {
					titleCounts[i]++
				}
			}
		}
	}
	for i, canvases := range plot.Align(plots, tiles.Tiles, page) {
		bottom := page.Max.Y
		for j, p := range rows[i] {
			if p != nil {
				canvases[j] = p.scaled(canvases[j])
				bottom = min(bottom, canvases[j].Min.Y)
			}
		}
		for j, p := range rows[i] {
			if p == nil {
				continue
			}
			p.Draw(canvases[j])
			area, tile := p.area(canvases[j]), tiles.At(page, j, i)
			p.Legend.draw(draw.Canvas{Canvas: page.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: tile.Min.X}, Max: vg.Point{X: tile.Max.X, Y: bottom}}})
			p.Title.Text = titles[p]
			bounds, center := tile, (area.Min.X+area.Max.X)/2
			if titleCounts[i] == 1 && len(rows[i]) > 1 { // the title belongs to the whole row
				bounds, center = page, (page.Min.X+page.Max.X)/2
			}
			style := p.Title.TextStyle
			style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
			maxWidth := 2 * min(bounds.Max.X-center, center-bounds.Min.X)
			page.FillText(style, vg.Point{X: center, Y: area.Max.Y + titleHeight/2}, truncated(style, p.Title.Text, maxWidth))
		}
	}
}

// area returns the part of c inside the axes of the panel.
func (p *panel) area(c draw.Canvas) draw.Canvas {
	title := p.Title.Text
	p.Title.Text = ""
	defer func() { p.Title.Text = title }()
	return p.DataCanvas(c)
}

// scaled returns the part of c in which a unit of y is p.ratio times as long as a unit of x.
func (p *panel) scaled(c draw.Canvas) draw.Canvas {
	if p.ratio == 0 {
		return c
	}
	// The space for axes and labels depends slightly on the size of c, so that the loop converges.
	for range 100 {
		area := p.area(c)
		width, height := area.Max.X-area.Min.X, area.Max.Y-area.Min.Y
		shape := vg.Length((p.X.Max - p.X.Min) / (p.Y.Max - p.Y.Min) / p.ratio) // width / height
		if math.Abs(float64(width-shape*height)) < 1e-9*float64(width) {
			break
		}
		if extra := width - shape*height; extra > 0 {
			c = draw.Crop(c, extra/2, -extra/2, 0, 0)
		} else {
			c = draw.Crop(c, 0, 0, 0, width/shape-height)
		}
	}
	return c
}
