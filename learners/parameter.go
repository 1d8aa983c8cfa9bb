package learners

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mercer-go/mercer/kernels"
)

// Parameter describes a parameter of a learner and is bound to a field of the learner's struct. The flags of the
// command, the values that Make stores, and the checks and defaults of Fit follow from a learner's list of parameters.
type Parameter struct {
	kernels.Parameter          // Name is also the name of the command's flag
	Help              string   `json:"help"`
	Choices           []string `json:"choices,omitempty"` // the possible values of a parameter made by oneOf
	When              *When    `json:"when,omitempty"`    // nil means that the parameter always has an effect
	Task              Task     `json:"task,omitempty"`    // the task in which it has an effect; "" means every task
	Python            string   `json:"python"`            // the name in the estimators of the Python package

	autoDefault bool // Default is a description of what Fit chooses if no value is given
	required    bool // Fit returns an error for a zero field
	zero        any  // the value stored when the user gives 0, if a zero field means Default; otherwise nil
	parse       func(text string) (any, error)
	check       func(v any) error // the rule for a value; nil allows all values
	refuse      func() string     // returns the violated rule about several fields, or ""; nil if there is no such rule
	field       any               // pointer to the field
	store       func(v any)       // stores a value in the field
	load        func() any        // returns the field as a value of the type that parse returns
}

// pythonNames are the names of the parameters that scikit-learn names differently.
var pythonNames = map[string]string{
	"lambda": "alpha", "lambdas": "alpha", "intercept": "fit_intercept", "iterations": "max_iter", "seed": "random_state",
	"cache": "cache_size", "centers": "n_components", "features": "n_components", "restarts": "n_restarts_optimizer", "scale": "fit_scale",
}

// pythonName returns the name of a parameter in Python: the name in scikit-learn, or the
// parameter's own name with underscores.
func pythonName(name string) string {
	return cmp.Or(pythonNames[name], strings.ReplaceAll(name, "-", "_"))
}

// These are the types of parameters besides kernels.OneNumber and kernels.Integer. Parse returns their values as
// bool, string, kernels.Kernel and []float64, and the values of the other two types as float64 and int.
const (
	BoolType   = "bool"
	ChoiceType = "choice"
	KernelType = "kernel"
	ListType   = "numbers"
)

// Parse returns the value of a text. Its error does not name the parameter: "must be a finite number ≥ 0, got -1".
func (p Parameter) Parse(text string) (any, error) {
	if p.parse == nil {
		return nil, errors.New("cannot be parsed: the Parameter does not come from the Catalogue")
	}
	return p.parse(text)
}

// rule is a condition on a number: its text, and the function that checks it.
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
	upToOne     = rule{"a number > 0 and ≤ 1", func(v float64) bool { return v > 0 && v <= 1 }}
)

func atLeast(n int) rule {
	return rule{fmt.Sprintf("an integer ≥ %d", n), func(v float64) bool { return v >= float64(n) }}
}

func (r rule) check(v float64) error {
	if r.ok(v) {
		return nil
	}
	return fmt.Errorf("must be %s, got %v", r.text, v)
}

// bound returns p bound to a field that has the type of the parameter's values.
func bound[T any](p Parameter, field *T, parse func(text string) (T, error), check func(v T) error) Parameter {
	return converted(p, field, parse, check, func(v T) T { return v }, func(v T) T { return v })
}

// converted returns p bound to field. The values of p have the type V; the functions in and out convert them to and
// from F.
func converted[F, V any](p Parameter, field *F, parse func(text string) (V, error), check func(v V) error, in func(V) F, out func(F) V) Parameter {
	p.field = field
	p.store = func(v any) { *field = in(v.(V)) }
	p.load = func() any { return out(*field) }
	if check == nil {
		check = func(V) error { return nil }
	}
	p.check = func(v any) error { return check(v.(V)) }
	p.parse = func(text string) (any, error) {
		v, err := parse(text)
		if err == nil {
			err = check(v)
		}
		if err != nil {
			return nil, err
		}
		return v, nil
	}
	return p
}

func parseNumber(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(v, 0) { // the rule of the parameter refuses a number that is out of range
		return 0, fmt.Errorf("want a number, got %q", text)
	}
	return v, nil
}

// newParameter returns a parameter that is not bound to a field.
func newParameter(name, kind, defaultText, rule, help string) Parameter {
	return Parameter{Parameter: kernels.Parameter{Name: name, Type: kind, Default: defaultText, Rule: rule}, Help: help}
}

// number is a numeric parameter. defaultText is its default, or "" for an optional parameter.
func number(name string, field *float64, defaultText string, r rule, help string) Parameter {
	return bound(newParameter(name, kernels.OneNumber, defaultText, r.text, help), field, parseNumber, r.check)
}

