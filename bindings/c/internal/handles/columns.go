package handles

import (
	"fmt"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/learners"
)

// encoderOf returns an encoder for a model that was fitted to plain numbers. The command mercer needs the encoder to
// apply the model to tables. Columns without names are x1, x2, … and y (y1, y2, … for several targets). A sparse matrix
// without names gets the encoder of a sparse table. The encoder is nil if the names are not valid for a table.
func encoderOf(l Learner, m learners.Model, sparse bool) *dataset.Encoder {
	d, t := m.Dims()
	e := &dataset.Encoder{RefuseMissing: true}
	inputs := d
	if sparse && l.Features == nil {
		inputs = 0
		e.Inputs = []dataset.Input{{Name: fmt.Sprintf("x1-x%d", d), Sparse: &dataset.Sparse{First: 1, Columns: d}}}
	}
	for j := range inputs {
		name := "x" + strconv.Itoa(j+1)
		if len(l.Features) == d {
			name = l.Features[j]
		}
		e.Inputs = append(e.Inputs, dataset.Input{Name: name, Number: &dataset.Number{Scale: 1}})
	}
	if !novelty(m) {
		for j := range t {
			name := "y"
			switch {
			case len(l.Targets) == t:
				name = l.Targets[j]
			case t > 1:
				name += strconv.Itoa(j + 1)
			}
			e.Outputs = append(e.Outputs, name)
		}
	}
	if k, ok := m.(learners.Classifier); ok {
		e.Labels = k.Classes().Names
		if l.Classes != nil { // the model's class numbers are indices into l.Classes
			e.Labels = l.Classes
		}
	}
	if e.Check() != nil {
		return nil
	}
	return e
}

func novelty(m learners.Model) bool {
	d, err := learners.Find(m.Learner())
	return err == nil && d.Supports(learners.Novelty)
}

// isIdentity reports whether e leaves all numbers unchanged, so that encoding a matrix has no effect.
func isIdentity(e *dataset.Encoder) bool {
	if !e.RefuseMissing {
		return false
	}
	for _, in := range e.Inputs {
		if in.Sparse != nil && in.Sparse.Scale == nil {
			continue
		}
		if in.Number == nil || in.Number.Mean != 0 || in.Number.Scale != 1 {
			return false
		}
	}
	return true
}

// rawColumns returns the names of the columns of the matrix that the function encoded takes.
func rawColumns(e *dataset.Encoder) []string {
	if e.Sparse() {
		return e.FeatureNames()
	}
	names := make([]string, len(e.Inputs))
	for j, in := range e.Inputs {
		names[j] = in.Name
	}
	return names
}

// encoded encodes x by e. The columns of x are the numeric columns of a table, in the order of rawColumns.
func encoded(e *dataset.Encoder, x backend.Host[float64]) (*mat.Dense, error) {
	names := rawColumns(e)
	if x.Cols != len(names) {
		return nil, fmt.Errorf("libmercer: predict: x has %s, but the table that the model was fitted to has %d", count.Of(x.Cols, "column"), len(names))
	}
	if err := checkMemory("x", x.Rows, x.Cols, 2); err != nil {
		return nil, err
	}
	for _, in := range e.Inputs {
		if in.Number == nil && in.Sparse == nil {
			return nil, fmt.Errorf("libmercer: predict: column %q of the model has texts, which a matrix of numbers cannot contain: use mercer predict", in.Name)
		}
	}
	columns := make([]dataset.Column, x.Cols)
	for j, name := range names {
		values := make([]float64, x.Rows)
		for i := range values {
			values[i] = x.Row(i)[j]
		}
		columns[j] = dataset.Numbers(name, values)
	}
	t, err := dataset.NewTable("x", columns...)
	if err != nil {
		return nil, err
	}
	return e.Features(t)
}
