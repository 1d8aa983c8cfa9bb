package solvers

import (
	"math"

	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/kernels"
)

// A density is the spectral density of an isotropic kernel of d features and a constant,
//
//	k(x, z) = constant + (2π)⁻ᵈ ∫ S(‖ω‖) exp(iω·(x−z)) dω.
type density struct {
	d        int
	constant float64
	terms    []densityTerm
}

// A densityTerm is weight times a Matérn kernel, or times a Gaussian kernel if nu is infinite.
type densityTerm struct{ weight, sigma, nu float64 }

// densityOf returns the density of k for d features. ok is false if k is not a sum of multiples of
// Gaussian kernels, of Matérn kernels and of constants, with one length scale for all features.
func densityOf(k kernels.Kernel, d int) (s density, ok bool) {
	s.d = d
	if k == nil || k.Check(d) != nil {
		return s, false
	}
	switch k := k.(type) {
	case kernels.Gaussian:
		s.terms = []densityTerm{{1, k.Sigma, math.Inf(1)}}
		return s, k.Sigmas == nil
	case kernels.Matern:
		s.terms = []densityTerm{{1, k.Sigma, k.Nu}}
		return s, true
	case kernels.Laplacian:
		s.terms = []densityTerm{{1, k.Sigma, 0.5}}
		return s, d == 1
	case kernels.Constant:
		s.constant = k.Value
		return s, k.Value >= 0
	case kernels.Scaled:
		s, ok = densityOf(k.Kernel, d)
		return s.times(k.Weight), ok && k.Weight >= 0
	case kernels.Sum:
		for _, part := range k {
			p, ok := densityOf(part, d)
			if !ok {
				return s, false
			}
			s.constant += p.constant
			s.terms = append(s.terms, p.terms...)
		}
		return s, true
	case kernels.Product: // at most one factor may be other than a constant
		s.constant = 1
		for _, part := range k {
			p, ok := densityOf(part, d)
			switch {
			case !ok || len(p.terms) > 0 && len(s.terms) > 0:
				return s, false
			case len(p.terms) > 0:
				s = p.times(s.constant)
			default:
				s = s.times(p.constant)
			}
		}
		return s, true
	}
	return s, false
}

// times returns the density of c times the kernel.
func (s density) times(c float64) density {
	s.constant *= c
	for i := range s.terms {
		s.terms[i].weight *= c
	}
	return s
}

// at returns S(omega).
func (s density) at(omega float64) (sum float64) {
	d := float64(s.d)
	for _, t := range s.terms {
		if math.IsInf(t.nu, 1) {
			v := t.sigma * omega
			sum += t.weight * math.Pow(math.Sqrt(2*math.Pi)*t.sigma, d) * elementary.Exp(-v*v/2)
			continue
		}
		rate := math.Sqrt(2*t.nu) / t.sigma
		v := omega / rate
		c := math.Gamma(t.nu+d/2) / math.Gamma(t.nu) * math.Pow(2*math.Sqrt(math.Pi)/rate, d)
		sum += t.weight * c * math.Pow(1+v*v, -t.nu-d/2)
	}
	return sum
}

// kernel returns the kernel without its constant at the distance r.
func (s density) kernel(r float64) (sum float64) {
	for _, t := range s.terms {
		v := math.Sqrt(2*t.nu) * r / t.sigma
		switch t.nu {
		case 0.5:
			sum += t.weight * elementary.Exp(-v)
		case 1.5:
			sum += t.weight * (1 + v) * elementary.Exp(-v)
		case 2.5:
			sum += t.weight * (1 + v + v*v/3) * elementary.Exp(-v)
		default:
			v = r / t.sigma
			sum += t.weight * elementary.Exp(-v*v/2)
		}
	}
	return sum
}

// tail returns (2π)⁻ᵈ ∫ S(‖ω‖)ᵖ dω over ‖ω‖ > omega. For p = 1 this bounds the error of a kernel without
// these frequencies, and for p = 2 it is the integral of the square of this error over all differences of
// points (Parseval). The trapezoidal rule in ln ‖ω‖ takes the decay of the integrand to 1e-3 of the value.
func (s density) tail(omega, p float64) float64 {
	const step = 1. / 32
	d := float64(s.d)
	sphere := [...]float64{2, 2 * math.Pi, 4 * math.Pi}[s.d-1]
	sum := 0.0
	for i := 0; i < 3000; i++ {
		r := omega * math.Exp(step*float64(i))
		f := math.Pow(s.at(r), p) * math.Pow(r, d)
		if i == 0 {
			f /= 2
		}
		sum += f
		if !(f > 1e-6*sum) {
			break
		}
	}
	return sphere * math.Pow(2*math.Pi, -d) * step * sum
}
