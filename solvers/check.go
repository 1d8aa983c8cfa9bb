package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
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
	if p.Weights != nil && len(p.Weights) != n {
		return fmt.Errorf("solvers: %s for %s", count.Of(len(p.Weights), "weight"), count.Of(n, "row"))
	}
	return p.checkWeights()
}

// checkWeights: finite, ≥ 0, not all 0, and neither their sum nor λ/w_i leaves
// the range of float64.
func (p Problem) checkWeights() error {
	if p.Weights == nil {
		return nil
	}
	var sum float64
	for i, w := range p.Weights {
		if !(w >= 0) || math.IsInf(w, 1) {
			return fmt.Errorf("solvers: weights: row %d: must be a finite number ≥ 0, got %v", i+1, w)
		}
		if w > 0 && math.IsInf(p.Lambda/w, 1) {
			return fmt.Errorf("solvers: weights: row %d: %v is too small for lambda %v: use 0 to leave the sample out", i+1, w, p.Lambda)
		}
		sum += w
	}
	if sum == 0 {
		return errors.New("solvers: weights: all are 0: no sample is left")
	}
	if math.IsInf(sum, 1) {
		return errors.New("solvers: weights: their sum is not a finite number")
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
