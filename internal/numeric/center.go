package numeric

import (
	"context"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
)

// Center is the mean of each column as an unevaluated sum of two numbers. A single number would
// have an error of ε times the offset, which may be as large as the centered data.
type Center [][]float64

// Part is the rows of a matrix that take part in a fit, and their weights.
type Part struct {
	N      int
	Rows   []int     // the numbers of the N rows; nil means all rows
	Weight []float64 // their weights; nil means all 1
}

func (p Part) row(i int) int {
	if p.Rows == nil {
		return i
	}
	return p.Rows[i]
}

// shared is the number of elements from which on a second goroutine pays.
const shared = 1 << 15

// Mean returns the weighted means of h's columns. It fails only if ctx is done.
func (p Part) Mean(ctx context.Context, h backend.Host[float64]) (Center, error) {
	c := Center{make([]float64, h.Cols), make([]float64, h.Cols)}
	share, total := slices.Clone(p.Weight), 0.0
	if share == nil {
		share = slices.Repeat([]float64{1}, p.N)
	}
	for _, w := range share {
		total += w
	}
	for i := range share {
		share[i] /= total
	}
	columns := func(low, high int) {
		// The mean of some rows is near the mean of all: the sum of the differences from it has
		// rounding errors of ε times the differences, not of ε times the numbers.
		near, sum := make([]float64, high-low), c[1][low:high]
		step := max(1, p.N/256)
		for i := 0; i < p.N; i += step {
			Axpy(1/float64((p.N+step-1)/step), h.Row(p.row(i))[low:high], near)
		}
		for i, w := range share {
			if i%1024 == 0 && ctx.Err() != nil {
				return
			}
			row := h.Row(p.row(i))[low:high]
			near, sum := near[:len(row)], sum[:len(row)]
			for j, v := range row {
				sum[j] += w * (v - near[j])
			}
		}
		for j, m := range near {
			// Knuth's sum of two numbers with its rounding error.
			v := m + sum[j]
			part := v - m
			c[0][low+j], sum[j] = v, (m-(v-part))+(sum[j]-part)
		}
	}
	if p.N*h.Cols < shared {
		columns(0, h.Cols)
	} else {
		run.Parallel(h.Cols, columns)
	}
	return c, context.Cause(ctx)
}

// Fill sets dst to rows from, from+1, … of the part of h minus the center, each multiplied by √w if
// scaled is set. A nil center is 0.
func (p Part) Fill(dst, h backend.Host[float64], c Center, from int, scaled bool) {
	rows := func(first, last int) {
		for i := first; i < last; i++ {
			row, x := dst.Row(i), h.Row(p.row(from+i))
			if c == nil {
				copy(row, x)
			} else {
				low, high := c[0][:len(x)], c[1][:len(x)]
				row := row[:len(x)]
				for j, v := range x {
					row[j] = v - low[j] - high[j]
				}
			}
			if scaled && p.Weight != nil {
				r := math.Sqrt(p.Weight[from+i])
				for j := range row {
					row[j] *= r
				}
			}
		}
	}
	if dst.Rows*dst.Cols < shared {
		rows(0, dst.Rows)
	} else {
		run.Parallel(dst.Rows, rows)
	}
}
