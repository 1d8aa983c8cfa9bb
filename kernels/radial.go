package kernels

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/internal/count"
)

// Gaussian is k(x, z) = exp(−‖x−z‖² / 2σ²) with σ = Sigma > 0.
//
// With Sigmas, one length scale per feature (automatic relevance determination), k is exp(−½ Σ_p
// (x_p−z_p)²/σ_p²), and Sigma must be 0. scikit-learn's gamma is 1/(2σ²).
type Gaussian struct {
	Sigma  float64
	Sigmas []float64
}

func (k Gaussian) String() string {
	if k.Sigmas == nil {
		return "gaussian(sigma=" + number(k.Sigma) + ")"
	}
	texts := make([]string, len(k.Sigmas))
	for i, s := range k.Sigmas {
		texts[i] = number(s)
	}
	return "gaussian(sigma=[" + strings.Join(texts, ",") + "])"
}

// Check requires every σ > 0 and, if Sigmas are set, one σ per feature.
func (k Gaussian) Check(d int) error {
	if k.Sigmas == nil {
		return checkParams("gaussian", k)
	}
	if k.Sigma != 0 {
		return fmt.Errorf("kernels: gaussian: give either sigma or one sigma per feature, not both")
	}
	if len(k.Sigmas) == 0 {
		return fmt.Errorf("kernels: gaussian: the list of sigmas is empty")
	}
	if d >= 0 && len(k.Sigmas) != d {
		return fmt.Errorf("kernels: gaussian: sigma has %s for %s", count.Of(len(k.Sigmas), "entry"), count.Of(d, "feature"))
	}
	return checkParams("gaussian", k)
}

func (k Gaussian) IsPSD() bool { return k.Check(-1) == nil }

func (k Gaussian) compile(c *compiler) {
	if k.Sigmas != nil {
		scale := make([]float64, len(k.Sigmas))
		for i, s := range k.Sigmas {
			scale[i] = 1 / s
		}
		c.load(Stat{Kind: SqDist, Scale: scale})
		c.unary(Instr{Op: Affine, A: -0.5})
	} else {
		c.load(Stat{Kind: SqDist})
		// Divide twice by σ, because σ² could overflow or underflow.
		c.unary(Instr{Op: Affine, A: -0.5 / k.Sigma / k.Sigma})
	}
	c.unary(Instr{Op: Exp})
}

func (k Gaussian) params() []Param {
	if k.Sigmas == nil {
		return []Param{lengthScale.param("sigma", k.Sigma)}
	}
	params := make([]Param, len(k.Sigmas))
	for i, s := range k.Sigmas {
		params[i] = lengthScale.param(fmt.Sprintf("sigma[%d]", i+1), s)
	}
	return params
}

func (k Gaussian) with(values []float64) Kernel {
	if k.Sigmas == nil {
		return Gaussian{Sigma: values[0]}
	}
	return Gaussian{Sigmas: slices.Clone(values)}
}

// derive appends the code of k ‖x−z‖²/σ², the derivative with respect to ln σ, or of k (x_p−z_p)²/σ_p² for the length
// scale of feature p. The latter uses a statistic whose Scale is 0 for all other features.
func (k Gaussian) derive(c *compiler, i int) {
	k.compile(c)
	if k.Sigmas == nil {
		c.load(Stat{Kind: SqDist})
		c.unary(Instr{Op: Affine, A: 1 / k.Sigma / k.Sigma})
	} else {
		scale := make([]float64, len(k.Sigmas))
		scale[i] = 1 / k.Sigmas[i]
		c.load(Stat{Kind: SqDist, Scale: scale})
	}
	c.binary(Mul)
}

// deriveStat appends the code of −k/(2σ²), the derivative with respect to ‖x−z‖², or of −k/2 if Sigmas scale it.
func (k Gaussian) deriveStat(c *compiler, _ Stat) {
	k.compile(c)
	factor := -0.5
	if k.Sigmas == nil {
		factor = -0.5 / k.Sigma / k.Sigma
	}
	c.unary(Instr{Op: Affine, A: factor})
}

func (Gaussian) bounded() bool { return true }

// Laplacian is k(x, z) = exp(−‖x−z‖₁ / σ) with σ = Sigma > 0. Like scikit-learn's laplacian_kernel,
// with gamma = 1/σ, it uses the L1 distance.
type Laplacian struct{ Sigma float64 }

