package dataset

import (
	"math"
	"slices"
)

// A sparseWriter writes the features of all columns of a sparse table. It fills each row with the features of zeros,
// and then sets the features of the nonzero cells.
type sparseWriter struct {
	table   *Table
	cells   *csr
	zeros   []float64       // the features of a row whose cells are all 0; 0 for features of other writers
	writers []*numberWriter // the writer of each column of cells, or nil if the column has none
}

// joinSparse replaces the writers of a sparse table by one sparseWriter, if possible.
func joinSparse(t *Table, writers []writer, width int) []writer {
	if !t.sparse || !slices.ContainsFunc(writers, func(w writer) bool { _, ok := w.(*numberWriter); return ok }) {
		return writers
	}
	s := &sparseWriter{table: t, zeros: make([]float64, width)}
	merged := []writer{s}
	for _, w := range writers {
		n, ok := w.(*numberWriter)
		if !ok || n.column.cells == nil {
			merged = append(merged, w)
			continue
		}
		zero := n.rule.feature(0)
		if math.IsInf(zero, 0) {
			return writers // the writers will report the overflow
		}
		s.zeros[n.offset] = zero
		if m, ok := n.column.cells.(*csr); ok {
			s.cells = m
			for len(s.writers) <= n.column.cellColumn {
				s.writers = append(s.writers, nil)
			}
			s.writers[n.column.cellColumn] = n
		}
	}
	return merged
}

func (s *sparseWriter) write(x []float64, width, first, last int) (int, error) {
	for i := first; i < last; i++ {
		row := x[(i-first)*width:][:width]
		copy(row, s.zeros)
		if s.cells == nil {
			continue
		}
		columns, values := s.cells.Row(s.table.sourceRow(i))
		for k, j := range columns {
			if int(j) >= len(s.writers) || s.writers[j] == nil {
				continue
			}
			n := s.writers[j]
			v := n.rule.feature(values[k])
			if math.IsInf(v, 0) {
				return n.write(row, width, i, i+1) // returns the error for the overflow
			}
			row[n.offset] = v
		}
	}
	return last, nil
}
