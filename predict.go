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

// Model returns the fitted model as a learners.Model, or nil if m is nil or zero.
func (m *Model[M]) Model() learners.Model {
	if m == nil {
		return nil
	}
	return m.predictor.Model()
}

// Dims returns the number of columns of x and of the result of Predict. Both are 0 if m is nil or zero.
func (m *Model[M]) Dims() (features, outputs int) {
	if m == nil {
		return 0, 0
	}
	return m.predictor.Dims()
}

// Predict returns the n×outputs predictions for the rows of x: numbers, or class labels.
func (m *Model[M]) Predict(ctx context.Context, x mat.Matrix) (*mat.Dense, error) {
	if err := m.begin("predict"); err != nil {
		return nil, err
	}
	defer m.use.RUnlock()
	return m.predictor.Predict(ctx, x)
}

// PredictRow sets dst, one number for each output, to the prediction for one point x. It is faster than Predict for
// a matrix of one row.
func (m *Model[M]) PredictRow(ctx context.Context, dst, x []float64) error {
	if err := m.begin("predict"); err != nil {
		return err
	}
	defer m.use.RUnlock()
	return m.predictor.PredictRow(ctx, dst, x)
}

// PredictOptions selects the optional results of PredictRows.
type PredictOptions struct {
	// Level, such as 0.9, requests the fields Lower and Upper for numbers (see Model.Intervals) or
	// the field Set for classes (see Model.PredictionSets). Level 0 requests none of these fields.
	Level float64
	Std   bool // requests Std, from Model.Std
	Bound bool // requests Bound, from Model.PredictBound, which then also computes Values
}

// Prediction is the prediction for one row of a table. The keys of Values, Lower, Upper, Std and Bound
// are the names of the targets.
type Prediction struct {
	Class               string             `json:"class,omitempty"`         // predicted class of a classifier
	Probabilities       map[string]float64 `json:"probabilities,omitempty"` // probabilities of the classes, if the model computes them
	Set                 []string           `json:"set,omitempty"`           // classes that include the observed class with probability Level
	Values              map[string]float64 `json:"values,omitempty"`        // predicted numbers, if the model is not a classifier
	Lower               map[string]float64 `json:"lower,omitempty"`         // with Upper: the interval that contains a new target with probability Level
	Upper               map[string]float64 `json:"upper,omitempty"`
	Std                 map[string]float64 `json:"std,omitempty"`
	Bound               map[string]float64 `json:"bound,omitempty"` // bounds on the distance of Values from the predictions of the exact solution
	dataset.RowWarnings                    // the cells that were replaced, converted or ignored
}

// Encoder returns the rules by which Encode makes features from the columns of a table, or nil if
// the model was fitted to matrices. The caller must not modify the encoder.
func (m *Model[M]) Encoder() *dataset.Encoder {
	if m == nil {
		return nil
	}
	return m.bundle.Encoder
}

// Encode returns the features of rows, for Predict and the other methods. rows is a *dataset.Table or an argument
// of dataset.FromRows: a []map[string]any, a struct or a slice of structs with JSON names, or a json.RawMessage.
// Target columns may be absent. The features are a backend.CSR for a sparse table and for the texts of
// dataset.Rules.TFIDF; otherwise they are a *mat.Dense.
func (m *Model[M]) Encode(ctx context.Context, rows any) (mat.Matrix, error) {
	if err := m.begin("encode"); err != nil {
		return nil, err
	}
	defer m.use.RUnlock()
	_, x, err := m.encode(ctx, rows)
	return x, err
}

// encode converts rows to a table, and also returns the features of this table.
func (m *Model[M]) encode(ctx context.Context, rows any) (t *dataset.Table, x mat.Matrix, err error) {
	if m.bundle.Encoder == nil {
		return nil, nil, errors.New("mercer: encode: the model was fitted to matrices, not to a table: pass features to Predict instead")
	}
	if x, ok := rows.(mat.Matrix); ok {
		return nil, x, nil
	}
	t, ok := rows.(*dataset.Table)
	if !ok {
		if t, err = dataset.FromRows("", rows); err != nil {
			return nil, nil, err
		}
	}
	x, err = m.bundle.Features(ctx, t, objects.Options{})
	return t, x, err
}

