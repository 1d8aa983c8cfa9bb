package report

import (
	"fmt"
	"strings"

	"github.com/mercer-go/mercer/bench"
)

// runsPage is the page of runs of whole programs that were imported: all of them in
// the table of the first screen, and a section for each program, with memory against
// time and a picture for each case whose size changes.
func runsPage(r *bench.Result) (*page, error) {
	p := newPage(r, "Whole programs on "+processor(r))
	p.Footer = "Points are medians; bars and the small figures reach from the lowest to the highest timing, ° marks an outlier " +
		"(beyond 1.5 quartile distances). Each timing is a run of the program from its start to its end, by its own clock; " +
		"peak is the largest resident set of the process."
	p.Lead = runsLead(r)
	p.Summary = &summary{Head: []string{"", "s", "peak, MiB", "residual"}}
	for i := range r.Cells {
		for j := range r.Cells[i].Runs {
			p.Summary.Rows = append(p.Summary.Rows, runRow(&r.Cells[i], &r.Cells[i].Runs[j]))
		}
	}
	for _, part := range partsBy(r, "program") {
		s := &section{Title: part.Cells[0].Case.Get("program")}
		if err := s.addMemory(r, part); err != nil {
			return nil, err
		}
		if err := s.addSizes(r, part.TablesOf(sizeOf(part), bench.Seconds), "program"); err != nil {
			return nil, err
		}
		if len(s.Cards) > 0 {
			p.Sections = append(p.Sections, s)
		}
	}
	return p, nil
}

// rowsOf is the parameter of a case that says how many rows there were.
func rowsOf(c *bench.Cell) string {
	for _, key := range []string{"n", "rows"} {
		if v := c.Case.Get(key); v != "" {
			return key + " = " + v
		}
	}
	return ""
}

// runsLead tells of the run of the most rows.
func runsLead(r *bench.Result) string {
	var most *bench.Cell
	rows := func(c *bench.Cell) int { return max(c.Case.Int("n"), c.Case.Int("rows")) }
	for i := range r.Cells {
		if c := &r.Cells[i]; most == nil || rows(c) > rows(most) {
			most = c
		}
	}
	if most == nil || !most.Runs[0].Timed() {
		return "Nothing was measured."
	}
	text := fmt.Sprintf("The most rows: %s took %s s", runTitle(most), bench.Figures(most.Runs[0].Time.Median))
	if v := most.Runs[0].Metrics[bench.Peak]; v > 0 {
		text += fmt.Sprintf(" and %s MiB", bench.Figures(v/(1<<20)))
	}
	return text + "."
}

// runTitle is a case without what makes it long.
func runTitle(c *bench.Cell) string { return c.Case.Without("kernel").Without("lambda").Title() }

// runRow is a run in the table of all.
func runRow(c *bench.Cell, run *bench.Run) []cell {
	row := []cell{{Text: runTitle(c), Note: run.Entrant}, {Text: "–"}, {Text: "–"}, {Text: "–"}}
	if run.Timed() {
		row[1].Text, row[1].Note = bench.Figures(run.Time.Median), "once"
		if len(run.Timings) > 1 {
			row[1].Note = bench.Figures(run.Time.Min) + "–" + bench.Figures(run.Time.Max)
		}
	}
	if v := run.Metrics[bench.Peak]; v > 0 {
		row[2].Text = bench.Figures(v / (1 << 20))
	}
	if v, ok := run.Metrics[bench.Residual]; ok {
		row[3].Text = fmt.Sprintf("%.0e", v)
	}
	return row
}

// addMemory adds the most memory of each process against its time, a mark for each
// learner and solver; nothing where less than three told, of whom a picture shows no more
// than the table of the first screen.
func (s *section) addMemory(r, part *bench.Result) error {
	program := part.Cells[0].Case.Get("program")
	k := card{Title: "Peak memory and time", Head: []string{"", "s", "MiB"}}
	f := figure{name: program + ": memory against time", x: "s", y: "peak memory, MiB", free: true, logY: true}
	for i := range part.Cells {
		c := &part.Cells[i]
		for _, run := range c.Runs {
			v := run.Metrics[bench.Peak] / (1 << 20)
			if !run.Timed() || v <= 0 {
				continue
			}
			name := strings.TrimPrefix(c.Case.Get("learner")+" "+c.Case.Get("solver"), " ")
			at := 0
			for at < len(f.series) && f.series[at].name != name {
				at++
			}
			if at == len(f.series) {
				f.series = append(f.series, series{name: name, look: at % len(markers), loose: true})
			}
			f.series[at].points = append(f.series[at].points, point{run.Time.Median, v, v, v})
			k.Rows = append(k.Rows, []cell{
				{Text: name + ", " + rowsOf(c)}, {Text: bench.Figures(run.Time.Median)}, {Text: bench.Figures(v)},
			})
		}
	}
	if len(k.Rows) < 3 {
		return nil
	}
	return s.add(r, k, f)
}
