package cuda_test

import (
	"flag"
	"math"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

var fits = flag.Int("fits", 20, "fits of TestManyFitsLeaveNothing")

// TestManyFitsLeaveNothing checks that repeated fits by several methods on one device leave no device memory in use.
func TestManyFitsLeaveNothing(t *testing.T) {
	cuda.Need(t)
	dev := backendtest.Device(t, "cuda/0")
	const n, d = 64, 3
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 1}, X: backend.NewHost[float64](n, d), Y: backend.NewHost[float64](n, 1), Lambda: 0.1}
	for i := range p.X.Data {
		p.X.Data[i] = math.Sin(float64(i * i))
	}
	for i := range p.Y.Data {
		p.Y.Data[i] = math.Cos(float64(i))
	}
	methods := []solvers.Method{solvers.Dual, solvers.Mixed, solvers.CG}
	for i := range *fits {
		if _, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: methods[i%len(methods)]}); err != nil {
			t.Fatal(err)
		}
	}
	if inUse, peak := dev.InUse(); inUse != 0 || peak == 0 {
		t.Errorf("%d bytes are in use after %d fits, at most %d", inUse, *fits, peak)
	}
}
