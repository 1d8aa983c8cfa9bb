package dataset

import "slices"

// Unknown is what a table has in a column of texts that its encoder does not know.
type Unknown struct {
	Column  string
	Rows    int    // with a category that was not in the training table
	Example string // the first of these categories in sorted order
}

// Unknown returns the columns of t with categories that were not in the training
// table, in the order of the inputs: Features makes them zeros, unless RefuseUnknown.
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

// MergeUnknown adds what other rows have to what some have.
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
