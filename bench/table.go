package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Table is the cells of a Result that differ in one parameter only.
type Table struct {
	Case     Case       // what they share
	Key      string     // the parameter in which they differ, such as "n"
	Quantity Quantity   // what is shown: Rate where there is one, else Seconds
	Entrants []*Entrant // who has a timing in one of the cells, ceilings last
	Ceilings int        // how many of Entrants are ceilings
	Rows     []*Cell
}

// Tables groups r's cells by all parameters but key, in the order in which they
// were measured. Rates are shown where a run has one, else seconds.
func (r *Result) Tables(key string) []*Table {
	list := r.TablesOf(key, Seconds)
	for _, t := range list {
		if slices.ContainsFunc(t.Rows, func(c *Cell) bool {
			return slices.ContainsFunc(c.Runs, func(r Run) bool { return r.Work > 0 })
		}) {
			t.Quantity = Rate
		}
	}
	return list
}

// TablesOf is Tables of one quantity. Who has no value of it anywhere in a table
// is left out.
func (r *Result) TablesOf(key string, q Quantity) []*Table {
	var list []*Table
	for i := range r.Cells {
		c := &r.Cells[i]
		shared := c.Case.Without(key)
		at := slices.IndexFunc(list, func(t *Table) bool { return slices.Equal(t.Case, shared) })
		if at < 0 {
			at = len(list)
			list = append(list, &Table{Case: shared, Key: key, Quantity: q})
		}
		list[at].Rows = append(list[at].Rows, c)
	}
	for _, t := range list {
		for i := range r.Entrants {
			e := &r.Entrants[i]
			if !slices.ContainsFunc(t.Rows, func(c *Cell) bool { _, ok := q.Of(c.Run(e.Name)); return ok }) {
				continue
			}
			t.Entrants = append(t.Entrants, e)
			if e.Kind == CeilingKind {
				t.Ceilings++
			}
		}
		slices.SortStableFunc(t.Entrants, func(a, b *Entrant) int { return rank(a) - rank(b) })
	}
	return list
}

func rank(e *Entrant) int {
	if e.Kind == CeilingKind {
		return 1
	}
	return 0
}

// Timed tells whether there is a timing.
func (r *Run) Timed() bool { return r != nil && len(r.Timings) > 0 }

// Title is the shared case in words.
func (t *Table) Title() string { return t.Case.Title() }

// spoken are the parameters whose values say what they are.
var spoken = []string{"routine", "fit", "operation", "program", "learner", "solver", "precision"}

// Title is c in words: "gemm, float64, 1 thread, n = 512".
func (c Case) Title() string {
	parts := make([]string, len(c))
	for i, p := range c {
		switch {
		case p.Name == "threads" && p.Value == "1":
			parts[i] = "1 thread"
		case p.Name == "threads":
			parts[i] = p.Value + " threads"
		case slices.Contains(spoken, p.Name):
			parts[i] = p.Value
		default:
			parts[i] = p.Name + " = " + p.Value
		}
	}
	return strings.Join(parts, ", ")
}

// Left lists who has no timing in the table, and why: the first cell's reason
// of each.
func (t *Table) Left() []string {
	var list []string
	for _, run := range t.Rows[0].Runs {
		if run.Reason != "" {
			list = append(list, run.Entrant+": "+run.Reason)
		}
	}
	return list
}

// Value is what to show of an entrant's run: median, least and greatest, in the
// table's unit; false when it has none. A ceiling is the highest rate that was
// seen, not the median.
func (t *Table) Value(e *Entrant, r *Run) (Spread, bool) {
	v, ok := t.Quantity.Of(r)
	if e.Kind == CeilingKind {
		v = Spread{Median: v.Max, Min: v.Max, Max: v.Max}
	}
	return v, ok
}

// Unit is the unit of Value.
func (t *Table) Unit() string { return t.Quantity.Unit }

// Figures formats v with three significant digits and no exponent: 0.0123,
// 1.23, 12.3, 123, 1234.
func Figures(v float64) string {
	// The exponent of v as it will be rounded: 9.996 is 1.00e+01.
	_, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 2, 64), "e")
	e, _ := strconv.Atoi(exponent)
	return strconv.FormatFloat(v, 'f', min(max(2-e, 0), 12), 64)
}

// Times formats a ratio: 0.96, 1.04, 12.3.
func Times(v float64) string {
	if v < 9.995 {
		return fmt.Sprintf("%.2f", v)
	}
	return Figures(v)
}

// Percent formats a share.
func Percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
