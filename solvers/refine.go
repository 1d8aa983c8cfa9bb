package solvers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
)

// Every method for A := K + λW⁻¹ is an inner solver in the same loop of refinement (Wilkinson 1963). Each step
// computes the residual in float64, and adds the inner solver's solution for this residual to α. Therefore the
// inner solver's factor or products with K may have reduced precision.
//
// If b is an unknown, the system is
//
//	[A  1] [α]   [y]
//	[1ᵀ 0] [b] = [0]
//
// The first solve then has the additional right-hand side 1, with the solution z = A⁻¹1. A correction is δα = A⁻¹r
// − δb·z, where δb makes 1ᵀ(α + δα) = 0. The error of an inaccurate z causes a residual that is mostly a multiple
// of the vector 1, because A has a large eigenvalue along 1. A change of b removes this multiple.

// An inner solver solves AD = R approximately for the correction D of a solution with the residual R.
type inner interface {
	// solve overwrites r, n×c on the device, with an approximation of A⁻¹r. The norm of each column of r is near 1
	// or 0. An iterative solver may stop when the residual of column j has at most the norm goal[j].
	solve(r backend.Matrix[float64], goal []float64) error
	// direct reports whether the solver is a direct method.
	direct() bool
	// stopReason returns the reason why the last solve ended above its goal, if another solve would end for the
	// same reason, and otherwise "".
	stopReason() string
	// switchToCG is called after a solve that reduced the residual by a factor of less than 10. It switches to
	// conjugate gradients and returns true, or returns false if the solver cannot switch or has already switched.
	switchToCG() bool
	// endedForFaster reports whether the last solve stopped because another method takes less time.
	endedForFaster() bool
	// product returns K if it is stored in float64 and no factor has overwritten it, otherwise nil.
	product() numeric.Product
	// release frees the solver's memory on the device.
	release()
}

// A fallback is an inner solver that is used after the preceding inner solvers have failed.
type fallback struct {
	method Method
	text   string // description for Result.Fallback
	// gain, if > 0, is the factor by which each round must reduce the residual. Rounds after the first must halve it.
	gain float64
	make func() (inner, error)
}

// accuracyError is caused by rounding in float32 or by a failed pivot. The next fallback may succeed.
type accuracyError struct{ err error }

// slowError means that the last fallback would take less time than the remaining iterations.
type slowError struct{ error }

// stagnationError means that MaxIter was reached. refine then tries only a direct method.
type stagnationError struct{ error }

func (e *accuracyError) Error() string { return e.err.Error() }
func (e *accuracyError) Unwrap() error { return e.err }

// A refinement is the loop for one Problem.
type refinement struct {
	w           *work
	x           backend.Matrix[float64]       // n×d
	rhs, fit    backend.Matrix[float64]       // n×columns, n×t
	coef        backend.Matrix[float64]       // d×t, Xᵀα of a linear kernel; nil for other kernels
	alpha       backend.Host[float64]         // n×t
	z           backend.Host[float64]         // n×1: A⁻¹1 with an intercept; empty until it has been computed
	b           []float64                     // intercepts of the centered targets
	r           backend.Host[float64]         // n×columns: y − Aα − b·1, and a column of ones if b is an unknown
	size        []float64                     // norms of the outputs, centered if there is an intercept
	norms       []float64                     // norms of the residuals of the outputs
	residual    float64                       // largest ratio norms[j]/size[j]
	product     numeric.Product               // nil if the residual is computed from the data
	multiplyByK func(v backend.Host[float64]) // replaces v by Kv in Go memory; may be nil

	best iterate
}

// An iterate is a solution with its residual.
type iterate struct {
	alpha, r backend.Host[float64]
	b, norms []float64
	residual float64
}

// refinedBytes is the device memory of a refinement besides X and the inner solver.
func (z *sizes) refinedBytes(n int) int64 {
	e := numeric.Total(numeric.Elements(n, z.columns), numeric.Elements(n, z.t))
	if isLinear(z.kernel) {
		e = numeric.Total(e, numeric.Elements(z.d, z.t))
	}
	return numeric.Bytes(e)
}

// refineRounds is the maximum number of rounds: 40 halvings reduce the residual by a factor of 10¹².
const refineRounds = 40

