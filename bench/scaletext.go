package bench

import (
	"fmt"
	"strings"
)

// Resident is how much the process grew during the first fit, in bytes.
const Resident = "resident_bytes"

// flopsOf is the operations that a run's plan counted.
var flopsOf = Quantity{Name: "flops", Log: true, Of: func(r *Run) (Spread, bool) {
	if !r.Timed() || r.Work == 0 {
		return Spread{}, false
	}
	return Spread{Median: r.Work, Min: r.Work, Max: r.Work}, true
}}

// fitScale fits the growth of time, operations, memory and plan in each sweep.
func (r *Result) fitScale() {
	for _, over := range []string{"n", "m"} {
		for _, e := range r.Entrants {
			for _, q := range []Quantity{Seconds, flopsOf, Metric(Bytes, "B"), Metric(Planned, "B")} {
				if g := r.FitGrowth(e.Name, Case{{sweep, over}}, q, []string{over}, nil); g != nil {
					r.Growths = append(r.Growths, *g)
				}
			}
		}
	}
}

// Growth returns what was fitted of an entrant's quantity over one parameter; nil
// when there were too few cells.
func (r *Result) Growth(entrant, over string, quantity string) *Growth {
	for i := range r.Growths {
		g := &r.Growths[i]
		if g.Entrant == entrant && g.Quantity == quantity && len(g.Over) == 1 && g.Over[0] == over {
			return g
		}
	}
	return nil
}

// Sweep is the part of a Result of Scale in which one of n and M changes.
func (r *Result) Sweep(over string) *Result {
	part := *r
	part.Cells = nil
	for _, c := range r.Cells {
		if c.Case.Get(sweep) == over {
			part.Cells = append(part.Cells, c)
		}
	}
	return &part
}

// GrowthRow is a line of what a Scale comes to: how an entrant grows.
type GrowthRow struct {
	Entrant                       string
	Over                          string  // n or m
	Time, Flops, Memory, Planned  float64 // exponents; 0: not known
	Used                          float64 // the largest bytes / planned bytes
	Largest                       int     // n or M of its last timing
	Seconds, Bytes, Resident, Err float64 // there
	Left                          string  // why it went no further; "": it did not have to
}

// GrowthRows lists how the entrants grow over n or M.
func (r *Result) GrowthRows(over string) []GrowthRow {
	part := r.Sweep(over)
	var list []GrowthRow
	for _, e := range r.Entrants {
		row := GrowthRow{Entrant: e.Name, Over: over}
		exponent := func(quantity string) float64 {
			if g := r.Growth(e.Name, over, quantity); g != nil {
				return g.Exponents[0]
			}
			return 0
		}
		row.Time, row.Flops, row.Memory, row.Planned = exponent("seconds"), exponent("flops"), exponent(Bytes), exponent(Planned)
		for i := range part.Cells {
			c := &part.Cells[i]
			run := c.Run(e.Name)
			if run == nil {
				continue
			}
			if !run.Timed() {
				row.Left = run.Reason
				continue
			}
			row.Largest, row.Seconds, row.Bytes, row.Left = c.Case.Int(over), run.Time.Median, run.Metrics[Bytes], ""
			row.Resident, row.Err = run.Metrics[Resident], run.Metrics[RMSE]
			if p := run.Metrics[Planned]; p > 0 {
				row.Used = max(row.Used, run.Metrics[Bytes]/p)
			}
		}
		if row.Largest > 0 || row.Left != "" {
			list = append(list, row)
		}
	}
	return list
}

// ScaleText is Text of a Result of Scale: times, residuals, errors and memory over
// n and over M, and how each solver grows.
func (r *Result) ScaleText() string {
	var b strings.Builder
	b.WriteString(r.head())
	for _, over := range []string{"n", "m"} {
		part := r.Sweep(over)
		if len(part.Cells) == 0 {
			continue
		}
		for _, q := range []struct {
			q      Quantity
			what   string
			format func(float64) string
		}{
			{Seconds, "seconds, median", Figures},
			{Metric(Bytes, "B"), "bytes on the device, the most", mebibytes},
			{Metric(Planned, "B"), "bytes that were planned", mebibytes},
			{Metric(Resident, "B"), "growth of the process", mebibytes},
			{Metric(Residual, ""), "residual", exponent},
			{Metric(RMSE, ""), "error on rows held out (root mean square)", Figures},
		} {
			for _, t := range part.TablesOf(over, q.q) {
				if len(t.Entrants) > 0 {
					fmt.Fprintf(&b, "\n%s: %s\n%s", t.Case.Without(sweep).Title(), q.what, t.values(q.format))
				}
			}
		}
		fmt.Fprintf(&b, "\nhow it grows: exponents of %s\n%s", over, growthText(r.GrowthRows(over)))
	}
	return b.String() + r.notesText()
}

func growthText(list []GrowthRow) string {
	known := func(v float64) string {
		if v == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", v)
	}
	rows := [][]string{{"", "time", "operations", "memory", "planned", "memory/plan", "up to", "s", "MiB", ""}}
	for _, g := range list {
		row := []string{"  " + g.Entrant, known(g.Time), known(g.Flops), known(g.Memory), known(g.Planned), "-", "-", "-", "-", g.Left}
		if g.Largest > 0 {
			row[5], row[6], row[7], row[8] = known(g.Used), fmt.Sprint(g.Largest), Figures(g.Seconds), Figures(g.Bytes/(1<<20))
		}
		rows = append(rows, row)
	}
	return columns("lrrrrrrrrl", rows)
}

func mebibytes(v float64) string { return Figures(v/(1<<20)) + " MiB" }
