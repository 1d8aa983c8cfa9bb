package lsq

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"gonum.org/v1/gonum/blas/blas64"
)

// coordinate is coordinate descent (Friedman, Hastie and Tibshirani 2010): a
// sweep over all features, then sweeps over those whose weight is not 0 until
// they stand still, and again.
type coordinate struct {
	a        *normal
	diagonal []float64
	// Where XᵀX is not formed: the columns of X and Y, and y − Xw of the state
	// that it was made for.
	x, y     backend.Host[float64]
	residual []float64
	of       *lassoState
	output   int
}

func newCoordinate(a *normal) *coordinate {
	c := &coordinate{a: a, diagonal: a.diagonal(), output: -1}
	if a.r != nil {
		c.x, c.y = a.c.columns()
		c.residual = make([]float64, a.c.n)
	}
	return c
}

func (c *coordinate) minimize(s *lassoState, mu float64, l Lasso) error {
	if s.total == 0 {
		return nil
	}
	if c.a.r != nil && c.of != s { // a new output: w = 0
		c.of, c.output = s, c.output+1
		copy(c.residual, c.y.Row(c.output))
	}
	all := make([]int, len(s.w))
	for p := range all {
		all[p] = p
	}
	var active []int
	for s.steps = 0; ; {
		c.sweep(s, mu, all)
		s.steps++
		done, err := c.settled(s, mu, l)
		if err != nil || done {
			return err
		}
		active = active[:0]
		for p, w := range s.w {
			if w != 0 {
				active = append(active, p)
			}
		}
		// What the active weights can still gain, against the gap.
		for range 100 {
			if s.steps >= l.MaxIter {
				break
			}
			s.steps++
			if gain := c.sweep(s, mu, active); gain <= s.gap/1000 {
				break
			}
			if err := c.a.t.Step("solve", s.base+s.share*min(1, float64(s.steps)/float64(l.MaxIter))); err != nil {
				return err
			}
		}
		if s.steps >= l.MaxIter {
			done, err := c.settled(s, mu, l)
			if !done {
				s.unsettled(l, "sweeps")
			}
			return err
		}
	}
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

// sweep minimizes over each weight of the list in turn and returns Σ‖x_p‖²δ_p²,
// which is about what the objective lost, twice.
func (c *coordinate) sweep(s *lassoState, mu float64, list []int) (gain float64) {
	for _, p := range list {
		norm := c.diagonal[p]
		if norm == 0 {
			continue // a constant column: its weight stays 0
		}
		var slope float64
		if c.a.r == nil {
			slope = s.c[p] - s.q[p]
		} else {
			slope = c.product(p)
		}
		w := soft(slope+norm*s.w[p], mu) / norm
		delta := w - s.w[p]
		if delta == 0 || math.IsNaN(delta) {
			continue
		}
		s.w[p] = w
		gain += norm * delta * delta
		if c.a.r == nil {
			blas64.Axpy(delta, vector(c.a.moments.g.Row(p)), vector(s.q))
		} else {
			blas64.Axpy(-delta, vector(c.x.Row(p)), vector(c.residual))
		}
	}
	return gain
}
