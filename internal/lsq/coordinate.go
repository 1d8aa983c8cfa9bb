package lsq

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"gonum.org/v1/gonum/blas/blas64"
)

// coordinate implements coordinate descent (Friedman, Hastie and Tibshirani 2010). It sweeps over the weights that
// are not 0 or whose slope |x_pᵀ(y − Xw)| exceeds μ, and computes the duality gap over all features when a sweep
// decreases the objective by only a small fraction of the gap. Sweeps converge slowly if columns are correlated.
// Once they have taken as long as a factorization of X_AᵀX_A for the set A of nonzero weights, the method exact
// computes the minimum over A.
type coordinate struct {
	a        *normal
	diagonal []float64
	// The fields from x to output are set only if XᵀX is not formed. x and y hold the columns of X and Y, and
	// residual is y − Xw.
	x, y     backend.Host[float64]
	residual []float64
	shift    float64 // for sparse samples, y − Xw is residual + shift·√(sample weight)
	state    *lassoState
	output   int
	active   []int     // the set A for which the method exact last computed the minimum
	factor   *cholesky // factor of X_AᵀX_A for the columns active
}

func newCoordinate(a *normal) *coordinate {
	c := &coordinate{a: a, diagonal: a.diagonal(), output: -1}
	if !a.formed() {
		if c.residual = make([]float64, a.c.n); a.sparse != nil {
			c.y = a.sparse.y
		} else {
			c.x, c.y = a.c.columns()
		}
		return c
	}
	a.fixed.Free() // coordinate descent does not need a.fixed, and the factorization needs the memory
	a.fixed = nil
	return c
}

// factorRate is the time of a multiplication in a sweep, divided by its time in a blocked factorization.
const factorRate = 16

func (c *coordinate) minimize(s *lassoState, mu float64, l Lasso) error {
	if s.total == 0 {
		return nil
	}
	if !c.a.formed() && c.state != s { // a new output begins with w = 0
		c.state, c.output, c.shift = s, c.output+1, 0
		copy(c.residual, c.y.Row(c.output))
	}
	var list, active []int
	work := 0   // number of multiplications in the sweeps since the last call of exact
	sweeps := 1 // maximum number of sweeps before the next duality gap; 1 at first, because s.gap belongs to the previous μ
	s.stallGap, s.steps = 0, 0
	c.follow(s, mu)
	for ; ; sweeps = 100 {
		list = list[:0]
		for p, w := range s.w {
			if w != 0 || math.Abs(s.c[p]-s.q[p]) > mu {
				list = append(list, p)
			}
		}
		// Sweep over the weights of list until a sweep would reduce the gap only by a small fraction.
		for range sweeps {
			if s.steps >= l.MaxIter {
				break
			}
			s.steps++
			gain, changes := c.sweep(s, mu, list)
			if err := c.a.t.Step("solve", s.base+s.fraction*min(1, float64(s.steps)/float64(l.MaxIter))); err != nil {
				return err
			}
			active = active[:0]
			for _, p := range list {
				if s.w[p] != 0 {
					active = append(active, p)
				}
			}
			active = active[:min(len(active), c.a.c.maxFactorColumns())]
			cost := 0 // multiplications of a factorization
			if !slices.Equal(active, c.active) {
				cost = len(active) * len(active) * len(active) / 6
			}
			switch {
			case c.a.formed():
				work += changes * len(s.w)
			case c.a.sparse != nil:
				columnCost := c.a.sparse.x.NNZ()/len(s.w) + 1 // number of multiplications in the product of a column and a vector
				work += (len(list) + changes) * columnCost
				cost += len(active) * len(active) / 2 * columnCost * factorRate
			default:
				work += (len(list) + changes) * c.a.c.n
				cost *= 1 + 3*c.a.c.n/max(1, len(active))
			}
			converged, err := gain <= s.gap/1000, error(nil)
			// Call exact at once if μ = 0, because the gap then does not bound the error. Also call it if the last gaps
			// did not decrease and are below their rounding error.
			slow := s.stalls >= 5 && s.gap <= s.rounding
			if len(active) > 0 && (work >= cost/factorRate || mu == 0 || slow) && s.steps < l.MaxIter {
				work = 0
				s.steps++
				if converged, err = c.exact(s, mu, active, l); err != nil {
					return err
				}
			}
			if converged {
				break
			}
		}
		if done, err := c.settled(s, mu, l); err != nil || done {
			return err
		}
		if mu > 0 && s.gap <= s.rounding && s.stalls >= 10 {
			s.warning = fmt.Sprintf("rounding errors keep the duality gap at %.2g ‖y‖², above the tolerance %.2g ‖y‖²: {raise $lambda|raise $tol|$standardize}", 2*s.gap/s.total, l.Tol)
			return nil
		}
		if s.steps >= l.MaxIter {
			s.unsettled(l, "sweep")
			return nil
		}
	}
}

