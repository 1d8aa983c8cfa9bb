package gonum_test

import (
	"fmt"
	"log"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
)

// This example replaces mat.Cholesky with gonum.Cholesky and sets a device.
func ExampleCholesky() {
	dev, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	a := mat.NewSymDense(2, []float64{4, 2, 2, 3})
	chol := gonum.Cholesky{Device: dev} // replaces var chol mat.Cholesky
	if ok := chol.Factorize(a); !ok {
		log.Fatal(chol.Err())
	}
	var x mat.VecDense
	if err := chol.SolveVecTo(&x, mat.NewVecDense(2, []float64{8, 8})); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("x = %.4f, ln det A = %.4f, condition %.2f\n", x.RawVector().Data, chol.LogDet(), chol.Cond())
	// Output:
	// x = [1.0000 2.0000], ln det A = 2.0794, condition 4.50
}

// Solvers and backends accept any gonum matrix; dense matrices are not copied.
func ExampleHost() {
	d := mat.NewDense(3, 4, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	h, err := gonum.Host("x", d.Slice(1, 3, 0, 2))
	if err != nil {
		log.Fatal(err)
	}
	h.Row(0)[1] = -5
	fmt.Println(h.Rows, h.Cols, h.Stride, d.At(1, 1))

	shared, err := gonum.Dense(h)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mat.Formatted(shared))
	// Output:
	// 2 2 4 -5
	// ⎡ 4  -5⎤
	// ⎣ 8   9⎦
}
