package solvers

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// powersAfter is the sum of the terms of k's power series after the power q, written from
// the series of the exponential and from the binomial theorem, x and z less the median of
// all rows where k depends on their difference.
func powersAfter(k kernels.Kernel, q int, x, z, median []float64) float64 {
	switch k := k.(type) {
	case kernels.Scaled:
		return k.Weight * powersAfter(k.Kernel, q, x, z, median)
	case kernels.Gaussian:
		dot, sizes := 0.0, 0.0
		for j := range x {
			sigma := k.Sigma
			if k.Sigmas != nil {
				sigma = k.Sigmas[j]
			}
			u, v := (x[j]-median[j])/sigma, (z[j]-median[j])/sigma
			dot, sizes = dot+u*v, sizes+u*u+v*v
		}
		sum := 0.0
		for p := 80; p > q; p-- {
			gamma, _ := math.Lgamma(float64(p + 1))
			sum += math.Pow(dot, float64(p)) * math.Exp(-gamma)
		}
		return sum * math.Exp(-sizes/2)
	case kernels.Polynomial:
		dot, sum := 0.0, 0.0
		for j := range x {
			dot += x[j] * z[j]
		}
		for p := k.Degree; p > q; p-- {
			binomial := 1.0
			for i := range p {
				binomial *= float64(k.Degree-i) / float64(i+1)
			}
			sum += binomial * math.Pow(k.C, float64(k.Degree-p)) * math.Pow(dot, float64(p))
		}
		return sum
	}
	panic("no series")
}

// TestTaylorFeatures: F is of the C(d+q, q) monomials up to a power, and K − FFᵀ is what the
// terms after it are; so is the diagonal that is returned, but for the last power of a
// polynomial, after which nothing is left.
func TestTaylorFeatures(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, test := range []struct {
			kernel  kernels.Kernel
			d, rank int
			q, want int
		}{
			{kernels.Gaussian{Sigma: 2}, 3, 1, 0, 1},
			{kernels.Gaussian{Sigma: 2}, 3, 9, 1, 4},
			{kernels.Gaussian{Sigma: 2}, 3, 35, 4, 35},
			{kernels.Gaussian{Sigma: 1.5}, 1, 12, 11, 12},
			{kernels.Gaussian{Sigmas: []float64{1, 3, 0.7, 5}}, 4, 20, 2, 15},
			{kernels.Scaled{Weight: 2.5, Kernel: kernels.Gaussian{Sigma: 3}}, 5, 56, 3, 56},
			{kernels.Polynomial{Degree: 3, C: 0.5}, 4, 34, 2, 15},
			{kernels.Polynomial{Degree: 3, C: 0.5}, 4, 40, 3, 35},
			{kernels.Scaled{Weight: 0.1, Kernel: kernels.Polynomial{Degree: 2, C: 3}}, 2, 3, 1, 3},
		} {
			t.Run(fmt.Sprintf("%v, %d", test.kernel, test.rank), func(t *testing.T) {
				taylorFeaturesAre(t, dev, dev.F64(), test.kernel, test.d, test.rank, test.q, test.want)
				taylorFeaturesAre(t, dev, dev.F32(), test.kernel, test.d, test.rank, test.q, test.want)
			})
		}
	})
}

