package solvers

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/precision"
	"github.com/mercer-go/mercer/internal/run"
)

// Primal is Cholesky of XᵀWX + λI, for kernels.Linear: O(nd² + d³) time.
const Primal Method = "primal"

// On a device that works in Go memory, the factor is in float32 if d ≥ singleFeatures and nd² ≥ singleProducts.
const (
	singleFeatures = 128
	singleProducts = 1 << 28
)

func primalEstimate(z *sizes, _ Params) (estimate, error) {
	if !isLinear(z.kernel) {
		return estimate{}, message.Errorf("solvers: primal: needs the kernel linear(), got %v: {use $solver=dual|use another learner}", z.kernel)
	}
	if z.p.Sparse != nil {
		return sparsePrimalEstimate(z)
	}
	n, d, t := z.n, z.d, z.t
	single := precision.Forced() == precision.Single ||
		numeric.Wrapper(z.dev) != nil && d >= singleFeatures && float64(n)*float64(d)*float64(d) >= singleProducts
	e := estimate{
		settings: primalChoice{single},
		stages: []stage{
			{"gram", flop.Syrk(d, n) + flop.Gemm(d, t, n)},
			{"factor", flop.Potrf(d)},
			// With refinement there are two solves, each with the factor and its transpose, and two residuals.
			{"solve", 4*flop.Trsm(d, t) + 4*flop.Gemm(n, t, d)},
		},
		// The elements of XᵀX are counted as float64, because a factor in float64 may replace a factor in float32.
		bytesOf: func(n int) int64 {
			r := blockRows(n, d)
			e := numeric.Total(numeric.Elements(d, d), numeric.Elements(2*d, t), numeric.Elements(r, t))
			if numeric.Wrapper(z.dev) == nil {
				e = numeric.Total(e, numeric.Elements(r, d))
			}
			return numeric.Bytes(e)
		},
	}
	rate := 1.0
	if single {
		rate = max(1, z.rates().Single)
	}
	e.cost = (flop.Syrk(d, n)+flop.Gemm(d, t, n)+flop.Potrf(d)/ratePotrf)/rate + e.stages[2].flops*z.costs().thin
	return e, nil
}

// primalChoice solves (XᵀWX + λI)w = XᵀWy. With an intercept, X and y are centered. The normal equations square the
// condition number of X. One step of iterative refinement, with the residual computed from X instead of XᵀWX
// (Björck 1987), recovers most of the lost accuracy. If Single is set, XᵀWX and its factor are in float32, and a
// factor in float64 replaces them if the residual remains above the tolerance or a pivot is only a rounding error.
type primalChoice struct{ Single bool }

func (choice primalChoice) run(w *work) error {
	s := w.s
	p := &primalSystem{work: w}
	var err error
	if p.blocks, err = w.newBlocks(choice.Single && s.nearlyCentered()); err != nil {
		return w.fail(err)
	}
	for _, m := range []*backend.Matrix[float64]{&p.coef, &p.r} {
		if *m, err = w.Mem.New(s.d, s.t); err != nil {
			return w.fail(err)
		}
	}
	if choice.Single {
		err = attemptPrimal(p, w.B32)
		if weak := (*accuracyError)(nil); errors.As(err, &weak) {
			w.res.Fallback = fmt.Sprintf("solvers: primal: XᵀX + λI in float32: %s; went on with float64", weak.err)
		}
	}
	if !choice.Single || w.res.Fallback != "" {
		if p.blocks.uncentered {
			p.blocks.uncentered, p.blocks.addY, p.blocks.hostX = false, nil, backend.NewHost[float64](p.blocks.rows, s.d)
		}
		err = attemptPrimal(p, w.B)
	}
	if err != nil {
		return err
	}
	w.res.Coef = backend.NewHost[float64](s.d, s.t)
	if err := w.B.Download(w.res.Coef, p.coef); err != nil {
		return w.fail(err)
	}
	if err := w.finishIntercept(); err != nil {
		return err
	}
	if tol := w.par.tol(); !(w.res.Residual <= tol) {
		return &ConvergenceError{Tol: tol, Reason: "iterative refinement does not reduce it", Result: w.res}
	}
	return nil
}

// A primalSystem holds the normal equations of a linear kernel.
type primalSystem struct {
	*work
	blocks  *blocks
	coef, r backend.Matrix[float64] // the solution and its residual, d×t
}

