package learners

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
)

// otherUnits is the advice about a row whose prediction is not finite.
const otherUnits = ": compare its features with those that the model was fitted to, which may have other units"

// checkPredicted refuses predictions that are not finite: from kernel values that
// are none or out of range, from points or a model whose sums overflow. first is the
// number of the first row.
func checkPredicted(f backend.Host[float64], first int) error {
	for i := range f.Rows {
		for _, v := range f.Row(i) {
			if math.IsNaN(v) {
				return fmt.Errorf("x: row %d: the prediction is not a number: its kernel values are not defined, or out of range%s", first+i+1, otherUnits)
			}
			if math.IsInf(v, 0) {
				return fmt.Errorf("x: row %d: the prediction is %v: the values of the row or of the model are too large%s", first+i+1, v, otherUnits)
			}
		}
	}
	return nil
}