// PredictRows returns the predictions for rows of a table, in any form that Encode accepts. It returns an error
// that names the column if every row lacks a column of the model, or if a numeric column has a cell that is not a
// number. The RowWarnings of a row list all cells that were replaced or ignored. rows may also be the result of
// Encode; then there are no RowWarnings.
func (m *Model[M]) PredictRows(ctx context.Context, rows any, want PredictOptions) ([]Prediction, error) {
	if err := m.begin("predict"); err != nil {
		return nil, err
	}
	defer m.use.RUnlock()
	t, x, err := m.encode(ctx, rows)
	if err != nil {
		return nil, err
	}
	n, _ := x.Dims()
	list := make([]Prediction, n)
	if t != nil {
		for i, notes := range m.bundle.Encoder.RowWarnings(t) {
			list[i].RowWarnings = notes
		}
	}
	if want.Bound {
		y, bounds, err := m.predictBound(ctx, x)
		if err != nil {
			return nil, err
		}
		return list, m.describeValues(ctx, list, x, y, bounds, want)
	}
	y, err := m.predictor.Predict(ctx, x)
	if err != nil {
		return nil, err
	}
	if c, ok := learners.Model(m.Fitted).(learners.Classifier); ok {
		return list, m.describeClasses(ctx, list, c, x, y, want)
	}
	return list, m.describeValues(ctx, list, x, y, nil, want)
}

// describeValues stores in list the numbers y that a regression model predicts for the rows of x, their bounds, and the
// results that the options want request. The argument bounds may be nil.
func (m *Model[M]) describeValues(ctx context.Context, list []Prediction, x mat.Matrix, y, bounds *mat.Dense, want PredictOptions) (err error) {
	var std, lower, upper *mat.Dense
	if want.Std {
		if std, err = m.std(ctx, x); err != nil {
			return err
		}
	}
	if want.Level != 0 {
		if lower, upper, err = m.intervals(ctx, x, want.Level); err != nil {
			return err
		}
	}
	names := m.bundle.Encoder.TargetNames()
	if len(names) == 0 {
		names = []string{"f"} // a novelty detector has no target
	}
	byName := func(values *mat.Dense, i int) map[string]float64 {
		if values == nil {
			return nil
		}
		row := map[string]float64{}
		for j, name := range names {
			row[name] = values.At(i, j)
		}
		return row
	}
	for i := range list {
		p := &list[i]
		p.Values, p.Std, p.Bound, p.Lower, p.Upper = byName(y, i), byName(std, i), byName(bounds, i), byName(lower, i), byName(upper, i)
	}
	return nil
}

// describeClasses stores in list the classes that c predicts for the rows of x, whose labels are y.
func (m *Model[M]) describeClasses(ctx context.Context, list []Prediction, c learners.Classifier, x mat.Matrix, y *mat.Dense, want PredictOptions) (err error) {
	if want.Std {
		return m.lacks("standard deviation", "it predicts classes, which have probabilities or a Set")
	}
	var sets, proba *mat.Dense
	if want.Level != 0 {
		if sets, err = m.sets(ctx, x, want.Level); err != nil {
			return err
		}
	}
	if p, ok := learners.As[learners.Prober](c); ok {
		if proba, err = p.Proba(ctx, m.dev, x); err != nil {
			return err
		}
	}
	classes := c.Classes()
	for i := range list {
		p := &list[i]
		p.Class = classes.Names[classes.Index(y.At(i, 0))]
		for j, name := range classes.Names {
			if proba != nil {
				if p.Probabilities == nil {
					p.Probabilities = map[string]float64{}
				}
				p.Probabilities[name] = proba.At(i, j)
			}
			if sets != nil && sets.At(i, j) == 1 {
				p.Set = append(p.Set, name)
			}
		}
	}
	return nil
}

// factored is a model with the factors that its intervals and standard deviations need. If the factors are too
// large to keep, notKept is the reason.
type factored struct {
	model   learners.Model
	notKept error // wraps learners.ErrNotKept
}

// Prepare does the work of the first call of Intervals or Std in advance, in about the time of a fit. If ctx is
// done, Prepare returns the error of ctx, but the computation continues for later calls until Close. If the result
// would take more than half of the free memory, the model does not keep it, and Prepare returns an error that wraps
// learners.ErrNotKept.
func (m *Model[M]) Prepare(ctx context.Context) error {
	if err := m.begin("prepare"); err != nil {
		return err
	}
	defer m.use.RUnlock()
	_, uncertain := learners.As[learners.Uncertain](m.Fitted)
	if !uncertain && (m.bundle.Calibration != nil || !m.bundle.HasIntervals()) {
		return nil
	}
	f, err := m.prepared(ctx)
	if err == nil {
		err = f.notKept
	}
	if err != nil {
		return fmt.Errorf("mercer: prepare: %w", err)
	}
	return nil
}

