package bench

import (
	"fmt"
	"strings"
)

// FitText is Text of a Result of Fit, with the residual and the error of
// prediction of everyone, so that a fast answer that is none is seen.
func (r *Result) FitText() string {
	var b strings.Builder
	b.WriteString(r.Text("n"))
	for _, q := range []struct {
		q      Quantity
		what   string
		format func(float64) string
	}{
		{Metric(Residual, ""), "residual", exponent},
		{Metric(RMSE, ""), "error on rows held out (root mean square)", Figures},
	} {
		for _, t := range r.TablesOf("n", q.q) {
			fmt.Fprintf(&b, "\n%s: %s\n%s", t.Title(), q.what, t.values(q.format))
		}
	}
	return b.String() + r.notesText()
}

// exponent formats a number of any size with two digits.
func exponent(v float64) string { return fmt.Sprintf("%.1e", v) }

// values lays the medians of a table out.
func (t *Table) values(format func(float64) string) string {
	rows, align := [][]string{{t.Key}}, "r"
	for _, e := range t.Entrants {
		rows[0] = append(rows[0], e.Name)
		align += "r"
	}
	for _, c := range t.Rows {
		row := []string{c.Case.Get(t.Key)}
		for _, e := range t.Entrants {
			text := "-"
			if v, ok := t.Quantity.Of(c.Run(e.Name)); ok {
				text = format(v.Median)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return columns(align, rows)
}

// notesText is the notes, one a line.
func (r *Result) notesText() string {
	if len(r.Notes) == 0 {
		return ""
	}
	return "\n" + strings.Join(r.Notes, "\n") + "\n"
}