// exact minimizes over the weights of active, and reports whether it has reached the minimum. It removes the
// weights that become 0 from active.
//
// Let A be the set active, and s the signs of w_A. If no weight changes its sign, the minimum is at w_A + δ with
// X_AᵀX_A δ = v, where v = X_Aᵀ(y − Xw) − μs. exact moves w to the minimum on the line w_A + tδ.
func (c *coordinate) exact(s *lassoState, mu float64, active []int, l Lasso) (bool, error) {
	for {
		if !slices.Equal(active, c.active) || c.factor == nil {
			scale := make([]float64, len(s.w))
			for _, p := range active {
				scale[p] = 1 / math.Sqrt(c.diagonal[p])
			}
			c.active, c.factor = slices.Clone(active), nil
			var err error
			if c.factor, err = c.a.factor(active, scale); err != nil {
				return false, err
			}
		}
		if mu > 0 && c.alongNull(s, active) {
			active = slices.DeleteFunc(active, func(p int) bool { return s.w[p] == 0 })
		} else {
			zero, done := c.newton(s, mu, active)
			if zero < 0 {
				return done, nil
			}
			active = slices.Delete(active, zero, zero+1)
			if c.factor.order == nil {
				c.factor.drop(zero)
				c.active = slices.Clone(active)
			}
		}
		s.steps++
		if err := c.a.t.Step("solve", s.base+s.fraction*min(1, float64(s.steps)/float64(l.MaxIter))); err != nil {
			return false, err
		}
		if len(active) == 0 || s.steps >= l.MaxIter {
			return false, nil
		}
	}
}

// follow moves w from the minimum at the previous μ towards the minimum at this μ by one step of Newton's method
// with c.factor. The step is exact while the set of nonzero weights stays the same.
func (c *coordinate) follow(s *lassoState, mu float64) {
	if len(c.active) > 0 && !slices.ContainsFunc(c.active, func(p int) bool { return s.w[p] == 0 }) {
		s.steps++
		c.newton(s, mu, c.active)
	}
}

// newton moves w_A to the minimum of the objective over the line w_A + tδ (see exact). It returns the index in
// active of the weight that is 0 at the minimum, or −1, and whether all weights have the same sign as before.
func (c *coordinate) newton(s *lassoState, mu float64, active []int) (zero int, sameSigns bool) {
	v := make([]float64, len(active))
	for i, p := range active {
		v[i] = c.slope(s, p) - math.Copysign(mu, s.w[p])
	}
	delta := slices.Clone(v)
	c.factor.solve(delta)
	curvature := numeric.Dot(delta, v)
	if !(curvature > 0) || math.IsInf(curvature, 1) {
		return -1, curvature == 0
	}
	crossing := func(i int) float64 { return -s.w[active[i]] / delta[i] } // the t at which a weight becomes 0
	var crossed []int
	for i := range active {
		if t := crossing(i); t > 0 && t < 1 {
			crossed = append(crossed, i)
		}
	}
	slices.SortFunc(crossed, func(i, k int) int { return cmp.Compare(crossing(i), crossing(k)) })
	step, jump := 1.0, 0.0
	zero = -1
	for _, i := range crossed {
		if curvature*(crossing(i)-1)+jump >= 0 {
			break
		}
		jump += 2 * mu * math.Abs(delta[i])
		if curvature*(crossing(i)-1)+jump >= 0 {
			step, zero = crossing(i), i
			break
		}
	}
	if zero < 0 {
		step = 1 - jump/curvature
	}
	for i, p := range active {
		change := step * delta[i]
		if i == zero {
			change = -s.w[p]
		}
		s.w[p] += change
		c.moved(s, p, change)
	}
	return zero, len(crossed) == 0
}

