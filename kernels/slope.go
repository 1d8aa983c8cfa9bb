package kernels

import (
	"fmt"
	"slices"
)

// Slopes returns ∂k/∂s for every statistic s of Compile(k).Stats, in their
// order, as kernels that any backend evaluates. With the derivatives of the
// statistics by the features they make the derivative by a point:
//
//	∂k(x, z)/∂x_p = Σ_s Slopes(k)[s](x, z) · ∂s(x, z)/∂x_p
//
// A kernel that breaks a rule has none.
func Slopes(k Kernel) []Slope {
	if k == nil || k.Check(-1) != nil {
		return nil
	}
	all := make([]Slope, len(Compile(k).Stats))
	for i := range all {
		all[i] = Slope{Of: k, Stat: i}
	}
	return all
}

// Slope is ∂k/∂s of the kernel k = Of, where s is number Stat of
// Compile(Of).Stats and the others are held. It is not positive semi-definite,
// and is symmetric only where s is. It has no text that Parse takes and no
// parameters of its own.
//
// The slope of the exponential kernel has no bound where points coincide, and is
// +Inf or −Inf there: see Bounded.
type Slope struct {
	Of   Kernel
	Stat int
}

func (k Slope) String() string {
	return fmt.Sprintf("∂(%s)/∂s%d", text(k.Of), k.Stat)
}

// Check requires that the kernel passes, is not itself a derivative, and has
// the statistic.
func (k Slope) Check(d int) error {
	if k.Of == nil {
		return fmt.Errorf("kernels: slope: no kernel inside")
	}
	if err := k.Of.Check(d); err != nil {
		return err
	}
	if !sloping(k.Of) {
		return fmt.Errorf("kernels: slope: %v holds a derivative, of which there are no further ones", k.Of)
	}
	if n := len(Compile(k.Of).Stats); k.Stat < 0 || k.Stat >= n {
		return fmt.Errorf("kernels: slope: statistic %d of the %d of %v", k.Stat, n, k.Of)
	}
	return nil
}

// Bounded tells whether the values stay finite where points coincide. Where
// they do not, the derivative of k by a point is not continuous there, and 0 is
// one of its subgradients.
func (k Slope) Bounded() bool { return bounded(k.Of) }

func (Slope) IsPSD() bool             { return false }
func (Slope) params() []Param         { return nil }
func (k Slope) with([]float64) Kernel { return k }
func (Slope) derive(c *compiler, _ int) {
	c.push(Instr{Op: Const})
}

func (k Slope) compile(c *compiler) { slope(c, k.Of, Compile(k.Of).Stats[k.Stat]) }

// slope appends the code of ∂k/∂s.
func slope(c *compiler, k Kernel, s Stat) {
	if !depends(k, s) {
		c.push(Instr{Op: Const})
		return
	}
	switch k := k.(type) {
	case Linear, Cosine, CosineSeries, SincLimit, Precomputed:
		c.push(Instr{Op: Const, A: 1})
	case Polynomial: // p (xᵀz + c)^(p−1)
		if k.Degree == 1 {
			c.push(Instr{Op: Const, A: 1})
			return
		}
		Polynomial{Degree: k.Degree - 1, C: k.C}.compile(c)
		c.unary(Instr{Op: Affine, A: float64(k.Degree)})
	case Sigmoid: // a (1 − tanh²)
		k.compile(c)
		c.unary(Instr{Op: PowInt, Arg: 2})
		c.unary(Instr{Op: Affine, A: -k.A, B: k.A})
	case Gaussian: // −k/2σ²; with a length scale for each feature the statistic is scaled
		k.compile(c)
		factor := -0.5
		if k.Sigmas == nil {
			factor = -0.5 / k.Sigma / k.Sigma
		}
		c.unary(Instr{Op: Affine, A: factor})
	case Laplacian:
		k.compile(c)
		c.unary(Instr{Op: Affine, A: -1 / k.Sigma})
	case RationalQuadratic: // −t^(−a−1)/2σ²
		k.power(c, -k.A-1)
		c.unary(Instr{Op: Affine, A: -0.5 / k.Sigma / k.Sigma})
	case Matern:
		k.slope(c)
	case ChiSquared:
		k.compile(c)
		c.unary(Instr{Op: Affine, A: -k.Gamma})
	case CosineSimilarity:
		slope(c, Normalised{Linear{}}, s)
	case Normalised:
		k.slope(c, s)
	case Scaled:
		slope(c, k.Kernel, s)
		c.unary(Instr{Op: Affine, A: k.Weight})
	case ExpOf:
		k.compile(c)
		slope(c, k.Kernel, s)
		c.binary(Mul)
	case CosOf:
		k.Kernel.compile(c)
		c.unary(Instr{Op: Sin})
		slope(c, k.Kernel, s)
		c.binary(Mul)
		c.unary(Instr{Op: Affine, A: -1})
	case Sum:
		terms := slices.DeleteFunc(slices.Clone(k), func(t Kernel) bool { return !depends(t, s) })
		for i, t := range terms {
			slope(c, t, s)
			if i > 0 {
				c.binary(Add)
			}
		}
	case Product:
		k.slope(c, s)
	}
}

