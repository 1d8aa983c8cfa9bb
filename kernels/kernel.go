package kernels

import (
	"fmt"
	"math"
	"reflect"
)

// A Kernel is a function k(x, z) of two points of ℝᵈ, as data. The types of
// this package are the only ones that implement it.
type Kernel interface {
	// String is the canonical text of the kernel; Parse(k.String()) equals k.
	String() string

	// Check returns nil when every parameter obeys its rule for points of d
	// features, or an error that names the first one that does not. With
	// d < 0 the number of features is not known yet and is not checked.
	Check(d int) error

	// IsPSD tells whether the parameters guarantee a positive semi-definite
	// Gram matrix for every set of points.
	IsPSD() bool

	// compile appends the code that leaves k(x, z) on top of the stack.
	compile(c *compiler)
}

// Equal tells whether a and b are the same kernel with the same parameters.
func Equal(a, b Kernel) bool { return reflect.DeepEqual(a, b) }

// Eval returns k(x, z) in float64, straight from the definition. It panics
// when len(x) ≠ len(z).
func Eval(k Kernel, x, z []float64) float64 {
	p := Compile(k)
	stats := make([]float64, len(p.Stats))
	for i, s := range p.Stats {
		stats[i] = s.Eval(x, z)
	}
	return p.Run(stats)
}

// Diag returns k(x, x).
func Diag(k Kernel, x []float64) float64 { return Eval(k, x, x) }

// positive is the rule of length scales and weights.
func positive(kernel, param string, v float64) error {
	if !(v > 0) || math.IsInf(v, 1) {
		return fmt.Errorf("kernels: %s: %s must be a finite number > 0, got %v", kernel, param, v)
	}
	return nil
}

// nonNegative is the rule of offsets and weights of sums.
func nonNegative(kernel, param string, v float64) error {
	if !(v >= 0) || math.IsInf(v, 1) {
		return fmt.Errorf("kernels: %s: %s must be a finite number ≥ 0, got %v", kernel, param, v)
	}
	return nil
}
