package dataset

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/count"
)

// Sparse makes a feature x / Scale of each feature x of a sparse table, so that zeros stay zeros. Features of later
// tables that the training table lacks are ignored, and features that a later sparse table lacks are 0.
type Sparse struct {
	First   int       `json:"first"`   // number in the name of the first feature: 0 in a LIBSVM file with the index 0, otherwise 1
	Columns int       `json:"columns"` // the number of features
	Scale   []float64 `json:"scale,omitempty"`
}

const (
	// A sparse table with fewer features than fewestSparse, or a larger fraction of nonzero values than
	// mostNonzeros, is encoded as a dense matrix.
	fewestSparse = 64
	mostNonzeros = 1. / 3
)

// Sparse reports whether e encodes tables as sparse matrices: call SparseFeatures, not Features.
func (e *Encoder) Sparse() bool {
	return e != nil && slices.ContainsFunc(e.Inputs, func(in Input) bool { return in.Sparse != nil || in.TFIDF != nil })
}

// Width returns the number of features: the columns of the result of Features or SparseFeatures.
func (e *Encoder) Width() (width int) {
	for i := range e.Inputs {
		width += e.Inputs[i].width()
	}
	return width
}

// OnlyScaled reports whether standardization only divided the features by their standard deviations, as in a sparse
// table.
func (e *Encoder) OnlyScaled() bool {
	return e != nil && slices.ContainsFunc(e.Inputs, func(in Input) bool { return in.Sparse != nil && in.Sparse.Scale != nil })
}

// takesSparse reports whether all features of t together are learned as one Input: t must be sparse, and no feature
// may be a target, the weight column, dropped or categorical.
func (t *Table) takesSparse(r Rules) bool {
	if t.features == nil || r.Gram || t.width() == 0 {
		return false
	}
	for _, name := range slices.Concat(r.excluded(), r.Categorical) {
		if t.sparseColumn(name) != nil {
			return false
		}
	}
	if r.full != nil {
		return r.full.Inputs[0].Sparse != nil // if there are sparse features, they are the first input
	}
	return isSparse(t.rows, t.width(), t.nonzeros())
}

func isSparse(rows, width, nonzeros int) bool {
	return width >= fewestSparse && float64(nonzeros) <= mostNonzeros*float64(rows)*float64(width)
}

func newSparse(first, columns int) *Input {
	return &Input{Name: fmt.Sprintf("x%d-x%d", first, first+columns-1), Sparse: &Sparse{First: first, Columns: columns}}
}

// learnSparse learns the encoding of the sparse features, or returns nil if they must be learned one by one.
func (t *Table) learnSparse(weights []float64, r Rules) (*Input, error) {
	if !t.takesSparse(r) {
		if t.width() > MaxFeatures {
			return nil, t.newError("", fmt.Sprintf("has %d features: more than %d can be used only if at most a third of their values differ from 0 and none of them is a target, a weight, dropped or categorical", t.width(), MaxFeatures))
		}
		return nil, nil
	}
	in := newSparse(t.features.first, t.width())
	s := in.Sparse
	if !r.Standardize {
		return in, nil
	}
	s.Scale = make([]float64, s.Columns)
	byColumn := t.matrix().Transposed()
	total := totalWeight(weights, t.rows)
	err := parallel(s.Columns, max(1, s.Columns/(8*runtime.GOMAXPROCS(0))), func(first, last int) error {
		var buffer []float64
		for j := first; j < last; j++ {
			rows, values := byColumn.Row(j)
			var columnWeights []float64
			if weights != nil {
				buffer = buffer[:0]
				for _, i := range rows {
					buffer = append(buffer, weights[i])
				}
				columnWeights = buffer
			}
			var rule string
			if s.Scale[j], rule = scaleOf(sparseMoments(values, columnWeights, t.rows-len(values), total)); rule != "" {
				return t.newError(t.features.name(j), rule)
			}
		}
		return nil
	})
	return in, err
}

// sparseMoments returns the moments of a column without its NaN, from its nonzero values, the number of its zeros,
// and the total weight of all rows.
func sparseMoments(values, weights []float64, zeros int, total float64) moments {
	m := momentsOf(values, weights)
	if zeros > 0 {
		m.add(repeated(total-m.N, 0))
	}
	return m
}

