package dataset

import "slices"

// RowWarnings lists the cells of a row that Encoder.Features replaces, converts or ignores.
type RowWarnings struct {
	Unknown map[string]string `json:"unknown,omitempty"` // maps the name of a column to its cell: a category that the training table lacks, or a text without a known n-gram
	Missing []string          `json:"missing,omitempty"` // names of columns whose cell was missing and was replaced
	Quoted  []string          `json:"quoted,omitempty"`  // names of numeric columns for which FromRows got a string instead of a number
	Unused  []string          `json:"unused,omitempty"`  // names of columns that the training table lacks
}

// RowWarnings returns the warnings for each row of a table that Features or Texts has accepted. Columns
// are in the order of the inputs, and unused columns in the order of t.
func (e *Encoder) RowWarnings(t *Table) []RowWarnings {
	list := make([]RowWarnings, t.rows)
	cells := t.columns
	if !e.Sparse() {
		cells = t.allColumns()
	}
	columns := make(map[string]*column, len(cells))
	for _, c := range cells {
		if c.unreadable == "" {
			columns[c.name] = c
		}
	}
	for _, in := range e.Inputs {
		c := columns[in.Name]
		delete(columns, in.Name)
		if c == nil || in.Raw != "" {
			continue
		}
		var unknown []int // indices of the entries of c that are unknown
		if in.TFIDF != nil {
			unknown = unknownTexts(c, c.valueCounts(), in.TFIDF)
		}
		for i := range list {
			n := &list[i]
			_, k := c.number(i)
			switch {
			case k == missing, k == marker && in.TFIDF == nil && (in.Number != nil || e.NAValues != nil):
				n.Missing = append(n.Missing, in.Name)
			case in.Number != nil && c.quoted != nil && c.quoted[i]:
				n.Quoted = append(n.Quoted, in.Name)
			case in.Text != nil && !in.Text.has(c.cell(i)), in.TFIDF != nil && isUnknown(unknown, c.codes[i]):
				if n.Unknown == nil {
					n.Unknown = map[string]string{}
				}
				n.Unknown[in.Name] = c.cell(i)
			}
		}
	}
	for _, c := range cells {
		if columns[c.name] == nil || e.hasSparse(c.name) || slices.Contains(e.excluded(), c.name) {
			continue
		}
		for i := range list {
			if c.cell(i) != "" {
				list[i].Unused = append(list[i].Unused, c.name)
			}
		}
	}
	return list
}

// isUnknown reports whether the entry with the index `code` is in list, a result of unknownTexts.
func isUnknown(list []int, code int32) bool {
	_, unknown := slices.BinarySearch(list, int(code))
	return unknown
}

// has reports whether the text is one of the categories.
func (x *Text) has(category string) bool {
	_, found := slices.BinarySearch(x.Categories, category)
	return found
}
