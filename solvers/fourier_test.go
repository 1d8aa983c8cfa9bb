package solvers

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// The mean of cos(ωᵀ(x−z)) over many frequencies is the kernel.
func TestSpectral(t *testing.T) {
	const seed, count, d = 23, 40000, 3
	t.Log("seed", seed)
	x := normal(seed, 6, d)
	for _, test := range []struct {
		kernel     kernels.Kernel
		orthogonal bool
	}{
		{kernels.Gaussian{Sigma: 1.5}, false},
		{kernels.Gaussian{Sigma: 1.5}, true},
		{kernels.Gaussian{Sigmas: []float64{0.5, 2, 10}}, false},
		{kernels.Gaussian{Sigmas: []float64{0.5, 2, 10}}, true},
		{kernels.Laplacian{Sigma: 2}, false},
		{kernels.Matern{Nu: 0.5, Sigma: 2}, false},
		{kernels.Matern{Nu: 1.5, Sigma: 2}, true},
		{kernels.Matern{Nu: 2.5, Sigma: 1}, false},
		{kernels.RationalQuadratic{A: 0.4, Sigma: 1}, false},
		{kernels.RationalQuadratic{A: 3, Sigma: 1}, true},
		{kernels.Product{kernels.Gaussian{Sigma: 2}, kernels.Laplacian{Sigma: 3}, kernels.Constant{Value: 2}}, false},
		{kernels.Sum{kernels.Scaled{Weight: 0.3, Kernel: kernels.Gaussian{Sigma: 1}}, kernels.Matern{Nu: 1.5, Sigma: 4}}, false},
	} {
		s, err := spectralOf(test.kernel, d)
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.frequencies(t.Context(), rand.New(rand.NewPCG(seed, 0)), count, d, test.orthogonal)
		if err != nil {
			t.Fatal(err)
		}
		for i := range x.Rows {
			for j := range i + 1 {
				mean := 0.0
				for _, omega := range list {
					arg := 0.0
					for p, w := range omega {
						arg += w * (x.Row(i)[p] - x.Row(j)[p])
					}
					mean += s.height * math.Cos(arg) / count
				}
				// The variance of a cosine is at most 1: five standard deviations
				// of a mean, and rounding.
				want := kernels.Eval(test.kernel, x.Row(i), x.Row(j))
				if d := math.Abs(mean - want); d > 5*s.height/math.Sqrt(count)+1e-12 {
					t.Errorf("%v, orthogonal %v: the mean of the cosines is %v, the kernel %v", test.kernel, test.orthogonal, mean, want)
				}
			}
		}
	}
	for _, k := range []kernels.Kernel{kernels.Linear{}, kernels.Sum{kernels.Gaussian{Sigma: 1}, kernels.Linear{}}, kernels.Product{kernels.Constant{Value: 1}}} {
		if _, err := spectralOf(k, d); err == nil {
			t.Errorf("%v has frequencies", k)
		}
	}
}

// Orthogonal directions are orthogonal, and approach the kernel sooner.
func TestOrthogonalFrequencies(t *testing.T) {
	const d, count, draws = 8, 16, 300
	k := kernels.Gaussian{Sigma: 3}
	s, err := spectralOf(k, d)
	if err != nil {
		t.Fatal(err)
	}
	x := normal(1, 2, d)
	want := kernels.Eval(k, x.Row(0), x.Row(1))
	squares := map[bool]float64{}
	for seed := range uint64(draws) {
		for _, orthogonal := range []bool{false, true} {
			list, err := s.frequencies(t.Context(), rand.New(rand.NewPCG(seed, 0)), count, d, orthogonal)
			if err != nil {
				t.Fatal(err)
			}
			mean := 0.0
			for _, omega := range list {
				arg := 0.0
				for p, w := range omega {
					arg += w * (x.Row(0)[p] - x.Row(1)[p])
				}
				mean += math.Cos(arg) / count
			}
			squares[orthogonal] += (mean - want) * (mean - want)
			for i := range list {
				for j := range i {
					dot, a, b := 0.0, 0.0, 0.0
					for p := range d {
						dot += list[i][p] * list[j][p]
						a += list[i][p] * list[i][p]
						b += list[j][p] * list[j][p]
					}
					// Twice is enough (Giraud, Langou, Rozložník 2005): rounding of
					// d products is left.
					if orthogonal && i/d == j/d && math.Abs(dot) > 8*d*numeric.Epsilon*math.Sqrt(a*b) {
						t.Fatalf("frequencies %d and %d: cosine %.3g", i, j, dot/math.Sqrt(a*b))
					}
				}
			}
		}
	}
	// 300 draws distinguish variances that differ by a quarter.
	if squares[true] > 0.75*squares[false] {
		t.Errorf("mean squared error %.3g with orthogonal directions, %.3g without", squares[true]/draws, squares[false]/draws)
	}
}

