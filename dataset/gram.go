package dataset

import (
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/internal/count"
)

// checkGram returns an error unless the columns of kernel values are as many as the rows.
func (t *Table) checkGram(r Rules) error {
	if r.Standardize || len(r.Categorical) > 0 {
		return t.fault("", "the values of a Gram matrix are neither standardized nor categories")
	}
	if columns := len(t.gramColumns(r)); columns != t.rows {
		return t.fault("", fmt.Sprintf("has %s and %s besides the target; a Gram matrix has as many columns as rows, column j the kernel values with row j", count.Of(t.rows, "row"), count.Of(columns, "column")))
	}
	return nil
}

// gramColumns are the places of the columns of kernel values.
func (t *Table) gramColumns(r Rules) (columns []int) {
	for j, c := range t.columns {
		if r.isFeature(c.name) {
			columns = append(columns, j)
		}
	}
	return columns
}

// checkGram is Check for an encoder of a Gram matrix.
func (e *Encoder) checkGram() error {
	for _, in := range e.Inputs {
		if e.Gram && (!e.RefuseMissing || in.Number == nil || in.Number.Mean != 0 || in.Number.Scale != 1) {
			return errors.New("dataset: encoder: the columns of a Gram matrix must be numbers as they are, none missing")
		}
	}
	return nil
}
