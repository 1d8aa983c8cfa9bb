// Package neighbors finds the nearest samples in the feature space of a kernel, and chooses
// length scales from the distances between samples.
package neighbors

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Samples holds the samples to search.
type Samples struct {
	Kernel kernels.Kernel
	Points numeric.Points // n×d
	Weight []float64      // weights > 0
	Own    []float64      // k(z, z)
	First  int            // number of rows that precede the rows of x, for the row numbers in errors
}

// bytes returns the memory, in bytes, of a search for tileRows rows of x.
func (s Samples) bytes(dev backend.Device, x numeric.Points, filtered bool) int64 {
	n, rows := s.Points.Rows, min(x.Rows, tileRows)
	tile := int64(rows) * int64(min(n, tileColumns))
	bytes := s.Points.PlacedBytes(dev.F64(), n) + x.PlacedBytes(dev.F64(), rows) + 8*tile
	if filtered {
		bytes += 4 * (int64(n+rows)*int64(x.Cols+1) + tile)
	}
	return bytes
}

// Nearest calls f for the rows of x in order. The argument list of f holds the nearest samples z, sorted by d²(x, z) =
// k(x, x) + k(z, z) − 2k(x, z) and, for equal d², by the index. The list ends when the weights of the samples sum to at
// least k. The argument keys holds d² − k(x, x) for each sample in list. f must not retain the slices.
func (s Samples) Nearest(ctx context.Context, dev backend.Device, x numeric.Points, k int, f func(i int, list []int, keys []float64)) error {
	rows := make([]nearest, min(x.Rows, tileRows))
	first := 0
	filter, filtered := s.filter(x, k)
	run.ReportPlan(s.Points.Evaluating(ctx, dev), dev, s.bytes(dev, x, filtered))
	if filtered {
		var err error
		if first, err = filter.search(ctx, dev, x, rows, f); err != nil || first == x.Rows {
			return err
		}
	}
	z, err := s.Points.Place(dev.F64())
	if err != nil {
		return err
	}
	defer z.Free()
	var values grid[float64]
	if err := values.alloc(dev.F64().With(ctx, nil), x.Rows-first, s.Points.Rows); err != nil {
		return err
	}
	defer values.out.Free()
	kernel := func(out, x, z backend.Matrix[float64]) { values.b.Gram(out, s.Kernel, x, z) }
	for ; first < x.Rows; first += tileRows {
		tile := x.Slice(first, min(tileRows, x.Rows-first))
		placed, err := tile.Place(dev.F64())
		if err != nil {
			return err
		}
		for i := range tile.Rows {
			rows[i].start(k)
		}
		err = values.forEachTile(kernel, placed, z, func(i, column int, tile []float64) {
			rows[i].add(s, column, tile)
		})
		placed.Free()
		if err != nil {
			return err
		}
		for i := range tile.Rows {
			r := &rows[i]
			if r.invalid {
				return numeric.PointError(s.Kernel, s.First+first+i, tile.Point(i), r.value)
			}
			f(first+i, r.list, r.keys)
		}
	}
	return nil
}

// nearest holds the nearest samples of one row among the samples added so far.
type nearest struct {
	k     float64
	list  []int     // indices of the samples, the nearest first
	keys  []float64 // d² − k(x, x) of each sample in list
	limit float64   // if the weights of list sum to at least k, the largest key; otherwise +Inf

	invalid bool    // whether a kernel value is NaN or infinite
	value   float64 // the first kernel value that is NaN or infinite
}

func (r *nearest) start(k int) {
	*r = nearest{k: float64(k), list: r.list[:0], keys: r.keys[:0], limit: math.Inf(1)}
}

