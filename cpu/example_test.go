package cpu_test

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/cpu"
)

// A program that uses gonum runs on Mercer's BLAS and LAPACK after two added lines, and a third
// line for float32.
func Example_gonum() {
	blas64.Use(cpu.BLAS{})
	lapack64.Use(cpu.LAPACK{})
	blas32.Use(cpu.BLAS{})

	// The rest of the program does not change: mat.Dense.Mul, mat.Cholesky, and so on.
	const n = 400
	x := mat.NewDense(n, 3, nil)
	for i := range n {
		t := float64(i) / n
		x.SetRow(i, []float64{1, t, t * t})
	}
	var gram mat.Dense
	gram.Mul(x, x.T()) // Dgemm, or Dsyrk if gonum detects the symmetry

	a := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			a.SetSym(i, j, gram.At(i, j))
		}
		a.SetSym(i, i, a.At(i, i)+1)
	}
	var chol mat.Cholesky
	if !chol.Factorize(a) { // Dpotrf
		fmt.Println("not positive definite")
		return
	}
	ones := mat.NewVecDense(n, nil)
	for i := range n {
		ones.SetVec(i, 1)
	}
	var v, residual mat.VecDense
	if err := chol.SolveVecTo(&v, ones); err != nil { // Dpotrs
		fmt.Println(err)
		return
	}
	residual.MulVec(a, &v)
	residual.SubVec(&residual, ones)
	fmt.Printf("residual below 1e-10: %t\n", mat.Norm(&residual, 2) < 1e-10)
	// Output: residual below 1e-10: true
}

// LAPACK offers Cholesky in float32, which gonum does not have.
func ExampleLAPACK_Spotrf() {
	const n = 2
	a := []float32{
		4, 0, // the upper triangle is not read
		2, 5,
	}
	b := []float32{8, 14}
	var lapack cpu.LAPACK
	if !lapack.Spotrf(blas.Lower, n, a, n) {
		fmt.Println("not positive definite")
		return
	}
	lapack.Spotrs(blas.Lower, n, 1, a, n, b, 1)
	fmt.Println("factor:", a[0], a[2], a[3])
	fmt.Println("solution:", b)
	// Output:
	// factor: 2 1 2
	// solution: [0.75 2.5]
}
