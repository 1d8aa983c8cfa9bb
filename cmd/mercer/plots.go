package main

import (
	"cmp"
	"fmt"
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

	"github.com/mercer-go/mercer/learners/validate"
)

// scorePicture returns the picture of `mercer evaluate --plot`. For each numeric target, a row of two panels shows
// predictions against true values, and residuals. For classes it shows the confusion matrix and the ROC curves.
func scorePicture(s *score, learner string, targets []string) (picture, error) {
	pic := picture{title: "Predictions of " + learner}
	if s.Confusion != nil {
		pic.rows = [][]*panel{{confusionPanel(s, learner), rocPanel(s)}}
		return pic, nil
	}
	for j, target := range targets {
		targetScore, err := validate.ScoreRegression(s.Truth.ColView(j), s.Outcome.Values.ColView(j), s.Weights)
		if err != nil {
			return pic, err
		}
		points := pairs(s.Truth, s.Outcome.Values, j)
		scatter := newPanel(fmt.Sprintf("%s, %s: R² %s", target, learner, fourDigits(*targetScore.R2)), "true", "predicted")
		scatter.grid()
		scatter.dots("", rowMarker(blue), points)
		scatter.diagonal(points)
		pic.rows = append(pic.rows, []*panel{scatter, residualPanel(fmt.Sprintf("%s: true − predicted, RMSE %s", target, fourDigits(*targetScore.RMSE)), points)})
	}
	return pic, nil
}

var blue = color.NRGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xb0}

// pairs returns the true and the predicted values of target j.
func pairs(truth, predicted *mat.Dense, j int) plotter.XYs {
	n, _ := truth.Dims()
	points := make(plotter.XYs, n)
	for i := range points {
		points[i].X, points[i].Y = truth.At(i, j), predicted.At(i, j)
	}
	return points
}

// diagonal draws the line on which correct predictions lie, and gives both axes the same range.
func (p *panel) diagonal(points plotter.XYs) {
	xmin, xmax, ymin, ymax := plotter.XYRange(points)
	low, high := min(xmin, ymin), max(xmax, ymax)
	margin := 0.04*(high-low) + 1e-12*max(math.Abs(high), 1)
	p.dashes("predicted = true", plotter.XYs{{X: low, Y: low}, {X: high, Y: high}})
	p.setRange(low-margin, high+margin, low-margin, high+margin)
}

// residualPanel draws the residuals of the predictions.
func residualPanel(title string, points plotter.XYs) *panel {
	p := newPanel(title, "predicted", "true − predicted")
	p.grid()
	for i, point := range points {
		points[i] = plotter.XY{X: point.Y, Y: point.X - point.Y}
	}
	p.dots("", rowMarker(blue), points)
	low, high, ymin, ymax := plotter.XYRange(points)
	margin := 0.04*(high-low) + 1e-12*max(math.Abs(high), 1)
	maxResidual := 1.06*max(-ymin, ymax) + 1e-12
	p.dashes("", plotter.XYs{{X: low - margin, Y: 0}, {X: high + margin, Y: 0}})
	p.setRange(low-margin, high+margin, -maxResidual, maxResidual)
	return p
}

