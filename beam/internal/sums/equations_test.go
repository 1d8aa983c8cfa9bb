package sums

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

// normalSums returns ΦᵀΦ and Φᵀy.
func normalSums(phi, y backend.Host[float64]) (g, z backend.Host[float64]) {
	g, z = backend.NewHost[float64](phi.Cols, phi.Cols), backend.NewHost[float64](phi.Cols, y.Cols)
	for i := range phi.Rows {
		for p, v := range phi.Row(i) {
			for q, w := range phi.Row(i)[:p+1] {
				g.Row(p)[q] += v * w
			}
			for q, w := range y.Row(i) {
				z.Row(p)[q] += v * w
			}
		}
	}
	return g, z
}

// TestEquationsAgree compares solutions of the equations with those of package solvers, for random Fourier features
// and for centers.
func TestEquationsAgree(t *testing.T) {
	const n, d, m, seed = 300, 3, 40, 20260901
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	x, y := backend.NewHost[float64](n, d), backend.NewHost[float64](n, 2)
	for i := range n {
		for j := range d {
			x.Row(i)[j] = r.NormFloat64()
		}
		y.Row(i)[0], y.Row(i)[1] = math.Sin(x.Row(i)[0]), x.Row(i)[1]*x.Row(i)[2]
	}
	dev := backendtest.Device(t, "ref")
	par := solvers.StreamParams{Method: solvers.Normal, Tol: 1e-13}
	kernel := kernels.Gaussian{Sigma: 1.5}
	const lambda = 0.5

	problem := solvers.FourierProblem{Kernel: kernel, Data: solvers.InMemory(x, y, nil, nil), Count: m, Seed: 3, Lambda: lambda}
	want, err := solvers.SolveFourier(t.Context(), dev, problem, par)
	if err != nil {
		t.Fatal(err)
	}
	omega, scale, err := problem.Basis(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	phi := backend.NewHost[float64](n, m)
	for i := range n {
		for j := range m / 2 {
			angle := 0.0
			for p, v := range x.Row(i) {
				angle += v * omega.Row(j)[p]
			}
			phi.Row(i)[j], phi.Row(i)[m/2+j] = scale*math.Cos(angle), scale*math.Sin(angle)
		}
	}
	g, z := normalSums(phi, y)
	got, err := (&equations{gram: g, right: z, lambda: lambda}).solve(t.Context(), dev, par.Tol, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The condition number of ΦᵀΦ + λI is at most n/λ + 1, because the squares of a row of Φ sum to 1. Sums of n
	// terms have rounding errors of at most n·ε times |Φ|ᵀ|Φ|.
	tol := (n/lambda + 1) * n * 0x1p-53
	checkNear := func(name string, got, want backend.Host[float64], scale float64) {
		t.Helper()
		largest, difference := 0.0, 0.0
		for i, v := range want.Data {
			largest = max(largest, math.Abs(v))
			difference = max(difference, math.Abs(v-scale*got.Data[i]))
		}
		if !(difference <= tol*largest) {
			t.Errorf("%s: the coefficients differ by %.3g of %.3g, more than %.3g of it", name, difference, largest, tol)
		}
	}
	checkNear("fourier", got.beta, want.Beta, scale)

	centers := x.View(0, 0, m, d)
	nystrom, err := solvers.SolveNystrom(t.Context(), dev, solvers.NystromProblem{Kernel: kernels.Gaussian{Sigma: 0.5}, Data: solvers.InMemory(x, y, nil, nil), Centers: centers, Lambda: lambda}, par)
	if err != nil {
		t.Fatal(err)
	}
	k := func(a, b []float64) float64 {
		s := 0.0
		for p, v := range a {
			s += (v - b[p]) * (v - b[p])
		}
		return math.Exp(-2 * s)
	}
	s := backend.NewHost[float64](m, m)
	for i := range n {
		for j := range m {
			phi.Row(i)[j] = k(x.Row(i), centers.Row(j))
			if i < m {
				s.Row(i)[j] = k(centers.Row(i), centers.Row(j))
			}
		}
	}
	g, z = normalSums(phi, y)
	got, err = (&equations{gram: g, right: z, penalty: s, lambda: lambda}).solve(t.Context(), dev, par.Tol, 0)
	if err != nil {
		t.Fatal(err)
	}
	checkNear("nystrom", got.beta, nystrom.Beta, 1)
	if inUse, _ := dev.InUse(); inUse != 0 {
		t.Errorf("%d bytes are left on the device", inUse)
	}
}

// TestEquationsSingular checks that equations with a matrix of rank one are solved, and that a negative definite
// matrix is refused.
func TestEquationsSingular(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	g, z := backend.NewHost[float64](3, 3), backend.NewHost[float64](3, 1)
	for i := range 3 {
		z.Row(i)[0] = 2
		for j := range 3 {
			g.Row(i)[j] = 1
		}
	}
	got, err := (&equations{gram: g, right: z}).solve(t.Context(), dev, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if sum := got.beta.Data[0] + got.beta.Data[1] + got.beta.Data[2]; math.Abs(sum-2) > 1e-6*2 || got.jitter == 0 {
		t.Errorf("1ᵀβ = %v with jitter %v, want 2 to the tolerance of 1e-6", sum, got.jitter)
	}
	g.Row(1)[1] = -1
	_, err = (&equations{gram: g, right: z}).solve(t.Context(), dev, 0, 0)
	if !errors.Is(err, backend.ErrNotPosDef) || !strings.Contains(err.Error(), "function 2") {
		t.Errorf("a negative matrix: %v", err)
	}
	g.Row(2)[0] = math.Inf(1)
	_, err = (&equations{gram: g, right: z}).solve(t.Context(), dev, 0, 0)
	if err == nil || !strings.Contains(err.Error(), "row 3, column 1") {
		t.Errorf("an infinite matrix: %v", err)
	}
	g.Row(2)[0] = 1
	var budget *solvers.BudgetError
	if _, err = (&equations{gram: g, right: z}).solve(t.Context(), dev, 0, 100); !errors.As(err, &budget) {
		t.Errorf("100 bytes: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = (&equations{gram: g, right: z, lambda: 9}).solve(ctx, dev, 0, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
