package backend

import (
	"testing"

	"github.com/mercer-go/mercer/kernels"
)

func TestCheckPoints(t *testing.T) {
	x := Host[float64]{Rows: 2, Cols: 2, Stride: 3, Data: []float64{1, 0, -9, 2, -1}}
	if err := CheckPoints(kernels.Linear{}, "x", x); err != nil {
		t.Error(err)
	}
	const want = "x: row 2: kernels: chi2: feature 2 is -1: features must be finite numbers ≥ 0"
	if err := CheckPoints(kernels.ChiSquared{Gamma: 1}, "x", x); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := CheckPoints(kernels.ChiSquared{Gamma: 1}, "x", x.View(0, 0, 1, 2)); err != nil {
		t.Error(err)
	}
}
