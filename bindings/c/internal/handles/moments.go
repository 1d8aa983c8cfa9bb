package handles

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/lsq"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/solvers"
)

// Moments is the caller's memory for the results of Fill. Gram holds XᵀWX, d×d. Products holds
// YᵀWX, t×d. Means holds the d means of the samples x and the t means of the targets y.
type Moments struct{ Gram, Products, Means []float64 }

// Fill computes the moments of x and y. With an intercept, X and Y are x and y minus their weighted means;
// otherwise the means are 0. Nil weights are all 1.
func (m Moments) Fill(ctx context.Context, d *Device, x, y Matrix, weights []float64, intercept bool) error {
	return d.use(ctx, func(dev backend.Device) error {
		hx, err := x.host("x")
		if err != nil {
			return err
		}
		hy, err := densePoints("y", y)
		if err != nil {
			return err
		}
		if hy.Rows != hx.Rows {
			return fmt.Errorf("libmercer: moments: y has %s, but x has %d", count.Of(hy.Rows, "row"), hx.Rows)
		}
		if err := numeric.CheckWeights(weights, hx.Rows); err != nil {
			return fmt.Errorf("libmercer: moments: %w", err)
		}
		centerAfterward := intercept && weights == nil && numeric.Center(nil).NearlyCentered(hx)
		var level []float64
		if centerAfterward {
			hy, level = centered(hy)
		}
		c, err := lsq.New(ctx, numeric.DensePoints(hx), hy, slices.Clone(weights), intercept && !centerAfterward)
		if err != nil {
			return err
		}
		if err := solvers.Reserve(ctx, dev, 0, "moments", hx.Rows, c.MomentBytes); err != nil {
			return err
		}
		gram, products, mean, means, err := c.Moments(run.NewTask(ctx, dev, nil))
		if err != nil {
			return cmp.Or(checkFinite("x", hx), fmt.Errorf("libmercer: moments: %w", err))
		}
		if centerAfterward { // centered has added a target of ones, so that the last row of products is the sum of x
			mean, means = products.Row(len(level)), level
			floats.Scale(1/float64(hx.Rows), mean)
			for i, v := range mean {
				numeric.Axpy(-float64(hx.Rows)*v, mean, gram.Row(i))
			}
		}
		for i := range hx.Cols {
			copy(m.Gram[i*hx.Cols:], gram.Row(i))
		}
		for j := range means {
			copy(m.Products[j*hx.Cols:], products.Row(j))
		}
		copy(m.Means, mean)
		copy(m.Means[hx.Cols:], means)
		return nil
	})
}

// centered returns the columns of h minus their means, followed by a column of ones. It also returns the means.
func centered(h backend.Host[float64]) (backend.Host[float64], []float64) {
	extended, mean := backend.NewHost[float64](h.Rows, h.Cols+1), make([]float64, h.Cols)
	for range 2 { // the second pass corrects the rounding errors of the means
		residual := make([]float64, h.Cols)
		for i := range h.Rows {
			row := h.Data[i*h.Stride:][:h.Cols]
			for j, v := range row {
				residual[j] += v - mean[j]
			}
		}
		for j, v := range residual {
			mean[j] += v / float64(h.Rows)
		}
	}
	for i := range h.Rows {
		row, to := h.Data[i*h.Stride:][:h.Cols], extended.Data[i*extended.Stride:][:extended.Cols]
		for j, v := range row {
			to[j] = v - mean[j]
		}
		to[h.Cols] = 1
	}
	return extended, mean
}
