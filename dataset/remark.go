package dataset

import (
	"regexp"
	"slices"

	"github.com/mercer-go/mercer/internal/message"
)

// A Remark warns about a column that became features although it looks like a date or an
// identifier.
type Remark struct {
	Column string
	rule   string
}

// Message describes the column and the remedy, with a front end's name of the parameter that drops
// columns.
func (r Remark) Message(name func(parameter string) string) string {
	return (&Error{Column: r.Column, Rule: r.rule}).rule(name)
}

func (r Remark) String() string { return r.Message(message.Plain) }

const (
	areDates    = "holds dates, each of which is a category; {$drop}"
	ownTexts    = "holds a different text in each row, like an identifier; {$drop}"
	risingWhole = "holds distinct integers in increasing order, like an identifier or a row number; {$drop}"
)

// remarkRows is the minimum number of rows for a remark: five distinct numbers are in increasing
// order by chance in one table of 120.
const remarkRows = 5

// date matches a date, optionally with a time, in the order of ISO 8601 or with the year at the
// end.
var date = regexp.MustCompile(`^([0-9]{4}([-/.])[0-9]{1,2}([-/.])[0-9]{1,2}|[0-9]{1,2}([-/.])[0-9]{1,2}([-/.])[0-9]{4})([T ][0-9]{1,2}:[0-9]{2}.*)?$`)

// Remarks lists the columns of the training table that look like dates or identifiers. A table with
// only one feature column gives no remarks.
func (e *Encoder) Remarks(t *Table) []Remark {
	rising := func(in Input) bool {
		c := t.find(in.Name)
		last := 0.0
		return c != nil && c.rising(t.rows, &last, true)
	}
	return e.remarks(t.rows, rising)
}

func (e *Encoder) remarks(rows int, rising func(in Input) bool) (list []Remark) {
	if rows < remarkRows || len(e.Inputs) < 2 || e.Gram {
		return nil
	}
	for _, in := range e.Inputs {
		switch {
		case in.Number != nil && rising(in):
			list = append(list, Remark{in.Name, risingWhole})
		case in.Text != nil && !slices.ContainsFunc(in.Text.Categories, func(s string) bool { return !date.MatchString(s) }):
			list = append(list, Remark{in.Name, areDates})
		case in.Text != nil && len(in.Text.Categories) == rows:
			list = append(list, Remark{in.Name, ownTexts})
		}
	}
	return list
}

// rising reports whether the rows are integers in increasing order, all above *last unless first is
// set. It sets *last to the last integer.
func (c *column) rising(rows int, last *float64, first bool) bool {
	for i := range rows {
		v, k := c.number(i)
		if k != number || v != float64(int64(v)) || !first && v <= *last {
			return false
		}
		*last, first = v, false
	}
	return true
}
