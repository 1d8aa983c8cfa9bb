package solvers_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestSparsePrimalFaults checks problems that Primal cannot solve, a canceled context, and too little memory.
func TestSparsePrimalFaults(t *testing.T) {
	dev := backendtest.Device(t, "")
	rng := rand.New(rand.NewPCG(1, 0))
	const n, d = 60, 40
	dense, y := backend.NewHost[float64](n, d), backend.NewHost[float64](n, 1)
	for i := range n {
		for range 4 {
			dense.Row(i)[rng.IntN(d)] = rng.NormFloat64()
		}
		y.Data[i] = rng.NormFloat64()
	}
	x := dense.CSR()
	p := solvers.Problem{Kernel: kernels.Linear{}, Sparse: &x, Y: y, Lambda: 1e-3, Intercept: true}
	primal := solvers.Params{Method: solvers.Primal}
	refused := func(name string, p solvers.Problem, par solvers.Params, want string) {
		t.Helper()
		if _, err := solvers.Solve(t.Context(), dev, p, par); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	free := p
	free.Lambda = 0
	refused("lambda 0", free, primal, "sparse samples need lambda > 0")
	gaussian := p
	gaussian.Kernel = kernels.Gaussian{Sigma: 1}
	refused("another kernel", gaussian, primal, "needs the kernel linear()")
	refused("little memory", p, solvers.Params{Method: solvers.Primal, Memory: 100}, "100 B")
	huge := p
	values := x
	values.Data = make([]float64, len(x.Data))
	for i := range values.Data {
		values.Data[i] = 1e200
	}
	huge.Sparse = &values
	refused("values that overflow", huge, primal, "XᵀX overflows: scale the features down")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := solvers.Solve(ctx, dev, p, primal); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled context: %v", err)
	}
	_, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.Primal, MaxIter: 2})
	if inaccurate := new(solvers.ConvergenceError); !errors.As(err, &inaccurate) || inaccurate.Result.Iters != 2 || !(inaccurate.Result.Residual > 1e-8) {
		t.Errorf("two products: %v", err)
	}
	zero := p
	zero.Y = backend.NewHost[float64](n, 1)
	res, err := solvers.Solve(t.Context(), dev, zero, primal)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append(res.Coef.Data, res.Intercept...) {
		if v != 0 {
			t.Errorf("targets of 0: a weight is %v", v)
		}
	}
	if res, err = solvers.Solve(t.Context(), dev, p, primal); err != nil || res.Bytes > res.Plan.Bytes {
		t.Fatalf("%v; %d bytes, planned %d", err, res.Bytes, res.Plan.Bytes)
	}
	// Optimality: the gradient Σ (y − wᵀx − b) x − λw and the sum Σ (y − wᵀx − b) are 0.
	gradient, sum := make([]float64, d), 0.0
	for i := range n {
		r := y.Data[i] - res.Intercept[0]
		for c, v := range dense.Row(i) {
			r -= v * res.Coef.Data[c]
		}
		sum += r
		for c, v := range dense.Row(i) {
			gradient[c] += r * v
		}
	}
	for c, v := range gradient {
		if math.Abs(v-p.Lambda*res.Coef.Data[c]) > 1e-8*n || math.Abs(sum) > 1e-12*n {
			t.Errorf("gradient %d is %g, of the intercept %g", c, v-p.Lambda*res.Coef.Data[c], sum)
		}
	}
}

// TestPrimalRSS compares Result.RSS with Σ_i w_i (y_i − f(x_i))², for a factor in float64 and for one in float32
// without a centered X.
func TestPrimalRSS(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	rng := rand.New(rand.NewPCG(2, 0))
	for _, c := range []struct {
		n, d     int
		weighted bool
	}{{300, 5, true}, {1 << 14, 128, false}} {
		p := solvers.Problem{Kernel: kernels.Linear{}, X: backend.NewHost[float64](c.n, c.d), Y: backend.NewHost[float64](c.n, 2), Lambda: 0.5, Intercept: true}
		for i := range p.X.Data {
			p.X.Data[i] = rng.NormFloat64()
		}
		for i := range p.Y.Data {
			p.Y.Data[i] = 3 + rng.NormFloat64()
		}
		weight := func(int) float64 { return 1 }
		if c.weighted {
			for i := range c.n {
				p.Weights = append(p.Weights, float64(i%3))
			}
			weight = func(i int) float64 { return p.Weights[i] }
		}
		res, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.Primal})
		if err != nil {
			t.Fatal(err)
		}
		for j, got := range res.RSS {
			want := 0.0
			for i := range c.n {
				r := p.Y.Row(i)[j] - res.Intercept[j]
				for k, x := range p.X.Row(i) {
					r -= x * res.Coef.Row(k)[j]
				}
				want += weight(i) * r * r
			}
			// A residual has at most d + 4 roundings of numbers below 100. The sum of n squares adds n roundings.
			if tol := float64(c.n+100*(c.d+4)) * 0x1p-53; !(math.Abs(got-want) <= tol*want) {
				t.Errorf("%d×%d: output %d: the sum of squares is %v, want %v", c.n, c.d, j, got, want)
			}
		}
		if len(res.RSS) != 2 {
			t.Errorf("%d×%d: %d sums of squares", c.n, c.d, len(res.RSS))
		}
	}
}
