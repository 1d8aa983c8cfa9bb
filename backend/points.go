package backend

import (
	"fmt"

	"github.com/mercer-go/mercer/kernels"
)

// CheckPoints returns an error if a row of x violates kernels.PointRule. The error begins with name, and gives the
// first such row and its feature, both counted from 1. CheckPoints returns nil if the kernel has no rule.
func CheckPoints(k kernels.Kernel, name string, x Points) error {
	var check func(i int) error // checks row i
	switch x := x.(type) {
	case Host[float64]:
		if rule := kernels.PointRule(k); rule != nil {
			check = func(i int) error { return rule(x.Row(i)) }
		}
	case CSR[float64]:
		if rule := kernels.SparsePointRule(k, x.Cols); rule != nil {
			check = func(i int) error {
				columns, values := x.Row(i)
				return rule(kernels.SparsePoint[float64]{Columns: columns, Values: values})
			}
		}
	default:
		return fmt.Errorf("%s is a %T; it must be a backend.Host[float64] or a backend.CSR[float64]", name, x)
	}
	if check == nil {
		return nil
	}
	rows, _ := x.Dims()
	for i := range rows {
		if err := check(i); err != nil {
			return fmt.Errorf("%s: row %d: %w", name, i+1, err)
		}
	}
	return nil
}
