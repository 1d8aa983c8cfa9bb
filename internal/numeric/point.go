package numeric

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// PointError returns the error for x, row i of the samples, counted from 0, at which the kernel k
// has no finite value. Either x breaks the rule of k for points, or value is not finite.
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

// SamplePoints returns the samples x as points. For a kernel of precomputed values, x may be the
// symmetric n×n matrix of k on the n samples. The result then has points of kernels.Precomputed.
func SamplePoints(k kernels.Kernel, x Points) (Points, error) {
	if x.Sparse != nil || x.Rows != x.Cols || x.Rows == 0 || !precomputed(k) {
		return x, nil
	}
	n := x.Rows
	values := make([]float64, 0, n*n)
	for i := range n {
		values = append(values, x.Dense.Row(i)...)
	}
	points, err := kernels.TrainingPoints(n, values)
	if err != nil {
		if x.CheckRule(k, "x") == nil { // x may already be points, although it is square
			return x, nil
		}
		return x, fmt.Errorf("x: %w", err)
	}
	return DensePoints(backend.Host[float64]{Rows: n, Cols: n + 2, Stride: n + 2, Data: points}), nil
}

// OtherPoints returns the rows of x as points. For a precomputed kernel, a point has two numbers and the values of k
// with all training objects. If the rows of x are only these values, features − 2 numbers, the result has no values
// k(x, x), and hasDiagonal is false.
func OtherPoints(k kernels.Kernel, x Points, features int) (points Points, hasDiagonal bool) {
	if x.Sparse != nil || x.Cols != features-2 || !precomputed(k) {
		return x, true
	}
	h := backend.NewHost[float64](x.Rows, features)
	for i := range x.Rows {
		row := h.Row(i)
		row[0] = -1
		copy(row[2:], x.Dense.Row(i))
	}
	return DensePoints(h), false
}

// precomputed reports whether k takes precomputed values and no features.
func precomputed(k kernels.Kernel) bool {
	isPrecomputed, err := kernels.IsPrecomputed(k)
	return isPrecomputed && err == nil
}
