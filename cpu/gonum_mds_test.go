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

// TestTorgersonScalingDiffersByRounding checks that the number of columns of TorgersonScaling
// depends on rounding errors. Its matrix, −½J(D∘D)J with J = I − 11ᵀ/n, has the eigenvalue 0 for
// the vector 1. Rounding errors make this eigenvalue positive or negative, and so add a column or
// not. gonum's TestTorgersonScaling expects the sign that gonum's BLAS computes for one order of
// the points (R's cmdscale computes the opposite sign, as a comment in that test says), and fails
// with Mercer's BLAS. For 50 permutations of the points, this test checks that both numbers of
// columns also occur with gonum's own BLAS, and that all eigenvalues agree up to rounding errors.
func TestTorgersonScalingDiffersByRounding(t *testing.T) {
	const n, most = 21, 4000.0
	r := rand.New(rand.NewPCG(5, 0))
	dis := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i {
			dis.SetSym(i, j, math.Round(100+(most-100)*r.Float64()))
		}
	}
	// The bound covers the rounding errors of JSJ with |S| ≤ ½most². JSJ consists of two products
	// of n terms, each with an error of nε times the sum of the terms' absolute values, which is
	// below 2·½most². The norm of such a matrix is at most n times its largest element. In each of
	// the n steps, the eigenvalue algorithm perturbs the matrix by about ε times its norm, which is
	// below n·½most²·4 (Weyl's inequality).
	bound := float64(n*n) * 0x1p-52 * most * most * 4
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
