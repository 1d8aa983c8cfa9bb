package solvers

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/lowrank"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

// TestTaylorIterations checks that the number of iterations for rows far from each other, with the monomials up to the
// first or second power, is between 0.6 and 1/0.6 times the planner's estimate.
func TestTaylorIterations(t *testing.T) {
	dev := backendtest.Device(t, "")
	const seed, n, d = 15, 2000, 30
	t.Logf("seed %d", seed)
	for _, lambda := range []float64{0.1, 0.001} {
		for _, rank := range []int{1 + d, (2 + d) * (1 + d) / 2} {
			p := Problem{Kernel: kernels.Gaussian{Sigma: math.Sqrt(d)}, X: backendtest.Normal(seed, n, d), Y: backendtest.Normal(seed+1, n, 1), Lambda: lambda}
			par := Params{Method: CG, Operator: Stored64, Preconditioner: lowrank.Taylor, Rank: rank}
			res, err := Solve(t.Context(), dev, p, par)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := MakePlan(dev, p, par)
			if err != nil {
				t.Fatal(err)
			}
			predicted := plan.settings.(cgChoice).iterations
			t.Logf("lambda %g, rank %d: %d iterations, %d are predicted", lambda, rank, res.Iters, predicted)
			if ratio := float64(predicted) / float64(res.Iters); res.Rank != rank || !(ratio > 0.6 && ratio < 1/0.6) {
				t.Errorf("lambda %g, rank %d: %d iterations with rank %d, %d are predicted", lambda, rank, res.Iters, res.Rank, predicted)
			}
		}
	}
}

// TestTaylorFarRow moves one row far from all other rows, which may add at most two iterations.
func TestTaylorFarRow(t *testing.T) {
	dev := backendtest.Device(t, "")
	const seed, n, d = 21, 1000, 30
	t.Logf("seed %d", seed)
	p := Problem{Kernel: kernels.Gaussian{Sigma: math.Sqrt(d)}, X: backendtest.Normal(seed, n, d), Y: backendtest.Normal(seed+1, n, 1), Lambda: 0.1}
	iters := func() int {
		res, err := Solve(t.Context(), dev, p, Params{Method: CG, Operator: Stored64, Preconditioner: lowrank.Taylor, Rank: 1 + d})
		if err != nil {
			t.Fatal(err)
		}
		return res.Iters
	}
	near := iters()
	for j := range d {
		p.X.Row(17)[j] = 1e7
	}
	if far := iters(); far > near+2 {
		t.Errorf("%d iterations, %d with a row far from the others", near, far)
	}
}

// TestTaylorPlan checks that Auto chooses the power series for rows that are far from each other, but not if some rows
// are near each other, nor for one feature, where the rank of the series is the number of rows.
func TestTaylorPlan(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed, n = 17, 6000
	t.Logf("seed %d", seed)
	twice := backendtest.Normal(seed, n, 40)
	copy(twice.Data[n*20:], twice.Data[:n*20])
	shifted := backendtest.Normal(seed, n, 40)
	for i := n - 300; i < n; i++ {
		for j, v := range shifted.Row(i - 3000) {
			shifted.Row(i)[j] = v + 1e-3*shifted.Row(i)[j]
		}
	}
	for _, test := range []struct {
		name          string
		kernel        kernels.Kernel
		x             backend.Host[float64]
		lambda        float64
		want, allowed string
	}{
		{"far apart", kernels.Gaussian{Sigma: 7}, backendtest.Normal(seed, n, 50), 0.01, lowrank.Taylor, ""},
		{"cubic", kernels.Polynomial{Degree: 3, C: 1}, backendtest.Normal(seed, n, 50), 0.01, lowrank.Taylor, ""},
		{"every row twice", kernels.Gaussian{Sigma: 6.3}, twice, 1e-4, "rpcholesky", "none"},
		{"some rows nearly twice", kernels.Gaussian{Sigma: 6.3}, shifted, 1e-4, "rpcholesky", "none"},
		{"two features", kernels.Gaussian{Sigma: 0.02}, backendtest.Normal(seed, n, 2), 1e-2, "rpcholesky", "none"},
		{"one feature", kernels.Gaussian{Sigma: 1e-3}, backendtest.Normal(seed, n, 1), 1e-2, "rpcholesky", "none"},
		{"no series", kernels.Laplacian{Sigma: 50}, backendtest.Normal(seed, n, 50), 0.01, "rpcholesky", "none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := Problem{Kernel: test.kernel, X: test.x, Y: backend.NewHost[float64](n, 1), Lambda: test.lambda}
			start := time.Now()
			plan, err := MakePlan(dev, p, Params{Method: CG})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v: %s", time.Since(start), plan.Reason)
			if got := plan.settings.(cgChoice).Preconditioner; got != test.want && got != test.allowed {
				t.Errorf("%s is chosen, want %s", got, test.want)
			}
		})
	}
}

