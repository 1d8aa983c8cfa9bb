package kernels

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mercer-go/mercer/internal/count"
)

// A Param is a continuous parameter of a kernel that can be fitted. Its Value is from Min to Max.
//
// If Log is set, the parameter must be ≥ 0, and derivatives are taken with respect to ln Value. The
// derivative at 0 is 0, so that a fit does not change a parameter that is 0.
type Param struct {
	// Name is the name in the kernel's text: "sigma", "sigma[2]" for the length scale of the second
	// feature, "2.sigma" for the sigma of the second term or factor.
	Name  string
	Value float64
	Log   bool
	Rule
}

// Nearest returns the value nearest to v that obeys the rule.
func (p Param) Nearest(v float64) float64 { return min(max(v, p.Min), p.Max) }

// Params lists the continuous parameters of k; degrees and the ν of a Matérn kernel are not
// continuous. The list is empty if k is invalid.
func Params(k Kernel) []Param {
	if k == nil || k.Check(-1) != nil {
		return nil
	}
	return k.params()
}

// WithParams returns k with the given parameter values (not logarithms), in the order of Params. It
// fails if the number of values is wrong, or if a parameter of k or a new value breaks its rule.
func WithParams(k Kernel, values []float64) (Kernel, error) {
	if k == nil {
		return nil, fmt.Errorf("kernels: the kernel is nil")
	}
	if err := k.Check(-1); err != nil {
		return nil, err
	}
	if n := len(k.params()); len(values) != n {
		return nil, fmt.Errorf("kernels: %v has %s, got %s", k, count.Of(n, "parameter"), count.Of(len(values), "value"))
	}
	result := k.with(values)
	if err := result.Check(-1); err != nil {
		return nil, err
	}
	return result, nil
}

// Gradient returns ∂k/∂θ for every θ of Params, as kernels that any backend
// evaluates: dev.Gram(dst, Gradient(k)[i], x, x) is the matrix ∂K/∂θ_i.
func Gradient(k Kernel) []Kernel {
	g := make([]Kernel, len(Params(k)))
	for i := range g {
		g[i] = derivative{kernel: k, param: i}
	}
	return g
}

// derivative is the derivative of a kernel with respect to Params(kernel)[param], or to its logarithm if Log is
// set. It has no parameters, and Parse does not accept its text.
type derivative struct {
	kernel Kernel
	param  int
}

func (k derivative) String() string {
	params := Params(k.kernel)
	if k.param < 0 || k.param >= len(params) {
		return fmt.Sprintf("∂(%s)/∂#%d", text(k.kernel), k.param)
	}
	p := params[k.param]
	if p.Log {
		return fmt.Sprintf("∂(%v)/∂ln %s", k.kernel, p.Name)
	}
	return fmt.Sprintf("∂(%v)/∂%s", k.kernel, p.Name)
}

// Check requires that the inner kernel is valid and has the parameter.
func (k derivative) Check(d int) error {
	if k.kernel == nil {
		return fmt.Errorf("kernels: derivative: the inner kernel is missing")
	}
	if err := k.kernel.Check(d); err != nil {
		return err
	}
	if n := len(k.kernel.params()); k.param < 0 || k.param >= n {
		return fmt.Errorf("kernels: derivative: no parameter has index %d: %v has %d", k.param, k.kernel, n)
	}
	return nil
}

func (derivative) IsPSD() bool             { return false }
func (k derivative) compile(c *compiler)   { k.kernel.derive(c, k.param) }
func (derivative) params() []Param         { return nil }
func (k derivative) with([]float64) Kernel { return k }
func (derivative) derive(c *compiler, _ int) {
	c.push(Instr{Op: Const})
}

func (derivative) deriveStat(*compiler, Stat) {
	panic("kernels: a derivative cannot be differentiated again")
}
func (k derivative) bounded() bool { return k.kernel.bounded() }

// The parameters of a sum or product are the parameters of its terms or factors (parts), in order.

// joinParams lists the parameters of the parts. Their names begin with the part's number, from 1.
func joinParams(parts []Kernel) []Param {
	var params []Param
	for i, k := range parts {
		for _, p := range k.params() {
			p.Name = strconv.Itoa(i+1) + "." + p.Name
			params = append(params, p)
		}
	}
	return params
}

