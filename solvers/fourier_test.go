package solvers

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// TestFourierDense compares SolveFourier with least squares on the host.
func TestFourierDense(t *testing.T) {
	const seed, n = 29, 130
	t.Log("seed", seed)
	x := backendtest.Normal(seed, n, 3)
	y := targets(seed, x)
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = float64(i%3) + 0.5
	}
	backendtest.EachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, w := range [][]float64{nil, weights} {
			p := FourierProblem{Kernel: kernels.Matern{Nu: 2.5, Sigma: 1}, Data: InMemory(x, y, w, nil), Count: 31, Seed: 5, Lambda: 0.1, Intercept: true}
			res, err := SolveFourier(t.Context(), dev, p, StreamParams{Tol: 1e-12})
			if err != nil {
				t.Fatal(err)
			}
			if res.Beta.Rows != 32 || res.Frequencies.Rows != 16 {
				t.Fatalf("%d features of %d frequencies", res.Beta.Rows, res.Frequencies.Rows)
			}
			phi, eye := mat.NewDense(n, 32, nil), mat.NewDense(32, 32, nil)
			for i := range n {
				for j := range 16 {
					arg := 0.0
					for q, v := range res.Frequencies.Row(j) {
						arg += v * x.Row(i)[q]
					}
					phi.Set(i, j, math.Cos(arg)/4)
					phi.Set(i, 16+j, math.Sin(arg)/4)
				}
			}
			for i := range 32 {
				eye.Set(i, i, 1)
			}
			want := denseFit(t, phi, eye, y, w, 0.1, true)
			beta := backend.NewHost[float64](32, 2)
			for i, v := range res.Beta.Data {
				beta.Data[i] = 4 * v
			}
			// The bound is the allowed residual times ‖ΦH⁻¹‖ ≤ 1/(2√λ). H is the matrix of the normal equations.
			var z mat.Dense
			z.Mul(phi.T(), mat.NewDense(n, 2, y.Data))
			bound := 1e-12*mat.Norm(&z, 2)*3/(2*math.Sqrt(0.1)) + 1e-11
			if d := furthest(fitOf(phi, beta, res.Intercept), want); d > bound {
				t.Errorf("weights %v: the fit is off by %.3g, allowed %.3g", w != nil, d, bound)
			}
		}
	})
}

func TestFourierMemoryAndBits(t *testing.T) {
	const n, d = 2500, 5
	x := backendtest.Normal(1, n, d)
	y := targets(1, x)
	all := inMemory{x, y, nil, nil}
	var want *StreamResult
	for _, threads := range []int{1, 3} {
		dev, err := backend.Open("cpu", backend.Config{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		p := FourierProblem{Kernel: kernels.Laplacian{Sigma: 4}, Data: cut{all, []int{100 * threads}}, Count: 200, Lambda: 1}
		res, err := SolveFourier(t.Context(), dev, p, StreamParams{Posterior: true})
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = res
		}
		if q := res.Posterior; !slices.Equal(q.Factors.Data, want.Posterior.Factors.Data) || !slices.Equal(q.Scale, want.Posterior.Scale) || q.Log != want.Posterior.Log {
			t.Errorf("another posterior with %d threads", threads)
		}
		if !slices.Equal(res.Beta.Data, want.Beta.Data) || !slices.Equal(res.Frequencies.Data, want.Frequencies.Data) {
			t.Errorf("other bits with %d threads", threads)
		}
		if res.Bytes > res.Plan.Bytes || float64(res.Bytes) < 0.9*float64(res.Plan.Bytes) {
			t.Errorf("%d bytes were taken, %d planned", res.Bytes, res.Plan.Bytes)
		}
		if now, _ := dev.InUse(); now != 0 {
			t.Errorf("%d bytes are left", now)
		}
		_, err = SolveFourier(t.Context(), dev, p, StreamParams{Memory: res.Plan.Bytes - 1, Posterior: true})
		var budget *BudgetError
		if !errors.As(err, &budget) {
			t.Errorf("one byte less gives %v", err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFourierRefused(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	x := backendtest.Normal(1, 30, 2)
	valid := FourierProblem{Kernel: kernels.Gaussian{Sigma: 1}, Data: InMemory(x, targets(1, x), nil, nil), Lambda: 1}
	for want, change := range map[string]func(p *FourierProblem){
		"the kernel is missing":             func(p *FourierProblem) { p.Kernel = nil },
		"sigma has 3 entries":               func(p *FourierProblem) { p.Kernel = kernels.Gaussian{Sigmas: []float64{1, 2, 3}} },
		"no random Fourier features":        func(p *FourierProblem) { p.Kernel = kernels.Polynomial{Degree: 2} },
		"number of features must be ≥ 0":    func(p *FourierProblem) { p.Count = -2 },
		"lambda must be a finite number":    func(p *FourierProblem) { p.Lambda = math.Inf(1) },
		"samples are missing":               func(p *FourierProblem) { p.Data = nil },
		"solvers: x has 30 rows, y has 29":  func(p *FourierProblem) { p.Data = InMemory(x, head(x, 29), nil, nil) },
		"solvers: weights: row 2: must be ": func(p *FourierProblem) { w := numeric.Repeated(1.0, 30); w[1] = -1; p.Data = InMemory(x, x, w, nil) },
	} {
		p := valid
		change(&p)
		if _, err := SolveFourier(t.Context(), dev, p, StreamParams{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %q", err, want)
		}
	}
}