func (k Laplacian) String() string  { return "laplacian(sigma=" + number(k.Sigma) + ")" }
func (k Laplacian) Check(int) error { return checkParams("laplacian", k) }
func (k Laplacian) IsPSD() bool     { return k.Check(-1) == nil }

func (k Laplacian) compile(c *compiler) {
	c.load(Stat{Kind: L1})
	c.unary(Instr{Op: Affine, A: -1 / k.Sigma})
	c.unary(Instr{Op: Exp})
}

func (k Laplacian) params() []Param              { return []Param{lengthScale.param("sigma", k.Sigma)} }
func (k Laplacian) with(values []float64) Kernel { return Laplacian{Sigma: values[0]} }

// derive appends the code of k ‖x−z‖₁/σ, the derivative with respect to ln σ.
func (k Laplacian) derive(c *compiler, _ int) {
	k.compile(c)
	c.load(Stat{Kind: L1})
	c.unary(Instr{Op: Affine, A: 1 / k.Sigma})
	c.binary(Mul)
}

// deriveStat appends the code of −k/σ, the derivative with respect to ‖x−z‖₁.
func (k Laplacian) deriveStat(c *compiler, _ Stat) {
	k.compile(c)
	c.unary(Instr{Op: Affine, A: -1 / k.Sigma})
}

func (Laplacian) bounded() bool { return true }

// RationalQuadratic is k(x, z) = (1 + ‖x−z‖² / 2aσ²)^−a with a = A > 0 and σ = Sigma > 0: a mixture of Gaussians of
// all length scales (Rasmussen and Williams 2006, equation 4.19). For a → ∞ it becomes Gaussian{Sigma}. A Gaussian
// is preferable for a above about 10⁸: rounding causes a relative error of about a·2⁻⁵³.
type RationalQuadratic struct{ A, Sigma float64 }

func (k RationalQuadratic) String() string {
	return "rationalquadratic(a=" + number(k.A) + ",sigma=" + number(k.Sigma) + ")"
}

// mixtureShape is the rule of RationalQuadratic.A. Its Min keeps 1/(2aσ²) finite for the smallest σ.
var mixtureShape = Rule{Min: 1e-6, Max: math.MaxFloat64}

// Check requires a finite A ≥ 10⁻⁶ and Sigma > 0.
func (k RationalQuadratic) Check(int) error { return checkParams("rationalquadratic", k) }

func (k RationalQuadratic) IsPSD() bool { return k.Check(-1) == nil }

func (k RationalQuadratic) compile(c *compiler) { k.power(c, -k.A) }

// base appends the code of t = 1 + ‖x−z‖²/2aσ².
func (k RationalQuadratic) base(c *compiler) {
	c.load(Stat{Kind: SqDist})
	c.unary(Instr{Op: Affine, A: 0.5 / k.A / k.Sigma / k.Sigma, B: 1})
}

// power appends the code of t^exponent with t = 1 + ‖x−z‖²/2aσ².
func (k RationalQuadratic) power(c *compiler, exponent float64) {
	k.base(c)
	c.unary(Instr{Op: Pow, A: exponent})
}

func (k RationalQuadratic) params() []Param {
	return []Param{mixtureShape.param("a", k.A), lengthScale.param("sigma", k.Sigma)}
}

func (k RationalQuadratic) with(values []float64) Kernel {
	return RationalQuadratic{A: values[0], Sigma: values[1]}
}

// derive appends the code of a derivative. With t = 1 + ‖x−z‖²/2aσ², it is a t^−a (1 − 1/t − ln t) with respect to ln
// a, and t^(−a−1) ‖x−z‖²/σ² with respect to ln σ.
func (k RationalQuadratic) derive(c *compiler, i int) {
	if i == 1 {
		k.power(c, -k.A-1)
		c.load(Stat{Kind: SqDist})
		c.unary(Instr{Op: Affine, A: 1 / k.Sigma / k.Sigma})
		c.binary(Mul)
		return
	}
	k.power(c, -k.A)
	k.power(c, -1)
	k.base(c)
	c.unary(Instr{Op: Log})
	c.binary(Add)
	c.unary(Instr{Op: Affine, A: -k.A, B: k.A})
	c.binary(Mul)
}

// deriveStat appends the code of −t^(−a−1)/(2σ²), the derivative with respect to ‖x−z‖², with t as in the method base.
func (k RationalQuadratic) deriveStat(c *compiler, _ Stat) {
	k.power(c, -k.A-1)
	c.unary(Instr{Op: Affine, A: -0.5 / k.Sigma / k.Sigma})
}

