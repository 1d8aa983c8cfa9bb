package validate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/numeric"
	"gonum.org/v1/gonum/mat"
)

// Data are samples that a Runner divides. Split returns the training samples, with the indices train, and the test
// samples, with the indices test. The test samples are nil if test is empty. Several goroutines may call Split at once.
type Data interface {
	Len() int
	Split(train, test []int) (*Part, error)
}

// Part is one division of Data. Test is empty if there are no test samples.
type Part struct{ Train, Test Samples }

func (p *Part) bytes() (n int64) {
	for _, m := range []mat.Matrix{p.Train.X, p.Test.X, p.Train.Y, p.Test.Y} {
		switch m := m.(type) {
		case nil:
		case backend.CSR[float64]:
			n += numeric.SparsePoints(m).CopyBytes(m.Rows)
		case *mat.Dense:
			if m != nil {
				n += 8 * int64(len(m.RawMatrix().Data))
			}
		default:
			rows, cols := m.Dims()
			n += numeric.Bytes(numeric.Elements(rows, cols))
		}
	}
	return n
}

// Samples are Data in matrices with a row for each sample: n×d points X, which may be a backend.CSR, and n×t targets Y.
// Y, Weights and Keys may be nil. Nil weights are all 1; Keys have the meaning of learners.Options.Keys.
type Samples struct {
	X       mat.Matrix
	Y       *mat.Dense
	Weights []float64
	Keys    []uint64
}

// Len returns the number of samples.
func (s Samples) Len() int {
	if s.X == nil {
		return 0
	}
	n, _ := s.X.Dims()
	return n
}

// Split copies the samples.
func (s Samples) Split(train, test []int) (*Part, error) {
	x, err := numeric.PointsOf(s.X)
	if err != nil {
		return nil, fmt.Errorf("validate: x: %w", err)
	}
	subset := func(rows []int) Samples {
		if len(rows) == 0 {
			return Samples{}
		}
		return Samples{x.Take(rows).Matrix(), rowsAt(s.Y, rows), elementsAt(s.Weights, rows), elementsAt(s.Keys, rows)}
	}
	return &Part{subset(train), subset(test)}, nil
}

// Table is Data with the rows of a table. The statistics of a column, such as its mean and its categories, are
// computed from the training rows of each division only. If a column has no value in these rows, the model of the
// division does not use the column: see EmptyColumns.
type Table struct {
	*dataset.Table                  // the rows of weight > 0
	Weights        []float64        // weights of the rows; nil means all 1
	Encoder        *dataset.Encoder // learned from the whole table

	rules   dataset.Rules
	mu      sync.Mutex
	unknown []dataset.Unknown
	empty   map[string]bool
}

// NewTable prepares the rows of t. encoder is the encoder of a table that includes t; if it is nil,
// NewTable learns an encoder from t.
func NewTable(t *dataset.Table, r dataset.Rules, encoder *dataset.Encoder) (*Table, error) {
	rows, weights, err := r.Weighted(t)
	if err != nil {
		return nil, err
	}
	if encoder == nil {
		if encoder, err = dataset.Learn(rows, r); err != nil {
			return nil, err
		}
	}
	return &Table{Table: rows, Weights: weights, Encoder: encoder, rules: r}, nil
}

// Len returns the number of rows.
func (t *Table) Len() int { return t.Rows() }

// Split implements Data. It encodes the rows. Errors give the number of the row in the table.
func (t *Table) Split(train, test []int) (*Part, error) {
	if t == nil || t.Encoder == nil {
		return nil, errors.New("validate: the table was not made by NewTable")
	}
	trainRows, testRows := t.Select(train), t.Select(test)
	enc, err := t.Encoder.LearnPart(trainRows, t.rules)
	if err != nil {
		return nil, err
	}
	enc.RefuseUnknown = t.Encoder.RefuseUnknown
	p := &Part{Samples{Weights: elementsAt(t.Weights, train)}, Samples{Weights: elementsAt(t.Weights, test)}}
	if p.Train.X, p.Train.Y, err = encode(enc, trainRows); err == nil {
		p.Train.Keys, err = enc.Keys(trainRows)
	}
	if err == nil && len(test) > 0 {
		p.Test.X, p.Test.Y, err = encode(enc, testRows)
	}
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.unknown = dataset.MergeUnknown(t.unknown, enc.Unknown(testRows))
		for _, name := range enc.Dropped[len(t.rules.Drop):] {
			if t.empty == nil {
				t.empty = map[string]bool{}
			}
			t.empty[name] = true
		}
	}
	return p, err
}

// Unknown returns the texts that occurred in test rows but not in the training rows of the same
// division, for all divisions so far, sorted by column.
func (t *Table) Unknown() []dataset.Unknown {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortFunc(t.unknown, func(u, v dataset.Unknown) int { return strings.Compare(u.Column, v.Column) })
	return slices.Clone(t.unknown)
}

// EmptyColumns returns the columns that had no value in the training rows of at least one division
// so far, sorted. The models of these divisions do not use these columns.
func (t *Table) EmptyColumns() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.empty))
}

func encode(enc *dataset.Encoder, t *dataset.Table) (x mat.Matrix, y *mat.Dense, err error) {
	if x, err = enc.Encode(t); err == nil {
		y, err = enc.Targets(t)
	}
	return x, y, err
}

// rowsAt returns a copy of the rows at the given indices, or nil if m is nil.
func rowsAt(m *mat.Dense, rows []int) *mat.Dense {
	if m == nil || m.IsEmpty() {
		return nil
	}
	selected := mat.NewDense(len(rows), m.RawMatrix().Cols, nil)
	for i, r := range rows {
		selected.SetRow(i, m.RawRowView(r))
	}
	return selected
}

// elementsAt returns the elements of a list at the given indices, or nil for a nil list.
func elementsAt[T any](list []T, indices []int) []T {
	if list == nil {
		return nil
	}
	selected := make([]T, len(indices))
	for i, k := range indices {
		selected[i] = list[k]
	}
	return selected
}

// weightAt returns the weight of sample i; nil weights are all 1.
func weightAt(weights []float64, i int) float64 {
	if weights == nil {
		return 1
	}
	return weights[i]
}
