package dataset

import "slices"

// Unknown describes the categories or texts of a column that the encoder does not know.
type Unknown struct {
	Column  string
	TFIDF   bool   // the column has tf-idf features
	Rows    int    // number of rows with an unknown cell
	Example string // an unknown category or text: the first one in sorted order that is not empty, or ""
}

// Unknown returns an entry for each column of t with unknown cells, in the order of the inputs: categories that the
// training table lacks, and tf-idf texts without a known n-gram. Features encodes them as zeros, unless
// RefuseUnknown is set.
func (e *Encoder) Unknown(t *Table) []Unknown {
	var list []Unknown
	for _, in := range e.Inputs {
		if in.Text == nil && in.TFIDF == nil {
			continue
		}
		c := t.find(in.Name)
		if c == nil || c.plain {
			continue
		}
		u := Unknown{Column: in.Name, TFIDF: in.TFIDF != nil}
		counts := c.valueCounts()
		if u.TFIDF {
			empty := t.rows
			for _, n := range counts {
				empty -= n
			}
			u.add(empty, "")
			for _, code := range unknownTexts(c, counts, in.TFIDF) {
				u.add(counts[code], c.entries[code].text)
			}
		} else {
			for code, n := range counts {
				text := c.entries[code].text
				if n > 0 && !in.Text.has(text) && !(e.NAValues != nil && c.entries[code].kind == marker) {
					u.add(n, text)
				}
			}
		}
		if u.Rows > 0 {
			list = append(list, u)
		}
	}
	return list
}

func (u *Unknown) add(rows int, example string) {
	if u.Example == "" || example != "" && example < u.Example {
		u.Example = example
	}
	u.Rows += rows
}

// MergeUnknown returns list after merging other, the unknown categories of other rows, into it.
func MergeUnknown(list, other []Unknown) []Unknown {
	for _, u := range other {
		i := slices.IndexFunc(list, func(v Unknown) bool { return v.Column == u.Column })
		if i < 0 {
			list = append(list, u)
			continue
		}
		list[i].add(u.Rows, u.Example)
	}
	return list
}
