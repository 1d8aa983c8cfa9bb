package numeric

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// CheckFinite returns an error if a prediction in m is not finite. The error names the first such row, and calls
// the predictions `name`. The matrix m may be nil.
func CheckFinite(name string, m *mat.Dense) error {
	if m == nil {
		return nil
	}
	n, _ := m.Dims()
	for i := range n {
		for _, v := range m.RawRowView(i) {
			if v-v != 0 {
				return fmt.Errorf("%s of row %d is %v: the model is damaged, or the row is too far from the training rows", name, i+1, v)
			}
		}
	}
	return nil
}

// NilIfNaN returns nil for NaN, which JSON cannot represent, and otherwise a pointer to v.
func NilIfNaN(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}
