package numeric

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// PointError is the error for row i of x, from 0, that the kernel k has no finite
// value for: by the rule of k for points, or by the value.
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

// KernelDiagonal returns k(x, x) for the rows of x.
func KernelDiagonal(k kernels.Kernel, x backend.Host[float64]) []float64 {
	prog := kernels.Compile(k)
	stats := make([]float64, len(prog.Stats))
	diag := make([]float64, x.Rows)
	for i := range diag {
		row := x.Row(i)
		for j, s := range prog.Stats {
			stats[j] = s.Eval(row, row)
		}
		diag[i] = prog.Run(stats)
	}
	return diag
}
