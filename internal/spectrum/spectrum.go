// Package spectrum computes the spectral densities of isotropic kernels, and bounds on the error of
// omitting high frequencies.
package spectrum

import (
	"math"

	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/kernels"
)

// A Density is the spectral density of an isotropic kernel of d features and a constant,
//
//	k(x, z) = Constant + (2π)⁻ᵈ ∫ S(‖ω‖) exp(iω·(x−z)) dω.
type Density struct {
	D        int // number of features
	Constant float64
	Terms    []Term
}

// A Term is Weight times a Matérn kernel, or times a Gaussian kernel if Nu is infinite.
type Term struct{ Weight, Sigma, Nu float64 }

// Of returns the density of k for d features. The result ok is false if k is not a sum of multiples of Gaussian
// kernels, of Matérn kernels and of constants, with one length scale for all features.
func Of(k kernels.Kernel, d int) (s Density, ok bool) {
	s.D = d
	if k == nil || k.Check(d) != nil {
		return s, false
	}
	switch k := k.(type) {
	case kernels.Gaussian:
		s.Terms = []Term{{1, k.Sigma, math.Inf(1)}}
		return s, k.Sigmas == nil
	case kernels.Matern:
		s.Terms = []Term{{1, k.Sigma, k.Nu}}
		return s, true
	case kernels.Laplacian:
		s.Terms = []Term{{1, k.Sigma, 0.5}}
		return s, d == 1
	case kernels.Constant:
		s.Constant = k.Value
		return s, k.Value >= 0
	case kernels.Scaled:
		s, ok = Of(k.Kernel, d)
		return s.times(k.Weight), ok && k.Weight >= 0
	case kernels.Sum:
		for _, term := range k {
			p, ok := Of(term, d)
			if !ok {
				return s, false
			}
			s.Constant += p.Constant
			s.Terms = append(s.Terms, p.Terms...)
		}
		return s, true
	case kernels.Product: // supported if at most one factor is not constant
		s.Constant = 1
		for _, factor := range k {
			p, ok := Of(factor, d)
			switch {
			case !ok || len(p.Terms) > 0 && len(s.Terms) > 0:
				return s, false
			case len(p.Terms) > 0:
				s = p.times(s.Constant)
			default:
				s = s.times(p.Constant)
			}
		}
		return s, true
	}
	return s, false
}

// times returns the density of c times the kernel.
func (s Density) times(c float64) Density {
	s.Constant *= c
	for i := range s.Terms {
		s.Terms[i].Weight *= c
	}
	return s
}

// At returns S(omega).
func (s Density) At(omega float64) (sum float64) {
	d := float64(s.D)
	for _, t := range s.Terms {
		if math.IsInf(t.Nu, 1) {
			v := t.Sigma * omega
			sum += t.Weight * elementary.Pow(math.Sqrt(2*math.Pi)*t.Sigma, d) * elementary.Exp(-v*v/2)
			continue
		}
		rate := math.Sqrt(2*t.Nu) / t.Sigma
		v := omega / rate
		lgUpper, _ := math.Lgamma(t.Nu + d/2)
		lgLower, _ := math.Lgamma(t.Nu)
		c := elementary.Exp(lgUpper-lgLower) * elementary.Pow(2*math.Sqrt(math.Pi)/rate, d)
		sum += t.Weight * c * elementary.Pow(1+v*v, -t.Nu-d/2)
	}
	return sum
}

// Kernel returns the value of the kernel minus Constant at the distance r.
func (s Density) Kernel(r float64) (sum float64) {
	for _, t := range s.Terms {
		v := math.Sqrt(2*t.Nu) * r / t.Sigma
		switch t.Nu {
		case 0.5:
			sum += t.Weight * elementary.Exp(-v)
		case 1.5:
			sum += t.Weight * (1 + v) * elementary.Exp(-v)
		case 2.5:
			sum += t.Weight * (1 + v + v*v/3) * elementary.Exp(-v)
		default:
			v = r / t.Sigma
			sum += t.Weight * elementary.Exp(-v*v/2)
		}
	}
	return sum
}

// Tail returns (2π)⁻ᵈ ∫ S(‖ω‖)ᵖ dω over ‖ω‖ > omega. Without these frequencies, the kernel has an error e. For
// p = 1 the result bounds |e|. For p = 2 it is the integral of e² over all differences of points (Parseval). The
// relative error of Tail is about 1e-3.
func (s Density) Tail(omega, p float64) float64 {
	const step = 1. / 32
	d := float64(s.D)
	sphere := [...]float64{2, 2 * math.Pi, 4 * math.Pi}[s.D-1]
	sum := 0.0
	for i := 0; i < 3000; i++ {
		r := omega * elementary.Exp(step*float64(i))
		f := elementary.Pow(s.At(r), p) * elementary.Pow(r, d)
		if i == 0 {
			f /= 2
		}
		sum += f
		if !(f > 1e-6*sum) {
			break
		}
	}
	return sphere * elementary.Pow(2*math.Pi, -d) * step * sum
}
