package solvers

import (
	"context"
	"errors"
	"math"

	"github.com/mercer-go/mercer/backend"
)

// dual factors A = K + λW⁻¹ = LLᵀ in place of the lower triangle of K, and
// solves for every output at once. With an intercept that is an unknown, the
// bordered system
//
//	[A  1] [α]   [y]
//	[1ᵀ 0] [b] = [0]
//
// gives b = 1ᵀA⁻¹y / 1ᵀA⁻¹1 and α = A⁻¹y − b A⁻¹1 from one more right-hand
// side. K's memory is given back before the residual is computed, which forms
// K a second time by GramMul, so that it does not share K's faults.
func (w *work) dual() error {
	s := w.s
	x, err := w.placeX()
	if err != nil {
		return w.fail(err)
	}
	columns := s.t
	if s.bordered() {
		columns++
	}
	rhs, err := w.mem.new(s.n, columns)
	if err != nil {
		return w.fail(err)
	}
	a, err := w.mem.new(s.n, s.n)
	if err != nil {
		return w.fail(err)
	}

	err = w.timed("gram", &w.res.Seconds.Gram, func() error {
		w.b.Gram(a, s.Kernel, x, x)
		w.b.AddDiag(s.shift(), a)
		return nil
	})
	if err != nil {
		return w.fail(err)
	}
	before, err := w.diagonal(a)
	if err != nil {
		return w.fail(err)
	}
	err = w.timed("factor", &w.res.Seconds.Factor, func() error { return w.b.Potrf(backend.Lower, a) })
	if err == nil {
		err = w.checkPivots(a, before)
	}
	if err != nil {
		return w.dualPivot(err, before)
	}
	return w.timed("solve", &w.res.Seconds.Solve, func() error {
		alpha, err := w.dualSolve(a, rhs)
		if err != nil {
			return w.fail(err)
		}
		w.mem.free(a)
		return w.dualFinish(x, rhs.View(0, 0, s.n, s.t), alpha)
	})
}

// placeX puts the samples that take part on the device: Problem.X itself where
// the device can use it as it is.
func (w *work) placeX() (backend.Matrix[float64], error) {
	s := w.s
	if s.plain(false) {
		return w.mem.place(s.X)
	}
	x, err := w.mem.new(s.n, s.d)
	if err != nil {
		return nil, err
	}
	r := blockRows(s.n, s.d)
	buffer := backend.NewHost[float64](r, s.d)
	for i := 0; i < s.n; i += r {
		h := buffer.View(0, 0, min(r, s.n-i), s.d)
		s.fill(h, s.X, s.meanX, i, false)
		if err := w.b.Upload(x.View(i, 0, h.Rows, s.d), h); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// dualSolve returns α and sets the intercept to that of the centred targets.
func (w *work) dualSolve(l, rhs backend.Matrix[float64]) (backend.Host[float64], error) {
	s := w.s
	_, columns := rhs.Dims()
	h := backend.NewHost[float64](s.n, columns)
	s.fill(h.View(0, 0, s.n, s.t), s.Y, s.meanY, 0, false)
	for i := range s.n {
		if s.bordered() {
			h.Row(i)[s.t] = 1
		}
	}
	if err := w.b.Upload(rhs, h); err != nil {
		return h, err
	}
	w.b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, l, rhs)
	w.b.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, l, rhs)
	if err := w.b.Download(h, rhs); err != nil {
		return h, err
	}
	if s.bordered() {
		sums := make([]float64, columns)
		for i := range s.n {
			for j, v := range h.Row(i) {
				sums[j] += v
			}
		}
		for j := range s.t {
			w.res.Intercept[j] = sums[j] / sums[s.t]
		}
		for i := range s.n {
			row := h.Row(i)
			for j, b := range w.res.Intercept {
				row[j] -= b * row[s.t]
			}
		}
	}
	return h.View(0, 0, s.n, s.t), nil
}

// dualFinish computes the residual and w, then moves the results from the
// samples that took part to all rows of X.
func (w *work) dualFinish(x, onDevice backend.Matrix[float64], alpha backend.Host[float64]) error {
	s := w.s
	if err := w.b.Upload(onDevice, alpha); err != nil {
		return w.fail(err)
	}
	ka, err := w.mem.new(s.n, s.t)
	if err != nil {
		return w.fail(err)
	}
	w.b.GramMul(ka, s.Kernel, x, x, onDevice)
	fit := backend.NewHost[float64](s.n, s.t)
	if err := w.b.Download(fit, ka); err != nil {
		return w.fail(err)
	}
	w.res.Residual = s.dualResidual(fit, alpha, w.res.Intercept)
	if isLinear(s.Kernel) {
		coef, err := w.mem.new(s.d, s.t)
		if err != nil {
			return w.fail(err)
		}
		w.b.Gemm(backend.Transpose, backend.NoTrans, 1, x, onDevice, 0, coef)
		w.res.Coef = backend.NewHost[float64](s.d, s.t)
		if err := w.b.Download(w.res.Coef, coef); err != nil {
			return w.fail(err)
		}
	}
	w.res.Alpha = backend.NewHost[float64](s.X.Rows, s.t)
	for i := range s.n {
		copy(w.res.Alpha.Row(s.row(i)), alpha.Row(i))
	}
	return w.finishIntercept()
}

// dualResidual returns Result.Residual of the dual system. fit is Kα and is
// overwritten; intercept is that of the centred targets.
func (s *samples) dualResidual(fit, alpha backend.Host[float64], intercept []float64) float64 {
	targets := backend.NewHost[float64](1, s.t)
	sums := make([]float64, s.t)
	for i := range s.n {
		s.fill(targets, s.Y, s.meanY, i, false)
		r, a := fit.Row(i), alpha.Row(i)
		shift := s.Lambda / s.weightOf(i)
		for j, y := range targets.Row(0) {
			r[j] += shift*a[j] + intercept[j] - y
			sums[j] += a[j]
		}
	}
	worst := 0.0
	for j := range s.t {
		r := norm(s.n, func(i int) float64 { return fit.Data[i*fit.Stride+j] })
		if s.Intercept {
			r = math.Hypot(r, sums[j])
		}
		y := norm(s.n, func(i int) float64 { return s.Y.Data[s.row(i)*s.Y.Stride+j] })
		worst = larger(worst, ratio(r, y))
	}
	return worst
}

// finishIntercept turns the intercept of centred data into that of the data
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
		return w.fail(errors.New("the solution is not finite: scale the features and targets down or raise lambda"))
	}
	if err := context.Cause(w.ctx); err != nil {
		return w.fail(err)
	}
	return nil
}
