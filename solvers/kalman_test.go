package solvers_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
)

// markovian are kernels of each kind that Kalman accepts.
var markovian = []kernels.Kernel{
	kernels.Matern{Nu: 2.5, Sigma: 2},
	kernels.Sum{kernels.Scaled{Weight: 2, Kernel: kernels.Matern{Nu: 1.5, Sigma: 0.3}}, kernels.Constant{Value: 0.5}, kernels.Product{kernels.Constant{Value: 0.5}, kernels.Laplacian{Sigma: 3}}},
	kernels.Matern{Nu: 0.5, Sigma: 0.4},
	kernels.Matern{Nu: 1.5, Sigma: 2},
}

func TestKalman(t *testing.T) {
	solvertest.Run(t, solvertest.Suite{Method: solvers.Kalman, Features: 1, Kernels: markovian})
}

// withZeros returns x with a second column of zeros: the distances are the same, but two features
// make Solve store K.
func withZeros(x backend.Host[float64]) backend.Host[float64] {
	wide := backend.NewHost[float64](x.Rows, 2)
	for i := range x.Rows {
		wide.Row(i)[0] = x.Row(i)[0]
	}
	return wide
}

// series returns n samples of one feature, in random order, some of them equal, with weights, some
// of which are 0.
func series(k kernels.Kernel, n int) solvers.Problem {
	r := rand.New(rand.NewPCG(7, 0))
	p := solvers.Problem{Kernel: k, X: backend.NewHost[float64](n, 1), Y: backend.NewHost[float64](n, 2), Weights: make([]float64, n), Lambda: 0.01}
	for i := range n {
		x := 20 * r.Float64()
		if i%50 == 1 {
			x = p.X.Data[i-1]
		}
		p.X.Data[i] = x
		p.Y.Row(i)[0], p.Y.Row(i)[1] = math.Sin(x)+0.1*r.NormFloat64(), math.Cos(3*x)+x
		p.Weights[i] = float64(i%7) / 2
	}
	return p
}

// TestKalmanMatchesStored compares the evidence, its derivatives, the variances and the solutions
// by a Kalman filter with the results by a stored factor, for the same samples and a second feature
// of zeros.
func TestKalmanMatchesStored(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n = 1500 // enough samples for Auto to take a filter
	near := func(what string, got, want, scale float64) {
		t.Helper()
		// The condition number of K + λW⁻¹ is at most n·k(0)/λ = 10⁶, or 3·10⁶ for the weights up to 3.
		if d := math.Abs(got - want); !(d <= 3e6*n*0x1p-52*scale) {
			t.Errorf("%s: got %v, want %v: difference %.3g", what, got, want, d)
		}
	}
	for _, k := range markovian {
		t.Run(k.String(), func(t *testing.T) {
			p := series(k, n)
			wide := p
			wide.X = withZeros(p.X)
			for _, scale := range []bool{false, true} {
				par := solvers.EvidenceParams{FitScale: scale, Gradient: true}
				got, err := solvers.LogEvidence(t.Context(), dev, p, par)
				if err != nil {
					t.Fatal(err)
				}
				want, err := solvers.LogEvidence(t.Context(), dev, wide, par)
				if err != nil {
					t.Fatal(err)
				}
				size := math.Abs(want.Log) + n
				near("log evidence", got.Log, want.Log, size)
				near("∂ ln λ", got.Lambda, want.Lambda, size)
				for i := range want.Gradient {
					near(fmt.Sprintf("gradient %d", i), got.Gradient[i], want.Gradient[i], size)
				}
				for j := range want.Scale {
					near("scale", got.Scale[j], want.Scale[j], want.Scale[j])
				}
			}
			z := backend.NewHost[float64](40, 1)
			for i := range z.Rows {
				z.Data[i] = float64(i) - 10
			}
			z.Data[0], z.Data[1] = p.X.Data[3], p.X.Data[1] // samples
			u, err := solvers.NewUncertainty(t.Context(), dev, p, 0)
			if err != nil {
				t.Fatal(err)
			}
			v, err := solvers.NewUncertainty(t.Context(), dev, wide, 0)
			if err != nil {
				t.Fatal(err)
			}
			got, err := u.Variance(t.Context(), dev, z, 0)
			if err != nil {
				t.Fatal(err)
			}
			want, err := v.Variance(t.Context(), dev, withZeros(z), 0)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				near(fmt.Sprintf("variance at %v", z.Data[i]), got[i], want[i], kernels.Diag(k, []float64{0}))
			}
			rows := 0
			for _, w := range p.Weights {
				if w > 0 {
					rows++
				}
			}
			a, b := backend.NewHost[float64](rows, 1), backend.NewHost[float64](rows, 1)
			for i := range a.Data {
				a.Data[i], b.Data[i] = math.Sin(float64(i)), math.Sin(float64(i))
			}
			if err := u.Solve(t.Context(), dev, a, 0); err != nil {
				t.Fatal(err)
			}
			if err := v.Solve(t.Context(), dev, b, 0); err != nil {
				t.Fatal(err)
			}
			for i := range b.Data {
				near("solution", a.Data[i], b.Data[i], 3/p.Lambda)
			}
		})
	}
}
