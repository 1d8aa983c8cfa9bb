package numeric

import (
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels"
)

// CheckWeights checks the weights of samples, which may be nil. There must be one weight for each row. The weights
// must be finite and ≥ 0, must not all be 0, and must have a finite sum.
func CheckWeights(weights []float64, rows int) error {
	if weights == nil {
		return nil
	}
	if len(weights) != rows {
		return fmt.Errorf("%s for %s", count.Of(len(weights), "weight"), count.Of(rows, "row"))
	}
	sum := 0.0
	for i, w := range weights {
		if err := (kernels.Rule{Max: math.MaxFloat64}).Check(fmt.Sprintf("weights: row %d:", i+1), w); err != nil {
			return err
		}
		sum += w
	}
	switch {
	case sum == 0:
		return errors.New("weights: all are 0, so that no sample remains")
	case math.IsInf(sum, 1):
		return errors.New("weights: their sum is not a finite number")
	}
	return nil
}
