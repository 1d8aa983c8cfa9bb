package solvers_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// BenchmarkPath computes a path of 30 λ with leave-one-out errors or GCV for synthetic samples: X ~ N(0, I), d = 50, y
// = sin(Xw) plus noise. The metric "fits" is the time of the path divided by the shorter time of two fits by Dual.
func BenchmarkPath(b *testing.B) {
	for _, n := range []int{1000, 4000} {
		if n > 1000 && testing.Short() {
			continue
		}
		rng := rand.New(rand.NewPCG(1, 4))
		p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: math.Sqrt(50)}, X: backend.NewHost[float64](n, 50), Y: backend.NewHost[float64](n, 1), Lambda: 0.1}
		for i := range n {
			sum := 0.0
			for j := range 50 {
				v := rng.NormFloat64()
				p.X.Row(i)[j] = v
				sum += v * math.Cos(float64(j))
			}
			p.Y.Data[i] = math.Sin(sum) + 0.1*rng.NormFloat64()
		}
		dev, err := backend.Open("cpu", backend.Config{})
		if err != nil {
			b.Fatal(err)
		}
		for _, loo := range []bool{true, false} {
			name := "gcv"
			if loo {
				name = "loo"
			}
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				fit := math.Inf(1)
				for range 2 {
					start := time.Now()
					if _, err := solvers.Solve(context.Background(), dev, p, solvers.Params{Method: solvers.Dual}); err != nil {
						b.Fatal(err)
					}
					fit = min(fit, time.Since(start).Seconds())
				}
				lambdas := solvers.Lambdas(1e-4, 100, 30)
				best := math.Inf(1)
				for b.Loop() {
					start := time.Now()
					if _, err := solvers.SolvePath(context.Background(), dev, p, lambdas, solvers.PathParams{LeaveOneOut: loo}); err != nil {
						b.Fatal(err)
					}
					best = min(best, time.Since(start).Seconds())
				}
				b.ReportMetric(best/fit, "fits")
			})
		}
		dev.Close()
	}
}
