package kernels

import "errors"

// CosOf is cos(k(x, z)). It is not a kernel for learning, and Parse does not accept its text. Backends use it for
// trigonometric features: cos(ωᵀx + b) is CosOf{Sum{Linear{}, Constant{b}}} at (x, ω).
type CosOf struct{ Kernel Kernel }

func (k CosOf) String() string { return "cos(" + text(k.Kernel) + ")" }

// Check requires a valid kernel.
func (k CosOf) Check(d int) error {
	if k.Kernel == nil {
		return errors.New("kernels: cos: the inner kernel is missing")
	}
	return k.Kernel.Check(d)
}

// IsPSD is false, because cos(k(x, x)) may be negative.
func (CosOf) IsPSD() bool { return false }

func (k CosOf) compile(c *compiler) {
	k.Kernel.compile(c)
	c.unary(Instr{Op: Cos})
}

func (k CosOf) params() []Param              { return k.Kernel.params() }
func (k CosOf) with(values []float64) Kernel { return CosOf{k.Kernel.with(values)} }

// derive appends the code of −sin(k) ∂k/∂θ for parameter θ of k.
func (k CosOf) derive(c *compiler, i int) {
	k.Kernel.compile(c)
	c.unary(Instr{Op: Sin})
	k.Kernel.derive(c, i)
	c.binary(Mul)
	c.unary(Instr{Op: Affine, A: -1})
}

// deriveStat appends the code of −sin(k) ∂k/∂s.
func (k CosOf) deriveStat(c *compiler, s Stat) {
	k.Kernel.compile(c)
	c.unary(Instr{Op: Sin})
	deriveStat(c, k.Kernel, s)
	c.binary(Mul)
	c.unary(Instr{Op: Affine, A: -1})
}

func (k CosOf) bounded() bool { return k.Kernel.bounded() }
