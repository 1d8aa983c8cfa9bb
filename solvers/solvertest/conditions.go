package solvertest

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// testConditions solves systems with condition numbers from about 1 to above 10⁹. A method must reach the
// tolerance, which the test confirms on the host, or return an error that the condition number explains.
func testConditions(c *cell) {
	for _, data := range []struct {
		name   string
		change func(x backend.Host[float64])
	}{
		{"distinct", func(backend.Host[float64]) {}},
		{"duplicates", func(x backend.Host[float64]) {
			for i := 4; i < x.Rows; i++ {
				copy(x.Row(i), x.Row(i%4))
			}
		}},
		{"constant", func(x backend.Host[float64]) {
			for i := range x.Rows {
				x.Row(i)[x.Cols/4] = 3 // the second of four columns, or the only one
				if x.Cols > 2 {
					x.Row(i)[2] = 0
				}
			}
		}},
	} {
		for _, scale := range []float64{1e-10, 1e-7, 1e-3, 1} {
			c.Run(fmt.Sprintf("%s,lambda=%g·n", data.name, scale), func(t *testing.T) {
				sub := *c
				sub.T = t
				p := sub.problem(sub.random(), 20, sub.features, 2)
				p.Weights, p.Lambda = nil, scale*float64(p.X.Rows)
				p.Intercept = scale == 1e-3
				data.change(p.X)
				sub.condition(p)
			})
		}
	}
}

// condition solves p with the default tolerance, and checks the result or the error by an oracle.
func (c *cell) condition(p solvers.Problem) {
	o := newOracle(p)
	par := c.par
	par.Tol = 0
	const tol = 1e-8
	res, err := solvers.Solve(c.Context(), c.dev, c.form(p), par)
	if c.method == solvers.Modes && errors.As(err, new(*solvers.BudgetError)) {
		return // the number of modes grows with 1/λ and may exceed the memory
	}
	var inaccurate *solvers.ConvergenceError
	if errors.As(err, &inaccurate) {
		// Rounding the exact solution to float64 and computing the residual add a small multiple of ε‖A‖‖α‖ (see
		// oracle.unit). Primal squares the condition number and may fail for each λ < 1e-6‖A‖.
		reach := 0.0
		for j := range p.Y.Cols {
			reach = max(reach, o.unit()*o.a*o.solutions[j]/norm(column(p.Y, j)))
		}
		single := c.par.Operator == solvers.Stored32 || c.par.Operator == solvers.Unstored32
		if c.par.Operator == solvers.Fixed16 {
			// Rounding an element of K to 16 bits changes it by at most half a step, so that the norm of the n×n matrix
			// of these errors is at most n/2 steps. The factor 4 is a margin for the refinement.
			low, high, _ := kernels.Bounds(p.Kernel, p.X.Cols)
			reach = max(reach, 4*tol*float64(p.X.Rows)*(high-low)/0x1p17/p.Lambda)
		}
		if single {
			// A product in float32 loses eigenvalues below 10⁻⁷‖A‖. The factor 10 is a margin for sums.
			reach = max(reach, tol*1e-6*o.a/p.Lambda)
		}
		if !(reach > tol) && !(c.method == solvers.Primal && p.Lambda < 1e-6*o.a) {
			c.Errorf("a residual of %.2g is attainable: %v", reach, err)
		}
		if res = inaccurate.Result; res == nil || !(res.Residual > tol) || inaccurate.Tol != tol {
			c.Fatalf("%+v does not describe its result", inaccurate)
		}
		c.Logf("%v", err)
	}
	var pivot *backend.PivotError
	if errors.As(err, &pivot) {
		largest := 0.0
		for i := range p.X.Rows {
			largest = max(largest, kernels.Diag(p.Kernel, p.X.Row(i)))
		}
		if bound := o.unit() * float64(p.X.Rows) * largest; p.Lambda > bound {
			c.Errorf("the factorization failed although λ = %g exceeds %g, the bound on the rounding error of the diagonal: %v", p.Lambda, bound, err)
		}
		return
	}
	if err != nil && inaccurate == nil {
		c.Fatal(err)
	}
	want, noise := residual(p, res, o)
	if !(math.Abs(res.Residual-want) <= noise) {
		c.Errorf("the reported residual is %.3g, but the residual computed on the host is %.3g ± %.3g", res.Residual, want, noise)
	}
	if inaccurate == nil && !(res.Residual <= tol) {
		c.Errorf("residual %.3g without an error", res.Residual)
	}
}
