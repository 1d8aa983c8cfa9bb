package handles

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/gram"
)

// points returns m in the form that a learner or a solver with the kernel k requires: sparse, if m is sparse and
// not a Gram matrix. precomputed reports whether m is a Gram matrix.
func (m Matrix) points(k kernels.Kernel) (points numeric.Points, precomputed bool, err error) {
	if precomputed, err = kernels.IsPrecomputed(k); err != nil {
		return points, false, err
	}
	if m.CSR.Rows > 0 && !precomputed {
		return numeric.SparsePoints(m.CSR), false, nil
	}
	h, err := m.host("x")
	if err == nil && precomputed {
		h, err = trainingPoints(h)
	}
	return numeric.DensePoints(h), precomputed, err
}

// trainingPoints returns the points of the kernel precomputed() for a Gram matrix.
func trainingPoints(values backend.Host[float64]) (backend.Host[float64], error) {
	if values.Rows != values.Cols {
		return backend.Host[float64]{}, notSquare(values)
	}
	if err := checkMemory("x", values.Rows, values.Cols+2, 2); err != nil {
		return backend.Host[float64]{}, err
	}
	return gram.TrainingPoints(values)
}

func notSquare(values backend.Host[float64]) error {
	return fmt.Errorf("libmercer: a precomputed kernel needs the square matrix of its values, got %d×%d", values.Rows, values.Cols)
}

// otherPoints returns the points of objects whose kernel values with the training objects are the rows of cross.
func otherPoints(cross backend.Host[float64]) (*mat.Dense, error) {
	if err := checkMemory("x", cross.Rows, cross.Cols+2, 2); err != nil {
		return nil, err
	}
	points, err := gram.OtherPoints(cross, nil)
	if err != nil {
		return nil, err
	}
	return denseOf(points), nil
}

// givenMatrix is a symmetric n×n matrix K, stored by rows for a Factor.
type givenMatrix struct {
	n    int
	data []float64
}

// newGiven copies a symmetric matrix; the lower triangle of values determines both triangles.
func newGiven(values backend.Host[float64]) (givenMatrix, error) {
	if values.Rows != values.Cols {
		return givenMatrix{}, notSquare(values)
	}
	if err := checkMemory("x", values.Rows, values.Cols, 2); err != nil {
		return givenMatrix{}, err
	}
	if err := gram.Check(values); err != nil {
		return givenMatrix{}, err
	}
	g := givenMatrix{n: values.Rows, data: make([]float64, values.Rows*values.Rows)}
	for i := range g.n {
		for j := range i + 1 {
			g.data[i*g.n+j], g.data[j*g.n+i] = values.Row(i)[j], values.Row(i)[j]
		}
	}
	return g, nil
}

func (g *givenMatrix) host() backend.Host[float64] {
	return backend.Host[float64]{Rows: g.n, Cols: g.n, Stride: g.n, Data: g.data}
}

// copyRow copies row i up to the diagonal, for solvers.NewCholesky.
func (g *givenMatrix) copyRow(i int, dst []float64) { copy(dst, g.data[i*g.n:]) }

// append adds the row and column of another sample.
func (g *givenMatrix) append(row []float64) {
	larger := givenMatrix{n: g.n + 1, data: make([]float64, (g.n+1)*(g.n+1))}
	for i := range g.n {
		copy(larger.data[i*larger.n:], g.data[i*g.n:(i+1)*g.n])
		larger.data[i*larger.n+g.n] = row[i]
	}
	copy(larger.data[g.n*larger.n:], row)
	*g = larger
}

func (g *givenMatrix) remove(k int) {
	smaller := givenMatrix{n: g.n - 1, data: make([]float64, 0, (g.n-1)*(g.n-1))}
	for i := range g.n {
		if i != k {
			row := g.data[i*g.n : (i+1)*g.n]
			smaller.data = append(append(smaller.data, row[:k]...), row[k+1:]...)
		}
	}
	*g = smaller
}
