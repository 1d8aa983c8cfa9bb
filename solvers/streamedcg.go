package solvers

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/backend"
)

// solution is what iterate has found.
type solution struct {
	beta     backend.Host[float64] // M×t
	bias     []float64             // b
	residual float64               // the largest over the outputs of ‖z − Hβ‖ / ‖z‖
	iters    int                   // products with H
	reason   string                // why the residual is not below the tolerance; "": it is
}

// iterationBytes is what iterate takes on the device.
func iterationBytes(m, t int) int64 { return bytes(elements(5*m, t)) }

// iterate solves Hβ = z by conjugate gradients, preconditioned, all outputs side
// by side. exact says that the preconditioner is the inverse of H to rounding:
// then two steps of refinement (Björck 1987) are tried first, and the rest is
// seldom needed.
//
// The residual that decides is computed from the samples in a pass of its own;
// where it is above that of the recurrence, the iteration begins anew from it
// (residual replacement, van der Vorst and Ye 2000) until that gains nothing.
func (w *streamed) iterate(pre preconditioner[float64], exact bool, tol float64, maxIter int) (*solution, error) {
	var beta, r, z, p, q backend.Matrix[float64]
	var err error
	for _, to := range []*backend.Matrix[float64]{&beta, &r, &z, &p, &q} {
		if *to, err = w.mem.new(w.m, w.t); err != nil {
			return nil, err
		}
		defer w.mem.free(*to)
	}
	size, err := w.norms(w.z)
	if err != nil {
		return nil, err
	}
	best := &solution{}
	copyMatrix(w.b, r, w.z)
	measure := func() (improved bool, err error) {
		left, err := w.norms(r)
		if err != nil {
			return false, err
		}
		worst := 0.0
		for j, v := range left {
			worst = larger(worst, ratio(v, size[j]))
		}
		if worst-worst != 0 {
			return false, fmt.Errorf("the solution is not finite: scale the features and targets down or raise lambda")
		}
		if best.beta.Data != nil && !(worst < best.residual) {
			return false, nil
		}
		improved = best.beta.Data == nil || worst < 0.5*best.residual
		best.residual = worst
		best.beta = backend.NewHost[float64](w.m, w.t)
		if err := w.b.Download(best.beta, beta); err != nil {
			return false, err
		}
		best.bias, err = w.bias(beta)
		return improved, err
	}
	ones := repeated(1, w.t)
	for range 2 {
		if !exact {
			break
		}
		if err := pre.apply(z, r); err != nil {
			return nil, err
		}
		w.b.ColAxpy(ones, z, beta)
		if err := w.residual(r, beta); err != nil {
			return nil, err
		}
		best.iters++
		if _, err := measure(); err != nil {
			return nil, err
		}
	}
	for {
		if exact && best.residual <= tol {
			return best, nil
		}
		before := best.iters
		if err := w.gradients(beta, r, z, p, q, pre, size, tol/2, maxIter-best.iters, &best.iters); err != nil {
			return nil, err
		}
		if err := w.residual(r, beta); err != nil {
			return nil, err
		}
		best.iters++
		improved, err := measure()
		if err != nil {
			return nil, err
		}
		switch {
		case best.residual <= tol:
			return best, nil
		case best.iters >= maxIter:
			best.reason = "no more iterations are allowed"
			return best, nil
		case !improved || best.iters <= before+1:
			best.reason = "rounding keeps it there"
			return best, nil
		}
		exact = true // best is what it is; look at it first
	}
}

// gradients adds to β the solution of He = r by conjugate gradients, until the
// residuals of the recurrence are below tol·size, or maxIter products, or no
// gain over many of them. r is overwritten.
func (w *streamed) gradients(beta, r, z, p, q backend.Matrix[float64], pre preconditioner[float64], size []float64, tol float64, maxIter int, iters *int) error {
	const patience = 30
	rho, before, curve, left := make([]float64, w.t), make([]float64, w.t), make([]float64, w.t), make([]float64, w.t)
	least, since := -1.0, 0
	for step := 0; ; step++ {
		if err := context.Cause(w.ctx); err != nil {
			return err
		}
		if err := w.b.ColDot(left, r, r); err != nil {
			return err
		}
		worst, open := 0.0, make([]bool, w.t)
		for j := range left {
			open[j] = left[j] > tol*size[j]*tol*size[j]
			if open[j] {
				worst = larger(worst, left[j]/(size[j]*size[j]))
			}
		}
		if least < 0 || worst < least {
			least, since = worst, 0
		} else {
			since++
		}
		if worst == 0 || step >= maxIter || since > patience {
			return nil
		}
		if err := pre.apply(z, r); err != nil {
			return err
		}
		if err := w.b.ColDot(rho, r, z); err != nil {
			return err
		}
		// p ← z + (ρ/ρ′)p, by adding to z and taking it for p.
		if step > 0 {
			factor := make([]float64, w.t)
			for j := range factor {
				if open[j] {
					factor[j] = ratio(rho[j], before[j])
				}
			}
			w.b.ColAxpy(factor, p, z)
		}
		p, z = z, p
		copy(before, rho)
		if err := w.apply(q, p); err != nil {
			return err
		}
		*iters++
		if err := w.b.ColDot(curve, p, q); err != nil {
			return err
		}
		along, back := make([]float64, w.t), make([]float64, w.t)
		for j := range along {
			if open[j] && curve[j] > 0 {
				along[j] = rho[j] / curve[j]
				back[j] = -along[j]
			}
		}
		w.b.ColAxpy(along, p, beta)
		w.b.ColAxpy(back, q, r)
	}
}

// factored is P = LLᵀ with L on the device.
type factored struct {
	b backend.Backend[float64]
	l backend.Matrix[float64]
}

func (f factored) apply(z, r backend.Matrix[float64]) error {
	copyMatrix(f.b, z, r)
	f.b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, f.l, z)
	f.b.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, f.l, z)
	return nil
}
