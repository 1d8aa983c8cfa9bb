package solvers

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// Dual is Cholesky of K + λW⁻¹ in float64: O(n²d + n³) time and n²/2 elements, or n² elements on a device that can
// store K beside the factor (backend.PreserveBackend) and has enough memory.
const Dual Method = "dual"

func dualEstimate(z *sizes, par Params) (estimate, error) {
	if err := z.soluble(Dual); err != nil {
		return estimate{}, err
	}
	e := z.dualEstimate(false)
	if z.preserves(par) {
		if withK := z.dualEstimate(true); par.Operator == Stored64 || withK.bytesOf(z.n) <= z.available {
			e = withK
		}
	}
	return e, nil
}

type dualChoice struct{ Keep bool }

func (z *sizes) dualEstimate(keepK bool) estimate {
	solve := 2*flop.Trsm(z.n, z.columns) + 2*flop.Trsm(z.n, z.t)
	e := estimate{settings: dualChoice{keepK}}
	e.cost = z.storedCost(Stored64) + z.potrfCost(1) + z.solveCost(z.columns, false) + z.solveCost(z.t, false)
	if keepK {
		e.note = "K is stored beside the factor"
		solve += 2 * flop.Symm(z.n, z.t)
		e.cost += 2 * z.symmCost(z.t, Stored64)
	} else {
		solve += 2 * z.residualFlops()
		e.cost += 2 * z.residualCost()
	}
	e.bytesOf = func(n int) int64 {
		stored := numeric.SymmetricBytes(z.dev.F64(), n)
		if keepK {
			stored = numeric.Bytes(numeric.Elements(n, n))
		}
		return numeric.Total(z.bytesOfX(n), stored, z.refinedBytes(n))
	}
	e.stages = []stage{{"gram", z.gramFlops()}, {"factor", flop.Potrf(z.n)}, {"solve", solve}}
	return e
}

// run overwrites K with the factor L of A = K + λW⁻¹ = LLᵀ. It solves twice for all outputs: for
// the targets, and for the residual of the first solution.
func (choice dualChoice) run(w *work) error {
	x, err := w.placeX()
	if err != nil {
		return w.fail(err)
	}
	return w.refine(x, w.direct(x, choice.Keep))
}

// direct returns the fallback that solves with the Cholesky factor in float64. keepK stores K beside the factor.
func (w *work) direct(x backend.Matrix[float64], keepK bool) fallback {
	method := Dual
	if w.onHost {
		method = OutOfCore
	}
	return fallback{method: method, text: "the factor in float64", make: func() (inner, error) { return w.newDirect(x, keepK) }}
}

// withDirect appends the solve with the factor in float64 to the fallbacks if there is enough memory.
func (w *work) withDirect(x backend.Matrix[float64], fallbacks []fallback) []fallback {
	z, n := w.plan.sizes, w.s.n
	e, err := dualEstimate(z, w.par)
	if err != nil || e.bytesOf(n) > w.plan.available {
		return fallbacks
	}
	if w.par.Method == Auto {
		w.takeover = e.cost
	}
	g := w.direct(x, false)
	makeInner := g.make
	g.make = func() (inner, error) { // the plan did not count the memory of this fallback
		run.ReportPlan(w.Ctx, w.Dev, e.bytesOf(n)-z.bytesOfX(n)-z.refinedBytes(n))
		return makeInner()
	}
	return append(fallbacks, g)
}

// direct64 is the inner solver that uses the Cholesky factor of A in float64.
type direct64 struct {
	w *work
	a numeric.Symmetric[float64]
}

func (w *work) newDirect(x backend.Matrix[float64], keepK bool) (inner, error) {
	var a numeric.Symmetric[float64]
	var err error
	if keepK {
		a, err = numeric.NewCopyInLowerTriangle(w.Mem, w.B, w.s.n)
	} else {
		a, err = newFactored(w, w.B, w.s.n)
	}
	if err != nil {
		return nil, w.fail(err)
	}
	if !w.onHost {
		w.res.Method = Dual
	}
	err = w.Timed("gram", &w.res.Seconds.Gram, func() error {
		a.Gram(w.s.Kernel, x)
		a.AddDiag(w.s.shift())
		return nil
	})
	if err != nil {
		return nil, w.fail(err)
	}
	diagonal, err := a.Diagonal()
	if err != nil {
		return nil, w.fail(err)
	}
	err = w.Timed("factor", &w.res.Seconds.Factor, func() error { return a.Factor(false) })
	if err == nil {
		var pivots []float64
		if pivots, err = a.Diagonal(); err == nil {
			err = w.checkPivots(pivots, diagonal, numeric.Epsilon)
		}
	}
	if err != nil {
		return nil, w.dualPivot(err, diagonal)
	}
	return &direct64{w, a}, nil
}