// mebibytes is a parameter in MiB. Its field is in bytes, and at least 1, because 0 would mean the default.
func mebibytes(name string, field *int64, defaultText, help string) Parameter {
	return converted(newParameter(name, kernels.OneNumber, defaultText, positive.text, help), field, parseNumber, positive.check,
		func(v float64) int64 { return int64(min(max(v*(1<<20), 1), 1<<62)) },
		func(bytes int64) float64 { return float64(bytes) / (1 << 20) })
}

// numbers is an optional parameter that is a list of numbers with commas between them.
func numbers(name string, field *[]float64, r rule, help string) Parameter {
	return bound(newParameter(name, ListType, "", r.text+" for each target, with commas between them", help), field, func(text string) (list []float64, err error) {
		for i, item := range strings.Split(text, ",") {
			v, err := parseNumber(strings.TrimSpace(item))
			if err != nil {
				return nil, fmt.Errorf("number %d: %w", i+1, err)
			}
			list = append(list, v)
		}
		return list, nil
	}, func(list []float64) error {
		for i, v := range list {
			if err := r.check(v); err != nil {
				return fmt.Errorf("number %d: %w", i+1, err)
			}
		}
		return nil
	})
}

// intParam is an integer parameter.
func intParam[T int | uint64](name string, field *T, defaultText string, r rule, help string) Parameter {
	return converted(newParameter(name, kernels.Integer, defaultText, r.text, help), field, func(text string) (int, error) {
		v, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("want %s, got %q", r.text, text)
		}
		return v, nil
	}, func(v int) error { return r.check(float64(v)) }, func(v int) T { return T(v) }, func(v T) int { return int(v) })
}

// boolParam is a parameter that is true or false, with the same value as its field.
func boolParam(name string, field *bool, defaultText, help string) Parameter {
	return bound(newParameter(name, BoolType, defaultText, "true or false", help), field, func(text string) (bool, error) {
		v, err := strconv.ParseBool(text)
		if err != nil {
			return false, fmt.Errorf("want true or false, got %q", text)
		}
		return v, nil
	}, nil)
}

// intercept is the parameter "intercept"; its field is true if there is no intercept.
func intercept(field *bool, help string) Parameter { return inverted("intercept", field, help) }

// inverted is a boolParam whose field is true if the parameter is false.
func inverted(name string, field *bool, help string) Parameter {
	p := boolParam(name, field, "true", help)
	p.store = func(v any) { *field = !v.(bool) }
	p.load = func() any { return !*field }
	return p
}

// oneOf is a parameter whose value is the text in the argument first or one of choices. An empty field means the value
// of first, which is the default. If first is "", only the choices are allowed, and choices[0] is the default.
func oneOf[T ~string](name string, field *T, first string, choices []T, help string) Parameter {
	words := make([]string, 0, len(choices)+1)
	if first != "" {
		words = append(words, first)
	}
	for _, c := range choices {
		words = append(words, string(c))
	}
	return choice(name, field, words, help,
		func(word string) T {
			if word == first {
				return ""
			}
			return T(word)
		},
		func(v T) string {
			if v == "" {
				return first
			}
			return string(v)
		})
}

// twoChoices is a parameter with two choices, which set its field to false and to true.
func twoChoices(name string, field *bool, falseChoice, trueChoice, help string) Parameter {
	return choice(name, field, []string{falseChoice, trueChoice}, help, func(word string) bool { return word == trueChoice }, func(v bool) string {
		if v {
			return trueChoice
		}
		return falseChoice
	})
}

func choice[T any](name string, field *T, words []string, help string, in func(word string) T, out func(T) string) Parameter {
	list := strings.Join(words, ", ")
	p := newParameter(name, ChoiceType, words[0], "one of "+list, help)
	p.Choices = words
	return converted(p, field,
		func(text string) (string, error) { return text, nil },
		func(word string) error {
			if !slices.Contains(words, word) {
				return fmt.Errorf("%q is not known; the choices are: %s", word, list)
			}
			return nil
		}, in, out)
}

// kernel is the parameter "kernel". defaultText describes the kernel that a nil field stands for.
func kernel(field *kernels.Kernel, defaultText string) Parameter {
	p := newParameter("kernel", KernelType, defaultText, "the text of a kernel: see mercer kernels", "kernel function")
	p.autoDefault = true
	return bound(p, field, kernels.Parse, func(k kernels.Kernel) error { return k.Check(-1) })
}

// These parameters occur in several learners.

func medianKernel(field *kernels.Kernel) Parameter {
	return kernel(field, "gaussian, sigma half the median distance")
}

func scaleKernel(field *kernels.Kernel) Parameter {
	return kernel(field, "gaussian, sigma √(d·Var(X)/2) of d features: gamma=\"scale\" of scikit-learn")
}

func lambdaNumber(field *float64) Parameter {
	return number("lambda", field, "1", nonNegative, "λ of (K + λI)α = y, not scaled by the number of rows")
}

func lambdaList(field *[]float64) Parameter {
	return numbers("lambdas", field, nonNegative, "λ of each target, instead of lambda")
}

