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
		return nil, t.cellFault(c, row, c.cell(row), fmt.Sprintf("is not a number, but most cells of the column are; correct it or leave it empty (%d of %d different cells are numbers)", numbers, kinds))
	case kinds > MaxCategories, kinds > few && kinds > present/2:
		row := c.firstText()
		return nil, t.fault(c.name, fmt.Sprintf("has %d different texts, such as %s, in %d rows: too many to be categories; drop the column", kinds, quote(c.cell(row)), t.rows))
	}
	if r.RefuseMissing {
		if row := slices.Index(c.codes, -1); row >= 0 {
			return nil, t.missingFault(c, row)
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
	table  *Table
	column *column
	rule   *Text
	refuse bool // missing cells
	at     int  // the first feature's place in a row
	fill   int  // category of a missing cell
	known  []int32
}

// newTextWriter looks up the category of each entry of the column; −1 is none.
func newTextWriter(w textWriter) (*textWriter, error) {
	if w.column.plain {
		return nil, w.table.fault(w.column.name, fmt.Sprintf("holds numbers where texts were learnt: %s", list(w.rule.Categories)))
	}
	w.known = make([]int32, len(w.column.entries))
	for i, e := range w.column.entries {
		w.known[i] = -1
		if k, ok := slices.BinarySearch(w.rule.Categories, e.text); ok {
			w.known[i] = int32(k)
		}
	}
	w.fill, _ = slices.BinarySearch(w.rule.Categories, w.rule.Fill)
	return &w, nil
}

// write needs the row to be zeros.
func (w *textWriter) write(row []float64, i int) error {
	k := int32(w.fill)
	switch code := w.column.codes[i]; {
	case code >= 0:
		if k = w.known[code]; k < 0 {
			value := w.column.cell(i)
			return w.table.cellFault(w.column, i, value, fmt.Sprintf("is an unknown category%s; known are %s", nearest(value, w.rule.Categories), list(w.rule.Categories)))
		}
	case w.refuse:
		return w.table.missingFault(w.column, i)
	}
	row[w.at+int(k)] = 1
	return nil
}
