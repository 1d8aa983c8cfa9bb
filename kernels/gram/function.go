package gram

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/pairwise"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
)

// OfFunction returns f(i, j) for all pairs of n objects, evaluated in parallel; f must be safe for concurrent use.
// It returns an error if f(i, j) and f(j, i) differ by more than a rounding error or if a value is not finite.
func OfFunction(ctx context.Context, n int, f func(i, j int) float64, o objects.Options) (host.Matrix[float64], error) {
	k, err := CrossFunction(ctx, n, n, f, o)
	if err == nil {
		err = kernels.CheckGram(n, k.Data)
	}
	if err != nil {
		return host.Matrix[float64]{}, err
	}
	return k, nil
}

// CrossFunction returns the n × m matrix of f(i, j) for n objects i and m other objects j. f must
// be safe for concurrent use.
func CrossFunction(ctx context.Context, n, m int, f func(i, j int) float64, o objects.Options) (host.Matrix[float64], error) {
	if f == nil || n < 0 || m < 0 {
		return host.Matrix[float64]{}, fmt.Errorf("gram: the function is nil, or one of the sizes %d×%d is negative", n, m)
	}
	return pairwise.Matrix(ctx, n, m, false, o, func(stop pairwise.Stop) func(i, lo, hi int, out []float64) {
		return func(i, lo, hi int, out []float64) {
			for j := lo; j < hi && !stop(0); j++ {
				out[j-lo] = f(i, j)
			}
		}
	})
}

// TrainingPoints returns the n×(n+2) matrix of the points, one in each row, by which
// kernels.Precomputed represents the n training objects of a Gram matrix.
func TrainingPoints(gram mat.Matrix) (host.Matrix[float64], error) {
	k, data, err := check("precomputed", gram)
	if err != nil {
		return host.Matrix[float64]{}, err
	}
	n := k.Rows
	points, err := kernels.TrainingPoints(n, data)
	return host.Matrix[float64]{Rows: n, Cols: n + 2, Stride: n + 2, Data: points}, err
}

// OtherPoints returns the points of kernels.Precomputed that represent other objects. k holds their kernel values
// with the sample, one row per object, and diag their values k(x, x). A nil diag stands for zeros, which change the
// variances of predictions but not their means.
func OtherPoints(k mat.Matrix, diag []float64) (host.Matrix[float64], error) {
	cross, err := hostOf("precomputed", k)
	if err != nil {
		return host.Matrix[float64]{}, err
	}
	if diag == nil {
		diag = make([]float64, cross.Rows)
	}
	if len(diag) != cross.Rows {
		return host.Matrix[float64]{}, fmt.Errorf("gram: precomputed: %s, but diag has %s", count.Of(cross.Rows, "row"), count.Of(len(diag), "value"))
	}
	points, err := kernels.OtherPoints(cross.Cols, packed(cross), diag)
	return host.Matrix[float64]{Rows: cross.Rows, Cols: cross.Cols + 2, Stride: cross.Cols + 2, Data: points}, err
}