// refine tries the fallbacks in turn until one reaches the tolerance, each from the best solution of the earlier ones.
func (w *work) refine(x backend.Matrix[float64], fallbacks ...fallback) error {
	s := w.s
	f := &refinement{w: w, x: x, b: make([]float64, s.t), norms: make([]float64, s.t)}
	var err error
	columns := s.columns()
	if f.rhs, err = w.Mem.New(s.n, columns); err != nil {
		return w.fail(err)
	}
	if f.fit, err = w.Mem.New(s.n, s.t); err != nil {
		return w.fail(err)
	}
	if isLinear(s.Kernel) {
		if f.coef, err = w.Mem.New(s.d, s.t); err != nil {
			return w.fail(err)
		}
	}
	f.initialize(columns)
	start := 0
	if w.checkpointer != nil {
		w.checkpointer.f = f
		if st := w.checkpointer.restored(); st != nil {
			if start = st.Attempt; start >= len(fallbacks) || fallbacks[start].method == Dual {
				return w.checkpointer.refused(errors.New("it was written by a method that needs more memory than this fit may use"))
			}
			if err := f.restore(st); err != nil {
				return err
			}
		}
	}
	var previous *ConvergenceError // the error of the preceding fallback
	for i := start; i < len(fallbacks); i++ {
		g, isLast := fallbacks[i], i == len(fallbacks)-1
		if w.checkpointer != nil {
			w.checkpointer.attempt = i
		}
		err = f.tryNext(g)
		var weak *accuracyError
		var spent *stagnationError
		var slow *slowError
		switch {
		case err == nil:
			w.res.Method = g.method
			if err := f.finish(); err != nil {
				return err
			}
			return w.checkpointer.remove()
		case w.Ctx.Err() != nil:
			return w.fail(context.Cause(w.Ctx))
		case errors.As(err, &spent):
			direct := len(fallbacks) - 1
			if w.par.MaxIter > 0 || i == direct || fallbacks[direct].method != Dual {
				return f.complete(spent.error)
			}
			errors.As(spent.error, &previous)
			w.res.Fallback = fmt.Sprintf("%s; went on with %s", previous, fallbacks[direct].text)
			i = direct - 1 // no iterations remain: skip to the direct method
		case errors.As(err, &slow) && isLast:
			return f.complete(slow.error)
		case errors.As(err, &slow):
			errors.As(slow.error, &previous)
			w.res.Fallback = fmt.Sprintf("%s: %s; went on with %s", g.method, previous.Reason, fallbacks[len(fallbacks)-1].text)
			i = len(fallbacks) - 2
		case previous != nil && previous.Result.Method == CG && errors.Is(err, backend.ErrNotPosDef):
			previous.Reason += ", and the Cholesky factorization of K + λI fails because of rounding errors"
			w.res.Method = CG
			return f.complete(previous)
		case !errors.As(err, &weak):
			return err
		case !isLast:
			w.res.Fallback = fmt.Sprintf("%s; went on with %s", weak.err, fallbacks[i+1].text)
			errors.As(weak.err, &previous)
		}
	}
	var weak *accuracyError
	errors.As(err, &weak)
	var last *ConvergenceError
	if previous != nil && errors.As(weak.err, &last) && last.Result.Method != previous.Result.Method {
		last.replaced = previous.Result.Method
	}
	return f.complete(weak.err)
}

// restore resumes from a checkpoint and computes the residuals from the data.
func (f *refinement) restore(st *state) error {
	if st.z.Data != nil {
		f.z = st.z
	}
	if st.best.Rows == 0 {
		return nil // α is still 0
	}
	list := []iterate{{alpha: st.best, b: st.BestB}}
	if !slices.Equal(st.best.Data, st.alpha.Data) || !slices.Equal(st.BestB, st.B) {
		list = append(list, iterate{alpha: st.alpha, b: st.B})
	}
	for _, saved := range list {
		f.alpha, f.b = saved.alpha, saved.b
		if err := f.measure(); err != nil {
			return f.w.fail(err)
		}
		if f.residual-f.residual != 0 {
			return f.w.checkpointer.refused(errors.New("the residual of its solution is not finite"))
		}
	}
	return nil
}

