package glm

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
)

// lbfgsPairs returns the number of steps that L-BFGS stores: as many as fit into 64 MiB, from 5 to 20.
func lbfgsPairs(unknowns int) int { return min(max(64<<20/(3*8*unknowns), 5), 20) }

// lbfgs minimizes F by the limited-memory BFGS method (Nocedal 1980, Updating quasi-Newton matrices with limited
// storage). Its initial approximation of the Hessian is the metric M. lbfgs stops when the estimated remaining decrease
// of F is below tol·F. With the gradient g and the inverse Hessian B of L-BFGS, the estimate is the largest of
// gᵀM⁻¹g/2, gᵀBg/2 and an extrapolation of the last decreases. After the given number of evaluations of F, lbfgs
// returns handedOver, because another method is then expected to take less time.
func (l *logit) lbfgs(p *point, metric metric, tol float64, maxIter, evaluations int, report func(iter int, gain, value float64) error) (_ *point, iter int, reason ending, err error) {
	defer metric.free()
	var pairs secants
	var previous backend.Host[float64] // M⁻¹∇F at the preceding point
	var falls []float64                // decreases of F in the steps so far
	evaluations += l.evals
	for iter := 0; ; iter++ {
		if done, err := l.separated(); done {
			return p, iter, stalled, err
		}
		changed, err := metric.refresh(l.spread)
		if err != nil {
			return p, iter, stalled, err
		}
		plain, err := metric.solve(p.gradient)
		if err == nil && len(pairs) > 0 {
			if changed {
				err = pairs.refresh(metric)
			} else if last := &pairs[len(pairs)-1]; last.my.Data == nil {
				last.my = addScaled(plain, -1, previous)
			}
		}
		if err != nil {
			return p, iter, stalled, err
		}
		direction := pairs.direction(p.gradient, plain)
		slope := -dot(p.gradient, direction)
		if !(slope < 0) {
			direction, slope, pairs = plain, -dot(p.gradient, plain), nil
		}
		gain := max(dot(p.gradient, plain)/2, -slope/2, forecast(falls)) / max(p.value, math.SmallestNonzeroFloat64)
		if err := report(iter, gain, p.value); err != nil {
			return p, iter, stalled, err
		}
		switch {
		case gain <= tol:
			return p, iter, converged, nil
		case l.evals >= evaluations:
			return p, iter, handedOver, nil
		case iter == maxIter:
			return p, iter, exhausted, nil
		}
		next, err := l.search(p, direction, slope)
		if err != nil || next == nil {
			return p, iter, stalled, err
		}
		pairs = pairs.add(p, next)
		falls = append(falls, max(p.value-next.value-16*epsilon*p.value, 0))
		p, previous = next, plain
	}
}

// forecast returns the sum of the future decreases if they continue to shrink at the present rate.
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

// search finds a step of length t along −direction for which F decreases by at least
// 1e-4·t·|slope|. It returns nil if rounding errors prevent such a decrease.
func (l *logit) search(p *point, direction backend.Host[float64], slope float64) (*point, error) {
	for t := 1.0; t > 1e-12; {
		next, err := l.pointAt(addScaled(p.theta, -t, direction))
		if err != nil {
			return nil, err
		}
		if next.value <= p.value+1e-4*t*slope {
			return next, nil
		}
		// The next t minimizes the parabola through both values of F with the known slope, within limits.
		t = min(0.5*t, max(0.1*t, -slope*t*t/(2*(next.value-p.value-t*slope))))
	}
	return nil, nil
}

// secants holds the stored steps s, the changes y of the gradient, and M⁻¹y and sᵀy for the metric M.
type secants []secant

type secant struct {
	s, y, my backend.Host[float64]
	sy       float64
}

// add appends the step between two points without M⁻¹y, if the curvature along the step exceeds its rounding error.
func (k secants) add(from, to *point) secants {
	c := secant{s: addScaled(to.theta, -1, from.theta), y: addScaled(to.gradient, -1, from.gradient)}
	if c.sy = dot(c.s, c.y); !(c.sy > 1e-14*math.Sqrt(dot(c.s, c.s)*dot(c.y, c.y))) {
		return k
	}
	return append(k[max(0, len(k)-lbfgsPairs(len(c.s.Data))+1):], c)
}

// refresh updates the products M⁻¹y after a change of M.
func (k secants) refresh(m metric) (err error) {
	for i := range k {
		if k[i].my, err = m.solve(k[i].y); err != nil {
			return err
		}
	}
	return nil
}

