package kernels

import (
	"fmt"
	"math"
)

// Cosine is k(x, z) = Σ_p cos(θ(x_p − z_p)) with θ = Theta > 0, the inner
// product of φ(x) = (cos θx_1, sin θx_1, cos θx_2, …), 2d features.
type Cosine struct{ Theta float64 }

func (k Cosine) String() string             { return "cosine(theta=" + number(k.Theta) + ")" }
func (k Cosine) Check(int) error            { return checkParams("cosine", k) }
func (k Cosine) IsPSD() bool                { return k.Check(-1) == nil }
func (k Cosine) compile(c *compiler)        { c.load(Stat{Kind: CosSum, Freqs: []float64{k.Theta}}) }
func (k Cosine) params() []Param            { return []Param{positive.param("theta", k.Theta)} }
func (Cosine) with(values []float64) Kernel { return Cosine{values[0]} }
func (k Cosine) derive(c *compiler, _ int) {
	c.load(Stat{Kind: SinSum, Freqs: []float64{k.Theta}})
	c.unary(Instr{Op: Affine, A: -1})
}

func (Cosine) deriveStat(c *compiler, _ Stat) { c.pushOne() }
func (Cosine) bounded() bool                  { return true }

// CosineSeries is k(x, z) = Σ_{l=0..L} Σ_p cos((2πl/L)(x_p − z_p)), the inner
// product of the 2d(L+1) features cos and sin of (2πl/L)x_p.
type CosineSeries struct{ L int }

// harmonics is the rule of L. Its maximum bounds the memory of a program.
var harmonics = Rule{Min: 1, Max: 1 << 16, Integer: true}

func (k CosineSeries) String() string { return fmt.Sprintf("cosineseries(l=%d)", k.L) }

// Check requires 1 ≤ L ≤ 65536.
func (k CosineSeries) Check(int) error {
	return harmonics.Check("kernels: cosineseries: l", float64(k.L))
}

func (k CosineSeries) IsPSD() bool             { return k.Check(-1) == nil }
func (k CosineSeries) compile(c *compiler)     { c.load(Stat{Kind: CosSum, Freqs: k.frequencies()}) }
func (CosineSeries) params() []Param           { return nil }
func (k CosineSeries) with([]float64) Kernel   { return k }
func (CosineSeries) derive(c *compiler, _ int) { c.push(Instr{Op: Const}) }

func (CosineSeries) deriveStat(c *compiler, _ Stat) { c.pushOne() }
func (CosineSeries) bounded() bool                  { return true }

// frequencies returns 2πl/L for l = 0 … L.
func (k CosineSeries) frequencies() []float64 {
	f := make([]float64, k.L+1)
	for l := range f {
		f[l] = 2 * math.Pi * float64(l) / float64(k.L)
	}
	return f
}

// SincLimit is k(x, z) = Σ_p sin(2πΔ_p)/Δ_p with Δ = x − z, with the term 2π where Δ_p is 0. It is the limit for L → ∞
// of CosineSeries divided by L/2π. Each term is, up to a factor, the Fourier transform of the indicator function of
// [−2π, 2π] at Δ_p, and therefore positive semi-definite by Bochner's theorem.
type SincLimit struct{}

func (SincLimit) String() string            { return "sinc()" }
func (SincLimit) Check(int) error           { return nil }
func (SincLimit) IsPSD() bool               { return true }
func (SincLimit) compile(c *compiler)       { c.load(Stat{Kind: Sinc}) }
func (SincLimit) params() []Param           { return nil }
func (k SincLimit) with([]float64) Kernel   { return k }
func (SincLimit) derive(c *compiler, _ int) { c.push(Instr{Op: Const}) }

func (SincLimit) deriveStat(c *compiler, _ Stat) { c.pushOne() }
func (SincLimit) bounded() bool                  { return true }

// Periodic is k(x, z) = exp(−2 sin²(π‖x−z‖/p) / σ²) with the period p = Period > 0 and σ = Sigma >
// 0, scikit-learn's ExpSineSquared (MacKay 1998, Introduction to Gaussian Processes, section 5.2).
//
// It is positive semi-definite for points of one feature, as a Gaussian of distances on a circle, and indefinite
// for more features. IsPSD is therefore false, except in Columns with one column.
type Periodic struct{ Period, Sigma float64 }

func (k Periodic) String() string {
	return "periodic(period=" + number(k.Period) + ",sigma=" + number(k.Sigma) + ")"
}

// Check requires Period > 0 and Sigma > 0.
func (k Periodic) Check(int) error { return checkParams("periodic", k) }

func (Periodic) IsPSD() bool { return false }

func (k Periodic) compile(c *compiler) {
	k.sine(c, 1)
	c.unary(Instr{Op: PowInt, Arg: 2})
	c.unary(Instr{Op: Affine, A: -2 / k.Sigma / k.Sigma})
	c.unary(Instr{Op: Exp})
}

// angle appends the code of a multiple of θ = π‖x−z‖/p.
func (k Periodic) angle(c *compiler, multiple float64) {
	c.load(Stat{Kind: SqDist})
	c.unary(Instr{Op: Sqrt})
	c.unary(Instr{Op: Affine, A: multiple * math.Pi / k.Period})
}

// sine appends the code of the sine of a multiple of θ = π‖x−z‖/p.
func (k Periodic) sine(c *compiler, multiple float64) {
	k.angle(c, multiple)
	c.unary(Instr{Op: Sin})
}

func (k Periodic) params() []Param {
	return []Param{lengthScale.param("period", k.Period), lengthScale.param("sigma", k.Sigma)}
}

func (k Periodic) with(values []float64) Kernel {
	return Periodic{Period: values[0], Sigma: values[1]}
}

// derive appends the code of a derivative of k, with θ = π‖x−z‖/p: 2kθ sin(2θ)/σ² with respect to ln p, and 4k
// sin²(θ)/σ² with respect to ln σ.
func (k Periodic) derive(c *compiler, i int) {
	k.compile(c)
	if i == 0 {
		k.sine(c, 2)
		k.angle(c, 2/k.Sigma/k.Sigma)
		c.binary(Mul)
	} else {
		k.sine(c, 1)
		c.unary(Instr{Op: PowInt, Arg: 2})
		c.unary(Instr{Op: Affine, A: 4 / k.Sigma / k.Sigma})
	}
	c.binary(Mul)
}

// deriveStat appends the code of −k (π/(pσ))² sin(2θ)/θ, the derivative with respect to ‖x−z‖², with θ = π‖x−z‖/p. The
// code adds logShift to θ, so that the quotient is 2 at θ = 0.
func (k Periodic) deriveStat(c *compiler, _ Stat) {
	k.compile(c)
	k.angle(c, 1)
	c.unary(Instr{Op: Affine, A: 2, B: 2 * logShift})
	c.unary(Instr{Op: Sin})
	k.angle(c, 1)
	c.unary(Instr{Op: Affine, A: 1, B: logShift})
	c.unary(Instr{Op: Pow, A: -1})
	c.binary(Mul)
	c.binary(Mul)
	w := math.Pi / k.Period / k.Sigma
	c.unary(Instr{Op: Affine, A: -w * w})
}

func (Periodic) bounded() bool { return true }
