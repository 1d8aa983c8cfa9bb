package cuda_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda"
	"github.com/mercer-go/mercer/internal/precision"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// BenchmarkFits times whole fits by each method that the planner considers, and logs the planner's
// estimates. The method that the planner chooses should be the fastest.
func BenchmarkFits(b *testing.B) {
	cuda.Need(b)
	dev := backendtest.Device(b, "cuda/0")
	sizes, d := []int{2048, 8192, 32768, 50000, 150000, 190000}, 50
	if dev.Info().Processor == "Simulated GPU" {
		sizes, d = []int{64}, 5
	}
	for _, n := range sizes {
		rng := rand.New(rand.NewPCG(uint64(n), 0))
		p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: math.Sqrt(float64(d))}, X: backend.NewHost[float64](n, d), Y: backend.NewHost[float64](n, 1), Lambda: 0.1}
		for i := range p.X.Data {
			p.X.Data[i] = rng.NormFloat64()
		}
		for i := range p.Y.Data {
			p.Y.Data[i] = rng.NormFloat64()
		}
		for _, c := range []struct {
			name   string
			par    solvers.Params
			factor precision.Precision
		}{
			{name: "auto"}, {name: "dual", par: solvers.Params{Method: solvers.Dual}},
			{"mixed reduced", solvers.Params{Method: solvers.Mixed}, precision.Reduced},
			{"mixed float32", solvers.Params{Method: solvers.Mixed}, precision.Single},
			{name: "cg", par: solvers.Params{Method: solvers.CG}},
		} {
			if n > 50000 && c.name != "mixed reduced" {
				continue // for this n the other methods take too long or too much memory
			}
			c.par.Tol = 1e-10
			b.Run(fmt.Sprintf("n=%d/method=%s", n, c.name), func(b *testing.B) {
				defer precision.Force(c.factor)()
				plan, err := solvers.MakePlan(dev, p, c.par)
				if err != nil {
					b.Skip(err)
				}
				b.Logf("%s, %.3g operations: %s", plan.Method, plan.Flops, plan.Reason)
				for b.Loop() {
					began := time.Now()
					r, err := solvers.Solve(b.Context(), dev, p, c.par)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(time.Since(began).Seconds(), "s")
					b.ReportMetric(-math.Log10(max(r.Residual, 1e-300)), "digits")
					b.ReportMetric(float64(r.Iters), "iterations")
				}
			})
		}
	}
}
