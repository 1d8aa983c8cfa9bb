package solvers_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestResidualOfOrthogonalTarget fits the target x² at points x symmetric about 0, for which XᵀWy is only a rounding
// error, and a second target. Solve, SolveEach and every path method must report a small residual.
func TestResidualOfOrthogonalTarget(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed = 20261125
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for try := range 50 {
		n, step := 2+r.IntN(300), r.ExpFloat64()
		x, y := backend.NewHost[float64](2*n+1, 1), backend.NewHost[float64](2*n+1, 2)
		for i := -n; i <= n; i++ {
			v := float64(i) * step
			x.Data[n+i] = v
			y.Row(n + i)[0], y.Row(n + i)[1] = v*v, v+0.1*r.NormFloat64()*step
		}
		p := solvers.Problem{Kernel: kernels.Linear{}, X: x, Y: y, Lambda: math.Pow(10, 20*r.Float64()-10), Intercept: try%2 == 0}
		for _, tol := range []float64{1e-8, 1e-12} {
			if _, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.Primal, Tol: tol}); err != nil {
				t.Errorf("lambda %g, %d rows, tolerance %g: %v", p.Lambda, x.Rows, tol, err)
			}
		}
		if _, err := solvers.SolveEach(t.Context(), dev, p, []float64{p.Lambda, 1}, solvers.Params{}); err != nil {
			t.Errorf("lambda %g, %d rows, each target with its own: %v", p.Lambda, x.Rows, err)
		}
		for _, method := range []solvers.Method{solvers.Primal, solvers.Band, solvers.Dual} {
			// ‖K‖ ≤ Σx² < 3n³·step², so that the condition number of K + λI is below 4 for the largest λ.
			lambdas := []float64{math.Pow(float64(n), 3) * step * step}
			if method == solvers.Primal {
				lambdas = append(lambdas, step*step, 1e-6*step*step)
			}
			points, err := solvers.SolvePath(t.Context(), dev, p, lambdas, solvers.PathParams{Method: method})
			if err != nil {
				t.Fatal(err)
			}
			for _, point := range points {
				if point.Err != nil || !(point.Residual <= 1e-8) {
					t.Errorf("%s, lambda %g, %d rows: residual %g, %v", method, point.Lambda, x.Rows, point.Residual, point.Err)
				}
			}
		}
	}
}
