package numeric

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
)

// Center is the mean of each column as an unevaluated sum of two numbers, c[0] + c[1]. The rounding error of a
// single number may be as large as the centered data.
type Center [][]float64

// Part holds the rows of a matrix that a fit uses, and their weights.
type Part struct {
	N      int
	Rows   []int     // indices of the N rows; nil means all rows
	Weight []float64 // weights of the rows; nil means all 1
}

// PartOf returns the rows with weight > 0 among n rows. Nil weights are all 1.
func PartOf(n int, weights []float64) Part {
	p := Part{N: n, Weight: weights}
	if !slices.ContainsFunc(weights, func(w float64) bool { return !(w > 0) }) {
		return p
	}
	p.Weight, p.Rows = nil, []int{}
	for i, w := range weights {
		if w > 0 {
			p.Rows, p.Weight = append(p.Rows, i), append(p.Weight, w)
		}
	}
	p.N = len(p.Rows)
	return p
}

// Row returns the index of the i-th row of the part.
func (p Part) Row(i int) int {
	if p.Rows == nil {
		return i
	}
	return p.Rows[i]
}

// WeightOf returns the weight of the i-th row of the part.
func (p Part) WeightOf(i int) float64 {
	if p.Weight == nil {
		return 1
	}
	return p.Weight[i]
}

// minParallel is the minimum number of elements for which a second goroutine saves time.
const minParallel = 1 << 15

// Mean returns the weighted means of the columns of h. It returns an error only if ctx is done.
func (p Part) Mean(ctx context.Context, h backend.Host[float64]) (Center, error) {
	c := Center{make([]float64, h.Cols), make([]float64, h.Cols)}
	weights, total := slices.Clone(p.Weight), 0.0
	if weights == nil {
		weights = slices.Repeat([]float64{1}, p.N)
	}
	for _, w := range weights {
		total += w
	}
	for i := range weights {
		weights[i] /= total
	}
	// shift is the mean of some rows. Sums of differences from shift have smaller rounding errors.
	shift, step := c[0], max(1, p.N/256)
	for i := 0; i < p.N; i += step {
		Axpy(1/float64((p.N+step-1)/step), h.Row(p.Row(i)), shift)
	}
	// The spans, and thus the rounding errors of the sums, do not depend on the number of workers.
	span := max(1024, (p.N+63)/64)
	spans := (p.N + span - 1) / span
	sums := backend.NewHost[float64](spans, h.Cols)
	sumSpans := func(first, last int) {
		difference := make([]float64, h.Cols)
		for k := first; k < last; k++ {
			for i := k * span; i < min(p.N, (k+1)*span) && (i%1024 != 0 || ctx.Err() == nil); i++ {
				floats.SubTo(difference, h.Row(p.Row(i)), shift)
				Axpy(weights[i], difference, sums.Row(k))
			}
		}
	}
	if p.N*h.Cols < minParallel {
		sumSpans(0, spans)
	} else {
		run.Parallel(spans, sumSpans)
	}
	for j, m := range shift {
		sum := 0.0
		for k := range spans {
			sum += sums.Row(k)[j]
		}
		// By Knuth's algorithm, c[0][j] + c[1][j] is exactly m + sum.
		v := m + sum
		rounded := v - m
		c[0][j], c[1][j] = v, (m-(v-rounded))+(sum-rounded)
	}
	return c, context.Cause(ctx)
}

// Values returns the means.
func (c Center) Values() []float64 {
	v := slices.Clone(c[0])
	floats.Add(v, c[1])
	return v
}

// NearlyCentered reports whether each column has a mean of at most its standard deviation in absolute value. It reads
// at most 511 evenly spaced rows of h. If so, sums of products may be centered after the summation, with a loss of
// about one bit. If c is nil, NearlyCentered computes the means of the rows that it reads.
func (c Center) NearlyCentered(h backend.Host[float64]) bool {
	step := max(1, h.Rows/256)
	if c == nil {
		c = Center{make([]float64, h.Cols)}
		for i := 0; i < h.Rows; i += step {
			Axpy(1/float64((h.Rows+step-1)/step), h.Row(i), c[0])
		}
	}
	excess := make([]float64, h.Cols)
	for i := 0; i < h.Rows; i += step {
		for j, v := range h.Row(i) {
			mean := c[0][j]
			excess[j] += mean*mean - (v-mean)*(v-mean)
		}
	}
	return !slices.ContainsFunc(excess, func(v float64) bool { return !(v <= 0) })
}

// Fill sets dst to successive rows of h: those of the part, beginning with its row number from. It subtracts c from
// each row, and multiplies it by √w if scaled is set. A nil center is 0.
func (p Part) Fill(dst, h backend.Host[float64], c Center, from int, scaled bool) {
	if dst.Rows*dst.Cols < minParallel {
		p.fill(dst, h, c, from, scaled) // a direct call, because a closure would be allocated for each row
	} else {
		run.Parallel(dst.Rows, func(first, last int) {
			p.fill(dst.View(first, 0, last-first, dst.Cols), h, c, from+first, scaled)
		})
	}
}

func (p Part) fill(dst, h backend.Host[float64], c Center, from int, scaled bool) {
	for i := range dst.Rows {
		row, x := dst.Row(i), h.Row(p.Row(from+i))
		if c == nil {
			copy(row, x)
		} else {
			floats.SubTo(row, x, c[0])
			floats.Sub(row, c[1])
		}
		if scaled && p.Weight != nil {
			floats.Scale(math.Sqrt(p.Weight[from+i]), row)
		}
	}
}
