package lsq

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/run"
)

// LassoMethod names a method to minimize the objective of the lasso.
type LassoMethod string

const (
	// CoordinateDescent minimizes over one weight at a time. It is the fastest method for most data.
	CoordinateDescent LassoMethod = "coordinate-descent"
	// FISTA is the accelerated proximal gradient method, with the steps w ← soft(w − η∇, ηλ) for the gradient ∇. It
	// restarts when the momentum would increase the objective (O'Donoghue and Candès 2015).
	FISTA LassoMethod = "fista"
	// ISTA is the proximal gradient method with a fixed step size and without momentum.
	ISTA LassoMethod = "ista"
)

// Lasso is the problem, for each output and each λ of Lambdas,
//
//	min Σ_i w_i (y_i − wᵀx_i − b)² + λ‖w‖₁
//
// If Theta is positive, the constraint ‖w‖₁ ≤ Theta replaces the penalty. Nil Lambdas means 100 values, evenly spaced
// in the logarithm, from the smallest λ for which all weights are 0 down to a thousandth of it.
type Lasso struct {
	Lambdas []float64
	Theta   float64 // bound on ‖w‖₁, used with Lambdas {0}; 0 means no bound
	Method  LassoMethod
	Rate    float64 // the step size η of ISTA; 0 selects 1/‖2XᵀX‖
	Tol     float64 // duality gap, relative to ‖y‖², at which the iteration ends
	MaxIter int     // maximum number of sweeps over the features, or of steps
}

// LassoFit is the solution for one λ. Iters, Support, Norm and Gap describe the first output.
type LassoFit struct {
	Coef      backend.Host[float64]
	Intercept []float64
	Lambda    []float64 // λ of each output: the given λ, or the λ at which ‖w‖₁ = Theta
	Iters     int
	Support   int     // number of nonzero weights
	Norm      float64 // ‖w‖₁
	Gap       float64 // the duality gap
	Warnings  []string
}

// LassoBytes returns the device memory of Lasso for n rows, in bytes.
func (c *Samples) LassoBytes(n int) int64 {
	if c.byGram() {
		return c.normalBytes(n)
	}
	return c.normalBytes(n) + c.factorBytes(n, int64(c.factoredOf(n)))
}

// maxFactorColumns returns the maximum number of columns whose Gram matrix coordinate descent factors. If XᵀX is
// not formed, the result is at most twice the number of rows.
func (c *Samples) maxFactorColumns() int {
	if c.byGram() {
		return c.d
	}
	return c.factoredOf(c.n)
}

// factoredOf is maxFactorColumns for n samples whose XᵀX is not formed. For sparse samples the result is at most
// gramFeatures, because the dense factor may take much more memory than the samples.
func (c *Samples) factoredOf(n int) int {
	if c.sparse != nil {
		return min(2*n, c.d, gramFeatures)
	}
	return min(2*n, c.d)
}

// Lasso solves l for the λ in descending order, and starts each λ from the solution of the previous
// λ. The fits are in the order of l.Lambdas.
func (c *Samples) Lasso(t *run.Task, l Lasso) ([]LassoFit, error) {
	a, err := c.normal(t)
	if err != nil {
		return nil, err
	}
	defer a.free()
	lambdas := l.Lambdas
	if lambdas == nil {
		largest := 0.0
		for _, v := range a.moments.c.Data {
			largest = max(largest, 2*math.Abs(v))
		}
		for i := range 100 {
			lambdas = append(lambdas, largest*elementary.Pow(1e-3, float64(i)/99))
		}
	}
	norms := a.diagonal()
	var p proximal
	if l.Method == CoordinateDescent {
		p = newCoordinate(a)
	} else if p, err = newFista(a, l); err != nil {
		return nil, err
	}
	order := make([]int, len(lambdas))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return -cmp.Compare(lambdas[i], lambdas[k]) })
	fits := make([]LassoFit, len(lambdas))
	for i := range fits {
		fits[i] = LassoFit{Coef: backend.NewHost[float64](c.d, c.t), Lambda: slices.Repeat([]float64{lambdas[i]}, c.t)}
	}
	for j := range c.t {
		s := &lassoState{w: make([]float64, c.d), q: make([]float64, c.d), c: a.moments.c.Row(j), norms: norms, total: a.moments.s[j]}
		for solved, i := range order {
			m := &fits[i]
			fraction := 1 / float64(len(order)*c.t)
			s.base, s.fraction, s.warning = (float64(j*len(order)+solved))*fraction, fraction, ""
			w, mu := s.w, lambdas[i]/2
			if l.Theta > 0 {
				w, mu, err = s.bounded(p, l)
			} else {
				err = p.minimize(s, mu, l)
			}
			if err != nil {
				return nil, err
			}
			for p, v := range w {
				m.Coef.Row(p)[j] = v
			}
			m.Lambda[j] = 2 * mu
			if j == 0 {
				m.Iters, m.Support, m.Norm, m.Gap = s.steps, s.support(), sumAbs(w), 2*s.gap
			}
			if s.warning != "" {
				m.Warnings = append(m.Warnings, fmt.Sprintf("output %d has not converged: %s", j+1, s.warning))
			}
		}
	}
	for i := range fits {
		fits[i].Intercept = c.intercepts(fits[i].Coef)
	}
	return fits, t.Step("solve", 1)
}

