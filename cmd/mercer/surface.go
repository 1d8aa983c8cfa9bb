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
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners/tuning"
)

// surface draws scores over λ and over what the kernel's parameters were
// multiplied by: a row of cells for each trial, as far as the middle to the
// next, and a cell for each λ.
type surface struct {
	rows  []surfaceRow // from the lowest up
	worst float64      // of shade 0; the best is 0
}

// surfaceRow is a trial: logarithms of the factor, of λ, and the scores above
// the best one, NaN for none.
type surfaceRow struct {
	y      float64
	x, bad []float64
}

// drawSurface draws what `mercer tune --plot` shows, as a PNG.
func drawSurface(res *tuning.Result) ([]byte, error) {
	by := res.Params.Criterion
	if len(res.Trials[res.Best].Factors) > 1 {
		return drawScales(res)
	}
	best := shown(by, res.Score())
	label := "factor of the length scales"
	if len(res.Vary) == 1 {
		label = res.Vary[0]
	}
	s := surface{worst: 0.5} // half as much error again, or half a natural unit a row
	for _, t := range res.Trials {
		row := surfaceRow{y: height(res, t)}
		for _, at := range t.Points {
			if at.Lambda == 0 {
				continue // has no place on the axis
			}
			bad := shown(by, at.Score) - best
			if by != tuning.Evidence {
				bad /= best
			}
			if math.IsInf(bad, 0) {
				bad = math.NaN()
			}
			row.x, row.bad = append(row.x, math.Log10(at.Lambda)), append(row.bad, bad)
		}
		s.rows = append(s.rows, row)
	}
	slices.SortFunc(s.rows, func(a, b surfaceRow) int { return cmp.Compare(a.y, b.y) })

	report := tuneReport{By: string(by)}
	p := newPanel(fmt.Sprintf("%s: %s at the cross", report.heading(), short(best)), "λ", label)
	p.Add(s)
	p.X.Tick.Marker, p.Y.Tick.Marker = decades{}, decades{}
	trial := res.Trials[res.Best]
	if trial.Lambda() > 0 {
		cross, err := plotter.NewScatter(plotter.XYs{{X: math.Log10(trial.Lambda()), Y: height(res, trial)}})
		if err != nil {
			return nil, err
		}
		cross.GlyphStyle = draw.GlyphStyle{Color: color.NRGBA{R: 0xd5, G: 0x5e, A: 0xff}, Radius: 2 * vg.Millimeter, Shape: draw.CrossGlyph{}}
		p.Add(cross)
	}
	for _, level := range []float64{0, 0.05, 0.2, 0.5} {
		name := fmt.Sprintf("%s or more", short(s.level(by, best, level)))
		if level < s.worst {
			name = short(s.level(by, best, level))
		}
		p.Legend.Add(name, swatch{shade(s.depth(level))})
	}
	return drawPage([][]*panel{{p}})
}

// height is the place of a trial on the axis upwards: the logarithm of the parameter that
// varies, or of the factor of several.
func height(res *tuning.Result, t tuning.Trial) (y float64) {
	if len(res.Vary) == 1 {
		for _, p := range kernels.Params(t.Kernel) {
			if p.Name == res.Vary[0] {
				return math.Log10(p.Value)
			}
		}
	}
	for _, f := range t.Factors {
		y += math.Log10(f) / float64(len(t.Factors))
	}
	return y
}

