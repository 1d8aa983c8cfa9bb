package learners

import (
	"context"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"gonum.org/v1/gonum/mat"
)

// LogisticModel is a fitted Logistic: f(x) = Wᵀx + b with one column for two
// classes and K for more, of which the last is 0 after Logistic.Reference. Its decision
// values are the log odds of the second of two classes; of more f, the logarithm of the
// probabilities but for a number that all share. Its facts are the method, its
// iterations, the value of the objective and the largest entry of its gradient.
type LogisticModel struct {
	linearClassifier
	lambda float64
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

// State implements Model. Its arrays are "coef", "intercept" and "labels".
func (m *LogisticModel) State() State { return stateOf(m) }

func (m *LogisticModel) fields() []field {
	return append(m.linearClassifier.fields(), lambdaField(&m.lambda))
}