// add adds the samples first, first+1, …, whose kernel values with the row are in values.
func (r *nearest) add(s Samples, first int, values []float64) {
	squares, limit := s.Own[first:][:len(values)], r.limit
	for z, v := range values {
		key := squares[z] - 2*v
		if key >= limit && key <= math.MaxFloat64 { // false for NaN
			continue
		}
		if key-key != 0 { // NaN and Inf cannot be ordered
			if !r.invalid {
				r.invalid, r.value = true, v
			}
			return
		}
		r.insert(s.Weight, first+z, key)
		limit = r.limit
	}
}

func (r *nearest) insert(weight []float64, z int, key float64) {
	if !(key < r.limit) {
		return
	}
	pos := len(r.list)
	for pos > 0 && r.keys[pos-1] > key {
		pos--
	}
	r.list, r.keys = slices.Insert(r.list, pos, z), slices.Insert(r.keys, pos, key)
	n, sum := 0, 0.0
	for ; n < len(r.list) && sum < r.k; n++ { // sum the weights again: subtracting a weight from a running sum would add rounding errors
		sum += weight[r.list[n]]
	}
	r.list, r.keys = r.list[:n], r.keys[:n]
	if sum >= r.k {
		r.limit = r.keys[n-1]
	}
}

// Mean returns the weighted mean of the rows of y over list, which Nearest has computed. The weight
// of the last sample is reduced so that the weights sum to k.
func (s Samples) Mean(y backend.Host[float64], k int, list []int) []float64 {
	sum, remaining := make([]float64, y.Cols), float64(k)
	for _, z := range list {
		w := min(s.Weight[z], remaining)
		remaining -= w
		for j, v := range y.Row(z) {
			sum[j] += w * v / float64(k)
		}
	}
	return sum
}

// Shares converts each row of sums over the samples of each class to probabilities, by dividing it by the sum of
// the row.
func Shares(sums backend.Host[float64]) error {
	for i := range sums.Rows {
		row, total := sums.Row(i), 0.0
		for _, v := range row {
			if v < 0 {
				return fmt.Errorf("x: row %d: the kernel is negative at this row, so that the votes are not probabilities", i+1)
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

// tileRows and tileColumns are the largest numbers of rows and columns of a tile, which takes 2 MiB in float32.
const tileRows, tileColumns = 1024, 512

// grid evaluates kernel values tile by tile.
type grid[T backend.Float] struct {
	b    backend.Backend[T]
	host backend.Host[T]
	out  backend.Matrix[T]
	wrap bool // whether out uses the memory of host
}

func (g *grid[T]) alloc(b backend.Backend[T], rows, columns int) (err error) {
	g.b = b
	g.host = backend.NewHost[T](min(rows, tileRows), min(columns, tileColumns))
	if w, ok := b.(backend.Wrapper[T]); ok {
		g.out, g.wrap = w.Wrap(g.host), true
		return nil
	}
	g.out, err = b.New(g.host.Rows, g.host.Cols)
	return err
}

// forEachTile calls f for each row of x and each tile. The argument values of f holds the kernel values of the row and
// the samples column, column+1, … of z. Several goroutines call f and evaluate concurrently, for different rows.
func (g *grid[T]) forEachTile(evaluate func(out, x, z backend.Matrix[T]), x, z backend.Matrix[T], f func(i, column int, values []T)) error {
	m, d := x.Dims()
	n, _ := z.Dims()
	var failed atomic.Pointer[error]
	run.Parallel(m, func(first, last int) {
		for column := 0; column < n && failed.Load() == nil; column += tileColumns {
			c := min(tileColumns, n-column)
			out, values := g.out.View(first, 0, last-first, c), g.host.View(first, 0, last-first, c)
			evaluate(out, x.View(first, 0, last-first, d), z.View(column, 0, c, d))
			err := g.b.Sync()
			if !g.wrap && err == nil {
				err = g.b.Download(values, out)
			}
			if err != nil {
				failed.CompareAndSwap(nil, &err)
				return
			}
			for i := first; i < last; i++ {
				f(i, column, values.Row(i-first))
			}
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
