// Package spread decides whether numbers differ only by rounding errors.
package spread

import "math"

// MaxRoundings is the maximum n in the rule of Rounding.
const MaxRoundings = 1000

// Rounding returns n·ε·|mean| with ε = 2⁻⁵², the largest standard deviation that rounding errors alone may cause if n
// equal numbers have the given mean. A column with at most this standard deviation is constant. The argument n may
// be a sum of weights, and is limited to the range from 1 to 1000.
//
// For up to 1000 rows this is the rule of scikit-learn's _is_constant_feature, variance ≤ n·ε·variance + (n·ε·mean)²,
// without the negligible first term on the right. It has no squares, which would underflow for numbers of 1e-300.
// Because of the limit of 1000, the numbers 1e8 + 1, 1e8 + 2, … are not constant even in a long table.
func Rounding(n, mean float64) float64 {
	return min(max(n, 1), MaxRoundings) * 0x1p-52 * math.Abs(mean)
}

// Spread holds the statistics of a set of numbers for Constant. The zero value is the empty set.
type Spread struct {
	n          int
	first, sum float64 // sum is Σ(v − first)
	root       float64 // root is √Σ(v − first)²
}

// Add adds v to the set.
func (s *Spread) Add(v float64) {
	if s.n == 0 {
		s.first = v
	}
	s.n++
	if d := v - s.first; d != 0 {
		s.sum += d
		s.root = math.Hypot(s.root, d)
	}
}

// Mean returns the mean of the numbers.
func (s *Spread) Mean() float64 { return s.first + s.sum/float64(max(s.n, 1)) }

// Constant reports whether the set is not empty and all numbers are equal up to rounding errors.
func (s *Spread) Constant() bool {
	return s.n > 0 && (s.root == 0 || s.Deviation() <= Rounding(float64(s.n), s.Mean()))
}

// Deviation returns the standard deviation of the numbers about their mean.
func (s *Spread) Deviation() float64 {
	n := float64(max(s.n, 1))
	root, shift := s.root/math.Sqrt(n), math.Abs(s.sum)/n
	return math.Sqrt(max(root-shift, 0)) * math.Sqrt(root+shift)
}
