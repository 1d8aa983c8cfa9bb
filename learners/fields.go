package learners

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// A field stores one part of a model in the State of the model. load may use the values of the preceding fields in
// the model's list of fields.
type field struct {
	save func(s State)
	load func(s State) error
}

// fielded is a model that is saved and restored by its fields.
type fielded interface {
	Model
	fields() []field
	setLearner(name string)
}

// stateOf implements Model.State; the State of a model that is not fitted has no fields.
func stateOf(m fielded) State {
	s := State{Learner: m.Learner(), Params: map[string]any{}, Arrays: map[string]backend.Host[float64]{}}
	if features, _ := m.Dims(); features > 0 {
		for _, f := range m.fields() {
			f.save(s)
		}
	}
	return s
}

func (d *Description) restore(s State) (Model, error) {
	m, err := d.model(s)
	if err != nil {
		return nil, err
	}
	m.setLearner(s.Learner)
	for _, f := range m.fields() {
		if err := f.load(s); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// size returns the dimension that an array must have. It may depend on the preceding fields. A nil
// size allows any dimension except 0.
type size func() int

func (n size) value() int {
	if n == nil {
		return -1
	}
	return n()
}

func exactly(n int) size { return func() int { return n } }

func rowsOf(h *backend.Host[float64]) size { return func() int { return h.Rows } }

func colsOf(h *backend.Host[float64]) size { return func() int { return h.Cols } }

// matrixField is an array of finite numbers.
func matrixField(name string, value *backend.Host[float64], rows, cols size) field {
	return field{
		save: func(s State) { s.Arrays[name] = *value },
		load: func(s State) (err error) {
			*value, err = s.array(name, rows.value(), cols.value())
			return err
		},
	}
}

// rowField is an array of one row whose numbers satisfy a rule.
func rowField(name string, value *[]float64, cols size, r rule) field {
	return field{
		save: func(s State) { s.Arrays[name] = numeric.Row(*value) },
		load: func(s State) error {
			h, err := s.array(name, 1, cols.value())
			if err != nil {
				return err
			}
			*value = h.Row(0)
			for j, v := range *value {
				if err := r.check(v); err != nil {
					return fmt.Errorf("array %q: column %d %w", name, j+1, err)
				}
			}
			return nil
		},
	}
}

// optional returns f, the field of the array with the given name, as a field that is omitted if the array is empty.
func optional(name string, f field) field {
	return field{
		save: func(s State) {
			f.save(s)
			if h := s.Arrays[name]; h.Rows*h.Cols == 0 {
				delete(s.Arrays, name)
			}
		},
		load: func(s State) error {
			if _, ok := s.Arrays[name]; !ok {
				return nil
			}
			return f.load(s)
		},
	}
}

// optionalRow is a rowField that is omitted if it is empty.
func optionalRow(name string, value *[]float64, cols size, r rule) field {
	return optional(name, rowField(name, value, cols, r))
}

// numberField is an array of one number that satisfies a rule.
func numberField(name string, value *float64, r rule) field {
	row := []float64{*value}
	f := rowField(name, &row, exactly(1), r)
	return field{save: f.save, load: func(s State) error {
		err := f.load(s)
		*value = row[0]
		return err
	}}
}

// paramField is a numeric parameter that satisfies a rule.
func paramField(name string, value *float64, r rule) field {
	return field{
		save: func(s State) { s.Params[name] = *value },
		load: func(s State) error {
			v, err := param[float64](s, name)
			if err == nil && !r.ok(v) {
				err = fmt.Errorf("parameter %q must be %s, got %v", name, r.text, v)
			}
			*value = v
			return err
		},
	}
}

func lambdaField(value *float64) field { return paramField("lambda", value, nonNegative) }

func intField(name string, value *int) field {
	v := float64(*value)
	f := paramField(name, &v, rule{"an integer ≥ 0", isCount})
	return field{save: f.save, load: func(s State) error {
		err := f.load(s)
		*value = int(v)
		return err
	}}
}

func boolField(name string, value *bool) field {
	return field{
		save: func(s State) { s.Params[name] = *value },
		load: func(s State) (err error) {
			*value, err = param[bool](s, name)
			return err
		},
	}
}

// fixedField is a parameter that has the same value in all models of a kind.
func fixedField[T comparable](name string, value T) field {
	return field{
		save: func(s State) { s.Params[name] = value },
		load: func(s State) error {
			v, err := param[T](s, name)
			if err == nil && v != value {
				err = fmt.Errorf("parameter %q must be %v, got %v", name, value, v)
			}
			return err
		},
	}
}

func numberOfPoints(p *numeric.Points) size { return func() int { return p.Rows } }

// pointsField is the field of a kernel and its points: the parameter "kernel" and an array. Sparse
// points are stored as in backend.CSR: in the arrays name+".starts", 1×(m+1), and, unless they are
// empty, name+".columns" and name+".values", 1×nonzeros, with the parameter name+".features".
func pointsField(name string, k *kernels.Kernel, points *numeric.Points) field {
	return field{
		save: func(s State) {
			s.Params["kernel"] = (*k).String()
			if points.Sparse == nil {
				s.Arrays[name] = points.Dense
				return
			}
			saveSparse(s, name, *points.Sparse)
		},
		load: func(s State) error {
			text, err := param[string](s, "kernel")
			if err != nil {
				return err
			}
			if *k, err = kernels.Parse(text); err != nil {
				return err
			}
			if _, sparse := s.Arrays[name+".starts"]; sparse {
				x, err := loadSparse(s, name)
				if err != nil {
					return err
				}
				*points = numeric.SparsePoints(x)
				return (*k).Check(points.Cols)
			}
			h, err := s.array(name, -1, -1)
			if err != nil {
				return err
			}
			*points = numeric.DensePoints(h)
			return (*k).Check(points.Cols)
		},
	}
}

// saveSparse saves x with its row pointers counted from 0.
func saveSparse(s State, name string, x backend.CSR[float64]) {
	starts := make([]float64, x.Rows+1)
	for i := range starts {
		starts[i] = float64(x.Indptr[i] - x.Indptr[0])
	}
	s.Params[name+".features"], s.Arrays[name+".starts"] = float64(x.Cols), numeric.Row(starts)
	if x.NNZ() == 0 {
		return
	}
	columns := make([]float64, x.NNZ())
	for p, c := range x.Indices[x.Indptr[0]:x.Indptr[x.Rows]] {
		columns[p] = float64(c)
	}
	s.Arrays[name+".columns"], s.Arrays[name+".values"] = numeric.Row(columns), numeric.Row(x.Data[x.Indptr[0]:x.Indptr[x.Rows]])
}

func loadSparse(s State, name string) (x backend.CSR[float64], err error) {
	features, err := param[float64](s, name+".features")
	if err != nil {
		return x, err
	}
	starts, err := s.array(name+".starts", 1, -1)
	if err != nil {
		return x, err
	}
	var columns, values backend.Host[float64]
	if _, nonEmpty := s.Arrays[name+".columns"]; nonEmpty {
		if columns, err = s.array(name+".columns", 1, -1); err == nil {
			values, err = s.array(name+".values", 1, columns.Cols)
		}
		if err != nil {
			return x, err
		}
	}
	if starts.Cols < 2 || !isCount(features) || features < 1 {
		return x, fmt.Errorf("array %q: the model has %d points and %v features, but needs at least one of each", name+".starts", starts.Cols-1, features)
	}
	integers := func(suffix string, h backend.Host[float64]) (list []int, err error) {
		if h.Rows == 0 {
			return nil, nil
		}
		for p, v := range h.Row(0) {
			if !isCount(v) {
				return nil, fmt.Errorf("array %q: column %d must be an integer from 0 to %d, got %v", name+suffix, p+1, math.MaxInt32, v)
			}
			list = append(list, int(v))
		}
		return list, nil
	}
	indptr, err := integers(".starts", starts)
	if err != nil {
		return x, err
	}
	indices, err := integers(".columns", columns)
	if err != nil {
		return x, err
	}
	x = backend.CSR[float64]{Rows: starts.Cols - 1, Cols: int(features), Indptr: indptr, Indices: make([]int32, len(indices)), Data: values.Data}
	for p, c := range indices {
		x.Indices[p] = int32(c)
	}
	if x.Data = x.Data[:len(indices)]; indptr[0] != 0 || indptr[x.Rows] != len(indices) {
		return x, fmt.Errorf("array %q goes from %d to %d, not from 0 to %d, the number of values", name+".starts", indptr[0], indptr[x.Rows], len(indices))
	}
	if err := x.Check(); err != nil {
		return x, fmt.Errorf("array %q: %w", name, err)
	}
	return x, nil
}

// isCount reports whether v is an integer from 0 to 2³¹ − 1.
func isCount(v float64) bool { return v >= 0 && v <= math.MaxInt32 && v == math.Trunc(v) }

func classesField(c *Classes) field { return field{c.save, c.load} }

// derived returns a field that saves nothing. Its load computes or checks values that follow from the preceding fields.
func derived(load func() error) field {
	return field{save: func(State) {}, load: func(State) error { return load() }}
}

// columnsOf returns, as a size, the number of columns of the decision values for c.
func columnsOf(c *Classes) size { return func() int { return c.Columns() } }

func numberOf(c *Classes) size { return func() int { return c.Len() } }
