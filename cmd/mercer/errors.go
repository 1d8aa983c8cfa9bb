package main

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/process"
	"github.com/mercer-go/mercer/kernels"
)

// explain returns an error as one line, with advice if there is any, and the exit code.
func (a *app) explain(ctx context.Context, err error) (text string, code int) {
	if interruption := (process.Interruption{}); errors.As(context.Cause(ctx), &interruption) && errors.Is(err, context.Canceled) {
		return interruption.Error(), interruption.Code()
	}
	text = a.oneLine(err) + a.scaleAdvice(err)
	if errors.Is(err, backend.ErrMemory) {
		text += "; use fewer rows, or raise --memory"
	}
	text = message.Fit(text)
	if errors.As(err, new(usageError)) || !a.started {
		return text, 2
	}
	return text, 1
}

// scaleAdvice returns advice for values that a kernel cannot take, or "". If standardization may have moved values
// out of the kernel's domain, the advice names --no-standardize.
func (a *app) scaleAdvice(err error) string {
	if a.command == nil {
		return ""
	}
	noStandardize := a.command.Flags().Changed("no-standardize")
	point, pivot := (*kernels.PointError)(nil), (*backend.PivotError)(nil)
	tooLarge := errors.Is(err, kernels.ErrOverflow) || errors.As(err, &pivot) && pivot.Value-pivot.Value != 0
	switch {
	case a.command.Flags().Lookup("no-standardize") == nil && tooLarge:
		return "; compare the row with the training rows, which may have other units"
	case a.command.Flags().Lookup("no-standardize") == nil:
		return ""
	case tooLarge && noStandardize:
		return "; without --no-standardize the numbers of the table are standardized"
	case errors.As(err, &point) && !noStandardize:
		return "; numbers of the table are standardized unless --no-standardize is given"
	}
	return ""
}

// flagOf returns a function that maps a parameter in the library's advice to the flag of c, or to "". c may be nil.
func flagOf(c *cobra.Command) func(parameter string) string {
	has := func(flag string) bool {
		return c == nil || c.Flags().Lookup(flag) != nil || c.InheritedFlags().Lookup(flag) != nil
	}
	return func(parameter string) string {
		name, value, isValue := strings.Cut(parameter, "=")
		switch {
		case name == "fitted":
			return "--" + value + " of mercer fit"
		case parameter == "standardize":
			if c != nil && c.Flags().Changed("no-standardize") {
				return "leave --no-standardize out"
			}
			return ""
		case parameter == "penalty":
			name = "C"
		case name == "penalty":
			name = value
		}
		if name == "lambda" && !has(name) {
			name = "lambdas" // mercer tune has --lambdas in place of --lambda
		}
		switch {
		case !has(name):
			return ""
		case parameter == "penalty", parameter == "folds":
			return "lower --" + name
		case parameter == "memory", parameter == "penalty=lambda":
			return "raise --" + name
		case parameter == "na-values":
			return "name it with --na-values"
		case parameter == "keep-default-na":
			return "take such cells for a category with --keep-default-na=false"
		case parameter == "categorical":
			return "name the column with --categorical"
		case name == "drop":
			return "leave it out with --drop " + shellWord(value)
		case name == "tfidf":
			return "make features of its texts with --text " + shellWord(value) + " --tfidf word"
		case name == "task":
			return "say --task " + value
		case isValue:
			if symbol, ok := map[string]string{"point": ".", "comma": ",", "space": "' '"}[value]; ok {
				value = symbol
			}
			return "--" + name + " " + value
		}
		return "--" + name
	}
}

// shellWord quotes a column name for the shell. The name is an element of a comma-separated list.
func shellWord(name string) string {
	if strings.ContainsAny(name, ",\"") {
		name = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	if plainWord.MatchString(name) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

var plainWord = regexp.MustCompile(`^[\pL\pN_./:=+-]+$`)

// packages matches a package name at the start of a library message. The command omits this name.
var packages = regexp.MustCompile(`(^|: )((mercer|backend|kernels|solvers|learners|dataset|modelfile|bench|tuning|validate): )+`)

// oneLine returns the result of the method oneLine for an app that has not started a command.
func oneLine(err error) string { return new(app).oneLine(err) }

// oneLine returns the text of err on one line, without names of packages and with the flags of the running command.
func (a *app) oneLine(err error) string {
	return message.Fit(packages.ReplaceAllString(message.Text(err, flagOf(a.command)), "$1"))
}
