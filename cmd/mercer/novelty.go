package main

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
)

// novelty is a model of novelty as a classifier: f(x) ≥ 0 is like the samples.
// Where a table tells which rows are, it does so by 1 and −1.
type novelty struct{ learners.Model }

// asClassifier wraps a model of novelty, and no other.
func asClassifier(m learners.Model) learners.Model {
	if d, err := learners.Find(m.Learner()); err == nil && d.Does(learners.Novelty) {
		return novelty{m}
	}
	return m
}

func (m novelty) Classes() learners.Classes {
	return learners.Classes{Labels: []float64{-1, 1}, Names: []string{"outlier", "inlier"}, ZeroIsPositive: true}
}

// checkTruth refuses a target that does not tell inliers from outliers.
func (m novelty) checkTruth(truth *mat.Dense) error {
	n, _ := truth.Dims()
	for i := range n {
		if v := truth.At(i, 0); v != 1 && v != -1 {
			return fmt.Errorf("the target of row %d is %v: novelty is judged by 1 for inliers and -1 for outliers", i+1, v)
		}
	}
	return nil
}

func (m novelty) Decision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.Model.Predict(ctx, dev, x)
}
