package solvers

import (
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
)

// The cost model: the time of a method is the sum over its steps of
// floating-point operations divided by the rate of that kind of step. Only the
// ratios of the rates matter for the choice, so they are relative to a large
// matrix product. The values are defaults for a blocked BLAS on a CPU, taken
// from the usual order of its routines; a measurement on the machine may
// replace them. The choice depends on n, d, t, λ and these constants only, so
// it is the same on every device.
const (
	rateProduct = 1.0  // Gemm, Syrk and the Gram matrix of a linear kernel
	ratePotrf   = 0.6  // its panels run below the rate of a product
	rateThin    = 0.15 // products and solves with few columns: bound by memory
)

// stageFlops returns the operations of the stages of a method.
func stageFlops(m Method, n, d, t int, bordered, linear bool) []float64 {
	if m == Primal {
		return []float64{
			backend.SyrkFlops(d, n) + backend.GemmFlops(d, t, n),
			backend.PotrfFlops(d),
			// Two solves of two triangles, and the residual from X twice.
			4*backend.TrsmFlops(d, t) + 4*backend.GemmFlops(n, t, d),
		}
	}
	columns := t
	if bordered {
		columns++
	}
	solve := 2*backend.TrsmFlops(n, columns) + backend.GramMulFlops(n, n, d, t)
	if linear {
		solve += backend.GemmFlops(d, t, n)
	}
	return []float64{backend.GramFlops(n, n, d, true), backend.PotrfFlops(n), solve}
}

// cost is the modelled time of a method, in operations of a large product.
func cost(m Method, n, d, t int, bordered, linear bool) float64 {
	f := stageFlops(m, n, d, t, bordered, linear)
	solve := f[2] / rateThin
	if m == Dual {
		// The residual forms K a second time, at the rate of a product.
		again := backend.GramFlops(n, n, d, false)
		solve = (f[2]-again)/rateThin + again/rateProduct
	}
	return f[0]/rateProduct + f[1]/ratePotrf + solve
}

// choose returns the method for p and why.
func choose(p Problem, n int, m Method) (Method, string, error) {
	linear := isLinear(p.Kernel)
	switch {
	case m == Dual && linear && p.Lambda == 0 && p.Intercept:
		return "", "", errors.New("solvers: dual: K of centred samples is singular: with a linear kernel and an intercept lambda must be > 0: raise it, or use the method primal")
	case m == Dual || m == Primal && linear:
		return m, "asked for", nil
	case m == Primal:
		return "", "", fmt.Errorf("solvers: primal: needs the kernel linear(), got %v: use the method dual", p.Kernel)
	case m != Auto:
		return "", "", fmt.Errorf("solvers: no method is called %q: there are %q and %q", m, Dual, Primal)
	case !linear:
		return Dual, "the only method for " + p.Kernel.String(), nil
	case p.Lambda == 0 && (p.Intercept || n >= p.X.Cols):
		return Primal, "with lambda 0 the dual matrix is singular, whatever the samples", nil
	case p.Lambda == 0:
		return Dual, "with lambda 0 and fewer samples than features the primal matrix is singular", nil
	}
	d, t := p.X.Cols, p.Y.Cols
	dual, primal := cost(Dual, n, d, t, false, true), cost(Primal, n, d, t, false, true)
	m = Primal
	if dual < primal {
		m = Dual
	}
	return m, fmt.Sprintf("cheaper: primal %.3g, dual %.3g operations at the rate of a matrix product", primal, dual), nil
}