func (d *direct64) solve(r backend.Matrix[float64], _ []float64) error {
	d.a.Solve(r)
	return nil
}

func (d *direct64) product() numeric.Product {
	p, _ := d.a.(numeric.Product)
	return p
}
func (d *direct64) direct() bool         { return true }
func (d *direct64) stopReason() string   { return "" }
func (d *direct64) switchToCG() bool     { return false }
func (d *direct64) endedForFaster() bool { return false }

func (d *direct64) release() { d.w.Mem.Free(d.a) }

// newFactored returns the storage for a matrix and its factor. OutOfCore stores them in host memory.
func newFactored[T backend.Float](w *work, b backend.Backend[T], n int) (numeric.Symmetric[T], error) {
	if !w.onHost {
		return numeric.NewSymmetric(w.Mem, b, n)
	}
	hb := b.(backend.HostPackedBackend[T])
	return numeric.NewPacked(w.Mem, hb, n, hb.NewHostPacked)
}

// preserveOrder is the minimum order n at which dual stores K beside the factor. For a smaller n, this saves too little
// time.
const preserveOrder = 4096

// preserves reports whether dual stores K beside the factor if memory suffices.
func (z *sizes) preserves(par Params) bool {
	if _, ok := z.dev.F64().(backend.PreserveBackend[float64]); !ok {
		return false
	}
	return par.Operator == Stored64 || par.Operator == OperatorAuto && z.n >= preserveOrder
}

// pivotTol bounds the rounding error of a pivot, a sum of up to n terms, relative to the diagonal element of the
// factored matrix (numeric.PivotTol). For Primal, the diagonal element itself is a sum over the samples.
func (w *work) pivotTol() float64 {
	terms := float64(w.s.n)
	if w.plan.Method == Primal {
		terms += float64(w.s.d)
	}
	return numeric.PivotTol(terms)
}

// checkPivots returns a *backend.PivotError for the first pivot that is only a rounding error. pivots is the
// diagonal of the factor, diagonal that of the matrix, and unit the unit roundoff.
func (w *work) checkPivots(pivots, diagonal []float64, unit float64) error {
	tol, weight := w.pivotTol()*unit/numeric.Epsilon, w.s.totalWeight()
	return numeric.CheckPivots(pivots, func(i int) float64 {
		if w.plan.Method == Primal {
			return max(tol*diagonal[i], w.s.roundingOfColumn(i, weight))
		}
		return tol * diagonal[i]
	})
}

// sufficientLambda returns a λ for which every pivot of a matrix with this diagonal exceeds its rounding error.
func (w *work) sufficientLambda(diagonal []float64) float64 {
	largest := 0.0
	for _, v := range diagonal {
		largest = max(largest, v)
	}
	return w.s.Lambda + w.pivotTol()*largest
}

// dualPivot adds an explanation and advice to the error of a failed factorization of K + λW⁻¹.
func (w *work) dualPivot(err error, diagonal []float64) error {
	var pivot *backend.PivotError
	if !errors.As(err, &pivot) {
		return w.fail(err)
	}
	row := w.s.row(pivot.Index) + 1
	if numeric.Overflowed(pivot) {
		return numeric.ExplainPivot(pivot, "solvers: dual: K + λI is not finite at row %d: values of the kernel %v overflow: scale the features down", row, w.s.Kernel)
	}
	if numeric.Indefinite(pivot.Value, slices.Max(diagonal)) {
		return numeric.ExplainPivot(pivot, "solvers: dual: K + λI is not positive definite at row %d (pivot %.3g): %s", row, pivot.Value, numeric.IndefiniteAdvice(w.s.Kernel))
	}
	return numeric.ExplainPivot(pivot, "solvers: dual: K + λI is not positive definite at row %d (pivot %.3g): {raise $lambda above "+fmt.Sprintf("%.2g", w.sufficientLambda(diagonal))+"}", row, pivot.Value)
}
