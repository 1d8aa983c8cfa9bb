package learners

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"gonum.org/v1/gonum/mat"
)

// Calibration computes split-conformal intervals, or sets of classes, from the predictions of a model for m rows
// that were not used in its fit. If a new row and these m rows are exchangeable, the interval or set of the new
// row contains its target with a probability of at least p, the argument level of Intervals and PredictionSets,
// for any learner and distribution. If no two scores are equal, the probability is at most p + 1/(m+1).
//
// Source: Vovk, Gammerman and Shafer (2005), Algorithmic learning in a random world; Lei, G'Sell, Rinaldo,
// Tibshirani and Wasserman (2018), Distribution-free predictive inference for regression, algorithm 2; Sadinle,
// Lei and Wasserman (2019), Least ambiguous set-valued classifiers.
type Calibration struct {
	// Scores has one row for each output: the m values |y − f(x)| in ascending order. For a classifier it has one row:
	// 1 − p of the observed class if the model has probabilities, otherwise the largest decision value of the other
	// classes minus the decision value of the observed class. For two classes with the decision value f, this is f for
	// the first and −f for the second class.
	Scores backend.Host[float64]
}

// Calibrate applies m to the rows of x, which must not have been used in the fit of m, and compares the predictions
// with the targets y. A row of a class that m does not have gets the score math.MaxFloat64.
func Calibrate(ctx context.Context, dev backend.Device, m Model, x, y mat.Matrix) (c *Calibration, err error) {
	defer wrapError("calibrate", nil, &c, &err)
	if numeric.IsNil(m) {
		return nil, errors.New("no model was given")
	}
	if numeric.IsNil(x) {
		return nil, errors.New("x is missing")
	}
	if d, err := Find(m.Learner()); err == nil && d.Supports(Novelty) {
		return nil, fmt.Errorf("%s is a novelty learner without targets: calibrate a model of regression or classification", m.Learner())
	}
	hy, err := gonum.Host("y", y)
	if err != nil {
		return nil, err
	}
	if n, _ := x.Dims(); n != hy.Rows {
		return nil, fmt.Errorf("x has %s, y has %d", count.Of(n, "row"), hy.Rows)
	}
	if err := checkFinite("y", hy); err != nil {
		return nil, err
	}
	k, ok := m.(Classifier)
	if !ok {
		f, err := m.Predict(ctx, dev, x)
		if err != nil {
			return nil, err
		}
		n, outputs := f.Dims()
		if outputs != hy.Cols {
			return nil, fmt.Errorf("y has %s, the model has %s", count.Of(hy.Cols, "column"), count.Of(outputs, "output"))
		}
		c = &Calibration{backend.NewHost[float64](outputs, n)}
		for j := range outputs {
			row := c.Scores.Row(j)
			for i := range row {
				row[i] = math.Abs(hy.Row(i)[j] - f.At(i, j))
			}
			slices.Sort(row)
		}
		return c, nil
	}
	scores, err := classScores(ctx, dev, k, x)
	if err != nil {
		return nil, err
	}
	classes := k.Classes()
	c = &Calibration{backend.NewHost[float64](1, hy.Rows)}
	for i := range c.Scores.Data {
		c.Scores.Data[i] = math.MaxFloat64
		if class := classes.Index(hy.Row(i)[0]); class >= 0 {
			c.Scores.Data[i] = scores.At(i, class)
		}
	}
	slices.Sort(c.Scores.Data)
	return c, nil
}

