package report

import (
	"strconv"

	"github.com/mercer-go/mercer/bench"
)

// goPage is the page of Go benchmarks that were imported: a section for each
// benchmark, with a picture for each case whose size changes.
func goPage(r *bench.Result) (*page, error) {
	p := newPage(r, "Go benchmarks on "+processor(r))
	p.Footer = "Points are medians; bars and the small figures reach from the lowest to the highest timing, ° marks an outlier " +
		"(beyond 1.5 quartile distances). Imported from what go test -bench wrote: who took part did not run in turn, unless the benchmark did so."
	var all []bench.Comparison
	for _, part := range partsBy(r, "benchmark") {
		tables := part.TablesOf(sizeOf(part), bench.Seconds)
		all = append(all, part.Compare(tables)...)
		s := &section{Title: part.Cells[0].Case.Get("benchmark")}
		if err := s.addSizes(r, tables, "benchmark"); err != nil {
			return nil, err
		}
		if len(s.Cards) > 0 {
			p.Sections = append(p.Sections, s)
		}
	}
	p.Lead = wins(all)
	if len(all) > 0 {
		p.Summary = goSummary(all)
		p.SummaryNote = "At the largest size of each. ×: how many times as fast as that library Mercer is; above 1, Mercer is faster."
	}
	return p, nil
}

// addSizes adds a card for each table of more than one row; the others are in the
// summary. The parameter by is the section's title.
func (s *section) addSizes(r *bench.Result, tables []*bench.Table, by string) error {
	for _, t := range tables {
		if len(t.Rows) == 1 {
			continue
		}
		t.Case = t.Case.Without(by)
		if err := s.add(r, tableCard(t), tableFigure(r, t)); err != nil {
			return err
		}
	}
	return nil
}

// partsBy is a measurement for each value of a parameter, in their order.
func partsBy(r *bench.Result, by string) []*bench.Result {
	var parts []*bench.Result
	at := map[string]*bench.Result{}
	for _, c := range r.Cells {
		name := c.Case.Get(by)
		if at[name] == nil {
			part := *r
			part.Cells = nil
			at[name] = &part
			parts = append(parts, &part)
		}
		at[name].Cells = append(at[name].Cells, c)
	}
	return parts
}

// sizeOf is the parameter that is a whole number everywhere and takes the most
// values; n where no parameter does.
func sizeOf(r *bench.Result) string {
	name, most := "n", 0
	for _, p := range r.Cells[0].Case {
		values := map[string]bool{}
		for _, c := range r.Cells {
			v := c.Case.Get(p.Name)
			if _, err := strconv.Atoi(v); err != nil {
				values = nil
				break
			}
			values[v] = true
		}
		if len(values) > most {
			name, most = p.Name, len(values)
		}
	}
	return name
}

func goSummary(list []bench.Comparison) *summary {
	s := &summary{Head: []string{"", "Mercer, s"}}
	for _, a := range list[0].Against {
		s.Head = append(s.Head, "× "+a.Entrant)
	}
	for _, c := range list {
		row := []cell{{Text: c.Cell.Case.Without("benchmark").Title(), Note: c.Cell.Case.Get("benchmark")}, {Text: bench.Figures(c.Own.Time.Median)}}
		s.Rows = append(s.Rows, append(row, ratios(c.Against)...))
	}
	return s
}
