package main

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners/tuning"
)

// A cell is almost white if its score is at least 1 + surfaceWorst times the best score. With --by evidence, it is
// almost white if its score is at least the best score plus surfaceWorst nats per row.
const surfaceWorst = 0.5

// surfacePicture returns the picture of `mercer tune --plot`: the scores over λ and over the factor of the kernel's
// parameters, with a row of cells for each trial.
func surfacePicture(res *tuning.Result) picture {
	criterion := res.Params.Criterion
	if len(res.Trials[res.Best].Factors) > 1 {
		return scalesPicture(res)
	}
	bestScore := displayedScore(criterion, res.Score())
	label := "factor of the length scales"
	if len(res.Params.Vary) == 1 {
		label = res.Params.Vary[0]
	}
	report := tuneReport{By: string(criterion)}
	p := newPanel(fmt.Sprintf("%s: %s at the cross", report.heading(), fourDigits(bestScore)), "λ", label)
	p.X.Tick.Marker, p.Y.Tick.Marker = decades{}, decades{}

	p.Add(surfaceCells(res, bestScore))
	if trial := res.Trials[res.Best]; trial.Lambda() > 0 {
		p.dots("", draw.GlyphStyle{Color: color.NRGBA{R: 0xd5, G: 0x5e, A: 0xff}, Radius: 2 * vg.Millimeter, Shape: draw.CrossGlyph{}},
			plotter.XYs{{X: math.Log10(trial.Lambda()), Y: height(res, trial)}})
	}
	for _, excess := range []float64{0, 0.05, 0.2, surfaceWorst} {
		level := bestScore * (1 + excess)
		if criterion == tuning.Evidence {
			level = bestScore + excess
		}
		name := fourDigits(level)
		if excess == surfaceWorst {
			name += " or more"
		}
		p.Legend.Add(name, swatch{surfaceShade(excess)})
	}
	return picture{title: "Scores of " + roundedKernel(res.Kernel()), rows: [][]*panel{{p}}}
}

// surfaceCells returns the cells of surfacePicture. All rows of cells end at the same abscissas.
func surfaceCells(res *tuning.Result, bestScore float64) boxes {
	criterion := res.Params.Criterion
	trials := slices.Clone(res.Trials)
	slices.SortFunc(trials, func(a, b tuning.Trial) int { return cmp.Compare(height(res, a), height(res, b)) })
	var ys []float64
	for _, t := range trials {
		ys = append(ys, height(res, t))
	}
	cells := boxes{overlap: vg.Points(0.4)}
	low, high, left, right := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for i, t := range trials {
		points := slices.DeleteFunc(slices.Clone(t.Points), func(p tuning.Point) bool { return p.Lambda == 0 }) // 0 is not on a logarithmic axis
		var xs []float64
		for _, point := range points {
			xs = append(xs, math.Log10(point.Lambda))
		}
		for j, point := range points {
			b := box{fill: color.White}
			b.x0, b.x1 = between(xs, j)
			low, high, left, right = min(low, xs[j]), max(high, xs[j]), min(left, b.x0), max(right, b.x1)
			b.y0, b.y1 = between(ys, i)
			excess := displayedScore(criterion, point.Score) - bestScore
			if criterion != tuning.Evidence {
				excess /= bestScore
			}
			if !math.IsInf(excess, 0) && !math.IsNaN(excess) { // a cell without a score is white
				b.fill = surfaceShade(excess)
			}
			cells.list = append(cells.list, b)
		}
	}
	for i := range cells.list {
		b := &cells.list[i]
		if b.x0 <= low {
			b.x0 = left
		}
		if b.x1 >= high {
			b.x1 = right
		}
	}
	return cells
}

// surfaceShade returns the color of a score that is worse than the best by excess: dark blue for 0.
func surfaceShade(excess float64) color.Color {
	return shade(max(0.01, 1-math.Sqrt(max(excess, 0)/surfaceWorst)))
}

// height returns the ordinate of a trial: the logarithm of the parameter that varies, or of the common factor.
func height(res *tuning.Result, t tuning.Trial) (y float64) {
	if len(res.Params.Vary) == 1 {
		for _, p := range kernels.Params(t.Kernel) {
			if p.Name == res.Params.Vary[0] {
				return math.Log10(p.Value)
			}
		}
	}
	for _, f := range t.Factors {
		y += math.Log10(f) / float64(len(t.Factors))
	}
	return y
}

// between returns the interval of cell i, which extends halfway to the adjacent centers. A cell at an end of the
// list has halves of equal width.
func between(centers []float64, i int) (from, to float64) {
	if len(centers) == 1 {
		return centers[0] - 0.5, centers[0] + 0.5
	}
	below, above := 0.0, 0.0
	if i > 0 {
		below = (centers[i] - centers[i-1]) / 2
	}
	if i < len(centers)-1 {
		above = (centers[i+1] - centers[i]) / 2
	}
	return centers[i] - cmp.Or(below, above), centers[i] + cmp.Or(above, below)
}

// scalesPicture draws the parameters of the best kernel, which varied separately, as bars on a logarithmic scale.
func scalesPicture(res *tuning.Result) picture {
	criterion := res.Params.Criterion
	report := tuneReport{By: string(criterion)}
	p := newPanel(fmt.Sprintf("%s %s at λ = %s", report.heading(), fourDigits(displayedScore(criterion, res.Score())), fourDigits(res.Lambda())), "", "value in the best kernel")
	var names plot.ConstantTicks
	low, high := math.Inf(1), math.Inf(-1)
	for _, q := range kernels.Params(res.Kernel()) {
		if slices.Contains(res.Params.Vary, q.Name) {
			y := math.Log10(q.Value)
			names = append(names, plot.Tick{Value: y, Label: q.Name})
			low, high = min(low, y), max(high, y)
		}
	}
	margin := 0.08*(high-low) + 0.3 // wide enough for two ticks on the axis
	bars := boxes{}
	for i := range names {
		x := float64(i)
		bars.list = append(bars.list, box{x0: x - 0.35, x1: x + 0.35, y0: low - margin, y1: names[i].Value, fill: blue})
		names[i].Value = x
	}
	p.Add(bars)
	p.X.Tick.Marker, p.Y.Tick.Marker = names, decades{}
	p.upright()
	namesOnly(&p.X)
	p.setRange(-0.6, float64(len(names))-0.4, low-margin, high+margin)
	return picture{title: "Parameters of the best kernel", rows: [][]*panel{{p}}}
}
