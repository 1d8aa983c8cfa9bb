package kernels_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/kerneltest"
)

func TestParse(t *testing.T) {
	gauss, lin := kernels.Gaussian{Sigma: 2}, kernels.Linear{}
	for _, c := range []struct {
		text string
		want kernels.Kernel
	}{
		{"linear", lin},
		{"linear()", lin},
		{" Linear ( ) ", lin},
		{"gaussian(sigma=2)", gauss},
		{"RBF(Sigma=2)", gauss},
		{"gaussian(\n\tsigma = 2.0e+0 )", gauss},
		{"gaussian(sigma=[1,2,3])", kernels.Gaussian{Sigmas: []float64{1, 2, 3}}},
		{"gaussian(sigma=[2])", kernels.Gaussian{Sigmas: []float64{2}}},
		{"gaussian(gamma=0.5)", kernels.Gaussian{Sigma: 1}},
		{"gaussian(gamma=0.125)", gauss},
		{"gaussian(gamma=[0.5,0.125])", kernels.Gaussian{Sigmas: []float64{1, 2}}},
		{"laplacian(sigma=.5)", kernels.Laplacian{Sigma: 0.5}},
		{"laplacian(gamma=4)", kernels.Laplacian{Sigma: 0.25}},
		{"polynomial(degree=3,c=1)", kernels.Polynomial{Degree: 3, C: 1}},
		{"poly(c=1,degree=3.0)", kernels.Polynomial{Degree: 3, C: 1}},
		{"polynomial(degree=2)", kernels.Polynomial{Degree: 2}},
		{"matern(nu=1.5,sigma=2)", kernels.Matern{Nu: 1.5, Sigma: 2}},
		{"matern(sigma=2,nu=0.5)", kernels.Matern{Nu: 0.5, Sigma: 2}},
		{"exponential(sigma=2)", kernels.Matern{Nu: 0.5, Sigma: 2}},
		{"matern12(sigma=2)", kernels.Matern{Nu: 0.5, Sigma: 2}},
		{"matern32(sigma=+2)", kernels.Matern{Nu: 1.5, Sigma: 2}},
		{"matern52(sigma=2)", kernels.Matern{Nu: 2.5, Sigma: 2}},
		{"3", kernels.Constant{Value: 3}},
		{"0", kernels.Constant{}},
		{"2*linear", kernels.Scaled{Weight: 2, Kernel: lin}},
		{"linear*2", kernels.Scaled{Weight: 2, Kernel: lin}},
		{"1*linear", kernels.Scaled{Weight: 1, Kernel: lin}},
		{"0*linear", kernels.Scaled{Weight: 0, Kernel: lin}},
		{"0.5*polynomial(degree=3,c=1) + linear()", kernels.Sum{kernels.Scaled{Weight: 0.5, Kernel: kernels.Polynomial{Degree: 3, C: 1}}, lin}},
		{"columns(0-3, gaussian(sigma=2))", onColumns(gauss, 0, 1, 2, 3)},
		{"Columns( [ 4 , 0-1 ], linear + 1) * 2", kernels.Scaled{Weight: 2, Kernel: onColumns(kernels.Sum{lin, kernels.Constant{Value: 1}}, 4, 0, 1)}},
		{"columns(7,2*linear)", onColumns(kernels.Scaled{Weight: 2, Kernel: lin}, 7)},
		{"linear + linear", kernels.Sum{lin, lin}},
		{"linear + 1", kernels.Sum{lin, kernels.Constant{Value: 1}}},
		{"1 + linear + 2", kernels.Sum{kernels.Constant{Value: 3}, lin}},
		{"1 + 2*3", kernels.Constant{Value: 7}},
		{"(linear)", lin},
		{"((linear + 1))", kernels.Sum{lin, kernels.Constant{Value: 1}}},
		{"linear + (linear + linear)", kernels.Sum{lin, lin, lin}},
		{"linear*(linear*linear)", kernels.Product{lin, lin, lin}},
		{"2*linear*3*gaussian(sigma=2)", kernels.Scaled{Weight: 6, Kernel: kernels.Product{lin, gauss}}},
		{"2*(linear + 1)", kernels.Scaled{Weight: 2, Kernel: kernels.Sum{lin, kernels.Constant{Value: 1}}}},
		{"(linear + 1)*gaussian(sigma=2)", kernels.Product{kernels.Sum{lin, kernels.Constant{Value: 1}}, gauss}},
		{"linear + linear*gaussian(sigma=2)", kernels.Sum{lin, kernels.Product{lin, gauss}}},
		{"exp(linear)", kernels.ExpOf{Kernel: lin}},
		{"EXP(0.1*linear) * 2", kernels.Scaled{Weight: 2, Kernel: kernels.ExpOf{Kernel: kernels.Scaled{Weight: 0.1, Kernel: lin}}}},
		{"exp(exp(1 + 1))", kernels.ExpOf{Kernel: kernels.ExpOf{Kernel: kernels.Constant{Value: 2}}}},
	} {
		k, err := kernels.Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if !kernels.Equal(k, c.want) {
			t.Errorf("%q is %#v, want %#v", c.text, k, c.want)
		}
		if reparsed, err := kernels.Parse(k.String()); err != nil || !kernels.Equal(reparsed, k) {
			t.Errorf("%q: its text %q is %#v, %v", c.text, k, reparsed, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	var names []string
	for _, d := range kernels.Catalogue() {
		names = append(names, d.Name)
	}
	kernelNames := strings.Join(names, ", ")
	for _, c := range []struct{ text, want string }{
		{"", "character 1: a kernel is needed, such as gaussian(sigma=2); the kernels are " + kernelNames},
		{"  ", "character 1: a kernel is needed, such as gaussian(sigma=2); the kernels are " + kernelNames},
		{"guassian(sigma=2)", `character 1: unknown kernel "guassian", did you mean "gaussian"?; the kernels are ` + kernelNames},
		{"linear + rbff(sigma=2)", `character 10: unknown kernel "rbff", did you mean "rbf"?; the kernels are ` + kernelNames},
		{"qqqqqqqqqqq", `character 1: unknown kernel "qqqqqqqqqqq"; the kernels are ` + kernelNames},
		{"λ*linear", `character 1: unknown kernel "λ"; the kernels are ` + kernelNames},
		{"gaussian", "character 1: gaussian needs sigma, as in gaussian(sigma=2)"},
		{"1 + gaussian()", "character 5: gaussian needs sigma, as in gaussian(sigma=2)"},
		{"poly(c=1)", "character 1: polynomial needs degree, as in polynomial(degree=3,c=1)"},
		{"matern(sigma=1)", "character 1: matern needs nu, as in matern(nu=1.5,sigma=2)"},
		{"gaussian(2)", "character 10: gaussian: parameters are written with their names, as in gaussian(sigma=2)"},
		{"gaussian(sigm=2)", `character 10: gaussian: unknown parameter "sigm", did you mean "sigma"?; the parameters are sigma, gamma`},
		{"gaussian(q=2)", `character 10: gaussian: unknown parameter "q"; the parameters are sigma, gamma`},
		{"linear(c=2)", "character 8: linear has no parameters"},
		{"gaussian(sigma=1,sigma=2)", "character 18: gaussian: sigma is given twice"},
		{"gaussian(sigma=1,gamma=2)", "character 18: gaussian: give sigma or gamma, not both"},
		{"gaussian(gamma=1,sigma=2)", "character 18: gaussian: give gamma or sigma, not both"},
		{"gaussian(sigma=0)", "character 1: gaussian: sigma must be a finite number > 0, got 0"},
		{"linear+gaussian(sigma=-2)", "character 8: gaussian: sigma must be a finite number > 0, got -2"},
		{"gaussian(sigma=[1,0])", "character 1: gaussian: sigma[2] must be a finite number > 0, got 0"},
		{"gaussian(gamma=0)", "character 10: gaussian: gamma must be > 0, got 0"},
		{"laplacian(gamma=-1)", "character 11: laplacian: gamma must be > 0, got -1"},
		{"laplacian(sigma=[1,2])", "character 17: laplacian: sigma is one number, not a list"},
		{"columns", "character 1: columns needs a kernel in parentheses, as in columns(0,gaussian(sigma=2))"},
		{"columns(linear)", `character 9: columns: a column is needed, an integer that counts from 0, as in columns(0,gaussian(sigma=2)), not "linear"`},
		{"columns(0.5,linear)", "character 9: columns: a column must be an integer from 0 to 1048575, got 0.5"},
		{"columns(3-1,linear)", "character 11: columns: the range 3-1 is empty"},
		{"columns([1,0-2],linear)", "character 1: columns: column 1 is given twice"},
		{"columns(0-1)", `character 12: , is needed, not ")"`},
		{"columns(0-1,gaussian(sigma=[1,2,3]))", "character 1: gaussian: sigma has 3 entries for 2 features"},
		{"linear+columns(0-1048576,linear)", "character 18: columns: a column must be an integer from 0 to 1048575, got 1.048576e+06"},
		{"columns(0-1000000,linear)+columns(0-1000000,linear)", "character 44: columns: the lists have more than 1048576 columns"},
		{"gaussian(sigma=[])", `character 17: a number is needed, not "]"`},
		{"gaussian(sigma=[1;2])", `character 18: , or ] is needed, not ";"`},
		{"gaussian(sigma=[1,2", "character 20: , or ] is needed, not the end"},
		{"gaussian(sigma=1", "character 17: , or ) is needed, not the end"},
		{"gaussian(sigma 1)", `character 16: = is needed, not "1"`},
		{"gaussian(sigma=)", `character 16: a number is needed, not ")"`},
		{"gaussian(sigma=two)", `character 16: a number is needed, not "two"`},
		{"gaussian(sigma=1,)", "character 18: gaussian: parameters are written with their names, as in gaussian(sigma=2)"},
		{"gaussian(sigma=nan)", `character 16: a finite number is needed, not "nan"`},
		{"gaussian(sigma=-Inf)", `character 16: a finite number is needed, not "Inf"`},
		{"gaussian(sigma=1e999)", `character 16: "1e999" is outside the range of float64`},
		{"gaussian(sigma=1.2.3)", `character 16: "1.2.3" is not a number`},
		{"gaussian(sigma=0x10)", `character 16: "0x10" is not a number`},
		{"gaussian(sigma=1_0)", `character 16: "1_0" is not a number`},
		{"gaussian(sigma=.)", `character 16: "." is not a number`},
		{"polynomial(degree=2.5)", "character 19: polynomial: degree must be an integer, got 2.5"},
		{"polynomial(degree=1e10)", "character 19: polynomial: degree must be an integer, got 1e+10"},
		{"polynomial(degree=0)", "character 1: polynomial: degree must be an integer ≥ 1, got 0"},
		{"polynomial(degree=2,c=-1)", "character 1: polynomial: c must be a finite number ≥ 0, got -1"},
		{"matern(nu=2,sigma=1)", "character 1: matern: nu must be 0.5, 1.5 or 2.5, got 2"},
		{"-0.5*linear", "character 1: a weight or constant must be ≥ 0, got -0.5"},
		{"linear*-2", "character 8: a weight or constant must be ≥ 0, got -2"},
		{"linear + -1", "character 10: a weight or constant must be ≥ 0, got -1"},
		{"-linear", `character 2: a number is needed, not "linear"`},
		{"linear - 1", "character 8: kernels can be added, not subtracted"},
		{"linear linear", `character 8: +, * or the end is needed, not "linear"`},
		{"linear / 2", `character 8: +, * or the end is needed, not "/"`},
		{"linear^2", `character 7: +, * or the end is needed, not "^"`},
		{"linear +", "character 9: a kernel or a number is needed, not the end"},
		{"linear ** 2", `character 9: a kernel or a number is needed, not "*"`},
		{"(linear", "character 8: ) is needed, not the end"},
		{"linear)", `character 7: +, * or the end is needed, not ")"`},
		{"()", `character 2: a kernel or a number is needed, not ")"`},
		{"exp", "character 1: exp needs a kernel in parentheses, as in exp(0.5*linear())"},
		{"exp(linear", "character 11: ) is needed, not the end"},
		{"exp()", `character 5: a kernel or a number is needed, not ")"`},
		{"1e200*1e200*linear", "character 1: scaled: weight must be a finite number ≥ 0, got +Inf"},
		{"linear + ÿ\xff", `character 10: unknown kernel "ÿ"; the kernels are ` + kernelNames},
		{"linear + \xff", `character 10: a kernel or a number is needed, not "\xff"`},
		{"größe", `character 1: unknown kernel "größe"; the kernels are ` + kernelNames},
		{strings.Repeat("a", 1000), `character 1: unknown kernel "` + strings.Repeat("a", 40) + `…"; the kernels are ` + kernelNames},
		{strings.Repeat("(", 1000), "character 65: more than 64 parentheses are open"},
		{strings.Repeat("exp(", 1000), "character 257: more than 64 parentheses are open"},
		{strings.Repeat("1+", 1000) + "1", "character 2001: there are more than 1000 kernels"},
		{"gaussian(sigma=[" + strings.Repeat("1e20,", 50_000) + "1])", "character 1: the text with all numbers in full is longer than 262144 bytes"},
		{strings.Repeat(" ", 1<<18) + "1", "character 1: the text is longer than 262144 bytes"},
	} {
		k, err := kernels.Parse(c.text)
		var parse *kernels.ParseError
		switch {
		case !errors.As(err, &parse):
			t.Errorf("%.60q: got %v, %v, want a *ParseError: %s", c.text, k, err, c.want)
		case k != nil || err.Error() != "kernels: "+c.want:
			t.Errorf("%.60q:\ngot  %v, %v\nwant kernels: %s", c.text, k, err, c.want)
		}
	}
}

// TestCatalogue checks that every example of the catalogue parses to a valid kernel, that the error for an omitted
// required parameter names it, and that every alias gives the same kernel as the name.
func TestCatalogue(t *testing.T) {
	var names []string
	for _, d := range kernels.Catalogue() {
		for _, name := range append([]string{d.Name}, d.Aliases...) {
			if slices.Contains(names, name) {
				t.Errorf("%s is the name or an alias of two kernels, or twice of one", name)
			}
			names = append(names, name)
		}
		k, err := kernels.Parse(d.Example)
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
			continue
		}
		kerneltest.Run(t, k)
		if d.Formula == "" || d.Source == "" {
			t.Errorf("%s has no formula or no source", d.Name)
		}
		for _, alias := range d.Aliases {
			byAlias, err := kernels.Parse(strings.Replace(d.Example, d.Name, alias, 1))
			if err != nil || !kernels.Equal(byAlias, k) {
				t.Errorf("%s is %v, %v; %s is %v", alias, byAlias, err, d.Name, k)
			}
		}
		required := slices.ContainsFunc(d.Parameters, func(q kernels.Parameter) bool { return q.Default == "" && q.InsteadOf == "" })
		if _, err := kernels.Parse(d.Name); (err != nil) != required {
			t.Errorf("%s alone gives %v", d.Name, err)
		}
		for _, q := range d.Parameters {
			if q.Rule == "" || q.Type == "" {
				t.Errorf("%s: %s has no rule or no type", d.Name, q.Name)
			}
		}
	}
}

// random returns a random kernel of any kind and nesting.
func random(r *rand.Rand, depth int) kernels.Kernel {
	list := func() []kernels.Kernel {
		ks := make([]kernels.Kernel, 1+r.IntN(3))
		for i := range ks {
			ks[i] = random(r, depth-1)
		}
		return ks
	}
	n := 12
	if depth == 0 {
		n = 8
	}
	switch r.IntN(n) {
	case 0:
		return kernels.Linear{}
	case 1:
		return kernels.Polynomial{Degree: 1 + r.IntN(3), C: r.Float64()}
	case 2:
		return kernels.Gaussian{Sigma: 0.1 + r.Float64()}
	case 3:
		return kernels.Gaussian{Sigmas: []float64{0.1 + r.Float64(), 0.1 + r.Float64()}}
	case 4:
		return kernels.Matern{Nu: []float64{0.5, 1.5, 2.5}[r.IntN(3)], Sigma: 0.1 + r.Float64()}
	case 5:
		return kernels.Constant{Value: r.Float64()}
	case 6:
		return kernels.RationalQuadratic{A: 0.1 + 3*r.Float64(), Sigma: 0.1 + r.Float64()}
	case 7:
		return kernels.Sigmoid{A: r.NormFloat64(), C: r.NormFloat64()}
	case 8:
		return kernels.Sum(list())
	case 9:
		return kernels.Product(list())
	case 10:
		return kernels.Scaled{Weight: r.Float64(), Kernel: random(r, depth-1)}
	}
	return kernels.ExpOf{Kernel: kernels.Scaled{Weight: 0.01, Kernel: random(r, depth-1)}}
}

// TestCanonical checks for random kernels that the text parses to exactly the canonical form, that
// Canonical does not change a canonical form, and that both forms have equal values.
func TestCanonical(t *testing.T) {
	const seed = 5
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	x, z := []float64{0.5, -0.25}, []float64{0.125, 0.75}
	for range 5000 {
		k := random(r, 4)
		canonical := kernels.Canonical(k)
		if repeated := kernels.Canonical(canonical); !kernels.Equal(repeated, canonical) {
			t.Fatalf("the canonical form of %#v is %#v, and of that %#v", k, canonical, repeated)
		}
		parsed, err := kernels.Parse(k.String())
		if err != nil {
			t.Fatalf("%q: %v", k, err)
		}
		if !kernels.Equal(parsed, canonical) {
			t.Fatalf("%#v has the text %q, which is %#v, not the canonical %#v", k, k, parsed, canonical)
		}
		if reparsed, err := kernels.Parse(parsed.String()); err != nil || !kernels.Equal(reparsed, parsed) {
			t.Fatalf("%q has the text %q, which is %#v, %v", k, parsed, reparsed, err)
		}
		a, b := kernels.Eval(k, x, z), kernels.Eval(canonical, x, z)
		if math.IsInf(a, 0) {
			continue
		}
		if tol := kerneltest.Rounding(k, x, z) + kerneltest.Rounding(canonical, x, z); !(math.Abs(a-b) <= tol) {
			t.Fatalf("%q is %v, its canonical form %q %v: off by %g, allowed %g", k, a, canonical, b, a-b, tol)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, d := range kernels.Catalogue() {
		f.Add(d.Example)
	}
	for _, s := range []string{"0.5*poly(degree=3,c=1) + linear", "exp((1+2)*rbf(gamma=[1,2e-3]))*3", "-1", "((((", "1e999", "gaussian(sigma=nan)", "\xff", "λ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := kernels.Parse(text)
		if err != nil {
			var parse *kernels.ParseError
			if !errors.As(err, &parse) || parse.Column < 1 || parse.Column > utf8.RuneCountInString(text)+1 || strings.ContainsAny(err.Error(), "\n\r") || len(err.Error()) > 1000 {
				t.Fatalf("not a valid error: %q", err)
			}
			return
		}
		if err := k.Check(-1); err != nil {
			t.Fatalf("parsed, but: %v", err)
		}
		reparsed, err := kernels.Parse(k.String())
		if err != nil || !kernels.Equal(reparsed, k) {
			t.Fatalf("%q is %#v with the text %q, which is %#v, %v", text, k, k, reparsed, err)
		}
		kernels.Compile(k)
	})
}

func ExampleParse() {
	k, err := kernels.Parse("0.5*poly(degree=2, c=1) + rbf(gamma=0.5)")
	fmt.Println(k, err)
	_, err = kernels.Parse("gaussian(sigm=2)")
	fmt.Println(err)
	// Output:
	// 0.5*polynomial(degree=2,c=1) + gaussian(sigma=1) <nil>
	// kernels: character 10: gaussian: unknown parameter "sigm", did you mean "sigma"?; the parameters are sigma, gamma
}
