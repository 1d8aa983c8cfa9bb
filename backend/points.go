package backend

import (
	"fmt"

	"github.com/mercer-go/mercer/kernels"
)

// CheckPoints returns an error that names the first row of x, called name, and
// the feature in it that break the rule of kernels.PointRule, both counted from
// 1; nil where the kernel has no rule. Such points give NaN, not a panic, where
// they are not checked.
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