// confusionPanel draws a confusion matrix with class 0 at the top left. Colors show the fraction of the row; for at
// most maxShownClasses classes, each cell contains its count.
func confusionPanel(s *score, learner string) *panel {
	p := newPanel(fmt.Sprintf("%s: accuracy %s of %s", learner, fourDigits(*s.Accuracy), count(s.N, "row")), "predicted", "true")
	k := len(s.Classes)
	m := boxes{style: text.Style{Font: p.Legend.style.Font, XAlign: draw.XCenter, YAlign: draw.YCenter, Handler: p.Legend.style.Handler}}
	m.style.Font.Size = vg.Points(max(5, min(12, 160/float64(k))))
	var centers plotter.XYs
	var texts []string
	for i, row := range s.Confusion {
		sum := 0
		for _, n := range row {
			sum += n
		}
		for j, n := range row {
			fraction := float64(n) / float64(max(sum, 1))
			b := box{x0: float64(j), x1: float64(j + 1), y0: float64(k - i - 1), y1: float64(k - i), fill: shade(fraction), ink: color.Black}
			if fraction > 0.2 { // white text on a dark cell
				b.ink = color.White
			}
			if n > 0 && k <= maxShownClasses {
				b.text = strconv.Itoa(n)
			}
			m.list = append(m.list, b)
			centers = append(centers, plotter.XY{X: float64(j) + 0.5, Y: float64(k-i) - 0.5})
			texts = append(texts, fmt.Sprintf("true %s, predicted %s\n%s, %s of the row", s.Classes[i], s.Classes[j], count(n, "row"), fourDigits(fraction)))
		}
	}
	p.Add(m, hintGroup{points: centers, texts: texts})
	var xTicks, yTicks plot.ConstantTicks
	step := (k + maxShownClasses - 1) / maxShownClasses
	longest := 0
	for i, name := range s.Classes {
		if i%step != 0 {
			continue
		}
		if r := []rune(name); len(r) > 14 {
			name = string(r[:13]) + "…"
		}
		longest = max(longest, len([]rune(name)))
		xTicks = append(xTicks, plot.Tick{Value: float64(i) + 0.5, Label: name})
		yTicks = append(yTicks, plot.Tick{Value: float64(k-i) - 0.5, Label: name})
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = xTicks, yTicks
	if longest*len(xTicks) > 30 { // horizontal labels would overlap
		p.upright()
	}
	fontSize := vg.Points(max(5, min(10, 200/float64(len(xTicks)))))
	p.X.Tick.Label.Font.Size, p.Y.Tick.Label.Font.Size = fontSize, fontSize
	namesOnly(&p.X)
	namesOnly(&p.Y)
	p.setRange(0, float64(k), 0, float64(k))
	return p
}

// rocPanel draws one ROC curve for two classes. For more classes it draws a curve of each class
// against the rest, and the legend names the classes with the smallest areas.
func rocPanel(s *score) *panel {
	title := "ROC"
	if s.AUC != nil {
		title += ": area " + fourDigits(*s.AUC)
	}
	p := newPanel(title, "false positive rate", "true positive rate")
	p.grid()
	p.dashes("", plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}})
	scores := s.Outcome.Proba
	if scores == nil || s.ModelClasses.Len() == 2 {
		scores = s.Outcome.Decision
	}
	_, cols := scores.Dims()
	type rocEntry struct {
		text string
		area float64
		line *plotter.Line
	}
	var legend []rocEntry
	for j := range cols {
		class := j
		if cols == 1 {
			class = 1
		}
		positive := make([]bool, s.N)
		for i := range positive {
			positive[i] = s.Truth.At(i, 0) == s.ModelClasses.Labels[class]
		}
		curve := validate.NewROC(mat.Col(nil, j, scores), positive, s.Weights)
		if len(curve.TPR) == 0 {
			continue
		}
		points := make(plotter.XYs, len(curve.TPR))
		for i := range points {
			points[i].X, points[i].Y = curve.FPR[i], curve.TPR[i]
		}
		style := curveStyle(j, 1.5)
		p.class = s.ModelClasses.Names[class]
		p.line("", points, style)
		legend = append(legend, rocEntry{fmt.Sprintf("%s, area %s", s.ModelClasses.Names[class], fourDigits(curve.AUC())), curve.AUC(), &plotter.Line{LineStyle: style}})
	}
	const maxEntries = 16 // maximum number of lines in the legend
	if len(legend) > maxEntries {
		slices.SortStableFunc(legend, func(a, b rocEntry) int { return cmp.Compare(a.area, b.area) })
		legend = legend[:maxEntries]
		p.Title.Text += fmt.Sprintf(", the smallest %d named", maxEntries)
	}
	for _, l := range legend {
		p.Legend.Add(l.text, l.line)
	}
	p.setRange(0, 1, 0, 1)
	return p
}
