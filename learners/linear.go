package learners

import (
	"slices"

	"github.com/mercer-go/mercer/backend"
)

// LinearModel is f(x) = wᵀx + b, the model of least-squares, ridge-constrained, lasso and l0.
type LinearModel struct {
	linear
	hasIntercept bool      // whether the model was fitted with an intercept
	penalty      []float64 // λ of each output, either found or given
}

// Lambda returns the λ of each output. For ridge-constrained it is the λ whose solution satisfies the constraint.
func (m *LinearModel) Lambda() []float64 { return slices.Clone(m.penalty) }

// Support returns the indices, from 0, of the features whose weight for output j is not 0.
func (m *LinearModel) Support(j int) []int {
	var list []int
	for p := range m.coef.Rows {
		if m.coef.Row(p)[j] != 0 {
			list = append(list, p)
		}
	}
	return list
}

// State implements Model. Its arrays are "coef", d×t, "intercept" and "lambda", 1×t.
func (m *LinearModel) State() State { return stateOf(m) }

func (m *LinearModel) fields() []field {
	return append(m.coefFields(nil), boolField("intercept", &m.hasIntercept), rowField("lambda", &m.penalty, colsOf(&m.coef), nonNegative))
}

func newLinearModel(learner string, intercept bool, coef backend.Host[float64], b, penalty []float64, facts []Fact) *LinearModel {
	return &LinearModel{linear{model{learner, facts}, coef, b}, intercept, penalty}
}

// warned returns facts and a fact "warning" for each text that is not "".
func warned(facts []Fact, texts ...string) []Fact {
	for _, text := range texts {
		if text != "" {
			facts = append(facts, Fact{"warning", text})
		}
	}
	return facts
}
