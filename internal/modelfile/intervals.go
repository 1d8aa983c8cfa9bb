package modelfile

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
)

// HasIntervals reports whether Intervals is available. It is available for a regression model that
// was calibrated, that stores the data for the jackknife+, or that has variances.
func (b Bundle) HasIntervals() bool {
	if _, classes := b.Model.(learners.Classifier); classes {
		return false
	}
	_, jackknife := learners.As[learners.Jackknife](b.Model)
	_, uncertain := learners.As[learners.Uncertain](b.Model)
	return jackknife || uncertain || b.Calibration != nil
}

// Intervals returns n×outputs lower and upper bounds of new targets at the rows of x. A new target is between its
// bounds with the probability level. The bounds come from the calibration; without a calibration, from the
// jackknife+; without both, from the variances (see normalIntervals). Without a calibration, a model of texts or
// trees that was read from a file requires Complete.
func (b Bundle) Intervals(ctx context.Context, dev backend.Device, x mat.Matrix, level float64) (lower, upper *mat.Dense, err error) {
	switch {
	case b.Model == nil:
		return nil, nil, errors.New("modelfile: the bundle has no model")
	case !b.HasIntervals():
		return nil, nil, fmt.Errorf("modelfile: this model of %s has no prediction intervals", b.Model.Learner())
	case b.Calibration == nil:
		if j, ok := learners.As[learners.Jackknife](b.Model); ok {
			return j.Intervals(ctx, dev, x, level)
		}
		return normalIntervals(ctx, dev, b.Model.(learners.Uncertain), x, level)
	}
	f, err := b.Model.Predict(ctx, dev, x)
	if err != nil {
		return nil, nil, err
	}
	return b.Calibration.Intervals(f, level)
}

// normalIntervals returns the n×outputs bounds f(x) ± q σ(x). f(x) is the prediction, σ² is
// learners.Uncertain.Variance, and q is the quantile (1 + level)/2 of the normal distribution.
func normalIntervals(ctx context.Context, dev backend.Device, m learners.Uncertain, x mat.Matrix, level float64) (lower, upper *mat.Dense, err error) {
	if !(level > 0 && level < 1) {
		return nil, nil, fmt.Errorf("modelfile: intervals: level must be > 0 and < 1, got %v", level)
	}
	f, err := m.Predict(ctx, dev, x)
	if err != nil {
		return nil, nil, err
	}
	v, err := m.Variance(ctx, dev, x)
	if err != nil {
		return nil, nil, err
	}
	q := math.Round(math.Sqrt2*math.Erfinv(level)*0x1p40) / 0x1p40 // rounded, because the last bits of Erfinv depend on the processor
	lower, upper = mat.DenseCopyOf(f), f
	lower.Apply(func(i, j int, f float64) float64 { return f - q*math.Sqrt(v.At(i, j)) }, lower)
	upper.Apply(func(i, j int, f float64) float64 { return f + q*math.Sqrt(v.At(i, j)) }, upper)
	return lower, upper, nil
}
