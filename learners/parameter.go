package learners

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mercer-go/mercer/kernels"
)

// Parameter describes a parameter of a learner. The functions below make one of
// each type.
type Parameter struct {
	Name    string   `json:"name"` // also the name of the command's flag
	Type    string   `json:"type"`
	Default string   `json:"default"` // empty: none
	Rule    string   `json:"rule"`
	Help    string   `json:"help"`
	Choices []string `json:"choices,omitempty"` // of a oneOf
	When    *When    `json:"when,omitempty"`    // nil: it always has an effect
	Task    Task     `json:"task,omitempty"`    // which it has an effect in; empty: in all

	// chosen: Default says in words what Fit chooses where none is given.
	chosen bool
	parse  func(text string) (any, error)
}

// The types of parameters. Values gives them as float64, int, bool, string,
// kernels.Kernel and []float64.
const (
	NumberType = "number"
	IntType    = "integer"
	BoolType   = "bool"
	ChoiceType = "choice"
	KernelType = "kernel"
	ListType   = "numbers"
)

// Parse returns the value of a text, or an error without the parameter's name:
// "must be a finite number ≥ 0, got -1".
func (p Parameter) Parse(text string) (any, error) { return p.parse(text) }

// rule is what a number must be, in words and as a function.
type rule struct {
	text string
	ok   func(v float64) bool
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

var (
	anyNumber   = rule{"a finite number", finite}
	nonNegative = rule{"a finite number ≥ 0", func(v float64) bool { return v >= 0 && finite(v) }}
	positive    = rule{"a finite number > 0", func(v float64) bool { return v > 0 && finite(v) }}
	fraction    = rule{"a number > 0 and < 1", func(v float64) bool { return v > 0 && v < 1 }}
	part        = rule{"a number > 0 and ≤ 1", func(v float64) bool { return v > 0 && v <= 1 }}
)

// atLeast is the rule of integers.
func atLeast(n int) rule {
	return rule{fmt.Sprintf("an integer ≥ %d", n), func(v float64) bool { return v >= float64(n) }}
}

func (r rule) check(v float64) error {
	if r.ok(v) {
		return nil
	}
	return fmt.Errorf("must be %s, got %v", r.text, v)
}

// number is a parameter that is a number. standard is its default, "" for one
// that may be left out.
func number(name, standard string, r rule, help string) Parameter {
	return Parameter{Name: name, Type: NumberType, Default: standard, Rule: r.text, Help: help, parse: func(text string) (any, error) {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil && !math.IsInf(v, 0) { // out of range is for the rule to refuse
			return nil, fmt.Errorf("want a number, got %q", text)
		}
		return v, r.check(v)
	}}
}

// numbers is a parameter that is a list of numbers with commas between them; it may
// be left out.
func numbers(name string, r rule, help string) Parameter {
	each := number(name, "", r, "")
	return Parameter{Name: name, Type: ListType, Rule: r.text + " for each target, with commas between them", Help: help, parse: func(text string) (any, error) {
		var list []float64
		for i, part := range strings.Split(text, ",") {
			v, err := each.parse(strings.TrimSpace(part))
			if err != nil {
				return nil, fmt.Errorf("number %d: %w", i+1, err)
			}
			list = append(list, v.(float64))
		}
		return list, nil
	}}
}

// intParam is a parameter that is an integer.
func intParam(name, standard string, r rule, help string) Parameter {
	return Parameter{Name: name, Type: IntType, Default: standard, Rule: r.text, Help: help, parse: func(text string) (any, error) {
		v, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("want %s, got %q", r.text, text)
		}
		return v, r.check(float64(v))
	}}
}

// boolParam is a parameter that is true or false.
func boolParam(name, standard, help string) Parameter {
	return Parameter{Name: name, Type: BoolType, Default: standard, Rule: "true or false", Help: help, parse: func(text string) (any, error) {
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("want true or false, got %q", text)
		}
		return v, nil
	}}
}