// primalSteps limits the steps of refinement: more steps would take longer than a factor in float64.
const primalSteps = 8

// attemptPrimal solves the system with a factor in precision T, and sets the residual of the result. For float32 it
// returns an *accuracyError if a factor in float64 may succeed.
func attemptPrimal[T backend.Float](p *primalSystem, q backend.Backend[T]) error {
	w, s := p.work, p.s
	unit := numeric.UnitOf[T]()
	// In precision T, x is a block of X, y is a block of Y, and v is XᵀWy or a residual.
	var x, y, v backend.Matrix[T]
	v, exact := any(p.r).(backend.Matrix[T])
	if !exact {
		var err error
		for _, m := range []struct {
			m          *backend.Matrix[T]
			rows, cols int
		}{{&x, p.blocks.rows, s.d}, {&y, p.blocks.rows, s.t}, {&v, s.d, s.t}} {
			if *m.m, err = run.NewMatrix(w.Mem, q, m.rows, m.cols); err != nil {
				return w.fail(err)
			}
			defer w.Mem.Free(*m.m)
		}
	}
	a, err := run.NewMatrix(w.Mem, q, s.d, s.d)
	if err != nil {
		return w.fail(err)
	}
	defer w.Mem.Free(a)
	var diagonal, size []float64
	err = w.Timed("gram", &w.res.Seconds.Gram, func() error {
		beta := T(0)
		err := p.blocks.forEach(func(wideX, wideY backend.Matrix[float64]) {
			x, y := inPrecision(w, x, wideX), inPrecision(w, y, wideY)
			q.Syrk(backend.Lower, backend.Transpose, 1, x, beta, a)
			q.Gemm(backend.Transpose, backend.NoTrans, 1, x, y, beta, v)
			beta = 1
		})
		if err != nil {
			return err
		}
		if p.blocks.uncentered { // Σ(x − x̄)(x − x̄)ᵀ = Σ xxᵀ − n x̄x̄ᵀ
			mean := backend.NewHost[T](1, s.d)
			for j, v := range s.meanX[0] {
				mean.Data[j] = T(v)
			}
			m, err := backend.Copy(q, mean)
			if err != nil {
				return err
			}
			q.Syrk(backend.Lower, backend.Transpose, -T(s.n), m, 1, a)
			m.Free()
		}
		rhsT := backend.NewHost[T](s.d, s.t)
		if err := q.Download(rhsT, v); err != nil {
			return err
		}
		rhs := backend.NewHost[float64](s.d, s.t)
		numeric.Widen(rhs.Data, rhsT.Data)
		diag, err := numeric.Diagonal(q, a)
		if err != nil {
			return err
		}
		diagonal = make([]float64, s.d)
		numeric.Widen(diagonal, diag)
		size = s.primalScales(rhs, numeric.Trace(diagonal), w.par.tol())
		q.AddDiag([]T{T(s.Lambda)}, a)
		for i, v := range diag {
			diagonal[i] = float64(v + T(s.Lambda))
		}
		return w.B.Upload(p.r, rhs)
	})
	if err != nil {
		return w.fail(err)
	}
	err = w.Timed("factor", &w.res.Seconds.Factor, func() error {
		if err := q.Potrf(backend.Lower, a); err != nil {
			return err
		}
		pivots, err := numeric.Diagonal(q, a)
		if err != nil {
			return err
		}
		pivots64 := make([]float64, s.d)
		numeric.Widen(pivots64, pivots)
		return w.checkPivots(pivots64, diagonal, unit)
	})
	if pivot := (*backend.PivotError)(nil); !exact && errors.As(err, &pivot) {
		return &accuracyError{fmt.Errorf("pivot %d is a rounding error", pivot.Index+1)}
	}
	if err != nil {
		return w.primalPivot(err, diagonal)
	}
	return w.Timed("solve", &w.res.Seconds.Solve, func() error {
		numeric.Zero(w.B, p.coef)
		previous := math.Inf(1)
		for step := 1; ; step++ {
			v := inPrecision(w, v, p.r)
			numeric.SolveCholesky(q, a, v)
			if single, ok := any(v).(backend.Matrix[float32]); ok {
				if err := q.Sync(); err != nil {
					return w.fail(err)
				}
				w.Dev.Widen(p.r, single)
			}
			w.B.ColAxpy(numeric.Repeated(1.0, s.t), p.r, p.coef)
			if err := p.normalResidual(); err != nil {
				return w.fail(err)
			}
			if exact && step == 1 {
				continue
			}
			residual := backend.NewHost[float64](s.d, s.t)
			if err := w.B.Download(residual, p.r); err != nil {
				return w.fail(err)
			}
			w.res.Residual = 0
			for j := range s.t {
				r := numeric.Norm(s.d, func(i int) float64 { return residual.Row(i)[j] })
				w.res.Residual = max(w.res.Residual, numeric.Ratio(r, size[j]))
			}
			// Refinement in float32 continues to 10⁻⁴ of the tolerance: for most X, the solution is then as
			// accurate as by a factor in float64.
			switch slow := !(w.res.Residual <= previous/10); {
			case exact || w.res.Residual <= w.par.tol()/1e4 || slow && w.res.Residual <= w.par.tol():
				return nil
			case slow || step == primalSteps:
				return &accuracyError{fmt.Errorf("refinement leaves a relative residual of %.2g", w.res.Residual)}
			}
			previous = w.res.Residual
		}
	})
}

