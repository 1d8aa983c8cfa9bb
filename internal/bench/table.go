package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mercer-go/mercer/internal/count"
)

// Table is a part of a Report: rows of text, and a chart of the same values.
type Table struct {
	Title string
	Head  []string
	Rows  [][]Field // each row is as long as Head; its first field names the row
	Notes []string  // remarks on single fields, one line each
	Chart *Chart    // nil if the table has no chart
}

// Field is a field of a Table.
type Field struct {
	Text  string
	Note  string // the range of the timings and the ratio to the ceiling, shown in brackets
	Class string // the HTML class: good, bad, primal, dual, even
}

// Words reports whether f is a text: neither a number nor empty.
func (f Field) Words() bool {
	return f.Text != "–" && f.Text != "" && !strings.Contains("0123456789-<>", f.Text[:1])
}

// Chart is a picture with two logarithmic axes.
type Chart struct {
	X, Y   string
	Curves []Curve
}

// Curve is a line of a Chart. It connects its points, each of which has an error bar from Low to
// High. A dashed curve has neither markers nor error bars.
type Curve struct {
	Name   string
	Dashed bool
	Points []Point
}

// Point is a point of a Curve. All values are positive.
type Point struct{ X, Y, Low, High float64 }

// quantity is a kind of value of a run, which tables, charts and exponents can show.
type quantity struct {
	Name string // for example "seconds", "GFLOP/s", "gram seconds", "residual"
	Unit string // unit in tables and charts; "" for a number without unit
	// Of returns the value of the quantity for a run, or false if the run has no value.
	Of func(*Run) (Summary, bool)
}

// singleValue returns a quantity with a single value for each run, without a range.
func singleValue(name, unit string, value func(*Run) (float64, bool)) quantity {
	return timed(name, unit, func(r *Run) (Summary, bool) {
		v, ok := value(r)
		return Summary{Median: v, Min: v, Max: v}, ok
	})
}

// timed returns a quantity of runs with timings.
func timed(name, unit string, value func(*Run) (Summary, bool)) quantity {
	return quantity{name, unit, func(r *Run) (Summary, bool) {
		if !r.Timed() {
			return Summary{}, false
		}
		return value(r)
	}}
}

var secondsQuantity = timed("seconds", "s", func(r *Run) (Summary, bool) { return r.Time, true })

var rateQuantity = timed("GFLOP/s", "GFLOP/s", func(r *Run) (Summary, bool) { return r.Rate, r.Work > 0 })

func metric(name, unit string) quantity {
	return singleValue(name, unit, func(r *Run) (float64, bool) {
		v, ok := r.Metrics[name]
		return v, ok
	})
}

// operations is the number of floating-point operations of a run, as its plan counts them.
var operations = singleValue("flops", "", func(r *Run) (float64, bool) { return r.Work, r.Work > 0 })

// Timed reports whether r has a timing.
func (r *Run) Timed() bool { return r != nil && len(r.Timings) > 0 }

// group is a set of cells of a Result that have equal parameters except one.
type group struct {
	shared Case
	key    string // the parameter that varies; empty if several parameters vary
	cells  []*Cell
}

// groups returns the groups of the cells of r in which only the parameter key varies, in the order of measurement.
func (r *Result) groups(key string) []group {
	var list []group
	for i := range r.Cells {
		c := &r.Cells[i]
		shared := c.Case.Without(key)
		index := slices.IndexFunc(list, func(g group) bool { return slices.Equal(g.shared, shared) })
		if index < 0 {
			index = len(list)
			list = append(list, group{shared: shared, key: key})
		}
		list[index].cells = append(list[index].cells, c)
	}
	return list
}

// label returns the text that names c among the cells of g.
func (g group) label(c *Cell) string {
	if g.key == "" {
		return c.Case.Title()
	}
	return c.Case.Get(g.key)
}

// implementations lists the implementations that have a value of q in g. Ceilings come last.
func (g group) implementations(r *Result, q quantity) []*Implementation {
	var list, ceilings []*Implementation
	for i := range r.Implementations {
		e := &r.Implementations[i]
		if !slices.ContainsFunc(g.cells, func(c *Cell) bool { _, ok := q.Of(c.Run(e.Name)); return ok }) {
			continue
		}
		if e.Kind == CeilingKind && q.Name == secondsQuantity.Name { // the time of a ceiling is for other operations, and not comparable
			continue
		}
		if e.Kind == CeilingKind {
			ceilings = append(ceilings, e)
		} else {
			list = append(list, e)
		}
	}
	return append(list, ceilings...)
}

// tables returns a table of the quantity q for each group in which key varies. A table has a column for each
// implementation, with values formatted by format. It has a chart if a curve has at least two points. If every
// group has only one cell, there is one table for all groups.
func (r *Result) tables(key string, q quantity, title string, format func(float64) string) []*Table {
	var list []*Table
	groups := r.groups(key)
	if len(groups) > 1 && len(groups) == len(r.Cells) { // each group has one cell
		merged := group{}
		for _, g := range groups {
			merged.cells = append(merged.cells, g.cells...)
		}
		groups = []group{merged}
	}
	for _, g := range groups {
		if t := g.table(r, q, title, format); t != nil {
			list = append(list, t)
		}
	}
	return list
}

