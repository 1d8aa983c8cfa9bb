package learners

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// A field is a part of a model as its State has it. A model lists its fields once, in
// the order in which they are read: save writes one, load reads and checks it, the
// fields before it being read already.
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

// stateOf is Model.State; without fields where the model is not fitted.
func stateOf(m fielded) State {
	s := State{Learner: m.Learner(), Params: map[string]any{}, Arrays: map[string]backend.Host[float64]{}}
	if features, _ := m.Dims(); features > 0 {
		for _, f := range m.fields() {
			f.save(s)
		}
	}
	return s
}

// restore makes the model of a State.
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

// size is a dimension that a field must have, known when the fields before it are
// read; nil: any but 0.
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
func matrixField(name string, to *backend.Host[float64], rows, cols size) field {
	return field{
		save: func(s State) { s.Arrays[name] = *to },
		load: func(s State) (err error) {
			*to, err = s.array(name, rows.value(), cols.value())
			return err
		},
	}
}

// rowField is an array of one row, whose numbers obey a rule.
func rowField(name string, to *[]float64, cols size, r rule) field {
	return field{
		save: func(s State) { s.Arrays[name] = numeric.Row(*to) },
		load: func(s State) error {
			h, err := s.array(name, 1, cols.value())
			if err != nil {
				return err
			}
			*to = h.Row(0)
			for j, v := range *to {
				if err := r.check(v); err != nil {
					return fmt.Errorf("array %q: column %d %w", name, j+1, err)
				}
			}
			return nil
		},
	}
}

// optional is a field of the array name that is left out where it is empty.
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

// optionalRow is a rowField that is left out where it is empty.
func optionalRow(name string, to *[]float64, cols size, r rule) field {
	return optional(name, rowField(name, to, cols, r))
}

// numberField is an array of one number that obeys a rule.
func numberField(name string, to *float64, r rule) field {
	row := []float64{*to}
	f := rowField(name, &row, exactly(1), r)
	return field{save: f.save, load: func(s State) error {
		err := f.load(s)
		*to = row[0]
		return err
	}}
}

// paramField is a parameter that is a number and obeys a rule.
func paramField(name string, to *float64, r rule) field {
	return field{
		save: func(s State) { s.Params[name] = *to },
		load: func(s State) error {
			v, err := param[float64](s, name)
			if err == nil && !r.ok(v) {
				err = fmt.Errorf("parameter %q must be %s, got %v", name, r.text, v)
			}
			*to = v
			return err
		},
	}
}

func lambdaField(to *float64) field { return paramField("lambda", to, nonNegative) }

// intField is a parameter that is an integer ≥ 0.
func intField(name string, to *int) field {
	v := float64(*to)
	f := paramField(name, &v, rule{"an integer ≥ 0", func(v float64) bool { return v >= 0 && v <= math.MaxInt32 && v == math.Trunc(v) }})
	return field{save: f.save, load: func(s State) error {
		err := f.load(s)
		*to = int(v)
		return err
	}}
}

// boolField is a parameter that is true or false.
func boolField(name string, to *bool) field {
	return field{
		save: func(s State) { s.Params[name] = *to },
		load: func(s State) (err error) {
			*to, err = param[bool](s, name)
			return err
		},
	}
}

// fixedField is a parameter that has one value in all models of a kind.
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

// pointsField is a kernel, the parameter "kernel", and the array of the points that it
// works on.
func pointsField(name string, k *kernels.Kernel, points *backend.Host[float64]) field {
	return field{
		save: func(s State) { s.Params["kernel"], s.Arrays[name] = (*k).String(), *points },
		load: func(s State) error {
			text, err := param[string](s, "kernel")
			if err != nil {
				return err
			}
			if *k, err = kernels.Parse(text); err != nil {
				return err
			}
			if *points, err = s.array(name, -1, -1); err != nil {
				return err
			}
			return (*k).Check(points.Cols)
		},
	}
}

// classesField are the classes of a classifier.
func classesField(c *Classes) field { return field{c.save, c.load} }

// derived computes, or checks, what follows from the fields before it.
func derived(load func() error) field {
	return field{save: func(State) {}, load: func(State) error { return load() }}
}

// columnsOf is the number of columns of the decision values for classes.
func columnsOf(c *Classes) size { return func() int { return c.Columns() } }

// numberOf is the number of classes.
func numberOf(c *Classes) size { return func() int { return c.Len() } }
