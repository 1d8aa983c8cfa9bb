package solvers_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// smooth is a problem with a small α even for a small λ, so that float64 can reach a residual of 1e-8.
func smooth(n, d, t int, lambda float64) solvers.Problem {
	r := rand.New(rand.NewPCG(11, 0))
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 2}, X: backend.NewHost[float64](n, d), Y: backend.NewHost[float64](n, t), Lambda: lambda}
	for i := range n {
		row, sum := p.X.Row(i), 0.0
		for j := range row {
			row[j] = r.NormFloat64()
			sum += row[j] * float64(1+j%3)
		}
		for j := range t {
			p.Y.Row(i)[j] = math.Sin(sum/float64(d) + float64(j))
		}
	}
	return p
}

// TestFactorInSinglePrecisionNeedsShift checks that the solver shifts the diagonal after a failed factorization in
// float32, and still reaches the tolerance for the original problem.
func TestFactorInSinglePrecisionNeedsShift(t *testing.T) {
	p := smooth(150, 2, 2, 1e-8)
	res, err := solvers.Solve(t.Context(), backendtest.Device(t, "ref"), p, solvers.Params{Method: solvers.Mixed})
	if err != nil {
		t.Fatal(err)
	}
	if res.Method != solvers.Mixed || !(res.Jitter > 0) || res.Fallback != "" || !(res.Residual <= 1e-8) || res.Iters < 3 {
		t.Errorf("method %s, jitter %g, fallback %q, residual %g, %d iterations", res.Method, res.Jitter, res.Fallback, res.Residual, res.Iters)
	}
}

// TestFallsBackToDouble checks that Solve continues in float64 if float32 fails, and says so, or returns an error
// if the params or the memory exclude float64.
func TestFallsBackToDouble(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	p := smooth(150, 2, 1, 1e-10)
	for _, p := range []solvers.Problem{p, huge(40, 3)} {
		res, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.Mixed})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(res.Fallback, "has no factor in float32") || !strings.Contains(res.Fallback, "went on with the factor in float64") ||
			res.Method != solvers.Dual || !(res.Residual <= 1e-8) {
			t.Errorf("method %s, fallback %q, residual %g", res.Method, res.Fallback, res.Residual)
		}
		if now, _ := dev.InUse(); now != 0 {
			t.Errorf("%d bytes are left on the device", now)
		}
		par := solvers.Params{Method: solvers.Mixed, Operator: solvers.Unstored64}
		plan, err := solvers.MakePlan(dev, p, par)
		if err != nil {
			t.Fatal(err)
		}
		par.Memory = plan.Bytes
		_, err = solvers.Solve(t.Context(), dev, p, par)
		if !errors.Is(err, backend.ErrNotPosDef) || !strings.Contains(err.Error(), "float32") {
			t.Errorf("without memory for float64: %v", err)
		}
	}
	_, err := solvers.Solve(t.Context(), dev, huge(40, 3), solvers.Params{Method: solvers.CG, Operator: solvers.Stored32})
	if err == nil || !strings.Contains(err.Error(), "float32") {
		t.Errorf("float32 was asked for: %v", err)
	}
}

// TestCGFallsBackToDouble checks that Auto chooses float32 if memory suffices for K only in float32, and that Solve
// continues in float64 if values exceed the range of float32.
func TestCGFallsBackToDouble(t *testing.T) {
	if testing.Short() {
		t.Skip("the choice differs only with some thousand rows")
	}
	dev := backendtest.Device(t, "")
	p := huge(1500, 60)
	full, err := solvers.MakePlan(dev, p, solvers.Params{Method: solvers.CG, Operator: solvers.Stored64, Rank: 8})
	if err != nil {
		t.Fatal(err)
	}
	par := solvers.Params{Method: solvers.CG, Rank: 8, Memory: full.Bytes * 3 / 4}
	plan, err := solvers.MakePlan(dev, p, par)
	if err != nil || !strings.Contains(plan.Reason, "in float32") {
		t.Fatalf("%s: %v", plan.Reason, err)
	}
	res, err := solvers.Solve(t.Context(), dev, p, par)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(res.Fallback, "float32") || !strings.Contains(res.Fallback, "went on with cg, K evaluated for every product") || !(res.Residual <= 1e-8) {
		t.Errorf("method %s, fallback %q, residual %g", res.Method, res.Fallback, res.Residual)
	}
}