// direction returns the product of the inverse Hessian that the stored steps define and the gradient g. The argument
// plain is M⁻¹g for the metric M.
func (k secants) direction(g, plain backend.Host[float64]) backend.Host[float64] {
	if len(k) == 0 {
		return plain
	}
	// The two-loop recursion keeps r = M⁻¹q.
	q, r := addScaled(g, 0, g), addScaled(plain, 0, plain)
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

// leastSpread is a lower bound on the mean of p(1−p) in M. It bounds the steps if the probabilities are near 0 and 1.
const leastSpread = 1e-6

type metric interface {
	// refresh updates M if spread, the mean of p(1−p), has changed enough, and reports whether M changes.
	refresh(spread float64) (bool, error)
	// solve returns M⁻¹g.
	solve(g backend.Host[float64]) (backend.Host[float64], error)
	free()
}

// metricFeatures returns the maximum number of features for which M is a full matrix, of at most 128 MiB.
func metricFeatures(x numeric.Points) int {
	if x.Sparse != nil {
		return newtonUnknowns
	}
	return 4096
}

// metricOf returns the full or diagonal metric M that stage s uses.
func (l *logit) metricOf(s stage) (metric, error) {
	if s.full {
		return l.fullMetric()
	}
	return &diagonalMetric{l: l}, nil
}

// floor returns a lower bound on the diagonal element of feature p in M, divided by the mean of p(1−p). A smaller
// element would consist of rounding errors: the bound is 1e-10 of the feature's sum of squares, plus 1e5 roundings
// of its mean for each sample.
func (l *logit) floor(p int) float64 {
	floor := 1e-10*l.square[p] + math.SmallestNonzeroFloat64
	if l.mean != nil {
		noise := 1e5 * epsilon * l.mean[p]
		floor += l.total * noise * noise
	}
	return floor
}

// fullMetric is M = v·X̃ᵀX̃ + λI for every class, where v is the mean of p(1−p). fullMetric computes one product
// XᵀX, and a Cholesky factorization each time v has halved.
type fullMetric struct {
	l      *logit
	gram   backend.Matrix[float64] // X̃ᵀX̃, d×d
	factor backend.Matrix[float64]
	v      backend.Matrix[float64] // d×C operand of solve
	spread float64
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
	if l.points.Sparse != nil || l.weights != nil || l.offCenter() {
		return m, l.centeredGram(m.gram)
	}
	b.Syrk(backend.Lower, backend.Transpose, 1, l.x, 0, m.gram)
	if l.mean == nil {
		return m, b.Sync()
	}
	g := backend.NewHost[float64](l.d, l.d)
	if err = b.Download(g, m.gram); err != nil {
		return m, err
	}
	for p := range l.d {
		for q := range g.Row(p)[:p+1] {
			g.Row(p)[q] -= l.total * l.mean[p] * l.mean[q]
		}
	}
	return m, b.Upload(m.gram, g)
}

// offCenter reports whether centering XᵀX after its sum would lose more than four digits of a diagonal element.
func (l *logit) offCenter() bool {
	for p, m := range l.mean {
		if l.total*m*m > 1e4*l.square[p] {
			return true
		}
	}
	return false
}

// centeredGram sets g to X̃ᵀWX̃, X̃ = x − x̄.
func (l *logit) centeredGram(g backend.Matrix[float64]) error {
	rows := hessianRows(l.d)
	part := backend.NewHost[float64](min(rows, l.n), l.d)
	for from := 0; from < l.n; from += rows {
		block := part.View(0, 0, min(rows, l.n-from), l.d)
		for i := range block.Rows {
			root := math.Sqrt(l.weight(from + i))
			l.points.CopyPoint(block.Row(i), from+i)
			for q, mean := range l.mean {
				block.Row(i)[q] -= mean
			}
			floats.Scale(root, block.Row(i))
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
	m.spread = max(spread, leastSpread)
	b, g := m.l.t.B, backend.NewHost[float64](m.l.d, m.l.d)
	if err := b.Download(g, m.gram); err != nil {
		return false, err
	}
	for p := range m.l.d {
		row := g.Row(p)
		for q := range row[:p+1] {
			row[q] *= m.spread
		}
		row[p] += max(m.l.lambda, m.spread*m.l.floor(p))
	}
	if err := b.Upload(m.factor, g); err != nil {
		return false, err
	}
	return true, b.Potrf(backend.Lower, m.factor)
}

func (m *fullMetric) solve(g backend.Host[float64]) (backend.Host[float64], error) {
	b, d := m.l.t.B, m.l.d
	s := addScaled(g, 0, g)
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

// diagonalMetric is the diagonal of the matrix M of fullMetric.
type diagonalMetric struct {
	l      *logit
	spread float64
}

func (m *diagonalMetric) refresh(spread float64) (bool, error) {
	if m.spread != 0 && spread > m.spread/2 {
		return false, nil
	}
	m.spread = max(spread, leastSpread)
	return true, nil
}

func (m *diagonalMetric) solve(g backend.Host[float64]) (backend.Host[float64], error) {
	s := addScaled(g, 0, g)
	for p := range s.Rows {
		scale := m.spread * m.l.total
		if p < m.l.d {
			scale = m.spread*m.l.square[p] + max(m.l.lambda, m.spread*m.l.floor(p))
		}
		for c := range s.Row(p) {
			s.Row(p)[c] /= scale
		}
	}
	return s, nil
}

func (m *diagonalMetric) free() {}
