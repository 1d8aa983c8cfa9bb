package learners

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
)

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
