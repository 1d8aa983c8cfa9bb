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

// A cell is almost white if its score is worse than the best score by the fraction surfaceWorst or
// more, or for likelihoods by surfaceWorst nats per row or more.
const surfaceWorst = 0.5

// surfacePicture returns the picture of `mercer tune --plot`: the scores over λ and over the factor
// of the kernel's parameters. Each trial is a row of cells with a cell for each λ.
func surfacePicture(res *tuning.Result) picture {
	by := res.Params.Criterion
	if len(res.Trials[res.Best].Factors) > 1 {
		return scalesPicture(res)
	}
	best := shown(by, res.Score())
	label := "factor of the length scales"
	if len(res.Params.Vary) == 1 {
		label = res.Params.Vary[0]
	}
	report := tuneReport{By: string(by)}
	p := newPanel(fmt.Sprintf("%s: %s at the cross", report.heading(), short(best)), "λ", label)
	p.X.Tick.Marker, p.Y.Tick.Marker = decades{}, decades{}

	p.Add(surfaceCells(res, best))
	if trial := res.Trials[res.Best]; trial.Lambda() > 0 {
		p.dots("", draw.GlyphStyle{Color: color.NRGBA{R: 0xd5, G: 0x5e, A: 0xff}, Radius: 2 * vg.Millimeter, Shape: draw.CrossGlyph{}},
			plotter.XYs{{X: math.Log10(trial.Lambda()), Y: height(res, trial)}})
	}
	for _, bad := range []float64{0, 0.05, 0.2, surfaceWorst} {
		level := best * (1 + bad)
		if by == tuning.Evidence {
			level = best + bad
		}
		name := short(level)
		if bad == surfaceWorst {
			name += " or more"
		}
		p.Legend.Add(name, swatch{surfaceShade(bad)})
	}
	return picture{title: "Scores of " + rounded(res.Kernel()), rows: [][]*panel{{p}}}
}

// surfaceCells returns the cells of surfacePicture. All rows end at the same abscissas, though the search refines
// the grid of λ of some kernels at an end.
func surfaceCells(res *tuning.Result, best float64) boxes {
	by := res.Params.Criterion
	trials := slices.Clone(res.Trials)
	slices.SortFunc(trials, func(a, b tuning.Trial) int { return cmp.Compare(height(res, a), height(res, b)) })
	var ys []float64
	for _, t := range trials {
		ys = append(ys, height(res, t))
	}
	cells := boxes{over: vg.Points(0.4)}
	low, high, left, right := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for i, t := range trials {
		points := slices.DeleteFunc(slices.Clone(t.Points), func(at tuning.Point) bool { return at.Lambda == 0 }) // 0 is not on a logarithmic axis
		var xs []float64
		for _, at := range points {
			xs = append(xs, math.Log10(at.Lambda))
		}
		for j, at := range points {
			b := box{fill: color.White}
			b.x0, b.x1 = between(xs, j)
			low, high, left, right = min(low, xs[j]), max(high, xs[j]), min(left, b.x0), max(right, b.x1)
			b.y0, b.y1 = between(ys, i)
			bad := shown(by, at.Score) - best
			if by != tuning.Evidence {
				bad /= best
			}
			if !math.IsInf(bad, 0) && !math.IsNaN(bad) { // a cell without a score is white
				b.fill = surfaceShade(bad)
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

// surfaceShade returns the color of a score that is worse than the best by bad: dark blue for 0,
// and almost white for surfaceWorst or more.
func surfaceShade(bad float64) color.Color {
	return shade(max(0.01, 1-math.Sqrt(max(bad, 0)/surfaceWorst)))
}

// height returns the ordinate of a trial: the logarithm of the parameter that varies, or of the
// common factor of several parameters.
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

// between returns the interval of cell i, which extends halfway to at[i-1] and to at[i+1]. At an
// end of the list, the two halves of the interval have equal widths.
func between(at []float64, i int) (from, to float64) {
	if len(at) == 1 {
		return at[0] - 0.5, at[0] + 0.5
	}
	before, after := 0.0, 0.0
	if i > 0 {
		before = (at[i] - at[i-1]) / 2
	}
	if i < len(at)-1 {
		after = (at[i+1] - at[i]) / 2
	}
	return at[i] - cmp.Or(before, after), at[i] + cmp.Or(after, before)
}

// scalesPicture draws the parameters of the best kernel as bars on a logarithmic scale. It is for
// searches that varied each parameter separately.
func scalesPicture(res *tuning.Result) picture {
	by := res.Params.Criterion
	report := tuneReport{By: string(by)}
	p := newPanel(fmt.Sprintf("%s %s at λ = %s", report.heading(), short(shown(by, res.Score())), short(res.Lambda())), "", "value in the best kernel")
	var names plot.ConstantTicks
	low, high := math.Inf(1), math.Inf(-1)
	for _, q := range kernels.Params(res.Kernel()) {
		if slices.Contains(res.Params.Vary, q.Name) {
			y := math.Log10(q.Value)
			names = append(names, plot.Tick{Value: y, Label: q.Name})
			low, high = min(low, y), max(high, y)
		}
	}
	room := 0.08*(high-low) + 0.3 // wide enough for two ticks on the axis
	bars := boxes{}
	for i := range names {
		x := float64(i)
		bars.list = append(bars.list, box{x0: x - 0.35, x1: x + 0.35, y0: low - room, y1: names[i].Value, fill: blue})
		names[i].Value = x
	}
	p.Add(bars)
	p.X.Tick.Marker, p.Y.Tick.Marker = names, decades{}
	p.upright()
	namesOnly(&p.X)
	p.within(-0.6, float64(len(names))-0.4, low-room, high+room)
	return picture{title: "Parameters of the best kernel", rows: [][]*panel{{p}}}
}