func taylorFeaturesAre[T backend.Float](t *testing.T, dev backend.Device, b backend.Backend[T], k kernels.Kernel, d, rank, q, want int) {
	t.Helper()
	const n, seed = 23, 12
	x := normal(seed, n, d)
	host, median := backend.NewHost[T](n, d), make([]float64, d)
	for i := range n {
		for j := range d {
			x.Row(i)[j] = float64(T(x.Row(i)[j] + 1))
			host.Row(i)[j] = T(x.Row(i)[j])
		}
	}
	for j := range d {
		column := make([]float64, n) // an odd number
		for i := range n {
			column[i] = x.Row(i)[j]
		}
		slices.Sort(column)
		median[j] = column[n/2]
	}
	mem := run.NewArena(dev, dev.F64())
	defer mem.FreeAll()
	onDevice, err := run.NewMatrix(mem, b, n, d)
	if err != nil {
		t.Fatal(err)
	}
	f, err := run.NewMatrix(mem, b, n, rank)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Upload(onDevice, host); err != nil {
		t.Fatal(err)
	}
	a, err := taylorFeatures(lowRankTask[T]{ctx: t.Context(), b: b, mem: mem, kernel: k, x: onDevice}, f)
	if err != nil {
		t.Fatal(err)
	}
	if a.rank != want {
		t.Fatalf("%s: rank %d, want %d", numeric.PrecisionOf[T](), a.rank, want)
	}
	got := backend.NewHost[T](n, rank)
	if err := b.Download(got, f); err != nil {
		t.Fatal(err)
	}
	trace, traces := 0.0, 0.0
	for i := range n {
		for j := range n {
			sum, size := 0.0, 0.0
			for c := range a.rank {
				product := float64(got.Row(i)[c]) * float64(got.Row(j)[c])
				sum, size = sum+product, size+math.Abs(product)
			}
			value, after := kernels.Eval(k, x.Row(i), x.Row(j)), powersAfter(k, q, x.Row(i), x.Row(j), median)
			// Each monomial is some 3 roundings for each of its powers, and its exponential
			// and its power have an argument that is rounded d+3 times.
			bound := (8*numeric.UnitOf[T]() + numeric.Epsilon*float64(8*(d+q)+100)) * (size + math.Abs(value))
			if !(math.Abs(value-after-sum) <= bound) {
				t.Fatalf("%s: (K − FFᵀ) is %g at rows %d and %d, want %g ± %.2g", numeric.PrecisionOf[T](), value-sum, i, j, after, bound)
			}
			if i != j {
				continue
			}
			trace, traces = trace+after, traces+bound
			if a.diagonal == nil {
				if after > bound {
					t.Fatalf("no diagonal, but row %d has %g", i, after)
				}
				continue
			}
			if !(math.Abs(a.diagonal[i]-after) <= (16*numeric.UnitOf[T]()+numeric.Epsilon*float64(8*(d+q)+100))*value) {
				t.Fatalf("%s: diagonal element %d is %g, want %g", numeric.PrecisionOf[T](), i, a.diagonal[i], after)
			}
		}
	}
	if !(math.Abs(a.trace-trace) <= traces) {
		t.Errorf("the trace is %g, want %g", a.trace, trace)
	}
}

// TestTaylorIterations: what conjugate gradients take with the monomials up to the first and
// the second power is within two thirds of what is predicted, where rows are far from each
// other, which is what the rank is chosen by.
func TestTaylorIterations(t *testing.T) {
	dev := backendtest.Device(t, "")
	const seed, n, d = 15, 2000, 30
	t.Logf("seed %d", seed)
	for _, lambda := range []float64{0.1, 0.001} {
		for _, rank := range []int{1 + d, (2 + d) * (1 + d) / 2} {
			p := Problem{Kernel: kernels.Gaussian{Sigma: math.Sqrt(d)}, X: normal(seed, n, d), Y: normal(seed+1, n, 1), Lambda: lambda}
			par := Params{Method: CG, Operator: Stored64, Preconditioner: taylor, Rank: rank}
			res, err := Solve(t.Context(), dev, p, par)
			if err != nil {
				t.Fatal(err)
			}
			predicted := res.Plan.choice.(cgChoice).iterations
			t.Logf("lambda %g, rank %d: %d iterations, %d are predicted", lambda, rank, res.Iters, predicted)
			if ratio := float64(predicted) / float64(res.Iters); res.Rank != rank || !(ratio > 0.6 && ratio < 1/0.6) {
				t.Errorf("lambda %g, rank %d: %d iterations with rank %d, %d are predicted", lambda, rank, res.Iters, res.Rank, predicted)
			}
		}
	}
}