// classScores returns the n×K scores of all classes, defined as in Calibration.Scores. The larger
// the score, the less likely is the class for the row.
func classScores(ctx context.Context, dev backend.Device, m Classifier, x mat.Matrix) (*mat.Dense, error) {
	if p, ok := As[Prober](m); ok {
		proba, err := p.Proba(ctx, dev, x)
		if err != nil {
			return nil, err
		}
		proba.Apply(func(_, _ int, v float64) float64 { return 1 - v }, proba)
		return proba, nil
	}
	f, err := m.Decision(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	n, cols := f.Dims()
	scores := mat.NewDense(n, m.Classes().Len(), nil)
	for i := range n {
		row := f.RawRowView(i)
		if cols == 1 {
			scores.SetRow(i, []float64{row[0], -row[0]})
			continue
		}
		first, second := math.Inf(-1), math.Inf(-1) // the largest and the second largest value
		for _, v := range row {
			if v > first {
				first, second = v, first
			} else {
				second = max(second, v)
			}
		}
		for j, v := range row {
			rival := first
			if v == first {
				rival = second
			}
			scores.Set(i, j, rival-v)
		}
	}
	return scores, nil
}

var errNoCalibration = errors.New("learners: the calibration is missing or has no scores: make one by Calibrate")

// bound returns a bound for output j. The score of a new row exceeds it with a probability of at most 1 − level.
func (c *Calibration) bound(j int, level float64) (float64, error) {
	if c == nil || j >= c.Scores.Rows {
		return 0, errNoCalibration
	}
	rank, err := coverageRank(level, c.Scores.Cols)
	if err != nil {
		return 0, fmt.Errorf("learners: calibration: %w", err)
	}
	return c.Scores.Row(j)[rank-1], nil
}

// Intervals returns the bounds f ± s for the n×outputs predictions f of a model, where s is the
// ⌈level (m+1)⌉-th smallest of the m scores of an output. The level must be > 0 and ≤ m/(m+1).
func (c *Calibration) Intervals(f mat.Matrix, level float64) (lower, upper *mat.Dense, err error) {
	if c == nil {
		return nil, nil, errNoCalibration
	}
	n, outputs := f.Dims()
	if outputs != c.Scores.Rows {
		return nil, nil, fmt.Errorf("learners: calibration: the predictions have %s, but the calibration is for %s", count.Of(outputs, "output"), count.Of(c.Scores.Rows, "output"))
	}
	lower, upper = mat.NewDense(n, outputs, nil), mat.NewDense(n, outputs, nil)
	for j := range outputs {
		halfWidth, err := c.bound(j, level)
		if err != nil {
			return nil, nil, err
		}
		for i := range n {
			lower.Set(i, j, f.At(i, j)-halfWidth)
			upper.Set(i, j, f.At(i, j)+halfWidth)
		}
	}
	for _, bound := range []*mat.Dense{lower, upper} {
		if err := checkPredicted("bound of the interval", dense(bound), 0); err != nil {
			return nil, nil, fmt.Errorf("learners: calibration: %w", err)
		}
	}
	return lower, upper, nil
}

// PredictionSets returns an n×K matrix with 1 for each class of the model that belongs to the prediction
// set of the row of x, and 0 for other classes. A set always contains the predicted class. It contains
// the observed class with a probability of at least `level`, which must be > 0 and ≤ m/(m+1).
func (c *Calibration) PredictionSets(ctx context.Context, dev backend.Device, m Classifier, x mat.Matrix, level float64) (*mat.Dense, error) {
	bound, err := c.bound(0, level)
	if err != nil {
		return nil, err
	}
	scores, err := classScores(ctx, dev, m, x)
	if err != nil {
		return nil, err
	}
	pred, err := m.Predict(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	n, k := scores.Dims()
	classes := m.Classes()
	for i := range n {
		predicted := classes.Index(pred.At(i, 0))
		for j := range k {
			member := 0.0
			if j == predicted || scores.At(i, j) <= bound {
				member = 1
			}
			scores.Set(i, j, member)
		}
	}
	return scores, nil
}

// Check returns an error if c, which may come from a file, does not belong to the model m.
func (c *Calibration) Check(m Model) error {
	if c == nil || m == nil {
		return errors.New("the calibration or its model is missing")
	}
	_, rows := m.Dims()
	if _, ok := m.(Classifier); ok {
		rows = 1
	}
	if c.Scores.Rows != rows || c.Scores.Cols < 1 {
		return fmt.Errorf("the calibration has %d×%d scores; the model needs %s of at least one score", c.Scores.Rows, c.Scores.Cols, count.Of(rows, "row"))
	}
	for j := range rows {
		if row := c.Scores.Row(j); !slices.IsSorted(row) || slices.ContainsFunc(row, func(v float64) bool { return !finite(v) }) {
			return fmt.Errorf("row %d of the calibration is not finite or not in ascending order", j+1)
		}
	}
	return nil
}