// proximal is a method that minimizes ½‖y − Xw‖² + μ‖w‖₁. It starts from the weights of s and overwrites them.
type proximal interface {
	minimize(s *lassoState, mu float64, l Lasso) error
}

// lassoState holds an output's weights and the quantities derived from them.
type lassoState struct {
	w, q           []float64 // the weights w, and q = XᵀXw
	c              []float64 // c = Xᵀy
	norms          []float64 // ‖x_p‖² of each column
	total          float64   // ‖y‖²
	gap            float64   // the last duality gap
	stallGap       float64   // the gap at the last step that halved the previous stallGap; 0 before the first gap for this μ
	stalls         int       // number of gaps computed since stallGap changed
	rounding       float64   // rounding error of the last gap
	steps          int
	base, fraction float64 // reported progress before the fit for this λ, and the fit's share of the total progress
	warning        string  // why the iteration has not converged
}

func (s *lassoState) support() (n int) {
	for _, w := range s.w {
		if w != 0 {
			n++
		}
	}
	return n
}

// soft is the proximal map of μ|·|.
func soft(v, mu float64) float64 {
	switch {
	case v > mu:
		return v - mu
	case v < -mu:
		return v + mu
	}
	return 0
}

var errLassoOverflow = errors.New("values of x or y overflow: scale them down")

// settled updates the duality gap, and reports whether it is within the tolerance. Let r = y − Xw, and let s be
// the largest number ≤ 1 for which ‖Xᵀ(s·r)‖_∞ ≤ μ. The point s·r is dual feasible, so that
//
//	gap = ½‖r‖²(1 + s²) + μ‖w‖₁ − s·rᵀy ≥ 0
//
// bounds the distance of the objective from its minimum (Kim et al. 2007).
func (s *lassoState) settled(t *run.Task, mu float64, l Lasso) (bool, error) {
	var maxSlope, ones, cw, wq, size, norm float64
	for p, w := range s.w {
		maxSlope = max(maxSlope, math.Abs(s.c[p]-s.q[p]))
		ones += math.Abs(w)
		norm = max(norm, s.norms[p])
		cw += s.c[p] * w
		wq += w * s.q[p]
		size += math.Abs(s.c[p]*w) + math.Abs(w*s.q[p])
	}
	squares := max(s.total-2*cw+wq, 0)
	scale := 1.0
	if maxSlope > mu {
		scale = mu / maxSlope
	}
	s.gap = squares/2*(1+scale*scale) + mu*ones - scale*(s.total-cw)
	if s.gap-s.gap != 0 {
		return false, errLassoOverflow
	}
	s.gap = max(s.gap, 0)
	if s.stalls++; s.gap < s.stallGap/2 || s.stallGap == 0 {
		s.stallGap, s.stalls = s.gap, 0
	}
	// s.rounding estimates the rounding error of the gap, a difference of numbers near ‖y‖²/2 or, if large weights
	// cancel each other, of larger numbers.
	s.rounding = float64(len(s.w)) * epsilon * (s.total + size + mu*ones + ones*norm/mu*math.Abs(s.total-cw))
	// If μ = 0, the formula gives ½‖r‖², which is not a useful bound. Use the largest estimated decrease of the
	// objective by a change of one weight.
	if mu == 0 {
		s.gap = 0
		for p := range s.w {
			slope := math.Abs(s.c[p] - s.q[p])
			s.gap = max(s.gap, slope*math.Abs(s.w[p]))
			if s.norms[p] > 0 {
				s.gap = max(s.gap, slope/s.norms[p]*slope)
			}
		}
	}
	err := t.Step("solve", s.base+s.fraction*min(1, float64(s.steps)/float64(l.MaxIter)))
	return s.converged(l), err
}

// converged reports whether the gap is at most the requested tolerance or its rounding error.
func (s *lassoState) converged(l Lasso) bool { return s.gap <= max(l.Tol/2, 8*epsilon)*s.total }

// unsettled sets the warning that the iteration has not converged in MaxIter steps.
func (s *lassoState) unsettled(l Lasso, unit string) {
	s.warning = fmt.Sprintf("after %s the duality gap is %.2g ‖y‖², above the tolerance %.2g ‖y‖²: {raise $lambda|raise $tol|raise $iterations|$standardize}",
		count.Of(s.steps, unit), 2*s.gap/s.total, l.Tol)
}
