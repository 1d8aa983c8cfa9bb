package markov

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
)

// A Line holds points in ascending order. After Filter it also represents the Cholesky factor L of K + D, where K is
// the kernel matrix of the points and D is the diagonal matrix passed to Filter.
// The rows of all arguments and results are in the order of the points passed to NewLine.
type Line struct {
	Model
	order []int     // rows of the points in ascending order
	x     []float64 // the points in ascending order
	steps []float64 // distance of each point from the preceding point; 0 for the first point
	decay []float64 // exp(−rate·step) for each step and each term

	pivots []float64 // variance of each value given the preceding values, which is a squared diagonal element of L
	gain   []float64 // n × Dim: the change of the state for each unit of the innovation
}

// Elements returns the number of float64 values that a Line with a factor stores for n points.
func (m Model) Elements(n int) int64 {
	return numeric.Elements(n, 4+len(m.terms)+m.dim)
}

// Roundings bounds the number of roundings in Multiply for each point, relative to Σ_j |v_j| k(0). Let P be the
// covariance of the state, A the transition matrix of a step s, and h as in the method value:
//
//   - In the norm √(vᵀP⁻¹v), A does not increase the length of any vector, and Ph has the length √k(0).
//   - A step rounds 12 numbers, which are at most 3.3 times as large as the result, and the five roundings of s change
//     A by at most 4 times their sum.
//   - This norm and the 2-norm differ by at most the factor √4, because P has the condition number 4.
const Roundings = 128

// checkEvery is the number of points between two checks of the context.
const checkEvery = 1 << 16

// NewLine returns a Line of the n points x.
func NewLine(ctx context.Context, m Model, x []float64) (*Line, error) {
	n := len(x)
	l := &Line{Model: m, x: make([]float64, n), steps: make([]float64, n), decay: make([]float64, n*len(m.terms))}
	l.order = ascending(x)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for i, row := range l.order {
		l.x[i] = x[row]
	}
	for i := 1; i < n; i++ {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		l.steps[i] = min(l.x[i]-l.x[i-1], math.MaxFloat64)
		for k := range m.terms {
			_, l.decay[i*len(m.terms)+k] = m.terms[k].scaled(l.steps[i])
		}
	}
	return l, nil
}

// ascending returns the row numbers of x in ascending order of the points. Equal points keep their order.
func ascending(x []float64) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	if slices.IsSorted(x) {
		return order
	}
	type point struct {
		x   float64
		row int
	}
	points := make([]point, len(x))
	for i, v := range x {
		points[i] = point{v, i}
	}
	compare := func(a, b point) int {
		switch {
		case a.x < b.x:
			return -1
		case a.x > b.x:
			return 1
		}
		return cmp.Compare(a.row, b.row)
	}
	mid := len(points) / 2
	var wg sync.WaitGroup
	wg.Go(func() { slices.SortFunc(points[:mid], compare) })
	slices.SortFunc(points[mid:], compare)
	wg.Wait()
	for i, a, b := 0, points[:mid], points[mid:]; i < len(order); i++ {
		if len(b) == 0 || len(a) > 0 && compare(a[0], b[0]) < 0 {
			order[i], a = a[0].row, a[1:]
		} else {
			order[i], b = b[0].row, b[1:]
		}
	}
	return order
}

// advance sets v to Av for the step to point i.
func (l *Line) advance(i int, v *vector) {
	for k := range l.terms {
		t := &l.terms[k]
		t.apply(min(t.rate*l.steps[i], 1000), l.decay[i*len(l.terms)+k], v[t.offset:t.offset+t.order])
	}
}

// retreat sets v to Aᵀv for the step to point i.
func (l *Line) retreat(i int, v *vector) {
	for k := range l.terms {
		t := &l.terms[k]
		t.applyTransposed(min(t.rate*l.steps[i], 1000), l.decay[i*len(l.terms)+k], v[t.offset:t.offset+t.order])
	}
}

// value returns hᵀv for the state v, where h is 1 at the first entry of each term and 0 elsewhere.
func (m Model) value(v *vector) (sum float64) {
	for k := range m.terms {
		sum += v[m.terms[k].offset]
	}
	return sum
}

// addValue adds f·h to v.
func (m Model) addValue(f float64, v *vector) {
	for k := range m.terms {
		v[m.terms[k].offset] += f
	}
}

