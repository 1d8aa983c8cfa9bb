package learners

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

// Classify makes a classifier from a learner of regression with several targets, by least-squares classification.
// Two classes become one target of −1 and 1. K > 2 classes become K targets of −1 and 1, one versus the rest. The
// decision values are the predictions of these targets. name is the learner's name for messages.
//
// Source: Rifkin, Yeo and Poggio (2003), Regularized least-squares classification; Suykens and Vandewalle (1999).
func Classify(name string, fit Fitter) Fitter {
	return func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (Model, error) {
		hy, err := gonum.Host("y", y)
		if err != nil {
			return nil, fmt.Errorf("learners: %s: %w", name, err)
		}
		classes, index, err := classesOf(hy, o.Weights, o.Classes)
		if err != nil {
			return nil, fmt.Errorf("learners: %s: %w", name, err)
		}
		signs := classes.targets(index)
		m, err := fit(ctx, dev, x, mat.NewDense(signs.Rows, signs.Cols, signs.Data), o)
		if err != nil {
			return nil, err
		}
		return &ClassifyModel{classified{classes}, m}, nil
	}
}

// ClassifyModel is a model of regression used as a classifier. It is saved under
// the name of the learner that fitted it.
type ClassifyModel struct {
	classified
	regression Model
}

// Learner returns the name of the regression learner.
func (m *ClassifyModel) Learner() string { return m.regressor().Learner() }

// regressor returns the model of the regression, or an unfitted model if m has none.
func (m *ClassifyModel) regressor() Model {
	if m.regression == nil {
		return newLinearModel("classify", false, backend.Host[float64]{}, nil, nil, nil)
	}
	return m.regression
}

// Dims implements Model.
func (m *ClassifyModel) Dims() (features, outputs int) {
	features, _ = m.regressor().Dims()
	return features, min(features, 1)
}

// Regression returns the model whose outputs are the decision values.
func (m *ClassifyModel) Regression() Model { return m.regression }

// Decision implements Classifier.
func (m *ClassifyModel) Decision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.regressor().Predict(ctx, dev, x)
}

// Predict implements Model.
func (m *ClassifyModel) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.classes.decide(m.Decision(ctx, dev, x))
}

// Solved implements Solved.
func (m *ClassifyModel) Solved() *solvers.Result {
	if s, ok := m.regression.(Solved); ok {
		return s.Solved()
	}
	return nil
}

// Facts implements Describer.
func (m *ClassifyModel) Facts() []Fact { return m.factsNamed(message.Plain) }

func (m *ClassifyModel) factsNamed(name func(parameter string) string) []Fact {
	return FactsOf(m.regression, name)
}

// State implements Model: the state of the regression, with "classes" and "labels".
func (m *ClassifyModel) State() State {
	s := m.regressor().State()
	if m.regression != nil {
		s.Params, s.Arrays = maps.Clone(s.Params), maps.Clone(s.Arrays)
		m.classes.save(s)
	}
	return s
}

// classifier returns m as a classifier if the State s has classes, and m itself otherwise.
func classifier(s State, m Model) (Model, error) {
	_, hasNames := s.Params["classes"]
	_, hasLabels := s.Arrays["labels"]
	if !hasNames && !hasLabels {
		return m, nil
	}
	c := &ClassifyModel{regression: m}
	if err := c.classes.load(s); err != nil {
		return nil, err
	}
	if _, outputs := m.Dims(); outputs != c.classes.Columns() {
		return nil, errors.New("the number of classes does not match the number of outputs")
	}
	return c, nil
}
