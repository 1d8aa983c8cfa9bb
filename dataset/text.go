package dataset

import (
	"fmt"
	"slices"
)

// few is how many different texts a column may have before it is asked whether
// they are categories at all.
const few = 20

// learnText learns from a coded column that has texts. counts is how often
// each entry occurs, numbers how many of the entries are numbers.
func (t *Table) learnText(c *column, counts []int, numbers int, r Rules) (*Input, error) {
	x := &Text{}
	most, present := 0, 0
	for code, e := range c.entries {
		n := counts[code]
		if n == 0 {
			continue
		}
		x.Categories = append(x.Categories, e.text)
		present += n
		if n > most || n == most && e.text < x.Fill {
			most, x.Fill = n, e.text
		}
	}
	kinds := len(x.Categories)
	switch {
	case numbers > few && numbers > kinds/2:
		row := c.firstText()
		return nil, t.cellFault(c, row, c.cell(row), fmt.Sprintf("is not a number, but %d of the %d different cells of the column are; correct it or leave it empty", numbers, kinds))
	case kinds > MaxCategories, kinds > few && kinds > present/2:
		row := c.firstText()
		return nil, t.fault(c.name, fmt.Sprintf("has %d different texts, such as %s, in %d rows: too many to be categories; drop the column", kinds, quote(c.cell(row)), t.rows))
	}
	if r.RefuseMissing {
		if row := slices.Index(c.codes, -1); row >= 0 {
			return nil, t.missingFault(c, row, refused)
		}
	}
	slices.Sort(x.Categories)
	return &Input{Name: c.name, Text: x}, nil
}

// firstText returns the first row of a coded column with a text in it.
func (c *column) firstText() int {
	return slices.IndexFunc(c.codes, func(code int32) bool { return code >= 0 && c.entries[code].kind == text })
}

// A textWriter writes the one-hot features of a column of texts.
type textWriter struct {
	place
	rule  *Text
	fill  int32   // category of a missing cell
	known []int32 // entry of the column → category, −1 for none
}

// newTextWriter needs a coded column.
func newTextWriter(p place, rule *Text) *textWriter {
	category := func(value string) int32 {
		if k, ok := slices.BinarySearch(rule.Categories, value); ok {
			return int32(k)
		}
		return -1
	}
	w := &textWriter{place: p, rule: rule, fill: category(rule.Fill)}
	for _, e := range p.column.entries {
		w.known = append(w.known, category(e.text))
	}
	return w
}

// write needs the row to be zeros.
func (w *textWriter) write(row []float64, i int) error {
	k := w.fill
	switch code := w.column.codes[i]; {
	case code >= 0:
		if k = w.known[code]; k < 0 {
			value := w.column.cell(i)
			return w.table.cellFault(w.column, i, value, fmt.Sprintf("is an unknown category; known are %s%s", list(w.rule.Categories), nearest(value, w.rule.Categories)))
		}
	case w.refuse:
		return w.table.missingFault(w.column, i, refused)
	}
	row[w.at+int(k)] = 1
	return nil
}