// stationary returns the covariance of the state.
func (m Model) stationary() (p matrix) {
	for k := range m.terms {
		m.terms[k].addStationary(&p)
	}
	return p
}

// sandwich replaces a symmetric p by FpFᵀ, where f(v) replaces v by Fv, and removes asymmetry due to rounding.
func (m Model) sandwich(p *matrix, f func(v *vector)) {
	for range 2 {
		for i := range m.dim {
			f(&p[i])
		}
		for i := range m.dim {
			for j := range i {
				p[i][j], p[j][i] = p[j][i], p[i][j]
			}
		}
	}
	for i := range m.dim {
		for j := range i {
			v := (p[i][j] + p[j][i]) / 2
			p[i][j], p[j][i] = v, v
		}
	}
}

// predict replaces the state's covariance P at point i−1 by its covariance APAᵀ + Q at point i.
func (l *Line) predict(i int, p *matrix) {
	l.sandwich(p, func(v *vector) { l.advance(i, v) })
	for k := range l.terms {
		t := &l.terms[k]
		t.addNoise(min(t.rate*l.steps[i], 1000), l.decay[i*len(l.terms)+k], p)
	}
}

// first returns Ph, where P is the covariance of the state and h is defined at the method value.
func (m Model) first(p *matrix) (v vector) {
	for k := range m.terms {
		for i := range m.dim {
			v[i] += p[m.terms[k].offset][i]
		}
	}
	return v
}

// observe updates p, the covariance P of the state, for one more observation with noise variance r, given ph = Ph
// and f = hᵀPh + r. For a kernel with one term, the first row (r/f)(Ph)ᵀ has no cancellation.
func (m Model) observe(p *matrix, ph *vector, f, r float64) {
	for i := range m.dim {
		for j := range m.dim {
			p[i][j] -= ph[i] * (ph[j] / f)
		}
	}
	if len(m.terms) == 1 {
		for j := range m.dim {
			v := ph[j] * (r / f)
			p[0][j], p[j][0] = v, v
		}
	}
}

// diagonalAt returns element i of a diagonal of length 1 or n.
func diagonalAt(diagonal []float64, i int) float64 { return diagonal[min(i, len(diagonal)-1)] }

// Filter factors K + D. The argument diagonal is D and has length 1 or n. If a pivot is not larger than its
// rounding error, Filter returns a *backend.PivotError with the row of this pivot.
func (l *Line) Filter(ctx context.Context, diagonal []float64) error {
	return l.filter(ctx, diagonal, nil)
}

// filter implements Filter. For each point it calls visit, which may be nil, with the covariance of the
// state given the values up to this point.
func (l *Line) filter(ctx context.Context, diagonal []float64, visit func(p *matrix)) error {
	n := len(l.x)
	l.pivots, l.gain = make([]float64, n), make([]float64, n*l.dim)
	p := l.stationary()
	ph := l.first(&p)
	tol, k := numeric.PivotTol(float64(l.dim*l.dim)), l.value(&ph)
	for i, row := range l.order {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if i > 0 {
			l.predict(i, &p)
		}
		r := diagonalAt(diagonal, row)
		ph := l.first(&p)
		f := l.value(&ph) + r
		if !(f > tol*(k+r)) || math.IsInf(f, 1) {
			return &backend.PivotError{Index: row, Value: f}
		}
		l.pivots[i] = f
		for j := range l.dim {
			l.gain[i*l.dim+j] = ph[j] / f
		}
		l.observe(&p, &ph, f, r)
		if visit != nil {
			visit(&p)
		}
	}
	return nil
}

// columns calls f concurrently for each column j of h, with its elements v in ascending order of the points, which
// f may change.
func (l *Line) columns(h backend.Host[float64], f func(j int, v []float64)) {
	var wg sync.WaitGroup
	for j := range h.Cols {
		wg.Go(func() {
			v := make([]float64, len(l.order))
			for i, row := range l.order {
				v[i] = h.Data[row*h.Stride+j]
			}
			f(j, v)
			for i, row := range l.order {
				h.Data[row*h.Stride+j] = v[i]
			}
		})
	}
	wg.Wait()
}

