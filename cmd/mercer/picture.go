package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Colours that stay apart for colour-blind eyes (Okabe and Ito, 2008).
var colours = map[string]color.NRGBA{
	"ridge":        {R: 0xe6, G: 0x9f, B: 0x00, A: 0xb0},
	"kernel-ridge": {R: 0x00, G: 0x72, B: 0xb2, A: 0xb0},
}

// drawDemo draws predicted against true values, a panel for each data set, as
// a PNG.
func drawDemo(rows []demoRow) ([]byte, error) {
	var panels []*plot.Plot
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
	width := vg.Length(len(panels)) * 11 * vg.Centimeter
	img := vgimg.NewWith(vgimg.UseWH(width, 11.5*vg.Centimeter), vgimg.UseDPI(150))
	page := draw.New(img)
	tiles := draw.Tiles{
		Rows: 1, Cols: len(panels), PadX: 6 * vg.Millimeter,
		PadTop: 11 * vg.Millimeter, PadBottom: 3 * vg.Millimeter, PadLeft: 3 * vg.Millimeter, PadRight: 4 * vg.Millimeter,
	}
	for i, c := range plot.Align([][]*plot.Plot{panels}, tiles, page)[0] {
		// The titles are set on one line; a plot's own would follow its ticks.
		title := panels[i].Title
		panels[i].Title.Text = ""
		panels[i].Draw(c)
		style := title.TextStyle
		style.XAlign, style.YAlign = draw.XCenter, draw.YTop
		area := panels[i].DataCanvas(c)
		page.FillText(style, vg.Point{X: (area.Min.X + area.Max.X) / 2, Y: page.Max.Y - 4*vg.Millimeter}, title.Text)
	}
	var buf bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: img}.WriteTo(&buf)
	return buf.Bytes(), err
}

func drawPanel(rows []demoRow) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s: %d rows, %d held out", rows[0].Data, rows[0].N, rows[0].Test)
	p.X.Label.Text, p.Y.Label.Text = "true", "predicted"
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = 2*vg.Millimeter, -2*vg.Millimeter
	p.Legend.Padding = vg.Millimeter
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.Legend.TextStyle,
		&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label,
	} {
		style.Font.Variant = "Sans"
	}

	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{0xe0}, color.Gray{0xe0}
	p.Add(grid)

	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range rows {
		look, drawn := colours[r.Model]
		if !drawn {
			continue
		}
		points := make(plotter.XYs, r.Test)
		for i := range points {
			points[i].X, points[i].Y = r.truth.At(i, 0), r.predicted.At(i, 0)
			low = min(low, points[i].X, points[i].Y)
			high = max(high, points[i].X, points[i].Y)
		}
		s, err := plotter.NewScatter(points)
		if err != nil {
			return nil, err
		}
		s.GlyphStyle = draw.GlyphStyle{Color: look, Radius: 0.7 * vg.Millimeter, Shape: draw.CircleGlyph{}}
		p.Add(s)
		p.Legend.Add(fmt.Sprintf("%s, RMSE %#.4g", r.Model, r.RMSE), s)
	}
	line, err := plotter.NewLine(plotter.XYs{{X: low, Y: low}, {X: high, Y: high}})
	if err != nil {
		return nil, err
	}
	line.LineStyle = draw.LineStyle{Color: color.Gray{0x50}, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(4), vg.Points(3)}}
	p.Add(line)
	p.Legend.Add("predicted = true", line)

	// The same range on both axes, with room for the legend above the data.
	room := 0.04 * (high - low)
	p.X.Min, p.X.Max = low-room, high+room
	p.Y.Min, p.Y.Max = low-room, high+room
	return p, nil
}
