package validate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// Score compares the predictions f of a model with the targets y of samples. A measure is nil if it
// does not apply to the task or is undefined for the samples.
type Score struct {
	N int `json:"n"` // number of samples

	RMSE *float64 `json:"rmse,omitempty"` // √(mean (y−f)²)
	MAE  *float64 `json:"mae,omitempty"`  // mean |y−f|
	// R2 is 1 − Σ(y−f)²/Σ(y−ȳ)², where ȳ is the mean of y. If y is constant, R2 is 1 for f = y, else 0.
	R2 *float64 `json:"r2,omitempty"`

	Accuracy *float64 `json:"accuracy,omitempty"` // fraction of the samples whose class was predicted correctly
	// LogLoss is the mean of −ln p, where p is the predicted probability of the observed class, but
	// at least 2⁻⁵² as in scikit-learn. It is nil without probabilities.
	LogLoss *float64 `json:"log_loss,omitempty"`
	// AUC is the area under the ROC curve for the second of two classes, where ties count one half. For K > 2 classes
	// AUC is the mean of the AUC of each class against all others, computed from the probabilities if the model has
	// them, otherwise from the decision values. AUC is nil if a class does not occur in the samples, or if the samples
	// have a class that the model does not have.
	AUC *float64 `json:"auc,omitempty"`
	// Classes has the names of the classes of the model and of any other classes that occur, in the
	// order of the labels.
	Classes []string `json:"classes,omitempty"`
	// Confusion[i][j] counts the samples of class i that were predicted as j.
	Confusion [][]int `json:"confusion,omitempty"`

	Truth        *mat.Dense `json:"-"` // n×t
	Outcome      `json:"-"`
	Weights      []float64        `json:"-"` // nil means all 1
	ModelClasses learners.Classes `json:"-"` // the classes of the model
}

// Outcome holds the predictions of a model for n samples, a row for each sample.
type Outcome struct {
	Values   *mat.Dense // result of Predict
	Decision *mat.Dense // result of Decision, for a classifier
	Proba    *mat.Dense // result of Proba, for a classifier with probabilities; otherwise nil
}

// Apply computes the predictions for the n×d samples x of a model that was returned by Scorable. If
// proba is true and the model has probabilities, they are computed too. progress, which may be nil,
// is called with the completed fraction of the work, from 0 to 1.
func Apply(ctx context.Context, dev backend.Device, m learners.Model, x mat.Matrix, proba bool, progress func(fraction float64)) (o Outcome, err error) {
	if numeric.IsNil(m) {
		return o, errNoModel
	}
	k, ok := m.(learners.Classifier)
	if !ok {
		o.Values, err = inBlocks(x, progress, func(block mat.Matrix) (*mat.Dense, error) { return m.Predict(ctx, dev, block) })
		return o, err
	}
	o.Decision, err = inBlocks(x, progress, func(block mat.Matrix) (*mat.Dense, error) { return k.Decision(ctx, dev, block) })
	if err != nil {
		return o, err
	}
	p, probable := learners.As[learners.Prober](m)
	svc, byProba := m.(*learners.SVCModel)
	if byProba = byProba && probable; byProba || proba && probable {
		o.Proba, err = inBlocks(x, progress, func(block mat.Matrix) (*mat.Dense, error) { return p.Proba(ctx, dev, block) })
		if err != nil {
			return o, err
		}
	}
	if !byProba {
		o.Values = k.Classes().Decide(o.Decision)
		return o, nil
	}
	o.Values = svc.Decide(o.Decision, o.Proba)
	if !proba {
		o.Proba = nil
	}
	return o, nil
}

// inBlocks applies f to blocks of rows of x, and reports the progress after each block.
func inBlocks(x mat.Matrix, progress func(float64), f func(block mat.Matrix) (*mat.Dense, error)) (*mat.Dense, error) {
	const maxBlocks, minRows = 50, 4096
	n, _ := x.Dims()
	step := max(minRows, (n+maxBlocks-1)/maxBlocks)
	if step >= n {
		return f(x)
	}
	points, err := numeric.PointsOf(x)
	if err != nil {
		return nil, err
	}
	var result *mat.Dense
	for i := 0; i < n; i += step {
		end := min(i+step, n)
		block, err := f(points.Slice(i, end-i).Matrix())
		if err != nil {
			return nil, err
		}
		_, cols := block.Dims()
		if result == nil {
			result = mat.NewDense(n, cols, nil)
		}
		result.Slice(i, end, 0, cols).(*mat.Dense).Copy(block)
		if progress != nil {
			progress(float64(end) / float64(n))
		}
	}
	return result, nil
}

// Check returns an error that names the first row with a value that is not finite.
func (o Outcome) Check() error {
	for _, output := range []struct {
		name   string
		values *mat.Dense
	}{{"the prediction", o.Values}, {"the decision value", o.Decision}, {"a probability", o.Proba}} {
		if err := numeric.CheckFinite(output.name, output.values); err != nil {
			return err
		}
	}
	return nil
}

// Scorable returns the form of a model that Apply and NewScore require: a novelty model is wrapped
// as a Novelty, and any other model, also nil, is returned unchanged.
func Scorable(m learners.Model) learners.Model {
	if numeric.IsNil(m) {
		return m
	}
	if d, err := learners.Find(m.Learner()); err == nil && d.Supports(learners.Novelty) {
		return Novelty{m}
	}
	return m
}

var errNoModel = errors.New("validate: no model was given")