func (RationalQuadratic) bounded() bool { return true }

// Matern is the Matérn kernel of smoothness Nu in r = ‖x−z‖₂ / Sigma:
//
//	Nu = 1/2   exp(−r), the exponential kernel
//	Nu = 3/2   (1 + √3 r) exp(−√3 r)
//	Nu = 5/2   (1 + √5 r + 5r²/3) exp(−√5 r)
//
// as in Rasmussen and Williams (2006), equations 4.17 and 4.18.
type Matern struct {
	Nu, Sigma float64
}

// maternNames maps Nu to the name of a Matérn kernel with a closed form.
var maternNames = map[float64]string{0.5: "exponential", 1.5: "matern32", 2.5: "matern52"}

const maternRule = "0.5, 1.5 or 2.5"

func (k Matern) String() string {
	if name, ok := maternNames[k.Nu]; ok {
		return name + "(sigma=" + number(k.Sigma) + ")"
	}
	return "matern(nu=" + number(k.Nu) + ",sigma=" + number(k.Sigma) + ")"
}

// Check requires Nu to be 1/2, 3/2 or 5/2 and Sigma > 0.
func (k Matern) Check(int) error {
	name, ok := maternNames[k.Nu]
	if !ok {
		return fmt.Errorf("kernels: matern: nu must be %s, got %v", maternRule, k.Nu)
	}
	return checkParams(name, k)
}

func (k Matern) IsPSD() bool { return k.Check(-1) == nil }

func (k Matern) compile(c *compiler) {
	// With s = √(2ν)‖x−z‖/σ, exp(−s) is multiplied by 1, 1 + s or 1 + s + s²/3 for ν = 1/2, 3/2 or 5/2.
	k.distance(c)
	c.unary(Instr{Op: Affine, A: -1})
	c.unary(Instr{Op: Exp})
	if k.Nu == 0.5 {
		return
	}
	k.distance(c)
	if k.Nu == 2.5 {
		// 1 + s + s²/3 = (s+1.5)²/3 + 1/4 needs only one copy of s.
		c.unary(Instr{Op: Affine, A: 1, B: 1.5})
		c.unary(Instr{Op: PowInt, Arg: 2})
		c.unary(Instr{Op: Affine, A: 1.0 / 3, B: 0.25})
	} else {
		c.unary(Instr{Op: Affine, A: 1, B: 1})
	}
	c.binary(Mul)
}

// distance appends the code of s = √(2ν)‖x−z‖/σ.
func (k Matern) distance(c *compiler) {
	c.load(Stat{Kind: SqDist})
	c.unary(Instr{Op: Sqrt})
	c.unary(Instr{Op: Affine, A: math.Sqrt(2*k.Nu) / k.Sigma})
}

func (k Matern) params() []Param              { return []Param{lengthScale.param("sigma", k.Sigma)} }
func (k Matern) with(values []float64) Kernel { return Matern{Nu: k.Nu, Sigma: values[0]} }

// derive appends the code of the derivative with respect to ln σ. With s = √(2ν)‖x−z‖/σ it is exp(−s) times s, s² or
// s²(1+s)/3 for ν = 1/2, 3/2 or 5/2.
func (k Matern) derive(c *compiler, _ int) {
	k.distance(c)
	c.unary(Instr{Op: Affine, A: -1})
	c.unary(Instr{Op: Exp})
	k.distance(c)
	c.binary(Mul)
	if k.Nu == 0.5 {
		return
	}
	k.distance(c)
	c.binary(Mul)
	if k.Nu == 2.5 {
		k.distance(c)
		c.unary(Instr{Op: Affine, A: 1.0 / 3, B: 1.0 / 3})
		c.binary(Mul)
	}
}

// deriveStat appends the code of the derivative with respect to ‖x−z‖². For ν = 1/2, 3/2 and 5/2, with s =
// √(2ν)‖x−z‖/σ, it is:
//
//	−exp(−s)/2σ²s   −3 exp(−s)/2σ²   −5 (1+s) exp(−s)/6σ²
func (k Matern) deriveStat(c *compiler, _ Stat) {
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

// bounded is false for the exponential kernel, which is not differentiable where points coincide.
func (k Matern) bounded() bool { return k.Nu != 0.5 }