// oneOf is a parameter that is one of some words, the first the default.
func oneOf(name string, choices []string, help string) Parameter {
	list := strings.Join(choices, ", ")
	return Parameter{Name: name, Type: ChoiceType, Default: choices[0], Rule: "one of " + list, Help: help, Choices: choices, parse: func(text string) (any, error) {
		if !slices.Contains(choices, text) {
			return nil, fmt.Errorf("there is no %q; there are: %s", text, list)
		}
		return text, nil
	}}
}

// kernel is the parameter "kernel". chosen says what nil means to the learner.
func kernel(chosen string) Parameter {
	return Parameter{Name: "kernel", Type: KernelType, Default: chosen, Rule: "the text of a kernel: see mercer kernels", Help: "kernel function", chosen: true,
		parse: func(text string) (any, error) {
			k, err := kernels.Parse(text)
			if err == nil {
				err = k.Check(-1)
			}
			if err != nil {
				return nil, err
			}
			return k, nil
		}}
}

// The parameters that many learners have.
var (
	medianKernel = kernel("gaussian, sigma the median distance")
	scaleKernel  = kernel("gaussian, sigma √(d·Var(X)/2) of d features: gamma=\"scale\" of scikit-learn")
	lambdaNumber = number("lambda", "1", nonNegative, "λ of (K + λI)α = y, not scaled by the number of rows")
	lambdaList   = numbers("lambdas", nonNegative, "λ of each target, instead of lambda")
	seedNumber   = intParam("seed", "1", atLeast(0), "seed of every random choice")
)

// When is the condition under which a parameter has an effect: another has one of some
// values, or, where there are none, was not given.
type When struct {
	Parameter string   `json:"parameter"`
	Values    []string `json:"values,omitempty"`
}

// String is the condition in words: "only with solver sgd".
func (w *When) String() string { return w.Of("") }

// Of is String with a prefix of the parameter's name, such as the -- of a flag.
func (w *When) Of(prefix string) string {
	if len(w.Values) == 0 {
		return "only without " + prefix + w.Parameter
	}
	return "only with " + prefix + w.Parameter + " " + strings.Join(w.Values, " or ")
}

// Met reports whether the values fulfil the condition; there may be none.
func (w *When) Met(v Values) bool {
	if w == nil {
		return true
	}
	if len(w.Values) == 0 {
		return !v.Has(w.Parameter)
	}
	return slices.Contains(w.Values, fmt.Sprint(v[w.Parameter]))
}

// with returns p with an effect only where another parameter has one of the values.
func (p Parameter) with(parameter string, values ...string) Parameter {
	p.When = &When{parameter, values}
	return p
}

// without returns p with an effect only where another parameter is not given.
func (p Parameter) without(parameter string) Parameter { return p.with(parameter) }

// of returns p with an effect only in one task.
func (p Parameter) of(t Task) Parameter {
	p.Task = t
	return p
}

// withHelp returns p with another text of help.
func (p Parameter) withHelp(help string) Parameter {
	p.Help = help
	return p
}

// Values are parameters by their names. The methods give the zero value for one
// that has no default and was not given.
type Values map[string]any

func value[T any](v Values, name string) T {
	t, _ := v[name].(T)
	return t
}

// Has reports whether a parameter was given or has a default.
func (v Values) Has(name string) bool { _, ok := v[name]; return ok }

// Number returns a number.
func (v Values) Number(name string) float64 { return value[float64](v, name) }

// Numbers returns a list of numbers; nil where none was given.
func (v Values) Numbers(name string) []float64 { return value[[]float64](v, name) }

// Int returns an integer.
func (v Values) Int(name string) int { return value[int](v, name) }

// Bool returns a truth value.
func (v Values) Bool(name string) bool { return value[bool](v, name) }

// Choice returns the chosen word.
func (v Values) Choice(name string) string { return value[string](v, name) }

// Kernel returns a kernel; nil where Fit is to choose it.
func (v Values) Kernel(name string) kernels.Kernel { return value[kernels.Kernel](v, name) }

// Seed returns the seed.
func (v Values) Seed() uint64 { return uint64(value[int](v, "seed")) }
