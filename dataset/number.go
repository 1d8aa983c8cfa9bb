package dataset

import (
	"fmt"
	"math"
	"slices"
)

// learnNumber learns from a column that must be numbers.
func (t *Table) learnNumber(c *column, r Rules) (*Input, error) {
	values, err := t.numbers(c)
	if err != nil {
		return nil, err
	}
	if r.RefuseMissing {
		if row := slices.IndexFunc(values, math.IsNaN); row >= 0 {
			return nil, t.missingFault(c, row, refused)
		}
	}
	n, rule := numberOf(values, r.Standardize)
	if rule != "" {
		return nil, t.fault(c.name, rule)
	}
	return &Input{Name: c.name, Number: n}, nil
}

const (
	noValues = "has no values; drop the column"
	tooLarge = "has numbers too large to standardize; rescale the column"
)

// A numberWriter writes the feature of a column of numbers.
type numberWriter struct {
	place
	rule *Number
}

func (w *numberWriter) write(x []float64, width, first, last int) (int, error) {
	mean, scale := w.rule.Mean, w.rule.Scale
	var some [256]float64
	to := w.at
	for ; first < last; first += len(some) {
		for i, v := range w.column.values(some[:], first, min(first+len(some), last)) {
			if v-v != 0 {
				switch _, k := w.column.number(first + i); {
				case k > number:
					return first + i, w.table.notNumber(w.column, first+i, k)
				case w.refuse:
					return first + i, w.table.missingFault(w.column, first+i, refused)
				}
				v = w.rule.Fill
			}
			if v = (v - mean) / scale; math.IsInf(v, 0) {
				return first + i, w.table.cellFault(w.column, first+i, w.column.cell(first+i), fmt.Sprintf("leaves the range of float64 when standardized with mean %v and scale %v", mean, scale))
			}
			x[to] = v
			to += width
		}
	}
	return last, nil
}

// refused is the rule that a missing cell of a feature breaks.
const refused = "missing cells are refused: give it a value or drop the row"

// missingFault is the error for a missing cell where that breaks a rule.
func (t *Table) missingFault(c *column, row int, rule string) *Error {
	if value := c.cell(row); value != "" {
		return t.cellFault(c, row, value, "stands for a missing cell; "+rule)
	}
	return t.cellFault(c, row, "", "the cell is empty; "+rule)
}
