package lsq

import (
	"cmp"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"gonum.org/v1/gonum/blas/blas64"
)

// coordinate is coordinate descent (Friedman, Hastie and Tibshirani 2010) over the
// weights that are not 0 or whose slope exceeds μ, until they stand still or are exact; then
// the duality gap over all features decides. Sweeps that have cost as much as a
// factorization of X_AᵀX_A, A the weights that are not 0, are followed by the exact
// minimum over A: correlated columns would slow the sweeps down without limit.
type coordinate struct {
	a        *normal
	diagonal []float64
	// Where XᵀX is not formed: the columns of X and Y, and y − Xw of the state
	// that it was made for.
	x, y     backend.Host[float64]
	residual []float64
	of       *lassoState
	output   int
	active   []int     // A, of the last exact minimum
	factor   *cholesky // of its X_AᵀX_A
}

func newCoordinate(a *normal) *coordinate {
	c := &coordinate{a: a, diagonal: a.diagonal(), output: -1}
	if a.r != nil {
		c.x, c.y = a.c.columns()
		c.residual = make([]float64, a.c.n)
		return c
	}
	a.fixed.Free() // its products are not used, and a factorization takes its place
	a.fixed = nil
	return c
}

// factorRate is how many multiplications of a factorization take the time of one of a
// sweep: the former run in blocks and on all processors.
const factorRate = 8

func (c *coordinate) minimize(s *lassoState, mu float64, l Lasso) error {
	if s.total == 0 {
		return nil
	}
	if c.a.r != nil && c.of != s { // a new output: w = 0
		c.of, c.output = s, c.output+1
		copy(c.residual, c.y.Row(c.output))
	}
	var list, active []int
	work := 0   // multiplications of sweeps since the last exact minimum
	sweeps := 1 // between duality gaps, at most; the last one was at another μ
	for s.steps = 0; ; sweeps = 100 {
		list = list[:0]
		for p, w := range s.w {
			if w != 0 || math.Abs(s.c[p]-s.q[p]) > mu {
				list = append(list, p)
			}
		}
		// A round ends when these weights gain little of the gap.
		for range sweeps {
			if s.steps >= l.MaxIter {
				break
			}
			s.steps++
			gain, changes := c.sweep(s, mu, list)
			if err := c.a.t.Step("solve", s.base+s.share*min(1, float64(s.steps)/float64(l.MaxIter))); err != nil {
				return err
			}
			active = active[:0]
			for _, p := range list {
				if s.w[p] != 0 {
					active = append(active, p)
				}
			}
			cost := 0 // of a factorization, in multiplications
			if !slices.Equal(active, c.active) {
				cost = len(active) * len(active) * len(active) / 6
			}
			if c.a.r == nil {
				work += changes * len(s.w)
			} else {
				work += (len(list) + changes) * c.a.c.n
				cost *= 1 + 3*c.a.c.n/max(1, len(active))
			}
			still, err := gain <= s.gap/1000, error(nil)
			// Without a penalty no dual point bounds what correlated columns leave.
			if len(active) > 0 && len(active) <= c.a.c.n && (work >= cost/factorRate || mu == 0) && s.steps < l.MaxIter {
				work = 0
				s.steps++
				if still, err = c.exact(s, mu, active); err != nil {
					return err
				}
			}
			if still {
				break
			}
		}
		if done, err := c.settled(s, mu, l); err != nil || done {
			return err
		}
		if s.steps >= l.MaxIter {
			s.unsettled(l, "sweeps")
			return nil
		}
	}
}

// exact minimizes over the weights of active as long as their signs stay, or along the line
// there where some change, and reports whether all signs stayed.
//
// With the signs s of w_A the minimum is at w_A + δ, X_AᵀX_A δ = X_Aᵀ(y − Xw) − μs = v.
// Along tδ the objective has the derivative δᵀv(t − 1) + Σ 2μ|δ_p| over the weights that have
// changed their sign. Where columns depend on each other the weights of some stay.
func (c *coordinate) exact(s *lassoState, mu float64, active []int) (bool, error) {
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
	v := make([]float64, len(active))
	for i, p := range active {
		v[i] = c.slope(s, p) - math.Copysign(mu, s.w[p])
	}
	delta := slices.Clone(v)
	c.factor.solve(delta)
	curvature := blas64.Dot(vector(delta), vector(v))
	if !(curvature > 0) || math.IsInf(curvature, 1) {
		return curvature == 0, nil
	}
	at := func(i int) float64 { return -s.w[active[i]] / delta[i] } // t where a weight is 0
	var crossed []int
	for i := range active {
		if t := at(i); t > 0 && t < 1 {
			crossed = append(crossed, i)
		}
	}
	slices.SortFunc(crossed, func(i, k int) int { return cmp.Compare(at(i), at(k)) })
	step, jump, zero := 1.0, 0.0, -1
	for _, i := range crossed {
		if curvature*(at(i)-1)+jump >= 0 {
			break
		}
		jump += 2 * mu * math.Abs(delta[i])
		if curvature*(at(i)-1)+jump >= 0 {
			step, zero = at(i), i
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
	return len(crossed) == 0, nil
}

func (c *coordinate) settled(s *lassoState, mu float64, l Lasso) (bool, error) {
	if c.a.r != nil {
		for p := range s.q { // Xᵀr gives XᵀXw = Xᵀy − Xᵀr
			s.q[p] = s.c[p] - c.product(p)
		}
	}
	return s.settled(c.a.t, mu, l)
}

// product is x_pᵀ(y − Xw).
func (c *coordinate) product(p int) float64 {
	return blas64.Dot(vector(c.x.Row(p)), vector(c.residual))
}

// slope is x_pᵀ(y − Xw).
func (c *coordinate) slope(s *lassoState, p int) float64 {
	if c.a.r == nil {
		return s.c[p] - s.q[p]
	}
	return c.product(p)
}

// moved updates what depends on weight p, which has changed by delta.
func (c *coordinate) moved(s *lassoState, p int, delta float64) {
	if c.a.r == nil {
		blas64.Axpy(delta, vector(c.a.moments.g.Row(p)), vector(s.q))
	} else {
		blas64.Axpy(-delta, vector(c.x.Row(p)), vector(c.residual))
	}
}

// sweep minimizes over each weight of the list in turn and returns Σ‖x_p‖²δ_p²,
// which is about what the objective lost, twice, and the number of weights that changed.
func (c *coordinate) sweep(s *lassoState, mu float64, list []int) (gain float64, changes int) {
	for _, p := range list {
		norm := c.diagonal[p]
		if norm == 0 {
			continue // a constant column: its weight stays 0
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
