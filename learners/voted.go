package learners

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/online"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

// VotedModel is a fitted voted perceptron, linear or with a kernel (Freund and Schapire 1999, figure 1). Each
// hypothesis of the training has one vote, and one more for each sample that it classified correctly; the initial
// f = 0 has only votes for such samples. The decision values are fractions of the votes: for two classes the
// fraction for the second class minus the fraction for the first, for more classes the fraction for each class.
type VotedModel struct {
	model
	kernel kernels.Kernel
	classified
	centers numeric.Points // the samples that were misclassified in training
	votes   online.Votes
}

// newVoted makes the model from the mistakes in run. facts holds the Facts of the last hypothesis.
func newVoted(learner string, k kernels.Kernel, points numeric.Points, classes Classes, run *online.Loop, facts []Fact) *VotedModel {
	m := &VotedModel{kernel: k, classified: classified{classes}}
	var mistakes []int
	m.votes, mistakes = run.Voted()
	m.centers = points.Take(mistakes)
	m.model = model{learner, append(facts, Fact{"hypotheses", m.votes.Votes.Cols}, Fact{"support", m.centers.Rows})}
	return m
}

// Decision implements Classifier.
func (m *VotedModel) Decision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	features, _ := m.Dims()
	p := predictor{learner: m.Learner(), features: features, kernel: m.kernel}
	if features > 0 {
		p.intercept = make([]float64, m.centers.Rows)
		p.fixed = []numeric.Points{m.centers}
		p.apply = func(b backend.Backend[float64], out, x backend.Matrix[float64], fixed []backend.Matrix[float64]) {
			b.Gram(out, m.kernel, x, fixed[0])
		}
	}
	k, err := p.predict(ctx, dev, x)
	if err != nil {
		return nil, err
	}
	n, _ := k.Dims()
	votes := mat.NewDense(n, m.classes.Columns(), nil)
	for i := range n {
		if i%64 == 0 && ctx.Err() != nil {
			return nil, predictError(m.Learner(), context.Cause(ctx))
		}
		m.votes.Count(votes.RawRowView(i), k.RawRowView(i), m.classes.positive)
	}
	return checked(m.Learner(), "decision value of a hypothesis", votes, nil)
}

func (m *VotedModel) parts() Parts {
	coef, b := m.votes.Last(m.centers.Rows)
	return Parts{Kernel: m.kernel, Points: copyOfPoints(m.centers), Coef: denseOf(coef), Intercept: b}
}

// Dims implements Model.
func (m *VotedModel) Dims() (features, outputs int) { return m.centers.Cols, min(m.centers.Cols, 1) }

// Predict implements Model.
func (m *VotedModel) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.classes.decide(m.Decision(ctx, dev, x))
}

// State implements Model. Its arrays are "centers", "order", "delta", "votes" and "labels".
func (m *VotedModel) State() State { return stateOf(m) }

func (m *VotedModel) fields() []field {
	v := &m.votes
	return []field{
		fixedField("voted", true), classesField(&m.classes), pointsField("centers", &m.kernel, &m.centers),
		paramField("bias", &v.Bias, nonNegative), matrixField("order", &v.Order, exactly(1), nil), derived(func() error { return v.Check(m.centers.Rows) }),
		matrixField("delta", &v.Delta, colsOf(&v.Order), columnsOf(&m.classes)),
		matrixField("votes", &v.Votes, exactly(1), func() int { return v.Order.Cols + 1 }),
	}
}