// Novelty wraps a novelty model, which must not be nil, as a classifier. A sample with f(x) ≥ 0 is an inlier and has
// the label 1; any other sample is an outlier and has the label −1.
type Novelty struct{ learners.Model }

// Classes returns the classes outlier and inlier.
func (m Novelty) Classes() learners.Classes {
	return learners.Classes{Labels: []float64{-1, 1}, Names: []string{"outlier", "inlier"}, ZeroIsPositive: true}
}

// Decision returns f(x).
func (m Novelty) Decision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	if m.Model == nil {
		return nil, errors.New("validate: novelty: the model is missing")
	}
	return m.Model.Predict(ctx, dev, x)
}

// scoreModel returns the score of a model on the n×d samples x with the n×t targets y.
func scoreModel(ctx context.Context, dev backend.Device, m learners.Model, names []string, x mat.Matrix, y *mat.Dense, weights []float64) (*Score, error) {
	m = Scorable(m)
	o, err := Apply(ctx, dev, m, x, true, nil)
	if err != nil {
		return nil, err
	}
	return NewScore(m, names, y, o, weights)
}

// NewScore compares the predictions o of the model m, which was returned by Scorable, with the n×t
// targets y. names are the class names of learners.Options.Classes. Nil weights are all 1.
func NewScore(m learners.Model, names []string, y *mat.Dense, o Outcome, weights []float64) (*Score, error) {
	if numeric.IsNil(m) {
		return nil, errNoModel
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	if _, ok := m.(Novelty); ok {
		n, _ := y.Dims()
		for i := range n {
			if v := y.At(i, 0); v != 1 && v != -1 {
				return nil, fmt.Errorf("the target of row %d is %v: the targets of a novelty score are 1 for inliers and -1 for outliers", i+1, v)
			}
		}
	}
	var s Score
	var err error
	if k, ok := m.(learners.Classifier); ok {
		s, err = ScoreClassification(k.Classes(), names, y, o, weights)
	} else {
		s, err = ScoreRegression(y, o.Values, weights)
	}
	s.Truth, s.Outcome, s.Weights = y, o, weights
	return &s, err
}

// Loss returns the loss of sample i. For numbers it is the mean of the squared errors of the
// targets of i; for classes it is 1 if the predicted class is wrong, and 0 otherwise. Loss returns
// NaN if the score has no prediction of the sample.
func (s *Score) Loss(i int) float64 {
	if s.Truth == nil || s.Outcome.Values == nil {
		return math.NaN()
	}
	_, cols := s.Truth.Dims()
	sum := 0.0
	for j := range cols {
		d := s.Truth.At(i, j) - s.Outcome.Values.At(i, j)
		if s.Accuracy != nil && d != 0 {
			d = 1
		}
		sum += d * d / float64(cols)
	}
	return sum
}

// Error returns the root-mean-square error, or for classes the fraction of samples whose predicted
// class is wrong, or NaN if the score has neither.
func (s *Score) Error() float64 {
	if s.Accuracy == nil && s.RMSE == nil {
		return math.NaN()
	}
	if s.Accuracy != nil {
		return 1 - *s.Accuracy
	}
	return *s.RMSE
}

// Measure has the values of one measure, such as the AUC, for several models. If the measure is undefined for a
// model, the value in Scores is nil, and the mean ignores it.
type Measure struct {
	Name   string
	Scores []*float64 // in the order of the models
}

// Summary returns the mean and the standard deviation of the scores that are defined.
func (m Measure) Summary() Summary { return NewSummary(m.Defined()) }

// MarshalJSON writes the name, the mean, the standard deviation and the scores. The mean and the
// standard deviation are null if no score is defined.
func (m Measure) MarshalJSON() ([]byte, error) {
	report := struct {
		Name   string     `json:"name"`
		Mean   *float64   `json:"mean"`
		SD     *float64   `json:"sd"`
		Scores []*float64 `json:"scores"`
	}{Name: m.Name, Scores: m.Scores}
	if s := m.Summary(); s.N > 0 {
		report.Mean, report.SD = &s.Mean, &s.SD
	}
	return json.Marshal(report)
}

// Defined returns the scores that are defined.
func (m Measure) Defined() (values []float64) {
	for _, v := range m.Scores {
		if v != nil {
			values = append(values, *v)
		}
	}
	return values
}

// Measures returns each measure that the task has, with its values for several models. For a nil
// score all values are nil.
func Measures(scores []*Score) []Measure {
	var list []Measure
	classes := slices.ContainsFunc(scores, func(s *Score) bool { return s != nil && s.Accuracy != nil })
	for _, f := range []struct {
		name   string
		value  func(*Score) *float64
		always bool
	}{
		{"rmse", func(s *Score) *float64 { return s.RMSE }, !classes}, {"mae", func(s *Score) *float64 { return s.MAE }, !classes}, {"r2", func(s *Score) *float64 { return s.R2 }, !classes},
		{"accuracy", func(s *Score) *float64 { return s.Accuracy }, classes}, {"log_loss", func(s *Score) *float64 { return s.LogLoss }, false}, {"auc", func(s *Score) *float64 { return s.AUC }, classes},
	} {
		m := Measure{Name: f.name}
		for _, s := range scores {
			var v *float64
			if s != nil {
				v = f.value(s)
			}
			m.Scores = append(m.Scores, v)
		}
		if f.always || len(m.Defined()) > 0 {
			list = append(list, m)
		}
	}
	return list
}
