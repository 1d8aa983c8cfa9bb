package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// grid is what a crossover measured of one device in one precision.
type grid struct {
	device, precision string
	n, m              []int // rising
	points            map[[2]int]point
}

// point is a point of a grid.
type point struct{ primal, dual *Run }

// winner is the faster form of a point and how many times as fast as the other it
// is; unclear when the timings of both overlap.
func (q point) winner() (form string, times float64, unclear bool) {
	form, times = primal, q.dual.Time.Median/q.primal.Time.Median
	if times < 1 {
		form, times = dual, 1/times
	}
	return form, times, q.primal.Time.Max >= q.dual.Time.Min && q.dual.Time.Max >= q.primal.Time.Min
}

// grids lists the devices and precisions of a crossover, in the order in which
// they were measured.
func (r *Result) grids() []*grid {
	var list []*grid
	for _, precision := range r.values("precision") {
		for _, e := range r.Implementations {
			if e.Kind != OwnKind || e.Method != primal {
				continue
			}
			other := find(r.Implementations, func(o *Implementation) bool { return o.Kind == OwnKind && o.Method == dual && o.Device == e.Device })
			if other == nil {
				continue
			}
			g := &grid{device: e.Device, precision: precision, points: map[[2]int]point{}}
			for _, c := range r.where("precision", precision).Cells {
				q := point{c.Run(e.Name), c.Run(other.Name)}
				if q.primal.Timed() && q.dual.Timed() {
					n, m := c.Case.Int("n"), c.Case.Int("m")
					g.points[[2]int{n, m}] = q
					g.n, g.m = append(g.n, n), append(g.m, m)
				}
			}
			g.n, g.m = slices.Compact(slices.Sorted(slices.Values(g.n))), slices.Compact(slices.Sorted(slices.Values(g.m)))
			if len(g.points) > 0 {
				list = append(list, g)
			}
		}
	}
	return list
}

// equalAt is the number of samples from which on, for m features, the primal is
// the faster: interpolated between the logarithms of n and of the ratio of the
// times, at the last change of the winner as n rises. It is 0 where the primal is
// the faster at every n, and Inf where the dual is at the largest.
func (g *grid) equalAt(m int) float64 {
	equal, before, beforeN := 0.0, math.NaN(), 0
	for _, n := range g.n {
		q, ok := g.points[[2]int{n, m}]
		if !ok {
			continue
		}
		ratio := math.Log(q.dual.Time.Median / q.primal.Time.Median)
		switch {
		case ratio < 0:
			equal = math.Inf(1)
		case before < 0:
			equal = float64(beforeN) * math.Pow(float64(n)/float64(beforeN), -before/(ratio-before))
		}
		before, beforeN = ratio, n
	}
	return equal
}

func (g *grid) title() string { return g.device + ", " + g.precision }

func crossoverReport(r *Result, p *Report) {
	p.Title = "Primal or dual? Ridge regression"
	grids := r.grids()
	if len(grids) == 0 {
		return
	}
	var equal []string
	worst := 1.0
	for _, g := range grids {
		low, high := math.Inf(1), 0.0
		for _, m := range g.m {
			if n := g.equalAt(m); n > 0 && !math.IsInf(n, 1) {
				low, high = min(low, n/float64(m)), max(high, n/float64(m))
			}
		}
		if high > 0 {
			equal = append(equal, fmt.Sprintf("%.2f to %.2f m on %s", low, high, g.title()))
		}
		for _, q := range g.points {
			_, times, _ := q.winner()
			worst = max(worst, times)
		}
	}
	p.Answer = fmt.Sprintf("n samples, m features: the slower form takes up to %s times as long as the other.", ratioText(worst))
	if len(equal) > 0 {
		p.Answer += " Both take the same time at n = " + strings.Join(equal, ", ") + "; above, the primal is the faster."
	}
	for _, g := range grids {
		p.add(g.mapTable())
	}
	square := *r
	square.Cells = nil
	for _, c := range r.Cells {
		if c.Case.Get("n") == c.Case.Get("m") {
			c.Case = c.Case.Without("m")
			square.Cells = append(square.Cells, c)
		}
	}
	p.add(square.tables("n", rateQuantity, "square problems, n = m", figures)...)
	p.add(r.growthTable())
	for _, g := range grids {
		p.add(g.pointsTable())
	}
}

