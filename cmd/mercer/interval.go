package main

import (
	"context"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/learners"
)

func addInterval(flags *pflag.FlagSet, level *float64) {
	flags.Float64Var(level, "interval", 0, "`LEVEL` of prediction intervals to add, such as 0.9")
}

// checkInterval returns an error for an invalid level, and for a model without intervals.
func checkInterval(level float64, b modelfile.Bundle) error {
	if level == 0 || b.Calibration != nil && level > 0 && level < 1 {
		return nil
	}
	_, jackknife := learners.As[learners.Jackknife](b.Model)
	std := ""
	if fittedWith(b.Model, "intervals") != "" {
		std = "--intervals, or by mercer fit "
	}
	if fittedWith(b.Model, "std") != "" {
		std += "--std, or by mercer fit "
	}
	switch {
	case !(level > 0 && level < 1):
		return usagef("--interval: must be > 0 and < 1, got %v", level)
	case jackknife && level < 0.5:
		return usagef("--interval: must be ≥ 0.5 and < 1 for the jackknife+ intervals of %s, got %v", b.Model.Learner(), level)
	case b.HasIntervals() && !jackknife && b.Encoder.Gram:
		return usagef("--interval: the interval depends on the kernel value of each row with itself, which the table does not have; fit the model by mercer fit --calibrate 0.2 instead")
	case b.HasIntervals():
		return nil
	}
	return usagef("--interval: this model of %s has no prediction intervals; fit it by mercer fit %s--calibrate 0.2, which holds out a part of the rows for them", b.Model.Learner(), std)
}

// cover holds intervals or sets that should contain the targets of rows.
type cover struct {
	lower, upper *mat.Dense // n×outputs
	sets         *mat.Dense // prediction sets: n×K matrix whose element (i, k) is 1 if class k is in the set of row i
}

// coverOf returns the prediction intervals or sets of the encoded rows x. values holds the predictions for x. If
// level is 0, c is empty.
func (a *app) coverOf(ctx context.Context, dev backend.Device, b modelfile.Bundle, x mat.Matrix, values *mat.Dense, level float64) (c cover, err error) {
	if level == 0 {
		return c, nil
	}
	if k, ok := b.Model.(learners.Classifier); ok {
		c.sets, err = b.Calibration.PredictionSets(ctx, dev, k, x, level)
	} else if b.Calibration != nil {
		c.lower, c.upper, err = b.Calibration.Intervals(values, level)
	} else {
		c.lower, c.upper, err = b.Intervals(ctx, dev, x, level)
	}
	if err == nil {
		err = numeric.CheckFinite("a bound of the interval", c.lower)
	}
	if err == nil {
		err = numeric.CheckFinite("a bound of the interval", c.upper)
	}
	return c, err
}

// names lists the classes in each set.
func (c cover) names(classes learners.Classes) [][]string {
	n, _ := c.sets.Dims()
	sets := make([][]string, n)
	for i := range sets {
		for j, in := range c.sets.RawRowView(i) {
			if in == 1 {
				sets[i] = append(sets[i], classes.Names[j])
			}
		}
	}
	return sets
}

// coverage is how often intervals or sets contain the true values.
type coverage struct {
	Level    float64 `json:"level"`
	Coverage float64 `json:"coverage"` // fraction of the targets that are in their interval or set
	Mean     float64 `json:"mean"`     // mean width of the intervals, or mean number of classes in the sets
	Classes  bool    `json:"-"`
}

func (c *coverage) sizeLabel() string {
	if c.Classes {
		return "mean classes in a set"
	}
	return "mean width"
}

// setCoverage sets how often the intervals or sets contain the targets.
func (s *score) setCoverage(c cover, level float64) {
	if level == 0 {
		return
	}
	s.Interval = &coverage{Level: level, Classes: c.sets != nil}
	n, outputs := s.Truth.Dims()
	covered, total, cells := 0.0, 0.0, 0.0
	for i := range n {
		w := weightAt(s.Weights, i)
		cells += w * float64(outputs)
		if c.sets != nil {
			if class := s.ModelClasses.Index(s.Truth.At(i, 0)); class >= 0 && c.sets.At(i, class) == 1 {
				covered += w
			}
			total += w * mat.Sum(c.sets.RowView(i))
			continue
		}
		for j := range outputs {
			low, high, y := c.lower.At(i, j), c.upper.At(i, j), s.Truth.At(i, j)
			if low <= y && y <= high {
				covered += w
			}
			total += w * (high - low)
		}
	}
	s.Interval.Coverage, s.Interval.Mean = covered/cells, total/cells
}
