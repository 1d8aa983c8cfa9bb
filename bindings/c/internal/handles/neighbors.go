package handles

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/neighbors"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// Neighbors finds the k rows of z with the smallest Euclidean distances from each of the n rows of x, and sorts
// them by their distances, and at equal distances in the order of z. It writes the indices of these rows, counted
// from 0, to indices, and the squared distances to squares; both are n×k. x and z are dense.
func Neighbors(ctx context.Context, d *Device, x, z Matrix, k int, indices []int64, squares []float64) error {
	return d.use(ctx, func(dev backend.Device) error {
		hx, err := densePoints("x", x)
		if err != nil {
			return err
		}
		hz, err := densePoints("z", z)
		if err != nil {
			return err
		}
		switch {
		case hx.Cols != hz.Cols:
			return fmt.Errorf("libmercer: neighbors: x has %s, but z has %d", count.Of(hx.Cols, "column"), hz.Cols)
		case k < 1 || k > hz.Rows:
			return fmt.Errorf("libmercer: neighbors: k must be from 1 to the number of rows of z, %d, got %d", hz.Rows, k)
		case len(squares)/k != hx.Rows || len(squares)%k != 0:
			return fmt.Errorf("libmercer: neighbors: the result is %d×%d, but the given memory holds only %s", hx.Rows, k, count.Of(len(squares), "number"))
		}
		points := numeric.DensePoints(hz)
		s := neighbors.Samples{Kernel: kernels.Linear{}, Points: points, Weight: make([]float64, hz.Rows), Own: points.Diagonal(kernels.Linear{})}
		for i := range s.Weight {
			s.Weight[i] = 1
		}
		return s.Nearest(ctx, dev, numeric.DensePoints(hx), k, func(i int, list []int, _ []float64) {
			for j, index := range list {
				indices[i*k+j] = int64(index)
				squares[i*k+j] = squaredDistance(hx.Row(i), hz.Row(index)) // compute the distance again: the distances of the search suffer from cancellation
			}
		})
	})
}

// Cosines writes the n×m matrix with the elements factor·cos(xᵢᵀwⱼ + bⱼ) to out, for the n×d matrix
// x and the m×d matrix w, which are dense.
func Cosines(ctx context.Context, d *Device, factor float64, x, w Matrix, b, out []float64) error {
	return d.use(ctx, func(dev backend.Device) error {
		hx, err := densePoints("x", x)
		if err != nil {
			return err
		}
		hw, err := densePoints("w", w)
		if err != nil {
			return err
		}
		switch {
		case hx.Cols != hw.Cols:
			return fmt.Errorf("libmercer: cosines: x has %s, but w has %d", count.Of(hx.Cols, "column"), hw.Cols)
		case len(out)/hw.Rows != hx.Rows || len(out)%hw.Rows != 0:
			return fmt.Errorf("libmercer: cosines: the result is %d×%d, but the given memory holds only %s", hx.Rows, hw.Rows, count.Of(len(out), "number"))
		}
		k := kernels.Scaled{Weight: factor, Kernel: kernels.CosOf{Kernel: kernels.Linear{}}}
		to := backend.Host[float64]{Rows: hx.Rows, Cols: hw.Rows, Stride: hw.Rows, Data: out}
		one := func(int) float64 { return 1 }
		angle := func(j int) float64 { return b[j] }
		return gramTo(dev.F64().With(ctx, nil), k, withColumn(hx, one), withColumn(hw, angle), backend.Host[float64]{}, to, false)
	})
}

// withColumn returns a copy of h with a further last column, whose element in row i is last(i).
func withColumn(h backend.Host[float64], last func(i int) float64) numeric.Points {
	extended := backend.NewHost[float64](h.Rows, h.Cols+1)
	for i := range h.Rows {
		copy(extended.Row(i), h.Row(i))
		extended.Row(i)[h.Cols] = last(i)
	}
	return numeric.DensePoints(extended)
}

// densePoints returns m as a dense matrix of finite numbers.
func densePoints(name string, m Matrix) (backend.Host[float64], error) {
	h, err := m.host(name)
	switch {
	case err != nil:
		return h, err
	case h.Rows == 0 || h.Cols == 0:
		return h, fmt.Errorf("libmercer: %s is %d×%d, but needs at least one row and one column", name, h.Rows, h.Cols)
	}
	return h, checkFinite(name, h)
}

func squaredDistance(x, z []float64) (sum float64) {
	for p, v := range x {
		sum += (v - z[p]) * (v - z[p])
	}
	return sum
}