// TestFixedGivenUp repeats each sample and thereby the rounding errors of its kernel values, whose norm is then too
// large for Fixed16. Solve must continue in float32, and the result must say so.
func TestFixedGivenUp(t *testing.T) {
	const seed, clusters, copies = 3, 20, 100
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 3}, X: backend.NewHost[float64](clusters*copies, 60), Y: backend.NewHost[float64](clusters*copies, 1), Lambda: 1e-2}
	for i := range p.X.Rows {
		if i < clusters {
			p.X.Row(i)[0], p.X.Row(i)[1] = r.NormFloat64(), r.NormFloat64()
		} else {
			copy(p.X.Row(i), p.X.Row(i%clusters))
		}
		p.Y.Row(i)[0] = r.NormFloat64()
	}
	dev := backendtest.Device(t, "")
	par, plan := inFixed16(t, dev, p, solvers.Params{Method: solvers.CG, Rank: 8})
	res, err := solvers.Solve(t.Context(), dev, p, par)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(res.Fallback, "reduces the residual by a factor of less than 4") || !strings.Contains(res.Fallback, "went on with cg, K evaluated in float32") || !(res.Residual <= 1e-8) || res.Bytes > plan.Bytes {
		t.Errorf("fallback %q, residual %g, %d bytes of %d", res.Fallback, res.Residual, res.Bytes, plan.Bytes)
	}
}

// inFixed16 returns par with a memory limit that admits K in 16 bits but not in float32, and the plan for it.
func inFixed16(t *testing.T, dev backend.Device, p solvers.Problem, par solvers.Params) (solvers.Params, solvers.Plan) {
	t.Helper()
	single := par
	single.Operator = solvers.Stored32
	plan, err := solvers.MakePlan(dev, p, single)
	if err != nil {
		t.Fatal(err)
	}
	par.Memory = plan.Bytes * 3 / 4
	plan, err = solvers.MakePlan(dev, p, par)
	if err != nil || !strings.Contains(plan.Reason, "in 16 bits") {
		t.Fatalf("%s: %v", plan.Reason, err)
	}
	return par, plan
}

// TestFixedKept checks that Solve keeps the planned operator Fixed16 if the rounding errors of K are independent,
// for the smallest λ for which 16 bits suffice, and with an intercept.
func TestFixedKept(t *testing.T) {
	p := smooth(2000, 20, 1, 5)
	p.Kernel, p.Intercept = kernels.Gaussian{Sigma: 4.5}, true
	p.Lambda = 21 * math.Sqrt(float64(p.X.Rows)/3) / math.MaxUint16
	dev := backendtest.Device(t, "")
	par, _ := inFixed16(t, dev, p, solvers.Params{Method: solvers.CG, Rank: 64})
	res, err := solvers.Solve(t.Context(), dev, p, par)
	if err != nil {
		t.Fatal(err)
	}
	if res.Fallback != "" || !(res.Residual <= 1e-8) {
		t.Errorf("fallback %q, residual %g", res.Fallback, res.Residual)
	}
}

// TestFixedRefused checks that Fixed16 returns an error for a kernel whose values have no bounds.
func TestFixedRefused(t *testing.T) {
	p := smooth(20, 2, 1, 1)
	p.Kernel = kernels.Polynomial{Degree: 3, C: 1}
	_, err := solvers.Solve(t.Context(), backendtest.Device(t, "ref"), p, solvers.Params{Method: solvers.CG, Operator: solvers.Fixed16})
	if err == nil || !strings.Contains(err.Error(), "needs bounds of the kernel's values") {
		t.Errorf("got %v", err)
	}
}

