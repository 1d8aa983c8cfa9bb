package kernels

import (
	"fmt"
	"slices"
)

// StatDerivatives returns ∂k/∂s for every statistic s of Compile(k).Stats, in this order, as kernels that any
// backend evaluates. The chain rule gives the derivative with respect to a point:
//
//	∂k(x, z)/∂x_p = Σ_s StatDerivatives(k)[s](x, z) · ∂s(x, z)/∂x_p
//
// The list is empty if k breaks a rule.
func StatDerivatives(k Kernel) []StatDerivative {
	if k == nil || k.Check(-1) != nil {
		return nil
	}
	list := make([]StatDerivative, len(Compile(k).Stats))
	for i := range list {
		list[i] = StatDerivative{kernel: k, stat: i}
	}
	return list
}

// StatDerivative is ∂k/∂s for a kernel k and one of its statistics s; the other statistics are held fixed. It is
// symmetric only if s is symmetric in x and z. Parse does not accept its text, and it has no parameters. It may be
// infinite at x = z: see Bounded.
type StatDerivative struct {
	kernel Kernel
	stat   int
}

func (k StatDerivative) String() string {
	return fmt.Sprintf("∂(%s)/∂s%d", text(k.kernel), k.stat)
}

// Check requires that k is valid, contains no derivative and has the statistic.
func (k StatDerivative) Check(d int) error {
	if k.kernel == nil {
		return fmt.Errorf("kernels: derivative with respect to a statistic: the inner kernel is missing")
	}
	if err := k.kernel.Check(d); err != nil {
		return err
	}
	if !differentiable(k.kernel) {
		return fmt.Errorf("kernels: derivative with respect to a statistic: %v contains a derivative, which cannot be differentiated again", k.kernel)
	}
	if n := len(Compile(k.kernel).Stats); k.stat < 0 || k.stat >= n {
		return fmt.Errorf("kernels: derivative with respect to a statistic: no statistic has index %d: %v has %d", k.stat, k.kernel, n)
	}
	return nil
}

// Bounded reports whether the derivative is finite where x = z. It is false for kernels that contain the exponential
// kernel, and for the zero value.
func (k StatDerivative) Bounded() bool { return k.kernel != nil && k.kernel.bounded() }

func (StatDerivative) IsPSD() bool             { return false }
func (StatDerivative) params() []Param         { return nil }
func (k StatDerivative) with([]float64) Kernel { return k }
func (StatDerivative) derive(c *compiler, _ int) {
	c.push(Instr{Op: Const})
}

func (StatDerivative) deriveStat(*compiler, Stat) {
	panic("kernels: a derivative cannot be differentiated again")
}
func (k StatDerivative) bounded() bool { return k.kernel.bounded() }

func (k StatDerivative) compile(c *compiler) {
	deriveStat(c, k.kernel, Compile(k.kernel).Stats[k.stat])
}

func deriveStat(c *compiler, k Kernel, s Stat) {
	if !depends(k, s) {
		c.push(Instr{Op: Const})
		return
	}
	k.deriveStat(c, s)
}

// pushOne appends the constant 1, the derivative of a kernel that equals a statistic with respect to this statistic.
func (c *compiler) pushOne() { c.push(Instr{Op: Const, A: 1}) }

// depends reports whether k's program loads s.
func depends(k Kernel, s Stat) bool { return slices.ContainsFunc(Compile(k).Stats, s.Equal) }

// innerKernels returns the kernels of which k is composed.
func innerKernels(k Kernel) []Kernel {
	switch k := k.(type) {
	case Sum:
		return k
	case Product:
		return k
	case Scaled:
		return []Kernel{k.Kernel}
	case ExpOf:
		return []Kernel{k.Kernel}
	case CosOf:
		return []Kernel{k.Kernel}
	case Normalized:
		return []Kernel{k.Kernel}
	case Columns:
		return []Kernel{k.Kernel}
	}
	return nil
}

// differentiable reports whether no part of k is itself a derivative.
func differentiable(k Kernel) bool {
	switch k.(type) {
	case derivative, StatDerivative:
		return false
	}
	return !slices.ContainsFunc(innerKernels(k), func(p Kernel) bool { return !differentiable(p) })
}

func allBounded(parts []Kernel) bool {
	return !slices.ContainsFunc(parts, func(p Kernel) bool { return !p.bounded() })
}
