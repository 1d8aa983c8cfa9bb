package dataset

// delimiters are those that are recognized in a header, the most usual first.
const delimiters = ",;\t|"

// delimiterOf returns the delimiter that occurs most often in the first line of a
// text, outside quotation marks; a comma where there is none.
func delimiterOf(text []byte) byte {
	var counts [256]int
	quoted := false
	for _, c := range text {
		if c == '"' {
			quoted = !quoted
		}
		if c == '\n' && !quoted {
			break
		}
		if !quoted {
			counts[c]++
		}
	}
	best := delimiters[0]
	for _, d := range []byte(delimiters) {
		if counts[d] > counts[best] {
			best = d
		}
	}
	return best
}

// cellsOfRow is the number of cells that a row of a CSV file has.
func (t *Table) cellsOfRow() int {
	if t.index {
		return len(t.columns) + 1
	}
	return len(t.columns)
}