// initialize sets the first residual to y. A bordered system also has a right-hand side of ones.
func (f *refinement) initialize(columns int) {
	s := f.w.s
	f.alpha = backend.NewHost[float64](s.n, s.t)
	f.r = backend.NewHost[float64](s.n, columns)
	s.fill(f.r.View(0, 0, s.n, s.t), s.Y, s.meanY, 0, false)
	if s.bordered() {
		for i := range s.n {
			f.r.Row(i)[s.t] = 1
		}
	}
	f.size, f.residual = make([]float64, s.t), 0
	for j := range s.t {
		f.norms[j] = numeric.Norm(s.n, func(i int) float64 { return f.r.Row(i)[j] })
		f.size[j] = numeric.ScaleOf(f.norms[j], 0, 0, f.w.par.tol())
		f.residual = max(f.residual, numeric.Ratio(f.norms[j], f.size[j]))
	}
	f.best.residual = math.Inf(1)
	if s.Intercept && !s.bordered() {
		// Centered samples have XᵀW1 = 0. Hence A(W1) = (XXᵀ + λW⁻¹)(W1) = λ1, and z = A⁻¹1 = W1/λ.
		z, total := backend.NewHost[float64](s.n, 1), 0.0
		for i := range s.n {
			z.Data[i] = s.weightOf(i) / s.Lambda
			total += z.Data[i]
		}
		if !math.IsInf(total, 1) { // total is infinite if λ is near the smallest float64
			f.z = z
		}
	}
}

// tryNext refines the solution by a new inner solver, and fails if a round does not reduce the residual enough.
func (f *refinement) tryNext(g fallback) error {
	w := f.w
	solver, err := g.make()
	if err != nil {
		return err
	}
	defer solver.release()
	return w.Timed("solve", &w.res.Seconds.Solve, func() error {
		start := 0
		if st := w.checkpointer.restored(); st != nil {
			start = st.Round
		}
		for round := start; round < refineRounds; round++ {
			if w.checkpointer != nil {
				w.checkpointer.round = round
			}
			previous := f.residual
			if err := f.correct(solver); err != nil {
				return err
			}
			f.product = solver.product()
			if host, ok := solver.(interface {
				multiplyByK(v backend.Host[float64])
			}); ok {
				f.multiplyByK = host.multiplyByK
			}
			if err := f.measure(); err != nil {
				return w.fail(err)
			}
			if math.IsNaN(f.residual) || math.IsInf(f.residual, 0) {
				f.reset()
				return &accuracyError{w.fail(message.Errorf("the solution is not finite: {scale the features and targets down|raise $lambda}"))}
			}
			switch {
			case solver.direct() && round == 0:
				continue
			case f.best.residual <= w.par.tol():
				return nil
			case solver.direct():
				return f.inaccurate("iterative refinement does not reduce it")
			case solver.endedForFaster():
				return &slowError{f.inaccurate(solver.stopReason())}
			case w.res.Iters >= w.par.maxIter():
				return &stagnationError{f.inaccurate(solver.stopReason())}
			case !(f.residual < previous/10) && solver.switchToCG():
				f.revert()
			case round > 0 && !(f.residual < previous/2) || g.gain > 0 && !(f.residual < previous/g.gain):
				reason := "refinement stagnates"
				if ended := solver.stopReason(); ended != "" {
					reason = ended
				} else if g.gain > 0 {
					reason = fmt.Sprintf("a step of refinement reduces the residual by a factor of less than %g", g.gain)
				}
				return f.inaccurate(reason)
			}
		}
		return f.inaccurate("refinement stagnates")
	})
}

func (f *refinement) inaccurate(reason string) error {
	return &accuracyError{&ConvergenceError{
		Tol: f.w.par.tol(), Reason: reason, mayBeIndefinite: !f.w.s.Kernel.IsPSD(),
		Result: &Result{Method: f.w.res.Method, Solution: Solution{Residual: f.best.residual}, Iters: f.w.res.Iters},
	}}
}

// correct adds to α the inner solver's solution for the residual. It scales each column of the residual by a power
// of two, so that the column in float32 and its squares neither overflow nor underflow.
func (f *refinement) correct(solver inner) error {
	w, s := f.w, f.w.s
	_, columns := f.rhs.Dims()
	if f.z.Data != nil {
		columns = s.t // z is known and needs no solve
	}
	norms := slices.Clone(f.norms)
	if columns > s.t {
		norms = append(norms, math.Sqrt(float64(s.n)))
	}
	goal, scale := make([]float64, columns), make([]float64, columns)
	for j, v := range norms {
		scale[j] = 1
		if v > 0 && !math.IsInf(v, 1) {
			_, exponent := math.Frexp(v)
			scale[j] = math.Ldexp(1, min(max(exponent, -1000), 1000))
		}
		size := v // for z, whose error changes the residual by |b| ≈ ‖y‖/√n times the error
		if j < s.t {
			size = f.size[j]
		}
		// The factor 1/4 is a margin for errors of z and b.
		goal[j] = w.par.tol() / 4 * size / scale[j]
	}
	for i := range s.n {
		row := f.r.Row(i)
		for j := range columns {
			row[j] /= scale[j]
		}
	}
	rhs := f.rhs.View(0, 0, s.n, columns)
	h := f.r.View(0, 0, s.n, columns)
	source := h
	if st := w.checkpointer.restored(); st != nil {
		source = st.RHS
	}
	if err := w.B.Upload(rhs, source); err != nil {
		return w.fail(err)
	}
	if err := solver.solve(rhs, goal); err != nil {
		return err
	}
	if err := w.B.Download(h, rhs); err != nil {
		return w.fail(err)
	}
	for i := range s.n {
		row := h.Row(i)
		for j := range columns {
			row[j] *= scale[j]
		}
	}
	if columns > s.t {
		f.z = backend.NewHost[float64](s.n, 1)
		for i := range s.n {
			f.z.Data[i] = h.Row(i)[s.t]
		}
	}
	f.add(h)
	return nil
}

