package learners_test

import (
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
	"gonum.org/v1/gonum/mat"
)

// hypotheses holds the matrix w of a perceptron before and after each sample. The last row of w is the intercept.
type hypotheses struct {
	updated  []*mat.Dense // the w after sample t was processed
	judges   []*mat.Dense // the w that classified sample t
	correct  []bool       // whether this w classified sample t correctly
	mistakes int
}

// batches runs the perceptron by its definition, with batches and weights.
func batches(x, y *mat.Dense, classes, epochs, batch int, bias float64, weights []float64) hypotheses {
	n, d := x.Dims()
	cols := classes
	if classes == 2 {
		cols = 1
	}
	w := mat.NewDense(d+1, cols, nil)
	var h hypotheses
	for range epochs {
		previous := h.mistakes
		for from := 0; from < n; from += batch {
			to := min(from+batch, n)
			next := mat.DenseCopyOf(w)
			for i := from; i < to; i++ {
				step := weights[i] / float64(to-from)
				add := func(c int, v float64) {
					for p := range d {
						next.Set(p, c, next.At(p, c)+v*x.At(i, p))
					}
					next.Set(d, c, next.At(d, c)+v*bias)
				}
				f := make([]float64, cols)
				for c := range f {
					for p := range d {
						f[c] += w.At(p, c) * x.At(i, p)
					}
					f[c] += w.At(d, c)
				}
				label, mistakes := int(y.At(i, 0)), h.mistakes
				if cols == 1 {
					if sign := 2*float64(label) - 1; (f[0] > 0) != (sign > 0) {
						add(0, sign*step)
						h.mistakes++
					}
				} else if predicted := slices.Index(f, slices.Max(f)); predicted != label {
					add(label, step)
					add(predicted, -step)
					h.mistakes++
				}
				h.judges, h.correct = append(h.judges, w), append(h.correct, h.mistakes == mistakes)
				if i < to-1 {
					h.updated = append(h.updated, w)
				}
			}
			if slices.Contains(h.correct[len(h.correct)-(to-from):], false) {
				w = next
			}
			h.updated = append(h.updated, w)
		}
		if h.mistakes == previous {
			break
		}
	}
	return h
}

// average returns the mean of h.updated.
func (h hypotheses) average() *mat.Dense {
	sum := mat.DenseCopyOf(h.updated[0])
	for _, w := range h.updated[1:] {
		sum.Add(sum, w)
	}
	sum.Scale(1/float64(len(h.updated)), sum)
	return sum
}

// votes returns the votes on the class of x. Each w has one vote when it is new, and one more for
// each sample that it classified correctly.
func (h hypotheses) votes(x []float64) []float64 {
	d, cols := h.updated[0].Dims()
	votes, total := make([]float64, cols), 0.0
	vote := func(w *mat.Dense) {
		f := make([]float64, cols)
		for c := range f {
			for p, v := range x {
				f[c] += w.At(p, c) * v
			}
			f[c] += w.At(d-1, c)
		}
		total++
		switch {
		case cols > 1:
			votes[slices.Index(f, slices.Max(f))]++
		case f[0] > 0:
			votes[0]++
		default:
			votes[0]--
		}
	}
	for t, w := range h.updated {
		if h.correct[t] {
			vote(h.judges[t])
		}
		if w != h.judges[t] {
			vote(w)
		}
	}
	for c := range votes {
		votes[c] /= total
	}
	return votes
}

// TestPerceptronBatches compares fits with batches and weights with the definition. The cases are
// every kind of perceptron, two and more classes, and the kernel perceptron with the linear kernel.
func TestPerceptronBatches(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n, d, epochs = 150, 3, 4
	for _, classes := range []int{2, 4} {
		t.Logf("seed 11, %d classes", classes)
		x, y := wholeNumbers(n, d, classes, 11)
		bias := 0.0 // R²
		for i := range n {
			bias = max(bias, mat.Dot(x.RowView(i), x.RowView(i)))
		}
		ones, weights := slices.Repeat([]float64{1}, n), make([]float64, n)
		for i := range weights {
			weights[i] = float64(1 + i*5%3)
		}
		// The last batch of 32 has 22 samples, and a batch of 128 is larger than a block.
		for _, batch := range []int{1, 2, 32, 128, n} {
			for _, c := range [][]float64{nil, weights} {
				sampleWeights := c
				if sampleWeights == nil {
					sampleWeights = ones
				}
				want := batches(x, y, classes, epochs, batch, bias, sampleWeights)
				if want.mistakes < 20 {
					t.Fatalf("only %d mistakes: the test shows nothing", want.mistakes)
				}
				last, mean := want.updated[len(want.updated)-1], want.average()
				size := 0.0 // the largest absolute value of an inner product
				for _, w := range want.updated {
					size = max(size, mat.Norm(w, 2)*bias)
				}
				// The bound is the rounding error of sums with one term per step, relative to the largest inner
				// product.
				bound := float64(4*len(want.updated)) * 0x1p-52 * size
				o := learners.Options{Weights: c}
				for _, kind := range []learners.PerceptronKind{learners.LastPerceptron, learners.AveragedPerceptron, learners.VotedPerceptron} {
					unweighted, err := learners.Perceptron{Kind: kind, Epochs: epochs, Batch: batch, NoShuffle: true}.Fit(t.Context(), dev, x, y, o)
					if err != nil {
						t.Fatal(err)
					}
					kernel, err := learners.KernelPerceptron{Kernel: kernels.Linear{}, Kind: kind, Epochs: epochs, Batch: batch, NoShuffle: true}.Fit(t.Context(), dev, x, y, o)
					if err != nil {
						t.Fatal(err)
					}
					for name, m := range map[string]learners.Classifier{"perceptron": unweighted, "kernel": kernel} {
						if got := fact(t, m, "mistakes"); got != want.mistakes {
							t.Errorf("%s %s, batches of %d: %v mistakes, want %d", name, kind, batch, got, want.mistakes)
							continue
						}
						f, err := m.Decision(t.Context(), dev, x)
						if err != nil {
							t.Fatal(err)
						}
						for i := 0; i < n; i += 7 {
							values := want.votes(x.RawRowView(i))
							if kind != learners.VotedPerceptron {
								w := last
								if kind == learners.AveragedPerceptron {
									w = mean
								}
								for c := range values {
									values[c] = w.At(d, c)
									for p := range d {
										values[c] += w.At(p, c) * x.At(i, p)
									}
								}
							}
							for c, v := range values {
								checkClose(t, name+" "+string(kind), f.At(i, c), v, bound)
							}
						}
					}
				}
			}
		}
	}
}

