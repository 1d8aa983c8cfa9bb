package learners

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// notAPoint is the error for row i of x, from 0, that the kernel k has no finite
// value for: by the rule of k for points, or by the value.
func notAPoint[T backend.Float](k kernels.Kernel, i int, x []T, value T) error {
	if rule := kernels.PointRule(k); rule != nil {
		wide := make([]float64, len(x))
		for p, v := range x {
			wide[p] = float64(v)
		}
		if err := rule(wide); err != nil {
			return fmt.Errorf("x: row %d: %w", i+1, err)
		}
	}
	return fmt.Errorf("x: row %d: the kernel %v has the value %v", i+1, k, value)
}

// checkPredicted refuses predictions that are not finite: from kernel values that
// are none or out of range, from points or a model whose sums overflow. first is the
// number of the first row.
func checkPredicted(f backend.Host[float64], first int) error {
	for i := range f.Rows {
		for _, v := range f.Row(i) {
			if math.IsNaN(v) {
				return fmt.Errorf("x: row %d: the prediction is not a number: the model's kernel is not made for this point, or out of range", first+i+1)
			}
			if math.IsInf(v, 0) {
				return fmt.Errorf("x: row %d: the prediction is %v: the values of the point or of the model are too large", first+i+1, v)
			}
		}
	}
	return nil
}
