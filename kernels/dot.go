package kernels

import "fmt"

// Linear is k(x, z) = xᵀz.
type Linear struct{}

func (Linear) String() string      { return "linear()" }
func (Linear) Check(int) error     { return nil }
func (Linear) IsPSD() bool         { return true }
func (Linear) compile(c *compiler) { c.load(Stat{Kind: Dot}) }

// Polynomial is k(x, z) = (xᵀz + C)^Degree with C ≥ 0 and Degree ≥ 1. The
// homogeneous kernel (xᵀz)^p is C = 0; scikit-learn's gamma is 1 here.
type Polynomial struct {
	Degree int
	C      float64
}

func (k Polynomial) String() string {
	return fmt.Sprintf("polynomial(degree=%d,c=%s)", k.Degree, number(k.C))
}

// Check requires Degree ≥ 1 and a finite C ≥ 0.
func (k Polynomial) Check(int) error {
	if k.Degree < 1 {
		return fmt.Errorf("kernels: polynomial: degree must be a whole number ≥ 1, got %d", k.Degree)
	}
	return nonNegative("polynomial", "c", k.C)
}

func (k Polynomial) IsPSD() bool { return k.Check(-1) == nil }

func (k Polynomial) compile(c *compiler) {
	c.load(Stat{Kind: Dot})
	if k.C != 0 {
		c.unary(Instr{Op: Affine, A: 1, B: k.C})
	}
	if k.Degree != 1 {
		c.unary(Instr{Op: PowInt, Arg: k.Degree})
	}
}
