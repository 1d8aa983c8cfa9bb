package held

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// isPrecomputed tells whether the text of a kernel means values that are given.
func isPrecomputed(text string) bool {
	k, err := kernels.Parse(text)
	return err == nil && k == kernels.Kernel(kernels.Precomputed{})
}

// trainingPoints returns the points of the kernel precomputed() for a Gram
// matrix: a copy of it, with two columns before.
func trainingPoints(gram backend.Host[float64]) (backend.Host[float64], error) {
	if gram.Rows != gram.Cols {
		return backend.Host[float64]{}, fmt.Errorf("libmercer: a precomputed kernel needs the square matrix of its values, got %d×%d", gram.Rows, gram.Cols)
	}
	points, err := kernels.TrainingPoints(gram.Rows, packed(gram))
	if err != nil {
		return backend.Host[float64]{}, err
	}
	return backend.Host[float64]{Rows: gram.Rows, Cols: gram.Cols + 2, Stride: gram.Cols + 2, Data: points}, nil
}

// otherPoints returns the points of objects whose kernel values with the
// training objects are the rows of cross. Their values with themselves are not
// known; predictions of f(x) do not ask for them.
func otherPoints(cross backend.Host[float64]) (*mat.Dense, error) {
	points, err := kernels.OtherPoints(cross.Cols, packed(cross), make([]float64, cross.Rows))
	if err != nil {
		return nil, err
	}
	return mat.NewDense(cross.Rows, cross.Cols+2, points), nil
}

// packed returns the elements of h without gaps between its rows.
func packed(h backend.Host[float64]) []float64 {
	if h.Stride == h.Cols {
		return h.Data[:h.Rows*h.Cols]
	}
	data := make([]float64, 0, h.Rows*h.Cols)
	for i := range h.Rows {
		data = append(data, h.Row(i)...)
	}
	return data
}

// fittedToGram tells whether a model was fitted to a precomputed kernel.
func fittedToGram(m learners.Model) bool {
	text, ok := m.State().Params["kernel"].(string)
	return ok && isPrecomputed(text)
}