// slope: every factor that depends on s in turn, times the others.
func (k Product) slope(c *compiler, s Stat) {
	terms := 0
	for i, t := range k {
		if !depends(t, s) {
			continue
		}
		slope(c, t, s)
		for j, other := range k {
			if j != i {
				other.compile(c)
				c.binary(Mul)
			}
		}
		if terms++; terms > 1 {
			c.binary(Add)
		}
	}
}

// slope by ‖x−z‖²: with s = √(2ν) r it is dk/ds · ν/(σ²s), which is
//
//	−exp(−s)/2σ²s   −3 exp(−s)/2σ²   −5 (1+s) exp(−s)/6σ²
func (k Matern) slope(c *compiler) {
	k.distance(c)
	c.unary(Instr{Op: Affine, A: -1})
	c.unary(Instr{Op: Exp})
	factor := -0.5
	switch k.Nu {
	case 0.5:
		k.distance(c)
		c.unary(Instr{Op: Pow, A: -1})
		c.binary(Mul)
	case 1.5:
		factor = -1.5
	case 2.5:
		factor = -5.0 / 6
		k.distance(c)
		c.unary(Instr{Op: Affine, A: 1, B: 1})
		c.binary(Mul)
	}
	c.unary(Instr{Op: Affine, A: factor / k.Sigma / k.Sigma})
}

// slope: of k r_x r_z, by the statistics of k and by the roots r.
func (k Normalised) slope(c *compiler, s Stat) {
	terms := 0
	add := func() {
		if terms++; terms > 1 {
			c.binary(Add)
		}
	}
	if depends(k.Kernel, s) {
		slope(c, k.Kernel, s)
		k.roots(c)
		c.binary(Mul)
		add()
	}
	for _, ends := range [][2]StatKind{{RootX, RootZ}, {RootZ, RootX}} {
		if s.Equal(Stat{Kind: ends[0], Of: k.Kernel}) {
			k.Kernel.compile(c)
			c.load(Stat{Kind: ends[1], Of: k.Kernel})
			c.binary(Mul)
			add()
		}
	}
}

// depends tells whether k's program loads s.
func depends(k Kernel, s Stat) bool { return slices.ContainsFunc(Compile(k).Stats, s.Equal) }

// parts are the kernels that k is made of.
func parts(k Kernel) []Kernel {
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
	case Normalised:
		return []Kernel{k.Kernel}
	}
	return nil
}

// sloping tells whether slope knows k.
func sloping(k Kernel) bool {
	switch k.(type) {
	case Derivative, Slope:
		return false
	}
	return !slices.ContainsFunc(parts(k), func(p Kernel) bool { return !sloping(p) })
}

func bounded(k Kernel) bool {
	if m, ok := k.(Matern); ok && m.Nu == 0.5 {
		return false
	}
	return !slices.ContainsFunc(parts(k), func(p Kernel) bool { return !bounded(p) })
}