func assignParams(parts []Kernel, values []float64) []Kernel {
	result := make([]Kernel, len(parts))
	for i, k := range parts {
		n := len(k.params())
		result[i], values = k.with(values[:n]), values[n:]
	}
	return result
}

// owner returns the index of the part that has parameter i, and the parameter's index in that part.
func owner(parts []Kernel, i int) (part, index int) {
	for part, k := range parts {
		n := len(k.params())
		if i < n {
			return part, i
		}
		i -= n
	}
	panic("kernels: no such parameter")
}

func (k Sum) params() []Param              { return joinParams(k) }
func (k Sum) with(values []float64) Kernel { return Sum(assignParams(k, values)) }

// derive appends the derivative of the only term that depends on the parameter.
func (k Sum) derive(c *compiler, i int) {
	part, index := owner(k, i)
	k[part].derive(c, index)
}

// deriveStat appends the sum of ∂k/∂s over the terms k that depend on s.
func (k Sum) deriveStat(c *compiler, s Stat) {
	terms := slices.DeleteFunc(slices.Clone(k), func(t Kernel) bool { return !depends(t, s) })
	for i, t := range terms {
		deriveStat(c, t, s)
		if i > 0 {
			c.binary(Add)
		}
	}
}

func (k Sum) bounded() bool { return allBounded(k) }

func (k Product) params() []Param              { return joinParams(k) }
func (k Product) with(values []float64) Kernel { return Product(assignParams(k, values)) }

// derive appends the derivative of one factor times the other factors.
func (k Product) derive(c *compiler, i int) {
	part, index := owner(k, i)
	for f, t := range k {
		if f == part {
			t.derive(c, index)
		} else {
			t.compile(c)
		}
		if f > 0 {
			c.binary(Mul)
		}
	}
}

// deriveStat applies the product rule to the factors that depend on s.
func (k Product) deriveStat(c *compiler, s Stat) {
	terms := 0
	for i, t := range k {
		if !depends(t, s) {
			continue
		}
		deriveStat(c, t, s)
		for j, factor := range k {
			if j != i {
				factor.compile(c)
				c.binary(Mul)
			}
		}
		if terms++; terms > 1 {
			c.binary(Add)
		}
	}
}

func (k Product) bounded() bool { return allBounded(k) }

func (k Scaled) params() []Param {
	return append([]Param{nonNegative.param("weight", k.Weight)}, k.Kernel.params()...)
}

func (k Scaled) with(values []float64) Kernel {
	return Scaled{Weight: values[0], Kernel: k.Kernel.with(values[1:])}
}

// derive appends the code of the derivative, which is Weight·k with respect to ln Weight.
func (k Scaled) derive(c *compiler, i int) {
	if i == 0 {
		k.compile(c)
		return
	}
	k.Kernel.derive(c, i-1)
	c.unary(Instr{Op: Affine, A: k.Weight})
}

func (k Scaled) deriveStat(c *compiler, s Stat) {
	deriveStat(c, k.Kernel, s)
	c.unary(Instr{Op: Affine, A: k.Weight})
}

func (k Scaled) bounded() bool { return k.Kernel.bounded() }

func (k Constant) params() []Param              { return []Param{nonNegative.param("value", k.Value)} }
func (k Constant) with(values []float64) Kernel { return Constant{values[0]} }
func (k Constant) derive(c *compiler, _ int)    { k.compile(c) }

func (Constant) deriveStat(c *compiler, _ Stat) { c.push(Instr{Op: Const}) }
func (Constant) bounded() bool                  { return true }

func (k ExpOf) params() []Param              { return k.Kernel.params() }
func (k ExpOf) with(values []float64) Kernel { return ExpOf{k.Kernel.with(values)} }

// derive appends the code of exp(k) ∂k/∂θ for parameter θ of k.
func (k ExpOf) derive(c *compiler, i int) {
	k.compile(c)
	k.Kernel.derive(c, i)
	c.binary(Mul)
}

// deriveStat appends the code of exp(k) ∂k/∂s.
func (k ExpOf) deriveStat(c *compiler, s Stat) {
	k.compile(c)
	deriveStat(c, k.Kernel, s)
	c.binary(Mul)
}

func (k ExpOf) bounded() bool { return k.Kernel.bounded() }
