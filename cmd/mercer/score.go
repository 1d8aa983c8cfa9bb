package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/texttable"
	"github.com/mercer-go/mercer/internal/webpage"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
	"github.com/mercer-go/mercer/solvers"
)

// score is the output of `mercer evaluate` about the quality of the predictions.
type score struct {
	*validate.Score
	Weight   string    `json:"weight,omitempty"` // name of the column of the weights, which all measures except Confusion use
	Interval *coverage `json:"interval,omitempty"`
}

// outcomes applies a model to encoded rows. If proba is true, it also computes probabilities.
func (a *app) outcomes(ctx context.Context, dev backend.Device, m learners.Model, x mat.Matrix, proba bool) (validate.Outcome, error) {
	p := a.newProgress()
	defer p.close()
	return validate.Apply(ctx, dev, m, x, proba, func(fraction float64) { p.report(solvers.Progress{Stage: "predict", Fraction: fraction}) })
}

// scoreOf applies a model to encoded rows and compares the predictions with the targets. names are the names of the
// classes, and weights are the weights of the rows, or nil.
func (a *app) scoreOf(ctx context.Context, dev backend.Device, m learners.Model, names []string, x mat.Matrix, truth *mat.Dense, weights []float64) (*score, error) {
	m = validate.Scorable(m)
	o, err := a.outcomes(ctx, dev, m, x, true)
	if err != nil {
		return nil, err
	}
	s, err := validate.NewScore(m, names, truth, o, weights)
	return &score{Score: s}, err
}

// figures returns pairs of a name and a value: the number of rows, and then the measures.
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
			rows = append(rows, []string{f.name, fourDigits(*f.value)})
		}
	}
	if c := s.Interval; c != nil {
		rows = append(rows, []string{"coverage", fourDigits(c.Coverage)}, []string{c.sizeLabel(), fourDigits(c.Mean)})
	}
	return rows
}

// line returns the score on one line.
func (s *score) line() string {
	parts := []string{count(s.N, "row")}
	for _, f := range s.figures()[1:] {
		parts = append(parts, f[0]+" "+f[1])
	}
	return strings.Join(parts, ", ")
}

// maxShownClasses is the maximum number of classes for which the confusion matrix is printed.
const maxShownClasses = 30

func (s *score) text() string {
	text := texttable.Format("lr", s.figures())
	if s.Confusion == nil {
		return text
	}
	if len(s.Classes) > maxShownClasses {
		return text + fmt.Sprintf("\n%d classes: --json or --plot show the confusion matrix.\n", len(s.Classes))
	}
	return text + "\n" + texttable.Format("l"+strings.Repeat("r", len(s.Classes)), s.confusion())
}

// confusion returns the confusion matrix as a table whose first row is the head.
func (s *score) confusion() [][]string {
	head := append([]string{"true \\ predicted"}, s.Classes...)
	rows := [][]string{head}
	for i, row := range s.Confusion {
		line := []string{s.Classes[i]}
		for _, n := range row {
			line = append(line, strconv.Itoa(n))
		}
		rows = append(rows, line)
	}
	return rows
}

// cards returns the score as tables of a page.
func (s *score) cards() []webpage.Card {
	list := []webpage.Card{tableCard("Scores", "", append([][]string{{"measure", "value"}}, s.figures()...))}
	if s.Confusion != nil {
		list = append(list, tableCard("Confusion matrix", "", s.confusion()))
	}
	return list
}
