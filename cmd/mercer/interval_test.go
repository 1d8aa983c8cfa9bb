package main

import (
	"context"
	"errors"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/learners"
)

// predicted is a model whose method Predict must not be called.
type predicted struct{ learners.Model }

func (predicted) Predict(context.Context, backend.Device, mat.Matrix) (*mat.Dense, error) {
	return nil, errors.New("predicted again")
}

// TestIntervalsPredictOnce checks that the intervals of a calibrated model are the given predictions ± a
// calibration score: for 4 scores and the level 0.5 the 3rd smallest, because ⌈0.5 (4 + 1)⌉ = 3.
func TestIntervalsPredictOnce(t *testing.T) {
	b := modelfile.Bundle{Model: predicted{}, Calibration: &learners.Calibration{Scores: backend.Host[float64]{Rows: 1, Cols: 4, Stride: 4, Data: []float64{1, 2, 4, 8}}}}
	values := mat.NewDense(2, 1, []float64{10, -3})
	c, err := (&app{}).coverOf(context.Background(), nil, b, mat.NewDense(2, 1, nil), values, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range values.RawMatrix().Data {
		if c.lower.At(i, 0) != f-4 || c.upper.At(i, 0) != f+4 {
			t.Errorf("row %d: %v to %v, want %v ± 4", i+1, c.lower.At(i, 0), c.upper.At(i, 0), f)
		}
	}
}
