package glm

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
)

// lbfgsPairs is the number of steps that L-BFGS remembers.
const lbfgsPairs = 20

// lbfgs minimizes F by the limited-memory method of Broyden, Fletcher, Goldfarb
// and Shanno, whose first guess of the inverse Hessian is a metric: the solution
// of M s = g. It stops when gᵀM⁻¹g/2, about what F may still fall by, is below
// tol of F.
//
// Source: Nocedal (1980), Updating quasi-Newton matrices with limited storage.
func (l *logit) lbfgs(metric metric, tol float64, most int, at func(iter int, gain float64) error) (backend.Host[float64], int, error) {
	theta, gradient := l.zero(), l.zero()
	value, err := l.eval(theta, gradient)
	if err != nil {
		return theta, 0, err
	}
	var steps, changes []backend.Host[float64]
	var curvature []float64
	for iter := range most {
		if err := l.separated(); err != nil {
			return theta, iter, err
		}
		if err := metric.refresh(l.spread); err != nil {
			return theta, iter, err
		}
		plain, err := metric.solve(gradient)
		if err != nil {
			return theta, iter, err
		}
		gain := dot(gradient, plain) / 2 / max(value, math.SmallestNonzeroFloat64)
		if err := at(iter, gain); err != nil {
			return theta, iter, err
		}
		if gain <= tol {
			return theta, iter, nil
		}
		direction, err := twoLoops(metric, gradient, steps, changes, curvature)
		if err != nil {
			return theta, iter, err
		}
		slope := -dot(gradient, direction)
		if !(slope < 0) {
			direction, slope = plain, -dot(gradient, plain)
			steps, changes, curvature = nil, nil, nil
		}
		next, nextGradient, nextValue, err := l.search(theta, direction, value, slope)
		if err != nil {
			return theta, iter, err
		}
		if next.Data == nil {
			return theta, iter, message.Errorf("no step makes the loss smaller, which could still fall by about %.2g of itself: raise {lambda} or {tol}", gain)
		}
		s, y := along(next, -1, theta), along(nextGradient, -1, gradient)
		if sy := dot(s, y); sy > 1e-14*math.Sqrt(dot(s, s)*dot(y, y)) {
			steps, changes, curvature = append(steps, s), append(changes, y), append(curvature, sy)
			if len(steps) > lbfgsPairs {
				steps, changes, curvature = steps[1:], changes[1:], curvature[1:]
			}
		}
		theta, gradient, value = next, nextGradient, nextValue
	}
	return theta, most, message.Errorf("did not converge within %s: raise {lambda}, {tol} or {iterations}", count.Of(most, "iteration"))
}

// search goes along −direction until F has fallen by its share of the slope, and
// returns an empty point when rounding does not let it.
func (l *logit) search(theta, direction backend.Host[float64], value, slope float64) (next, gradient backend.Host[float64], nextValue float64, err error) {
	gradient = l.zero()
	for t := 1.0; t > 1e-12; {
		next = along(theta, -t, direction)
		if nextValue, err = l.eval(next, gradient); err != nil {
			return next, gradient, 0, err
		}
		if nextValue <= value+1e-4*t*slope {
			return next, gradient, nextValue, nil
		}
		// The minimum of the parabola through what is known.
		t = min(0.5*t, max(0.1*t, -slope*t*t/(2*(nextValue-value-t*slope))))
	}
	return backend.Host[float64]{}, gradient, 0, nil
}

// twoLoops applies the inverse Hessian that the pairs of steps and changes of the
// gradient tell of.
func twoLoops(m metric, gradient backend.Host[float64], steps, changes []backend.Host[float64], curvature []float64) (backend.Host[float64], error) {
	q := along(gradient, 0, gradient)
	k := len(steps)
	alpha := make([]float64, k)
	for i := k - 1; i >= 0; i-- {
		alpha[i] = dot(steps[i], q) / curvature[i]
		q = along(q, -alpha[i], changes[i])
	}
	r, err := m.solve(q)
	if err != nil {
		return r, err
	}
	if k > 0 {
		last, err := m.solve(changes[k-1])
		if err != nil {
			return r, err
		}
		scale := curvature[k-1] / dot(changes[k-1], last)
		for i := range r.Data {
			r.Data[i] *= scale
		}
	}
	for i := range k {
		beta := dot(changes[i], r) / curvature[i]
		r = along(r, alpha[i]-beta, steps[i])
	}
	return r, nil
}

// A metric is a guess M of the Hessian.
type metric interface {
	// refresh takes account of the mean of p(1−p).
	refresh(spread float64) error
	// solve returns M⁻¹g.
	solve(g backend.Host[float64]) (backend.Host[float64], error)
	free()
}

// metricFeatures is the largest number of features for which M is a full matrix:
// 128 MiB.
const metricFeatures = 4096

// fullMetric is M = v·X̃ᵀX̃ + λI for every class, v the mean of p(1−p): the
// Hessian if all samples were as uncertain as their mean. It takes one product
// XᵀX, and a Cholesky factor whenever v has halved.
type fullMetric struct {
	l       *logit
	gram    backend.Matrix[float64] // d×d
	factor  backend.Matrix[float64]
	v       backend.Matrix[float64] // d×C
	spread  float64
	total   float64 // Σ w_i
	average float64 // of the diagonal of XᵀX
}

