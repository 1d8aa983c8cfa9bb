package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mercer-go/mercer/host"
)

// maxSparseFeatures is the maximum number of features of a sparse table. A dense matrix has at most MaxFeatures.
const maxSparseFeatures = 1 << 24

// csr holds the features of a sparse table. All values are finite and nonzero.
type csr struct {
	host.CSR[float64]
	first int // number in the name of the first column: 0 in a LIBSVM file with the index 0, otherwise 1

	once    sync.Once
	columns []int   // columns[j] is the index in order of the first element of column j; the last element is len(order)
	order   []int   // indices of Data, sorted by column and then by row
	rows    []int32 // the row of each element of order
}

// column returns the cells of a column, or only its cells in the given rows.
func (m *csr) column(j int, rows []int32) []float64 {
	m.once.Do(m.byColumns)
	dense := make([]float64, m.Rows)
	for i := m.columns[j]; i < m.columns[j+1]; i++ {
		dense[m.rows[i]] = m.Data[m.order[i]]
	}
	if rows == nil {
		return dense
	}
	selected := make([]float64, len(rows))
	for i, r := range rows {
		selected[i] = dense[r]
	}
	return selected
}

// byColumns sorts the values by column.
func (m *csr) byColumns() {
	next := make([]int, m.Cols+2)
	for _, j := range m.Indices {
		next[j+2]++
	}
	for j := range m.Cols {
		next[j+2] += next[j+1]
	}
	m.order, m.rows = make([]int, len(m.Data)), make([]int32, len(m.Data))
	for r := range m.Rows {
		for k := m.Indptr[r]; k < m.Indptr[r+1]; k++ {
			pos := &next[m.Indices[k]+1]
			m.order[*pos], m.rows[*pos] = k, int32(r)
			*pos++
		}
	}
	m.columns = next[:m.Cols+1]
}

func (m *csr) number(row, column int) float64 {
	begin := m.Indptr[row]
	if i, ok := slices.BinarySearch(m.Indices[begin:m.Indptr[row+1]], int32(column)); ok {
		return m.Data[begin+i]
	}
	return 0
}

func (m *csr) text(row, column int) string { return numberText(m.number(row, column)) }

// has reports whether a column has a nonzero value in one of the given rows, or in any row if rows is nil.
func (m *csr) has(column int, rows []int32) bool {
	if rows == nil {
		return slices.Contains(m.Indices, int32(column))
	}
	return slices.ContainsFunc(rows, func(r int32) bool { return m.number(int(r), column) != 0 })
}

func (m *csr) name(column int) string { return sparseName(m.first + column) }

// sparseName returns the name of a feature of a sparse table with the given number: x3 for 3.
func sparseName(index int) string { return "x" + strconv.Itoa(index) }

// sparseIndex returns the number in the name of a feature of a sparse table: 3 of x3.
func sparseIndex(name string) (index int, ok bool) {
	digits, ok := strings.CutPrefix(name, "x")
	if !ok || len(digits) > 9 {
		return 0, false
	}
	index, err := strconv.Atoi(digits)
	return index, err == nil && "x"+strconv.Itoa(index) == name
}

// addSparse sets the sparse features of t to m. They come before the columns of t.
func (t *Table) addSparse(m *csr) { t.sparse, t.features = true, m }

func (t *Table) width() int {
	if t.features == nil {
		return 0
	}
	return t.features.Cols
}

// sparseColumn returns the column of the sparse feature with this name, or nil if there is none.
func (t *Table) sparseColumn(name string) *column {
	if t.features == nil {
		return nil
	}
	if index, ok := sparseIndex(name); ok && index >= t.features.first && index-t.features.first < t.features.Cols {
		return &column{name: name, plain: true, cells: t.features, cellColumn: index - t.features.first, rows: t.origin}
	}
	return nil
}

// allColumns returns all columns of t, including a column for each sparse feature.
func (t *Table) allColumns() []*column {
	if t.features == nil {
		return t.columns
	}
	t.expand.Do(func() {
		columns := make([]column, t.features.Cols)
		t.expanded = make([]*column, 0, len(columns)+len(t.columns))
		for j := range columns {
			columns[j] = column{name: t.features.name(j), plain: true, cells: t.features, cellColumn: j, rows: t.origin}
			t.expanded = append(t.expanded, &columns[j])
		}
		t.expanded = append(t.expanded, t.columns...)
	})
	return t.expanded
}

// nonzeros returns the number of nonzero values in the sparse features.
func (t *Table) nonzeros() int {
	m := t.features
	if t.origin == nil {
		return m.NNZ()
	}
	n := 0
	for _, r := range t.origin {
		n += m.Indptr[r+1] - m.Indptr[r]
	}
	return n
}

// matrix returns the sparse features of the rows of t. The result may share memory with t.
func (t *Table) matrix() host.CSR[float64] {
	m := t.features
	if t.origin == nil {
		return m.CSR
	}
	n := t.nonzeros()
	selected := host.CSR[float64]{Rows: t.rows, Cols: m.Cols, Indptr: make([]int, 1, t.rows+1), Indices: make([]int32, 0, n), Data: make([]float64, 0, n)}
	for _, r := range t.origin {
		columns, values := m.Row(int(r))
		selected.Indices, selected.Data = append(selected.Indices, columns...), append(selected.Data, values...)
		selected.Indptr = append(selected.Indptr, len(selected.Data))
	}
	return selected
}

// checkSparseShape does the work of checkShape for a sparse matrix.
func checkSparseShape(rows, columns int64) string {
	switch {
	case rows > math.MaxInt32:
		return fmt.Sprintf("has %d rows; at most %d can be read", rows, math.MaxInt32)
	case columns > maxSparseFeatures:
		return fmt.Sprintf("has %d columns; at most %d can be read", columns, maxSparseFeatures)
	case rows > 0 && columns == 0:
		return "has no columns"
	}
	return ""
}
