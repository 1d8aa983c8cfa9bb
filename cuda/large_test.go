package cuda_test

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestLargeOddFit checks a fit whose K has more than 2³¹ elements and an odd order, so that rows are not aligned to
// 16 bytes. On the simulated GPU the fit is small.
func TestLargeOddFit(t *testing.T) {
	cuda.Need(t)
	dev := backendtest.Device(t, "cuda/0")
	n, d := 50_001, 10
	if dev.Info().Processor == "Simulated GPU" {
		n = 101
	}
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: math.Sqrt(float64(d))}, X: backend.NewHost[float64](n, d), Y: backend.NewHost[float64](n, 1), Lambda: 1}
	for i := range p.X.Data {
		p.X.Data[i] = math.Sin(float64(i) * float64(i))
	}
	for i := range p.Y.Data {
		p.Y.Data[i] = math.Cos(float64(i))
	}
	for _, m := range []solvers.Method{solvers.Dual, solvers.Mixed, solvers.CG} {
		plan, err := solvers.MakePlan(dev, p, solvers.Params{Method: m})
		if err == nil && plan.Bytes > dev.Info().Memory {
			t.Logf("%s needs %d bytes, but the device has %d", m, plan.Bytes, dev.Info().Memory)
			continue
		}
		r, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: m, Tol: 1e-10})
		if err != nil {
			t.Fatal(err)
		}
		if !(r.Residual <= 1e-10) { // the residual is computed in float64 from the data
			t.Errorf("%s: the residual is %g", m, r.Residual)
		}
	}
}
