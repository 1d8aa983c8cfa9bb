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

// TestTorgersonScalingDiffersByRounding explains why gonum's TestTorgersonScaling fails with
// Mercer's BLAS: the number of columns of the result depends on rounding errors. The matrix
// −½J(D∘D)J, where J = I − 11ᵀ/n, has the eigenvalue 0. The result has one more column if rounding
// errors make this eigenvalue positive. gonum's test expects the sign that gonum's BLAS computes
// for one order of the points. (R computes the opposite sign, as a comment in gonum's test says.)
// The test below permutes the points 50 times. It checks that both numbers of columns occur with
// either BLAS, and that all eigenvalues agree up to rounding errors.
func TestTorgersonScalingDiffersByRounding(t *testing.T) {
	const n, maxDistance = 21, 4000.0
	r := rand.New(rand.NewPCG(5, 0))
	dis := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i {
			dis.SetSym(i, j, math.Round(100+(maxDistance-100)*r.Float64()))
		}
	}
	// The bound covers the rounding errors of the matrix JSJ with S = −½D∘D and of its eigenvalues.
	// Each of the two products has n terms and an error of nε times the sum of the terms' absolute
	// values, which is below 2·½maxDistance². The norm of a matrix of such errors is at most n
	// times its largest element. In each of its n steps, the eigenvalue algorithm perturbs JSJ by
	// about ε‖JSJ‖ < ε·n·½maxDistance²·4. An eigenvalue changes by at most the norm of the
	// perturbation (Weyl's inequality).
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
