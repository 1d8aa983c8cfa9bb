package mercer

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/learners"
)

// Prediction is that for one row of a table.
type Prediction struct {
	Class         string             `json:"class,omitempty"`         // of a classifier
	Probabilities map[string]float64 `json:"probabilities,omitempty"` // of its classes, where it knows them
	Values        map[string]float64 `json:"values,omitempty"`        // of other models, by the names of the targets
}

// Encode returns the features of rows for Predict and the other methods: rows are a
// *dataset.Table, or what dataset.FromRows takes: a []map[string]any, a struct or a slice
// of structs with their JSON names, or JSON as a json.RawMessage. The columns of the
// targets need not be there.
func (m *Model[M]) Encode(ctx context.Context, rows any) (*mat.Dense, error) {
	if m.bundle.Encoder == nil {
		return nil, errors.New("mercer: encode: the model was fitted to matrices, and knows no columns of a table: give Predict the features")
	}
	t, ok := rows.(*dataset.Table)
	if !ok {
		var err error
		if t, err = dataset.FromRows("", rows); err != nil {
			return nil, err
		}
	}
	return m.bundle.Features(ctx, t, objects.Options{})
}

// PredictRows predicts for rows of a table, which are what Encode takes.
func (m *Model[M]) PredictRows(ctx context.Context, rows any) ([]Prediction, error) {
	x, err := m.Encode(ctx, rows)
	if err != nil {
		return nil, err
	}
	y, err := m.Predict(ctx, x)
	if err != nil {
		return nil, err
	}
	n, outputs := y.Dims()
	list := make([]Prediction, n)
	c, ok := learners.Model(m.Fitted).(learners.Classifier)
	if !ok {
		names := m.bundle.Encoder.TargetNames()
		for i := range list {
			list[i].Values = map[string]float64{}
			for j := range outputs {
				name := "f" // of a model of novelty, which has no target
				if j < len(names) {
					name = names[j]
				}
				list[i].Values[name] = y.At(i, j)
			}
		}
		return list, nil
	}
	classes := c.Classes()
	for i := range list {
		list[i].Class = classes.Names[classes.Index(y.At(i, 0))]
	}
	p, ok := learners.Model(m.Fitted).(learners.Prober)
	if !ok {
		return list, nil
	}
	proba, err := p.Proba(ctx, m.dev, x)
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Probabilities = map[string]float64{}
		for j, name := range classes.Names {
			list[i].Probabilities[name] = proba.At(i, j)
		}
	}
	return list, nil
}

// lacks is the error of a method that the model has nothing for.
func (m *Model[M]) lacks(what, remedy string) error {
	return fmt.Errorf("mercer: this model of %s has no %s: %s", m.Fitted.Learner(), what, remedy)
}

// Classes returns the classes of a classifier, in the order of the columns of Decision
// and Proba; zero for other models.
func (m *Model[M]) Classes() learners.Classes {
	if c, ok := learners.Model(m.Fitted).(learners.Classifier); ok {
		return c.Classes()
	}
	return learners.Classes{}
}

// Decision returns the decision values of a classifier: see learners.Classifier.
func (m *Model[M]) Decision(ctx context.Context, x mat.Matrix) (*mat.Dense, error) {
	c, ok := learners.Model(m.Fitted).(learners.Classifier)
	if !ok {
		return nil, m.lacks("decision values", "it predicts numbers")
	}
	return c.Decision(ctx, m.dev, x)
}

// Proba returns the n×K probabilities of the classes.
func (m *Model[M]) Proba(ctx context.Context, x mat.Matrix) (*mat.Dense, error) {
	p, ok := learners.Model(m.Fitted).(learners.Prober)
	if !ok {
		return nil, m.lacks("probabilities", "logistic, kernel-logistic, rvc and LearnerFunc of SVC.FitProbabilities know some")
	}
	return p.Proba(ctx, m.dev, x)
}

