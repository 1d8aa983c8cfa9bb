package report

import (
	"fmt"
	"strings"

	"github.com/mercer-go/mercer/bench"
)

// operationTitles are the headings of the sections.
var operationTitles = map[string]string{
	"gram":   "Gram matrix: K = k(X, X), on the device",
	"mul":    "K·v without storing K, on the device",
	"factor": "Cholesky of K + λI, on the device",
	"fit":    "Whole fit by Cholesky, from memory to memory: transfers are counted",
	"solve":  "Whole fit by the solver that Mercer chooses, to a residual of 1e-10",
}

func devicesPage(r *bench.Result) (*page, error) {
	p := newPage(r, "The devices of "+processor(r))
	p.Footer = "Points are medians; bars and the small figures reach from the lowest to the highest timing, ° marks an outlier " +
		"(beyond 1.5 quartile distances). Every device's result is checked: products against one in float64 that stores nothing, " +
		"factors and fits by the residual of their solution."
	tables := r.TablesOf("n", bench.Seconds)
	p.Lead = devicesLead(r)
	p.Summary = devicesSummary(r, tables)
	if p.Summary != nil {
		p.SummaryNote = "Seconds at the largest n that anyone did; in brackets how many times as long as the fastest that is."
	}
	var err error
	p.Sections, err = sections(r, tables, "operation", func(name string) string { return operationTitles[name] })
	for _, s := range p.Sections {
		s.leaveOutMissing(r)
	}
	return p, err
}

// devicesLead says in a sentence from where on a GPU wins, or who is the fastest.
func devicesLead(r *bench.Result) string {
	list := r.Takeovers()
	if len(list) == 0 {
		text := "No GPU was measured."
		for _, note := range r.Notes {
			if strings.HasPrefix(note, "no GPU was measured") {
				text = "No GPU was measured; why is told below."
			}
		}
		return text
	}
	for _, c := range list {
		if c.Case.Get("operation") == "fit" && c.Case.Get("precision") == "float64" {
			s := c.String()
			return "A whole " + s + "."
		}
	}
	return list[0].String() + "."
}

// devicesSummary is a row for each operation and precision, at the largest n.
func devicesSummary(r *bench.Result, tables []*bench.Table) *summary {
	s := &summary{Head: []string{"", "n"}}
	var names []string
	for _, e := range r.Entrants {
		if e.Missing == "" {
			names = append(names, e.Name)
			s.Head = append(s.Head, e.Name)
		}
	}
	for _, t := range tables {
		if len(t.Entrants) == 0 {
			continue
		}
		at := len(t.Rows) - 1
		best := 0.0
		for ; at >= 0 && best == 0; at-- {
			for _, run := range t.Rows[at].Runs {
				if run.Timed() && (best == 0 || run.Time.Median < best) {
					best = run.Time.Median
				}
			}
		}
		last := t.Rows[at+1]
		row := []cell{{Text: t.Case.Get("operation"), Note: t.Case.Get("precision")}, {Text: last.Case.Get("n")}}
		for _, name := range names {
			x := cell{Text: "–"}
			if run := last.Run(name); run.Timed() {
				x.Text = bench.Figures(run.Time.Median)
				if run.Time.Median == best {
					x.Class = "good"
				} else {
					x.Text += fmt.Sprintf(" (%s ×)", bench.Times(run.Time.Median/best))
				}
			}
			row = append(row, x)
		}
		s.Rows = append(s.Rows, row)
	}
	if len(s.Rows) == 0 {
		return nil
	}
	return s
}