// innovate replaces the values v by their innovations: each value minus its mean given the preceding values.
func (l *Line) innovate(v []float64) {
	var state vector
	for i := range v {
		if i > 0 {
			l.advance(i, &state)
		}
		v[i] -= l.value(&state)
		for j, g := range l.gain[i*l.dim : (i+1)*l.dim] {
			state[j] += g * v[i]
		}
	}
}

// Solve overwrites each column of b with (K + D)⁻¹b, by innovations and smoothing errors (de Jong 1989, Smoothing
// and interpolation with the state-space model).
func (l *Line) Solve(b backend.Host[float64]) {
	l.columns(b, func(_ int, v []float64) {
		l.innovate(v)
		var r vector
		for i := len(v) - 1; i >= 0; i-- {
			v[i] /= l.pivots[i]
			for j, g := range l.gain[i*l.dim : (i+1)*l.dim] {
				v[i] -= g * r[j]
			}
			l.addValue(v[i], &r)
			if i > 0 {
				l.retreat(i, &r)
			}
		}
	})
}

// Squares returns bᵀ(K + D)⁻¹b for each column of b, which is overwritten.
func (l *Line) Squares(b backend.Host[float64]) []float64 {
	sums := make([]float64, b.Cols)
	l.columns(b, func(j int, v []float64) {
		l.innovate(v)
		for i, e := range v {
			sums[j] += e / l.pivots[i] * e
		}
	})
	return sums
}

// LogPivots returns the logarithms of the squared diagonal of the Cholesky factor, whose sum is log det (K + D).
func (l *Line) LogPivots() []float64 {
	logs := make([]float64, len(l.pivots))
	for i, f := range l.pivots {
		logs[l.order[i]] = elementary.Log(f)
	}
	return logs
}

// Multiply overwrites each column v with Kv.
func (l *Line) Multiply(v backend.Host[float64]) {
	l.columns(v, func(_ int, v []float64) {
		sums := make([]float64, len(v))
		var state vector
		for i, a := range v {
			if i > 0 {
				l.advance(i, &state)
			}
			for k := range l.terms {
				l.terms[k].addFirst(a, &state)
			}
			sums[i] = l.value(&state)
		}
		state = vector{}
		for i := len(v) - 1; i > 0; i-- {
			l.addValue(v[i], &state)
			l.retreat(i, &state)
			sums[i-1] += l.firstRowProduct(&state)
		}
		copy(v, sums)
	})
}

// firstRowProduct returns the product of the first row of the state's covariance and v.
func (m Model) firstRowProduct(v *vector) (sum float64) {
	for k := range m.terms {
		t := &m.terms[k]
		product := v[t.offset]
		if t.order == 3 {
			product -= v[t.offset+2] / 3
		}
		sum += t.variance * product
	}
	return sum
}

// Inverse returns the diagonal of (K + D)⁻¹.
func (l *Line) Inverse() []float64 {
	d := make([]float64, len(l.order))
	l.smooth(func(i int, inverse float64, _ *matrix) { d[l.order[i]] = inverse })
	return d
}

// smooth calls visit for the points in descending order, with the index i of the point, the diagonal element of (K +
// D)⁻¹, and the matrix N of Variance for the values from point i on.
func (l *Line) smooth(visit func(i int, inverse float64, n *matrix)) {
	var n matrix
	for i := len(l.x) - 1; i >= 0; i-- {
		gain := l.gain[i*l.dim : (i+1)*l.dim]
		// n ← hhᵀ/F + (I − hgᵀ)n(I − ghᵀ), where F is the pivot, g the gain, and h is defined at the method value
		var ng vector
		inverse := 1 / l.pivots[i]
		for r := range l.dim {
			for c, g := range gain {
				ng[r] += n[r][c] * g
			}
			inverse += gain[r] * ng[r]
		}
		for a := range l.terms {
			row := l.terms[a].offset
			for c := range l.dim {
				n[row][c] -= ng[c]
				n[c][row] -= ng[c]
			}
		}
		for a := range l.terms {
			for b := range l.terms {
				n[l.terms[a].offset][l.terms[b].offset] += inverse
			}
		}
		visit(i, inverse, &n)
		if i > 0 {
			l.sandwich(&n, func(v *vector) { l.retreat(i, v) })
		}
	}
}