// prepared returns the model that computes intervals and standard deviations.
func (m *Model[M]) prepared(ctx context.Context) (*factored, error) {
	return m.factors.Get(ctx, "", func(ctx context.Context) (*factored, error) {
		bundle, err := m.bundle.Complete(ctx, objects.Options{})
		if err != nil {
			return nil, err
		}
		f := &factored{model: bundle.Model}
		if p, ok := bundle.Model.(learners.Preparer); ok {
			if err = p.Prepare(ctx, m.dev); errors.Is(err, learners.ErrNotKept) {
				f.notKept, err = err, nil
			}
		}
		return f, err
	})
}

// lacks returns the error for a method that the model does not support.
func (m *Model[M]) lacks(what, remedy string) error {
	return fmt.Errorf("mercer: this model of %s has no %s: %s", m.Fitted.Learner(), what, remedy)
}

// Classes returns the classes of a classifier, in the order of the columns of Decision and Proba.
// For other models it returns the zero value.
func (m *Model[M]) Classes() learners.Classes {
	if m == nil {
		return learners.Classes{}
	}
	if c, ok := learners.Model(m.Fitted).(learners.Classifier); ok {
		return c.Classes()
	}
	return learners.Classes{}
}

// Decision returns the decision values of a classifier: see learners.Classifier.
func (m *Model[M]) Decision(ctx context.Context, x mat.Matrix) (*mat.Dense, error) {
	if err := m.begin("decision"); err != nil {
		return nil, err
	}
	defer m.use.RUnlock()
	c, ok := learners.Model(m.Fitted).(learners.Classifier)
	if !ok {
		return nil, m.lacks("decision values", "it predicts numbers")
	}
	return c.Decision(ctx, m.dev, x)
}

// Proba returns the n×K probabilities of the classes.
func (m *Model[M]) Proba(ctx context.Context, x mat.Matrix) (*mat.Dense, error) {
	if err := m.begin("probabilities"); err != nil {
		return nil, err
	}
	defer m.use.RUnlock()
	p, ok := learners.As[learners.Prober](m.Fitted)
	if !ok {
		return nil, m.lacks("probabilities", "models of logistic, kernel-logistic and rvc have them, and models of svc fitted with Probabilities")
	}
	return p.Proba(ctx, m.dev, x)
}

// Neighbors returns, for each row of x, the indices of the samples of positive weight that determine its
// prediction, nearest first, and their squared distances: see learners.KernelKNNModel.
func (m *Model[M]) Neighbors(ctx context.Context, x mat.Matrix) (samples [][]int, squares [][]float64, err error) {
	if err := m.begin("neighbors"); err != nil {
		return nil, nil, err
	}
	defer m.use.RUnlock()
	k, ok := learners.Model(m.Fitted).(interface {
		Neighbors(context.Context, backend.Device, mat.Matrix) ([][]int, [][]float64, error)
	})
	if !ok {
		return nil, nil, m.lacks("neighbors", "kernel-knn has them")
	}
	return k.Neighbors(ctx, m.dev, x)
}

// PairwiseDecision returns the n×K(K−1)/2 decision values of the classifiers of the pairs of
// classes: see learners.SVCModel.
func (m *Model[M]) PairwiseDecision(ctx context.Context, x mat.Matrix) (*mat.Dense, error) {
	if err := m.begin("pairs"); err != nil {
		return nil, err
	}
	defer m.use.RUnlock()
	k, ok := learners.Model(m.Fitted).(interface {
		PairwiseDecision(context.Context, backend.Device, mat.Matrix) (*mat.Dense, error)
	})
	if !ok {
		return nil, m.lacks("pairs of classes", "svc has them")
	}
	return k.PairwiseDecision(ctx, m.dev, x)
}

// Std returns the standard deviations of new targets at the rows of x, noise included: n×outputs.
// The first call for a Gaussian process takes as long as a fit, also after Load: see Prepare.
func (m *Model[M]) Std(ctx context.Context, x mat.Matrix) (*mat.Dense, error) {
	if err := m.begin("std"); err != nil {
		return nil, err
	}
	defer m.use.RUnlock()
	return m.std(ctx, x)
}

func (m *Model[M]) std(ctx context.Context, x mat.Matrix) (*mat.Dense, error) {
	if _, ok := learners.As[learners.Uncertain](m.Fitted); !ok {
		return nil, m.lacks("standard deviation", "models of gaussian-process, bayes-ridge and rvm have one, and models of ridge, nystrom-ridge and fourier-ridge fitted with Std; Intervals needs none")
	}
	f, err := m.prepared(ctx)
	if err != nil {
		return nil, err
	}
	v, err := f.model.(learners.Uncertain).Variance(ctx, m.dev, x)
	if err != nil {
		return nil, err
	}
	v.Apply(func(_, _ int, v float64) float64 { return math.Sqrt(v) }, v)
	return v, nil
}

