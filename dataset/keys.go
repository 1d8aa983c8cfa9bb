package dataset

import (
	"hash/fnv"
	"math"
	"slices"

	"github.com/mercer-go/mercer/internal/rowkey"
)

// Keys returns a key for each row, a hash of the row's cells in the named columns. Rows with equal cells have equal
// keys, in any order of the columns and any file format. Numbers are compared as numbers: 1 and 1.0 are equal.
// Missing cells are equal.
//
// Keys returns an *Error for a name that the table lacks. In a sparse table, however, such a name is a column of zeros.
func (t *Table) Keys(names []string) ([]uint64, error) {
	t = t.orEmpty()
	keys := make([]uint64, t.rows)
	for _, name := range slices.Sorted(slices.Values(names)) {
		c := t.find(name)
		if c == nil && t.sparse {
			continue
		}
		if c == nil {
			return nil, t.noColumn("column", name, t.Names())
		}
		c.addKeys(keys)
	}
	return keys, nil
}

// Keys returns the result of Table.Keys for the columns that e was learned from.
func (e *Encoder) Keys(t *Table) ([]uint64, error) {
	if e == nil {
		return nil, e.Check()
	}
	t = t.orEmpty()
	if len(e.Inputs) == 1 && e.Inputs[0].Sparse != nil && t.features != nil {
		return e.Inputs[0].Sparse.keys(t), nil
	}
	names := make([]string, 0, len(e.Inputs))
	for _, in := range e.Inputs {
		if in.Sparse != nil {
			names = in.Sparse.appendNames(names)
			continue
		}
		names = append(names, in.Name)
	}
	return t.Keys(names)
}

// addKeys adds the cells of a column to the keys of their rows.
func (c *column) addKeys(keys []uint64) {
	name := rowkey.Mix(textHash("column " + c.name))
	add := func(i int, cell uint64) {
		if cell != 0 {
			keys[i] = rowkey.Join(keys[i], cell^name)
		}
	}
	switch m, sparse := c.cells.(*csr); {
	case sparse:
		for i, v := range m.column(c.cellColumn, c.rows) {
			add(i, cellHash(v, number, ""))
		}
	case c.plain:
		for i := range keys {
			v, k := c.number(i)
			text := ""
			if k > number {
				text = c.cell(i)
			}
			add(i, cellHash(v, k, text))
		}
	default:
		hashes := make([]uint64, len(c.entries))
		for code, e := range c.entries {
			hashes[code] = cellHash(e.value, e.kind, e.text)
		}
		for i, code := range c.codes {
			if code < 0 {
				add(i, missingHash)
			} else {
				add(i, hashes[code])
			}
		}
	}
}

const missingHash = 1

// cellHash returns the hash of a cell. It is 0 for the number 0.
func cellHash(v float64, k kind, text string) uint64 {
	switch {
	case k > number:
		return textHash(text)
	case v == v && k == number:
		return math.Float64bits(v + 0) // v + 0 converts −0 to 0
	}
	return missingHash
}

func textHash(text string) uint64 {
	f := fnv.New64a()
	f.Write([]byte(text))
	return f.Sum64()
}
