package solvers_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/precision"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestPrimalInSinglePrecision checks that factors in float32 and in float64 give the same solution up to ‖r‖/λ for
// residuals r. Problems outside the range or accuracy of float32 must be solved in float64 or give an error.
func TestPrimalInSinglePrecision(t *testing.T) {
	dev := backendtest.Device(t, "")
	rng := rand.New(rand.NewPCG(11, 0))
	const n, d = 700, 30
	x, y := backend.NewHost[float64](n, d), backend.NewHost[float64](n, 2)
	weights := make([]float64, n)
	for i := range n {
		for j := range x.Row(i) {
			x.Row(i)[j] = 1e3*float64(j%3) + rng.NormFloat64()
		}
		y.Row(i)[0], y.Row(i)[1] = x.Row(i)[1]+rng.NormFloat64(), rng.NormFloat64()
		weights[i] = float64(rng.IntN(3))
	}
	twins := backend.NewHost[float64](n, d) // columns 4 and 5 differ by 1e-5
	for i := range n {
		copy(twins.Row(i), x.Row(i))
		twins.Row(i)[4] = x.Row(i)[3] + 1e-5*rng.NormFloat64()
	}
	equal := backend.NewHost[float64](n, d)
	for i := range n {
		copy(equal.Row(i), x.Row(i))
		equal.Row(i)[4] = x.Row(i)[3]
	}
	// With means below the standard deviations, Primal does not copy X.
	near, nearTwins := backend.NewHost[float64](n, d), backend.NewHost[float64](n, d)
	for i := range n {
		for j := range d {
			near.Row(i)[j] = x.Row(i)[j] - (1e3-0.4)*float64(j%3)
		}
		copy(nearTwins.Row(i), near.Row(i))
		nearTwins.Row(i)[4] = near.Row(i)[3] + 1e-5*rng.NormFloat64()
	}
	huge := backend.NewHost[float64](n, d) // the squares of its elements overflow float32
	for i, v := range x.Data {
		huge.Data[i] = 1e20 * v
	}
	for _, c := range []struct {
		name     string
		x        backend.Host[float64]
		offset   float64 // the mean of column j is about offset·(j%3)
		weights  []float64
		lambda   float64
		fallback string
		refused  string
	}{
		{name: "two targets", x: x, offset: 1e3, lambda: 1},
		{name: "weights", x: x, offset: 1e3, weights: weights, lambda: 1},
		{name: "least squares", x: x, offset: 1e3},
		{name: "nearly equal columns", x: twins, lambda: 1e-6, fallback: "pivot 5 is a rounding error"},
		{name: "overflow", x: huge, lambda: 1e30, fallback: "pivot 1 is a rounding error"},
		{name: "small means", x: near, offset: 0.4, lambda: 1},
		{name: "small means, nearly equal columns", x: nearTwins, lambda: 1e-6, fallback: "pivot 5 is a rounding error"},
		{name: "equal columns", x: equal, refused: "column 5"},
	} {
		p := solvers.Problem{Kernel: kernels.Linear{}, X: c.x, Y: y, Weights: c.weights, Lambda: c.lambda, Intercept: true}
		par := solvers.Params{Method: solvers.Primal}
		want, err := solvers.Solve(t.Context(), dev, p, par)
		if c.refused == "" && err != nil {
			t.Fatalf("%s: float64: %v", c.name, err)
		}
		restore := precision.Force(precision.Single)
		got, err := solvers.Solve(t.Context(), dev, p, par)
		restore()
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.fallback == "" && got.Fallback != "" || !strings.Contains(got.Fallback, c.fallback) {
			t.Errorf("%s: fallback %q", c.name, got.Fallback)
		}
		if c.fallback == "" && !(got.Residual <= 1e-12) {
			t.Errorf("%s: residual %.2g", c.name, got.Residual)
		}
		if c.lambda != 1 {
			continue
		}
		size := 0.0 // ‖W^½X‖‖W^½y‖ ≥ ‖XᵀWy‖ for centered samples and weights ≤ 2
		for i := range n {
			for j, v := range c.x.Row(i) {
				v -= c.offset * float64(j%3)
				size += v * v
			}
		}
		bound := 2 * math.Sqrt(size*2*float64(n)) * (got.Residual + want.Residual) / c.lambda
		for i, v := range want.Coef.Data {
			if diff := math.Abs(got.Coef.Data[i] - v); !(diff <= bound+1e-15) {
				t.Errorf("%s: weight %d is %v, in float64 %v", c.name, i, got.Coef.Data[i], v)
			}
		}
	}
}
