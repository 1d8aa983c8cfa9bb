package learners

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers/online"
	"gonum.org/v1/gonum/mat"
)

// VotedModel is a fitted voted perceptron, linear or with a kernel. Hypothesis k
// is the sum of the first k changes, f_k = Σ_{j≤k} δ_j (k(x_j, ·) + c). It has
// one vote, and one more for each sample that it classified correctly in
// training; f_0 = 0 has only the latter (Freund and Schapire 1999, figure 1). The
// decision values are the votes: of two classes those for the second less those
// for the first, of more those for each, as fractions of all.
//
// Predicting costs the kernel values with the samples that were mistaken, and a
// running sum over all mistakes.
type VotedModel struct {
	model
	kernel  kernels.Kernel
	classes Classes
	centers backend.Host[float64] // samples that were mistaken
	order   backend.Host[float64] // 1×M: which of them changed the hypothesis, in the order of time
	delta   backend.Host[float64] // M×C
	votes   backend.Host[float64] // 1×(M+1)
	bias    float64               // c
}

// newVoted makes the model of what a loop remembers. facts are those of the last
// hypothesis.
func newVoted(learner string, k kernels.Kernel, classes Classes, run *online.Loop, facts []Fact) *VotedModel {
	m := &VotedModel{model: model{learner, facts}, kernel: k, classes: classes, bias: run.Bias}
	place := map[int]int{} // of a sample among the centers
	var rows []int
	for _, c := range run.Changes {
		if _, seen := place[c.Sample]; !seen {
			place[c.Sample] = len(rows)
			rows = append(rows, c.Sample)
		}
	}
	// There is a mistake: a hypothesis that is 0 predicts one class only.
	m.centers = backend.NewHost[float64](len(rows), run.X.Cols)
	for r, i := range rows {
		copy(m.centers.Row(r), run.X.Row(i))
	}
	count := len(run.Changes)
	m.order, m.delta, m.votes = backend.NewHost[float64](1, count), backend.NewHost[float64](count, run.Outputs), backend.NewHost[float64](1, count+1)
	// All changes of a batch have one step: hypotheses between them classified
	// nothing and have no vote. The one before them classified the samples of the
	// steps from `from` on, except those that changed it.
	from, initial := 0, 0.0
	for k := 0; k < count; {
		batch := k
		for ; k < count && run.Changes[k].Step == run.Changes[batch].Step; k++ {
			c := run.Changes[k]
			m.order.Data[k] = float64(place[c.Sample])
			copy(m.delta.Row(k), c.Delta)
		}
		next := run.Changes[batch].Step + 1
		m.votes.Data[batch] = initial + float64(next-from-(k-batch))
		from, initial = next, 1
	}
	m.votes.Data[count] = initial + float64(run.Steps-from)
	m.facts = append(m.facts, Fact{"hypotheses", count + 1}, Fact{"support of all", len(rows)})
	return m
}

// Decision implements Classifier.
func (m *VotedModel) Decision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	features, _ := m.Dims()
	p := predictor{learner: m.Learner(), features: features}
	if features > 0 {
		p.intercept = make([]float64, m.centers.Rows)
		p.fixed = []backend.Host[float64]{m.centers}
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
	total := 0.0
	for _, v := range m.votes.Data {
		total += v
	}
	f := make([]float64, m.classes.Columns())
	for i := range n {
		if i%64 == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("learners: %s: predict: %w", m.Learner(), context.Cause(ctx))
		}
		m.vote(votes.RawRowView(i), k.RawRowView(i), f, total)
	}
	return votes, nil
}

// vote sets votes to those of one sample with kernel values k.
func (m *VotedModel) vote(votes, k, f []float64, total float64) {
	clear(f)
	for h, v := range m.votes.Data {
		if h > 0 {
			inner := k[int(m.order.Data[h-1])] + m.bias
			for c, d := range m.delta.Row(h - 1) {
				f[c] += d * inner
			}
		}
		switch {
		case len(f) > 1:
			votes[online.Largest(f)] += v / total
		case m.classes.positive(f[0]):
			votes[0] += v / total
		default:
			votes[0] -= v / total
		}
	}
}

// Dims implements Model.
func (m *VotedModel) Dims() (features, outputs int) { return m.centers.Cols, min(m.centers.Cols, 1) }

// Classes implements Classifier.
func (m *VotedModel) Classes() Classes { return m.classes }

// Predict implements Model.
func (m *VotedModel) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.classes.decide(m.Decision(ctx, dev, x))
}

// State implements Model. Its arrays are "centers", "order", "delta", "votes" and
// "labels".
func (m *VotedModel) State() State { return stateOf(m) }

func (m *VotedModel) fields() []field {
	return []field{
		fixedField("voted", true), classesField(&m.classes), pointsField("centers", &m.kernel, &m.centers),
		paramField("bias", &m.bias, nonNegative), matrixField("order", &m.order, exactly(1), nil), derived(m.checkOrder),
		matrixField("delta", &m.delta, colsOf(&m.order), columnsOf(&m.classes)),
		matrixField("votes", &m.votes, exactly(1), func() int { return m.order.Cols + 1 }),
	}
}

// checkOrder refuses an order of other samples than all centers.
func (m *VotedModel) checkOrder() error {
	last := 0.0
	for _, v := range m.order.Row(0) {
		last = max(last, v)
		if v != math.Trunc(v) || v < 0 || v >= float64(m.centers.Rows) {
			return fmt.Errorf("array \"order\" holds %v, which is no center", v)
		}
	}
	if int(last) != m.centers.Rows-1 {
		return fmt.Errorf("array \"centers\" has %s, of which %v are used", count.Of(m.centers.Rows, "row"), last+1)
	}
	return nil
}
