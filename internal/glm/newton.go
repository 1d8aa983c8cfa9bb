package glm

import (
	"errors"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/pages"
	"github.com/mercer-go/mercer/internal/run"
)

// newton minimizes F by Newton's method: iteratively reweighted least squares. Each step solves H s = ∇F with the
// exact Hessian,
//
//	H_ab = X̃ᵀ diag(w_i p_ia ([a = b] − p_ib)) X̃ + [a = b] λI′
//
// where X̃ = (x − x̄, 1). The step is halved until F decreases by at least 1e-4 of the decrease that the slope
// predicts. The iteration stops when the quadratic model predicts a decrease below tol·F.
func (l *logit) newton(p *point, tol float64, maxIter int, report func(iter int, gain, value float64) error) (_ *point, iter int, reason ending, err error) {
	for iter := 0; ; iter++ {
		if done, err := l.separated(); done {
			return p, iter, stalled, err
		}
		step, err := l.newtonStep(p.gradient)
		if err != nil {
			return p, iter, stalled, err
		}
		decrement := dot(step, p.gradient)
		gain := decrement / 2 / max(p.value, math.SmallestNonzeroFloat64)
		if err := report(iter, gain, p.value); err != nil {
			return p, iter, stalled, err
		}
		if iter == maxIter && gain > tol {
			return p, iter, exhausted, nil
		}
		var next *point
		accepted := false
		for t := 1.0; t > 1e-10 && !accepted; t /= 2 {
			if next, err = l.pointAt(addScaled(p.theta, -t, step)); err != nil {
				return p, iter, stalled, err
			}
			// Accept an increase of F by a rounding error, which exceeds the decrease in the last steps.
			accepted = next.value <= p.value-1e-4*t*decrement+16*0x1p-52*p.value
		}
		if accepted {
			p = next
		}
		if gain <= tol {
			return p, min(iter+1, maxIter), converged, nil
		}
		if !accepted {
			return p, iter, stalled, nil
		}
	}
}

func hessianBytes(n, d, c int) int64 {
	size, rows := int64(d+1)*int64(c), int64(min(n, hessianRows(d)))
	e := size*size + size + rows*int64(d+1)
	if c > 1 {
		e += (rows + int64(d+1)) * int64(d+1)
	}
	return 8 * e
}

// hessianRows returns the number of samples in a block of about 4 MiB, which hessian multiplies by weights.
func hessianRows(d int) int { return max(64, 1<<19/(d+1)) }

// newtonStep returns H⁻¹·gradient at the point of the last eval. If Cholesky fails although λ > 0, it increases
// the diagonal of H by about its rounding error, which shortens the step.
func (l *logit) newtonStep(gradient backend.Host[float64]) (backend.Host[float64], error) {
	b, m := l.t.B, l.d+1
	size := m * l.c
	h, err := b.New(size, size)
	if err != nil {
		return gradient, err
	}
	defer h.Free()
	// column holds the gradient class by class, in the order of the blocks of H.
	column := backend.NewHost[float64](size, 1)
	for p := range m {
		for c, v := range gradient.Row(p) {
			column.Data[c*m+p] = v
		}
	}
	v, err := backend.Copy(b, column)
	if err != nil {
		return gradient, err
	}
	defer v.Free()
	var diagonal []float64
	for raise := 0.0; ; raise = max(100*raise, float64(size)*epsilon) {
		if err := l.hessian(h); err != nil {
			return gradient, err
		}
		if l.lambda == 0 || raise > 0 {
			if diagonal, err = l.diagonal(h); err != nil {
				return gradient, err
			}
		}
		if raise > 0 {
			increase := make([]float64, size)
			for i, d := range diagonal {
				increase[i] = raise * d
			}
			b.AddDiag(increase, h)
		}
		err := b.Potrf(backend.Lower, h)
		if err == nil {
			break
		}
		if !errors.As(err, new(*backend.PivotError)) {
			return gradient, err
		}
		if l.lambda == 0 || raise > 1e-4 {
			return gradient, message.Errorf("the Hessian is not positive definite, because features depend on each other or the classes are nearly separated: {raise $lambda}: %w", err)
		}
		if err := b.Upload(h, backend.NewHost[float64](size, size)); err != nil {
			return gradient, err
		}
	}
	if err := l.checkRank(h, diagonal); err != nil {
		return gradient, err
	}
	b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, h, v)
	b.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, h, v)
	if err := b.Download(column, v); err != nil {
		return gradient, err
	}
	step := l.zero()
	for p := range m {
		for c := range l.c {
			step.Row(p)[c] = column.Data[c*m+p]
		}
	}
	return step, nil
}

