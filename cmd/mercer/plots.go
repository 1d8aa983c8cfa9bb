package main

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mercer-go/mercer/learners/validate"
)

// drawScore draws what `mercer evaluate --plot` shows: for numbers predictions
// against the truth and residuals, a row of panels for each target; for classes
// the confusion matrix and the ROC curves.
func drawScore(s *score, learner string, targets []string) ([]byte, error) {
	if s.Confusion != nil {
		matrix := drawConfusion(s, learner)
		curves, err := drawROC(s)
		if err != nil {
			return nil, err
		}
		return drawPage([][]*panel{{matrix, curves}})
	}
	var rows [][]*panel
	for j, target := range targets {
		of, err := validate.ScoreRegression(s.Truth.ColView(j), s.Outcome.Values.ColView(j), s.Weights)
		if err != nil {
			return nil, err
		}
		compared, err := drawCompared(s, fmt.Sprintf("%s, %s: R² %s", target, learner, short(of.R2)), j)
		if err != nil {
			return nil, err
		}
		rest, err := drawResiduals(s, fmt.Sprintf("%s: true − predicted, RMSE %s", target, short(of.RMSE)), j)
		if err != nil {
			return nil, err
		}
		rows = append(rows, []*panel{compared, rest})
	}
	return drawPage(rows)
}

var blue = color.NRGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xb0}

// drawCompared draws predictions against the truth of target j.
func drawCompared(s *score, title string, j int) (*panel, error) {
	p := newPanel(title, "true", "predicted")
	addGrid(p)
	points := pairs(s.Truth, s.Outcome.Values, j)
	dots, err := newDots(points, blue)
	if err != nil {
		return nil, err
	}
	p.Add(dots)
	return p, addDiagonal(p, points)
}

// drawResiduals draws what predictions leave of target j.
func drawResiduals(s *score, title string, j int) (*panel, error) {
	p := newPanel(title, "predicted", "true − predicted")
	addGrid(p)
	points := pairs(s.Truth, s.Outcome.Values, j)
	for i, at := range points {
		points[i] = plotter.XY{X: at.Y, Y: at.X - at.Y}
	}
	dots, err := newDots(points, blue)
	if err != nil {
		return nil, err
	}
	p.Add(dots)
	low, high, ymin, ymax := plotter.XYRange(points)
	room := 0.04*(high-low) + 1e-12*max(math.Abs(high), 1)
	most := 1.06*max(-ymin, ymax) + 1e-12
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = low-room, high+room, -most, most
	return p, addDashes(p, "", plotter.XYs{{X: low - room, Y: 0}, {X: high + room, Y: 0}})
}

// confusion draws a matrix of counts: each cell in the color of its part of the
// row, with the count in it where there is room.
type confusion struct {
	counts [][]int
	style  text.Style
}

// Plot implements plot.Plotter. Class 0 stands at the top left.
func (m confusion) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	k := len(m.counts)
	for i, row := range m.counts {
		sum := 0
		for _, n := range row {
			sum += n
		}
		for j, n := range row {
			share := float64(n) / float64(max(sum, 1))
			top := float64(k - i)
			area := []vg.Point{
				{X: x(float64(j)), Y: y(top - 1)}, {X: x(float64(j + 1)), Y: y(top - 1)},
				{X: x(float64(j + 1)), Y: y(top)}, {X: x(float64(j)), Y: y(top)},
			}
			c.FillPolygon(shade(share), c.ClipPolygonXY(area))
			if n == 0 || k > mostShown {
				continue
			}
			style := m.style
			style.Color = color.Black
			if share > 0.2 { // where shade is darker than the middle
				style.Color = color.White
			}
			c.FillText(style, vg.Point{X: x(float64(j) + 0.5), Y: y(top - 0.5)}, strconv.Itoa(n))
		}
	}
}

// shade goes from white to a dark blue; the square root tells small parts from
// none.
func shade(share float64) color.Color {
	v := math.Sqrt(share)
	mix := func(from, to float64) uint8 { return uint8(from + (to-from)*v) }
	return color.RGBA{R: mix(255, 8), G: mix(255, 64), B: mix(255, 129), A: 255}
}

