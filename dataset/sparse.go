package dataset

import (
	"math"
	"slices"
)

// A sparseWriter writes the features of all columns of a sparse table. For each row it copies
// zeros, and then overwrites the features of nonzero cells.
type sparseWriter struct {
	table *Table
	cells *csr
	zeros []float64       // the features of a row whose cells are all 0; 0 for features of other writers
	place []*numberWriter // the writer of each column of cells, or nil if the column has none
}

// joinSparse replaces the writers of a sparse table by one sparseWriter, if possible.
func joinSparse(t *Table, writers []writer, width int) []writer {
	if !t.sparse || !slices.ContainsFunc(writers, func(w writer) bool { _, ok := w.(*numberWriter); return ok }) {
		return writers
	}
	s := &sparseWriter{table: t, zeros: make([]float64, width)}
	joined := []writer{s}
	for _, w := range writers {
		n, ok := w.(*numberWriter)
		if !ok || n.column.cells == nil {
			joined = append(joined, w)
			continue
		}
		zero := n.rule.feature(0)
		if math.IsInf(zero, 0) {
			return writers // the writers will report the overflow
		}
		s.zeros[n.at] = zero
		if m, ok := n.column.cells.(*csr); ok {
			s.cells = m
			for len(s.place) <= n.column.at {
				s.place = append(s.place, nil)
			}
			s.place[n.column.at] = n
		}
	}
	return joined
}

func (s *sparseWriter) write(x []float64, width, first, last int) (int, error) {
	for i := first; i < last; i++ {
		row := x[(i-first)*width:][:width]
		copy(row, s.zeros)
		if s.cells == nil {
			continue
		}
		columns, values := s.cells.Row(s.table.place(i))
		for k, at := range columns {
			if int(at) >= len(s.place) || s.place[at] == nil {
				continue
			}
			n := s.place[at]
			v := n.rule.feature(values[k])
			if math.IsInf(v, 0) {
				return n.write(row, width, i, i+1) // returns the error for the overflow
			}
			row[n.at] = v
		}
	}
	return last, nil
}
