package kernels

import (
	"math"
	"slices"
)

// A Description holds the name, the parameters and the formula of a kernel that Parse accepts.
type Description struct {
	Name       string      `json:"name"`
	Aliases    []string    `json:"aliases,omitempty"` // other names that Parse accepts
	Formula    string      `json:"formula"`
	Parameters []Parameter `json:"parameters"`
	Example    string      `json:"example"`
	Source     string      `json:"source"`

	build func(a arguments) Kernel // makes the kernel; the arguments must be complete and of the right types
	// wrap replaces build for a kernel whose argument is another kernel k. Only the kernel
	// "columns" uses the argument columns of wrap.
	wrap func(columns []int, k Kernel) Kernel
}

// A Parameter is a named parameter of a kernel.
type Parameter struct {
	Name    string `json:"name"`
	Type    string `json:"type"`    // the type of the value, one of the constants below
	Default string `json:"default"` // empty if the parameter is required
	Rule    string `json:"rule"`
	// InsteadOf names the parameter for which this parameter is an alternative parameterization,
	// such as gamma for sigma.
	InsteadOf string `json:"instead_of,omitempty"`

	convert func(v float64) float64 // converts a value to a value of the parameter that InsteadOf names
}

// The types of parameters.
const (
	OneNumber   = "number"
	Integer     = "integer"
	OneOrEach   = "number, or [list] with one for each feature"
	innerKernel = "kernel" // the argument is written without name=
	// columnIndices is the type of the indices in columns(indices, kernel), written without name=.
	columnIndices = "index, first-last, or [list] of them"
)

// arguments holds the values of the parameters in the order of the Description. It omits
// alternative parameters such as gamma, whose InsteadOf is not empty.
type arguments []argument

// argument is the value of a parameter: one number, or a list of numbers if list is set.
type argument struct {
	name   string // name of the parameter in the text, which may be an alternative such as gamma
	values []float64
	list   bool
}

func (a argument) number() float64 { return a.values[0] }

func sigma(t string) Parameter {
	return Parameter{Name: "sigma", Type: t, Rule: lengthScale.String()}
}

func gamma(t string, rule string, convert func(float64) float64) Parameter {
	return Parameter{Name: "gamma", Type: t, Rule: positive.String() + "; " + rule, InsteadOf: "sigma", convert: convert}
}

func matern(name, formula string, nu float64, aliases ...string) Description {
	return Description{
		Name: name, Aliases: aliases, Formula: formula + " with r = ‖x−z‖₂ / sigma",
		Parameters: []Parameter{sigma(OneNumber)},
		Example:    name + "(sigma=2)",
		Source:     maternSource,
		build:      func(a arguments) Kernel { return Matern{Nu: nu, Sigma: a[0].number()} },
	}
}

const maternSource = "Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, equation 4.17"

