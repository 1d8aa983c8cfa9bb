package solvers_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// Solve (K + λI)α = y by a chosen method and to a chosen residual.
func Example() {
	dev, err := backend.Open("", backend.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = dev.Close() }()
	column := func(v ...float64) backend.Host[float64] {
		return backend.Host[float64]{Rows: len(v), Cols: 1, Stride: 1, Data: v}
	}
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 1}, X: column(0, 1, 2), Y: column(0, 1, 0), Lambda: 0.1}
	res, err := solvers.Solve(context.Background(), dev, p, solvers.Params{Method: solvers.CG, Tol: 1e-10})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Method, res.Alpha.Rows, res.Residual <= 1e-10)
	// Output:
	// cg 3 true
}
