package online

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
)

// Votes holds the hypothesis f_i = Σ_{j≤i} δ_j (k(x_j, ·) + Bias) of a loop after each change i = 1, …, M, and f_0 = 0,
// with the number of votes of each hypothesis (Freund and Schapire 1999, figure 1).
type Votes struct {
	Order backend.Host[float64] // 1×M: the center of each change, in chronological order
	Delta backend.Host[float64] // M×C: row j is δ_j, for C outputs
	Votes backend.Host[float64] // 1×(M+1): the number of votes of f_i is the number of samples that f_i classified correctly, plus 1 if i > 0
	Bias  float64
}

// Voted returns the votes and the indices of the centers, which are the misclassified samples.
func (l *Loop) Voted() (v Votes, rows []int) {
	index := map[int]int{} // index of a sample among the centers
	for _, c := range l.Changes {
		if _, seen := index[c.Sample]; !seen {
			index[c.Sample] = len(rows)
			rows = append(rows, c.Sample)
		}
	}
	// There is at least one mistake, because a hypothesis that is 0 predicts only one class.
	m := len(l.Changes)
	v = Votes{backend.NewHost[float64](1, m), backend.NewHost[float64](m, l.Outputs), backend.NewHost[float64](1, m+1), l.Bias}
	// All changes of a batch have the same step. The hypotheses between these changes have no votes. The
	// hypothesis before the batch has a vote for each sample since step `from`, except the mistakes.
	from, initial := 0, 0.0
	for k := 0; k < m; {
		batch := k
		for ; k < m && l.Changes[k].Step == l.Changes[batch].Step; k++ {
			c := l.Changes[k]
			v.Order.Data[k] = float64(index[c.Sample])
			copy(v.Delta.Row(k), c.Delta)
		}
		next := l.Changes[batch].Step + 1
		v.Votes.Data[batch] = initial + float64(next-from-(k-batch))
		from, initial = next, 1
	}
	v.Votes.Data[m] = initial + float64(l.Steps-from)
	return v, rows
}

// Count adds to votes[c] the fraction of the votes for class c of a sample. For two classes, it adds the fraction for
// the second class minus that for the first. The argument k holds the kernel values of the sample with the centers, and
// positive reports whether f predicts the second class. If a value of f is not finite, a vote becomes NaN.
func (v *Votes) Count(votes, k []float64, positive func(f float64) bool) {
	total := 0.0
	for _, n := range v.Votes.Data {
		total += n
	}
	f := make([]float64, len(votes))
	for h, n := range v.Votes.Data {
		if h > 0 {
			inner := k[int(v.Order.Data[h-1])] + v.Bias
			for c, d := range v.Delta.Row(h - 1) {
				f[c] += d * inner
				if f[c]-f[c] != 0 {
					votes[c] = math.NaN()
					return
				}
			}
		}
		switch {
		case len(f) > 1:
			votes[Largest(f)] += n / total
		case positive(f[0]):
			votes[0] += n / total
		default:
			votes[0] -= n / total
		}
	}
}

// Last returns the last hypothesis: the coefficients, one row for each center, and b.
func (v *Votes) Last(centers int) (coef backend.Host[float64], b []float64) {
	coef, b = backend.NewHost[float64](centers, v.Delta.Cols), make([]float64, v.Delta.Cols)
	for k, at := range v.Order.Data[:v.Order.Cols] {
		for j, d := range v.Delta.Row(k) {
			coef.Row(int(at))[j] += d
		}
	}
	for j := range b {
		for i := range centers {
			b[j] += coef.Row(i)[j]
		}
		b[j] *= v.Bias
	}
	return coef, b
}

// Check returns an error if Order lacks the last center or contains a number that is not the index of a center.
func (v *Votes) Check(centers int) error {
	last := 0.0
	for _, at := range v.Order.Row(0) {
		last = max(last, at)
		if at != math.Trunc(at) || at < 0 || at >= float64(centers) {
			return fmt.Errorf("array \"order\" holds %v, which is not the number of a center", at)
		}
	}
	if int(last) != centers-1 {
		return fmt.Errorf("array \"centers\" has %s, of which %v are used", count.Of(centers, "row"), last+1)
	}
	return nil
}
