// Package online implements online learning, which processes one sample at a time. Loop is the loop of all perceptrons.
package online

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// A hypothesis is the current function f of a perceptron. It has C outputs for C > 2 classes, and one for two classes.
type hypothesis interface {
	// values returns the values of f at the samples of a block: a row for each sample, a column for each output.
	values(block []int) (backend.Host[float64], error)
	// gram returns the inner products of the samples of a block. Only its lower triangle is used.
	gram(block []int) (backend.Host[float64], error)
	// learn adds Σ_r δ_r k(x_r, ·) to f, where δ_r is row r of delta, and r runs over mistaken, the indices of the
	// misclassified samples in the block. For each of these samples, steps holds the step, counted from 0, after
	// which the change takes effect.
	learn(block []int, delta backend.Host[float64], mistaken, steps []int) error
}

// Loop is the loop of all perceptrons: it classifies one sample after the other, and a misclassified sample
// changes the hypothesis.
//
// For each block of samples, the backend computes the inner products of the samples, and the values of the
// hypothesis at the start of the block. The effect of changes within the block follows from the inner products. Up
// to rounding errors, the result equals that of a loop without blocks.
type Loop struct {
	X       numeric.Points // the samples
	Outputs int            // number of columns of f; it is 1 for two classes
	Class   []int          // class of each sample
	Weights []float64      // weight > 0 of each sample; nil if all are 1
	Bias    float64        // constant added to the inner products to learn b; 0 means that b is not learned
	Rate    float64
	Batch   int
	Epochs  int
	Shuffle bool
	Replace bool    // whether samples are drawn with replacement
	Average bool    // whether the result is the average over the steps
	From    int     // number of steps before averaging starts
	Start   float64 // initial b
	Started bool    // whether the loop starts with a given f instead of f = 0
	Seed    uint64
	// ZeroIsPositive determines whether f = 0 predicts the second of two classes, or the first.
	ZeroIsPositive bool
	Remember       bool // whether to record the changes in Changes

	// The fields below are results of the run.
	Steps, Mistakes, Used int // numbers of classified samples, of mistakes, and of started epochs
	Clean                 bool
	Changes               []Change // the changes in order, if Remember is set

	block int // minimum number of samples in a block
}

// Block is the number of samples in a block.
const Block = 64

// Change is the change for one misclassified sample. Step, counted from 0, is the step after which
// the change takes effect.
type Change struct {
	Sample, Step int
	Delta        []float64
}