// DataRange implements plot.DataRanger.
func (m confusion) DataRange() (xmin, xmax, ymin, ymax float64) {
	k := float64(len(m.counts))
	return 0, k, 0, k
}

func drawConfusion(s *score, learner string) *panel {
	p := newPanel(fmt.Sprintf("%s: accuracy %s of %s", learner, short(*s.Accuracy), count(s.N, "row")), "predicted", "true")
	k := len(s.Classes)
	style := text.Style{Font: p.Legend.style.Font, XAlign: draw.XCenter, YAlign: draw.YCenter, Handler: p.Legend.style.Handler}
	style.Font.Size = vg.Points(max(5, min(12, 160/float64(k))))
	p.Add(confusion{counts: s.Confusion, style: style})
	var across, up plot.ConstantTicks
	every := (k + mostShown - 1) / mostShown
	longest := 0
	for i, name := range s.Classes {
		if i%every != 0 {
			continue
		}
		if r := []rune(name); len(r) > 14 {
			name = string(r[:13]) + "…"
		}
		longest = max(longest, len([]rune(name)))
		across = append(across, plot.Tick{Value: float64(i) + 0.5, Label: name})
		up = append(up, plot.Tick{Value: float64(k-i) - 0.5, Label: name})
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = across, up
	if longest*len(across) > 30 { // would run into each other
		p.X.Tick.Label.Rotation = math.Pi / 2
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YCenter
	}
	small := vg.Points(max(5, min(10, 200/float64(len(across)))))
	p.X.Tick.Label.Font.Size, p.Y.Tick.Label.Font.Size = small, small
	namesOnly(&p.X)
	namesOnly(&p.Y)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, float64(k), 0, float64(k)
	return p
}

// Colors of curves that stay apart for color-blind eyes (Okabe and Ito, 2008).
var curveColors = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}, color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff}, color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.RGBA{R: 0xf0, G: 0xe4, B: 0x42, A: 0xff}, color.RGBA{R: 0x20, G: 0x20, B: 0x20, A: 0xff},
}

// drawROC draws the curve of two classes, or one of each class against the rest.
// Where they are many, the legend names those of the smallest areas.
func drawROC(s *score) (*panel, error) {
	title := "ROC"
	if s.AUC != nil {
		title += ": area " + short(*s.AUC)
	}
	p := newPanel(title, "false positives, part of the negatives", "true positives, part of the positives")
	addGrid(p)
	if err := addDashes(p, "", plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}}); err != nil {
		return nil, err
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	scores := s.Outcome.Proba
	if scores == nil || s.Known.Len() == 2 {
		scores = s.Outcome.Decision
	}
	_, cols := scores.Dims()
	type named struct {
		text string
		area float64
		line *plotter.Line
	}
	var legend []named
	for j := range cols {
		class := j
		if cols == 1 {
			class = 1
		}
		values, positive := make([]float64, s.N), make([]bool, s.N)
		for i := range values {
			values[i], positive[i] = scores.At(i, j), s.Truth.At(i, 0) == s.Known.Labels[class]
		}
		curve := validate.NewROC(values, positive, s.Weights)
		if len(curve.True) == 0 {
			continue
		}
		points := make(plotter.XYs, len(curve.True))
		for i := range points {
			points[i].X, points[i].Y = curve.False[i], curve.True[i]
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.LineStyle = draw.LineStyle{Color: curveColors[j%len(curveColors)], Width: vg.Points(1.5)}
		if j >= len(curveColors) {
			line.Dashes = []vg.Length{vg.Points(float64(2 + j/len(curveColors))), vg.Points(2)}
		}
		p.Add(line)
		legend = append(legend, named{fmt.Sprintf("%s, area %s", s.Known.Names[class], short(curve.AUC())), curve.AUC(), line})
	}
	const most = 16 // lines of the legend
	if len(legend) > most {
		slices.SortStableFunc(legend, func(a, b named) int { return cmp.Compare(a.area, b.area) })
		legend = legend[:most]
		p.Title.Text += fmt.Sprintf(", the smallest %d named", most)
	}
	for _, l := range legend {
		p.Legend.Add(l.text, l.line)
	}
	return p, nil
}