// alongNull minimizes ‖w‖₁ along each null direction of the factor: a change z of the active weights with Xz = 0.
// Sweeps converge slowly along z. Each minimization makes one weight 0, and later directions do not change this weight.
// alongNull reports whether a weight has become 0.
func (c *coordinate) alongNull(s *lassoState, active []int) (zeroed bool) {
	directions := c.factor.null()
	for i := range directions.Rows {
		z, slope := directions.Row(i), 0.0 // slope of ‖w + tz‖₁ at t = 0
		for k, p := range active {
			if z[k] != 0 && s.w[p] != 0 {
				slope += math.Copysign(z[k], s.w[p]*z[k])
			}
		}
		if slope > 0 {
			blas64.Scal(-1, vector(z))
			slope = -slope
		}
		crossing := func(k int) float64 { return -s.w[active[k]] / z[k] } // the t at which a weight becomes 0
		var crossed []int
		for k := range active {
			if z[k] != 0 && crossing(k) > 0 {
				crossed = append(crossed, k)
			}
		}
		slices.SortFunc(crossed, func(i, k int) int { return cmp.Compare(crossing(i), crossing(k)) })
		for _, zero := range crossed {
			if slope += 2 * math.Abs(z[zero]); slope < 0 {
				continue
			}
			for k, t := 0, crossing(zero); k < len(active); k++ {
				s.w[active[k]] += t * z[k]
			}
			s.w[active[zero]], zeroed = 0, true
			for later := i + 1; later < directions.Rows; later++ {
				row := directions.Row(later)
				blas64.Axpy(-row[zero]/z[zero], vector(z), vector(row))
				row[zero] = 0
			}
			break
		}
	}
	if zeroed {
		c.recompute(s)
	}
	return zeroed
}

// recompute computes XᵀXw, or y − Xw, from w, because the updates accumulate rounding errors.
func (c *coordinate) recompute(s *lassoState) {
	if c.a.formed() {
		clear(s.q)
	} else {
		copy(c.residual, c.y.Row(c.output))
		c.shift = 0
	}
	for p, w := range s.w {
		if w != 0 {
			c.moved(s, p, w)
		}
	}
}

func (c *coordinate) settled(s *lassoState, mu float64, l Lasso) (bool, error) {
	c.recompute(s)
	if !c.a.formed() {
		for p := range s.q { // XᵀXw = Xᵀy − Xᵀr, where q holds Xᵀr
			s.q[p] = s.c[p] - c.product(p)
		}
	}
	return s.settled(c.a.t, mu, l)
}

// product returns x_pᵀ(y − Xw).
func (c *coordinate) product(p int) float64 {
	if c.a.sparse != nil {
		if c.diagonal[p] == 0 {
			return 0
		}
		return c.a.sparse.product(p, c.residual, c.shift)
	}
	return numeric.Dot(c.x.Row(p), c.residual)
}

func (c *coordinate) slope(s *lassoState, p int) float64 {
	if c.a.formed() {
		return s.c[p] - s.q[p]
	}
	return c.product(p)
}

// moved updates the quantities that depend on weight p, which has changed by delta.
func (c *coordinate) moved(s *lassoState, p int, delta float64) {
	switch {
	case c.a.formed():
		blas64.Axpy(delta, vector(c.a.moments.g.Row(p)), vector(s.q))
	case c.a.sparse != nil:
		c.shift = c.a.sparse.add(p, -delta, c.residual, c.shift)
	default:
		blas64.Axpy(-delta, vector(c.x.Row(p)), vector(c.residual))
	}
}

// sweep minimizes over each weight of the list in turn. gain is about twice the decrease of the objective, and changes
// is the number of weights that have changed.
func (c *coordinate) sweep(s *lassoState, mu float64, list []int) (gain float64, changes int) {
	for _, p := range list {
		norm := c.diagonal[p]
		if norm == 0 {
			continue // the column is constant, and its weight remains 0
		}
		w := soft(c.slope(s, p)+norm*s.w[p], mu) / norm
		delta := w - s.w[p]
		if delta == 0 || math.IsNaN(delta) {
			continue
		}
		s.w[p] = w
		gain += norm * delta * delta
		changes++
		c.moved(s, p, delta)
	}
	return gain, changes
}
