package learners

import (
	"context"
	"fmt"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// LinearModel is f(x) = wᵀx + b, as least-squares, ridge-constrained, lasso and
// l0 fit it.
type LinearModel struct {
	learner   string
	fitted    bool // with an intercept
	coef      backend.Host[float64]
	intercept []float64
	penalty   []float64 // λ of each output: what the learner found, or was given
	facts     []Fact
}

// Learner returns the name of the learner that fitted the model.
func (m *LinearModel) Learner() string {
	if m == nil {
		return ""
	}
	return m.learner
}

// Dims implements Model.
func (m *LinearModel) Dims() (features, outputs int) {
	if m == nil {
		return 0, 0
	}
	return m.coef.Rows, m.coef.Cols
}

// Predict implements Model: xW + b.
func (m *LinearModel) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.predictor().predict(ctx, dev, x)
}

func (m *LinearModel) predictor() predictor {
	if features, _ := m.Dims(); features == 0 {
		return predictor{learner: m.Learner()}
	}
	return affine(m.Learner(), m.coef, m.intercept)
}

// Facts implements Describer.
func (m *LinearModel) Facts() []Fact {
	if m == nil {
		return nil
	}
	return slices.Clone(m.facts)
}

// Lambda returns λ of each output: for ridge-constrained the one that meets the
// constraint.
func (m *LinearModel) Lambda() []float64 { return slices.Clone(m.penalty) }

// Coef returns a copy of the d×t weights; nil when the model is not fitted.
func (m *LinearModel) Coef() *mat.Dense {
	if features, _ := m.Dims(); features == 0 {
		return nil
	}
	return denseOf(m.coef)
}

// Support returns the features whose weight of output j is not 0, from 0 on.
func (m *LinearModel) Support(j int) []int {
	var list []int
	for p := range m.coef.Rows {
		if m.coef.Row(p)[j] != 0 {
			list = append(list, p)
		}
	}
	return list
}

// Intercept returns a copy of b, one entry for each output.
func (m *LinearModel) Intercept() []float64 { return slices.Clone(m.intercept) }

// State implements Model. Its arrays are "coef", d×t, "intercept" and
// "lambda", 1×t.
func (m *LinearModel) State() State {
	s := State{Learner: m.Learner(), Params: map[string]any{}, Arrays: map[string]backend.Host[float64]{}}
	if features, _ := m.Dims(); features == 0 {
		return s
	}
	s.Params["intercept"] = m.fitted
	s.Arrays["coef"], s.Arrays["intercept"], s.Arrays["lambda"] = m.coef, rowOf(m.intercept), rowOf(m.penalty)
	return s
}

// restoreLinear restores models of any learner that makes a LinearModel.
func restoreLinear(s State) (Model, error) {
	var err error
	m := &LinearModel{learner: s.Learner}
	if m.fitted, err = param[bool](s, "intercept"); err != nil {
		return nil, err
	}
	if m.coef, err = s.array("coef", -1, -1); err != nil {
		return nil, err
	}
	b, err := s.array("intercept", 1, m.coef.Cols)
	if err != nil {
		return nil, err
	}
	l, err := s.array("lambda", 1, m.coef.Cols)
	if err != nil {
		return nil, err
	}
	for j, v := range l.Row(0) {
		if v < 0 {
			return nil, fmt.Errorf("array \"lambda\": column %d must be ≥ 0, got %v", j+1, v)
		}
	}
	m.intercept, m.penalty = b.Row(0), l.Row(0)
	return m, nil
}

// vectorOf returns v as a vector of gonum's BLAS that shares its memory.
func vectorOf(v []float64) blas64.Vector { return blas64.Vector{N: len(v), Inc: 1, Data: v} }
