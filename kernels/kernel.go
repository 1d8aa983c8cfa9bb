package kernels

import (
	"reflect"
	"strconv"
)

// A Kernel describes a function k(x, z) of two points of ℝᵈ. Only types of this package implement
// it. These types are used as values, not as pointers.
type Kernel interface {
	// String returns the text of the kernel with numbers at full precision. Parse(k.String())
	// equals Canonical(k), and equals k if k came from Parse.
	String() string

	// Check returns nil if every parameter obeys its rule for points of d features, otherwise an error that names the
	// first invalid parameter. If d < 0, the number of features is unknown, and Check omits the rules that depend on d.
	Check(d int) error

	// IsPSD reports whether the parameters guarantee a positive semi-definite
	// Gram matrix for all points that Check accepts.
	IsPSD() bool

	// compile appends the code that pushes k(x, z) on the stack.
	compile(c *compiler)

	// params returns the parameters. The method with returns the kernel with other values of these parameters.
	// derive appends the code of the derivative with respect to parameter i: see gradient.go.
	params() []Param
	with(values []float64) Kernel
	derive(c *compiler, i int)

	// deriveStat appends the code of ∂k/∂s for a statistic s that compile loads. bounded reports
	// whether ∂k/∂s is finite where points coincide: see statderivative.go.
	deriveStat(c *compiler, s Stat)
	bounded() bool
}

// number returns the shortest text that parses to v.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Equal reports whether a and b are equal kernels with equal parameters.
func Equal(a, b Kernel) bool { return reflect.DeepEqual(a, b) }

// Eval returns k(x, z), computed from the definition in float64. It panics if len(x) ≠ len(z).
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