// huge is a problem with values outside the range of float32.
func huge(n, d int) solvers.Problem {
	p := smooth(n, d, 1, 1e44)
	p.Kernel = kernels.Polynomial{Degree: 3, C: 1}
	for i := range p.X.Data {
		p.X.Data[i] *= 1e7
	}
	return p
}

// TestBlocks solves for more columns than a block holds; some are equal, zero, or multiples of each other. Each
// solution must agree with the solution of that column alone.
func TestBlocks(t *testing.T) {
	const n, columns = 60, 70
	p := smooth(n, 3, columns, 1e-2)
	for i := range n {
		row := p.Y.Row(i)
		row[1], row[2], row[3] = row[0], 0, 1e-9*row[4]
	}
	dev := backendtest.Device(t, "ref")
	for _, o := range []solvers.Operator{solvers.Stored64, solvers.Stored32} {
		par := solvers.Params{Method: solvers.CG, Operator: o, Rank: 5, Tol: 1e-11}
		all, err := solvers.Solve(t.Context(), dev, p, par)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range []int{0, 1, 2, 3, 4, 40, 69} {
			q := p
			q.Y = p.Y.View(0, j, n, 1)
			one, err := solvers.Solve(t.Context(), dev, q, par)
			if err != nil {
				t.Fatal(err)
			}
			// The solutions differ by at most ‖A⁻¹‖ ≤ 1/λ times the sum of their residuals.
			size := 0.0
			for i := range n {
				size = math.Hypot(size, q.Y.Row(i)[0])
			}
			for i := range n {
				if d := math.Abs(all.Alpha.Row(i)[j] - one.Alpha.Row(i)[0]); !(d <= 2*par.Tol*size/p.Lambda) {
					t.Fatalf("%s, column %d, row %d: differs by %.3g, allowed %.3g", o, j, i, d, 2*par.Tol*size/p.Lambda)
				}
			}
		}
	}
}

// TestPreconditioners checks that each preconditioner saves iterations and has at most the requested rank.
func TestPreconditioners(t *testing.T) {
	p := smooth(200, 2, 1, 1e-3)
	dev := backendtest.Device(t, "ref")
	iters := func(name string, rank int) int {
		t.Helper()
		res, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.CG, Operator: solvers.Stored64, Preconditioner: name, Rank: rank})
		if err != nil {
			t.Fatal(err)
		}
		if name != "none" && (res.Rank < 1 || res.Rank > rank) {
			t.Errorf("%s: rank %d, asked for %d", name, res.Rank, rank)
		}
		return res.Iters
	}
	none := iters("none", 0)
	for _, name := range solvers.Preconditioners() {
		if name == "none" {
			continue
		}
		small, large := iters(name, 10), iters(name, 40)
		t.Logf("%s: %d iterations with rank 10, %d with rank 40, %d with none", name, small, large, none)
		// The eigenvalues decrease by orders of magnitude from the 10th to the 40th. taylor of rank 10 may need more
		// iterations than none, because taylor also contains the diagonal of the remainder of the series.
		if !((small < none || name == "taylor") && large < small && large < none) {
			t.Errorf("%s: %d iterations with rank 10, %d with rank 40, %d with none", name, small, large, none)
		}
	}
}