// scaleOf returns the standard deviation, or 1 if the column is constant. rule is the rule that the
// column violates, or "".
func scaleOf(m moments) (scale float64, rule string) {
	n, rule := m.number(0, 0, true)
	if rule != "" {
		return 0, rule
	}
	return n.Scale, ""
}

// check is the part of Encoder.Check about sparse features.
func (s *Sparse) check() error {
	if s.First != 0 && s.First != 1 || s.Columns < 1 || s.Columns > maxSparseFeatures {
		return fmt.Errorf("must have 1 to %d sparse features numbered from 0 or 1, has %d numbered from %d", maxSparseFeatures, s.Columns, s.First)
	}
	if s.Scale != nil && len(s.Scale) != s.Columns {
		return fmt.Errorf("has %s for %s", count.Of(len(s.Scale), "scale"), count.Of(s.Columns, "sparse feature"))
	}
	for j, v := range s.Scale {
		if !(v > 0) || math.IsInf(v, 1) {
			return fmt.Errorf("the scale of x%d must be finite and > 0, but is %v", s.First+j, v)
		}
	}
	return nil
}

func (s *Sparse) appendNames(names []string) []string {
	names = slices.Grow(names, s.Columns)
	for j := range s.Columns {
		names = append(names, sparseName(s.First+j))
	}
	return names
}

// has reports whether a sparse feature has the given name. s may be nil.
func (s *Sparse) has(name string) bool {
	if s == nil {
		return false
	}
	index, ok := sparseIndex(name)
	return ok && index >= s.First && index-s.First < s.Columns
}

// hasSparse reports whether the given name is one of the sparse features.
func (e *Encoder) hasSparse(name string) bool {
	return e != nil && slices.ContainsFunc(e.Inputs, func(in Input) bool { return in.Sparse.has(name) })
}

// keys returns the keys that Table.Keys returns for the names of the sparse features.
func (s *Sparse) keys(t *Table) []uint64 {
	keys := make([]uint64, t.rows)
	type cell struct {
		name  string
		value float64
	}
	var row []cell
	m := t.features
	for i := range keys {
		columns, values := m.Row(t.sourceRow(i))
		row = row[:0]
		for k, j := range columns {
			if name := m.name(int(j)); s.has(name) {
				row = append(row, cell{name, values[k]})
			}
		}
		slices.SortFunc(row, func(a, b cell) int { return strings.Compare(a.name, b.name) })
		for _, c := range row {
			keyColumn := column{name: c.name, plain: true, numbers: []float64{c.value}}
			keyColumn.addKeys(keys[i : i+1])
		}
	}
	return keys
}

// A blockWriter writes sparse features from a sparse table, or from the columns of another table with their names.
type blockWriter struct {
	rule   *Sparse
	table  *Table
	shift  int // sparse feature j of the table is feature j + shift of the encoder
	offset int // index of the first sparse feature in a row

	columns []*numberWriter // writers of the columns of a table that is not sparse
}

func (s *Sparse) writer(t *Table, offset int, refuse bool) (*blockWriter, error) {
	w := &blockWriter{rule: s, table: t, offset: offset}
	if t.features != nil {
		w.shift = t.features.first - s.First
		return w, nil
	}
	byName := make(map[string]*column, len(t.columns))
	for _, c := range t.columns {
		byName[c.name] = c
	}
	for j := range s.Columns {
		name := sparseName(s.First + j)
		c := byName[name]
		if c == nil && t.sparse {
			continue
		}
		if c == nil || c.unreadable != "" {
			return nil, t.noColumn("feature column", name, t.Names())
		}
		w.columns = append(w.columns, &numberWriter{inputColumn{table: t, column: c, refuse: refuse, offset: offset + j}, &Number{Scale: s.scale(j)}})
	}
	return w, nil
}

func (s *Sparse) scale(j int) float64 {
	if s.Scale == nil {
		return 1
	}
	return s.Scale[j]
}

