package learners

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/solvers/lsq"
	"gonum.org/v1/gonum/mat"
)

// ridgeSamples are the samples of weight > 0 of a ridge model that has intervals, and
// empty for one that has none.
type ridgeSamples struct {
	x, y    backend.Host[float64] // n×d and n×t
	weights []float64             // nil: all 1
}

// HasIntervals reports whether the model keeps the samples that Intervals needs.
func (m *RidgeModel) HasIntervals() bool { return m.samples.x.Rows > 0 && m.samples.y.Rows > 0 }

// Intervals implements Jackknife, for a model that was fitted with
// Ridge.Intervals: 2nd² operations for each λ, and 2nd for each point. At λ = 0 the
// features must be independent, as for the fit; condition numbers up to about 1e7
// of X leave digits.
func (m *RidgeModel) Intervals(ctx context.Context, dev backend.Device, x mat.Matrix, level float64) (lower, upper *mat.Dense, err error) {
	if lower, upper, err = m.intervals(ctx, dev, x, level); err != nil {
		return nil, nil, fmt.Errorf("learners: ridge: intervals: %w", err)
	}
	return lower, upper, nil
}

func (m *RidgeModel) intervals(ctx context.Context, dev backend.Device, x mat.Matrix, level float64) (lower, upper *mat.Dense, err error) {
	h, err := m.predictor().check(dev, x)
	if err != nil {
		return nil, nil, err
	}
	if !m.HasIntervals() {
		return nil, nil, errors.New("the model did not keep its samples: fit it with intervals = true")
	}
	rank, err := jackknifeRank(level, m.samples.x.Rows)
	if err != nil {
		return nil, nil, err
	}
	f, err := m.Predict(ctx, dev, x)
	if err != nil {
		return nil, nil, err
	}
	c, err := lsq.New(ctx, m.samples.x, m.samples.y, m.samples.weights, m.fitted)
	if err != nil {
		return nil, nil, err
	}
	frame := run.NewTask(ctx, dev, nil)
	defer frame.Mem.FreeAll()
	lower, upper = mat.NewDense(h.Rows, m.coef.Cols, nil), mat.NewDense(h.Rows, m.coef.Cols, nil)
	byLambda := outputsByLambda(m.lambda, m.lambdas, m.coef.Cols)
	for _, lambda := range slices.Sorted(maps.Keys(byLambda)) {
		a, err := c.Jackknife(frame, lambda)
		if err != nil {
			return nil, nil, err
		}
		errs, err := a.Errors(m.coef, m.intercept)
		if err != nil {
			return nil, nil, err
		}
		err = a.Influence(frame, h, func(first int, b backend.Host[float64]) {
			for _, j := range byLambda[lambda] {
				jackknife(dev.Info().Threads, rank, j, first, lower, upper, f, errs, b)
			}
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return lower, upper, nil
}