// Against least squares on the host.
func TestFourierDense(t *testing.T) {
	const seed, n = 29, 130
	t.Log("seed", seed)
	x := normal(seed, n, 3)
	y := targets(seed, x)
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = float64(i%3) + 0.5
	}
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, w := range [][]float64{nil, weights} {
			p := FourierProblem{Kernel: kernels.Matern{Nu: 2.5, Sigma: 1}, Data: InMemory(x, y, w), Count: 31, Seed: 5, Lambda: 0.1, Intercept: true, Orthogonal: w == nil}
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
			// ‖ΦH⁻¹‖ ≤ 1/(2√λ), times the residual allowed.
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
	x := normal(1, n, d)
	y := targets(1, x)
	all := inMemory{x, y, nil}
	var want *FourierResult
	for _, threads := range []int{1, 3} {
		dev, err := backend.Open("cpu", backend.Config{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		p := FourierProblem{Kernel: kernels.Laplacian{Sigma: 4}, Data: cut{all, []int{100 * threads}}, Count: 200, Lambda: 1}
		res, err := SolveFourier(t.Context(), dev, p, StreamParams{})
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = res
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
		_, err = SolveFourier(t.Context(), dev, p, StreamParams{Memory: res.Plan.Bytes - 1})
		var budget *BudgetError
		if !errors.As(err, &budget) {
			t.Errorf("one byte less gives %v", err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Frequencies in many dimensions take their time, and end soon when they must.
func TestFrequenciesCancelled(t *testing.T) {
	s, err := spectralOf(kernels.Gaussian{Sigma: 1}, 300)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, orthogonal := range []bool{false, true} {
		if _, err := s.frequencies(ctx, rand.New(rand.NewPCG(1, 0)), 5000, 300, orthogonal); !errors.Is(err, context.Canceled) {
			t.Errorf("orthogonal %v: %v", orthogonal, err)
		}
	}
}

func TestFourierRefused(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	x := normal(1, 30, 2)
	good := FourierProblem{Kernel: kernels.Gaussian{Sigma: 1}, Data: InMemory(x, targets(1, x), nil), Lambda: 1}
	for want, change := range map[string]func(p *FourierProblem){
		"the kernel is missing":             func(p *FourierProblem) { p.Kernel = nil },
		"sigma has 3 entries":               func(p *FourierProblem) { p.Kernel = kernels.Gaussian{Sigmas: []float64{1, 2, 3}} },
		"no random Fourier features":        func(p *FourierProblem) { p.Kernel = kernels.Polynomial{Degree: 2} },
		"have no orthogonal directions":     func(p *FourierProblem) { p.Kernel, p.Orthogonal = kernels.Laplacian{Sigma: 1}, true },
		"number of features must be ≥ 0":    func(p *FourierProblem) { p.Count = -2 },
		"lambda must be a finite number":    func(p *FourierProblem) { p.Lambda = math.Inf(1) },
		"samples are missing":               func(p *FourierProblem) { p.Data = nil },
		"solvers: x has 30 rows, y has 29":  func(p *FourierProblem) { p.Data = InMemory(x, head(x, 29), nil) },
		"solvers: weights: row 2: must be ": func(p *FourierProblem) { w := numeric.Repeated(1.0, 30); w[1] = -1; p.Data = InMemory(x, x, w) },
	} {
		p := good
		change(&p)
		if _, err := SolveFourier(t.Context(), dev, p, StreamParams{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %q", err, want)
		}
	}
}
