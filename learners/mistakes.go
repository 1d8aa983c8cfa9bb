package learners

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
)

// A hypothesis is what a perceptron has learnt so far, as seen by its loop: f
// with C outputs, 1 for two classes.
type hypothesis interface {
	// values returns f of the samples of a block, B×C.
	values(block []int) (backend.Host[float64], error)
	// gram returns the inner products of the samples of a block: of its lower
	// triangle row r is read up to column r.
	gram(block []int) (backend.Host[float64], error)
	// learn adds Σ_r δ_r k(x_r, ·) over the samples of the block that mistaken
	// lists. steps has for each of them the step, from 0, after which its
	// change counts.
	learn(block []int, delta backend.Host[float64], mistaken, steps []int) error
}

// mistakes is the loop of all perceptrons: samples are judged one after another,
// and those that are judged wrongly change the hypothesis.
//
// Blocks of samples go to the backend together: f of the block before it, and
// its inner products, from which what earlier samples of the block changed is
// added on the way. The result is that of the plain loop but for rounding, at
// the speed of matrix products.
type mistakes struct {
	classes Classes
	index   []int     // class of each sample
	weights []float64 // of each sample, > 0; nil: 1
	bias    float64
	rate    float64
	batch   int
	epochs  int
	shuffle bool
	replace bool // draw with replacement
	from    int  // steps before those that are averaged
	started bool // not with f = 0
	seed    uint64
	block   int // samples in one block, at least

	// What was found.
	steps, total, used int // samples judged, mistakes, epochs begun
	clean              bool
	changes            []change // in their order, where remember is set
	remember           bool
}

// change is one mistake: the sample, what was added for it, and the step, from
// 0, after which it counts.
type change struct {
	sample, step int
	delta        []float64
}

// outputs is the number of columns of f.
func (l *mistakes) outputs() int { return l.classes.Columns() }

// run runs epochs until one has no mistake.
func (l *mistakes) run(t *run.Task, h hypothesis) error {
	n := len(l.index)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	r := rand.New(rand.NewPCG(l.seed, 0))
	size := l.block
	if l.batch > 1 { // blocks hold whole batches
		size = max(l.batch, size-size%l.batch)
	}
	size = min(size, n)
	quiet := false // the last epoch had no mistake
	for l.used = 0; l.used < l.epochs && !l.clean; {
		complete := !l.replace || quiet // n draws need not hold every sample: then all are judged
		switch {
		case l.replace:
			for i := range order {
				order[i] = i
				if !quiet {
					order[i] = r.IntN(n)
				}
			}
		case l.shuffle:
			r.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		before := l.total
		for from := 0; from < n; from += size {
			if err := t.Step("learn", (float64(l.used)+float64(from)/float64(n))/float64(l.epochs)); err != nil {
				return err
			}
			if err := l.judge(h, order[from:min(from+size, n)]); err != nil {
				return err
			}
		}
		l.used++
		quiet = l.total == before
		l.clean = quiet && complete
		if t.Trace != nil {
			loss, err := l.criterion(h)
			if err != nil {
				return err
			}
			count := l.total - before
			t.Traced(run.Epoch{Number: l.used, Mistakes: &count, Loss: loss})
		}
	}
	return t.Step("learn", 1)
}

// criterion returns that of the hypothesis over all samples.
func (l *mistakes) criterion(h hypothesis) (float64, error) {
	all := backend.NewHost[float64](len(l.index), l.outputs())
	for from := 0; from < all.Rows; from += perceptronBlock {
		block := make([]int, min(perceptronBlock, all.Rows-from))
		for r := range block {
			block[r] = from + r
		}
		f, err := h.values(block)
		if err != nil {
			return 0, err
		}
		for r, i := range block {
			copy(all.Row(i), f.Row(r))
		}
	}
	_, sum := l.margin(all)
	return sum, nil
}

// judge is the loop over one block.
func (l *mistakes) judge(h hypothesis, block []int) error {
	f, err := h.values(block)
	if err != nil {
		return err
	}
	if _, _, bad := notFinite(f); bad {
		return errors.New("the decision values overflow: scale the features down")
	}
	// Asked for when the first mistake is made: most blocks of a learnt epoch
	// have none, and a block that is one batch has no use for it.
	var gram backend.Host[float64]
	delta := backend.NewHost[float64](len(block), l.outputs())
	var mistaken, steps []int
	first := l.steps
	effective := 0    // mistakes among the first of mistaken that count already
	size, end := 0, 0 // of the batch of sample r, and where the next begins
	for r, i := range block {
		if r == end {
			size = min(max(l.batch, 1), len(block)-r)
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
					row[c] += d * (inner[q] + l.bias)
				}
			}
		}
		l.steps++
		if l.change(delta.Row(r), row, i, size) {
			mistaken, steps = append(mistaken, r), append(steps, max(0, first+end-1-l.from))
			l.total++
			if l.remember {
				l.changes = append(l.changes, change{i, first + end - 1, slices.Clone(delta.Row(r))})
			}
		}
	}
	if len(mistaken) == 0 {
		return nil
	}
	return h.learn(block, delta, mistaken, steps)
}