// mapTable says for each point which form is the faster, and by how much; its
// chart is the number of samples at which both take the same time.
func (g *grid) mapTable() *Table {
	t := &Table{
		Title: g.title() + ": the faster form, and how many times as fast as the other",
		Head:  []string{`n \ m`},
		Notes: []string{"~: the timings of both forms overlap. The last row: from how many samples on the primal is the faster."},
	}
	last := []Field{{Text: "equal at n"}}
	measured, diagonal := Curve{Name: "measured"}, Curve{Name: "n = m", Dashed: true}
	for _, m := range g.m {
		t.Head = append(t.Head, fmt.Sprint(m))
		n := g.equalAt(m)
		switch {
		case n == 0:
			last = append(last, Field{Text: fmt.Sprintf("< %d", g.n[0])})
		case math.IsInf(n, 1):
			last = append(last, Field{Text: fmt.Sprintf("> %d", g.n[len(g.n)-1])})
		default:
			last = append(last, Field{Text: fmt.Sprintf("%.0f", n)})
			measured.Points = append(measured.Points, Point{float64(m), n, n, n})
		}
		diagonal.Points = append(diagonal.Points, Point{float64(m), float64(m), float64(m), float64(m)})
	}
	for _, n := range g.n {
		row := []Field{{Text: fmt.Sprint(n)}}
		for _, m := range g.m {
			q, ok := g.points[[2]int{n, m}]
			if !ok {
				row = append(row, Field{Text: "–"})
				continue
			}
			form, times, unclear := q.winner()
			field := Field{Text: form + " " + ratioText(times), Class: form}
			if unclear {
				field = Field{Text: "~" + field.Text, Class: "even"}
			}
			row = append(row, field)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Rows = append(t.Rows, last)
	if len(measured.Points) > 1 {
		t.Chart = &Chart{X: "m features", Y: "n samples", Curves: []Curve{measured, diagonal}}
	}
	return t
}

// pointsTable has every point with its counted operations, its time and its
// stages; its chart is the time against n at the largest m.
func (g *grid) pointsTable() *Table {
	m := g.m[len(g.m)-1]
	t := &Table{
		Title: g.title() + ": counted operations and milliseconds",
		Head:  []string{"n × m", "form", "operations", "ms", gramStage, factorStage, solveStage},
		Notes: []string{fmt.Sprintf("In brackets GFLOP/s. The chart is of m = %d.", m)},
	}
	forms := []Curve{{Name: primal}, {Name: dual}}
	for _, n := range g.n {
		for _, features := range g.m {
			q, ok := g.points[[2]int{n, features}]
			if !ok {
				continue
			}
			for i, run := range []*Run{q.primal, q.dual} {
				row := []Field{
					{Text: fmt.Sprintf("%d × %d", n, features)}, {Text: forms[i].Name}, {Text: fmt.Sprintf("%.3g", run.Work)},
					{Text: figures(1e3 * run.Time.Median), Note: figures(run.Rate.Median)},
				}
				for _, name := range t.Head[4:] {
					field := Field{Text: "–"}
					if s := run.Stage(name); s != nil && s.Time.Median > 0 {
						field = Field{Text: figures(1e3 * s.Time.Median), Note: figures(s.Work / s.Time.Median / 1e9)}
					}
					row = append(row, field)
				}
				t.Rows = append(t.Rows, row)
				if features == m {
					forms[i].Points = append(forms[i].Points, Point{float64(n), run.Time.Median, run.Time.Min, run.Time.Max})
				}
			}
		}
	}
	if len(g.n) > 1 && len(forms[0].Points) > 1 {
		t.Chart = &Chart{X: "n", Y: "s", Curves: forms}
	}
	return t
}

// theory is the growth of the operations of a stage of a crossover.
func (r *Result) theory(g *Growth) string {
	form := r.Implementation(g.Implementation).Method
	switch {
	case g.Quantity == stageSeconds(gramStage).Name && form == primal:
		return "n·m²"
	case g.Quantity == stageSeconds(gramStage).Name:
		return "n²·m"
	case form == primal:
		return "m³"
	}
	return "n³"
}

// growthTable has the laws that were fitted to the stages beside those of the
// operations.
func (r *Result) growthTable() *Table {
	t := &Table{
		Title: "Growth of the stages",
		Head:  []string{"", "stage", "seconds", "operations", "deviation"},
		Notes: []string{"Fitted to stages of at least 0.1 ms by least squares of the logarithm, whose root mean square deviation is the last column."},
	}
	for i := range r.Growths {
		g := &r.Growths[i]
		t.Rows = append(t.Rows, []Field{
			{Text: g.Implementation + ", " + g.Case.Title()}, {Text: strings.TrimSuffix(g.Quantity, " seconds")},
			{Text: g.String()}, {Text: r.theory(g)}, {Text: percent(g.Deviation)},
		})
	}
	return t
}
