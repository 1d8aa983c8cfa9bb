package validate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/learners"
)

// DependenceParams are the parameters of Dependence.
type DependenceParams struct {
	First   int         // index of the first of the adjacent columns in which the values of Grid are substituted
	Grid    [][]float64 // the values, each a slice with one number for each of these columns
	Weights []float64   // weights of the rows in the averages; nil means that all are 1
}

// Dependence returns the partial dependence of a model on columns of x (Friedman 2001, Greedy
// function approximation, section 8.2). Row g of the result is the average of the outputs for the n
// rows of x after the columns were set to Grid[g] in every row. The outputs are the predicted
// numbers, or for classes the probabilities if the model has them, and otherwise the decision values.
func Dependence(ctx context.Context, dev backend.Device, m learners.Model, x mat.Matrix, p DependenceParams) (*mat.Dense, error) {
	if numeric.IsNil(m) {
		return nil, errNoModel
	}
	h, err := gonum.Host("x", x)
	if err != nil {
		return nil, fmt.Errorf("validate: partial dependence: %w", err)
	}
	if len(p.Grid) == 0 {
		return nil, errors.New("validate: partial dependence: the grid is empty")
	}
	if err := numeric.CheckWeights(p.Weights, h.Rows); err != nil {
		return nil, fmt.Errorf("validate: partial dependence: %w", err)
	}
	points := mat.NewDense(h.Rows, h.Cols, nil)
	for i := range h.Rows {
		points.SetRow(i, h.Row(i))
	}
	var means *mat.Dense
	for g, values := range p.Grid {
		if p.First < 0 || p.First+len(values) > h.Cols {
			return nil, fmt.Errorf("validate: partial dependence: columns %d to %d of x cannot be replaced: the last column of x is %d", p.First+1, p.First+len(values), h.Cols)
		}
		for i := range h.Rows {
			copy(points.RawRowView(i)[p.First:], values)
		}
		o, err := Apply(ctx, dev, m, points, true, nil)
		if err != nil {
			return nil, err
		}
		f := o.Values
		if o.Decision != nil {
			f = o.Decision
		}
		if o.Proba != nil {
			f = o.Proba
		}
		_, outputs := f.Dims()
		if means == nil {
			means = mat.NewDense(len(p.Grid), outputs, nil)
		}
		for j := range outputs {
			means.Set(g, j, numeric.Mean(mat.Col(nil, j, f), p.Weights))
		}
	}
	return means, nil
}

const gridPoints = 40

// Grid returns values of a column for Dependence, in ascending order: all different values if there are at most 40
// of them, otherwise 40 equidistant values from the 5 % quantile of the column to the 95 % quantile.
func Grid(column []float64) []float64 {
	sorted := slices.Sorted(slices.Values(column))
	different := slices.Compact(slices.Clone(sorted))
	if len(different) <= gridPoints {
		return different
	}
	last := len(sorted) - 1
	low, high := sorted[last/20], sorted[last-last/20]
	if low == high { // at least about 90 % of the values are equal
		low, high = sorted[0], sorted[last]
	}
	return floats.Span(make([]float64, gridPoints), low, high)
}
