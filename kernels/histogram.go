package kernels

import (
	"errors"
	"fmt"
	"math"
)

// ChiSquared is k(x, z) = exp(−γ Σ_p (x_p−z_p)²/(x_p+z_p)) with γ = Gamma > 0 for points without negative
// features, such as histograms; a term 0/0 is taken as 0. It equals scikit-learn's chi2_kernel (Zhang, Marszałek,
// Lazebnik and Schmid 2007, Local features and kernels for classification of texture and object categories, IJCV
// 73). k(x, z) is NaN when a feature is negative: see PointRule.
type ChiSquared struct{ Gamma float64 }

func (k ChiSquared) String() string  { return "chi2(gamma=" + number(k.Gamma) + ")" }
func (k ChiSquared) Check(int) error { return checkParams("chi2", k) }
func (k ChiSquared) IsPSD() bool     { return k.Check(-1) == nil }

func (k ChiSquared) compile(c *compiler) {
	c.load(Stat{Kind: Chi2})
	c.unary(Instr{Op: Affine, A: -k.Gamma})
	c.unary(Instr{Op: Exp})
}

func (k ChiSquared) params() []Param            { return []Param{positive.param("gamma", k.Gamma)} }
func (ChiSquared) with(values []float64) Kernel { return ChiSquared{values[0]} }

// derive appends the code of −γχ² exp(−γχ²), the derivative with respect to ln γ, where χ² is the statistic Chi2.
func (k ChiSquared) derive(c *compiler, _ int) {
	k.compile(c)
	c.load(Stat{Kind: Chi2})
	c.unary(Instr{Op: Affine, A: -k.Gamma})
	c.binary(Mul)
}

// deriveStat appends the code of −γk, the derivative with respect to the statistic Chi2.
func (k ChiSquared) deriveStat(c *compiler, _ Stat) {
	k.compile(c)
	c.unary(Instr{Op: Affine, A: -k.Gamma})
}

func (ChiSquared) bounded() bool { return true }

// PointRule returns a function that checks whether a point of finite features meets the requirements of k. It
// returns nil if k has no requirements or is invalid. The error of the function names the feature, counted from 1,
// its value and the rule. Kernels of distances reject points so large that a distance may overflow.
func PointRule(k Kernel) func(x []float64) error {
	rules := pointRules(k)
	if rules == nil {
		return nil
	}
	return func(x []float64) error { return obey(rules, len(x), SparsePoint[float64]{Values: x}) }
}

// SparsePointRule is like PointRule, for points of d features that store only their nonzeros.
func SparsePointRule(k Kernel, d int) func(x SparsePoint[float64]) error {
	rules := pointRules(k)
	if rules == nil {
		return nil
	}
	return func(x SparsePoint[float64]) error { return obey(rules, d, x) }
}

func obey(rules []pointRule, d int, x SparsePoint[float64]) error {
	for _, r := range rules {
		if err := r(d, x); err != nil {
			return err
		}
	}
	return nil
}

// A pointRule checks a point of d features. If Columns is nil, Values has all features; otherwise
// the features that are not stored are 0, and 0 obeys every rule.
type pointRule func(d int, x SparsePoint[float64]) error

// feature returns the index, from 0, of the feature whose value is Values[p].
func (x SparsePoint[T]) feature(p int) int {
	if x.Columns == nil {
		return p
	}
	return int(x.Columns[p])
}

func pointRules(k Kernel) (rules []pointRule) {
	if k == nil || k.Check(-1) != nil {
		return nil
	}
	for _, s := range Compile(k).Stats {
		switch {
		case s.Kind == Chi2:
			rules = append(rules, s.notNegative)
		case s.Kind == SqDist || s.Kind == L1:
			rules = append(rules, s.inRange)
		case s.Kind == Entry:
			rules = append(rules, func(d int, x SparsePoint[float64]) error {
				if len(x.Values) != d {
					x.Values = x.dense(d)
				}
				return precomputedPoint(x.Values)
			})
		case s.Of != nil:
			rules = append(rules, pointRules(s.Of)...)
		}
	}
	return rules
}

// PointError is the error for a point at which a kernel is not defined. It matches ErrOverflow if
// the value is too large; otherwise the value is invalid at any scale of the features.
type PointError struct {
	Feature int // counted from 1
	Value   float64

	kernel, rule string
	overflow     bool
}

// Is makes errors.Is(e, ErrOverflow) true if the value of e is too large.
func (e *PointError) Is(target error) bool { return e.overflow && target == ErrOverflow }

func (e *PointError) Error() string {
	return fmt.Sprintf("kernels: %s: feature %d is %v: %s", e.kernel, e.Feature, e.Value, e.rule)
}

// ErrOverflow matches errors about values or length scales of a kernel that are out of range
// because of the scale of the features.
var ErrOverflow = errors.New("kernels: values are outside the range of float64")

// Overflow wraps err so that it matches ErrOverflow.
func Overflow(err error) error { return overflow{err} }

type overflow struct{ error }

func (e overflow) Unwrap() error { return e.error }

func (overflow) Is(target error) bool { return target == ErrOverflow }

// inRange rejects a point x if its norm is so large that the distance to another accepted point z could overflow. The
// distances are bounded by ‖x−z‖² ≤ 2‖x‖² + 2‖z‖² and ‖x−z‖₁ ≤ ‖x‖₁ + ‖z‖₁.
func (s Stat) inRange(_ int, x SparsePoint[float64]) error {
	sum, limit := 0.0, math.MaxFloat64/4
	if s.Kind == L1 {
		limit = math.MaxFloat64 / 2
	}
	for p, v := range x.Values {
		v *= s.ScaleAt(x.feature(p))
		if s.Kind == SqDist {
			sum += v * v
		} else {
			sum += math.Abs(v)
		}
	}
	if sum <= limit {
		return nil
	}
	largest := 0
	for p, v := range x.Values {
		if math.Abs(v) > math.Abs(x.Values[largest]) {
			largest = p
		}
	}
	return &PointError{kernel: s.Kind.String(), Feature: x.feature(largest) + 1, Value: x.Values[largest], rule: "distances between points of this size overflow float64: scale the features down", overflow: true}
}

func (s Stat) notNegative(_ int, x SparsePoint[float64]) error {
	for p, v := range x.Values {
		if s.ScaleAt(x.feature(p)) != 0 && (!(v >= 0) || math.IsInf(v, 1)) {
			return &PointError{kernel: "chi2", Feature: x.feature(p) + 1, Value: v, rule: "features must be finite numbers ≥ 0"}
		}
	}
	return nil
}