// row appends the nonzero features of row i to a row of a sparse matrix.
func (w *blockWriter) row(i int, indices []int32, data []float64) ([]int32, []float64, error) {
	if w.table.features == nil {
		for _, c := range w.columns {
			var value [1]float64
			if _, err := (&numberWriter{inputColumn{table: c.table, column: c.column, refuse: c.refuse}, c.rule}).write(value[:], 1, i, i+1); err != nil {
				return nil, nil, err
			}
			if value[0] != 0 {
				indices, data = append(indices, int32(c.offset)), append(data, value[0])
			}
		}
		return indices, data, nil
	}
	columns, values := w.table.features.Row(w.table.sourceRow(i))
	for k, j := range columns {
		j := int(j) + w.shift
		if j < 0 || j >= w.rule.Columns {
			continue
		}
		v := values[k] / w.rule.scale(j)
		if math.IsInf(v, 0) {
			c := w.table.sparseColumn(w.table.features.name(int(columns[k])))
			return nil, nil, w.table.cellError(c, i, c.cell(i), fmt.Sprintf("overflows float64 when divided by the scale %v", w.rule.scale(j)))
		}
		indices, data = append(indices, int32(w.offset+j)), append(data, v)
	}
	return indices, data, nil
}

func (w *blockWriter) write(x []float64, width, first, last int) (int, error) {
	return writeRows(w, x, width, first, last)
}

// Encode returns the features of t. If Sparse is true, the result is the host.CSR[float64] of
// SparseFeatures, and otherwise the *mat.Dense of Features.
func (e *Encoder) Encode(t *Table) (mat.Matrix, error) {
	if e.Sparse() {
		return e.SparseFeatures(t)
	}
	return e.Features(t)
}

// SparseFeatures returns the result of Features as a sparse matrix, which may share memory with t. The encoder must
// be Sparse.
func (e *Encoder) SparseFeatures(t *Table) (host.CSR[float64], error) {
	var x host.CSR[float64]
	if err := e.Check(); err != nil {
		return x, err
	}
	if !e.Sparse() {
		return x, t.newError("", "the features were learned as a dense matrix")
	}
	if err := e.checkBase(t, e.indexBase(t)); err != nil {
		return x, err
	}
	if t.rows == 0 {
		return x, t.noRows()
	}
	writers, width, err := e.writers(t)
	if err != nil {
		return x, err
	}
	if w, ok := writers[0].(*blockWriter); ok && len(writers) == 1 && w.rule.Scale == nil && w.shift == 0 && t.features != nil && t.width() <= w.rule.Columns {
		x = t.matrix()
		x.Cols = width
		return x, nil
	}
	return sparseRows(t.rows, width, writers)
}

// sparseRows returns the features of all rows.
func sparseRows(rows, width int, writers []writer) (host.CSR[float64], error) {
	x := host.CSR[float64]{Rows: rows, Cols: width, Indptr: make([]int, rows+1)}
	type part struct {
		indices []int32
		data    []float64
	}
	const size = 1 << 10
	parts := make([]part, (rows+size-1)/size)
	err := parallel(rows, size, func(first, last int) error {
		for begin := first; begin < last; begin += size {
			p := &parts[begin/size]
			for i := begin; i < min(begin+size, last); i++ {
				for _, w := range writers {
					var err error
					if p.indices, p.data, err = rowOf(w, i, p.indices, p.data); err != nil {
						return err
					}
				}
				x.Indptr[i+1] = len(p.data) // end of the row in the part
			}
		}
		return nil
	})
	if err != nil {
		return x, err
	}
	n := 0
	for k := range parts {
		for i := k * size; i < min((k+1)*size, rows); i++ {
			x.Indptr[i+1] += n
		}
		n += len(parts[k].data)
	}
	x.Indices, x.Data = make([]int32, 0, n), make([]float64, 0, n)
	for k := range parts {
		x.Indices, x.Data = append(x.Indices, parts[k].indices...), append(x.Data, parts[k].data...)
		parts[k] = part{}
	}
	return x, nil
}

// A rowWriter is a writer with a method that appends the nonzero features of a row.
type rowWriter interface {
	row(i int, indices []int32, data []float64) ([]int32, []float64, error)
}

// rowOf appends the nonzero features of row i, in increasing order, to a row of a sparse matrix.
func rowOf(w writer, i int, indices []int32, data []float64) ([]int32, []float64, error) {
	switch w := w.(type) {
	case rowWriter:
		return w.row(i, indices, data)
	case *numberWriter:
		var value [1]float64
		local := *w
		local.offset = 0
		if _, err := local.write(value[:], 1, i, i+1); err != nil {
			return nil, nil, err
		}
		if value[0] != 0 {
			indices, data = append(indices, int32(w.offset)), append(data, value[0])
		}
	case *textWriter:
		k, err := w.category(i)
		if err != nil {
			return nil, nil, err
		}
		if k >= 0 {
			indices, data = append(indices, int32(w.offset)+k), append(data, 1)
		}
	}
	return indices, data, nil
}
