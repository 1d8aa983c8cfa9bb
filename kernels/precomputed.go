package kernels

import (
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/internal/count"
)

// Precomputed is a kernel whose values are given, such as the values of a kernel over strings or trees, of a user
// function, or of another program. A point is the object's row of kernel values, preceded by two numbers:
//
//	training object i    (i, k(c_i, c_i), k(c_i, c_0), …, k(c_i, c_m−1))
//	any other object a   (−1, k(a, a),    k(a, c_0),   …, k(a, c_m−1))
//
// where c_0 … c_m−1 are all training objects. To find k for two points, Precomputed takes the number of one point
// and reads the other point's row at this number. Points may therefore be selected, split into folds and permuted
// freely. For two points with the number −1 the value is k(a, a) if the points are equal, otherwise NaN. The
// numbers of up to 2²⁴ objects are exact in float32.
//
// TrainingPoints and OtherPoints construct the points.
type Precomputed struct{}

func (Precomputed) String() string { return "precomputed()" }

// Check requires at least three features: the object's number and at least two kernel values.
func (Precomputed) Check(d int) error {
	if d >= 0 && d < 3 {
		return fmt.Errorf("kernels: precomputed: a point needs at least 3 features, got %d: the object's number, its kernel value with itself, and its kernel value with each training object", d)
	}
	return nil
}

// IsPSD is false, because the values are not known.
func (Precomputed) IsPSD() bool               { return false }
func (Precomputed) compile(c *compiler)       { c.load(Stat{Kind: Entry}) }
func (Precomputed) params() []Param           { return nil }
func (k Precomputed) with([]float64) Kernel   { return k }
func (Precomputed) derive(c *compiler, _ int) { c.push(Instr{Op: Const}) }

func (Precomputed) deriveStat(c *compiler, _ Stat) { c.pushOne() }
func (Precomputed) bounded() bool                  { return true }

// IsPrecomputed reports whether k is Precomputed, or composed of Precomputed and constants only. It returns an error if
// k contains Precomputed and also depends on features or on k(a, a), which a precomputed matrix does not contain.
func IsPrecomputed(k Kernel) (bool, error) {
	if k == nil || k.Check(-1) != nil {
		return false, nil
	}
	entries, others := false, false
	for _, s := range Compile(k).Stats {
		if s.Of != nil {
			inner, err := IsPrecomputed(s.Of)
			entries, others = entries || inner || err != nil, true
			continue
		}
		entries, others = entries || s.Kind == Entry, others || s.Kind != Entry
	}
	if entries && others {
		return false, fmt.Errorf("kernels: precomputed: %v also needs the features of the objects or k(x, x), which a precomputed matrix does not have: compute the values of the whole kernel yourself, and use the kernel precomputed()", k)
	}
	return entries, nil
}

// PrecomputedIndex returns the number of the training object that a point represents, or −1 if the point represents
// no training object. The argument first is the first of the point's d features.
func PrecomputedIndex(first float64, d int) int {
	if i := int(first); first >= 0 && first < float64(d-2) && float64(i) == first {
		return i
	}
	return -1
}

// entry returns the value of Precomputed for x and z. It is NaN if x and z differ and neither is a training object.
func entry(x, z []float64) float64 {
	if len(x) < 3 {
		return math.NaN()
	}
	if i := PrecomputedIndex(z[0], len(z)); i >= 0 {
		return x[2+i]
	}
	if i := PrecomputedIndex(x[0], len(x)); i >= 0 {
		return z[2+i]
	}
	if slices.Equal(x, z) {
		return x[1]
	}
	return math.NaN()
}

// notGram is the advice in errors for points that are probably rows of a Gram matrix.
const notGram = "; the rows of a Gram matrix become points by TrainingPoints"

// precomputedPoint checks the number of a point, and that the two values k(a, a) of a training object a are equal.
func precomputedPoint(x []float64) error {
	if err := (Precomputed{}).Check(len(x)); err != nil {
		return err
	}
	if x[0] != -1 && PrecomputedIndex(x[0], len(x)) < 0 {
		return &PointError{kernel: "precomputed", Feature: 1, Value: x[0], rule: fmt.Sprintf("it must be -1 or the number of one of %d training objects, from 0%s", len(x)-2, notGram)}
	}
	if i := PrecomputedIndex(x[0], len(x)); i >= 0 && x[1] != x[2+i] {
		return fmt.Errorf("kernels: precomputed: k(a, a) of training object %d must be equal in features 2 and %d, got %v and %v%s", i+1, i+3, x[1], x[2+i], notGram)
	}
	return nil
}

// TrainingPoints returns the points of n training objects with the Gram matrix K as an n × (n+2)
// matrix. Both matrices are row-major.
//
// It returns an error if n is 0, if a value is not finite, or if K_ij and K_ji differ by more than 2⁻⁴⁰ of the
// largest value.
func TrainingPoints(n int, gram []float64) ([]float64, error) {
	if n == 0 || len(gram) != n*n {
		return nil, fmt.Errorf("kernels: precomputed: a Gram matrix of %s has %d² values, got %d", count.Of(n, "object"), n, len(gram))
	}
	if err := CheckGram(n, gram); err != nil {
		return nil, err
	}
	points := make([]float64, n*(n+2))
	for i := range n {
		row := points[i*(n+2):]
		row[0], row[1] = float64(i), gram[i*n+i]
		for j := range n {
			row[2+j] = gram[max(i, j)*n+min(i, j)]
		}
	}
	return points, nil
}

// OtherPoints returns the points of other objects as a matrix with m+2 columns. The rows of cross
// hold the kernel values of each object with the m training objects, and diag the values k(a, a).
func OtherPoints(m int, cross, diag []float64) ([]float64, error) {
	n := len(diag)
	if m == 0 || len(cross) != n*m {
		return nil, fmt.Errorf("kernels: precomputed: %s and %d training objects have %s, got %d", count.Of(n, "object"), m, count.Of(n*m, "value"), len(cross))
	}
	points := make([]float64, 0, n*(m+2))
	for i, diagonal := range diag {
		row := cross[i*m : (i+1)*m]
		for j, v := range row {
			if math.IsNaN(v - v) {
				return nil, fmt.Errorf("kernels: precomputed: the value of object %d with training object %d is %v", i+1, j+1, v)
			}
		}
		if math.IsNaN(diagonal - diagonal) {
			return nil, fmt.Errorf("kernels: precomputed: the value of object %d with itself is %v", i+1, diagonal)
		}
		points = append(append(points, -1, diagonal), row...)
	}
	return points, nil
}

// CheckGram returns an error if an element of an n×n matrix, stored by rows, is not finite, or if elements (i, j)
// and (j, i) differ by more than 2⁻⁴⁰ of the largest element. The error names the first such element or pair.
func CheckGram(n int, gram []float64) error {
	largest := 0.0
	for i, v := range gram {
		if math.IsNaN(v - v) {
			return fmt.Errorf("kernels: the value in row %d, column %d of the Gram matrix is %v", i/n+1, i%n+1, v)
		}
		largest = max(largest, math.Abs(v))
	}
	for i := range n {
		for j := range i {
			if a, b := gram[i*n+j], gram[j*n+i]; math.Abs(a-b) > 0x1p-40*largest {
				return fmt.Errorf("kernels: the Gram matrix is not symmetric: row %d, column %d has %v, row %d, column %d has %v", i+1, j+1, a, j+1, i+1, b)
			}
		}
	}
	return nil
}
