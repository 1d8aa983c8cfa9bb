package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// comparison holds Mercer's fastest run at the largest size of a group of cells, and the times of other libraries.
type comparison struct {
	shared Case
	key    string // name of the parameter for the size
	cell   *Cell
	mercer *Run
	share  float64   // Mercer's rate divided by the highest ceiling of the cell, on any device; 0 without a ceiling
	ratios []float64 // time of each library divided by Mercer's time; 0 if the library has no timing
}

func (r *Result) libraries() []string {
	var list []string
	for _, e := range r.Implementations {
		if e.Kind == PeerKind && e.Missing == "" {
			list = append(list, e.Name)
		}
	}
	return list
}

// compare returns one comparison for each group, at the largest value of key for which Mercer has a timing.
func (r *Result) compare(key string) []comparison {
	var list []comparison
	isMercer := func(run *Run) bool { e := r.Implementation(run.Implementation); return e != nil && e.Kind == OwnKind }
	for _, g := range r.groups(key) {
		c := comparison{shared: g.shared, key: key}
		for _, cell := range slices.Backward(g.cells) {
			if c.mercer = cell.fastest(isMercer); c.mercer != nil {
				c.cell = cell
				break
			}
		}
		if c.mercer == nil {
			continue
		}
		ceiling := 0.0
		for _, run := range c.cell.Runs {
			ceiling = max(ceiling, run.Ceiling)
		}
		if ceiling > 0 {
			c.share = c.mercer.Rate.Median / ceiling
		}
		for _, name := range r.libraries() {
			ratio := 0.0
			if run := c.cell.Run(name); run.Timed() {
				ratio = run.Time.Median / c.mercer.Time.Median
			}
			c.ratios = append(c.ratios, ratio)
		}
		list = append(list, c)
	}
	return list
}

// comparisonTable returns a table with a row for each comparison: Mercer's rate in GFLOP/s if rates is true, and
// otherwise its time in seconds. The list must not be empty.
func (r *Result) comparisonTable(list []comparison, rates bool) *Table {
	key, unit := list[0].key, "s"
	if slices.ContainsFunc(list, func(c comparison) bool { return c.key != key }) {
		key = "size"
	}
	if rates {
		unit = "GFLOP/s"
	}
	t := &Table{Title: "Mercer at the largest " + key, Head: []string{"", key, "Mercer", unit}}
	hasCeiling := slices.ContainsFunc(list, func(c comparison) bool { return c.share > 0 })
	residual := slices.ContainsFunc(list, func(c comparison) bool { _, ok := c.mercer.Metrics[residualMetric]; return ok })
	if hasCeiling {
		t.Head = append(t.Head, "of ceiling")
	}
	if residual {
		t.Head = append(t.Head, "residual")
	}
	for _, name := range r.libraries() {
		t.Head = append(t.Head, "× "+name)
		t.Notes = []string{"A column with × has the ratio of the library’s time to the time of Mercer’s fastest implementation; above 1, Mercer is faster. A dash means that the library has no timing."}
	}
	for _, c := range list {
		value := c.mercer.Time.Median
		if rates {
			value = c.mercer.Rate.Median
		}
		row := []Field{{Text: c.shared.Title()}, {Text: c.cell.Case.Get(c.key)}, {Text: strings.TrimPrefix(c.mercer.Implementation, "mercer ")}, {Text: figures(value)}}
		if hasCeiling {
			row = append(row, optional(c.share, percent))
		}
		if residual {
			row = append(row, optional(c.mercer.Metrics[residualMetric], scientific))
		}
		for _, ratio := range c.ratios {
			f := optional(ratio, ratioText)
			if f.Class = "bad"; ratio >= 1 {
				f.Class = "good"
			}
			row = append(row, f)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// optional returns the field of a value v, or the field "–" if v is 0, which means unknown.
func optional(v float64, format func(float64) string) Field {
	if v == 0 {
		return Field{Text: "–"}
	}
	return Field{Text: format(v)}
}

// winsText returns a sentence with the number of comparisons in which no other library is faster than Mercer.
func winsText(list []comparison) string {
	first, compared := 0, 0
	for _, c := range list {
		ratios := slices.DeleteFunc(slices.Clone(c.ratios), func(v float64) bool { return v == 0 })
		if len(ratios) == 0 {
			continue
		}
		if compared++; slices.Min(ratios) >= 1 {
			first++
		}
	}
	if compared == 0 {
		return "There was no other library to compare with."
	}
	return fmt.Sprintf("At the largest size, Mercer is the fastest in %d of %d comparisons.", first, compared)
}

// fastest returns the fastest timed run for which include is true.
func (c *Cell) fastest(include func(*Run) bool) *Run {
	var best *Run
	for i := range c.Runs {
		if run := &c.Runs[i]; run.Timed() && include(run) && (best == nil || cmp.Less(run.Time.Median, best.Time.Median)) {
			best = run
		}
	}
	return best
}

// values returns the distinct values of a parameter, in the order of the cells.
func (r *Result) values(name string) []string {
	var list []string
	for _, c := range r.Cells {
		if v := c.Case.Get(name); !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// outliers returns the numbers of outliers and of all timings.
func (r *Result) outliers() (outliers, timings int) {
	for _, c := range r.Cells {
		for _, run := range c.Runs {
			outliers += run.Time.Outliers
			timings += len(run.Timings)
		}
	}
	return outliers, timings
}
