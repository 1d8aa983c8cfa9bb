package dataset

import "math"

// A sparseWriter writes the features of all columns of a sparse table together:
// the row that zeros make, and over it what is not 0. It takes time for the
// latter only, but for one copy.
type sparseWriter struct {
	table *Table
	cells *csr
	zeros []float64       // the features of a row of zeros, 0 for other columns
	place []*numberWriter // column of cells → its writer, or nil
}

// splitSparse takes the writers that a sparseWriter can stand for out of the
// list; it is nil when there are none.
func splitSparse(t *Table, writers []writer, width int) (*sparseWriter, []writer) {
	if !t.sparse {
		return nil, writers
	}
	s := &sparseWriter{table: t, zeros: make([]float64, width)}
	var others []writer
	for _, w := range writers {
		n, ok := w.(*numberWriter)
		if !ok || n.column.cells == nil {
			others = append(others, w)
			continue
		}
		zero := (0 - n.rule.Mean) / n.rule.Scale
		if math.IsInf(zero, 0) {
			return nil, writers // which say so
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
	return s, others
}

// write writes row i of the table.
func (s *sparseWriter) write(row []float64, i int) error {
	if s == nil {
		return nil
	}
	copy(row, s.zeros)
	if s.cells == nil {
		return nil
	}
	r := s.table.place(i)
	for k := s.cells.begin[r]; k < s.cells.begin[r+1]; k++ {
		at := int(s.cells.indices[k])
		if at >= len(s.place) || s.place[at] == nil {
			continue
		}
		n := s.place[at]
		v := (s.cells.values[k] - n.rule.Mean) / n.rule.Scale
		if math.IsInf(v, 0) {
			return n.write(row, i) // which says so
		}
		row[n.at] = v
	}
	return nil
}
