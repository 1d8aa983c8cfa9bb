package host

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// CSR is a sparse matrix in compressed sparse rows. For Indptr[i] ≤ p < Indptr[i+1], row i has the element Data[p]
// in column Indices[p]; its other elements are 0. In every row the columns increase. A stored element may be 0, NaN
// or infinite. Indptr has Rows+1 numbers, the first ≥ 0. Rows and Cols are at most 2³¹−1. Check verifies these
// rules; the other methods assume them. A CSR is a mat.Matrix, but each call of At searches for the element.
type CSR[T Float] struct {
	Rows, Cols int
	Indptr     []int
	Indices    []int32
	Data       []T
}

// NewCSR returns the matrix with the given arrays. It shares the memory of data, and of indptr and indices if they
// need no conversion. NewCSR returns an error if indptr does not begin with 0 or does not end with the number of
// elements, and the errors of Check.
func NewCSR[T Float, I int | int32 | int64](rows, cols int, indptr, indices []I, data []T) (CSR[T], error) {
	m := CSR[T]{Rows: rows, Cols: cols, Data: data}
	if err := m.checkShape(len(indptr), len(indices)); err != nil {
		return CSR[T]{}, err
	}
	if indptr[0] != 0 || int64(indptr[rows]) != int64(len(indices)) {
		return CSR[T]{}, fmt.Errorf("host: csr: the row pointers go from %d to %d, not from 0 to %d, the number of elements", indptr[0], indptr[rows], len(indices))
	}
	var ok bool
	if m.Indptr, ok = any(indptr).([]int); !ok {
		m.Indptr = make([]int, len(indptr))
		for i, p := range indptr {
			if int64(int(p)) != int64(p) {
				return CSR[T]{}, fmt.Errorf("host: csr: row %d begins at element %d, but there are %d elements", i+1, p, len(indices))
			}
			m.Indptr[i] = int(p)
		}
	}
	if m.Indices, ok = any(indices).([]int32); !ok {
		m.Indices = make([]int32, len(indices))
		for p, c := range indices {
			if c < 0 || int64(c) > math.MaxInt32 {
				c = -1 // an invalid column, for which Check reports the row
			}
			m.Indices[p] = int32(c)
		}
	}
	if err := m.Check(); err != nil {
		return CSR[T]{}, err
	}
	return m, nil
}

func (m CSR[T]) checkShape(indptr, indices int) error {
	switch {
	case m.Rows < 0 || m.Cols < 0 || m.Rows > math.MaxInt32 || m.Cols > math.MaxInt32:
		return fmt.Errorf("host: csr: a %d×%d matrix; each dimension must be from 0 to %d", m.Rows, m.Cols, math.MaxInt32)
	case indptr != m.Rows+1:
		return fmt.Errorf("host: csr: %d row pointers for %d rows; a matrix has one more row pointer than rows", indptr, m.Rows)
	case indices != len(m.Data):
		return fmt.Errorf("host: csr: %d column indices for %d values", indices, len(m.Data))
	}
	return nil
}

// Check returns nil for a valid CSR. Otherwise the error names the first row that violates a rule of CSR, and the
// column, both counted from 1. Check does not check the values of the elements.
func (m CSR[T]) Check() error {
	if err := m.checkShape(len(m.Indptr), len(m.Indices)); err != nil {
		return err
	}
	if m.Indptr[0] < 0 {
		return fmt.Errorf("host: csr: row 1 must begin at element 0, but begins at %d", m.Indptr[0])
	}
	for i, from := range m.Indptr[:m.Rows] {
		to := m.Indptr[i+1]
		if to < from || to > len(m.Indices) {
			return fmt.Errorf("host: csr: row %d goes from element %d to element %d, but there are %d elements", i+1, from, to, len(m.Indices))
		}
		last := int32(-1)
		for p, c := range m.Indices[from:to] {
			switch {
			case c < 0 || int(c) >= m.Cols:
				return fmt.Errorf("host: csr: row %d: the column index of element %d is not from 1 to %d", i+1, p+1, m.Cols)
			case c == last:
				return fmt.Errorf("host: csr: row %d: column %d appears twice", i+1, c+1)
			case c < last:
				return fmt.Errorf("host: csr: row %d: column %d comes after column %d; columns must increase", i+1, c+1, last+1)
			}
			last = c
		}
	}
	return nil
}

// Dims returns Rows and Cols.
func (m CSR[T]) Dims() (rows, cols int) { return m.Rows, m.Cols }

// At returns element (i, j), found by bisection of row i. It panics if i or j is out of range.
func (m CSR[T]) At(i, j int) float64 {
	if uint(i) >= uint(m.Rows) || uint(j) >= uint(m.Cols) {
		panic(fmt.Sprintf("host: CSR.At: (%d, %d) is outside a %d×%d matrix", i, j, m.Rows, m.Cols))
	}
	columns, values := m.Row(i)
	if p, ok := slices.BinarySearch(columns, int32(j)); ok {
		return float64(values[p])
	}
	return 0
}

// T returns the transpose of m. It shares the memory of m.
func (m CSR[T]) T() mat.Matrix { return mat.Transpose{Matrix: m} }

// Row returns the columns and values of row i, which share the memory of m. It panics if there is no row i.
func (m CSR[T]) Row(i int) (columns []int32, values []T) {
	if uint(i) >= uint(m.Rows) {
		panic(fmt.Sprintf("host: CSR.Row: %d is outside a %d×%d matrix", i, m.Rows, m.Cols))
	}
	from, to := m.Indptr[i], m.Indptr[i+1]
	return m.Indices[from:to:to], m.Data[from:to:to]
}

