package validate

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/learners"
)

// OutOfBag is the bootstrap estimate of a learner's error: the root-mean-square error, or the
// fraction of samples whose class is wrong.
type OutOfBag struct {
	Scores []*Score // score of each round on its out-of-bag samples; an element is nil if the round has no such samples
	// Error is the error on out-of-bag samples: the losses are averaged over the rounds for each of the N samples that
	// are out of bag at least once, and then over these samples. Apparent is the training error of a model fitted to
	// all samples.
	Error, Apparent float64
	N               int
	// For regression, Error² = Bias2 + Variance (Geman, Bienenstock and Doursat, 1992). For each sample, f̄ is the mean
	// of the predictions by the models fitted without it. Bias2 is the mean of (f̄ − y)²: bias² plus the noise of y.
	// Variance is the mean of the variance of the predictions. For classes both are NaN.
	Bias2, Variance float64
}

// E632 returns 0.632 Error + 0.368 Apparent for classes, and √(0.632 Error² + 0.368 Apparent²) for
// regression (Efron and Tibshirani, 1997).
func (b *OutOfBag) E632() float64 {
	if math.IsNaN(b.Bias2) { // Bias2 is NaN for classification
		return 0.632*b.Error + 0.368*b.Apparent
	}
	return math.Sqrt(0.632*b.Error*b.Error + 0.368*b.Apparent*b.Apparent)
}

// OutOfBag fits a model in each round of the bootstrap, and one model to all samples. The error of a fit is a
// *FitError, whose Fit is the number of the round or, for the model of all samples, rounds.
func (r Runner) OutOfBag(ctx context.Context, fit learners.Fitter, rounds int, seed uint64) (*OutOfBag, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	n := r.Data.Len()
	splits := Bootstrap(n, seed)
	anyTest := false // whether some round has out-of-bag samples; if n is small, a round may draw all samples
	for round := 0; round < rounds && !anyTest; round++ {
		_, test := splits(round)
		anyTest = len(test) > 0
	}
	if !anyTest {
		return nil, fmt.Errorf("validate: bootstrap: with only %s, no round leaves a row out", count.Of(n, "row"))
	}
	scores, err := r.Scores(ctx, fit, rounds+1, func(i int) (train, test []int) {
		if i < rounds {
			return splits(i)
		}
		allRows := make([]int, n)
		for i := range allRows {
			allRows[i] = i
		}
		return allRows, allRows
	}, nil)
	if err != nil {
		return nil, err
	}
	full := scores[rounds]
	b := &OutOfBag{Scores: scores[:rounds]}
	losses, predictions := make([]float64, n), make([]moments, n)
	for round, s := range b.Scores {
		if s == nil {
			continue
		}
		_, test := splits(round)
		for q, i := range test {
			losses[i] += s.Loss(q)
			predictions[i].add(s.Outcome.Values.RawRowView(q), s.Truth.RawRowView(q))
		}
	}
	testWeight, total := 0.0, 0.0
	for i, m := range predictions {
		w := weightAt(full.Weights, i)
		b.Apparent, total = b.Apparent+w*full.Loss(i), total+w
		if m.n > 0 {
			bias, variance := m.biasVariance()
			b.Error, b.Bias2, b.Variance = b.Error+w*losses[i]/m.n, b.Bias2+w*bias, b.Variance+w*variance
			testWeight += w
			b.N++
		}
	}
	b.Error, b.Apparent, b.Bias2, b.Variance = b.Error/testWeight, b.Apparent/total, b.Bias2/testWeight, b.Variance/testWeight
	if full.Accuracy == nil {
		b.Error, b.Apparent = math.Sqrt(b.Error), math.Sqrt(b.Apparent)
	} else {
		b.Bias2, b.Variance = math.NaN(), math.NaN()
	}
	return b, nil
}

// moments accumulates the mean and the variance of the predictions of one sample (Welford 1962).
type moments struct {
	n                    float64
	mean, squares, truth []float64 // one element for each target
}

func (m *moments) add(predicted, truth []float64) {
	if m.n == 0 {
		m.mean, m.squares, m.truth = make([]float64, len(truth)), make([]float64, len(truth)), truth
	}
	m.n++
	for j, v := range predicted {
		d := v - m.mean[j]
		m.mean[j] += d / m.n
		m.squares[j] += d * (v - m.mean[j])
	}
}

// biasVariance returns the squared error of the mean prediction, and the variance of the
// predictions, each averaged over the targets. Their sum is the mean squared error.
func (m *moments) biasVariance() (bias, variance float64) {
	for j, f := range m.mean {
		t := float64(len(m.mean))
		bias += (f - m.truth[j]) * (f - m.truth[j]) / t
		variance += m.squares[j] / m.n / t
	}
	return bias, variance
}
