package kernels

import (
	"fmt"
	"iter"
	"math"
)

// TermGradient returns the derivatives, with respect to x and z, of one term of a statistic that is a sum over the
// features. x and z are the values of feature p. For L1 at x = z, and for Chi2 if both values are 0, it returns the
// subgradient 0. It panics for the statistics of one point, and for Entry, which is not a function of coordinates.
func (s Stat) TermGradient(p int, x, z float64) (dx, dz float64) {
	scale := s.ScaleAt(p)
	if scale == 0 {
		return 0, 0
	}
	diff := x - z
	switch s.Kind {
	case Dot:
		return z * scale * scale, x * scale * scale
	case SqDist:
		dx = 2 * diff * scale * scale
	case L1:
		switch {
		case diff > 0:
			dx = math.Abs(scale)
		case diff < 0:
			dx = -math.Abs(scale)
		}
	case CosSum:
		for _, w := range s.Freqs {
			dx -= w * math.Sin(w*diff)
		}
	case SinSum:
		for _, w := range s.Freqs {
			sin, cos := math.Sincos(w * diff)
			dx += w*sin + w*w*diff*cos
		}
	case Sinc:
		dx = sincDerivative(diff)
	case Chi2:
		switch sum := x + z; {
		case x < 0 || z < 0:
			return math.NaN(), math.NaN()
		case sum > 0:
			r := diff / sum
			return r * (2 - r), -r * (2 + r)
		}
	default:
		panic(fmt.Sprintf("kernels: Stat.TermGradient: statistic %v is no sum over features", s.Kind))
	}
	return dx, -dx
}

// sincDerivative returns the derivative (2πΔ cos 2πΔ − sin 2πΔ)/Δ² of sin(2πΔ)/Δ at Δ = diff. For |2πΔ| < 1/64, where
// the numerator cancels, it uses the series (2π)³ (−Δ/3 + (2π)²Δ³/30 − (2π)⁴Δ⁵/840), with a relative error below 2⁻⁵⁰.
func sincDerivative(diff float64) float64 {
	const w = 2 * math.Pi
	a := w * diff
	if math.Abs(a) < 1.0/64 {
		return w * w * a * (-1.0/3 + a*a*(1.0/30-a*a/840))
	}
	sin, cos := math.Sincos(a)
	return (a*cos - sin) / diff / diff
}

// EvalGrad sets dx to ∂k/∂x and dz to ∂k/∂z of k(x, z), computed from the definitions in float64. dx or dz may be nil.
// Where k has no derivative, as the exponential kernel at x = z, EvalGrad uses the subgradient 0. It returns an error
// for invalid kernels, derivatives of kernels and kernels of precomputed values, and panics if lengths differ.
func EvalGrad(k Kernel, x, z, dx, dz []float64) error {
	for _, d := range [][]float64{dx, dz} {
		if d != nil && len(d) != len(x) {
			panic(fmt.Sprintf("kernels: EvalGrad: lengths differ: x %d, derivative %d", len(x), len(d)))
		}
		clear(d)
	}
	if err := CheckGrad(k, len(x)); err != nil {
		return err
	}
	stats := Compile(k).Stats
	for i, s := range stats {
		weight := Eval(StatDerivative{kernel: k, stat: i}, x, z)
		if s.Kind.OnePoint() {
			point, d := x, dx
			if s.Kind == SelfZ || s.Kind == RootZ {
				point, d = z, dz
			}
			if d == nil {
				continue
			}
			g, err := s.PointGradient(point)
			if err != nil {
				return err
			}
			for p, v := range g {
				d[p] += weight * v
			}
			continue
		}
		for p := range x {
			ux, uz := s.TermGradient(p, x[p], z[p])
			// 0 times an infinite weight counts as 0.
			if dx != nil && ux != 0 {
				dx[p] += weight * ux
			}
			if dz != nil && uz != 0 {
				dz[p] += weight * uz
			}
		}
	}
	return nil
}

// CheckGrad returns nil if k is valid for points of d features and EvalGrad supports k. Otherwise
// it returns the reason.
func CheckGrad(k Kernel, d int) error {
	if k == nil {
		return fmt.Errorf("kernels: the kernel is nil")
	}
	if err := k.Check(d); err != nil {
		return err
	}
	for i, s := range Compile(k).Stats {
		if err := (StatDerivative{kernel: k, stat: i}).Check(d); err != nil {
			return err
		}
		if s.Kind == Entry {
			return fmt.Errorf("kernels: %v has no derivatives with respect to its points: its values were computed elsewhere", k)
		}
		if s.Of != nil {
			if err := CheckGrad(s.Of, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// PointGradient returns the derivative with respect to x of a statistic of one point, k(x, x) or 1/√k(x, x). If
// k(x, x) is 0, 1/√k(x, x) and its derivative are defined as 0.
func (s Stat) PointGradient(x []float64) ([]float64, error) {
	if !s.Kind.OnePoint() {
		panic(fmt.Sprintf("kernels: Stat.PointGradient: statistic %v is not of one point", s.Kind))
	}
	dx, dz := make([]float64, len(x)), make([]float64, len(x))
	if err := EvalGrad(s.Of, x, x, dx, dz); err != nil {
		return nil, err
	}
	factor := 1.0
	if s.Kind == RootX || s.Kind == RootZ {
		r := inverseRoot(Diag(s.Of, x))
		factor = -r * r * r / 2
	}
	for p := range dx {
		dx[p] = factor * (dx[p] + dz[p])
	}
	return dx, nil
}

// Nondifferentiable reports whether k(x, z) has no derivative with respect to x for one of the points z. The
// exponential kernel has none at z = x; a kernel of ‖x−z‖₁ has none where a feature of z equals that of x; chi2 has
// none where a feature of both is 0; a normalized kernel has none if k(x, x) is 0. EvalGrad uses a subgradient there.
// Features p with ignored[p] are disregarded; ignored may be nil.
func Nondifferentiable(k Kernel, x []float64, points iter.Seq[[]float64], ignored []bool) bool {
	for _, s := range Compile(k).Stats {
		switch {
		case s.Kind == RootX:
			if s.Eval(x, x) == 0 {
				return true
			}
		case s.Kind == L1 || s.Kind == Chi2 || s.Kind == SqDist && !k.bounded():
			for z := range points {
				if s.corner(x, z, ignored) {
					return true
				}
			}
		}
	}
	return false
}

// corner reports whether the root of a squared distance, the L1 distance or the statistic of chi2
// has no derivative at (x, z) with respect to a feature that is not ignored.
func (s Stat) corner(x, z []float64, ignored []bool) bool {
	if s.Kind == SqDist && s.Eval(x, z) != 0 {
		return false
	}
	for p, v := range x {
		if s.ScaleAt(p) == 0 || ignored != nil && ignored[p] {
			continue
		}
		if s.Kind == SqDist || v == z[p] && (s.Kind == L1 || v == 0) {
			return true
		}
	}
	return false
}
