package dataset

import (
	"fmt"
	"math"
	"regexp"
	"slices"

	"github.com/mercer-go/mercer/internal/message"
)

// A ColumnWarning is a warning about a column of features that looks like a date or an identifier, or in which most
// cells are missing.
type ColumnWarning struct {
	Column string
	rule   string
}

// Message says what is unusual about the column and what to do. name maps a parameter to its name in a front end.
func (r ColumnWarning) Message(name func(parameter string) string) string {
	return (&Error{Column: r.Column, Rule: r.rule}).rule(name)
}

func (r ColumnWarning) String() string { return r.Message(message.Plain) }

const (
	areDates       = "holds dates, and each date becomes a category; {$drop}"
	distinctTexts  = "holds a different text in each row, like an identifier; {$drop}"
	risingIntegers = "holds distinct integers in increasing order, like an identifier or a row number; {$drop}"
)

// warningRows is the minimum number of rows for warnings: five distinct numbers in random order are increasing with
// probability 1/120.
const warningRows = 5

// date matches a date, or a date and a time. The date has the order of ISO 8601 or ends with the year.
var date = regexp.MustCompile(`^([0-9]{4}([-/.])[0-9]{1,2}([-/.])[0-9]{1,2}|[0-9]{1,2}([-/.])[0-9]{1,2}([-/.])[0-9]{4})([T ][0-9]{1,2}:[0-9]{2}.*)?$`)

// ColumnWarnings returns warnings about t, the table from which e was learned: about columns that look like dates
// or identifiers, and about columns in which more than half of the cells were missing. If only one column became
// features, there are no warnings.
func (e *Encoder) ColumnWarnings(t *Table) []ColumnWarning {
	return e.columnWarnings(t.rows, func(in Input) columnFacts {
		c := t.find(in.Name)
		if c == nil {
			return columnFacts{}
		}
		last := 0.0
		f := columnFacts{rising: c.rising(t.rows, &last, true), missingFraction: c.mostlyMissing(t.rows)}
		if row := c.firstOf(marker); !c.plain && row >= 0 {
			f.marker = c.cell(row)
		}
		return f
	})
}

// columnFacts holds the properties of a column, besides its Input, from which warnings are made.
type columnFacts struct {
	rising          bool    // the cells are integers in strictly increasing order
	missingFraction float64 // fraction of the rows without a value if it exceeds 1/2, otherwise 0
	marker          string  // text of the first missing cell that is not empty, or ""
}

func (e *Encoder) columnWarnings(rows int, facts func(in Input) columnFacts) (list []ColumnWarning) {
	if rows < warningRows || len(e.Inputs) < 2 || e.Gram {
		return nil
	}
	for _, in := range e.Inputs {
		f := facts(in)
		if f.missingFraction > 0.5 {
			list = append(list, ColumnWarning{in.Name, in.mostlyMissing(f)})
		}
		switch {
		case in.Number != nil && f.rising:
			list = append(list, ColumnWarning{in.Name, risingIntegers})
		case in.Text != nil && !slices.ContainsFunc(in.Text.Categories, func(s string) bool { return !date.MatchString(s) }):
			list = append(list, ColumnWarning{in.Name, areDates})
		case in.Text != nil && len(in.Text.Categories) == rows:
			list = append(list, ColumnWarning{in.Name, distinctTexts})
		}
	}
	return list
}

// mostlyMissing returns the text of a warning about a column in which most cells are missing.
func (in Input) mostlyMissing(f columnFacts) string {
	fill := "the median"
	if in.TFIDF != nil {
		fill = "the features of an empty text"
	}
	if in.Text != nil {
		fill = "the category " + quote(in.Text.Fill)
	}
	first, advice := "", "{$drop}"
	if in.Text != nil && slices.Contains(defaultNAValues(), f.marker) {
		first, advice = fmt.Sprintf(" (%s counts as missing)", quote(f.marker)), "{$drop|$keep-default-na}"
	}
	return fmt.Sprintf("has no value%s in %.0f %% of the rows: these cells get %s; %s", first, math.Floor(100*f.missingFraction), fill, advice)
}

// mostlyMissing returns the fraction of missing cells if it exceeds 1/2, and 0 otherwise.
func (c *column) mostlyMissing(rows int) float64 {
	values := 0
	for i := range rows {
		if _, k := c.number(i); k != missing && k != marker {
			if values++; 2*values >= rows {
				return 0
			}
		}
	}
	return float64(rows-values) / float64(rows)
}

// rising reports whether the cells are integers in increasing order, greater than *last unless first is set. It
// sets *last to the last integer.
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