// drawScales draws the parameters of the best kernel, which varied each by itself, as
// bars on a logarithmic scale.
func drawScales(res *tuning.Result) ([]byte, error) {
	by := res.Params.Criterion
	report := tuneReport{By: string(by)}
	p := newPanel(fmt.Sprintf("%s %s at λ = %s", report.heading(), short(shown(by, res.Score())), short(res.Lambda())), "", "value in the best kernel")
	var names plot.ConstantTicks
	low, high := math.Inf(1), math.Inf(-1)
	var bars []plotter.XYs
	for _, q := range kernels.Params(res.Kernel()) {
		if slices.Contains(res.Vary, q.Name) {
			x, y := float64(len(bars)), math.Log10(q.Value)
			names = append(names, plot.Tick{Value: x, Label: q.Name})
			low, high = min(low, y), max(high, y)
			bars = append(bars, plotter.XYs{{X: x - 0.35}, {X: x - 0.35, Y: y}, {X: x + 0.35, Y: y}, {X: x + 0.35}})
		}
	}
	room := 0.08*(high-low) + 0.3 // for two ticks at least
	for _, corners := range bars {
		corners[0].Y, corners[3].Y = low-room, low-room
		bar, err := plotter.NewPolygon(corners)
		if err != nil {
			return nil, err
		}
		bar.Color, bar.LineStyle.Width = blue, 0
		p.Add(bar)
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.6, float64(len(bars))-0.4, low-room, high+room
	p.X.Tick.Marker, p.Y.Tick.Marker = names, decades{}
	p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = math.Pi/2, draw.XRight, draw.YCenter
	namesOnly(&p.X)
	return drawPage([][]*panel{{p}})
}

// level is the score that is so much above the best.
func (s surface) level(by tuning.Criterion, best, bad float64) float64 {
	if by == tuning.Evidence {
		return best + bad
	}
	return best * (1 + bad)
}

// depth is the darkness of a cell: 1 at the best, hardly any from the worst on;
// white is where there is no score.
func (s surface) depth(bad float64) float64 {
	return max(0.01, 1-math.Sqrt(max(bad, 0)/s.worst))
}

// Plot implements plot.Plotter.
func (s surface) Plot(c draw.Canvas, p *plot.Plot) {
	tx, ty := p.Transforms(&c)
	ys := s.heights()
	for i, r := range s.rows {
		low, high := cellOf(ys, i)
		for j, bad := range r.bad {
			if math.IsNaN(bad) {
				continue
			}
			left, right := cellOf(r.x, j)
			// A little over the edge, so that no seams shine through.
			x0, x1, y0, y1 := tx(left), tx(right)+vg.Points(0.4), ty(low), ty(high)+vg.Points(0.4)
			area := []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}}
			c.FillPolygon(shade(s.depth(bad)), c.ClipPolygonXY(area))
		}
	}
}

// cellOf is from the middle to the neighbor before to the middle to the one
// after; at an end as far as on the other side.
func cellOf(at []float64, i int) (from, to float64) {
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
	if i == 0 {
		before = after
	}
	if i == len(at)-1 {
		after = before
	}
	return at[i] - before, at[i] + after
}

func (s surface) heights() []float64 {
	ys := make([]float64, len(s.rows))
	for i, r := range s.rows {
		ys[i] = r.y
	}
	return ys
}

// DataRange implements plot.DataRanger.
func (s surface) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax, ymin, ymax = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	ys := s.heights()
	for i, r := range s.rows {
		low, high := cellOf(ys, i)
		ymin, ymax = min(ymin, low), max(ymax, high)
		for j := range r.x {
			left, right := cellOf(r.x, j)
			xmin, xmax = min(xmin, left), max(xmax, right)
		}
	}
	return xmin, xmax, ymin, ymax
}

// swatch is a color in the legend.
type swatch struct{ color color.Color }

// Thumbnail implements plot.Thumbnailer.
func (s swatch) Thumbnail(c *draw.Canvas) {
	area := []vg.Point{{X: c.Min.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Max.Y}, {X: c.Min.X, Y: c.Max.Y}}
	c.FillPolygon(s.color, area)
	c.StrokeLines(draw.LineStyle{Color: color.Gray{0x80}, Width: vg.Points(0.5)}, append(area, area[0]))
}

// decades are ticks on an axis of decimal logarithms: at 1, 10, 100 and so on,
// and in narrow ranges at 2 and 5 times those too.
type decades struct{}

// logTicks are decades of a logarithmic scale.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(low, high float64) []plot.Tick {
	ticks := decades{}.Ticks(math.Log10(low), math.Log10(high))
	for i := range ticks {
		ticks[i].Value = math.Pow(10, ticks[i].Value)
	}
	return ticks
}

// Ticks implements plot.Ticker.
func (decades) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	every := int(math.Ceil((high - low) / 7))
	for d := int(math.Floor(low)); d <= int(math.Ceil(high)); d++ {
		for _, m := range []float64{1, 2, 5} {
			v := float64(d) + math.Log10(m)
			if v < low || v > high || m > 1 && high-low > 3 {
				continue
			}
			label := ""
			if d%every == 0 || m > 1 {
				label = strconv.FormatFloat(m*math.Pow(10, float64(d)), 'g', 6, 64)
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: label})
		}
	}
	return ticks
}