func seedNumber(field *uint64) Parameter {
	return intParam("seed", field, "1", atLeast(0), "seed of every random choice")
}

func (p Parameter) isZero() bool { return reflect.ValueOf(p.field).Elem().IsZero() }

// set stores the values in the fields, except those of parameters without an effect. It returns an
// error if values contradict each other.
func set(parameters []Parameter, values parsed) *ParameterError {
	for _, p := range parameters {
		if v, ok := values[p.Name]; ok && p.When.met(values) {
			if p.zero != nil && reflect.ValueOf(v).IsZero() {
				v = p.zero
			}
			p.store(v)
		}
	}
	return checkRules(parameters)
}

func checkRules(parameters []Parameter) *ParameterError {
	for _, p := range parameters {
		if p.refuse != nil {
			if rule := p.refuse(); rule != "" {
				return &ParameterError{Parameter: p.Name, Rule: rule}
			}
		}
	}
	return nil
}

// valuesOf returns the values of the fields, without zero values of parameters that have no default.
func valuesOf(parameters []Parameter) parsed {
	values := parsed{}
	for _, p := range parameters {
		if p.Default != "" && !p.autoDefault || !p.isZero() {
			values[p.Name] = p.load()
		}
	}
	return values
}

// complete checks the fields, because a program may have assigned any values. It sets zero fields
// to their defaults, except where zero is a valid value of the parameter.
func complete(parameters []Parameter) error {
	values := valuesOf(parameters)
	for _, p := range parameters {
		v, ok := values[p.Name]
		if !ok {
			continue
		}
		err := p.check(v)
		switch {
		case p.isZero() && !p.required && (err != nil || p.zero != nil):
			if p.When.met(values) {
				defaultValue, err := p.parse(p.Default)
				if err != nil {
					return fmt.Errorf("%s: %w", p.Name, err)
				}
				p.store(defaultValue)
			}
		case err != nil && p.Choices != nil:
			return fmt.Errorf("%s: %w", p.Name, err)
		case err != nil:
			return fmt.Errorf("%s %w", p.Name, err)
		case !p.isZero() && !p.When.met(values):
			return fmt.Errorf("%s works %s", p.Name, p.When)
		}
	}
	if err := checkRules(parameters); err != nil {
		return fmt.Errorf("%s: %s", err.Parameter, err.Rule)
	}
	return nil
}

// When is the condition under which a parameter has an effect. Another parameter must have one of
// the given values or, if there are no given values, must not be set.
type When struct {
	Parameter string   `json:"parameter"`
	Values    []string `json:"values,omitempty"`
}

// String returns the condition as text: "only with solver sgd".
func (w *When) String() string { return w.Of("") }

// Of returns the text of String with a prefix before the parameter's name, such as the -- of a flag.
func (w *When) Of(prefix string) string {
	if len(w.Values) == 0 {
		return "only without " + prefix + w.Parameter
	}
	return "only with " + prefix + w.Parameter + " " + strings.Join(w.Values, " or ")
}

// met reports whether the values satisfy the condition; w may be nil.
func (w *When) met(v parsed) bool {
	if w == nil {
		return true
	}
	if len(w.Values) == 0 {
		return !v.has(w.Parameter)
	}
	return slices.Contains(w.Values, fmt.Sprint(v[w.Parameter]))
}

// onlyWith returns p with the condition that another parameter has one of the values; otherwise p has no effect.
func (p Parameter) onlyWith(parameter string, values ...string) Parameter {
	p.When = &When{parameter, values}
	return p
}

// onlyWithout returns p with the condition that another parameter is not given; otherwise p has no effect.
func (p Parameter) onlyWithout(parameter string) Parameter { return p.onlyWith(parameter) }

// onlyFor returns p restricted to task t; in other tasks p has no effect.
func (p Parameter) onlyFor(t Task) Parameter {
	p.Task = t
	return p
}

// withHelp returns p with another help text.
func (p Parameter) withHelp(help string) Parameter {
	p.Help = help
	return p
}

// withAutoDefault returns p with a description of the default, which Fit chooses.
func (p Parameter) withAutoDefault(words string) Parameter {
	p.Default, p.autoDefault = words, true
	return p
}

// requiredInGo returns p marked as a field that a program must set, because Fit returns an error for a zero field.
func (p Parameter) requiredInGo() Parameter {
	p.required = true
	return p
}

// zeroAs returns p changed so that a given 0 is stored in the field as v. A field of 0 can then mean the default.
func (p Parameter) zeroAs(v any) Parameter {
	p.zero = v
	return p
}

// refusedIf returns p with a rule about several fields. The function rule returns the text of the rule if it is
// violated, or "".
func (p Parameter) refusedIf(rule func() string) Parameter {
	p.refuse = rule
	return p
}

// parsed holds the values of parameters by their names, without parameters that have no value.
type parsed map[string]any

// has reports whether a parameter was given or has a default.
func (v parsed) has(name string) bool { _, ok := v[name]; return ok }
