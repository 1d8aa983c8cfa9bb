package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels"
)

// checkShapes holds the rules that need no look at the samples.
func (p Problem) checkShapes() error {
	if p.Kernel == nil {
		return errors.New("solvers: the kernel is missing")
	}
	for _, m := range []struct {
		name string
		h    backend.Host[float64]
	}{{"x", p.X}, {"y", p.Y}} {
		h := m.h
		if h.Rows <= 0 || h.Cols <= 0 {
			return fmt.Errorf("solvers: %s is empty: %s, %s", m.name, count.Of(h.Rows, "row"), count.Of(h.Cols, "column"))
		}
		if h.Stride < h.Cols || len(h.Data) < (h.Rows-1)*h.Stride+h.Cols {
			return fmt.Errorf("solvers: %s: %d×%d with stride %d does not fit %s", m.name, h.Rows, h.Cols, h.Stride, count.Of(len(h.Data), "element"))
		}
	}
	n := p.X.Rows
	if p.Y.Rows != n {
		return fmt.Errorf("solvers: x has %s, y has %d", count.Of(n, "row"), p.Y.Rows)
	}
	if err := p.Kernel.Check(p.X.Cols); err != nil {
		return fmt.Errorf("solvers: %w", err)
	}
	if !(p.Lambda >= 0) || math.IsInf(p.Lambda, 1) {
		return fmt.Errorf("solvers: lambda must be a finite number ≥ 0, got %v", p.Lambda)
	}
	if err := CheckWeights(p.Weights, n); err != nil {
		return fmt.Errorf("solvers: %w", err)
	}
	for i, w := range p.Weights {
		if w > 0 && math.IsInf(p.Lambda/w, 1) {
			return fmt.Errorf("solvers: weights: row %d: %v is too small for lambda %v: use 0 to leave the sample out", i+1, w, p.Lambda)
		}
	}
	return nil
}

// CheckWeights is the rule of the weights of samples, which may be nil: one for each of
// the rows, finite, ≥ 0, not all 0, and with a finite sum.
func CheckWeights(weights []float64, rows int) error {
	if weights == nil {
		return nil
	}
	if len(weights) != rows {
		return fmt.Errorf("%s for %s", count.Of(len(weights), "weight"), count.Of(rows, "row"))
	}
	sum := 0.0
	for i, w := range weights {
		if err := kernels.NonNegative.Check(fmt.Sprintf("weights: row %d:", i+1), w); err != nil {
			return err
		}
		sum += w
	}
	switch {
	case sum == 0:
		return errors.New("weights: all are 0: no sample is left")
	case math.IsInf(sum, 1):
		return errors.New("weights: their sum is not a finite number")
	}
	return nil
}

// checkValues refuses NaN and Inf, and points that the kernel is not made for,
// also in samples of weight 0.
func (p Problem) checkValues(ctx context.Context) error {
	if err := checkFinite(ctx, "x", p.X); err != nil {
		return err
	}
	if err := backend.CheckPoints(p.Kernel, "x", p.X); err != nil {
		return fmt.Errorf("solvers: %w", err)
	}
	return checkFinite(ctx, "y", p.Y)
}

func checkFinite(ctx context.Context, name string, h backend.Host[float64]) error {
	every := max(1, 1<<20/h.Cols) // rows between looks at ctx
	for i := range h.Rows {
		if i%every == 0 && ctx.Err() != nil {
			return fmt.Errorf("solvers: %w", context.Cause(ctx))
		}
		row := h.Row(i)
		var zero float64
		for _, v := range row {
			zero += v - v // NaN as soon as one element is not finite
		}
		if zero == 0 {
			continue
		}
		for j, v := range row {
			if v-v != 0 {
				return fmt.Errorf("solvers: %s: row %d, column %d is %v", name, i+1, j+1, v)
			}
		}
	}
	return nil
}

// PointError is the error for row i of x, from 0, that the kernel k has no finite
// value for: by the rule of k for points, or by the value.
func PointError(k kernels.Kernel, i int, x []float64, value float64) error {
	if rule := kernels.PointRule(k); rule != nil {
		if err := rule(x); err != nil {
			return fmt.Errorf("x: row %d: %w", i+1, err)
		}
	}
	err := fmt.Errorf("x: row %d: the kernel %v has the value %v", i+1, k, value)
	if math.IsInf(value, 0) {
		return kernels.Overflow(err)
	}
	return err
}