// table returns the table of the quantity q for the cells of g, or nil if no run has a value.
func (g group) table(r *Result, q quantity, title string, format func(float64) string) *Table {
	implementations := g.implementations(r, q)
	if len(implementations) == 0 {
		return nil
	}
	t := &Table{Title: strings.TrimPrefix(g.shared.Title()+": "+title, ": "), Head: []string{g.key}}
	if unit := q.Unit; unit != "" {
		t.Title += ", " + unit
	}
	timings := q.Name == secondsQuantity.Name || q.Name == rateQuantity.Name
	if timings {
		t.Notes = g.omitted(r)
	}
	for _, c := range g.cells {
		t.Rows = append(t.Rows, []Field{{Text: g.label(c)}})
	}
	chart := &Chart{X: g.key, Y: q.Name}
	if q.Unit != "" {
		chart.Y = q.Unit
	}
	for _, e := range implementations {
		t.Head = append(t.Head, e.Name)
		curve := Curve{Name: e.Name, Dashed: e.Kind == CeilingKind}
		for i, c := range g.cells {
			run := c.Run(e.Name)
			v, ok := q.Of(run)
			if !ok {
				t.Rows[i] = append(t.Rows[i], Field{Text: "–"})
				continue
			}
			field := Field{Text: format(v.Median)}
			if e.Kind == CeilingKind { // the value of a ceiling is its highest rate
				field.Text, v = format(v.Max), Summary{Median: v.Max, Min: v.Max, Max: v.Max}
			} else if timings {
				field.Note = spreadText(run, v, format)
			}
			t.Rows[i] = append(t.Rows[i], field)
			if x := c.Case.Int(g.key); x > 0 && v.Min > 0 {
				curve.Points = append(curve.Points, Point{float64(x), v.Median, v.Min, v.Max})
			}
		}
		if len(curve.Points) > 1 {
			chart.Curves = append(chart.Curves, curve)
		}
	}
	if len(chart.Curves) > 0 {
		t.Chart = chart
	}
	return t
}

// spreadText returns the range of a run's timings, a degree sign for each outlier, and the ratio to the ceiling.
func spreadText(run *Run, v Summary, format func(float64) string) string {
	text := "once"
	if len(run.Timings) > 1 {
		text = format(v.Min) + "–" + format(v.Max) + strings.Repeat("°", v.Outliers)
	}
	if run.Share > 0 {
		text += ", " + percent(run.Share)
	}
	return text
}

// omitted lists the implementations without a timing, with the reasons, but not libraries that are not installed.
func (g group) omitted(r *Result) []string {
	type absence struct{ name, reason string }
	var order []absence
	labels := map[absence][]string{}
	for _, c := range g.cells {
		for _, run := range c.Runs {
			if e := r.Implementation(run.Implementation); run.Reason == "" || e != nil && e.Missing != "" {
				continue
			}
			a := absence{run.Implementation, run.Reason}
			if labels[a] == nil {
				order = append(order, a)
			}
			labels[a] = append(labels[a], g.label(c))
		}
	}
	var list []string
	for _, a := range order {
		text := a.name
		if len(labels[a]) < len(g.cells) {
			text += " at " + strings.TrimPrefix(g.key+" = ", " = ") + strings.Join(labels[a], ", ")
		}
		list = append(list, text+": "+a.reason)
	}
	return list
}

var unnamedParams = []string{"benchmark", "routine", "fit", "operation", "program", "learner", "solver", "precision"}

// Title returns c as a text, such as "gemm, float64, 1 thread, n = 512".
func (c Case) Title() string {
	parts := make([]string, len(c))
	for i, p := range c {
		switch {
		case p.Name == "threads":
			parts[i] = count.Of(c.Int(p.Name), "thread")
		case slices.Contains(unnamedParams, p.Name):
			parts[i] = p.Value
		default:
			parts[i] = p.Name + " = " + p.Value
		}
	}
	return strings.Join(parts, ", ")
}

// figures formats v with three significant digits and no exponent: 0.0123, 1.23, 12.3, 123, 1234.
func figures(v float64) string {
	// Take the exponent of v after rounding: 9.996 becomes 1.00e+01.
	_, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 2, 64), "e")
	e, _ := strconv.Atoi(exponent)
	return strconv.FormatFloat(v, 'f', min(max(2-e, 0), 12), 64)
}

// ratioText formats a ratio, such as 0.96, 1.04 or 12.3.
func ratioText(v float64) string {
	if v < 9.995 {
		return fmt.Sprintf("%.2f", v)
	}
	return figures(v)
}

func percent(fraction float64) string { return fmt.Sprintf("%.0f %%", 100*fraction) }

func scientific(v float64) string { return fmt.Sprintf("%.1e", v) }
