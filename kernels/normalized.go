package kernels

import "errors"

// Normalized is k(x, z)/√(k(x, x) k(z, z)), the cosine of the angle between φ(x) and φ(z) in
// feature space. It is 1 if x = z, and 0 if k(x, x) or k(z, z) is 0, as in scikit-learn.
type Normalized struct{ Kernel Kernel }

func (k Normalized) String() string { return "normalize(" + text(k.Kernel) + ")" }

// Check requires a valid kernel.
func (k Normalized) Check(d int) error {
	if k.Kernel == nil {
		return errors.New("kernels: normalize: the inner kernel is missing")
	}
	return k.Kernel.Check(d)
}

func (k Normalized) IsPSD() bool { return k.Check(-1) == nil && k.Kernel.IsPSD() }

func (k Normalized) compile(c *compiler) {
	k.Kernel.compile(c)
	k.roots(c)
	c.binary(Mul)
}

// roots appends the code of 1/√k(x,x) · 1/√k(z,z).
func (k Normalized) roots(c *compiler) {
	c.load(Stat{Kind: RootX, Of: k.Kernel})
	c.load(Stat{Kind: RootZ, Of: k.Kernel})
	c.binary(Mul)
}

func (k Normalized) params() []Param              { return k.Kernel.params() }
func (k Normalized) with(values []float64) Kernel { return Normalized{k.Kernel.with(values)} }

// derive appends the code of ∂n/∂θ = r_x r_z ∂k(x,z)/∂θ − ½ n (r_x² ∂k(x,x)/∂θ + r_z² ∂k(z,z)/∂θ),
// where n is the normalized kernel, θ is parameter i of k, r_x = 1/√k(x,x) and r_z = 1/√k(z,z).
func (k Normalized) derive(c *compiler, i int) {
	k.Kernel.derive(c, i)
	k.roots(c)
	c.binary(Mul)
	k.compile(c)
	addTerm := func(root, self StatKind) {
		c.load(Stat{Kind: root, Of: k.Kernel})
		c.unary(Instr{Op: PowInt, Arg: 2})
		c.load(Stat{Kind: self, Of: derivative{kernel: k.Kernel, param: i}})
		c.binary(Mul)
	}
	addTerm(RootX, SelfX)
	addTerm(RootZ, SelfZ)
	c.binary(Add)
	c.unary(Instr{Op: Affine, A: -0.5})
	c.binary(Mul)
	c.binary(Add)
}

// deriveStat appends the code of the derivative of k(x,z) r_x r_z with respect to s, where r_x = 1/√k(x,x), r_z =
// 1/√k(z,z), and s is r_x, r_z or a statistic of k.
func (k Normalized) deriveStat(c *compiler, s Stat) {
	terms := 0
	add := func() {
		if terms++; terms > 1 {
			c.binary(Add)
		}
	}
	if depends(k.Kernel, s) {
		deriveStat(c, k.Kernel, s)
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

func (k Normalized) bounded() bool { return k.Kernel.bounded() }

// CosineSimilarity is k(x, z) = xᵀz/(‖x‖‖z‖), or 0 if a norm is 0: the normalized linear kernel.
type CosineSimilarity struct{}

func (CosineSimilarity) String() string            { return "cosinesimilarity()" }
func (CosineSimilarity) Check(int) error           { return nil }
func (CosineSimilarity) IsPSD() bool               { return true }
func (CosineSimilarity) compile(c *compiler)       { Normalized{Linear{}}.compile(c) }
func (CosineSimilarity) params() []Param           { return nil }
func (k CosineSimilarity) with([]float64) Kernel   { return k }
func (CosineSimilarity) derive(c *compiler, _ int) { c.push(Instr{Op: Const}) }

func (CosineSimilarity) deriveStat(c *compiler, s Stat) { deriveStat(c, Normalized{Linear{}}, s) }
func (CosineSimilarity) bounded() bool                  { return true }
