package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// openDevices opens the devices that share the models.
func (r *resampling) openDevices() (err error) {
	r.devices, r.close, err = r.a.openSeveral()
	return err
}

// scores fits n models, several at once where there are several devices. Model i
// is fitted to the rows train and scored on the rows test that rows(i) returns;
// where there are none to test on its score is nil. explain says which model it
// was that failed, and gets the first of those that did.
func (r *resampling) scores(ctx context.Context, n int, rows func(i int) (train, test []int, err error), explain func(i int, err error) error) ([]*score, error) {
	list := make([]*score, n)
	var mu sync.Mutex
	done := 0
	tell := func(more int) {
		mu.Lock()
		defer mu.Unlock()
		done += more
		r.p.report(solvers.Progress{Stage: "models", Fraction: float64(done) / float64(n)})
	}
	tell(0)
	err := backend.ForEachDevice(r.devices, n, func(dev backend.Device, i int) error {
		train, test, err := rows(i)
		if err != nil {
			return err
		}
		if len(test) > 0 {
			if list[i], err = r.score(ctx, dev, train, test); err != nil {
				return explain(i, err)
			}
		}
		tell(1)
		return nil
	})
	return list, err
}

// reportUnknown prints what the rows held out had that those of a model had not.
func (r *resampling) reportUnknown() {
	slices.SortFunc(r.unknown, func(u, v dataset.Unknown) int { return strings.Compare(u.Column, v.Column) })
	r.a.reportUnknown(r.all.Source, "held-out row", r.unknown)
}

func (r *resampling) checkFolds(folds int) error {
	if n := r.all.Rows(); n == 1 {
		return fmt.Errorf("%s: has one row only, which leaves none to learn from when it is held out", r.all.Source)
	} else if folds > n {
		return usagef("--folds: %s cannot be divided into %d parts; give --folds %d or fewer", count(n, "row"), folds, n)
	}
	return nil
}

// foldRows returns the rows of model i: those of all folds but one, for the next repeat
// of another division, and those of that one.
func (r *resampling) foldRows(folds int, stratify bool) (func(i int) (train, test []int, err error), error) {
	n := r.all.Rows()
	if err := r.checkFolds(folds); err != nil {
		return nil, err
	}
	var strata []int
	if stratify && r.task == learners.Classification {
		y, err := r.full.Targets(r.all)
		if err != nil {
			return nil, err
		}
		for i := range n {
			strata = append(strata, int(y.At(i, 0)))
		}
	}
	return func(i int) (train, test []int, err error) {
		fold, err := learners.Folds(n, folds, strata, r.f.seed+uint64(i/folds)<<32)
		for row, part := range fold {
			if part == i%folds {
				test = append(test, row)
			} else {
				train = append(train, row)
			}
		}
		return train, test, err
	}, nil
}

func (a *app) crossValidate(ctx context.Context, f *resampleFlags, folds, repeats int, stratify bool, file string) error {
	r, err := a.newResampling(ctx, f, "cv", file)
	if err != nil {
		return err
	}
	defer r.close()
	rows, err := r.foldRows(folds, stratify)
	if err != nil {
		return err
	}
	scores, err := r.scores(ctx, folds*repeats, rows, func(i int, err error) error {
		return fmt.Errorf("%w; without part %d of %d", err, i%folds+1, folds)
	})
	if err != nil {
		return err
	}
	r.p.close()
	r.reportUnknown()
	return a.printReport(ctx, resampleReport{Learner: f.learner, Task: r.task, Assumed: f.assumed(r.all, r.task), N: r.all.Rows(), Folds: folds, Repeats: repeats, Measures: measures(scores), Planned: r.memory.total()})
}

