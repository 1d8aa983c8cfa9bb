package validate

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/learners"
)

// CurvePoint is a point of a learning curve: the errors (Score.Error) of models that were fitted to N samples each.
type CurvePoint struct {
	N                     int
	TestError, TrainError Summary // errors over the folds, on the held-out samples and on the training samples
}

// LearningCurve returns a point for each of the fractions p, 0 < p ≤ 1. For each fraction and each of k folds, it
// fits one model to max(1, round(p·n)) of the n samples outside the fold: the first samples in a random order,
// which is the same for all fractions. LearningCurve calls the function fitted in the same way as Scores. The
// error of a fit is a *FitError, whose Fit is i·k + j for fraction i and fold j.
func (r Runner) LearningCurve(ctx context.Context, fit learners.Fitter, k int, fractions []float64, seed uint64, fitted func(m learners.Model, took time.Duration)) ([]CurvePoint, error) {
	for _, p := range fractions {
		if !(p > 0 && p <= 1) {
			return nil, fmt.Errorf("validate: learning curve: a fraction of the samples must be > 0 and ≤ 1, got %v", p)
		}
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	n := r.Data.Len()
	fold, err := Folds(n, k, nil, seed)
	if err != nil {
		return nil, err
	}
	order, err := Folds(n, n, nil, seed+1) // with n folds of one sample each, the fold numbers are a random permutation
	if err != nil {
		return nil, err
	}
	split := func(i int) (train, test []int) {
		for _, row := range order {
			if fold[row] != i%k {
				train = append(train, row)
			} else {
				test = append(test, row)
			}
		}
		return train[:max(1, int(math.Round(fractions[i/k]*float64(len(train)))))], test
	}
	divisions := make([]int, k*len(fractions))
	for i := range divisions {
		divisions[i] = i
	}
	testErrors, trainErrors := make([]float64, len(divisions)), make([]float64, len(divisions))
	fit = timed(fit, fitted)
	err = r.Each(ctx, func(i int) (train, test []int) {
		train, test = split(i)
		return train, append(test, train...)
	}, divisions, func(ctx context.Context, f Fit) error {
		p := f.Part
		m, err := fit(ctx, f.Device, p.Train.X, p.Train.Y, f.Options)
		if err != nil {
			return err
		}
		x, err := numeric.PointsOf(p.Test.X)
		if err != nil {
			return err
		}
		total, t := p.Test.Y.Dims()
		train, _ := p.Train.X.Dims()
		score := func(from, to int) (float64, error) {
			var weights []float64
			if p.Test.Weights != nil {
				weights = p.Test.Weights[from:to]
			}
			s, err := scoreModel(ctx, f.Device, m, r.Options.Classes, x.Slice(from, to-from).Matrix(), p.Test.Y.Slice(from, to, 0, t).(*mat.Dense), weights)
			if err != nil {
				return 0, err
			}
			return s.Error(), nil
		}
		if testErrors[f.Number], err = score(0, total-train); err == nil {
			trainErrors[f.Number], err = score(total-train, total)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	points := make([]CurvePoint, len(fractions))
	for i := range points {
		train, _ := split(i * k)
		points[i] = CurvePoint{N: len(train), TestError: NewSummary(testErrors[i*k : (i+1)*k]), TrainError: NewSummary(trainErrors[i*k : (i+1)*k])}
	}
	return points, nil
}