// run runs at most Epochs epochs, and ends when an epoch over all samples has no mistake.
func (l *Loop) run(t *run.Task, h hypothesis) error {
	n := len(l.Class)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	r := rand.New(rand.NewPCG(l.Seed, 0))
	size := l.block
	if l.Batch > 1 { // a block consists of whole batches
		size = max(l.Batch, size-size%l.Batch)
	}
	size = min(size, n)
	quiet := false // whether the last epoch had no mistake
	for l.Used = 0; l.Used < l.Epochs && !l.Clean; {
		complete := !l.Replace || quiet // n draws with replacement may miss samples: after an epoch without mistakes, check all samples
		switch {
		case l.Replace:
			for i := range order {
				order[i] = i
				if !quiet {
					order[i] = r.IntN(n)
				}
			}
		case l.Shuffle:
			r.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		previousMistakes := l.Mistakes
		for from := 0; from < n; from += size {
			if err := t.Step("learn", (float64(l.Used)+float64(from)/float64(n))/float64(l.Epochs)); err != nil {
				return err
			}
			if err := l.judge(h, order[from:min(from+size, n)]); err != nil {
				return err
			}
		}
		l.Used++
		quiet = l.Mistakes == previousMistakes
		l.Clean = quiet && complete
		if t.Trace != nil {
			loss, err := l.criterion(h)
			if err != nil {
				return err
			}
			count := l.Mistakes - previousMistakes
			t.Traced(run.Epoch{Number: l.Used, Mistakes: &count, Loss: loss})
		}
	}
	return t.Step("learn", 1)
}

// criterion returns the perceptron criterion of the hypothesis over all samples.
func (l *Loop) criterion(h hypothesis) (float64, error) {
	scores := backend.NewHost[float64](len(l.Class), l.Outputs)
	for from := 0; from < scores.Rows; from += Block {
		block := make([]int, min(Block, scores.Rows-from))
		for r := range block {
			block[r] = from + r
		}
		f, err := h.values(block)
		if err != nil {
			return 0, err
		}
		for r, i := range block {
			copy(scores.Row(i), f.Row(r))
		}
	}
	_, sum := l.Margin(scores)
	return sum, nil
}

// judge classifies the samples of one block in order, and passes the changes to h.
func (l *Loop) judge(h hypothesis, block []int) error {
	f, err := h.values(block)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(f.Data, func(v float64) bool { return v-v != 0 }) {
		return errors.New("the decision values overflow: scale the features down")
	}
	// The inner products are needed only for the batches that follow a mistake in this block.
	var gram backend.Host[float64]
	delta := backend.NewHost[float64](len(block), l.Outputs)
	var mistaken, steps []int
	first := l.Steps
	effective := 0    // number of mistakes whose changes have taken effect
	size, end := 0, 0 // size of the batch of sample r, and first index of the next batch
	for r, i := range block {
		if r == end {
			size = min(max(l.Batch, 1), len(block)-r)
			end += size
			effective = len(mistaken)
		}
		row := f.Row(r)
		if effective > 0 {
			if gram.Data == nil {
				if gram, err = h.gram(block); err != nil {
					return err
				}
			}
			inner := gram.Row(r)
			for _, q := range mistaken[:effective] {
				for c, d := range delta.Row(q) {
					row[c] += d * (inner[q] + l.Bias)
				}
			}
		}
		l.Steps++
		if l.change(delta.Row(r), row, i, size) {
			mistaken, steps = append(mistaken, r), append(steps, max(0, first+end-1-l.From))
			l.Mistakes++
			if l.Remember {
				l.Changes = append(l.Changes, Change{i, first + end - 1, slices.Clone(delta.Row(r))})
			}
		}
	}
	if len(mistaken) == 0 {
		return nil
	}
	return h.learn(block, delta, mistaken, steps)
}

// change sets delta to the change for sample i with the values f, and reports whether sample i was misclassified.
// For more than two classes the first class with the largest value is predicted.
func (l *Loop) change(delta, f []float64, i, batch int) bool {
	class, rate := l.Class[i], l.Rate/float64(batch)
	if l.Weights != nil {
		rate *= l.Weights[i]
	}
	if len(f) == 1 {
		y := float64(2*class - 1)
		if l.positive(f[0]) == (y > 0) {
			return false
		}
		delta[0] = rate * y
		return true
	}
	best := Largest(f)
	if best == class {
		return false
	}
	delta[class], delta[best] = rate, -rate
	return true
}

// positive reports whether f predicts the second of two classes.
func (l *Loop) positive(f float64) bool { return f > 0 || f == 0 && l.ZeroIsPositive }

// Largest returns the index of the first of the largest values.
func Largest(f []float64) int {
	best := 0
	for j, v := range f {
		if v > f[best] {
			best = j
		}
	}
	return best
}

// averaged returns the number of steps in the average, or 1 if no step is averaged.
func (l *Loop) averaged() float64 { return float64(max(1, l.Steps-l.From)) }

// Square returns max ‖x‖² over the samples.
func (l *Loop) Square() (square float64) {
	for i := range l.X.Rows {
		sum := 0.0
		for _, v := range l.X.Stored(i) {
			sum += v * v
		}
		square = max(square, sum)
	}
	return square
}

// Margin returns the smallest margin of the samples, as computed by the function lead from the decision values f.
// It also returns the perceptron criterion, the weighted sum of the magnitudes of the negative margins.
func (l *Loop) Margin(f backend.Host[float64]) (margin, criterion float64) {
	margin = math.Inf(1)
	for i, class := range l.Class {
		m := lead(f.Row(i), class)
		margin = min(margin, m)
		if l.Weights != nil {
			m *= l.Weights[i]
		}
		criterion += max(0, -m)
	}
	return margin, criterion
}

// Slack returns m·max c/min c for batches of m samples and weights c of the samples. There are at most Slack·(R/γ)²
// mistakes (Novikoff 1962), if R = max ‖x‖ and a unit vector u separates the samples with the margin γ. Proof:
//   - Let a_j be the sum of the weights of the mistakes in batch j, divided by m.
//   - Batch j increases wᵀu by at least γ a_j, and ‖w‖² by at most R² a_j², for the learned vector w.
//   - Hence γ Σ a_j ≤ ‖w‖ ≤ R √Σ a_j². Because a_j ≤ max c, Σ a_j ≤ max c (R/γ)².
//   - Each mistake adds at least min c / m to Σ a_j.
func (l *Loop) Slack() float64 {
	slack := float64(max(l.Batch, 1))
	if l.Weights != nil {
		slack *= slices.Max(l.Weights) / slices.Min(l.Weights)
	}
	return slack
}

// lead returns the margin: ±f for two classes, otherwise the value of the class minus the largest other value.
func lead(f []float64, class int) float64 {
	if len(f) == 1 {
		return float64(2*class-1) * f[0]
	}
	margin := math.Inf(1)
	for c, v := range f {
		if c != class {
			margin = min(margin, f[class]-v)
		}
	}
	return margin
}
