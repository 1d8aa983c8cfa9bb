package mercer_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

func Example() {
	x := mat.NewDense(100, 1, nil) // one sample in each row
	y := mat.NewDense(100, 1, nil)
	for i := range 100 {
		x.Set(i, 0, 0.1*float64(i))
		y.Set(i, 0, math.Sin(x.At(i, 0)))
	}
	learner := learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 1e-3}
	model, err := mercer.Fit(context.Background(), learner, x, y, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	f, err := model.Predict(context.Background(), mat.NewDense(1, 1, []float64{1.05}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("f(1.05) = %.2f, sin(1.05) = %.2f\n", f.At(0, 0), math.Sin(1.05))
	fmt.Printf("relative residual below 1e-8: %t\n", model.Fitted.Solved().Residual < 1e-8)
	// Output:
	// f(1.05) = 0.87, sin(1.05) = 0.87
	// relative residual below 1e-8: true
}