// TestTaylorFarRow: one row that is far from all others has its own eigenvalue, and takes an
// iteration or two.
func TestTaylorFarRow(t *testing.T) {
	dev := backendtest.Device(t, "")
	const seed, n, d = 21, 1000, 30
	t.Logf("seed %d", seed)
	p := Problem{Kernel: kernels.Gaussian{Sigma: math.Sqrt(d)}, X: normal(seed, n, d), Y: normal(seed+1, n, 1), Lambda: 0.1}
	iters := func() int {
		res, err := Solve(t.Context(), dev, p, Params{Method: CG, Operator: Stored64, Preconditioner: taylor, Rank: 1 + d})
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

// TestTaylorPlan: by itself the power series is chosen where rows are far from each other,
// and not where some are near, on which it takes many times as many iterations as columns
// of K do; nor in one dimension, where it has as many powers as there are rows.
func TestTaylorPlan(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed, n = 17, 6000
	t.Logf("seed %d", seed)
	twice := normal(seed, n, 40)
	copy(twice.Data[n*20:], twice.Data[:n*20])
	shifted := normal(seed, n, 40)
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
		{"far apart", kernels.Gaussian{Sigma: 7}, normal(seed, n, 50), 0.01, taylor, ""},
		{"cubic", kernels.Polynomial{Degree: 3, C: 1}, normal(seed, n, 50), 0.01, taylor, ""},
		{"every row twice", kernels.Gaussian{Sigma: 6.3}, twice, 1e-4, "rpcholesky", "none"},
		{"some rows nearly twice", kernels.Gaussian{Sigma: 6.3}, shifted, 1e-4, "rpcholesky", "none"},
		{"two features", kernels.Gaussian{Sigma: 0.02}, normal(seed, n, 2), 1e-2, "rpcholesky", "none"},
		{"one feature", kernels.Gaussian{Sigma: 1e-3}, normal(seed, n, 1), 1e-2, "rpcholesky", "none"},
		{"no series", kernels.Laplacian{Sigma: 50}, normal(seed, n, 50), 0.01, "rpcholesky", "none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := Problem{Kernel: test.kernel, X: test.x, Y: backend.NewHost[float64](n, 1), Lambda: test.lambda}
			start := time.Now()
			plan, err := MakePlan(dev, p, Params{Method: CG})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v: %s", time.Since(start), plan.Reason)
			if got := plan.choice.(cgChoice).Preconditioner; got != test.want && got != test.allowed {
				t.Errorf("%s is chosen, want %s", got, test.want)
			}
		})
	}
}

// TestTaylorSolves: asked for by name, it reaches the tolerance with weights, an intercept,
// equal rows, one feature, a rank that has room for nothing but the constant, and without
// a rank, in both precisions.
func TestTaylorSolves(t *testing.T) {
	dev := backendtest.Device(t, "")
	const seed, n, d = 19, 300, 6
	t.Logf("seed %d", seed)
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = float64(i % 4) // and rows that take no part
	}
	equal := normal(seed, n, d)
	copy(equal.Data[n/2*d:], equal.Data[:n/2*d])
	for name, p := range map[string]Problem{
		"plain":       {X: normal(seed, n, d)},
		"weights":     {X: normal(seed, n, d), Weights: weights},
		"intercept":   {X: normal(seed, n, d), Weights: weights, Intercept: true},
		"equal rows":  {X: equal},
		"one feature": {X: normal(seed, n, 1)},
		"one row":     {X: normal(seed, 1, d)},
		"no penalty":  {X: normal(seed, 1, d)},
	} {
		for _, k := range []kernels.Kernel{kernels.Gaussian{Sigma: 3}, kernels.Polynomial{Degree: 2, C: 1}} {
			for _, o := range []Operator{Stored64, Stored32} {
				for _, rank := range []int{0, 1, 40} {
					p.Kernel, p.Y, p.Lambda = k, normal(seed+1, p.X.Rows, 2), 0.1
					if name == "no penalty" {
						p.Lambda = 0
					}
					res, err := Solve(t.Context(), dev, p, Params{Method: CG, Operator: o, Preconditioner: taylor, Rank: rank})
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

// TestTaylorOfExtremes: with kernels and λ near the ends of their range, where sums in float32
// are 0 or infinite, a solve ends: with a residual within the tolerance, or an error.
func TestTaylorOfExtremes(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, weight := range []float64{1e-300, 1e-40, 1, 1e30} {
		for _, lambda := range []float64{1e-301, 1, 1e300} {
			for _, name := range []string{"rpcholesky", taylor} {
				for _, o := range []Operator{Stored64, Stored32} {
					k := kernels.Scaled{Weight: weight, Kernel: kernels.Gaussian{Sigma: 2}}
					p := Problem{Kernel: k, X: normal(1, 60, 3), Y: normal(2, 60, 1), Lambda: lambda}
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
		p := Problem{Kernel: k, X: normal(1, 20, 2), Y: normal(2, 20, 1), Lambda: 1}
		_, err := Solve(t.Context(), dev, p, Params{Method: CG, Preconditioner: taylor})
		if want := fmt.Sprintf("solvers: preconditioner: no taylor for the kernel %v: ", k); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
	// A row whose monomials leave the range of float32 is named.
	x := normal(1, 20, 2)
	x.Row(7)[1] = 1e20
	p := Problem{Kernel: kernels.Polynomial{Degree: 3, C: 1}, X: x, Y: normal(2, 20, 1), Lambda: 1}
	_, err := Solve(t.Context(), dev, p, Params{Method: CG, Preconditioner: taylor, Operator: Stored32, Rank: 10})
	if err == nil || !strings.Contains(err.Error(), "row 8") {
		t.Errorf("got %v, want row 8", err)
	}
}
