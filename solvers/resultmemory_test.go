package solvers_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestResultsDoNotKeepTheSamples checks that the garbage collector can free the samples while their Result is in use.
func TestResultsDoNotKeepTheSamples(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	solve := func(method solvers.Method) func(p solvers.Problem) (*solvers.Result, error) {
		return func(p solvers.Problem) (*solvers.Result, error) {
			return solvers.Solve(t.Context(), dev, p, solvers.Params{Method: method})
		}
	}
	for name, fit := range map[string]func(p solvers.Problem) (*solvers.Result, error){
		"dual": solve(solvers.Dual), "mixed": solve(solvers.Mixed), "cg": solve(solvers.CG),
		"each": func(p solvers.Problem) (*solvers.Result, error) {
			return solvers.SolveEach(t.Context(), dev, p, []float64{0.5}, solvers.Params{})
		},
		"fourier": func(p solvers.Problem) (*solvers.Result, error) {
			res, err := solvers.SolveFourier(t.Context(), dev, solvers.FourierProblem{Kernel: p.Kernel, Data: solvers.InMemory(p.X, p.Y, nil, nil), Count: 20, Lambda: p.Lambda}, solvers.StreamParams{})
			if err != nil {
				return nil, err
			}
			return &res.Result, nil
		},
	} {
		var freed atomic.Bool
		res, err := fit(func() solvers.Problem {
			p := shape(kernels.Gaussian{Sigma: 1}, 300, 4)
			for i := range p.X.Data {
				p.X.Data[i] = float64(i * i % 17)
			}
			for i := range p.Y.Data {
				p.Y.Data[i] = float64(i % 5)
			}
			runtime.AddCleanup(&p.X.Data[0], func(*atomic.Bool) { freed.Store(true) }, &freed)
			return p
		}())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for range 50 {
			if runtime.GC(); freed.Load() {
				break
			}
			time.Sleep(20 * time.Millisecond) // idle workers of the device exit
		}
		if !freed.Load() {
			t.Errorf("%s: the samples are in use", name)
		}
		runtime.KeepAlive(res)
	}
}
