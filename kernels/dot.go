package kernels

import (
	"fmt"
	"math"
)

// Linear is k(x, z) = xᵀz.
type Linear struct{}

func (Linear) String() string      { return "linear()" }
func (Linear) Check(int) error     { return nil }
func (Linear) IsPSD() bool         { return true }
func (Linear) compile(c *compiler) { c.load(Stat{Kind: Dot}) }

func (Linear) params() []Param           { return nil }
func (k Linear) with([]float64) Kernel   { return k }
func (Linear) derive(c *compiler, _ int) { c.push(Instr{Op: Const}) }

func (Linear) deriveStat(c *compiler, _ Stat) { c.pushOne() }
func (Linear) bounded() bool                  { return true }

// Polynomial is k(x, z) = (xᵀz + C)^Degree with C ≥ 0 and Degree ≥ 1. The homogeneous kernel
// (xᵀz)^Degree has C = 0. In scikit-learn's terms gamma is 1.
type Polynomial struct {
	Degree int
	C      float64
}

func (k Polynomial) String() string {
	return fmt.Sprintf("polynomial(degree=%d,c=%s)", k.Degree, number(k.C))
}

// Check requires Degree ≥ 1 and a finite C ≥ 0.
func (k Polynomial) Check(int) error {
	if err := atLeastOne.Check("kernels: polynomial: degree", float64(k.Degree)); err != nil {
		return err
	}
	return checkParams("polynomial", k)
}

// atLeastOne is the rule for integer parameters ≥ 1.
var atLeastOne = Rule{Min: 1, Max: math.MaxFloat64, Integer: true}

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

func (k Polynomial) params() []Param { return []Param{nonNegative.param("c", k.C)} }
func (k Polynomial) with(values []float64) Kernel {
	return Polynomial{Degree: k.Degree, C: values[0]}
}

// derive appends the code of the derivative with respect to ln C, C·p·(xᵀz + C)^(p−1), where p is Degree.
func (k Polynomial) derive(c *compiler, _ int) {
	if k.Degree == 1 || k.C == 0 {
		c.push(Instr{Op: Const, A: k.C})
		return
	}
	Polynomial{Degree: k.Degree - 1, C: k.C}.compile(c)
	c.unary(Instr{Op: Affine, A: k.C * float64(k.Degree)})
}

// deriveStat appends the code of p (xᵀz + C)^(p−1), the derivative with respect to xᵀz, where p is Degree.
func (k Polynomial) deriveStat(c *compiler, _ Stat) {
	if k.Degree == 1 {
		c.pushOne()
		return
	}
	Polynomial{Degree: k.Degree - 1, C: k.C}.compile(c)
	c.unary(Instr{Op: Affine, A: float64(k.Degree)})
}

func (Polynomial) bounded() bool { return true }

// Sigmoid is k(x, z) = tanh(A xᵀz + C), the "neural network" kernel of support
// vector machines; scikit-learn calls A gamma and C coef0.
//
// It is not positive semi-definite in general (Smola, Óvári and Williamson 2001, Regularization with dot-product
// kernels): IsPSD is false, and a Gram matrix may need more regularization to be factored.
type Sigmoid struct{ A, C float64 }

func (k Sigmoid) String() string { return "sigmoid(a=" + number(k.A) + ",c=" + number(k.C) + ")" }

// Check requires finite parameters.
func (k Sigmoid) Check(int) error { return checkParams("sigmoid", k) }

func (Sigmoid) IsPSD() bool { return false }

func (k Sigmoid) compile(c *compiler) {
	c.load(Stat{Kind: Dot})
	c.unary(Instr{Op: Affine, A: k.A, B: k.C})
	c.unary(Instr{Op: Tanh})
}

func (k Sigmoid) params() []Param {
	return []Param{anyNumber.param("a", k.A), anyNumber.param("c", k.C)}
}

func (k Sigmoid) with(values []float64) Kernel { return Sigmoid{A: values[0], C: values[1]} }

// derive appends the code of the derivative: 1 − tanh² with respect to C, or (1 − tanh²) xᵀz with respect to A.
func (k Sigmoid) derive(c *compiler, i int) {
	k.compile(c)
	c.unary(Instr{Op: PowInt, Arg: 2})
	c.unary(Instr{Op: Affine, A: -1, B: 1})
	if i == 0 {
		c.load(Stat{Kind: Dot})
		c.binary(Mul)
	}
}

// deriveStat appends the code of A (1 − tanh²), the derivative with respect to xᵀz.
func (k Sigmoid) deriveStat(c *compiler, _ Stat) {
	k.compile(c)
	c.unary(Instr{Op: PowInt, Arg: 2})
	c.unary(Instr{Op: Affine, A: -k.A, B: k.A})
}

func (Sigmoid) bounded() bool { return true }
