package evidence_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/evidence"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// The example finds the length scale and the noise of a Gaussian process that maximize the likelihood.
func Example() {
	dev, err := backend.Open("", backend.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = dev.Close() }()
	x, y := backend.NewHost[float64](40, 1), backend.NewHost[float64](40, 1)
	for i := range 40 {
		x.Data[i] = float64(i) / 4
		y.Data[i] = math.Sin(x.Data[i]) + 0.1*math.Cos(50*x.Data[i])
	}
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 0.3}, X: x, Y: y, Lambda: 1}
	candidates, err := evidence.Maximize(context.Background(), dev, p, evidence.Params{Restarts: 1, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	sigma := candidates[0].Kernel.(kernels.Gaussian).Sigma
	fmt.Println(sigma > 1, sigma < 3, candidates[0].Lambda < 0.1)
	// Output:
	// true true true
}
