package dataset

import "slices"

// Unknown describes the categories of one column that its encoder does not know.
type Unknown struct {
	Column  string
	Rows    int    // number of rows with a category that the training table lacks
	Example string // the first of these categories in sorted order
}

// Unknown returns the columns of t with categories that the training table lacks, in the order of
// the inputs. Features encodes such a category as zeros, unless RefuseUnknown is set.
func (e *Encoder) Unknown(t *Table) []Unknown {
	var list []Unknown
	for _, in := range e.Inputs {
		c := t.find(in.Name)
		if in.Text == nil || c == nil || c.plain {
			continue
		}
		u := Unknown{Column: in.Name}
		for code, n := range c.valueCounts() {
			text := c.entries[code].text
			if _, known := slices.BinarySearch(in.Text.Categories, text); n > 0 && !known && !(e.NAValues != nil && c.entries[code].kind == marker) {
				u.add(n, text)
			}
		}
		if u.Rows > 0 {
			list = append(list, u)
		}
	}
	return list
}

func (u *Unknown) add(rows int, example string) {
	if u.Rows == 0 || example < u.Example {
		u.Example = example
	}
	u.Rows += rows
}

// MergeUnknown merges the unknown categories of other rows into list.
func MergeUnknown(list, more []Unknown) []Unknown {
	for _, u := range more {
		i := slices.IndexFunc(list, func(v Unknown) bool { return v.Column == u.Column })
		if i < 0 {
			list = append(list, u)
			continue
		}
		list[i].add(u.Rows, u.Example)
	}
	return list
}
