package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/bench"
)

// fitTitles are the headings of the sections.
var fitTitles = map[string]string{
	"ridge":   "Kernel ridge: (K + λI)α = y, from arrays to α",
	"nystrom": "Nyström: M functions instead of n, the same centers for all",
	"svr":     "ε-support vector regression: Mercer’s SMO and LIBSVM’s",
	"file":    "From a CSV file to a model in a file",
}

func fitPage(r *bench.Result) (*page, error) {
	p := newPage(r, "Whole fits on "+processor(r))
	tables := r.TablesOf("n", bench.Seconds)
	p.Footer = "Points are medians; bars and the small figures reach from the lowest to the highest timing, ° marks an outlier " +
		"(beyond 1.5 quartile distances). Everyone solves the same problem with the same kernel, λ, precision and threads; " +
		"the residual of every answer is computed by Mercer’s product with K in float64, which shares nothing with the " +
		"factor that found it. Imports and the way of the data to a library are not counted, transfers to a GPU are."
	list := r.Compare(tables)
	p.Lead = fitLead(list)
	if len(list) > 0 {
		p.Summary = fitSummary(list)
		p.SummaryNote = "At the largest n of each. ×: how many times as fast as that library Mercer’s fastest way is; above 1, Mercer is faster. –: the library has no such fit, or is not here."
	}
	var err error
	if p.Sections, err = sections(r, tables, "fit", func(name string) string { return fitTitles[name] }); err != nil {
		return nil, err
	}
	at := 0
	for _, s := range p.Sections {
		s.leaveOutMissing(r)
		for i := range s.Cards {
			s.Cards[i].Notes = append(s.Cards[i].Notes, metricNotes(tables[at])...)
			at++
		}
	}
	if s, err := tradeSection(r); err != nil {
		return nil, err
	} else if s != nil {
		p.Sections = append(p.Sections, s)
	}
	return p, nil
}

// leaveOutMissing takes from the cards what the table of who was measured says:
// that somebody is not here at all.
func (s *section) leaveOutMissing(r *bench.Result) {
	for i := range s.Cards {
		s.Cards[i].Notes = slices.DeleteFunc(s.Cards[i].Notes, func(note string) bool {
			name, _, _ := strings.Cut(note, ": ")
			e := r.Entrant(name)
			return e != nil && e.Missing != ""
		})
	}
}

// fitLead says in a sentence what was found.
func fitLead(list []bench.Comparison) string {
	if len(list) == 0 {
		return "Nothing was measured."
	}
	var best string
	for _, c := range list {
		nearest, name := 0.0, ""
		for _, a := range c.Against {
			if a.Times > 0 && (name == "" || a.Times < nearest) {
				nearest, name = a.Times, a.Entrant
			}
		}
		if name == "" {
			continue
		}
		if best == "" {
			best = fmt.Sprintf("For kernel ridge in float64 at n = %s Mercer takes %s s, %s times as fast as the fastest other, %s.",
				c.Cell.Case.Get("n"), bench.Figures(c.Own.Time.Median), bench.Times(nearest), name)
			if c.Table.Case.Get("fit") != "ridge" || c.Table.Case.Get("precision") != "float64" {
				best = ""
			}
		}
	}
	if best != "" {
		return best + " " + wins(list)
	}
	return wins(list)
}

func fitSummary(list []bench.Comparison) *summary {
	s := &summary{Head: []string{"", "n", "Mercer, s", "residual"}}
	for _, a := range list[0].Against {
		s.Head = append(s.Head, "× "+a.Entrant)
	}
	for _, c := range list {
		row := []cell{
			{Text: c.Table.Case.Get("fit"), Note: c.Table.Case.Get("precision")},
			{Text: c.Cell.Case.Get("n")},
			{Text: bench.Figures(c.Own.Time.Median)},
			{Text: "–"},
		}
		if v, ok := c.Own.Metrics[bench.Residual]; ok {
			row[3].Text = fmt.Sprintf("%.0e", v)
		}
		s.Rows = append(s.Rows, append(row, ratios(c.Against)...))
	}
	return s
}

// ratios are the cells of how many times as fast Mercer is.
func ratios(against []bench.Ratio) []cell {
	var list []cell
	for _, a := range against {
		x := cell{Text: "–"}
		if a.Times > 0 {
			x = cell{Text: bench.Times(a.Times), Class: "bad"}
			if a.Times >= 1 {
				x.Class = "good"
			}
		}
		list = append(list, x)
	}
	return list
}

// metricNotes are a line for the residuals and one for the errors at the largest
// n of a table.
func metricNotes(t *bench.Table) []string {
	last := t.Rows[len(t.Rows)-1]
	var notes []string
	for _, m := range []struct{ name, what string }{{bench.Residual, "Residual"}, {bench.RMSE, "Error on rows held out"}} {
		var parts []string
		for _, e := range t.Entrants {
			run := last.Run(e.Name)
			if run == nil {
				continue
			}
			if v, ok := run.Metrics[m.name]; ok {
				parts = append(parts, fmt.Sprintf("%s %.1e", e.Name, v))
			}
		}
		if len(parts) > 0 {
			notes = append(notes, fmt.Sprintf("%s at n = %s: %s.", m.what, last.Case.Get("n"), strings.Join(parts, ", ")))
		}
	}
	return notes
}

// tradeSection shows the error on rows held out against the time, of everything
// in float64 at the largest n; nil where nobody has an error.
func tradeSection(r *bench.Result) (*section, error) {
	n := 0
	for _, c := range r.Cells {
		n = max(n, c.Case.Int("n"))
	}
	f := figure{name: fmt.Sprintf("error against time, n = %d", n), x: "s", y: "error on rows held out", free: true, logY: true}
	k := card{Title: fmt.Sprintf("n = %d, float64", n), Head: []string{"", "s", "error"}}
	looks := map[string]int{"ridge": 0, "nystrom": 3, "svr": 2}
	for _, fit := range []string{"ridge", "nystrom", "svr"} {
		s := series{name: fit, look: looks[fit], loose: true}
		for i := range r.Cells {
			c := &r.Cells[i]
			if c.Case.Get("fit") != fit || c.Case.Get("precision") != "float64" || c.Case.Int("n") != n {
				continue
			}
			for _, run := range c.Runs {
				v, ok := run.Metrics[bench.RMSE]
				if !ok || !run.Timed() {
					continue
				}
				s.points = append(s.points, point{run.Time.Median, v, v, v})
				k.Rows = append(k.Rows, []cell{{Text: fit + ", " + run.Entrant}, {Text: bench.Figures(run.Time.Median)}, {Text: bench.Figures(v)}})
			}
		}
		if len(s.points) > 0 {
			f.series = append(f.series, s)
		}
	}
	if len(k.Rows) == 0 {
		return nil, nil
	}
	s := &section{Title: "What accuracy costs", Text: "Lower left is better: the error of prediction on rows held out, against the time of the fit."}
	return s, s.add(r, k, f)
}
