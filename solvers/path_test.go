package solvers_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

func pathRandom(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func normals(rng *rand.Rand, rows, cols int) backend.Host[float64] {
	h := backend.NewHost[float64](rows, cols)
	for i := range h.Data {
		h.Data[i] = rng.NormFloat64()
	}
	return h
}

// closedForm computes a PathPoint with gonum from the inverse of the bordered matrix.
func closedForm(p solvers.Problem, lambda float64) (alpha, errs *mat.Dense, b, gcv, loo []float64, freedom, condition float64) {
	var live []int
	for i := range p.X.Rows {
		if p.Weights == nil || p.Weights[i] > 0 {
			live = append(live, i)
		}
	}
	n, t := len(live), p.Y.Cols
	weight := func(i int) float64 {
		if p.Weights == nil {
			return 1
		}
		return p.Weights[live[i]]
	}
	size := n
	if p.Intercept {
		size++
	}
	c := mat.NewDense(size, size, nil)
	for i := range n {
		for j := range n {
			c.Set(i, j, kernels.Eval(p.Kernel, p.X.Row(live[i]), p.X.Row(live[j])))
		}
		c.Set(i, i, c.At(i, i)+lambda/weight(i))
		if p.Intercept {
			c.Set(i, n, 1)
			c.Set(n, i, 1)
		}
	}
	var g mat.Dense
	if err := g.Inverse(c); err != nil {
		var bad mat.Condition
		if !errors.As(err, &bad) {
			panic(err)
		}
	}
	condition = mat.Cond(c, 2)
	y := mat.NewDense(size, t, nil)
	for i := range n {
		y.SetRow(i, p.Y.Row(live[i]))
	}
	var sol mat.Dense
	sol.Mul(&g, y)
	alpha, errs = mat.NewDense(p.X.Rows, t, nil), mat.NewDense(p.X.Rows, t, nil)
	b, gcv, loo = make([]float64, t), make([]float64, t), make([]float64, t)
	trace, total := 0.0, 0.0
	for i := range n {
		trace += g.At(i, i) / weight(i)
		total += weight(i)
	}
	for j := range t {
		for i := range n {
			a := sol.At(i, j)
			e := a / g.At(i, i)
			alpha.Set(live[i], j, a)
			errs.Set(live[i], j, e)
			gcv[j] += a * a / weight(i)
			loo[j] += weight(i) * e * e / total
		}
		gcv[j] *= float64(n) / trace / trace
		if p.Intercept {
			b[j] = sol.At(n, j)
		}
	}
	return alpha, errs, b, gcv, loo, float64(n) - lambda*trace, condition
}

// TestPathClosedForm compares every route, for every λ, with the inverse of the bordered matrix. The tolerance is
// 100 times its condition number times the rounding error of sums of n terms.
func TestPathClosedForm(t *testing.T) {
	rng := pathRandom(t)
	lambdas := []float64{1e-4, 0.01, 0.3, 2, 1e3, 1, 5, 7, 9, 20, 0.1} // more than one group of λ
	for _, name := range pathDevices {
		dev := backendtest.Device(t, name)
		sizes := []int{1, 2, 33, 70}
		if name != "ref" && !testing.Short() {
			sizes = append(sizes, 30, 64, 130, 200)
		}
		for _, n := range required.Subset(3, sizes) {
			for _, k := range []kernels.Kernel{kernels.Gaussian{Sigma: 2}, kernels.Linear{}, kernels.Matern{Nu: 1.5, Sigma: 2}} {
				for _, method := range []solvers.Method{solvers.Band, solvers.Primal, solvers.Dual, solvers.Kalman} {
					_, matern := k.(kernels.Matern)
					if matern != (method == solvers.Kalman) {
						continue
					}
					if method == solvers.Primal && k != kernels.Kernel(kernels.Linear{}) {
						continue
					}
					d := 1 + rng.IntN(8)
					if n == 33 {
						d = 40
					}
					if method == solvers.Primal {
						// With fewer samples than features, 1 − leverage has no correct digit in primal.
						d = 1 + rng.IntN(max(1, n/2))
						if n < 3 {
							continue
						}
					}
					if matern {
						d = 1
					}
					p := solvers.Problem{Kernel: k, X: normals(rng, n, d), Y: normals(rng, n, 2), Intercept: rng.IntN(2) == 0}
					if n > 2 && rng.IntN(2) == 0 {
						p.Weights = make([]float64, n)
						for i := range p.Weights {
							p.Weights[i] = math.Exp(rng.NormFloat64())
						}
						p.Weights[rng.IntN(n)] = 0
					}
					if n == 1 {
						p.Intercept = false
					}
					given := p
					if method != solvers.Primal && !matern && rng.IntN(2) == 0 {
						for i := range p.X.Data {
							if rng.IntN(2) == 0 {
								p.X.Data[i] = 0
							}
						}
						sparse := p.X.CSR()
						given.X, given.Sparse = backend.Host[float64]{}, &sparse
					}
					what := fmt.Sprintf("%s %s %v n=%d d=%d intercept=%v weights=%v sparse=%v", name, method, k, n, d, p.Intercept, p.Weights != nil, given.Sparse != nil)
					for _, loo := range []bool{false, true} {
						points, err := solvers.SolvePath(context.Background(), dev, given, lambdas, solvers.PathParams{Method: method, LeaveOneOut: loo})
						if err != nil {
							t.Fatalf("%s: %v", what, err)
						}
						for i, point := range points {
							compareEvidence(t, dev, what, p, point)
							comparePoint(t, fmt.Sprintf("%s λ=%g loo=%v", what, lambdas[i], loo), p, point, lambdas[i], loo, method)
						}
					}
				}
			}
		}
	}
}

// compareEvidence compares point.Evidence with the likelihood from a Cholesky factor.
func compareEvidence(t *testing.T, dev backend.Device, name string, p solvers.Problem, point solvers.PathPoint) {
	t.Helper()
	if p.Intercept || point.Err != nil {
		if point.Err == nil && !math.IsNaN(point.Evidence) {
			t.Errorf("%s λ=%g: evidence %v with an intercept", name, point.Lambda, point.Evidence)
		}
		return
	}
	if point.Lambda < 0.1 && p.X.Rows > 1 {
		return // too ill conditioned to compare
	}
	p.Lambda = point.Lambda
	e, err := solvers.LogEvidence(context.Background(), dev, p, solvers.EvidenceParams{FitScale: true})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	// The condition number of K + λW⁻¹ is at most 100n/λ.
	if tol := 1e4 * 0x1p-52 * float64(p.X.Rows*p.X.Rows) / point.Lambda; math.Abs(point.Evidence-e.Log) > tol*(1+math.Abs(e.Log)) {
		t.Errorf("%s λ=%g: evidence %v, want %v", name, point.Lambda, point.Evidence, e.Log)
	}
}

func comparePoint(t *testing.T, what string, p solvers.Problem, point solvers.PathPoint, lambda float64, loo bool, method solvers.Method) {
	t.Helper()
	alpha, errs, b, gcv, means, freedom, condition := closedForm(p, lambda)
	n := float64(p.X.Rows)
	tol := 100 * 0x1p-52 * math.Sqrt(n) * condition
	if tol > 0.01 {
		return // too ill conditioned to compare
	}
	if point.Err != nil {
		t.Fatalf("%s: %v", what, point.Err)
	}
	if point.Lambda != lambda {
		t.Fatalf("%s: λ is %v", what, point.Lambda)
	}
	near := func(name string, got, want, scale float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tol*scale) {
			t.Errorf("%s: %s is %v, want %v ± %.2g", what, name, got, want, tol*scale)
		}
	}
	near("freedom", point.DegreesOfFreedom, freedom, n)
	for j := range p.Y.Cols {
		// The error bound is relative to the norm of (α, b), and b may be much larger than α.
		norm := mat.Norm(alpha.ColView(j), 2)
		whole := 1.0
		if norm > 0 {
			whole = math.Hypot(norm, b[j]) / norm
		}
		near("GCV", point.GCV[j], gcv[j], whole*gcv[j])
		near("intercept", point.Intercept[j], b[j], 10+math.Abs(b[j]))
		if loo {
			near("LOO", point.LOO[j], means[j], whole*means[j])
		} else if point.LOO != nil {
			t.Errorf("%s: leave-one-out errors were not asked for", what)
		}
		for i := range p.X.Rows {
			if method != solvers.Primal {
				near("alpha", point.Alpha.Row(i)[j], alpha.At(i, j), mat.Norm(alpha, 2))
			}
			if loo {
				near("error", point.Errors.Row(i)[j], errs.At(i, j), mat.Norm(errs, 2))
			}
		}
	}
	if !(point.Residual <= tol) {
		t.Errorf("%s: residual %g", what, point.Residual)
	}
}

var pathDevices = []string{"ref", "cpu"}
