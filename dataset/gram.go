package dataset

import (
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/internal/count"
)

// checkGram returns an error if the matrix of kernel values is not square, or if the rules encode it.
func (t *Table) checkGram(r Rules) error {
	if r.Standardize || len(r.Categorical) > 0 {
		return t.newError("", "a Gram matrix can be neither standardized nor categorical")
	}
	if columns := len(t.gramColumns(r)); columns != t.rows {
		return t.newError("", fmt.Sprintf("has %s and %s in addition to the target; a Gram matrix has as many columns as rows: column j holds the kernel values with row j", count.Of(t.rows, "row"), count.Of(columns, "column")))
	}
	return nil
}

// gramColumns returns the indices of the columns of kernel values.
func (t *Table) gramColumns(r Rules) (columns []int) {
	for j, c := range t.allColumns() {
		if r.isFeature(c.name) {
			columns = append(columns, j)
		}
	}
	return columns
}

// checkGram is the part of Check about a Gram matrix.
func (e *Encoder) checkGram() error {
	for _, in := range e.Inputs {
		if e.Gram && (!e.RefuseMissing || in.Number == nil || in.Number.Mean != 0 || in.Number.Scale != 1) {
			return errors.New("dataset: encoder: the columns of a Gram matrix must be numbers that are neither standardized nor missing")
		}
	}
	return nil
}
