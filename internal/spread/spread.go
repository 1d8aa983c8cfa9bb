// Package spread tells numbers that differ by rounding alone from numbers that vary: one rule
// for the columns of a table and for the targets of a fit.
package spread

import "math"

// MaxRoundings bounds n in the rule of Rounding.
const MaxRoundings = 1000

// Rounding is the largest standard deviation of n numbers with that mean that is attributed
// to rounding: n·ε·|mean|, where n, which may be a sum of weights, counts as 1 at least and as
// 1000 at most. A column whose standard deviation is not above it is constant.
//
// Up to 1000 rows this is the rule of scikit-learn's _is_constant_feature,
// SD² ≤ n·ε·SD² + (n·ε·mean)², without its first term, which adds less than one part in
// 10¹² to the second, and without squares, so that it holds for numbers of 1e-300 as well.
// There n is the number of roundings in a plain sum (Chan, Golub and LeVeque 1983, section
// 3). Here n stands for the roundings in the numbers themselves, which do not grow with the
// number of rows, and 1e8 + k stays a column of different numbers in a table of any length.
func Rounding(n, mean float64) float64 {
	return min(max(n, 1), MaxRoundings) * 0x1p-52 * math.Abs(mean)
}

// Spread holds the statistics of a set of numbers from which Constant decides. The zero value is
// the empty set.
type Spread struct {
	n          int
	first, sum float64 // sum is Σ(v − first)
	root       float64 // √Σ(v − first)²
}

// Add adds a number.
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

// Mean is the mean of the numbers.
func (s *Spread) Mean() float64 { return s.first + s.sum/float64(max(s.n, 1)) }

// Constant reports whether there are numbers, and all are equal up to rounding.
func (s *Spread) Constant() bool {
	if s.n == 0 || s.root == 0 {
		return s.n > 0
	}
	root := s.root / math.Sqrt(float64(s.n))
	shift := math.Abs(s.sum) / float64(s.n)
	return math.Sqrt(max(root-shift, 0))*math.Sqrt(root+shift) <= Rounding(float64(s.n), s.Mean())
}
