package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/mds"
)

// TestTorgersonScalingDiffersByRounding shows why gonum's TestTorgersonScaling fails with Mercer's BLAS. Let D be the
// matrix of distances and J = I − 11ᵀ/n. The result has one more column if rounding errors make the eigenvalue 0 of
// −½J(D∘D)J positive. For 50 permutations of the points, each BLAS must sometimes add this column and sometimes not,
// and all eigenvalues must agree up to rounding errors.
func TestTorgersonScalingDiffersByRounding(t *testing.T) {
	const n, maxDistance = 21, 4000.0
	r := rand.New(rand.NewPCG(5, 0))
	dis := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i {
			dis.SetSym(i, j, math.Round(100+(maxDistance-100)*r.Float64()))
		}
	}
	// The bound covers the rounding errors of the two products in JSJ, with S = −½D∘D, and of n steps of the
	// eigenvalue algorithm. An eigenvalue changes by at most the norm of these errors (Weyl's inequality).
	bound := float64(n*n) * 0x1p-52 * maxDistance * maxDistance * 4
	blas, lapack := blas64.Implementation(), gonum.Implementation{} // the default of lapack64
	defer func() { blas64.Use(blas); lapack64.Use(lapack) }()
	var want []float64
	columns := map[string]map[int]int{"gonum": {}, "mercer": {}}
	for range 50 {
		order := r.Perm(n)
		d := mat.NewSymDense(n, nil)
		for i := range n {
			for j := range i {
				d.SetSym(i, j, dis.At(order[i], order[j]))
			}
		}
		for name := range columns {
			blas64.Use(blas)
			lapack64.Use(lapack)
			if name == "mercer" {
				blas64.Use(BLAS{})
				lapack64.Use(LAPACK{})
			}
			k, values := mds.TorgersonScaling(new(mat.Dense), make([]float64, n), d)
			columns[name][k]++
			if want == nil {
				want = values
			}
			zeros := 0
			for i, v := range values {
				if math.Abs(v-want[i]) > bound {
					t.Fatalf("%s: eigenvalue %d is %v, and %v in another order: beyond rounding, %v", name, i, v, want[i], bound)
				}
				if math.Abs(v) <= bound {
					zeros++
				}
			}
			if zeros != 1 {
				t.Fatalf("%s: %d eigenvalues are 0 to rounding", name, zeros)
			}
		}
	}
	t.Logf("number of orders for each number of columns: %v", columns)
	for name, list := range columns {
		if len(list) != 2 {
			t.Errorf("%s: the number of columns is always the same: %v", name, list)
		}
	}
}
