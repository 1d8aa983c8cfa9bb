package learners_test

import (
	"context"
	"fmt"
	"log"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
)

// This example makes the steps of mercer.Fit one by one, with a device that the program opens
// itself.
func Example() {
	ctx := context.Background()
	dev, err := backend.Open("", backend.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = dev.Close() }()
	x, y := mat.NewDense(4, 1, []float64{0, 1, 2, 3}), mat.NewVecDense(4, []float64{1, 3, 5, 7})
	m, err := learners.LeastSquares{}.Fit(ctx, dev, x, y, learners.Options{})
	if err != nil {
		log.Fatal(err)
	}
	f, err := m.Predict(ctx, dev, x)
	if err != nil {
		log.Fatal(err)
	}
	score, err := validate.ScoreRegression(y, f, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("R² = %.3f of %d samples\n", *score.R2, score.N)
	// Output:
	// R² = 1.000 of 4 samples
}