// change sets delta to what sample i changes whose values are f, and tells
// whether it was a mistake. Of two classes f > 0 is the second, and 0 by Classes.ZeroIsPositive; of more the
// first of the largest is predicted.
func (l *mistakes) change(delta, f []float64, i, batch int) bool {
	class, rate := l.index[i], l.rate/float64(batch)
	if l.weights != nil {
		rate *= l.weights[i]
	}
	if len(f) == 1 {
		y := float64(2*class - 1)
		if l.classes.positive(f[0]) == (y > 0) {
			return false
		}
		delta[0] = rate * y
		return true
	}
	best := largest(f)
	if best == class {
		return false
	}
	delta[class], delta[best] = rate, -rate
	return true
}

// largest returns the place of the first of the largest values.
func largest(f []float64) int {
	best := 0
	for j, v := range f {
		if v > f[best] {
			best = j
		}
	}
	return best
}

// averaged is the number of steps that are averaged; the last hypothesis counts where
// there are none.
func (l *mistakes) averaged() float64 { return float64(max(1, l.steps-l.from)) }

// margin returns the smallest y f(x), of several classes the smallest lead of the
// right one, over the samples with decision values f; and the perceptron criterion,
// the sum of w_i times what it is below 0.
func (l *mistakes) margin(f backend.Host[float64]) (least, criterion float64) {
	least = math.Inf(1)
	for i, class := range l.index {
		m := lead(f.Row(i), class)
		least = min(least, m)
		if l.weights != nil {
			m *= l.weights[i]
		}
		criterion += max(0, -m)
	}
	return least, criterion
}

// facts are what a perceptron reports of its fit with decision values f. norm is the
// length of w, radius the largest ‖φ(x)‖.
func (l *mistakes) facts(f backend.Host[float64], norm, radius float64) []Fact {
	functional, criterion := l.margin(f)
	facts := []Fact{{"epochs", l.used}, {"mistakes", l.total}, {"last epoch without mistakes", l.clean}, {"criterion", criterion}}
	if l.epochs == untilClean && !l.clean {
		facts = append(facts, Fact{"warning", fmt.Sprintf("there were mistakes in each of %d epochs: the samples may not be separable", l.used)})
	}
	if norm == 0 {
		return facts
	}
	functional += 0 // −0 is 0
	geometric := functional / norm
	facts = append(facts, Fact{squaredNorm, norm * norm}, Fact{"functional margin", functional}, Fact{"geometric margin", geometric}, Fact{"largest norm", radius})
	if len(l.classes.Labels) == 2 && geometric > 0 && !l.started {
		ratio := radius / geometric
		if l.bias > 0 {
			ratio *= 2
		}
		facts = append(facts, Fact{"novikoff bound", ratio * ratio * l.slack()})
	}
	return facts
}

// slack is how many times the bound of Novikoff (1962) grows by batches and
// weights. Let a_j be the weights c of the mistakes of batch j over its size: it
// moves wᵀu by at least γ a_j, and ‖w‖² by at most R² a_j². So γ Σ a_j ≤ ‖w‖ ≤
// R √Σ a_j², where a_j ≤ max c: Σ a_j ≤ max c (R/γ)². Each mistake adds at least
// min c / m to that sum.
func (l *mistakes) slack() float64 {
	slack := float64(max(l.batch, 1))
	if l.weights != nil {
		slack *= slices.Max(l.weights) / slices.Min(l.weights)
	}
	return slack
}
