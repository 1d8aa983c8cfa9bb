package handles

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// isPrecomputed reports whether the text of a kernel means values that are given.
func isPrecomputed(text string) bool {
	k, err := kernels.Parse(text)
	return err == nil && k == kernels.Kernel(kernels.Precomputed{})
}

// trainingPoints returns the points of the kernel precomputed() for a Gram
// matrix: a copy of it, with two columns before.
func trainingPoints(gram backend.Host[float64]) (backend.Host[float64], error) {
	if gram.Rows != gram.Cols {
		return backend.Host[float64]{}, notSquare(gram)
	}
	if err := room("x", gram.Rows, gram.Cols+2, 2); err != nil {
		return backend.Host[float64]{}, err
	}
	points, err := kernels.TrainingPoints(gram.Rows, packed(gram))
	if err != nil {
		return backend.Host[float64]{}, err
	}
	return backend.Host[float64]{Rows: gram.Rows, Cols: gram.Cols + 2, Stride: gram.Cols + 2, Data: points}, nil
}

func notSquare(gram backend.Host[float64]) error {
	return fmt.Errorf("libmercer: a precomputed kernel needs the square matrix of its values, got %d×%d", gram.Rows, gram.Cols)
}

// otherPoints returns the points of objects whose kernel values with the
// training objects are the rows of cross. Their values with themselves are not
// known; predictions of f(x) do not ask for them.
func otherPoints(cross backend.Host[float64]) (*mat.Dense, error) {
	if err := room("x", cross.Rows, cross.Cols+2, 2); err != nil {
		return nil, err
	}
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

// fittedToGram reports whether a model was fitted to a precomputed kernel.
func fittedToGram(m learners.Model) bool {
	text, ok := m.State().Params["kernel"].(string)
	return ok && isPrecomputed(text)
}

// given is a symmetric n×n matrix K that a Factor keeps, row after row.
type given struct {
	n    int
	data []float64
}

// newGiven copies a symmetric matrix; the values of the lower triangle stand for
// both.
func newGiven(gram backend.Host[float64]) (given, error) {
	if gram.Rows != gram.Cols {
		return given{}, notSquare(gram)
	}
	if err := room("x", gram.Rows, gram.Cols, 2); err != nil {
		return given{}, err
	}
	if err := kernels.CheckGram(gram.Rows, packed(gram)); err != nil {
		return given{}, err
	}
	g := given{n: gram.Rows, data: make([]float64, gram.Rows*gram.Rows)}
	for i := range g.n {
		for j := range i + 1 {
			g.data[i*g.n+j], g.data[j*g.n+i] = gram.Row(i)[j], gram.Row(i)[j]
		}
	}
	return g, nil
}

func (g *given) host() backend.Host[float64] {
	return backend.Host[float64]{Rows: g.n, Cols: g.n, Stride: g.n, Data: g.data}
}

// copyRow is what solvers.NewCholesky asks for.
func (g *given) copyRow(i int, dst []float64) { copy(dst, g.data[i*g.n:]) }

// append adds the row and column of another sample.
func (g *given) append(row []float64) {
	larger := given{n: g.n + 1, data: make([]float64, (g.n+1)*(g.n+1))}
	for i := range g.n {
		copy(larger.data[i*larger.n:], g.data[i*g.n:(i+1)*g.n])
		larger.data[i*larger.n+g.n] = row[i]
	}
	copy(larger.data[g.n*larger.n:], row)
	*g = larger
}

// remove takes row and column k out.
func (g *given) remove(k int) {
	smaller := given{n: g.n - 1, data: make([]float64, 0, (g.n-1)*(g.n-1))}
	for i := range g.n {
		if i != k {
			row := g.data[i*g.n : (i+1)*g.n]
			smaller.data = append(append(smaller.data, row[:k]...), row[k+1:]...)
		}
	}
	*g = smaller
}