// inPrecision returns m in precision T, rounded into the leading rows of buffer if T is not float64.
func inPrecision[T backend.Float](w *work, buffer backend.Matrix[T], m backend.Matrix[float64]) backend.Matrix[T] {
	if same, ok := any(m).(backend.Matrix[T]); ok {
		return same
	}
	rows, cols := m.Dims()
	buffer = buffer.View(0, 0, rows, cols)
	w.Dev.Narrow(any(buffer).(backend.Matrix[float32]), m)
	return buffer
}

// primalScales returns the divisor of the relative residual for each output: the norm of the column of rhs = XᵀWy, or a
// larger number if this norm is near its rounding errors (see Solution.Residual). squares is ‖W^½X‖².
func (s *samples) primalScales(rhs backend.Host[float64], squares, tol float64) []float64 {
	size := make([]float64, s.t)
	y := backend.NewHost[float64](min(s.n, 256), s.t)
	for j := range size {
		first := -1 // index of the sample in row 0 of y
		length := numeric.Norm(s.n, func(i int) float64 {
			if from := i - i%y.Rows; from != first {
				first = from
				s.fill(y.View(0, 0, min(y.Rows, s.n-from), s.t), s.Y, s.meanY, from, true)
			}
			return y.Row(i - first)[j]
		})
		rhsNorm := numeric.Norm(s.d, func(i int) float64 { return rhs.Row(i)[j] })
		size[j] = numeric.ScaleOf(rhsNorm, math.Sqrt(squares)*length, numeric.SumRounding(s.n+s.d), tol)
	}
	return size
}

// normalResidual sets r to XᵀW(y − X coef) − λ coef, and Result.RSS to the sum of W(y − X coef)² for each output.
func (p *primalSystem) normalResidual() error {
	if s := p.s; p.blocks.uncentered { // add x̄ᵀw to y, because (x − x̄)ᵀw = xᵀw − x̄ᵀw; the residuals sum to 0
		coef := backend.NewHost[float64](s.d, s.t)
		if err := p.B.Download(coef, p.coef); err != nil {
			return err
		}
		p.blocks.addY = make([]float64, s.t)
		for i, v := range s.meanX[0] {
			numeric.Axpy(v, coef.Row(i), p.blocks.addY)
		}
	}
	beta := 0.0
	squares, blockSquares := make([]float64, p.s.t), make([]float64, p.s.t)
	var failed error
	err := p.blocks.forEach(func(x, y backend.Matrix[float64]) {
		p.B.Gemm(backend.NoTrans, backend.NoTrans, -1, x, p.coef, 1, y)
		p.B.Gemm(backend.Transpose, backend.NoTrans, 1, x, y, beta, p.r)
		beta = 1
		failed = cmp.Or(failed, p.B.ColDot(blockSquares, y, y))
		numeric.Axpy(1, blockSquares, squares)
	})
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	p.res.RSS = squares
	p.B.ColAxpy(numeric.Repeated(-p.s.Lambda, p.s.t), p.coef, p.r)
	return nil
}

