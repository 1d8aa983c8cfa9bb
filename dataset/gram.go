package dataset

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mercer-go/mercer/internal/count"
)

// checkGram returns an error unless the columns besides the targets are as many as the
// rows.
func (t *Table) checkGram(r Rules) error {
	if r.Standardize || len(r.Categorical) > 0 {
		return t.fault("", "the values of a Gram matrix are neither standardized nor categories")
	}
	if columns := len(t.gramColumns(r.Targets)); columns != t.rows {
		return t.fault("", fmt.Sprintf("has %s and %s besides the target; a Gram matrix has as many columns as rows, column j the kernel values with row j", count.Of(t.rows, "row"), count.Of(columns, "column")))
	}
	return nil
}

// gramColumns are the places of the columns that are not targets.
func (t *Table) gramColumns(targets []string) (columns []int) {
	for j, c := range t.columns {
		if !slices.Contains(targets, c.name) {
			columns = append(columns, j)
		}
	}
	return columns
}

// SelectGram is Select for a table whose columns besides the targets are the Gram
// matrix of its rows: of these columns too only those of the rows are left, in the same
// order. It fails where there are not as many of them as rows.
func (t *Table) SelectGram(rows []int, targets []string) (*Table, error) {
	if err := t.checkGram(Rules{Targets: targets}); err != nil {
		return nil, err
	}
	columns := t.gramColumns(targets)
	s := t.selectRows(rows)
	all := s.columns
	s.columns = nil
	for _, r := range rows {
		s.columns = append(s.columns, all[columns[r]])
	}
	for _, c := range all {
		if slices.Contains(targets, c.name) {
			s.columns = append(s.columns, c)
		}
	}
	return s, nil
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
