package learners

import (
	"context"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"gonum.org/v1/gonum/mat"
)

// LogisticModel is a fitted Logistic: f(x) = Wᵀx + b with one column for two
// classes and K for more, of which the last is 0 after Logistic.Reference.
type LogisticModel struct {
	lambda    float64
	classes   Classes
	coef      backend.Host[float64]
	intercept []float64
	facts     []Fact
}

// Learner returns "logistic".
func (m *LogisticModel) Learner() string { return logisticName }

// Dims implements Model.
func (m *LogisticModel) Dims() (features, outputs int) {
	if m == nil || m.coef.Rows == 0 {
		return 0, 0
	}
	return m.coef.Rows, 1
}

// Classes implements Classifier.
func (m *LogisticModel) Classes() Classes { return m.classes }

// Decision implements Classifier: the log odds of the second of two classes; of
// more f, the logarithm of the probabilities but for a number that all share.
func (m *LogisticModel) Decision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.predictor().predict(ctx, dev, x)
}

func (m *LogisticModel) predictor() predictor {
	if features, _ := m.Dims(); features == 0 {
		return predictor{learner: logisticName}
	}
	return affine(logisticName, m.coef, m.intercept)
}

// Predict implements Model: the most probable class.
func (m *LogisticModel) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return predictClasses(ctx, dev, m, x)
}

// Proba implements Prober.
func (m *LogisticModel) Proba(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	f, err := m.Decision(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	return softmax(f), nil
}

// softmax returns the probabilities of which f are the log odds, n×1 of the
// second of two classes, or the logarithms but for a number for each row.
func softmax(f *mat.Dense) *mat.Dense {
	n, cols := f.Dims()
	p := mat.NewDense(n, max(cols, 2), nil)
	for i := range n {
		row, from := p.RawRowView(i), f.RawRowView(i)
		if cols == 1 {
			e := math.Exp(-math.Abs(from[0]))
			row[0], row[1] = e/(1+e), 1/(1+e)
			if from[0] < 0 {
				row[0], row[1] = row[1], row[0]
			}
			continue
		}
		most, sum := slices.Max(from), 0.0
		for c, v := range from {
			row[c] = math.Exp(v - most)
			sum += row[c]
		}
		for c := range row {
			row[c] /= sum
		}
	}
	return p
}

// Facts implements Describer: the method, its iterations, the value of the
// objective and the largest entry of its gradient.
func (m *LogisticModel) Facts() []Fact {
	if m == nil {
		return nil
	}
	return slices.Clone(m.facts)
}

// Coef returns a copy of the d×1 or d×K weights; nil when the model is not
// fitted.
func (m *LogisticModel) Coef() *mat.Dense {
	if features, _ := m.Dims(); features == 0 {
		return nil
	}
	return denseOf(m.coef)
}

// Intercept returns a copy of b, one entry for each column of Coef.
func (m *LogisticModel) Intercept() []float64 { return slices.Clone(m.intercept) }

// State implements Model. Its arrays are "coef", "intercept" and "labels".
func (m *LogisticModel) State() State {
	s := State{Learner: logisticName, Params: map[string]any{}, Arrays: map[string]backend.Host[float64]{}}
	if features, _ := m.Dims(); features == 0 {
		return s
	}
	m.classes.save(s)
	s.Params["lambda"] = m.lambda
	s.Arrays["coef"], s.Arrays["intercept"] = m.coef, rowOf(m.intercept)
	return s
}

func restoreLogistic(s State) (Model, error) {
	m := &LogisticModel{}
	var err error
	if m.lambda, err = s.lambda(); err != nil {
		return nil, err
	}
	if m.classes, err = restoreClasses(s); err != nil {
		return nil, err
	}
	if m.coef, err = s.array("coef", -1, m.classes.Columns()); err != nil {
		return nil, err
	}
	b, err := s.array("intercept", 1, m.classes.Columns())
	if err != nil {
		return nil, err
	}
	m.intercept = b.Row(0)
	return m, nil
}