// blocks copies blocks of samples to the device: √w_i (x_i − x̄) and √w_i (y_i − ȳ), or x_i and y_i − ȳ + addY if
// uncentered is set.
type blocks struct {
	w            *call
	rows         int
	wrap         backend.Wrapper[float64] // not nil if the device can use Go memory
	x, y         backend.Matrix[float64]  // on the device; x is nil if wrap is set
	hostX, hostY backend.Host[float64]    // hostX is empty if X is used unchanged
	uncentered   bool
	addY         []float64
}

func (w *call) newBlocks(uncentered bool) (*blocks, error) {
	s := w.s
	b := &blocks{w: w, rows: blockRows(s.n, s.d), wrap: numeric.Wrapper(w.Dev), uncentered: uncentered}
	if !s.unchanged(true) && !uncentered {
		b.hostX = backend.NewHost[float64](b.rows, s.d)
	}
	b.hostY = backend.NewHost[float64](b.rows, s.t)
	var err error
	if b.y, err = w.Mem.New(b.rows, s.t); err != nil {
		return nil, err
	}
	if b.wrap == nil {
		b.x, err = w.Mem.New(b.rows, s.d)
	}
	return b, err
}

// forEach calls f for every block in turn. f may overwrite y.
func (b *blocks) forEach(f func(x, y backend.Matrix[float64])) error {
	s := b.w.s
	for i := 0; i < s.n; i += b.rows {
		r := min(b.rows, s.n-i)
		hy, y := b.hostY.View(0, 0, r, s.t), b.y.View(0, 0, r, s.t)
		s.fill(hy, s.Y, s.meanY, i, true)
		if b.addY != nil {
			for k := range r {
				for c, v := range b.addY {
					hy.Row(k)[c] += v
				}
			}
		}
		if err := b.w.B.Upload(y, hy); err != nil {
			return err
		}
		hx := s.X
		if b.hostX.Data != nil {
			hx = b.hostX.View(0, 0, r, s.d)
			s.fill(hx, s.X, s.meanX, i, true)
		} else {
			hx = hx.View(i, 0, r, s.d)
		}
		if b.wrap != nil {
			x := b.wrap.Wrap(hx)
			f(x, y)
			err := b.w.B.Sync()
			x.Free()
			if err != nil {
				return err
			}
			continue
		}
		x := b.x.View(0, 0, r, s.d)
		if err := b.w.B.Upload(x, hx); err != nil {
			return err
		}
		f(x, y)
	}
	return nil
}

// roundingOfColumn bounds the weighted sum of squares of column j of centered X if the column is constant. Its
// elements then differ from the mean by about ε times the mean. weight is the sum of the weights.
func (s *samples) roundingOfColumn(j int, weight float64) float64 {
	if s.meanX == nil {
		return 0
	}
	e := 4 * numeric.Epsilon * s.meanX[0][j]
	return weight * e * e
}

func (s *samples) totalWeight() (sum float64) {
	for i := range s.n {
		sum += s.weightOf(i)
	}
	return sum
}

// primalPivot adds an explanation and advice to the error of a failed factorization of XᵀWX + λI.
func (w *work) primalPivot(err error, diagonal []float64) error {
	var pivot *backend.PivotError
	if !errors.As(err, &pivot) {
		return w.fail(err)
	}
	j := pivot.Index + 1
	if numeric.Overflowed(pivot) {
		return numeric.ExplainPivot(pivot, "solvers: primal: XᵀX overflows at column %d: scale the features down", j)
	}
	reason := "a linear combination of the columns before it"
	switch {
	case w.s.n < w.s.d:
		reason = fmt.Sprintf("linearly dependent on the columns before it, because x has only %s", count.Of(w.s.n, "sample"))
	case w.s.meanX != nil && j == 1:
		reason = "constant"
	case w.s.meanX != nil:
		reason = "constant or a linear combination of the columns before it"
	case j == 1:
		reason = "zero"
	}
	return numeric.ExplainPivot(pivot, "solvers: primal: x does not have full rank: column %d is %s (pivot %.3g): {remove the column|raise $lambda above "+fmt.Sprintf("%.2g", w.sufficientLambda(diagonal))+"}", j, reason, pivot.Value)
}

// sparsePrimal solves (XᵀWX + λI)w = XᵀWy for sparse samples by conjugate gradients, preconditioned by the
// diagonal. With an intercept, y is centered, and (X − 1x̄ᵀ)p = Xp − 1(x̄ᵀp) replaces Xp.
type sparsePrimal struct{}

