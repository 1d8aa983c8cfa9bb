package glm

import (
	"context"
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestPivotedCholesky checks that FFᵀ is K up to rounding, that F has as many columns as the rank of K, and that
// the rows of F at the pivots are lower triangular.
func TestPivotedCholesky(t *testing.T) {
	backendtest.EachDevice(t, func(t *testing.T, dev backend.Device) {
		x := backendtest.Normal(31, 90, 3)
		t.Log("seed 31")
		copy(x.Row(7), x.Row(3)) // make two samples equal
		for _, test := range []struct {
			k    kernels.Kernel
			rank int
		}{{kernels.Linear{}, 3}, {kernels.Polynomial{Degree: 2, C: 1}, 10}, {kernels.Gaussian{Sigma: 0.2}, 89}} {
			p, err := pivotedCholesky(t.Context(), dev, test.k, x, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.pivots) != test.rank || p.f.Cols != test.rank {
				t.Errorf("%v: rank %d, want %d", test.k, len(p.pivots), test.rank)
			}
			f := mat.NewDense(p.f.Rows, p.f.Cols, p.f.Data)
			var product mat.Dense
			product.Mul(f, f.T())
			want := mat.NewDense(90, 90, nil)
			want.Apply(func(i, j int, _ float64) float64 { return kernels.Eval(test.k, x.Row(i), x.Row(j)) }, want)
			largest := mat.Max(want)
			// Every diagonal element of K − FFᵀ is below n·8ε√n times the largest element of K.
			product.Sub(&product, want)
			if distance := mat.Norm(&product, 2); !(distance <= 90*8*numeric.Epsilon*math.Sqrt(90)*largest*90) {
				t.Errorf("%v: FFᵀ differs from K by %g", test.k, distance)
			}
			for j, i := range p.pivots {
				if f.At(i, j) <= 0 {
					t.Errorf("%v: pivot %d is %v", test.k, j, f.At(i, j))
				}
				for q := j + 1; q < test.rank; q++ {
					// The error of an element of F is the error of K, divided by the square root of the pivot.
					if v := math.Abs(f.At(i, q)); v > 1e3*numeric.Epsilon*largest/f.At(p.pivots[q], q) {
						t.Errorf("%v: row of pivot %d, column %d is %v, not 0", test.k, j, q, v)
					}
				}
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := pivotedCholesky(ctx, dev, kernels.Linear{}, x, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		var budget *solvers.BudgetError
		if _, err := pivotedCholesky(t.Context(), dev, kernels.Gaussian{Sigma: 1}, x, 1000); !errors.As(err, &budget) {
			t.Fatalf("with 1000 bytes: %v", err)
		}
		_, before := dev.InUse()
		if _, err := pivotedCholesky(t.Context(), dev, kernels.Gaussian{Sigma: 1}, x, budget.Needed); err != nil {
			t.Error(err)
		}
		if _, peak := dev.InUse(); peak > max(before, budget.Needed) {
			t.Errorf("took up to %d bytes, planned %d", peak, budget.Needed)
		}
	})
}
