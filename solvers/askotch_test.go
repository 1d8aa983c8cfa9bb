package solvers_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
)

// A tolerance of 1e-12 is enough for the bounds of the suite where the condition
// is near 1000.
func TestAskotch(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds; TestAskotchLarge runs the method")
	}
	par := solvers.Params{Tol: 1e-12, Block: 13}
	solvertest.Run(t, solvertest.Suite{Method: solvers.Askotch, Params: par, Kernels: several[1:2]})
}

// sine is n samples of a smooth function and noise.
func sine(seed uint64, n, d int) (x, y backend.Host[float64]) {
	r := rand.New(rand.NewPCG(seed, 0))
	x, y = backend.NewHost[float64](n, d), backend.NewHost[float64](n, 1)
	for i := range n {
		s := 0.0
		for j := range d {
			v := r.NormFloat64()
			x.Row(i)[j] = v
			s += v / float64(j+1)
		}
		y.Row(i)[0] = math.Sin(2*s) + 0.1*r.NormFloat64()
	}
	return x, y
}

// Blocks chosen by the method reach the tolerance of the promise on a system
// that is not small, in every mode, and for any number of workers with the same
// bits.
func TestAskotchLarge(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 500
	}
	x, y := sine(3, n, 6)
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 2.5}, X: x, Y: y, Lambda: 0.1, Intercept: true}
	for _, par := range []solvers.Params{{}, {Rank: 80}} {
		par.Method = solvers.Askotch
		var alpha []float64
		for _, threads := range []int{1, 3} {
			dev, err := backend.Open("cpu", backend.Config{Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			res, err := solvers.Solve(t.Context(), dev, p, par)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d passes, residual %.2g", res.Plan.Reason, res.Iters, res.Residual)
			if res.Residual > 1e-8 || res.Method != solvers.Askotch {
				t.Errorf("residual %v by %s", res.Residual, res.Method)
			}
			if alpha != nil && !slices.Equal(alpha, res.Alpha.Data) {
				t.Errorf("rank %d: other bits with %d workers", par.Rank, threads)
			}
			alpha = res.Alpha.Data
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestAskotchRefused(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	for want, par := range map[string]solvers.Params{
		"number of samples in a block": {Block: -1},
	} {
		par.Method = solvers.Askotch
		if _, err := solvers.Solve(t.Context(), dev, three(), par); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %q", err, want)
		}
	}
}