// sparsePrimalProducts is the expected number of products with XᵀWX + λI.
const sparsePrimalProducts = 200

func sparsePrimalEstimate(z *sizes) (estimate, error) {
	if z.p.Lambda == 0 {
		return estimate{}, message.Errorf("solvers: primal: sparse samples need lambda > 0: {raise $lambda|make the samples dense}")
	}
	products := 2 * flop.Gemm(z.n, z.t, z.d)
	return estimate{
		settings: sparsePrimal{},
		stages:   []stage{{"solve", sparsePrimalProducts * products}},
		cost:     sparsePrimalProducts * 4 * float64(z.p.Sparse.NNZ()) * float64(z.t) * z.costs().thin,
		// The search direction p and Xp are on the device. The other vectors are in Go memory.
		bytesOf: func(n int) int64 {
			return numeric.Total(z.bytesOfX(n), numeric.Bytes(numeric.Total(numeric.Elements(3*n, z.t), numeric.Elements(8*z.d, z.t), int64(2*z.d))))
		},
	}, nil
}

// normalEquations multiplies by XᵀWX + λI for sparsePrimal.
type normalEquations struct {
	w        *work
	x        backend.Matrix[float64]
	v, u     backend.Matrix[float64] // d×t and n×t on the device
	host     backend.Host[float64]   // n×t
	mean     []float64               // x̄; zeros without intercept
	diagonal []float64               // diagonal of XᵀWX + λI
	squares  float64                 // ‖W^½X‖²
}

func (w *work) newNormalEquations() (*normalEquations, error) {
	s := w.s
	e := &normalEquations{w: w, mean: make([]float64, s.d), diagonal: make([]float64, s.d), host: backend.NewHost[float64](s.n, s.t)}
	var err error
	if e.x, err = w.placeX(); err == nil {
		if e.v, err = w.Mem.New(s.d, s.t); err == nil {
			e.u, err = w.Mem.New(s.n, s.t)
		}
	}
	if err != nil {
		return nil, err
	}
	total, stored := 0.0, make([]float64, s.d)
	visitAll := func(visit func(c int32, weight, v float64)) {
		for i := range s.n {
			columns, values := s.Sparse.Row(s.row(i))
			for k, c := range columns {
				visit(c, s.weightOf(i), values[k])
			}
		}
	}
	for i := range s.n {
		total += s.weightOf(i)
	}
	visitAll(func(c int32, weight, v float64) {
		e.mean[c] += weight / total * v
		stored[c] += weight
	})
	if !s.Intercept {
		clear(e.mean)
	}
	visitAll(func(c int32, weight, v float64) { e.diagonal[c] += weight * (v - e.mean[c]) * (v - e.mean[c]) })
	for c, m := range e.mean {
		e.diagonal[c] += max(total-stored[c], 0) * m * m
		e.squares += e.diagonal[c]
		if d := e.diagonal[c]; d-d != 0 {
			return nil, errors.New("XᵀX overflows: scale the features down")
		}
		e.diagonal[c] += s.Lambda
	}
	return e, nil
}

// transposed sets dst to XᵀWu for centered X. It overwrites u.
func (e *normalEquations) transposed(dst, u backend.Host[float64]) error {
	s, b := e.w.s, e.w.B
	sums := make([]float64, s.t)
	for i := range s.n {
		row := u.Row(i)
		for j := range row {
			row[j] *= s.weightOf(i)
			sums[j] += row[j]
		}
	}
	if err := b.Upload(e.u, u); err != nil {
		return err
	}
	b.Gemm(backend.Transpose, backend.NoTrans, 1, e.x, e.u, 0, e.v)
	if err := b.Download(dst, e.v); err != nil {
		return err
	}
	for p, m := range e.mean {
		numeric.Axpy(-m, sums, dst.Row(p))
	}
	return nil
}