// TestPerceptronWeightsAreRepetitions checks that in a batch of all samples a sample of weight 3 has the effect of
// three equal samples. Steps are divided by the batch size, so that w for 128 repeated samples is half of w for 64
// weighted samples.
func TestPerceptronWeightsAreRepetitions(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	t.Log("seed 13")
	x, y := wholeNumbers(64, 3, 3, 13)
	weights := make([]float64, 64)
	var rx, ry []float64
	for i := range weights { // the weights sum to 128
		weights[i] = 1 + 2*float64(i%2)
		for range int(weights[i]) {
			rx, ry = append(rx, x.RawRowView(i)...), append(ry, y.At(i, 0))
		}
	}
	l := learners.Perceptron{NoIntercept: true, Batch: 1000, Epochs: 30, NoShuffle: true}
	a, err := l.Fit(t.Context(), dev, x, y, learners.Options{Weights: weights})
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Fit(t.Context(), dev, mat.NewDense(128, 3, rx), mat.NewDense(128, 1, ry), learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, v := a.(*learners.PerceptronModel).Coef(), b.(*learners.PerceptronModel).Coef()
	v.Scale(2, v) // corrects for a batch of 128 samples instead of 64; powers of two make all operations exact
	if !mat.Equal(w, v) {
		t.Errorf("w is %v, of repeated samples %v", mat.Formatted(w), mat.Formatted(v))
	}
}

// TestNovikoffOfBatches checks that the reported bound on the number of mistakes holds with batches and weights.
func TestNovikoffOfBatches(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	numChecked := 0
	for seed := range uint64(6) {
		t.Logf("seed %d", seed)
		x, y := wholeNumbers(90, 3, 2, seed)
		for i := range 90 { // these samples are separable
			sum := x.At(i, 0) + 2*x.At(i, 1) + 3*x.At(i, 2)
			y.Set(i, 0, -1)
			if sum > 0 {
				y.Set(i, 0, 1)
			}
			x.Set(i, 2, x.At(i, 2)+2*y.At(i, 0)) // enlarges the margin
		}
		weights := make([]float64, 90)
		for i := range weights {
			weights[i] = 1 + float64(i%4)
		}
		for _, batch := range []int{1, 8, 90} {
			m, err := learners.Perceptron{NoIntercept: seed%2 == 0, Batch: batch, Epochs: 500, Seed: seed}.Fit(t.Context(), dev, x, y, learners.Options{Weights: weights})
			if err != nil {
				t.Fatal(err)
			}
			if !fact(t, m, "last epoch without mistakes").(bool) {
				continue
			}
			numChecked++
			if mistakes, bound := fact(t, m, "mistakes").(int), fact(t, m, "novikoff bound").(float64); float64(mistakes) > bound {
				t.Errorf("batches of %d: %d mistakes, at most %v are possible", batch, mistakes, bound)
			}
		}
	}
	if numChecked < 9 {
		t.Errorf("only %d of 18 were separated", numChecked)
	}
}

// TestBatchesWithBudget checks that also with batches the model has no more centers than its budget allows.
func TestBatchesWithBudget(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	t.Log("seed 5")
	x, y := wholeNumbers(200, 3, 3, 5)
	m, err := learners.KernelPerceptron{Kernel: kernels.Gaussian{Sigma: 6}, Budget: 30, Batch: 20, Epochs: 10, NoIntercept: true, NoShuffle: true}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := fact(t, m, "support").(int); n > 30 {
		t.Errorf("%d samples in f", n)
	}
	s, err := validate.ScoreClassification(m.Classes(), nil, y, validate.Outcome{Values: labels(t, dev, m, x)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if *s.Accuracy < 0.5 { // a constant prediction is right for less than half of the samples
		t.Errorf("accuracy %v", *s.Accuracy)
	}
}
