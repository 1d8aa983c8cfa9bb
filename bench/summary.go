package bench

import (
	"cmp"
	"slices"
)

// Comparison is Mercer's best at the largest size of a table, against each of
// the others there.
type Comparison struct {
	Table   *Table
	Cell    *Cell // the last in which Mercer has a timing
	Own     *Run  // Mercer's fastest in it
	Against []Ratio
}

// Ratio is how many times as fast as another Mercer is.
type Ratio struct {
	Entrant string
	Times   float64 // 0: the other has no timing
}

// Value is Mercer's median in the unit of the table.
func (c *Comparison) Value() float64 {
	v, _ := c.Table.Quantity.Of(c.Own)
	return v.Median
}

// Compare draws the conclusion of each table.
func (r *Result) Compare(tables []*Table) []Comparison {
	var list []Comparison
	for _, t := range tables {
		c := Comparison{Table: t}
		for _, cell := range slices.Backward(t.Rows) {
			if c.Own = r.Fastest(cell); c.Own != nil {
				c.Cell = cell
				break
			}
		}
		if c.Own == nil {
			continue
		}
		for _, e := range r.Entrants {
			if e.Kind != PeerKind || e.Missing != "" {
				continue
			}
			ratio := Ratio{Entrant: e.Name}
			if run := c.Cell.Run(e.Name); run.Timed() {
				ratio.Times = run.Time.Median / c.Own.Time.Median
			}
			c.Against = append(c.Against, ratio)
		}
		list = append(list, c)
	}
	return list
}

// Fastest is Mercer's fastest run of a cell, nil when it has none.
func (r *Result) Fastest(c *Cell) *Run {
	var own []*Run
	for i := range c.Runs {
		if e := r.Entrant(c.Runs[i].Entrant); e != nil && e.Kind == OwnKind && c.Runs[i].Timed() {
			own = append(own, &c.Runs[i])
		}
	}
	if len(own) == 0 {
		return nil
	}
	return slices.MinFunc(own, func(a, b *Run) int { return cmp.Compare(a.Time.Median, b.Time.Median) })
}

// Agreement is how near an entrant's results came to the reference's in one
// precision.
type Agreement struct {
	Entrant, Precision string
	Cells              int
	Largest            Check // of the largest difference
	Case               Case  // where that was
}

// Agreements lists, for every entrant and precision that was compared, the
// largest difference.
func (r *Result) Agreements() []Agreement {
	var list []Agreement
	for _, e := range r.Entrants {
		for i := range r.Cells {
			c := &r.Cells[i]
			run := c.Run(e.Name)
			if run == nil || run.Check == nil {
				continue
			}
			precision := c.Case.Get("precision")
			at := slices.IndexFunc(list, func(a Agreement) bool { return a.Entrant == e.Name && a.Precision == precision })
			if at < 0 {
				at = len(list)
				list = append(list, Agreement{Entrant: e.Name, Precision: precision})
			}
			a := &list[at]
			if a.Cells++; a.Cells == 1 || run.Check.Difference > a.Largest.Difference {
				a.Largest, a.Case = *run.Check, c.Case
			}
		}
	}
	return list
}

// Outliers counts the timings that are outliers, and all of them.
func (r *Result) Outliers() (outliers, timings int) {
	for _, c := range r.Cells {
		for _, run := range c.Runs {
			outliers += run.Time.Outliers
			timings += len(run.Timings)
		}
	}
	return outliers, timings
}
