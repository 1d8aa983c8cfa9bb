package markov

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
)

// A direction holds the changes of the parameters: of ln σ and ln variance of each term, and of ln D.
type direction struct {
	sigma, variance []float64
	noise           float64
}

// Gradient returns the derivatives of
//
//	−½ Σ_j y_jᵀ(K + D)⁻¹y_j/scale_j − ½ t log det (K + D)
//
// with respect to the logarithms of the kernel's parameters, in the order of kernels.Params. The result noise is
// the derivative with respect to ln c for a factor c of D. The argument parameters is the number of the kernel's
// parameters.
func (l *Line) Gradient(ctx context.Context, parameters int, diagonal []float64, y backend.Host[float64], scale []float64) (gradient []float64, noise float64, err error) {
	columns := make([]float64, 0, len(l.x)*y.Cols) // in ascending order of the points
	for _, row := range l.order {
		columns = append(columns, y.Row(row)...)
	}
	gradient = make([]float64, parameters+1)
	run.Parallel(len(gradient), func(first, last int) {
		for i := first; i < last; i++ {
			gradient[i] = l.slope(ctx, l.direction(i, parameters), diagonal, columns, scale)
		}
	})
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	return gradient[:parameters], gradient[parameters], nil
}

// direction returns the direction of parameter i of the kernel, or the direction of D for i = parameters.
func (l *Line) direction(i, parameters int) direction {
	d := direction{sigma: make([]float64, len(l.terms)), variance: make([]float64, len(l.terms))}
	if i == parameters {
		d.noise = 1
	}
	for k := range l.terms {
		if l.terms[k].sigma == i {
			d.sigma[k] = 1
		}
		for _, w := range l.terms[k].weights {
			if w == i {
				d.variance[k]++
			}
		}
	}
	return d
}

// A tangent holds the derivatives of the Kalman filter in one direction of the parameters. P is the covariance of the
// state. A step s has the transition matrix A and adds noise with the covariance Q, where dA/ds = GA and dQ/ds = GQ +
// QGᵀ + B. A change of ln σ changes s by ds = −s d ln σ, so that
//
//	d(APAᵀ + Q) = A dP Aᵀ + ds (GP′ + P′Gᵀ + B),  P′ = APAᵀ + Q.
//
// A change of the variance of a term changes Q, and P at the first point, by the same factor.
type tangent struct {
	l *Line
	direction
	p, dp       matrix
	states      []vector // one state for each column of y
	derivatives []vector // derivatives of states
}

// slope returns the derivative, in direction d, of the function that Gradient differentiates.
func (l *Line) slope(ctx context.Context, d direction, diagonal, y, scale []float64) float64 {
	t := len(scale)
	g := &tangent{l: l, direction: d, p: l.stationary(), states: make([]vector, t), derivatives: make([]vector, t)}
	for k := range l.terms {
		weighted := l.terms[k]
		weighted.variance *= d.variance[k]
		weighted.addStationary(&g.dp)
	}
	squares, logDet := make([]float64, t), 0.0
	for i, row := range l.order {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return 0
		}
		if i > 0 {
			g.step(i)
		}
		logDet += g.observe(diagonalAt(diagonal, row), y[i*t:(i+1)*t], squares)
	}
	sum := -float64(t) / 2 * logDet
	for j, q := range squares {
		sum -= q / scale[j] / 2
	}
	return sum
}

// step advances the filter and its derivatives to point i.
func (g *tangent) step(i int) {
	l := g.l
	l.predict(i, &g.p)
	l.sandwich(&g.dp, func(v *vector) { l.advance(i, v) })
	for j := range g.states {
		l.advance(i, &g.states[j])
		l.advance(i, &g.derivatives[j])
	}
	for k := range l.terms {
		t := &l.terms[k]
		s, decay := min(t.rate*l.steps[i], 1000), l.decay[i*len(l.terms)+k]
		if v := g.variance[k]; v != 0 {
			weighted := *t
			weighted.variance *= v
			weighted.addNoise(s, decay, &g.dp)
		}
		ds := -s * g.sigma[k]
		if ds == 0 {
			continue
		}
		end, last := t.offset+t.order, t.offset+t.order-1
		for c := range l.dim {
			var column vector
			t.generate(ds, column[:t.order], g.p[c][t.offset:end])
			for r := range t.order {
				g.dp[t.offset+r][c] += column[r]
				g.dp[c][t.offset+r] += column[r]
			}
		}
		g.dp[last][last] += ds * t.intensity()
		for j := range g.states {
			t.generate(ds, g.derivatives[j][t.offset:end], g.states[j][t.offset:end])
		}
	}
}

// observe updates the filter with the values y of a point, whose element of D is r. It adds the derivative of
// (squared innovation)/pivot to squares, and returns the derivative of the logarithm of the pivot.
func (g *tangent) observe(r float64, y, squares []float64) float64 {
	l := g.l
	ph, dph := l.first(&g.p), l.first(&g.dp)
	f, df := l.value(&ph)+r, l.value(&dph)+r*g.noise
	var gain, dgain vector
	for i := range l.dim {
		gain[i] = ph[i] / f
		dgain[i] = (dph[i] - gain[i]*df) / f
	}
	for j, v := range y {
		state, derivative := &g.states[j], &g.derivatives[j]
		v -= l.value(state)
		dv := -l.value(derivative)
		squares[j] += v / f * (2*dv - v/f*df)
		for i := range l.dim {
			state[i] += gain[i] * v
			derivative[i] += dgain[i]*v + gain[i]*dv
		}
	}
	for i := range l.dim {
		for j := range l.dim {
			g.dp[i][j] -= dgain[i]*ph[j] + gain[i]*dph[j]
		}
	}
	for i := range l.dim { // remove the asymmetry that rounding causes
		for j := range i {
			v := (g.dp[i][j] + g.dp[j][i]) / 2
			g.dp[i][j], g.dp[j][i] = v, v
		}
	}
	l.Model.observe(&g.p, &ph, f, r)
	return df / f
}