// add sets α ← α + d. If z is known, it also sets b ← b + δb and α ← α − δb·z, where δb makes 1ᵀα = 0.
func (f *refinement) add(d backend.Host[float64]) {
	s := f.w.s
	delta := make([]float64, s.t)
	if f.z.Data != nil {
		total := 0.0
		for i := range s.n {
			total += f.z.Data[i]
			for j := range delta {
				delta[j] += f.alpha.Row(i)[j] + d.Row(i)[j]
			}
		}
		for j := range delta {
			delta[j] /= total
			f.b[j] += delta[j]
		}
	}
	for i := range s.n {
		a, row := f.alpha.Row(i), d.Row(i)
		for j := range a {
			v := row[j]
			if f.z.Data != nil {
				v -= delta[j] * f.z.Data[i]
			}
			a[j] += v
		}
	}
}

// measure computes the residual, and b if it is an unknown. It saves the solution with the smallest residual.
func (f *refinement) measure() error {
	w, s := f.w, f.w.s
	alpha := f.rhs.View(0, 0, s.n, s.t)
	if err := w.B.Upload(alpha, f.alpha); err != nil {
		return err
	}
	fit := f.r.View(0, 0, s.n, s.t)
	shift := s.shift() // the diagonal λW⁻¹, which is not part of K
	switch {
	case f.multiplyByK != nil:
		for i := range s.n {
			copy(fit.Row(i), f.alpha.Row(i))
		}
		f.multiplyByK(fit)
	case f.coef != nil: // X(Xᵀα) takes 4nd operations per output; Kα would take 2n²d
		w.B.Gemm(backend.Transpose, backend.NoTrans, 1, f.x, alpha, 0, f.coef)
		w.B.Gemm(backend.NoTrans, backend.NoTrans, 1, f.x, f.coef, 0, f.fit)
	case f.product != nil:
		shift = f.product.Times(f.fit, alpha)
	default:
		w.B.GramMul(f.fit, s.Kernel, f.x, f.x, alpha)
	}
	if f.multiplyByK == nil {
		if err := w.B.Download(fit, f.fit); err != nil {
			return err
		}
	}
	y := backend.NewHost[float64](1, s.t)
	sums, b := make([]float64, s.t), slices.Clone(f.b)
	if s.bordered() {
		clear(b)
	}
	for i := range s.n {
		s.fill(y, s.Y, s.meanY, i, false)
		r, a := fit.Row(i), f.alpha.Row(i)
		diagonal := shift[min(i, len(shift)-1)]
		for j, v := range y.Row(0) {
			r[j] = v - (r[j] + diagonal*a[j] + b[j])
			sums[j] += a[j]
		}
	}
	if s.bordered() {
		for i := range s.n {
			for j, v := range fit.Row(i) {
				b[j] += v / float64(s.n)
			}
		}
		for i := range s.n {
			row := fit.Row(i)
			for j, v := range b {
				row[j] -= v
			}
		}
	}
	f.b, f.residual = b, 0
	for j := range s.t {
		f.norms[j] = numeric.Norm(s.n, func(i int) float64 { return fit.Row(i)[j] })
		norm := f.norms[j]
		if s.Intercept {
			norm = math.Hypot(norm, sums[j])
		}
		f.residual = max(f.residual, numeric.Ratio(norm, f.size[j]))
	}
	if f.residual < f.best.residual {
		f.best = iterate{numeric.Clone(f.alpha), numeric.Clone(f.r), slices.Clone(f.b), slices.Clone(f.norms), f.residual}
	}
	return nil
}

// reset replaces a solution that is not finite by the best finite solution, or by α = 0.
func (f *refinement) reset() {
	if f.best.alpha.Data != nil {
		f.revert()
		return
	}
	f.z = backend.Host[float64]{}
	f.b = make([]float64, f.w.s.t)
	f.initialize(f.r.Cols)
}

