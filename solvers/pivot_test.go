package solvers

import (
	"errors"
	"math"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
)

// silentFactor is a matrix whose factorization reports success and replaces the diagonal by pivots.
type silentFactor struct {
	numeric.Symmetric[float64]
	diagonal, pivots []float64
	factored         bool
}

func (f *silentFactor) Factor(bool) error { f.factored = true; return nil }

func (f *silentFactor) Diagonal() ([]float64, error) {
	if f.factored {
		return f.pivots, nil
	}
	return f.diagonal, nil
}

// TestSilentNaNFactor checks that a NaN on the diagonal of a factor gives an error that names its row.
func TestSilentNaNFactor(t *testing.T) {
	nan := math.NaN()
	pivots, diagonal := []float64{1, nan, nan}, []float64{1, 1, nan}
	w := &work{call: call{s: &samples{n: 3}}, plan: Plan{Method: Dual}}
	_, err := factorOf(&silentFactor{diagonal: diagonal, pivots: pivots})
	for name, err := range map[string]error{"factorOf": err, "checkPivots": w.checkPivots(pivots, diagonal, numeric.Epsilon)} {
		var pivot *backend.PivotError
		if !errors.As(err, &pivot) || pivot.Index != 1 || !math.IsNaN(pivot.Value) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
