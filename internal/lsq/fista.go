package lsq

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
)

// fista implements the accelerated proximal gradient method of Beck and Teboulle (2009) with adaptive restart
// (O'Donoghue and Candès 2015). A step needs only one product on the device, because XᵀXz at the extrapolated
// point z follows from the products for the last two iterates. ISTA is this method without momentum.
type fista struct {
	a         *normal
	ista      bool    // whether the method is ISTA
	fixed     bool    // whether the caller has set the step size, so that lipschitz is constant
	lipschitz float64 // estimate of the largest eigenvalue of XᵀX; doubled while it is too small for a step
}

func newFista(a *normal, l Lasso) (*fista, error) {
	f := &fista{a: a, ista: l.Method == ISTA, fixed: l.Rate > 0, lipschitz: 1 / (2 * l.Rate)}
	if f.fixed {
		return f, nil
	}
	largest, err := a.largest(nil)
	f.lipschitz = 1.05 * largest
	return f, err
}

func (f *fista) minimize(s *lassoState, mu float64, l Lasso) error {
	s.steps = 0
	if s.total == 0 || f.lipschitz == 0 {
		return nil
	}
	d := len(s.w)
	z, qz := append([]float64(nil), s.w...), append([]float64(nil), s.q...)
	w, q := make([]float64, d), make([]float64, d)
	momentum := 1.0
	for {
		if s.steps%8 == 0 {
			done, err := f.settled(s, mu, l)
			if errors.Is(err, errLassoOverflow) && f.fixed && s.steps > 0 {
				return message.Errorf("the weights diverge at rate %v: {lower $rate, or leave it out to use 1/‖2XᵀX‖}", l.Rate)
			}
			if err != nil || done {
				return err
			}
		}
		if s.steps == l.MaxIter {
			done, err := f.settled(s, mu, l)
			if !done {
				s.unsettled(l, "step")
			}
			return err
		}
		s.steps++
		for { // double lipschitz until it is at least the curvature along the step
			for p := range w {
				w[p] = soft(z[p]+(s.c[p]-qz[p])/f.lipschitz, mu/f.lipschitz)
			}
			if err := f.a.apply(q, w); err != nil {
				return err
			}
			var curvature, size float64
			for p := range w {
				step := w[p] - z[p]
				curvature += step * (q[p] - qz[p])
				size += step * step
			}
			// The curvature along a very short step is ignored, because the rounding errors of q make it inaccurate.
			if f.fixed || !(curvature > f.lipschitz*size*(1+1e-8)) || size <= epsilon*s.norm() {
				break
			}
			f.lipschitz *= 2
		}
		uphill := 0.0
		for p := range w {
			uphill += (z[p] - w[p]) * (w[p] - s.w[p])
		}
		nextMomentum := (1 + math.Sqrt(1+4*momentum*momentum)) / 2
		beta := (momentum - 1) / nextMomentum
		if uphill > 0 || f.ista {
			nextMomentum, beta = 1, 0
		}
		momentum = nextMomentum
		for p := range w {
			z[p] = w[p] + beta*(w[p]-s.w[p])
			qz[p] = q[p] + beta*(q[p]-s.q[p])
		}
		copy(s.w, w)
		copy(s.q, q)
	}
}

// settled updates the gap like lassoState.settled. For μ = 0, that gap is too small if columns are correlated. Then
// settled also runs at most boundSteps steps of conjugate gradients, preconditioned by the diagonal of XᵀX. If they
// decrease the objective by more than the gap, this decrease becomes the gap.
func (f *fista) settled(s *lassoState, mu float64, l Lasso) (bool, error) {
	done, err := s.settled(f.a.t, mu, l)
	if mu > 0 || !done || err != nil {
		return done, err
	}
	d := len(s.w)
	r, z, p, q := make([]float64, d), make([]float64, d), make([]float64, d), make([]float64, d)
	for j := range r {
		r[j] = s.c[j] - s.q[j]
	}
	decrease, previousRho := 0.0, 0.0
	for step := range min(d, boundSteps) {
		rho := 0.0
		for j, v := range r {
			if z[j] = 0; s.norms[j] > 0 {
				z[j] = v / s.norms[j]
			}
			rho += v * z[j]
		}
		for j, v := range z {
			if p[j] = v + p[j]*rho/previousRho; step == 0 {
				p[j] = v
			}
		}
		if err := f.a.apply(q, p); err != nil {
			return false, err
		}
		curvature := numeric.Dot(p, q)
		if !(rho > 0 && curvature > epsilon*rho) { // XᵀXp is 0 up to rounding errors
			break
		}
		decrease += rho / curvature * rho / 2
		blas64.Axpy(-rho/curvature, vector(q), vector(r))
		previousRho = rho
	}
	s.gap = max(s.gap, decrease)
	return s.converged(l), nil
}

// norm returns ‖w‖².
func (s *lassoState) norm() (sum float64) {
	for _, w := range s.w {
		sum += w * w
	}
	return sum
}