// revert returns to the solution with the smallest residual.
func (f *refinement) revert() {
	f.alpha, f.r = numeric.Clone(f.best.alpha), numeric.Clone(f.best.r)
	f.b, f.norms, f.residual = slices.Clone(f.best.b), slices.Clone(f.best.norms), f.best.residual
}

// finish sets the result from the solution with the smallest residual.
func (f *refinement) finish() error {
	w, s := f.w, f.w.s
	best := f.best
	w.res.Residual = best.residual
	copy(w.res.Intercept, best.b)
	if s.linear() {
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
	w.res.Alpha = backend.NewHost[float64](s.x.Rows, s.t)
	for i := range s.n {
		copy(w.res.Alpha.Row(s.row(i)), best.alpha.Row(i))
	}
	if !s.linear() {
		w.res.Residuals = backend.NewHost[float64](s.x.Rows, s.t)
		for i := range s.n {
			copy(w.res.Residuals.Row(s.row(i)), best.r.Row(i))
		}
	}
	return w.finishIntercept()
}

// complete adds the best solution, if there is one, to the error of a refinement that ended above the tolerance.
func (f *refinement) complete(err error) error {
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
	// Rounding α to float64 adds a residual of about ε‖K + λI‖‖α‖, which is at most ε(tr K + λ)‖α‖.
	s := f.w.s
	trace := 0.0
	for i := range s.n {
		trace += s.x.Diag(s.Kernel, s.row(i))
	}
	for j := range s.t {
		size := numeric.Norm(s.n, func(i int) float64 { return f.best.alpha.Row(i)[j] })
		e.Attainable = max(e.Attainable, numeric.Ratio(numeric.Epsilon*(trace+s.Lambda)*size, f.size[j]))
	}
	e.Result = f.w.res
	return e
}

// finishIntercept converts the intercept for centered data to the intercept for the original data. It returns an
// error if the solution is not finite.
func (w *work) finishIntercept() error {
	s := w.s
	for j := range w.res.Intercept {
		for _, mean := range s.meanY {
			w.res.Intercept[j] += mean[j]
		}
		for _, mean := range s.meanX {
			for p, m := range mean {
				w.res.Intercept[j] -= m * w.res.Coef.Row(p)[j]
			}
		}
	}
	if v := w.res.Residual; math.IsNaN(v) || math.IsInf(v, 0) {
		return w.fail(message.Errorf("the solution is not finite: {scale the features and targets down|raise $lambda}"))
	}
	if err := context.Cause(w.Ctx); err != nil {
		return w.fail(err)
	}
	return nil
}

// ConvergenceError reports that a Solve did not reach the requested residual. Result holds the best solution found,
// or only the fields Method, Residual and Iters if no finite solution was found.
type ConvergenceError struct {
	Result *Result
	Tol    float64 // the requested residual
	// Attainable bounds the residual of the exact solution after rounding to float64; 0 means no known bound.
	Attainable float64
	Reason     string // why the last method stopped

	mayBeIndefinite bool   // whether K may be indefinite
	replaced        Method // the method that Result.Method replaced, or ""
}

func (e *ConvergenceError) Error() string { return e.Message(message.Plain) }

// Message returns the text of the error. name maps the parameters of this package to the names of a front end.
func (e *ConvergenceError) Message(name func(parameter string) string) string {
	iterations, res := "", cmp.Or(e.Result, &Result{})
	if res.Iters > 0 {
		iterations = fmt.Sprintf(" after %s", count.Of(res.Iters, "iteration"))
	}
	explanation, advice := "", "raise $lambda|raise $tol"
	if e.Attainable > e.Tol {
		explanation = fmt.Sprintf(": the exact solution, rounded to float64, may have a residual of up to %.2g", e.Attainable)
	}
	if !(res.Residual < 1) && e.Attainable > 1 {
		explanation, advice = ": the kernel values are so large that rounding errors leave no correct digit", "raise $lambda|scale the features down|take another $kernel"
	}
	if e.mayBeIndefinite {
		advice = "use a positive definite $kernel|" + advice
	}
	method := string(res.Method)
	if e.replaced != "" {
		method = fmt.Sprintf("%s, then %s", e.replaced, res.Method)
	}
	return fmt.Sprintf("solvers: %s: the relative residual is %.2g%s, above the tolerance %.2g: %s%s%s",
		method, res.Residual, iterations, e.Tol, e.Reason, explanation, message.Expand(": {"+advice+"}", name))
}
