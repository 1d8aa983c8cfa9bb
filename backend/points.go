package backend

import (
	"fmt"

	"github.com/mercer-go/mercer/kernels"
)

// CheckPoints returns an error if a row of x violates the rule of kernels.PointRule. The error
// begins with name and gives the first such row and its feature, both counted from 1. CheckPoints
// returns nil if the kernel has no rule. The kernel values of points that violate the rule are NaN.
func CheckPoints(k kernels.Kernel, name string, x Host[float64]) error {
	rule := kernels.PointRule(k)
	if rule == nil {
		return nil
	}
	for i := range x.Rows {
		if err := rule(x.Row(i)); err != nil {
			return fmt.Errorf("%s: row %d: %w", name, i+1, err)
		}
	}
	return nil
}

// CheckSparsePoints checks sparse points as CheckPoints checks dense points.
func CheckSparsePoints(k kernels.Kernel, name string, x CSR[float64]) error {
	rule := kernels.SparsePointRule(k, x.Cols)
	if rule == nil {
		return nil
	}
	for i := range x.Rows {
		columns, values := x.Row(i)
		if err := rule(kernels.SparsePoint[float64]{Columns: columns, Values: values}); err != nil {
			return fmt.Errorf("%s: row %d: %w", name, i+1, err)
		}
	}
	return nil
}
