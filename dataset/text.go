package dataset

import (
	"fmt"
	"slices"
)

// alwaysCategories is the maximum number of distinct texts that are categories whatever the number of rows.
const alwaysCategories = 20

// firstOf returns the first row in which the cell of a column in coded form has the kind k, or −1.
func (c *column) firstOf(k kind) int {
	return slices.IndexFunc(c.codes, func(code int32) bool { return code >= 0 && c.entries[code].kind == k })
}

// firstText returns the first row whose cell is a text, or a number in an unsupported spelling.
func (c *column) firstText() int {
	return slices.IndexFunc(c.codes, func(code int32) bool { return code >= 0 && c.entries[code].kind >= otherSpelling })
}

// A textWriter writes the one-hot features of a column of texts.
type textWriter struct {
	inputColumn
	rule       *Text
	fill       int32   // category that replaces a missing cell
	strict     bool    // an unknown category is an error
	categories []int32 // category of each entry of the column; −1 for an unknown text
}

// newTextWriter returns the writer for p.column, which must have the coded form.
func newTextWriter(p inputColumn, rule *Text, strict bool) *textWriter {
	category := func(value string) int32 {
		if k, ok := slices.BinarySearch(rule.Categories, value); ok {
			return int32(k)
		}
		return -1
	}
	w := &textWriter{inputColumn: p, rule: rule, strict: strict, fill: category(rule.Fill)}
	for _, e := range p.column.entries {
		k := category(e.text)
		if p.naInTexts && e.kind == marker {
			k = w.fill
		}
		w.categories = append(w.categories, k)
	}
	return w
}

func (w *textWriter) write(x []float64, width, first, last int) (int, error) {
	for i := first; i < last; i++ {
		k, err := w.category(i)
		if err != nil {
			return i, err
		}
		if k >= 0 {
			x[(i-first)*width+w.offset+int(k)] = 1
		}
	}
	return last, nil
}

// category returns the category of the cell in row i, or −1 if it is unknown.
func (w *textWriter) category(i int) (int32, error) {
	code := w.column.codes[i]
	if code >= 0 && !(w.refuse && w.naInTexts && w.column.entries[code].kind == marker) {
		k := w.categories[code]
		if k < 0 && w.strict {
			value := w.column.cell(i)
			return k, w.table.cellError(w.column, i, value, fmt.Sprintf("is an unknown category; known are %s%s", list(w.rule.Categories), nearest(value, w.rule.Categories)))
		}
		return k, nil
	}
	if w.refuse {
		return -1, w.table.missingError(w.column, i, missingRefused)
	}
	return w.fill, nil
}