// Neighbors returns, for each row of x, the indices of the samples of weight > 0 that its
// prediction is made of, the nearest first, and their squared distances: see
// learners.KernelKNNModel.
func (m *Model[M]) Neighbors(ctx context.Context, x mat.Matrix) (samples [][]int, squares [][]float64, err error) {
	k, ok := learners.Model(m.Fitted).(interface {
		Neighbors(context.Context, backend.Device, mat.Matrix) ([][]int, [][]float64, error)
	})
	if !ok {
		return nil, nil, m.lacks("neighbors", "kernel-knn has them")
	}
	return k.Neighbors(ctx, m.dev, x)
}

// Pairs returns the n×K(K−1)/2 decision values of the machines of the pairs of classes:
// see learners.SVCModel.
func (m *Model[M]) Pairs(ctx context.Context, x mat.Matrix) (*mat.Dense, error) {
	k, ok := learners.Model(m.Fitted).(interface {
		Pairs(context.Context, backend.Device, mat.Matrix) (*mat.Dense, error)
	})
	if !ok {
		return nil, m.lacks("pairs of classes", "svc has them")
	}
	return k.Pairs(ctx, m.dev, x)
}

// Std returns the standard deviations of new targets at the rows of x, noise included:
// n×outputs. The first call may factor a matrix: see GaussianProcessModel.Variance.
func (m *Model[M]) Std(ctx context.Context, x mat.Matrix) (*mat.Dense, error) {
	whole, err := m.whole()
	if err != nil {
		return nil, err
	}
	u, ok := whole.(learners.Uncertain)
	if !ok {
		return nil, m.lacks("standard deviation", "gaussian-process, bayes-ridge and rvm know one; Intervals needs none")
	}
	v, err := u.Variance(ctx, m.dev, x)
	if err != nil {
		return nil, err
	}
	v.Apply(func(_, _ int, v float64) float64 { return math.Sqrt(v) }, v)
	return v, nil
}

// Calibrate gives the model prediction intervals, or sets of classes, by samples that it
// was not fitted to: see learners.Calibrate. They are saved with it. No other method may
// be under way.
func (m *Model[M]) Calibrate(ctx context.Context, x, y mat.Matrix) error {
	c, err := learners.Calibrate(ctx, m.dev, m.Fitted, x, y)
	if err == nil {
		m.bundle.Calibration = c
	}
	return err
}

// Intervals returns the bounds, n×outputs, between which new targets at the rows of x lie
// with probability level, whatever their distribution: by Calibrate, or where that was
// not called the jackknife+ of models that know it (learners.Jackknife).
func (m *Model[M]) Intervals(ctx context.Context, x mat.Matrix, level float64) (lower, upper *mat.Dense, err error) {
	if _, ok := learners.Model(m.Fitted).(learners.Classifier); ok {
		return nil, nil, m.lacks("intervals", "it predicts classes, which Sets lists")
	}
	if !m.bundle.HasIntervals() {
		return nil, nil, m.lacks("intervals", "call Calibrate with samples that it was not fitted to")
	}
	b := m.bundle
	if b.Calibration == nil {
		if b.Model, err = m.whole(); err != nil {
			return nil, nil, err
		}
	}
	return b.Intervals(ctx, m.dev, x, level)
}

// Sets returns for each row of x and each class 1 where it is in the set that holds the
// observed class with probability level, otherwise 0: n×K. It needs Calibrate.
func (m *Model[M]) Sets(ctx context.Context, x mat.Matrix, level float64) (*mat.Dense, error) {
	c, ok := learners.Model(m.Fitted).(learners.Classifier)
	if !ok {
		return nil, m.lacks("sets of classes", "it predicts numbers, which have Intervals")
	}
	if m.bundle.Calibration == nil {
		return nil, m.lacks("sets of classes", "call Calibrate with samples that it was not fitted to")
	}
	return m.bundle.Calibration.Sets(ctx, m.dev, c, x, level)
}