// TestAutomatic checks which method and operator are chosen, and that Plan.Reason names them.
func TestAutomatic(t *testing.T) {
	dev := backendtest.Device(t, "ref", backend.Config{Memory: 1 << 40})
	normal := func(n, d int, lambda float64) solvers.Problem {
		p := smooth(n, d, 1, lambda)
		p.Kernel = kernels.Gaussian{Sigma: math.Sqrt(float64(d))}
		return p
	}
	for _, test := range []struct {
		name   string
		p      solvers.Problem
		memory int64
		method solvers.Method
		reason []string
	}{
		{"few rows", normal(500, 20, 0.1), 0, solvers.Dual, []string{"a direct method is the fastest for few rows"}},
		{"many rows", normal(12000, 20, 0.1), 0, solvers.CG, []string{"cheapest: dual", "K stored in float32, rank", "iterations"}},
		{"many rows, tiny lambda", normal(12000, 8, 1e-9), 0, solvers.Dual, []string{"cheapest: dual", "mixed", "cg"}},
		{"little memory", normal(12000, 20, 0.1), 50 << 20, solvers.CG, []string{"the only one that fits 50 MiB", "dual needs", "K evaluated"}},
		{"no memory", normal(12000, 20, 0.1), 1 << 10, solvers.CG, []string{"takes the least memory"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan, err := solvers.MakePlan(dev, test.p, solvers.Params{Memory: test.memory})
			if err != nil {
				t.Fatal(err)
			}
			if plan.Method != test.method {
				t.Errorf("got %s: %s", plan.Method, plan.Reason)
			}
			for _, want := range test.reason {
				if !strings.Contains(plan.Reason, want) {
					t.Errorf("reason %q does not say %q", plan.Reason, want)
				}
			}
			if fits := test.memory == 0 || plan.Bytes <= test.memory; fits == (test.name == "no memory") {
				t.Errorf("%d bytes of %d", plan.Bytes, test.memory)
			}
		})
	}
}

// TestMixedOfNothing rounds K and λ to 0 in float32. The search for a jitter must end.
func TestMixedOfNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := solvers.Problem{
		Kernel: kernels.Linear{}, X: backend.NewHost[float64](5, 2), Y: backend.Host[float64]{Rows: 5, Cols: 1, Stride: 1, Data: []float64{1, 2, 3, 4, 5}}, Lambda: 1e-50,
	}
	res, err := solvers.Solve(ctx, backendtest.Device(t, "ref"), p, solvers.Params{Method: solvers.Mixed})
	if ctx.Err() != nil {
		t.Fatal("does not end")
	}
	if err != nil {
		t.Fatal(err)
	}
	if res.Fallback == "" || res.Alpha.Data[4] != 5e50 {
		t.Errorf("α = %v, fallback %q", res.Alpha.Data, res.Fallback)
	}
}

// TestPreconditionerOfTinyLambda checks that a preconditioner FFᵀ + λI with a tiny λ at most doubles the number of
// iterations: it must remain accurate for vectors v with a small Fᵀv.
func TestPreconditionerOfTinyLambda(t *testing.T) {
	const n = 150
	r := rand.New(rand.NewPCG(1, 0))
	p := solvers.Problem{Kernel: kernels.Matern{Nu: 0.5, Sigma: 2}, X: backend.NewHost[float64](n, 3), Y: backend.NewHost[float64](n, 1)}
	for i := range n {
		for j := range 3 {
			p.X.Row(i)[j] = r.NormFloat64()
		}
		p.Y.Data[i] = math.Sin(p.X.Row(i)[0]) + p.X.Row(i)[1]
	}
	dev := backendtest.Device(t, "ref")
	for _, lambda := range []float64{1e-12, 1e-15, 1e-300} {
		iters := map[int]int{}
		for _, rank := range []int{0, 50} {
			p.Lambda = lambda
			par := solvers.Params{Method: solvers.CG, Operator: solvers.Stored64, Rank: rank}
			if rank == 0 {
				par.Preconditioner = "none"
			}
			res, err := solvers.Solve(t.Context(), dev, p, par)
			if err != nil {
				t.Fatalf("lambda %v, rank %d: %v", lambda, rank, err)
			}
			iters[rank] = res.Iters
		}
		t.Logf("lambda %v: iterations by rank: %v", lambda, iters)
		if iters[50] > 2*iters[0] {
			t.Errorf("lambda %v: %d iterations with a preconditioner, %d without", lambda, iters[50], iters[0])
		}
	}
}

