package solvers_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
)

// affineKernels lists kernels of the form a·xᵀz + c, except the last two, which do not have this form.
var affineKernels = []kernels.Kernel{
	kernels.Linear{},
	kernels.Scaled{Weight: 0.3, Kernel: kernels.Linear{}},
	kernels.Sum{kernels.Linear{}, kernels.Constant{Value: 2}},
	kernels.Product{kernels.Constant{Value: 2}, kernels.Sum{kernels.Constant{Value: 0.5}, kernels.Linear{}}, kernels.Constant{Value: 0.5}},
	kernels.Polynomial{Degree: 1, C: 3},
	kernels.Polynomial{Degree: 2, C: 1},
	kernels.Product{kernels.Linear{}, kernels.Linear{}},
}

// TestCGOfLinearKernel runs the suite for conjugate gradients with linear kernels, where X and Xᵀ replace K.
func TestCGOfLinearKernel(t *testing.T) {
	for _, o := range []solvers.Operator{solvers.Unstored64, solvers.Unstored32} {
		t.Run(string(o), func(t *testing.T) {
			if testing.Short() && o != solvers.Unstored64 {
				t.Skip("-short: the other precision has the same code")
			}
			// If K has low rank, α is about y/λ, and rounding α leaves a relative residual of up to about 1e-13.
			par := solvers.Params{Tol: 1e-12, Operator: o, Rank: 3}
			list := []kernels.Kernel{affineKernels[2], affineKernels[0]}
			if testing.Short() || o != solvers.Unstored64 {
				list = list[:1]
			}
			solvertest.Run(t, solvertest.Suite{Method: solvers.CG, Params: par, Kernels: list})
		})
	}
}

// TestAffineIsDual compares conjugate gradients with the Cholesky factor of K for each affine kernel.
func TestAffineIsDual(t *testing.T) {
	if !required.FewCases() {
		testAffineIsDual(t, pathRandom(t))
	}
	// With this seed, a former version returned 1ᵀα = 1.1e-11 instead of 0.
	testAffineIsDual(t, rand.New(rand.NewPCG(1795357272634887493, 1)))
}

func testAffineIsDual(t *testing.T, rng *rand.Rand) {
	const n = 70
	x, y := normals(rng, n, 4), normals(rng, n, 3)
	for _, name := range pathDevices {
		dev := backendtest.Device(t, name)
		for _, k := range affineKernels {
			for _, intercept := range []bool{false, true} {
				for _, weights := range [][]float64{nil, weighted(n)} {
					p := solvers.Problem{Kernel: k, X: x, Y: y, Weights: weights, Lambda: 0.5, Intercept: intercept}
					want, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.Dual})
					if err != nil {
						t.Fatal(err)
					}
					for _, o := range []solvers.Operator{solvers.Unstored64, solvers.Unstored32} {
						const tol = 1e-11
						got, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.CG, Operator: o, Tol: tol, Preconditioner: "none"})
						if err != nil {
							t.Fatalf("%s %v %s: %v", name, k, o, err)
						}
						// Because the weights are at most 2.5, the error of each solution is at most ‖A⁻¹‖ ≤ 2.5/λ
						// times its residual. ‖y‖ ≤ √(3n), and ‖y − b·1‖ ≤ 2√(3n).
						bound := 2.5 / p.Lambda * 4 * tol * 2 * math.Sqrt(3*n)
						for i := range n {
							for j := range 3 {
								if d := math.Abs(got.Alpha.Row(i)[j] - want.Alpha.Row(i)[j]); !(d <= bound) {
									t.Fatalf("%s %v %s intercept=%t weights=%t: alpha differs by %g, allowed %g", name, k, o, intercept, weights != nil, d, bound)
								}
							}
						}
					}
				}
			}
		}
	}
}

// counted is a device that counts the operations of Gemm and GramMul.
type counted struct {
	backend.Device
	gramMul, gemm atomic.Int64
}

func (d *counted) F64() backend.Backend[float64] { return &countedQueue{d.Device.F64(), d} }

type countedQueue struct {
	backend.Backend[float64]
	dev *counted
}

func (q *countedQueue) With(ctx context.Context, done func(float64)) backend.Backend[float64] {
	return &countedQueue{q.Backend.With(ctx, done), q.dev}
}

func (q *countedQueue) GramMul(dst backend.Matrix[float64], k kernels.Kernel, x, z, v backend.Matrix[float64]) {
	n, d := x.Dims()
	m, _ := z.Dims()
	_, c := v.Dims()
	q.dev.gramMul.Add(int64(flop.GramMul(n, m, d, c)))
	q.Backend.GramMul(dst, k, x, z, v)
}

func (q *countedQueue) Gemm(tA, tB backend.Trans, alpha float64, a, b backend.Matrix[float64], beta float64, c backend.Matrix[float64]) {
	m, n := c.Dims()
	rows, k := a.Dims()
	if tA == backend.Transpose {
		k = rows
	}
	q.dev.gemm.Add(int64(flop.Gemm(m, n, k)))
	q.Backend.Gemm(tA, tB, alpha, a, b, beta, c)
}

// TestAffineOperations checks that an iteration with a linear kernel takes O(nd) operations.
func TestAffineOperations(t *testing.T) {
	rng, inner := pathRandom(t), backendtest.Device(t, "cpu")
	const n, d, outputs = 600, 10, 1
	p := solvers.Problem{X: normals(rng, n, d), Y: normals(rng, n, outputs), Lambda: 0.5}
	for _, c := range []struct {
		k         kernels.Kernel
		allowance float64 // operations for the kernel's constant term in each iteration
		looks     float64 // largest number of products for which K may be evaluated
	}{{kernels.Linear{}, 0, 0}, {affineKernels[2], 4 * n * outputs, 3}} {
		dev := &counted{Device: inner}
		p.Kernel = c.k
		res, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.CG, Operator: solvers.Unstored64, Preconditioner: "none"})
		if err != nil {
			t.Fatal(err)
		}
		// An iteration takes one product with K, a residual takes one or two, and vectors take at most 20n operations.
		perIteration := 4*n*d*outputs + c.allowance + 20*n*outputs
		largest := float64(res.Iters+5) * perIteration
		gemm, gramMul := float64(dev.gemm.Load()), float64(dev.gramMul.Load())
		evaluated := float64(res.Iters) * flop.GramMul(n, n, d, outputs)
		t.Logf("%v: %d iterations, %.3g operations in products, %.3g in values of K; values for each product would be %.3g", c.k, res.Iters, gemm, gramMul, evaluated)
		if res.Iters < 4 || gemm > largest || gramMul > c.looks*flop.GramMul(n, n, d, outputs) {
			t.Errorf("%v: more than %.3g operations in products", c.k, largest)
		}
	}
	plan, err := solvers.MakePlan(inner, p, solvers.Params{Method: solvers.CG, Operator: solvers.Unstored64})
	if err != nil {
		t.Fatal(err)
	}
	if want := "products with X and its transpose, rank"; !strings.Contains(plan.Reason, want) {
		t.Errorf("reason %q does not say %q", plan.Reason, want)
	}
}
