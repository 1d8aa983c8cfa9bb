package message

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Advised is an error that says what to do in terms of parameters. Its Error is
// Message(Plain).
type Advised interface {
	error
	// Message is the text of the error, with the name that a front end has for each
	// parameter.
	Message(name func(parameter string) string) string
}

// parameters are those that advice names, with what Go programs read.
var parameters = map[string]string{
	"lambda":              "lambda",
	"tol":                 "tol",
	"iterations":          "iterations",
	"C":                   "C",
	"rate":                "lower the rate",
	"memory":              "allow more memory",
	"folds":               "use fewer folds",
	"solver=primal":       "the method primal",
	"solver=dual":         "the method dual",
	"learner=ridge":       "ridge",
	"task=classification": "say so",
	"na-values":           "name it as a marker of missing values",
	"categorical":         "the column as categorical",
}

// Plain names a parameter for Go programs.
func Plain(parameter string) string { return parameters[parameter] }

var parameterPattern = regexp.MustCompile(`\{(` + strings.Join(slices.Sorted(maps.Keys(parameters)), "|") + `)\}`)

// Expand replaces each {parameter} of a text by its name.
func Expand(text string, name func(parameter string) string) string {
	return parameterPattern.ReplaceAllStringFunc(text, func(s string) string { return name(s[1 : len(s)-1]) })
}

// Errorf is fmt.Errorf for an Advised error: in the format {lambda} is the name of the
// parameter lambda, and {solver=dual} that of its value.
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
	if inner, is := e.error.(interface{ Unwrap() error }); is {
		return inner.Unwrap()
	}
	return nil
}