// TestCGGoesOnWithFactor uses a Gaussian kernel and a λ below the rounding error of K. Solve must continue with the
// factor of A = K + λI in float64. Its residual is at most (3n + 1)u tr(A)‖α‖ (Higham 2002, theorem 10.4), and rounding
// in the residual and the kernel values adds (n + d + 4)u tr(A)‖α‖.
func TestCGGoesOnWithFactor(t *testing.T) {
	const n, d, u = 300, 3, 0x1p-53
	dev := backendtest.Device(t, "cpu")
	for _, repeated := range []bool{false, true} {
		r := rand.New(rand.NewPCG(1, 0))
		p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 1}, X: backend.NewHost[float64](n, d), Y: backend.NewHost[float64](n, 1)}
		size := 0.0
		for i := range n {
			for j := range d {
				p.X.Row(i)[j] = r.NormFloat64()
			}
			if repeated && i%4 == 3 {
				copy(p.X.Row(i), p.X.Row(i-1))
			}
			p.Y.Data[i] = math.Sin(p.X.Row(i)[0]) + p.X.Row(i)[1] + 0.1*r.NormFloat64()
			size = math.Hypot(size, p.Y.Data[i])
		}
		for _, lambda := range required.Subset(1, []float64{1e-10, 1e-11}) {
			p.Lambda = lambda
			_, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.CG})
			var inaccurate *solvers.ConvergenceError
			if !errors.As(err, &inaccurate) { // rounding α to float64 alone exceeds the default tolerance 1e-8
				t.Fatalf("repeated %v, lambda %v: got the error %v", repeated, lambda, err)
			}
			res := inaccurate.Result
			norm, left := 0.0, 0.0
			for i := range n {
				sum := lambda*res.Alpha.Data[i] - p.Y.Data[i]
				for j := range n {
					sum += kernels.Eval(p.Kernel, p.X.Row(i), p.X.Row(j)) * res.Alpha.Data[j]
				}
				left, norm = math.Hypot(left, sum), math.Hypot(norm, res.Alpha.Data[i])
			}
			unit := u * n * (1 + lambda) * norm / size // u·tr(A)·‖α‖ relative to ‖y‖, with tr(A) = n(1 + λ)
			bound := (4*n + d + 5) * unit
			t.Logf("repeated %v, lambda %v: residual %.2g, at most %.2g; Attainable %.2g", repeated, lambda, res.Residual, bound, inaccurate.Attainable)
			if res.Residual > bound || inaccurate.Attainable < unit {
				t.Errorf("repeated %v, lambda %v: residual %.3g, above %.3g; Attainable %.3g", repeated, lambda, res.Residual, bound, inaccurate.Attainable)
			}
			if math.Abs(res.Residual-left/size) > 2*(n+d+4)*unit {
				t.Errorf("repeated %v, lambda %v: residual %.3g is reported, and is %.3g", repeated, lambda, res.Residual, left/size)
			}
			if res.Method != solvers.Dual || !strings.Contains(res.Fallback, "went on with the factor in float64") {
				t.Errorf("repeated %v, lambda %v: method %s, fallback %q", repeated, lambda, res.Method, res.Fallback)
			}
			// A tolerance above the attained residual must succeed.
			if _, err = solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.CG, Tol: 2 * inaccurate.Result.Residual}); err != nil {
				t.Errorf("repeated %v, lambda %v, tolerance %.3g: %v", repeated, lambda, 2*inaccurate.Result.Residual, err)
			}
			for name, par := range map[string]solvers.Params{"a rank": {Rank: 50}, "a limit of iterations": {MaxIter: 30}, "an operator": {Operator: solvers.Stored64}} {
				par.Method = solvers.CG
				if _, err := solvers.Solve(t.Context(), dev, p, par); !errors.As(err, &inaccurate) || inaccurate.Result.Method != solvers.CG {
					t.Errorf("%s was given, and the error is: %v", name, err)
				}
			}
		}
		// With repeated rows and λ = 0, no Cholesky factor exists.
		p.Lambda = 0
		_, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.CG})
		var inaccurate *solvers.ConvergenceError
		if repeated && (!errors.As(err, &inaccurate) || inaccurate.Result == nil || !strings.Contains(err.Error(), "the Cholesky factorization of K + λI fails")) {
			t.Errorf("repeated rows, lambda 0: %v", err)
		}
	}
}
