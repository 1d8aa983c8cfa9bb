package glm

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
)

// lbfgsPairs is the number of steps that L-BFGS remembers.
const lbfgsPairs = 20

// lbfgs minimizes F by the limited-memory method of Broyden, Fletcher, Goldfarb
// and Shanno, whose first guess of the inverse Hessian is a metric: the solution
// of M s = g. It stops when what F may still fall by is below tol of F: gᵀs/2 by M and
// by the method's own guess, and what its last falls forecast, for both guesses are
// small where M is far from the Hessian. Or it stops where F has been evaluated so often
// that another way costs less.
//
// Source: Nocedal (1980), Updating quasi-Newton matrices with limited storage.
func (l *logit) lbfgs(p *point, metric metric, tol float64, most, evaluations int, at func(iter int, gain, value float64) error) (_ *point, iter int, done bool, err error) {
	defer metric.free()
	var known secants
	var before backend.Host[float64] // M⁻¹∇F at the point before
	var falls []float64              // of F
	evaluations += l.evals
	for iter := range most {
		if err := l.separated(); err != nil {
			return p, iter, false, err
		}
		changed, err := metric.refresh(l.spread)
		if err != nil {
			return p, iter, false, err
		}
		plain, err := metric.solve(p.gradient)
		if err == nil && len(known) > 0 {
			if changed {
				err = known.refresh(metric)
			} else if last := &known[len(known)-1]; last.my.Data == nil {
				last.my = along(plain, -1, before)
			}
		}
		if err != nil {
			return p, iter, false, err
		}
		direction := known.direction(p.gradient, plain)
		slope := -dot(p.gradient, direction)
		if !(slope < 0) {
			direction, slope, known = plain, -dot(p.gradient, plain), nil
		}
		gain := max(dot(p.gradient, plain)/2, -slope/2, forecast(falls)) / max(p.value, math.SmallestNonzeroFloat64)
		if err := at(iter, gain, p.value); err != nil {
			return p, iter, false, err
		}
		if gain <= tol {
			return p, iter, true, nil
		}
		if l.evals >= evaluations {
			return p, iter, false, nil
		}
		next, err := l.search(p, direction, slope)
		if err != nil {
			return p, iter, false, err
		}
		if next == nil {
			return p, iter, false, noStep(gain)
		}
		known = known.add(p, next)
		falls = append(falls, max(p.value-next.value-16*epsilon*p.value, 0))
		p, before = next, plain
	}
	return p, most, false, message.Errorf("did not converge within %s: {raise $lambda|raise $tol|raise $iterations}", count.Of(most, "iteration"))
}

// forecast is the sum of the falls to come if they go on to shrink as the last ones did.
func forecast(falls []float64) float64 {
	k := len(falls) - 1
	if k < 2 {
		return 0
	}
	ratio := min(math.Sqrt(falls[k]/falls[k-2]), 0.95)
	if !(ratio > 0) {
		return 0
	}
	return falls[k] * ratio / (1 - ratio)
}

func noStep(gain float64) error {
	return message.Errorf("no step makes the loss smaller, which could still fall by about %.2g of itself: {raise $lambda|raise $tol}", gain)
}

// search goes along −direction until F has fallen by its share of the slope, and
// returns nil when rounding does not let it.
func (l *logit) search(p *point, direction backend.Host[float64], slope float64) (*point, error) {
	for t := 1.0; t > 1e-12; {
		next, err := l.at(along(p.theta, -t, direction))
		if err != nil {
			return nil, err
		}
		if next.value <= p.value+1e-4*t*slope {
			return next, nil
		}
		// The minimum of the parabola through what is known.
		t = min(0.5*t, max(0.1*t, -slope*t*t/(2*(next.value-p.value-t*slope))))
	}
	return nil, nil
}

// secants are steps s with the change y of the gradient, M⁻¹y and sᵀy.
type secants []secant

type secant struct {
	s, y, my backend.Host[float64]
	sy       float64
}

// add notes a step, unless rounding hides the curvature along it. Its M⁻¹y is left out.
func (k secants) add(from, to *point) secants {
	c := secant{s: along(to.theta, -1, from.theta), y: along(to.gradient, -1, from.gradient)}
	if c.sy = dot(c.s, c.y); !(c.sy > 1e-14*math.Sqrt(dot(c.s, c.s)*dot(c.y, c.y))) {
		return k
	}
	return append(k[max(0, len(k)-lbfgsPairs+1):], c)
}

// refresh takes account of another M.
func (k secants) refresh(m metric) (err error) {
	for i := range k {
		if k[i].my, err = m.solve(k[i].y); err != nil {
			return err
		}
	}
	return nil
}

// direction applies the inverse Hessian that the steps describe to g, for which M⁻¹g is
// given.
func (k secants) direction(g, plain backend.Host[float64]) backend.Host[float64] {
	if len(k) == 0 {
		return plain
	}
	// q = g − Σ α_i y_i, of which the steps before need products alone, and r = M⁻¹q.
	q, r := along(g, 0, g), along(plain, 0, plain)
	alpha := make([]float64, len(k))
	for i := len(k) - 1; i >= 0; i-- {
		alpha[i] = dot(k[i].s, q) / k[i].sy
		floats.AddScaled(q.Data, -alpha[i], k[i].y.Data)
		floats.AddScaled(r.Data, -alpha[i], k[i].my.Data)
	}
	last := k[len(k)-1]
	scale := last.sy / dot(last.y, last.my)
	floats.Scale(scale, r.Data)
	for i, c := range k {
		floats.AddScaled(r.Data, alpha[i]-dot(c.y, r)/c.sy, c.s.Data)
	}
	return r
}

// A metric is a guess M of the Hessian.
type metric interface {
	// refresh takes account of the mean of p(1−p), and reports whether M changes.
	refresh(spread float64) (bool, error)
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
				row[q] -= l.total * l.mean[p] * l.mean[q]
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

func (m *fullMetric) refresh(spread float64) (bool, error) {
	if m.spread != 0 && spread > m.spread/2 {
		return false, nil
	}
	m.spread = max(spread, 1e-6)
	b, g := m.l.t.B, backend.NewHost[float64](m.l.d, m.l.d)
	if err := b.Download(g, m.gram); err != nil {
		return false, err
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
		return false, err
	}
	return true, b.Potrf(backend.Lower, m.factor)
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
		s.Row(d)[c] /= m.spread * m.l.total
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

// diagonalMetric is the diagonal of fullMetric's M.
type diagonalMetric struct {
	l      *logit
	spread float64
}

func (m *diagonalMetric) refresh(spread float64) (bool, error) {
	if m.spread != 0 && spread > m.spread/2 {
		return false, nil
	}
	m.spread = max(spread, 1e-6)
	return true, nil
}

func (m *diagonalMetric) solve(g backend.Host[float64]) (backend.Host[float64], error) {
	s := along(g, 0, g)
	for p := range s.Rows {
		scale := m.spread * m.l.total
		if p < m.l.d {
			scale = m.spread*m.l.square[p] + m.l.lambda
		}
		for c := range s.Row(p) {
			s.Row(p)[c] /= scale + 1e-10*m.spread*m.l.total
		}
	}
	return s, nil
}

func (m *diagonalMetric) free() {}
