package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Colors that stay apart for color-blind eyes (Okabe and Ito, 2008).
var colors = map[string]color.NRGBA{
	"ridge":        {R: 0xe6, G: 0x9f, B: 0x00, A: 0xb0},
	"kernel-ridge": {R: 0x00, G: 0x72, B: 0xb2, A: 0xb0},
}

// drawDemo draws predicted against true values, a panel for each data set, as
// a PNG.
func drawDemo(rows []demoRow) ([]byte, error) {
	var panels []*panel
	for first, last := 0, 0; first < len(rows); first = last {
		for last < len(rows) && rows[last].Data == rows[first].Data {
			last++
		}
		p, err := drawPanel(rows[first:last])
		if err != nil {
			return nil, err
		}
		panels = append(panels, p)
	}
	return drawPage([][]*panel{panels})
}

// The size of one panel of a PNG, without its legend, and the resolution.
const (
	imageWidth  = 11 * vg.Centimeter
	imageHeight = 11.5 * vg.Centimeter
	imageDPI    = 150
)

// drawPage draws rows of panels as a PNG.
func drawPage(rows [][]*panel) ([]byte, error) { return pngPage(rows, pixels{}) }

// pngPage draws rows of panels as a PNG of the given size.
func pngPage(rows [][]*panel, size pixels) ([]byte, error) {
	width, height := pageSize(rows, imageWidth, imageHeight)
	dpi, of := imageDPI, vgimg.UseWH(width, height)
	if size.width > 0 {
		dpi = max(1, int(72*size.scale(width, height)))
		of = vgimg.UseImage(image.NewRGBA(image.Rect(0, 0, size.width, size.height)))
	}
	img := vgimg.NewWith(of, vgimg.UseDPI(dpi))
	drawPanels(rows, draw.New(img))
	var buf bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: img}.WriteTo(&buf)
	return buf.Bytes(), err
}

// plainTicks are the ticks of gonum/plot with the shortest labels: 25, not 25.00.
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

// namesOnly leaves an axis its names: a line and ticks beside them would cross them.
func namesOnly(a *plot.Axis) {
	a.Tick.Length, a.LineStyle.Width, a.Padding = 0, 0, 0
}

// addGrid adds lines at the ticks.
func addGrid(p *panel) {
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{0xe0}, color.Gray{0xe0}
	p.Add(grid)
}

// addLine adds a line; "" is not in the legend.
func addLine(p *panel, name string, points plotter.XYs, style draw.LineStyle) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.LineStyle = style
	p.Add(line)
	if name != "" {
		p.Legend.Add(name, line)
	}
	return nil
}

// addDashes adds the line that something should lie on.
func addDashes(p *panel, name string, ends plotter.XYs) error {
	return addLine(p, name, ends, draw.LineStyle{Color: color.Gray{0x50}, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(4), vg.Points(3)}})
}

// addBand adds the area between two curves.
func addBand(p *panel, look color.Color, low, high plotter.XYs) error {
	high = slices.Clone(high)
	slices.Reverse(high)
	area, err := plotter.NewPolygon(append(slices.Clone(low), high...))
	if err != nil {
		return err
	}
	area.Color, area.LineStyle.Width = faint(look), 0
	p.Add(area)
	return nil
}

// newDots returns points as dots.
func newDots(points plotter.XYs, look color.Color) (*plotter.Scatter, error) {
	s, err := plotter.NewScatter(points)
	if err != nil {
		return nil, err
	}
	s.GlyphStyle = rowMark(look)
	return s, nil
}

// addMarkedLine adds a line with its points marked; "" is not in the legend.
func addMarkedLine(p *panel, name string, look color.Color, points plotter.XYs) error {
	curve, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	curve.LineStyle = draw.LineStyle{Color: look, Width: vg.Points(1.5)}
	marks.GlyphStyle = draw.GlyphStyle{Color: look, Radius: 0.8 * vg.Millimeter, Shape: draw.CircleGlyph{}}
	p.Add(curve, marks)
	if name != "" {
		p.Legend.Add(name, curve)
	}
	return nil
}

func drawPanel(rows []demoRow) (*panel, error) {
	p := newPanel(fmt.Sprintf("%s: %d rows, %d held out", rows[0].Data, rows[0].N, rows[0].Test), "true", "predicted")
	addGrid(p)
	var all plotter.XYs
	for _, r := range rows {
		look, drawn := colors[r.Model]
		if !drawn {
			continue
		}
		points := pairs(r.truth, r.predicted, 0)
		s, err := newDots(points, look)
		if err != nil {
			return nil, err
		}
		p.Add(s)
		p.Legend.Add(fmt.Sprintf("%s, RMSE %#.4g", r.Model, r.RMSE), s)
		all = append(all, points...)
	}
	return p, addDiagonal(p, all)
}

// pairs are the true and the predicted values of target j.
func pairs(truth, predicted *mat.Dense, j int) plotter.XYs {
	n, _ := truth.Dims()
	points := make(plotter.XYs, n)
	for i := range points {
		points[i].X, points[i].Y = truth.At(i, j), predicted.At(i, j)
	}
	return points
}

// addDiagonal adds where predictions would be right, and gives both axes the same range.
func addDiagonal(p *panel, points plotter.XYs) error {
	xmin, xmax, ymin, ymax := plotter.XYRange(points)
	low, high := min(xmin, ymin), max(xmax, ymax)
	room := 0.04*(high-low) + 1e-12*max(math.Abs(high), 1)
	err := addDashes(p, "predicted = true", plotter.XYs{{X: low, Y: low}, {X: high, Y: high}})
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = low-room, high+room, low-room, high+room
	return err
}
