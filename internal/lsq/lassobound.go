package lsq

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
)

// boundTol is the maximum relative difference of ‖w‖₁ and an active bound on it. boundSteps is the
// maximum number of penalties μ to try.
const (
	boundTol   = 1e-8
	boundSteps = 200
)

// bounded minimizes ½‖y − Xw‖² subject to ‖w‖₁ ≤ θ. It returns w and the μ for which the minimum w(μ) of the sum
// ½‖y − Xw‖² + μ‖w‖₁ is the same. μ is 0 if the bound is not active.
//
// ‖w(μ)‖₁ is continuous, nonincreasing and piecewise linear in μ (Osborne, Presnell and Turlach 2000). The method
// decreases μ from ‖Xᵀy‖_∞, where w = 0, until ‖w(μ)‖₁ > θ. Then it solves ‖w(μ)‖₁ = θ by the secant method in the
// Illinois variant. At the end it may scale w to ‖w‖₁ = θ.
//
// It stops when a bound on f(w') − f* is small enough, where f(w) = ½‖y − Xw‖², f* is the minimum of f, w' is a
// multiple of w with ‖w'‖₁ ≤ θ, and gap is the duality gap of w:
//
//	f(w') − f* ≤ gap + f(w') − f(w) + μ(θ − ‖w‖₁)
func (s *lassoState) bounded(p proximal, l Lasso) (w []float64, mu float64, err error) {
	theta, limit := l.Theta, max(l.Tol/2, 8*epsilon)*s.total
	inner := l
	inner.Tol = l.Tol / 10
	base, fraction, steps := s.base, s.fraction, 0
	defer func() { s.steps = steps }()
	w = make([]float64, len(s.w))

	// low and high are the ends of the bracket, and atLow and atHigh the values of h(μ) = ‖w(μ)‖₁ − θ at the ends.
	var low, atLow, previous float64 // previous holds h for the previous μ
	high, atHigh := 0.0, -theta
	for _, v := range s.c {
		high = max(high, math.Abs(v))
	}
	initial, bracketed := high, false
	mu = high / 2
	for try := 1; ; try++ {
		s.base, s.fraction = base+fraction*float64(try-1)/boundSteps, fraction/boundSteps
		if err := p.minimize(s, mu, inner); err != nil {
			return nil, 0, err
		}
		steps += s.steps
		norm := sumAbs(s.w)
		cw, wq := numeric.Dot(s.c, s.w), numeric.Dot(s.w, s.q)
		gapAt := func(scale float64) float64 {
			return max(0, s.gap+(1-scale)*cw-(1-scale*scale)/2*wq+mu*(theta-norm))
		}
		scale, gap := 1.0, gapAt(1)
		if norm > theta || norm > 0 && gapAt(theta/norm) < gap {
			scale, gap = theta/norm, gapAt(theta/norm)
		}
		met, binding := math.Abs(norm-theta) <= boundTol*theta, mu*theta > limit
		narrow := bracketed && high-low <= 4*epsilon*high
		inactive := mu == 0 && norm <= theta
		done := gap <= limit && (met || narrow || !binding) || inactive && s.warning == ""
		if done || s.warning != "" || try == boundSteps {
			for j, v := range s.w {
				w[j] = scale * v
			}
			s.gap = gap
			if done {
				s.warning = ""
			} else if s.warning == "" {
				s.warning = fmt.Sprintf("after %s the duality gap is %.2g ‖y‖², above the tolerance %.2g ‖y‖²: {raise $tol|$standardize}", count.Of(try, "penalty"), 2*gap/s.total, l.Tol)
			}
			if !binding && norm <= theta {
				mu = 0
			}
			return w, mu, nil
		}
		// Illinois algorithm: if the same end moves twice in succession, halve the function value at the other end.
		if h := norm - theta; h > 0 {
			if previous > 0 {
				atHigh /= 2
			}
			low, atLow, previous, bracketed = mu, h, h, true
		} else {
			if previous < 0 {
				atLow /= 2
			}
			high, atHigh, previous = mu, h, h
		}
		switch {
		case bracketed:
			mu = low + (high-low)*atLow/(atLow-atHigh)
			if !(mu > low && mu < high) {
				mu = low + (high-low)/2
			}
		case mu > initial/1000:
			mu = high / 4
		default:
			mu = 0 // find out whether the bound is active
		}
	}
}