func metricBytes(d, c int) int64 { return 8 * (2*int64(d)*int64(d) + int64(d)*int64(c)) }

func (l *logit) fullMetric() (m *fullMetric, err error) {
	m = &fullMetric{l: l}
	b := l.t.B
	defer func() {
		if err != nil {
			m.free()
		}
	}()
	if m.gram, err = b.New(l.d, l.d); err != nil {
		return m, err
	}
	if m.factor, err = b.New(l.d, l.d); err != nil {
		return m, err
	}
	if m.v, err = b.New(l.d, l.c); err != nil {
		return m, err
	}
	for i := range l.n {
		m.total += l.weight(i)
	}
	if l.weights == nil {
		b.Syrk(backend.Lower, backend.Transpose, 1, l.x, 0, m.gram)
	} else if err = l.weightedGram(m.gram); err != nil {
		return m, err
	}
	g := backend.NewHost[float64](l.d, l.d)
	if err = b.Download(g, m.gram); err != nil {
		return m, err
	}
	for p := range l.d {
		row := g.Row(p)[:p+1]
		for q := range row {
			if l.mean != nil {
				row[q] -= m.total * l.mean[p] * l.mean[q]
			}
		}
		m.average += max(row[p], 0) / float64(l.d)
	}
	return m, b.Upload(m.gram, g)
}

// weightedGram sets g to XᵀWX.
func (l *logit) weightedGram(g backend.Matrix[float64]) error {
	rows := hessianRows(l.d)
	part := backend.NewHost[float64](min(rows, l.n), l.d)
	for from := 0; from < l.n; from += rows {
		block := part.View(0, 0, min(rows, l.n-from), l.d)
		for i := range block.Rows {
			root := math.Sqrt(l.weight(from + i))
			for q, v := range l.hx.Row(from + i) {
				block.Row(i)[q] = root * v
			}
		}
		x, err := backend.Place(l.t.B, block)
		if err != nil {
			return err
		}
		l.t.B.Syrk(backend.Lower, backend.Transpose, 1, x, 1, g)
		err = l.t.B.Sync()
		x.Free()
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *fullMetric) refresh(spread float64) error {
	if m.spread != 0 && spread > m.spread/2 {
		return nil
	}
	m.spread = max(spread, 1e-6)
	b, g := m.l.t.B, backend.NewHost[float64](m.l.d, m.l.d)
	if err := b.Download(g, m.gram); err != nil {
		return err
	}
	// Rounding may leave no more than this of directions that X does not have.
	least := 1e-10*m.average*m.spread + math.SmallestNonzeroFloat64
	for p := range m.l.d {
		row := g.Row(p)
		for q := range row[:p+1] {
			row[q] *= m.spread
		}
		row[p] += max(m.l.lambda, least)
	}
	if err := b.Upload(m.factor, g); err != nil {
		return err
	}
	return b.Potrf(backend.Lower, m.factor)
}

func (m *fullMetric) solve(g backend.Host[float64]) (backend.Host[float64], error) {
	b, d := m.l.t.B, m.l.d
	s := along(g, 0, g)
	if err := b.Upload(m.v, g.View(0, 0, d, g.Cols)); err != nil {
		return s, err
	}
	b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, m.factor, m.v)
	b.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, m.factor, m.v)
	if err := b.Download(s.View(0, 0, d, g.Cols), m.v); err != nil {
		return s, err
	}
	for c := range g.Cols {
		s.Row(d)[c] /= m.spread * m.total
	}
	return s, nil
}

func (m *fullMetric) free() {
	for _, a := range []backend.Matrix[float64]{m.gram, m.factor, m.v} {
		if a != nil {
			a.Free()
		}
	}
}

// diagonalMetric is the diagonal of fullMetric's M, for many features.
type diagonalMetric struct {
	l      *logit
	square []float64 // Σ w_i (x_ip − x̄_p)², and Σ w_i
	spread float64
}

func (l *logit) diagonalMetric() *diagonalMetric {
	m := &diagonalMetric{l: l, square: make([]float64, l.d+1)}
	for i := range l.n {
		w := l.weight(i)
		m.square[l.d] += w
		for p, v := range l.hx.Row(i) {
			if l.mean != nil {
				v -= l.mean[p]
			}
			m.square[p] += w * v * v
		}
	}
	return m
}

func (m *diagonalMetric) refresh(spread float64) error {
	m.spread = max(spread, 1e-6)
	return nil
}

func (m *diagonalMetric) solve(g backend.Host[float64]) (backend.Host[float64], error) {
	s := along(g, 0, g)
	for p := range s.Rows {
		scale := m.spread * m.square[p]
		if p < m.l.d {
			scale += m.l.lambda
		}
		for c := range s.Row(p) {
			s.Row(p)[c] /= scale + 1e-10*m.spread*m.square[m.l.d]
		}
	}
	return s, nil
}

func (m *diagonalMetric) free() {}