// TestTaylorSolves checks that conjugate gradients with the preconditioner "taylor" reach the tolerance in both
// precisions, with weights, an intercept, equal rows, one feature or one row, and with rank 1, 40 or automatic.
func TestTaylorSolves(t *testing.T) {
	dev := backendtest.Device(t, "")
	const seed, n, d = 19, 300, 6
	t.Logf("seed %d", seed)
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = float64(i % 4) // some rows have weight 0
	}
	equal := backendtest.Normal(seed, n, d)
	copy(equal.Data[n/2*d:], equal.Data[:n/2*d])
	cases := 0
	for name, p := range map[string]Problem{
		"plain":       {X: backendtest.Normal(seed, n, d)},
		"weights":     {X: backendtest.Normal(seed, n, d), Weights: weights},
		"intercept":   {X: backendtest.Normal(seed, n, d), Weights: weights, Intercept: true},
		"equal rows":  {X: equal},
		"one feature": {X: backendtest.Normal(seed, n, 1)},
		"one row":     {X: backendtest.Normal(seed, 1, d)},
		"no penalty":  {X: backendtest.Normal(seed, 1, d)},
	} {
		for _, k := range []kernels.Kernel{kernels.Gaussian{Sigma: 3}, kernels.Polynomial{Degree: 2, C: 1}} {
			for _, o := range []Operator{Stored64, Stored32} {
				for _, rank := range []int{0, 1, 40} {
					if cases++; required.FewCases() && cases%3 != 0 {
						continue
					}
					p.Kernel, p.Y, p.Lambda = k, backendtest.Normal(seed+1, p.X.Rows, 2), 0.1
					if name == "no penalty" {
						p.Lambda = 0
					}
					res, err := Solve(t.Context(), dev, p, Params{Method: CG, Operator: o, Preconditioner: lowrank.Taylor, Rank: rank})
					if err != nil {
						t.Errorf("%s, %v, %s, rank %d: %v", name, k, o, rank, err)
						continue
					}
					if !(res.Residual <= 1e-8) || res.Rank < 1 || rank > 0 && res.Rank > rank {
						t.Errorf("%s, %v, %s, rank %d: residual %g, rank %d", name, k, o, rank, res.Residual, res.Rank)
					}
				}
			}
		}
	}
}

// TestTaylorOfExtremes uses kernels and λ for which sums in float32 are 0 or infinite. A solve must reach the
// tolerance or return an error.
func TestTaylorOfExtremes(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, weight := range required.Subset(2, []float64{1e-300, 1e-40, 1, 1e30}) {
		for _, lambda := range []float64{1e-301, 1, 1e300} {
			for _, name := range []string{"rpcholesky", lowrank.Taylor} {
				for _, o := range []Operator{Stored64, Stored32} {
					k := kernels.Scaled{Weight: weight, Kernel: kernels.Gaussian{Sigma: 2}}
					p := Problem{Kernel: k, X: backendtest.Normal(1, 60, 3), Y: backendtest.Normal(2, 60, 1), Lambda: lambda}
					res, err := Solve(ctx, dev, p, Params{Method: CG, Operator: o, Preconditioner: name, Rank: 20})
					if ctx.Err() != nil {
						t.Fatalf("weight %g, lambda %g, %s, %s: does not end", weight, lambda, name, o)
					}
					if err == nil && !(res.Residual <= 1e-8) {
						t.Errorf("weight %g, lambda %g, %s, %s: residual %g", weight, lambda, name, o, res.Residual)
					}
					if lambda >= 1 && lambda >= weight && o == Stored64 && err != nil {
						t.Errorf("weight %g, lambda %g, %s, %s: %v", weight, lambda, name, o, err)
					}
				}
			}
		}
	}
}

func TestTaylorRefuses(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	for _, k := range []kernels.Kernel{
		kernels.Laplacian{Sigma: 1}, kernels.Polynomial{Degree: 3}, kernels.Polynomial{Degree: 1, C: 1}, kernels.Polynomial{Degree: 99, C: 1},
		kernels.Polynomial{Degree: 32, C: 1e-20}, kernels.Scaled{Kernel: kernels.Gaussian{Sigma: 1}},
	} {
		p := Problem{Kernel: k, X: backendtest.Normal(1, 20, 2), Y: backendtest.Normal(2, 20, 1), Lambda: 1}
		_, err := Solve(t.Context(), dev, p, Params{Method: CG, Preconditioner: lowrank.Taylor})
		if want := fmt.Sprintf("solvers: preconditioner: taylor does not support the kernel %v: ", k); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
	// The monomials of row 8 exceed the range of float32. The error must name that row.
	x := backendtest.Normal(1, 20, 2)
	x.Row(7)[1] = 1e20
	p := Problem{Kernel: kernels.Polynomial{Degree: 3, C: 1}, X: x, Y: backendtest.Normal(2, 20, 1), Lambda: 1}
	_, err := Solve(t.Context(), dev, p, Params{Method: CG, Preconditioner: lowrank.Taylor, Operator: Stored32, Rank: 10})
	if err == nil || !strings.Contains(err.Error(), "row 8") {
		t.Errorf("got %v, want row 8", err)
	}
}

// TestIterations checks that the estimated number of iterations of conjugate gradients is within a third of the
// actual number, also without a preconditioner.
func TestIterations(t *testing.T) {
	dev := backendtest.Device(t, "")
	const seed, n, d = 5, 1200, 5
	t.Logf("seed %d", seed)
	p := Problem{Kernel: kernels.Gaussian{Sigma: math.Sqrt(d)}, X: backendtest.Normal(seed, n, d), Y: backendtest.Normal(seed+1, n, 1)}
	for _, lambda := range []float64{0.1, 1} {
		p.Lambda = lambda
		e := (&sizes{ctx: t.Context(), p: p}).spectrum()
		for _, rank := range []int{0, 30} {
			par := Params{Method: CG, Operator: Stored64, Rank: rank}
			if rank == 0 {
				par.Preconditioner = "none"
			}
			res, err := Solve(t.Context(), dev, p, par)
			if err != nil {
				t.Fatal(err)
			}
			if ratio := float64(e.Iterations(rank, par.tol())) / float64(res.Iters); !(ratio > 2.0/3 && ratio < 4.0/3) {
				t.Errorf("lambda %g, rank %d: %.2f times %d iterations are predicted", lambda, rank, ratio, res.Iters)
			}
		}
	}
}