// PredictBound returns the predictions at the rows of x, n×outputs, and proven bounds on their
// distances from the predictions of the exact solution: see learners.Bounded. Models of
// learners.KernelRidge, GaussianProcess, Ridge, NystromRidge and FourierRidge may have such bounds.
func (m *Model[M]) PredictBound(ctx context.Context, x mat.Matrix) (values, bounds *mat.Dense, err error) {
	if err := m.begin("bound"); err != nil {
		return nil, nil, err
	}
	defer m.use.RUnlock()
	return m.predictBound(ctx, x)
}

func (m *Model[M]) predictBound(ctx context.Context, x mat.Matrix) (values, bounds *mat.Dense, err error) {
	b, ok := learners.Model(m.Fitted).(learners.Bounded)
	if !ok {
		return nil, nil, m.lacks("proven bound", "kernel-ridge, gaussian-process, ridge, nystrom-ridge and fourier-ridge have one")
	}
	return b.PredictBound(ctx, m.dev, x)
}

// Effects returns the derivatives of the outputs with respect to the features at the rows of x, their averages, and the
// standard errors of the averages if the model has them. For the features whose indices are in the list binary, and
// which have two values, it returns differences of the outputs instead of derivatives: see learners.MarginalEffects.
func (m *Model[M]) Effects(ctx context.Context, x mat.Matrix, binary []int) (*learners.Effects, error) {
	if err := m.begin("effects"); err != nil {
		return nil, err
	}
	defer m.use.RUnlock()
	return learners.MarginalEffects(ctx, m.dev, m.Fitted, x, learners.EffectParams{Binary: binary})
}

// Calibrate calibrates Intervals, or for a classifier PredictionSets, with samples that were not in the training
// set: see learners.Calibrate. Save includes the calibration. No other method may run at the same time.
func (m *Model[M]) Calibrate(ctx context.Context, x, y mat.Matrix) error {
	if err := m.begin("calibrate"); err != nil {
		return err
	}
	defer m.use.RUnlock()
	c, err := learners.Calibrate(ctx, m.dev, m.Fitted, x, y)
	if err == nil {
		m.bundle.Calibration = c
	}
	return err
}

// Intervals returns the bounds, n×outputs, between which new targets at the rows of x lie with probability level.
// After Calibrate the bounds hold for any distribution and take no longer than a prediction. Without Calibrate, the
// bounds are those of the jackknife+ if the model supports it (learners.Jackknife), and otherwise the quantiles of
// a normal distribution with the standard deviation Std. In both cases the first call may take as long as a fit,
// also after Load: see Prepare.
func (m *Model[M]) Intervals(ctx context.Context, x mat.Matrix, level float64) (lower, upper *mat.Dense, err error) {
	if err := m.begin("intervals"); err != nil {
		return nil, nil, err
	}
	defer m.use.RUnlock()
	return m.intervals(ctx, x, level)
}

func (m *Model[M]) intervals(ctx context.Context, x mat.Matrix, level float64) (lower, upper *mat.Dense, err error) {
	if _, ok := learners.Model(m.Fitted).(learners.Classifier); ok {
		return nil, nil, m.lacks("intervals", "it predicts classes, which PredictionSets lists")
	}
	if !m.bundle.HasIntervals() {
		return nil, nil, m.lacks("intervals", "call Calibrate with samples that it was not fitted to")
	}
	b := m.bundle
	if b.Calibration == nil {
		f, err := m.prepared(ctx)
		if err != nil {
			return nil, nil, err
		}
		b.Model = f.model
	}
	return b.Intervals(ctx, m.dev, x, level)
}

// PredictionSets returns an n×K matrix whose element for a row of x and a class is 1 if the class is in the set of the
// row, otherwise 0. The set contains the observed class with probability level. Call Calibrate before PredictionSets.
func (m *Model[M]) PredictionSets(ctx context.Context, x mat.Matrix, level float64) (*mat.Dense, error) {
	if err := m.begin("sets"); err != nil {
		return nil, err
	}
	defer m.use.RUnlock()
	return m.sets(ctx, x, level)
}

func (m *Model[M]) sets(ctx context.Context, x mat.Matrix, level float64) (*mat.Dense, error) {
	c, ok := learners.Model(m.Fitted).(learners.Classifier)
	if !ok {
		return nil, m.lacks("sets of classes", "it predicts numbers, which have Intervals")
	}
	if m.bundle.Calibration == nil {
		return nil, m.lacks("sets of classes", "call Calibrate with samples that it was not fitted to")
	}
	return m.bundle.Calibration.PredictionSets(ctx, m.dev, c, x, level)
}
