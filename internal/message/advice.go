package message

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Advised is an error whose advice names parameters. Its method Error returns Message(Plain).
type Advised interface {
	error
	// Message returns the text of the error. name returns a front end's name of a parameter: see Expand.
	Message(name func(parameter string) string) string
}

// parameters maps each parameter that advice may name to its text for Go programs. If the parameter
// is the whole advice, as in {$memory}, this text is a phrase with a verb.
var parameters = map[string]string{
	"lambda":              "lambda",
	"lambdas":             "lambdas",
	"fitted=lambda":       "lambda of the fit",
	"tol":                 "tol",
	"accuracy":            "accuracy",
	"bound":               "Bound",
	"iterations":          "iterations",
	"solver":              "solver",
	"penalty":             "lower C",
	"penalty=lambda":      "raise lambda",
	"nu":                  "nu",
	"rate":                "the rate",
	"centers":             "centers",
	"features":            "features",
	"kernel":              "kernel",
	"standardize":         "standardize x",
	"memory":              "allow more memory",
	"folds":               "use fewer folds",
	"solver=primal":       "the method primal",
	"solver=dual":         "the method dual",
	"task=classification": "set Labels",
	"na-values":           "name it as a marker of missing values",
	"keep-default-na":     "take such cells for a category",
	"categorical":         "name the column as categorical",
	"decimal=point":       "the decimal mark '.'",
	"decimal=comma":       "the decimal mark ','",
	"thousands=point":     "the thousands mark '.'",
	"thousands=comma":     "the thousands mark ','",
	"thousands=space":     "the thousands mark ' '",
	"delimiter=space":     "the delimiter ' '",
	"drop":                "drop the column",                   // the advice contains a column, as in $drop=age
	"tfidf":               "make tf-idf features of its texts", // the advice contains a column, as in $tfidf=age
}

// Plain returns the text of a parameter for Go programs.
func Plain(parameter string) string {
	if name, _, _ := strings.Cut(parameter, "="); name == "drop" || name == "tfidf" {
		parameter = name
	}
	return parameters[parameter]
}

// Parameters lists the parameters that advice may name.
func Parameters() []string { return slices.Sorted(maps.Keys(parameters)) }

var (
	// advice matches {a|b|c} with the preceding separator.
	advice    = regexp.MustCompile(`(: |; |, )?\{([^{}]*\$[^{}]*)\}`)
	parameter = regexp.MustCompile(`\$([a-zA-Z-]+(=[a-z]+)?)`)
)

// Expand returns text with its advice in words for a front end: {raise $lambda|raise $tol|scale the features down}
// becomes "raise lambda or tol, or scale the features down". name returns the front end's name of a parameter, or
// "" for a parameter that the front end lacks. Expand omits each alternative that contains such a parameter. If no
// alternative remains, Expand also omits the separator before the advice.
func Expand(text string, name func(parameter string) string) string {
	return advice.ReplaceAllStringFunc(text, func(s string) string {
		match := advice.FindStringSubmatch(s)
		var list []string // the phrases; an alternative is joined to the preceding phrase if both have the same verb
		verb := ""
		for alternative := range strings.SplitSeq(match[2], "|") {
			known := true
			phrase := parameter.ReplaceAllStringFunc(alternative, func(s string) string {
				n := name(s[1:])
				known = known && n != ""
				return n
			})
			if !known {
				continue
			}
			v, object, _ := strings.Cut(alternative, " ")
			if !strings.HasPrefix(object, "$") {
				v = ""
			}
			if v != "" && v == verb {
				last := list[len(list)-1]
				list[len(list)-1] = strings.Replace(last, " or ", ", ", 1) + " or " + strings.TrimPrefix(phrase, v+" ")
				continue
			}
			verb, list = v, append(list, phrase)
		}
		switch n := len(list) - 1; {
		case n < 0:
			return ""
		case n == 0:
			return match[1] + list[0]
		case n == 1 && !strings.Contains(list[0]+list[1], " or ") && !strings.Contains(list[0], ","):
			return match[1] + list[0] + " or " + list[1]
		default:
			return match[1] + strings.Join(list[:n], ", ") + ", or " + list[n]
		}
	})
}

// Errorf is like fmt.Errorf, but returns an Advised error. The parts of format in braces, which are
// the advice, must not contain verbs of package fmt, because advice may be omitted.
func Errorf(format string, args ...any) error {
	return &advised{error: fmt.Errorf(Expand(format, Plain), args...), format: format, args: args}
}

type advised struct {
	error
	format string
	args   []any
}

func (e *advised) Message(name func(string) string) string {
	return fmt.Errorf(Expand(e.format, name), e.args...).Error()
}

func (e *advised) Unwrap() error {
	if inner, ok := e.error.(interface{ Unwrap() error }); ok {
		return inner.Unwrap()
	}
	return nil
}

// Within limits the advice of an error to the parameters of a part of the library. rename returns the name that a
// parameter has in this part, which is usually the same name, or "" if the part lacks the parameter.
func Within(err error, rename func(parameter string) string) error {
	if err == nil {
		return nil
	}
	return &limited{err, rename}
}

type limited struct {
	err    error
	rename func(parameter string) string
}

func (e *limited) Error() string { return e.Message(Plain) }

func (e *limited) Message(name func(string) string) string {
	return Text(e.err, func(parameter string) string {
		if parameter = e.rename(parameter); parameter == "" {
			return ""
		}
		return name(parameter)
	})
}

func (e *limited) Unwrap() error { return e.err }
