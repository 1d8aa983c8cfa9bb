package dataset

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/internal/count"
)

// A writer writes the features of one column.
type writer interface {
	// write fills its part of x, rows of that width which are zeros, from the rows first
	// to last − 1 of the table. It ends with the first fault, and returns its row.
	write(x []float64, width, first, last int) (row int, err error)
}

// blockNumbers is how much of the features is written at once, column by column.
const blockNumbers = 1 << 15

// A place is where a writer reads and writes.
type place struct {
	table  *Table
	column *column
	refuse bool // missing cells
	marked bool // markers are missing cells in columns of texts
	at     int  // the first feature's place in a row
}

// Features encodes the columns of t that e was learnt from, whatever their
// order in t, as a matrix of t.Rows() rows with the columns that FeatureNames
// names. Other columns of t are ignored, the target among them.
//
// A column that t does not have, a table without rows, and a cell that breaks
// a rule (not a number where numbers were learnt, an unknown category or a missing
// cell where that is refused) are each an *Error; the first by line, then by column,
// is reported.
func (e *Encoder) Features(t *Table) (*mat.Dense, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	if err := e.checkBase(t, e.indexBase(t)); err != nil {
		return nil, err
	}
	return e.features(t)
}

// features is Features without the checks of e and of where indices begin.
func (e *Encoder) features(t *Table) (*mat.Dense, error) {
	if kind := e.Raw(); kind != "" {
		return nil, t.fault(e.Inputs[0].Name, fmt.Sprintf("was learnt as a column of %ss, which are no numbers", kind))
	}
	writers, width, err := e.writers(t)
	if err != nil {
		return nil, err
	}
	if t.rows == 0 {
		return nil, t.noRows()
	}
	if t.rows > math.MaxInt/8/width || t.tooSparse(width) {
		return nil, t.fault("", fmt.Sprintf("%s of %d features are too many to be written out, with the zeros", count.Of(t.rows, "row"), width))
	}
	data := make([]float64, t.rows*width)
	writers = joinSparse(t, writers, width)
	block := max(1, blockNumbers/width)
	err = parallel(t.rows, block, func(first, last int) (fault error) {
		for begin := first; begin < last; begin += block {
			end := min(begin+block, last)
			for _, w := range writers {
				row, err := w.write(data[begin*width:end*width], width, begin, end)
				if err != nil { // of those behind it only one in a row before comes first
					fault, end, last = err, row, row
				}
			}
		}
		return fault
	})
	if err != nil {
		return nil, err
	}
	return mat.NewDense(t.rows, width, data), nil
}

// writers finds the column of each input.
func (e *Encoder) writers(t *Table) (writers []writer, width int, err error) {
	columns := make(map[string]*column, len(t.columns))
	for _, c := range t.columns {
		columns[c.name] = c
	}
	for i := range e.Inputs {
		in := &e.Inputs[i]
		c := columns[in.Name]
		if c == nil && t.sparse {
			c = t.absent(in.Name)
		}
		if c == nil {
			return nil, 0, t.noColumn("feature column", in.Name, e.unused(t))
		}
		place := place{table: t, column: c, refuse: e.RefuseMissing, marked: e.NAValues != nil, at: width}
		switch {
		case in.Number != nil:
			writers = append(writers, &numberWriter{place, in.Number})
		case c.plain:
			return nil, 0, t.fault(c.name, fmt.Sprintf("holds numbers where texts were learnt: %s", list(in.Text.Categories)))
		default:
			writers = append(writers, newTextWriter(place, in.Text, e.RefuseUnknown))
		}
		width += in.width()
	}
	return writers, width, nil
}

// unused names the columns of t that e has no use for: a misspelt column is
// among them.
func (e *Encoder) unused(t *Table) []string {
	return slices.DeleteFunc(t.Names(), func(name string) bool {
		return slices.ContainsFunc(e.Inputs, func(in Input) bool { return in.Name == name })
	})
}

// Targets returns the target columns of t, one row for each of t's rows and
// one column for each target, as they are: targets are neither replaced nor
// standardized. A target that names classes is given by their places in
// Classes, from 0. An encoder without targets, a table without rows or without
// a target column, a cell that is missing or not a number, and a class that was
// not there when the encoder was learnt are each an error.
func (e *Encoder) Targets(t *Table) (*mat.Dense, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	if len(e.Outputs) == 0 {
		return nil, t.fault("", "no target column was named when the features were learnt")
	}
	return e.targets(t)
}

// targets is Targets without the checks of e.
func (e *Encoder) targets(t *Table) (*mat.Dense, error) {
	if t.rows == 0 {
		return nil, t.noRows()
	}
	if e.Labels != nil {
		return e.indices(t)
	}
	y := mat.NewDense(t.rows, len(e.Outputs), nil)
	for j, name := range e.Outputs {
		c := t.find(name)
		if c == nil {
			return nil, t.noColumn("target column", name, t.Names())
		}
		for i := range t.rows {
			v, k := c.number(i)
			switch k {
			case number:
				y.Set(i, j, v)
			case missing, marker:
				return nil, t.missingFault(c, i, "a target needs a value: give it one or drop the row")
			default:
				return nil, t.cellFault(c, i, c.cell(i), k.rule()+", as a target must be")
			}
		}
	}
	return y, nil
}