// apply sets dst to (XᵀWX + λI)p or, if residual is set, to XᵀW(y − Xp) − λp with centered y.
func (e *normalEquations) apply(dst, p backend.Host[float64], residual bool) error {
	s, b := e.w.s, e.w.B
	shift := make([]float64, s.t)
	for c, m := range e.mean {
		numeric.Axpy(m, p.Row(c), shift)
	}
	if err := b.Upload(e.v, p); err != nil {
		return err
	}
	b.Gemm(backend.NoTrans, backend.NoTrans, 1, e.x, e.v, 0, e.u)
	if err := b.Download(e.host, e.u); err != nil {
		return err
	}
	y := backend.NewHost[float64](1, s.t)
	for i := range s.n {
		row := e.host.Row(i)
		numeric.Axpy(-1, shift, row)
		if residual {
			s.fill(y, s.Y, s.meanY, i, false)
			for j, v := range y.Data {
				row[j] = v - row[j]
			}
		}
	}
	if err := e.transposed(dst, e.host); err != nil {
		return err
	}
	lambda := s.Lambda
	if residual {
		lambda = -lambda
	}
	numeric.Axpy(lambda, p.Data, dst.Data)
	return nil
}

func (sparsePrimal) run(w *work) error {
	e, err := w.newNormalEquations()
	if err == nil {
		err = w.Timed("solve", &w.res.Seconds.Solve, e.solve)
	}
	if err != nil {
		return w.fail(err)
	}
	for p, m := range e.mean {
		for j, v := range w.res.Coef.Row(p) {
			w.res.Intercept[j] -= m * v
		}
	}
	if err := w.finishIntercept(); err != nil {
		return err
	}
	if tol := w.par.tol(); !(w.res.Residual <= tol) {
		return &ConvergenceError{Tol: tol, Reason: "conjugate gradients do not reduce it", Result: w.res}
	}
	return nil
}

// solve runs conjugate gradients until the residual that the iteration updates is at most tol/100. If the residual
// computed from the solution exceeds tol, solve restarts from this solution, at most three times.
func (e *normalEquations) solve() error {
	w, s := e.w, e.w.s
	coef, r, p, q := backend.NewHost[float64](s.d, s.t), backend.NewHost[float64](s.d, s.t), backend.NewHost[float64](s.d, s.t), backend.NewHost[float64](s.d, s.t)
	w.res.Coef = coef
	if err := e.apply(r, coef, true); err != nil { // XᵀWy
		return err
	}
	size := s.primalScales(r, e.squares, w.par.tol())
	column := func(h backend.Host[float64], j int) float64 {
		return numeric.Norm(s.d, func(i int) float64 { return h.Row(i)[j] })
	}
	rz, active := make([]float64, s.t), make([]bool, s.t)
	for attempt := 0; ; attempt++ {
		w.res.Residual = 0
		unconverged := false
		for j := range s.t {
			relative := numeric.Ratio(column(r, j), size[j])
			w.res.Residual = max(w.res.Residual, relative)
			active[j] = relative > w.par.tol()/100
			unconverged = unconverged || active[j]
		}
		if !unconverged || attempt > 0 && w.res.Residual <= w.par.tol() || attempt == 4 || w.res.Iters >= w.par.maxIter() {
			return nil
		}
		clear(p.Data)
		clear(rz)
		for unconverged && w.res.Iters < w.par.maxIter() {
			if err := w.Ctx.Err(); err != nil {
				return err
			}
			// p ← M⁻¹r + βp with the diagonal M
			beta := make([]float64, s.t)
			for j := range beta {
				sum := 0.0
				for i, d := range e.diagonal {
					sum += r.Row(i)[j] * r.Row(i)[j] / d
				}
				if rz[j] > 0 {
					beta[j] = sum / rz[j]
				}
				rz[j] = sum
			}
			for i, d := range e.diagonal {
				row := p.Row(i)
				for j := range row {
					row[j] = r.Row(i)[j]/d + beta[j]*row[j]
				}
			}
			if err := e.apply(q, p, false); err != nil {
				return err
			}
			w.res.Iters++
			unconverged = false
			for j := range s.t {
				curvature := 0.0
				for i := range s.d {
					curvature += p.Row(i)[j] * q.Row(i)[j]
				}
				if !active[j] || !(curvature > 0) {
					active[j] = false
					continue
				}
				step := rz[j] / curvature
				for i := range s.d {
					coef.Row(i)[j] += step * p.Row(i)[j]
					r.Row(i)[j] -= step * q.Row(i)[j]
				}
				active[j] = numeric.Ratio(column(r, j), size[j]) > w.par.tol()/100
				unconverged = unconverged || active[j]
			}
		}
		if err := e.apply(r, coef, true); err != nil {
			return err
		}
	}
}