// diagonal returns the diagonal of a matrix. It reads square blocks along the diagonal from the device.
func (l *logit) diagonal(h backend.Matrix[float64]) ([]float64, error) {
	size, _ := h.Dims()
	side := min(size, 64)
	block, d := backend.NewHost[float64](side, side), make([]float64, size)
	for i := 0; i < size; i += side {
		part := block.View(0, 0, min(side, size-i), min(side, size-i))
		if err := l.t.B.Download(part, h.View(i, i, part.Rows, part.Cols)); err != nil {
			return nil, err
		}
		for k := range part.Rows {
			d[i+k] = part.Row(k)[k]
		}
	}
	return d, nil
}

// checkRank returns an error if there is no penalty and the square of a pivot of the factor is at most the rounding
// error of the diagonal element of H. The element has n roundings from its sum, and one from each elimination step.
func (l *logit) checkRank(factor backend.Matrix[float64], diagonal []float64) error {
	if l.lambda > 0 {
		return nil
	}
	pivots, err := l.diagonal(factor)
	if err != nil {
		return err
	}
	for i, p := range pivots {
		if !(p*p > 4*float64(l.n+len(pivots))*0x1p-52*diagonal[i]) {
			return message.Errorf("feature %d is a linear combination of other features, so that w is not unique without a penalty: {raise $lambda|leave the feature out}", i%(l.d+1)+1)
		}
	}
	return nil
}

// hessian computes the lower triangle of H in h.
func (l *logit) hessian(h backend.Matrix[float64]) error {
	b, m, rows := l.t.B, l.d+1, hessianRows(l.d)
	if l.rowBuffer.Data == nil {
		l.rowBuffer = backend.Host[float64]{Rows: min(rows, l.n), Cols: m, Stride: m, Data: pages.Zeros[float64](min(rows, l.n) * m)}
		if l.scaledBuffer = l.rowBuffer; l.c > 1 {
			l.scaledBuffer.Data = pages.Zeros[float64](min(rows, l.n) * m)
		}
	}
	for from := 0; from < l.n; from += rows {
		count := min(rows, l.n-from)
		part, weighted := l.rowBuffer.View(0, 0, count, m), l.scaledBuffer.View(0, 0, count, m)
		l.forEachPart(0, count, partRows, func(_, first, last int) {
			for i := first; i < last; i++ {
				row := part.Row(i)
				l.points.CopyPoint(row[:l.d], from+i)
				for q, mean := range l.mean {
					row[q] -= mean
				}
				row[l.d] = 0
				if l.mean != nil {
					row[l.d] = 1
				}
			}
		})
		for a := range l.c {
			for c := range a + 1 {
				l.forEachPart(0, count, partRows, func(_, first, last int) {
					for i := first; i < last; i++ {
						scale := l.curvature(from+i, a, c)
						to := weighted.Row(i)
						for q, v := range part.Row(i) {
							to[q] = scale * v
						}
					}
				})
				block := h.View(a*m, c*m, m, m)
				err := run.Placed(b, part, weighted, func(x, y backend.Matrix[float64]) error {
					if a == c {
						b.Syrk(backend.Lower, backend.Transpose, 1, y, 1, block)
					} else {
						b.Gemm(backend.Transpose, backend.NoTrans, 1, x, y, 1, block)
					}
					return b.Sync()
				})
				if err != nil {
					return err
				}
			}
		}
	}
	return l.penalize(h)
}

// curvature returns −w p_a p_c of sample i for a ≠ c, with the probabilities p of the last eval. For a = c it
// returns √(w p_a (1 − p_a)), by which hessian scales both factors of a diagonal block.
func (l *logit) curvature(i, a, c int) float64 {
	w := l.weight(i)
	if w == 0 {
		return 0
	}
	residual := l.residual.Row(i)
	if a == c { // q is p or 1 − p: l.residual holds one of them without cancellation
		q := math.Abs(residual[a]) / w
		return math.Sqrt(max(w*q*(1-q), 0))
	}
	pa, pc := residual[a]/w, residual[c]/w
	switch l.index[i] {
	case a:
		pa++
	case c:
		pc++
	}
	return -w * pa * pc
}

// penalize adds λ to the diagonal of h, except for the intercepts. If W has a column for each class, adding the same
// vector to all columns changes no probability, so that the gradient is 0 in these directions. The eigenvalues of H in
// these directions may be below the rounding errors of H. penalize therefore adds the mean of the diagonal elements
// over the classes in these directions, which changes no step.
func (l *logit) penalize(h backend.Matrix[float64]) error {
	m := l.d + 1
	add := make([]float64, m*l.c)
	for k := range add {
		add[k] = l.lambda
		if k%m == l.d {
			add[k] = 0
			if l.mean == nil {
				add[k] = 1
			}
		}
	}
	l.t.B.AddDiag(add, h)
	if l.c == 1 || l.reference {
		return nil
	}
	diagonal, err := l.diagonal(h)
	if err != nil {
		return err
	}
	shared := make([]float64, m)
	for k, v := range diagonal {
		shared[k%m] += v / float64(l.c*l.c)
	}
	for a := range l.c {
		for c := range a + 1 {
			l.t.B.AddDiag(shared, h.View(a*m, c*m, m, m))
		}
	}
	return nil
}
