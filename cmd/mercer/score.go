package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/texttable"
	"github.com/mercer-go/mercer/learners"
)

// score is what `mercer evaluate` prints: of regression or of classification.
type score struct {
	N      int    `json:"n"`
	Weight string `json:"weight,omitempty"` // the column of the weights that the figures, the confusion but, have

	RMSE *float64 `json:"rmse,omitempty"`
	MAE  *float64 `json:"mae,omitempty"`
	R2   *float64 `json:"r2,omitempty"`

	Accuracy  *float64 `json:"accuracy,omitempty"`
	LogLoss   *float64 `json:"log_loss,omitempty"` // without probabilities: left out
	AUC       *float64 `json:"auc,omitempty"`      // without all classes among the rows: left out
	Classes   []string `json:"classes,omitempty"`
	Confusion [][]int  `json:"confusion,omitempty"` // [true class][predicted class]

	Interval *coverage `json:"interval,omitempty"`

	truth, predicted *mat.Dense
	weights          []float64 // of the rows; nil: all 1
	outcome          outcome
	known            learners.Classes // of the model
}

// outcome is what a model says of rows.
type outcome struct {
	values   *mat.Dense // Predict
	decision *mat.Dense // of a classifier
	proba    *mat.Dense // of one that knows probabilities
}

// outcomes applies a model to encoded rows; proba asks for probabilities too.
func (a *app) outcomes(ctx context.Context, dev backend.Device, m learners.Model, x *mat.Dense, proba bool) (o outcome, err error) {
	k, ok := m.(learners.Classifier)
	if !ok {
		o.values, err = a.inBlocks(ctx, x, "predict", func(part mat.Matrix) (*mat.Dense, error) { return m.Predict(ctx, dev, part) })
		return o, err
	}
	o.decision, err = a.inBlocks(ctx, x, "predict", func(part mat.Matrix) (*mat.Dense, error) { return k.Decision(ctx, dev, part) })
	if err != nil {
		return o, err
	}
	by, probable := m.(*learners.SVCProbabilityModel)
	if p, ok := m.(learners.Prober); ok && (proba || probable) {
		o.proba, err = a.inBlocks(ctx, x, "proba", func(part mat.Matrix) (*mat.Dense, error) { return p.Proba(ctx, dev, part) })
		if err != nil {
			return o, err
		}
	}
	if !probable {
		o.values = k.Classes().Decide(o.decision)
		return o, nil
	}
	o.values = by.Decide(o.decision, o.proba)
	if !proba {
		o.proba = nil
	}
	return o, nil
}

// check refuses values that are not finite.
func (o outcome) check() error {
	for _, part := range []struct {
		what   string
		values *mat.Dense
	}{{"the prediction", o.values}, {"the decision value", o.decision}, {"a probability", o.proba}} {
		if err := finite(part.what, part.values); err != nil {
			return err
		}
	}
	return nil
}

// finite is the fault of the first row with a value that is not finite; m may be nil.
func finite(what string, m *mat.Dense) error {
	if m == nil {
		return nil
	}
	n, _ := m.Dims()
	for i := range n {
		for _, v := range m.RawRowView(i) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%s of row %d is %v: the model is damaged, or the row too far from those that it was fitted to", what, i+1, v)
			}
		}
	}
	return nil
}

// scoreOf applies a model to encoded rows and compares with their targets. names
// are those of the classes; weights may be nil.
func (a *app) scoreOf(ctx context.Context, dev backend.Device, m learners.Model, names []string, x, truth *mat.Dense, weights []float64) (*score, error) {
	m = asClassifier(m)
	o, err := a.outcomes(ctx, dev, m, x, true)
	if err != nil {
		return nil, err
	}
	return newScore(m, names, truth, o, weights)
}

func newScore(m learners.Model, names []string, truth *mat.Dense, o outcome, weights []float64) (*score, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if k, ok := m.(novelty); ok {
		if err := k.checkTruth(truth); err != nil {
			return nil, err
		}
	}
	k, ok := m.(learners.Classifier)
	if !ok {
		s, err := learners.ScoreRegression(truth, o.values, weights)
		if err != nil {
			return nil, err
		}
		return &score{N: s.N, RMSE: &s.RMSE, MAE: &s.MAE, R2: &s.R2, truth: truth, predicted: o.values, weights: weights, outcome: o}, nil
	}
	s, err := learners.ScoreClassification(k.Classes(), names, truth, o.values, o.decision, o.proba, weights)
	if err != nil {
		return nil, err
	}
	return &score{
		N: s.N, Accuracy: &s.Accuracy, LogLoss: defined(s.LogLoss), AUC: defined(s.AUC),
		Classes: s.Classes.Names, Confusion: s.Confusion,
		truth: truth, predicted: o.values, weights: weights, outcome: o, known: k.Classes(),
	}, nil
}

// defined is nil for NaN, which JSON has no word for.
func defined(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

// figures are the measures with their names, the number of rows first.
func (s *score) figures() [][]string {
	rows := [][]string{{"rows", strconv.Itoa(s.N)}}
	if s.Weight != "" {
		rows = append(rows, []string{"weights", "column " + s.Weight})
	}
	for _, f := range []struct {
		name  string
		value *float64
	}{{"RMSE", s.RMSE}, {"MAE", s.MAE}, {"R²", s.R2}, {"accuracy", s.Accuracy}, {"log loss", s.LogLoss}, {"AUC", s.AUC}} {
		if f.value != nil {
			rows = append(rows, []string{f.name, short(*f.value)})
		}
	}
	if c := s.Interval; c != nil {
		rows = append(rows, []string{"coverage", short(c.Coverage)}, []string{c.what(), short(c.Mean)})
	}
	return rows
}

// line is the score on one line.
func (s *score) line() string {
	parts := []string{count(s.N, "row")}
	for _, f := range s.figures()[1:] {
		parts = append(parts, f[0]+" "+f[1])
	}
	return strings.Join(parts, ", ")
}

// mostShown is the largest number of classes whose confusion is printed.
const mostShown = 30

// text is the score for eyes.
func (s *score) text() string {
	text := texttable.Format("lr", s.figures())
	if s.Confusion == nil {
		return text
	}
	if len(s.Classes) > mostShown {
		return text + fmt.Sprintf("\n%d classes: --json or --plot show which is taken for which.\n", len(s.Classes))
	}
	head := append([]string{"true \\ predicted"}, s.Classes...)
	rows := [][]string{head}
	for i, row := range s.Confusion {
		line := []string{s.Classes[i]}
		for _, n := range row {
			line = append(line, strconv.Itoa(n))
		}
		rows = append(rows, line)
	}
	return text + "\n" + texttable.Format("l"+strings.Repeat("r", len(s.Classes)), rows)
}
