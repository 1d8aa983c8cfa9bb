package solvers_test

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestResidualByStoredK checks that residuals use a K stored in float64, and agree with plain loops.
func TestResidualByStoredK(t *testing.T) {
	rng, inner := pathRandom(t), backendtest.Device(t, "cpu")
	const n, d, outputs, sigma, lambda, tol = 300, 40, 3, 6, 0.5, 1e-5
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: sigma}, X: normals(rng, n, d), Y: normals(rng, n, outputs), Lambda: lambda}
	for _, method := range []solvers.Method{solvers.Mixed, solvers.CG} {
		dev := &counted{Device: inner}
		res, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: method, Operator: solvers.Stored64, Tol: tol})
		if err != nil {
			t.Fatal(err)
		}
		if v := dev.gramMul.Load(); v != 0 {
			t.Errorf("%s: %d operations evaluate K again", method, v)
		}
		largest := 0.0
		for j := range outputs {
			left, size := 0.0, 0.0
			for i := range n {
				r := lambda*res.Alpha.Row(i)[j] - p.Y.Row(i)[j]
				for q := range n {
					square := 0.0
					for c, v := range p.X.Row(i) {
						square += (v - p.X.Row(q)[c]) * (v - p.X.Row(q)[c])
					}
					r += math.Exp(-square/(2*sigma*sigma)) * res.Alpha.Row(q)[j]
				}
				left += r * r
				size += p.Y.Row(i)[j] * p.Y.Row(i)[j]
			}
			largest = max(largest, math.Sqrt(left/size))
		}
		// The elements of K have relative errors of at most (d + 8)·2⁻⁵³. The sums have n terms, and ‖K‖‖α‖ ≤ n·‖y‖/λ.
		rounding := (d + 8 + n) * 0x1p-53 * n / lambda
		t.Logf("%s: residual %.3g, by the sum %.3g", method, res.Residual, largest)
		if !(res.Residual <= tol) || math.Abs(res.Residual-largest) > rounding {
			t.Errorf("%s: residual %g, by the sum %g, within %g", method, res.Residual, largest, rounding)
		}
	}
}