func (a *app) bootstrap(ctx context.Context, f *resampleFlags, rounds int, file string) error {
	r, err := a.newResampling(ctx, f, "bootstrap", file)
	if err != nil {
		return err
	}
	defer r.close()
	n := r.all.Rows()
	drawn := r.drawn
	some := false // of a few rows all may be drawn
	for round := 0; round < rounds && !some; round++ {
		_, test := drawn(round)
		some = len(test) > 0
	}
	if !some {
		return fmt.Errorf("%s: has %s, too few to leave some out", r.all.Source, count(n, "row"))
	}
	// Behind the rounds comes the model of all rows, which are what it is tested on.
	rows := func(i int) (train, test []int, err error) {
		if i < rounds {
			train, test = drawn(i)
			return train, test, nil
		}
		every := make([]int, n)
		for i := range every {
			every[i] = i
		}
		return every, every, nil
	}
	all, err := r.scores(ctx, rounds+1, rows, func(i int, err error) error {
		if i == rounds {
			return err
		}
		return fmt.Errorf("%w; in round %d of the bootstrap: another --seed draws other rows", err, i+1)
	})
	if err != nil {
		return err
	}
	r.p.close()
	r.reportUnknown()
	whole := all[rounds]
	wrong, seen := make([]float64, n), make([]float64, n)
	spread := make([]moments, n)
	for round, s := range all[:rounds] {
		if s == nil {
			continue
		}
		_, test := drawn(round)
		for q, i := range test {
			wrong[i] += s.loss(q)
			seen[i]++
			spread[i].add(s.predicted.RawRowView(q), s.truth.RawRowView(q))
		}
	}
	out, apparent, counted, total := 0.0, 0.0, 0.0, 0.0
	for i := range n {
		w := weightAt(r.weights, i)
		apparent, total = apparent+w*whole.loss(i), total+w
		if seen[i] > 0 {
			out += w * wrong[i] / seen[i]
			counted += w
		}
	}
	out, apparent = out/counted, apparent/total
	e632 := 0.368*apparent + 0.632*out
	if r.task != learners.Classification {
		out, apparent, e632 = math.Sqrt(out), math.Sqrt(apparent), math.Sqrt(e632)
	}
	report := resampleReport{
		Learner: f.learner, Task: r.task, Assumed: f.assumed(r.all, r.task), N: n, Rounds: rounds, Measures: measures(all[:rounds]),
		OutOfBag: &out, RowsOut: int(counted), Apparent: &apparent, E632: &e632, Planned: r.memory.total(),
	}
	if r.task != learners.Classification {
		bias, variance := meanParts(spread, r.weights)
		report.Bias, report.Variance = &bias, &variance
	}
	return a.printReport(ctx, report)
}

// drawn are the rows of a round of the bootstrap, and those that it leaves out.
func (r *resampling) drawn(round int) (train, test []int) {
	for i, times := range learners.Resample(r.all.Rows(), r.f.seed, round) {
		for range times {
			train = append(train, i)
		}
		if times == 0 {
			test = append(test, i)
		}
	}
	return train, test
}

// biasVariance are the parts of the squared error out of the bag.
func (r *resampling) biasVariance(ctx context.Context, rounds int) (bias, variance float64, err error) {
	scores, err := r.scores(ctx, rounds, func(i int) (train, test []int, err error) {
		train, test = r.drawn(i)
		return train, test, nil
	}, func(i int, err error) error { return fmt.Errorf("%w; in round %d of the bootstrap", err, i+1) })
	if err != nil {
		return 0, 0, err
	}
	spread := make([]moments, r.all.Rows())
	for round, s := range scores {
		_, test := r.drawn(round)
		for q, i := range test {
			spread[i].add(s.predicted.RawRowView(q), s.truth.RawRowView(q))
		}
	}
	bias, variance = meanParts(spread, r.weights)
	return bias, variance, nil
}

// meanParts are the means over the rows that have a prediction.
func meanParts(spread []moments, weights []float64) (bias, variance float64) {
	counted := 0.0
	for i, m := range spread {
		if m.n > 0 {
			b, v := m.parts()
			w := weightAt(weights, i)
			bias, variance, counted = bias+w*b, variance+w*v, counted+w
		}
	}
	return bias / counted, variance / counted
}

// moments are those of the predictions of a row by several models (Welford 1962).
type moments struct {
	n                    float64
	mean, squares, truth []float64 // of each target
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

// parts are (f̄ − y)² and the variance of f, means over the targets, whose sum is the
// mean squared error; 0 without a prediction.
func (m *moments) parts() (bias, variance float64) {
	for j, f := range m.mean {
		t := float64(len(m.mean))
		bias += (f - m.truth[j]) * (f - m.truth[j]) / t
		variance += m.squares[j] / m.n / t
	}
	return bias, variance
}

// loss is that of row i of what was scored: the mean squared error over the
// targets, or 1 where the class is wrong.
func (s *score) loss(i int) float64 {
	_, cols := s.truth.Dims()
	sum := 0.0
	for j := range cols {
		d := s.truth.At(i, j) - s.predicted.At(i, j)
		if s.Accuracy != nil && d != 0 {
			d = 1
		}
		sum += d * d / float64(cols)
	}
	return sum
}
