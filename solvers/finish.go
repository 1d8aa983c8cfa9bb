package solvers

import (
	"context"
	"errors"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/kernels"
)

// finish fills the result from the best solution.
func (f *refinement) finish() error {
	w, s := f.w, f.w.s
	best := f.best
	w.res.Residual = best.residual
	copy(w.res.Intercept, best.b)
	if isLinear(s.Kernel) {
		alpha := f.rhs.View(0, 0, s.n, s.t)
		if err := w.B.Upload(alpha, best.alpha); err != nil {
			return w.fail(err)
		}
		w.B.Gemm(backend.Transpose, backend.NoTrans, 1, f.x, alpha, 0, f.coef)
		w.res.Coef = backend.NewHost[float64](s.d, s.t)
		if err := w.B.Download(w.res.Coef, f.coef); err != nil {
			return w.fail(err)
		}
	}
	w.res.Alpha = backend.NewHost[float64](s.X.Rows, s.t)
	for i := range s.n {
		copy(w.res.Alpha.Row(s.row(i)), best.alpha.Row(i))
	}
	return w.finishIntercept()
}

// short turns the error of a refinement that ended above the tolerance into one
// that carries the best solution, where there is one.
func (f *refinement) short(err error) error {
	var e *ConvergenceError
	if !errors.As(err, &e) || f.best.alpha.Data == nil {
		var weak *accuracyError
		if errors.As(err, &weak) {
			return weak.err
		}
		return err
	}
	if err := f.finish(); err != nil {
		return err
	}
	e.Residual, e.Iters = f.best.residual, f.w.res.Iters
	// What rounding α to float64 costs: ε‖A‖‖α‖ ≤ ε(tr K + λ)‖α‖.
	s := f.w.s
	trace := 0.0
	for i := range s.n {
		trace += kernels.Diag(s.Kernel, s.X.Row(s.row(i)))
	}
	for j := range s.t {
		size := norm(s.n, func(i int) float64 { return f.best.alpha.Row(i)[j] })
		e.Attainable = larger(e.Attainable, ratio(epsilon*(trace+s.Lambda)*size, f.y[j]))
	}
	e.Result = f.w.res
	return e
}

func cloneHost(h backend.Host[float64]) backend.Host[float64] {
	c := backend.NewHost[float64](h.Rows, h.Cols)
	for i := range h.Rows {
		copy(c.Row(i), h.Row(i))
	}
	return c
}

// finishIntercept turns the intercept of centered data into that of the data
// as given, and refuses a solution that is not finite.
func (w *work) finishIntercept() error {
	s := w.s
	for j := range w.res.Intercept {
		for _, part := range s.meanY {
			w.res.Intercept[j] += part[j]
		}
		for _, part := range s.meanX {
			for p, m := range part {
				w.res.Intercept[j] -= m * w.res.Coef.Row(p)[j]
			}
		}
	}
	if v := w.res.Residual; math.IsNaN(v) || math.IsInf(v, 0) {
		return w.fail(message.Errorf("the solution is not finite: scale the features and targets down or raise {lambda}"))
	}
	if err := context.Cause(w.Ctx); err != nil {
		return w.fail(err)
	}
	return nil
}