var catalogue = []Description{
	{
		Name: "linear", Formula: "xᵀz", Example: "linear()",
		Source: "Schölkopf and Smola (2002), Learning with Kernels, section 2.1",
		build:  func(arguments) Kernel { return Linear{} },
	},
	{
		Name: "polynomial", Aliases: []string{"poly"}, Formula: "(xᵀz + c)^degree",
		Parameters: []Parameter{
			{Name: "degree", Type: Integer, Rule: atLeastOne.String()},
			{Name: "c", Type: OneNumber, Default: "0", Rule: nonNegative.String()},
		},
		Example: "polynomial(degree=3,c=1)",
		Source:  "Schölkopf and Smola (2002), Learning with Kernels, section 2.1",
		build:   func(a arguments) Kernel { return Polynomial{Degree: int(a[0].number()), C: a[1].number()} },
	},
	{
		Name: "gaussian", Aliases: []string{"rbf"}, Formula: "exp(−‖x−z‖² / (2 sigma²)); with a list, exp(−½ Σ (x_p−z_p)²/sigma_p²)",
		Parameters: []Parameter{
			sigma(OneOrEach),
			gamma(OneOrEach, "sigma = 1/√(2 gamma)", func(v float64) float64 { return math.Sqrt(0.5 / v) }),
		},
		Example: "gaussian(sigma=2)",
		Source:  "Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, equation 4.9",
		build: func(a arguments) Kernel {
			if a[0].list {
				return Gaussian{Sigmas: a[0].values}
			}
			return Gaussian{Sigma: a[0].number()}
		},
	},
	{
		Name: "laplacian", Formula: "exp(−‖x−z‖₁ / sigma)",
		Parameters: []Parameter{
			sigma(OneNumber),
			gamma(OneNumber, "sigma = 1/gamma", func(v float64) float64 { return 1 / v }),
		},
		Example: "laplacian(sigma=2)",
		Source:  "scikit-learn, sklearn.metrics.pairwise.laplacian_kernel",
		build:   func(a arguments) Kernel { return Laplacian{Sigma: a[0].number()} },
	},
	matern("exponential", "exp(−r)", 0.5, "matern12"),
	matern("matern32", "(1 + √3 r) exp(−√3 r)", 1.5),
	matern("matern52", "(1 + √5 r + 5r²/3) exp(−√5 r)", 2.5),
	{
		Name: "matern", Formula: "exponential, matern32 or matern52, by nu",
		Parameters: []Parameter{
			{Name: "nu", Type: OneNumber, Rule: maternRule},
			sigma(OneNumber),
		},
		Example: "matern(nu=1.5,sigma=2)",
		Source:  maternSource,
		build:   func(a arguments) Kernel { return Matern{Nu: a[0].number(), Sigma: a[1].number()} },
	},
	{
		Name: "rationalquadratic", Aliases: []string{"rq"}, Formula: "(1 + ‖x−z‖² / (2 a sigma²))^−a",
		Parameters: []Parameter{
			{Name: "a", Type: OneNumber, Rule: mixtureShape.String()},
			sigma(OneNumber),
		},
		Example: "rationalquadratic(a=1,sigma=2)",
		Source:  "Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, equation 4.19",
		build:   func(a arguments) Kernel { return RationalQuadratic{A: a[0].number(), Sigma: a[1].number()} },
	},
	{
		Name: "periodic", Aliases: []string{"expsinesquared"}, Formula: "exp(−2 sin²(π‖x−z‖₂/period) / sigma²); positive semi-definite for one feature, as in columns(0, k)",
		Parameters: []Parameter{
			{Name: "period", Type: OneNumber, Rule: lengthScale.String()},
			sigma(OneNumber),
		},
		Example: "periodic(period=3,sigma=1)",
		Source:  "MacKay (1998), Introduction to Gaussian Processes, section 5.2; scikit-learn, sklearn.gaussian_process.kernels.ExpSineSquared",
		build:   func(a arguments) Kernel { return Periodic{Period: a[0].number(), Sigma: a[1].number()} },
	},
	{
		Name: "cosine", Formula: "Σ_p cos(theta (x_p − z_p))",
		Parameters: []Parameter{{Name: "theta", Type: OneNumber, Rule: positive.String()}},
		Example:    "cosine(theta=1)",
		Source:     "Schölkopf and Smola (2002), Learning with Kernels, section 4.4: translation invariant kernels",
		build:      func(a arguments) Kernel { return Cosine{a[0].number()} },
	},
	{
		Name: "cosineseries", Formula: "Σ_{i=0..l} Σ_p cos((2πi/l)(x_p − z_p))",
		Parameters: []Parameter{{Name: "l", Type: Integer, Rule: harmonics.String()}},
		Example:    "cosineseries(l=4)",
		Source:     "Vapnik (1998), Statistical Learning Theory: kernels generating Fourier expansions",
		build:      func(a arguments) Kernel { return CosineSeries{int(a[0].number())} },
	},
	{
		Name: "sinc", Formula: "Σ_p sin(2π(x_p − z_p)) / (x_p − z_p), 2π where x_p = z_p",
		Example: "sinc()",
		Source:  "Schölkopf and Smola (2002), Learning with Kernels, section 4.4: translation invariant kernels",
		build:   func(arguments) Kernel { return SincLimit{} },
	},
	{
		Name: "chi2", Aliases: []string{"chisquared"}, Formula: "exp(−gamma Σ_p (x_p−z_p)² / (x_p+z_p)), features ≥ 0",
		Parameters: []Parameter{{Name: "gamma", Type: OneNumber, Default: "1", Rule: positive.String()}},
		Example:    "chi2(gamma=1)",
		Source:     "scikit-learn, sklearn.metrics.pairwise.chi2_kernel; Zhang, Marszałek, Lazebnik and Schmid (2007), IJCV 73",
		build:      func(a arguments) Kernel { return ChiSquared{a[0].number()} },
	},
	{
		Name: "cosinesimilarity", Formula: "xᵀz / (‖x‖ ‖z‖), 0 where a norm is 0",
		Example: "cosinesimilarity()",
		Source:  "scikit-learn, sklearn.metrics.pairwise.cosine_similarity",
		build:   func(arguments) Kernel { return CosineSimilarity{} },
	},
	{
		Name: "precomputed", Formula: "the value in a Gram matrix that was computed elsewhere",
		Example: "precomputed()",
		Source:  "kernels.Precomputed describes the points",
		build:   func(arguments) Kernel { return Precomputed{} },
	},
	{
		Name: "sigmoid", Formula: "tanh(a xᵀz + c); not positive semi-definite in general",
		Parameters: []Parameter{
			{Name: "a", Type: OneNumber, Rule: anyNumber.String()},
			{Name: "c", Type: OneNumber, Default: "0", Rule: anyNumber.String()},
		},
		Example: "sigmoid(a=0.1,c=0)",
		Source:  "Schölkopf and Smola (2002), Learning with Kernels, section 2.3",
		build:   func(a arguments) Kernel { return Sigmoid{A: a[0].number(), C: a[1].number()} },
	},
	{
		Name: "exp", Formula: "exp(k(x, z)) of a kernel k",
		Parameters: []Parameter{{Name: "k", Type: innerKernel, Rule: "any kernel"}},
		Example:    "exp(0.5*linear())",
		Source:     "Shawe-Taylor and Cristianini (2004), Kernel Methods for Pattern Analysis, proposition 3.24",
		wrap:       func(_ []int, k Kernel) Kernel { return ExpOf{k} },
	},
	{
		Name: "normalize", Formula: "k(x, z) / √(k(x, x) k(z, z)) of a kernel k, 0 where k(x, x) is 0",
		Parameters: []Parameter{{Name: "k", Type: innerKernel, Rule: "any kernel"}},
		Example:    "normalize(polynomial(degree=2,c=1))",
		Source:     "Shawe-Taylor and Cristianini (2004), Kernel Methods for Pattern Analysis, section 5.1",
		wrap:       func(_ []int, k Kernel) Kernel { return Normalized{k} },
	},
	{
		Name: "columns", Formula: "k(x, z) of a kernel k, for the points with only the given columns",
		Parameters: []Parameter{
			{Name: "indices", Type: columnIndices, Rule: "from 0, without repetition"},
			{Name: "k", Type: innerKernel, Rule: "any kernel but precomputed()"},
		},
		Example: "columns(0,gaussian(sigma=2))",
		Source:  "Duvenaud, Nickisch and Rasmussen (2011), Additive Gaussian processes, NIPS 24",
		wrap:    func(columns []int, k Kernel) Kernel { return Columns{columns, k} },
	},
}

// Catalogue returns a description of every kernel that Parse finds by its name. The documentation of
// Parse describes the operators that combine kernels.
func Catalogue() []Description { return slices.Clone(catalogue) }

// find returns the description of the kernel with this name or alias, or nil.
func find(name string) *Description {
	for i, d := range catalogue {
		if d.Name == name || slices.Contains(d.Aliases, name) {
			return &catalogue[i]
		}
	}
	return nil
}

func names() []string {
	var list []string
	for _, d := range catalogue {
		list = append(list, d.Name)
	}
	return list
}

func aliases() []string {
	var list []string
	for _, d := range catalogue {
		list = append(list, d.Aliases...)
	}
	return list
}

// parameter returns d's parameter with this name, or nil.
func (d *Description) parameter(name string) *Parameter {
	for i := range d.Parameters {
		if d.Parameters[i].Name == name {
			return &d.Parameters[i]
		}
	}
	return nil
}
