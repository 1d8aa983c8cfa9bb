// Package neighbors finds the nearest samples in the feature space of a kernel, and chooses
// length scales from the distances between samples.
package neighbors

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// Samples holds the samples to search.
type Samples struct {
	Kernel kernels.Kernel
	Points numeric.Points // n×d
	Weight []float64      // > 0
	Own    []float64      // k(z, z)
}

// Bytes returns the device memory of a search for samples like those of x among n such samples.
func Bytes(dev backend.Device, x numeric.Points, n int) int64 {
	b, rows := dev.F64(), rowsAtOnce(n)
	return x.CopyBytes(n) + x.PlacedBytes(b, n) + x.CopyBytes(rows) + x.PlacedBytes(b, rows) + 8*int64(rows)*int64(n)
}

// Nearest calls f for each row of x with the samples nearest to it by
// d²(x, z) = k(x, x) + k(z, z) − 2k(x, z), the nearest first and of equals the first, so
// many that their weights make k, and their d² less k(x, x). f may not keep the slices.
func (s Samples) Nearest(ctx context.Context, dev backend.Device, x numeric.Points, k int, f func(i int, list []int, keys []float64)) error {
	list, keys := make([]int, 0, k+1), make([]float64, 0, k+1)
	return s.each(ctx, dev, x, func(i int, values []float64) error {
		list, keys = list[:0], keys[:0]
		weight, last := 0.0, math.Inf(1)
		for z, v := range values {
			key := s.Own[z] - 2*v
			if key-key != 0 { // a NaN or Inf key would count as nearest, or hide the nearest samples
				return numeric.PointError(s.Kernel, i, x.Point(i), v)
			}
			if !(key < last) && weight >= float64(k) {
				continue
			}
			at := len(list)
			for at > 0 && keys[at-1] > key {
				at--
			}
			list, keys = append(list, 0), append(keys, 0)
			copy(list[at+1:], list[at:])
			copy(keys[at+1:], keys[at:])
			list[at], keys[at] = z, key
			n := 0
			for weight = 0; n < len(list) && weight < float64(k); n++ { // no difference, which rounding makes too large
				weight += s.Weight[list[n]]
			}
			list, keys = list[:n], keys[:n]
			last = keys[n-1]
		}
		f(i, list, keys)
		return nil
	})
}

// Mean returns the mean of y over the k nearest, which Nearest listed: the last sample
// counts only with the part of its weight that completes k.
func (s Samples) Mean(y backend.Host[float64], k int, list []int) []float64 {
	sum, left := make([]float64, y.Cols), float64(k)
	for _, z := range list {
		w := min(s.Weight[z], left)
		left -= w
		for j, v := range y.Row(z) {
			sum[j] += w * v / float64(k)
		}
	}
	return sum
}

// Shares divides the rows of sums over the samples of each class by their own sums, which
// makes probabilities of them.
func Shares(sums backend.Host[float64]) error {
	for i := range sums.Rows {
		row, total := sums.Row(i), 0.0
		for _, v := range row {
			if v < 0 {
				return fmt.Errorf("x: row %d: the kernel is negative there, so that votes are not probabilities", i+1)
			}
			total += v
		}
		if total == 0 {
			return fmt.Errorf("x: row %d: the kernel is 0 for all samples: use a larger length scale", i+1)
		}
		for c := range row {
			row[c] /= total
		}
	}
	return nil
}

// rowsAtOnce returns the number of rows of x that are compared with n samples at a time.
func rowsAtOnce(n int) int { return max(1, min(256, 1<<21/n)) }

// each calls f with k(x_i, z) for all samples z, for every row of x.
func (s Samples) each(ctx context.Context, dev backend.Device, x numeric.Points, f func(i int, values []float64) error) error {
	base, b := dev.F64(), dev.F64().With(ctx, nil)
	z, err := s.Points.Place(base)
	if err != nil {
		return err
	}
	defer z.Free()
	rows := min(x.Rows, rowsAtOnce(s.Points.Rows))
	gram, err := b.New(rows, s.Points.Rows)
	if err != nil {
		return err
	}
	defer gram.Free()
	host := backend.NewHost[float64](rows, s.Points.Rows)
	for first := 0; first < x.Rows; first += rows {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := min(rows, x.Rows-first)
		part, err := x.Slice(first, n).Place(base)
		if err != nil {
			return err
		}
		out := gram.View(0, 0, n, s.Points.Rows)
		b.Gram(out, s.Kernel, part, z)
		err = b.Download(host.View(0, 0, n, s.Points.Rows), out)
		part.Free()
		if err != nil {
			return err
		}
		for i := range n {
			if err := f(first+i, host.Row(i)); err != nil {
				return err
			}
		}
	}
	return nil
}
