package markov

import (
	"context"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// advanceBy sets v to Av, where A is the transition matrix of the given step.
func (m Model) advanceBy(step float64, v *vector) {
	for k := range m.terms {
		t := &m.terms[k]
		s, decay := t.scaled(step)
		t.apply(s, decay, v[t.offset:t.offset+t.order])
	}
}

// retreatBy sets v to Aᵀv, where A is the transition matrix of the given step.
func (m Model) retreatBy(step float64, v *vector) {
	for k := range m.terms {
		t := &m.terms[k]
		s, decay := t.scaled(step)
		t.applyTransposed(s, decay, v[t.offset:t.offset+t.order])
	}
}

// Evaluate returns Σ_i k(z, x_i) α_i for the points z. It takes O(n + m log m) operations for n points x_i and m
// points z.
func (l *Line) Evaluate(ctx context.Context, alpha backend.Host[float64], z []float64) (backend.Host[float64], error) {
	order := ascending(z)
	out := backend.NewHost[float64](len(z), alpha.Cols)
	run.Parallel(alpha.Cols, func(first, last int) {
		for j := first; j < last; j++ {
			l.evaluate(ctx, alpha, z, order, j, out)
		}
	})
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	return out, nil
}

// evaluate computes column j of out for the points z. order lists the rows of z in ascending order of z.
func (l *Line) evaluate(ctx context.Context, alpha backend.Host[float64], z []float64, order []int, j int, out backend.Host[float64]) {
	next, _ := slices.BinarySearchFunc(order, l.x[0], func(row int, x float64) int {
		if z[row] < x {
			return -1
		}
		return 1
	})
	numBelow := next // number of points z below the first x
	var state vector
	for i, row := range l.order {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return
		}
		if i > 0 {
			l.advance(i, &state)
		}
		for k := range l.terms {
			l.terms[k].addFirst(alpha.Row(row)[j], &state)
		}
		for ; next < len(order) && (i == len(l.x)-1 || z[order[next]] < l.x[i+1]); next++ {
			v := state
			l.advanceBy(min(z[order[next]]-l.x[i], math.MaxFloat64), &v)
			out.Row(order[next])[j] = l.value(&v)
		}
	}
	state = vector{}
	last := len(order) - 1
	for i := len(l.x) - 1; i >= 0; i-- {
		for ; last >= numBelow && z[order[last]] >= l.x[i]; last-- {
			if i < len(l.x)-1 {
				v := state
				l.retreatBy(l.x[i+1]-z[order[last]], &v)
				out.Row(order[last])[j] += l.firstRowProduct(&v)
			}
		}
		if i < len(l.x)-1 {
			l.retreat(i+1, &state)
		}
		l.addValue(alpha.Row(l.order[i])[j], &state)
	}
	for ; last >= 0; last-- {
		v := state
		l.retreatBy(min(l.x[0]-z[order[last]], math.MaxFloat64), &v)
		out.Row(order[last])[j] += l.firstRowProduct(&v)
	}
}

// Faster reports whether Evaluate for n points x_i and m points z is faster than computing all nm
// kernel values. Evaluate takes about as long for one point as a hundred kernel values.
func Faster(n, m int) bool {
	return n/500 > 1 && m/500 > 1 && float64(n)*float64(m)/500 > float64(n)+float64(m)
}

// A Posterior computes the variances of the process given its values at the points of a Line.
type Posterior struct {
	Line *Line
	// For each point, filtered holds the covariance of the state given the values up to the point, and information
	// the matrix N of Variance for the values from the point on. Both are n × Dim(Dim+1)/2.
	filtered, information []float64
}

// PosteriorElements returns the number of float64 values that a Posterior stores for n points.
func (m Model) PosteriorElements(n int) int64 {
	return numeric.Total(m.Elements(n), numeric.Elements(n, m.dim*(m.dim+1)))
}

// Posterior factors K + D as Filter does and stores the covariances that Variance needs.
func (l *Line) Posterior(ctx context.Context, diagonal []float64) (*Posterior, error) {
	size := l.dim * (l.dim + 1) / 2
	q := &Posterior{Line: l, filtered: make([]float64, 0, len(l.x)*size), information: make([]float64, len(l.x)*size)}
	if err := l.filter(ctx, diagonal, func(p *matrix) { q.filtered = l.pack(q.filtered, p) }); err != nil {
		return nil, err
	}
	l.smooth(func(i int, _ float64, n *matrix) { l.pack(q.information[i*size:i*size], n) })
	return q, nil
}

// pack appends the lower triangle of p to list.
func (m Model) pack(list []float64, p *matrix) []float64 {
	for i := range m.dim {
		list = append(list, p[i][:i+1]...)
	}
	return list
}

// unpack returns matrix i of a list that pack has written.
func (m Model) unpack(list []float64, i int) (p matrix) {
	size := m.dim * (m.dim + 1) / 2
	list = list[i*size:]
	for i := range m.dim {
		for j := range i + 1 {
			p[i][j], p[j][i] = list[j], list[j]
		}
		list = list[i+1:]
	}
	return p
}

// Variance returns k(z, z) − k_zᵀ(K + D)⁻¹k_z for the points z. It is computed as hᵀ(P − PNP)h, where P is the
// covariance of the state at z given the values up to z, and N the covariance of the weighted sum of the innovations
// after z (Durbin and Koopman 2012, section 4.4).
func (q *Posterior) Variance(z []float64) []float64 {
	variance := make([]float64, len(z))
	run.Parallel(len(z), func(first, last int) {
		for i := first; i < last; i++ {
			variance[i] = max(0, q.variance(z[i]))
		}
	})
	return variance
}

func (q *Posterior) variance(z float64) float64 {
	l := q.Line
	next, _ := slices.BinarySearchFunc(l.x, z, func(x, z float64) int {
		if x <= z {
			return -1
		}
		return 1
	})
	p := l.stationary()
	if next > 0 {
		p = l.unpack(q.filtered, next-1)
		step := min(z-l.x[next-1], math.MaxFloat64)
		l.sandwich(&p, func(v *vector) { l.advanceBy(step, v) })
		for k := range l.terms {
			t := &l.terms[k]
			s, decay := t.scaled(step)
			t.addNoise(s, decay, &p)
		}
	}
	ph := l.first(&p)
	variance := l.value(&ph)
	if next == len(l.x) {
		return variance
	}
	n := l.unpack(q.information, next)
	step := min(l.x[next]-z, math.MaxFloat64)
	l.sandwich(&n, func(v *vector) { l.retreatBy(step, v) })
	for i := range l.dim {
		for j := range l.dim {
			variance -= ph[i] * n[i][j] * ph[j]
		}
	}
	return variance
}