// SliceRows returns rows i … k−1, which share the memory of m. It panics unless 0 ≤ i ≤ k ≤ Rows.
func (m CSR[T]) SliceRows(i, k int) CSR[T] {
	if i < 0 || k < i || k > m.Rows {
		panic(fmt.Sprintf("host: CSR.SliceRows: %d to %d is outside a %d×%d matrix", i, k, m.Rows, m.Cols))
	}
	if m.Rows == 0 {
		return m
	}
	return CSR[T]{Rows: k - i, Cols: m.Cols, Indptr: m.Indptr[i : k+1 : k+1], Indices: m.Indices, Data: m.Data}
}

// TakeRows returns a copy of the rows with the indices in list. It panics if an index is out of range.
func (m CSR[T]) TakeRows(list []int) CSR[T] {
	x := CSR[T]{Rows: len(list), Cols: m.Cols, Indptr: make([]int, len(list)+1)}
	for r, i := range list {
		columns, _ := m.Row(i)
		x.Indptr[r+1] = x.Indptr[r] + len(columns)
	}
	x.Indices, x.Data = make([]int32, 0, x.NNZ()), make([]T, 0, x.NNZ())
	for _, i := range list {
		columns, values := m.Row(i)
		x.Indices, x.Data = append(x.Indices, columns...), append(x.Data, values...)
	}
	return x
}

// NNZ returns the number of stored elements.
func (m CSR[T]) NNZ() int {
	if m.Rows == 0 {
		return 0
	}
	return m.Indptr[m.Rows] - m.Indptr[0]
}

// Density returns the number of stored elements divided by Rows·Cols, or 0 for a matrix without elements.
func (m CSR[T]) Density() float64 {
	if m.Rows == 0 || m.Cols == 0 {
		return 0
	}
	return float64(m.NNZ()) / (float64(m.Rows) * float64(m.Cols))
}

// Transposed returns a copy of the transpose in time and memory O(NNZ + Rows + Cols). The rows of m may have
// unsorted columns. The rows of the copy have ascending columns, with duplicates next to each other.
func (m CSR[T]) Transposed() CSR[T] {
	t := CSR[T]{Rows: m.Cols, Cols: m.Rows, Indptr: make([]int, m.Cols+1), Indices: make([]int32, m.NNZ()), Data: make([]T, m.NNZ())}
	if m.Rows == 0 {
		return t
	}
	for _, c := range m.Indices[m.Indptr[0]:m.Indptr[m.Rows]] {
		t.Indptr[c]++
	}
	end := 0
	for c, n := range t.Indptr {
		t.Indptr[c], end = end, end+n
	}
	// While elements are added, t.Indptr[c] moves to the end of row c, where row c+1 starts.
	for i := range m.Rows {
		columns, values := m.Row(i)
		for p, c := range columns {
			index := t.Indptr[c]
			t.Indices[index], t.Data[index] = int32(i), values[p]
			t.Indptr[c] = index + 1
		}
	}
	copy(t.Indptr[1:], t.Indptr)
	t.Indptr[0] = 0
	return t
}

// Float32 returns a copy of m with elements in float32; the copy shares Indices.
func (m CSR[T]) Float32() CSR[float32] {
	x := CSR[float32]{Rows: m.Rows, Cols: m.Cols, Indptr: make([]int, len(m.Indptr)), Data: make([]float32, m.NNZ())}
	if m.Rows == 0 {
		return x
	}
	first, last := m.Indptr[0], m.Indptr[m.Rows]
	x.Indices = m.Indices[first:last:last]
	for i, p := range m.Indptr {
		x.Indptr[i] = p - first
	}
	for p, v := range m.Data[first:last] {
		x.Data[p] = float32(v)
	}
	return x
}

// DenseTo writes m, including its zeros, to dst. The shapes must be equal.
func (m CSR[T]) DenseTo(dst Matrix[T]) {
	if dst.Rows != m.Rows || dst.Cols != m.Cols {
		panic(fmt.Sprintf("host: CSR.DenseTo: a %d×%d matrix into %d×%d", m.Rows, m.Cols, dst.Rows, dst.Cols))
	}
	for i := range m.Rows {
		row := dst.Row(i)
		clear(row)
		columns, values := m.Row(i)
		for p, c := range columns {
			row[c] = values[p]
		}
	}
}

// CSR returns a sparse copy of m without the zeros. It panics if a dimension exceeds 2³¹−1.
func (m Matrix[T]) CSR() CSR[T] {
	s := CSR[T]{Rows: m.Rows, Cols: m.Cols, Indptr: make([]int, m.Rows+1)}
	if err := s.checkShape(len(s.Indptr), 0); err != nil {
		panic("host: Matrix.CSR: " + err.Error())
	}
	n := 0
	for i := range m.Rows {
		for _, v := range m.Row(i) {
			if v != 0 {
				n++
			}
		}
		s.Indptr[i+1] = n
	}
	s.Indices, s.Data = make([]int32, 0, n), make([]T, 0, n)
	for i := range m.Rows {
		for c, v := range m.Row(i) {
			if v != 0 {
				s.Indices, s.Data = append(s.Indices, int32(c)), append(s.Data, v)
			}
		}
	}
	return s
}
