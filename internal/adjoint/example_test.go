package adjoint_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/adjoint"
)

// The example computes the gradients of a loss with respect to K and λ.
func Example() {
	ctx := context.Background()
	dev, err := backend.Open("", backend.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = dev.Close() }()
	matrix := func(cols int, v ...float64) backend.Host[float64] {
		return backend.Host[float64]{Rows: len(v) / cols, Cols: cols, Stride: cols, Data: v}
	}
	factor, alpha, u := backend.NewHost[float64](2, 2), backend.NewHost[float64](2, 1), backend.NewHost[float64](2, 1)
	if err := adjoint.Factor(ctx, dev, matrix(2, 1, 0, 0, 3), 1, factor); err != nil { // the factored matrix is diag(2, 4)
		log.Fatal(err)
	}
	if err := adjoint.Solve(ctx, dev, factor, matrix(1, 2, 4), alpha); err != nil {
		log.Fatal(err)
	}
	if err := adjoint.Solve(ctx, dev, factor, matrix(1, 1, 0), u); err != nil { // the loss is α₁
		log.Fatal(err)
	}
	byK, byLambda, err := adjoint.SolveGradient(alpha, u)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.2f %.2f\n", byK.Data, byLambda)
	// Output:
	// [-0.50 -0.25 -0.25 0.00] -0.50
}
