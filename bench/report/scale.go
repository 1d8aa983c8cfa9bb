package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/bench"
)

func scalePage(r *bench.Result) (*page, error) {
	p := newPage(r, "How Mercer’s solvers grow, on "+processor(r))
	p.Footer = "Points are medians; bars reach from the lowest to the highest timing. Dotted lines are the laws that were fitted. " +
		"An exponent of the operations is fitted to what the plans count at the same n or M; one of the time is below it where small problems run at a lower rate than large ones."
	rows := r.GrowthRows("n")
	p.Lead = scaleLead(rows)
	if len(rows) > 0 {
		p.Summary = growthSummary(rows)
		p.SummaryNote = "Exponents of n, fitted to time and to counted operations; the largest n, time and memory there; the largest share of the planned memory that was taken."
		for _, g := range rows {
			if g.Largest == 0 {
				p.SummaryNote += " Not measured: " + g.Left + "."
			}
		}
	}
	for _, over := range []string{"n", "m"} {
		part := r.Sweep(over)
		if len(part.Cells) == 0 {
			continue
		}
		title := "Against the number of samples n"
		if over == "m" {
			title = "Against the number of functions M"
		}
		s := &section{Title: title}
		for _, q := range []struct {
			q     bench.Quantity
			title string
			unit  float64
		}{
			{bench.Seconds, "Time, s", 1},
			{bench.Metric(bench.Bytes, "MiB"), "Memory on the device, MiB", 1 << 20},
			{bench.Metric(bench.RMSE, ""), "Error on rows held out", 1},
		} {
			for _, t := range part.TablesOf(over, q.q) {
				if len(t.Entrants) == 0 {
					continue
				}
				k, f := scaleCard(r, t, q.title, q.unit, over)
				if err := s.add(r, k, f); err != nil {
					return nil, err
				}
			}
		}
		if err := s.addTrade(r, part, over); err != nil {
			return nil, err
		}
		p.Sections = append(p.Sections, s)
	}
	return p, nil
}

// scaleLead says in a sentence what was found.
func scaleLead(rows []bench.GrowthRow) string {
	var parts []string
	within, most := true, 0.0
	for _, g := range rows {
		if g.Time > 0 && g.Flops > 0 {
			parts = append(parts, fmt.Sprintf("%s n^%.1f (operations n^%.1f)", g.Entrant, g.Time, g.Flops))
		}
		most = max(most, g.Used)
		within = within && g.Used <= 1
	}
	if len(parts) == 0 {
		return "There were too few sizes to tell how the time grows."
	}
	text := "Time grows like: " + strings.Join(parts, ", ") + "."
	if most > 0 {
		if within {
			text += fmt.Sprintf(" Nothing took more memory than its plan said (at most %.0f %% of it).", 100*most)
		} else {
			text += fmt.Sprintf(" Memory exceeded a plan: %.0f %% of it.", 100*most)
		}
	}
	return text
}

func growthSummary(rows []bench.GrowthRow) *summary {
	s := &summary{Head: []string{"", "time", "operations", "up to n", "s", "MiB", "of the plan"}}
	known := func(v float64, format string) cell {
		if v == 0 {
			return cell{Text: "–"}
		}
		return cell{Text: fmt.Sprintf(format, v)}
	}
	for _, g := range rows {
		if g.Largest == 0 {
			continue
		}
		used := known(100*g.Used, "%.0f %%")
		if g.Used > 1 {
			used.Class = "bad"
		}
		s.Rows = append(s.Rows, []cell{
			{Text: g.Entrant, Note: g.Left}, known(g.Time, "n^%.2f"), known(g.Flops, "n^%.2f"),
			{Text: fmt.Sprint(g.Largest)}, {Text: bench.Figures(g.Seconds)}, {Text: bench.Figures(g.Bytes / (1 << 20))}, used,
		})
	}
	return s
}

// scaleCard is a table and its picture: log against log, with the laws.
func scaleCard(r *bench.Result, t *bench.Table, title string, unit float64, over string) (card, figure) {
	k := card{Title: title, Head: []string{over}}
	f := figure{name: title + " against " + over, x: over, y: t.Unit(), logY: true}
	for _, e := range t.Entrants {
		k.Head = append(k.Head, e.Name)
		s := series{name: e.Name, look: scaleLook(r, e)}
		for _, c := range t.Rows {
			if v, ok := t.Value(e, c.Run(e.Name)); ok && v.Median > 0 {
				s.points = append(s.points, point{float64(c.Case.Int(over)), v.Median / unit, v.Min / unit, v.Max / unit})
			}
		}
		if len(s.points) == 0 {
			continue
		}
		f.series = append(f.series, s)
		if g := r.Growth(e.Name, over, t.Quantity.Name); g != nil {
			law := series{look: s.look, law: true}
			low, high := s.points[0].x, s.points[len(s.points)-1].x
			for i := range 9 {
				x := low * math.Pow(high/low, float64(i)/8)
				y := g.At(x) / unit
				law.points = append(law.points, point{x, y, y, y})
			}
			f.series = append(f.series, law)
			k.Notes = append(k.Notes, fmt.Sprintf("%s: %s %s", e.Name, g.Quantity, g))
		}
	}
	for _, c := range t.Rows {
		row := []cell{{Text: c.Case.Get(over)}}
		for _, e := range t.Entrants {
			x := cell{Text: "–"}
			if v, ok := t.Value(e, c.Run(e.Name)); ok {
				x.Text = bench.Figures(v.Median / unit)
			}
			row = append(row, x)
		}
		k.Rows = append(k.Rows, row)
	}
	for _, e := range t.Entrants {
		for _, c := range t.Rows {
			if run := c.Run(e.Name); run != nil && run.Reason != "" {
				k.Notes = append(k.Notes, fmt.Sprintf("%s at %s = %s: %s", e.Name, over, c.Case.Get(over), run.Reason))
			}
		}
	}
	return k, f
}

// scaleLook gives every solver a look of its own: there are no libraries here.
func scaleLook(r *bench.Result, e *bench.Entrant) int {
	return slices.IndexFunc(r.Entrants, func(o bench.Entrant) bool { return o.Name == e.Name }) % len(markers)
}

// addTrade adds the error against the time, a curve for each solver: what more
// samples or functions cost and gain.
func (s *section) addTrade(r, part *bench.Result, over string) error {
	k := card{Title: "Error against time", Head: []string{"", over, "s", "error"}}
	f := figure{name: "error against time, over " + over, x: "s", y: "error on rows held out", free: true, logY: true}
	for i := range r.Entrants {
		e := &r.Entrants[i]
		c := series{name: e.Name, look: scaleLook(r, e)}
		for _, cell := range part.Cells {
			if run := cell.Run(e.Name); run.Timed() && run.Metrics[bench.RMSE] > 0 {
				v := run.Metrics[bench.RMSE]
				c.points = append(c.points, point{run.Time.Median, v, v, v})
				k.Rows = append(k.Rows, tradeRow(e.Name, cell.Case.Get(over), run.Time.Median, v))
			}
		}
		if len(c.points) > 0 {
			f.series = append(f.series, c)
		}
	}
	if len(f.series) == 0 {
		return nil
	}
	return s.add(r, k, f)
}

func tradeRow(name, at string, seconds, v float64) []cell {
	return []cell{{Text: name}, {Text: at}, {Text: bench.Figures(seconds)}, {Text: bench.Figures(v)}}
}
