package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/process"
	"github.com/mercer-go/mercer/internal/suggest"
	"github.com/mercer-go/mercer/kernels"
)

// usageError is wrong use: exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// explain makes one line of an error, says what to do where that is known, and
// returns the exit code.
func (a *app) explain(ctx context.Context, err error) (text string, code int) {
	if by := (process.Interruption{}); errors.As(context.Cause(ctx), &by) && errors.Is(err, context.Canceled) {
		return by.Error(), by.Code()
	}
	text = a.oneLine(err) + a.aboutScale(err)
	if errors.Is(err, backend.ErrMemory) {
		text += "; use fewer rows, or raise --memory"
	}
	text = message.Fit(text)
	if errors.As(err, new(usageError)) || !a.started {
		return text, 2
	}
	return text, 1
}

// aboutScale is what the scale of the numbers has to do with an error. Where the command
// has --no-standardize, values of a wrong kind are made by standardizing, too large ones
// are avoided by it.
func (a *app) aboutScale(err error) string {
	if a.command == nil {
		return ""
	}
	given := a.command.Flags().Changed("no-standardize")
	point, pivot := (*kernels.PointError)(nil), (*backend.PivotError)(nil)
	tooLarge := errors.Is(err, kernels.ErrOverflow) || errors.As(err, &point) && point.Overflow || errors.As(err, &pivot) && pivot.Value-pivot.Value != 0
	switch {
	case a.command.Flags().Lookup("no-standardize") == nil && tooLarge:
		return "; compare the row with those that the model was fitted to, which may have other units"
	case a.command.Flags().Lookup("no-standardize") == nil:
		return ""
	case tooLarge && given:
		return "; without --no-standardize the numbers of the table are standardized"
	case point != nil && !point.Overflow && !given:
		return "; numbers of the table are standardized unless --no-standardize is given"
	}
	return ""
}

// flagOf is how a command names a parameter of the library's advice: by its flag, or ""
// where it has none. c is nil where no command has begun.
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
			name = "lambdas" // which tune tries
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
		case parameter == "categorical":
			return "name the column with --categorical"
		case name == "drop":
			return "leave it out with --drop " + shellWord(value)
		case name == "task":
			return "say --task " + value
		case isValue:
			if mark, ok := map[string]string{"point": ".", "comma": ",", "space": "' '"}[value]; ok {
				value = mark
			}
			return "--" + name + " " + value
		}
		return "--" + name
	}
}

// shellWord is a name of a column as a flag with commas takes it from a shell.
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

// packages begin messages of the library; at a terminal they are of no use.
var packages = regexp.MustCompile(`(^|: )((backend|kernels|solvers|learners|dataset|modelfile|bench|tuning|validate): )+`)

// oneLine is the text of err on one line, without the names of packages.
func oneLine(err error) string { return new(app).oneLine(err) }

// oneLine is oneLine with the flags that the running command has.
func (a *app) oneLine(err error) string {
	return message.Fit(packages.ReplaceAllString(message.Text(err, flagOf(a.command)), "$1"))
}

// flagError explains a flag that is not there or has a wrong value.
func flagError(c *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		without *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		syntax  *strconv.NumError
	)
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return usagef("unknown flag -%s; %s --help lists the flags", unknown.GetSpecifiedName(), c.CommandPath())
	case errors.As(err, &unknown):
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		name := unknown.GetSpecifiedName()
		if name == "out" && slices.Contains([]string{"fit", "tune"}, c.Name()) {
			return usagef("unknown flag --out: the file to write is --model; %s --help lists the flags", c.CommandPath())
		}
		return usagef("unknown flag --%s%s; %s --help lists the flags", name, didYouMean("--", name, names), c.CommandPath())
	case errors.As(err, &without):
		return usagef("--%s: needs a value", without.GetSpecifiedName())
	case errors.As(err, &invalid) && errors.As(err, &syntax):
		kind := map[string]string{"float64": "a number", "int": "an integer", "uint64": "an integer ≥ 0", "bool": "true or false",
			"intSlice": "integers such as 1,2,4", "float64Slice": "numbers such as 0.1,1,10"}
		return usagef("--%s: want %s, got %q", invalid.GetFlag().Name, cmp.Or(kind[invalid.GetFlag().Value.Type()], "another value"), invalid.GetValue())
	case errors.As(err, &invalid):
		return usagef("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	}
	return usageError{err}
}

// rootFlagError is flagError, but where a word is no command that is said,
// whatever flags it was to have.
func (a *app) rootFlagError(c *cobra.Command, err error) error {
	if at := strings.Count(c.CommandPath(), " "); c.HasSubCommands() && len(a.args) > at && !strings.HasPrefix(a.args[at], "-") {
		return a.subcommand(c, a.args[at:])
	}
	return flagError(c, err)
}

// helpCommand is cobra's, but refuses what is no command.
func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:                "help [command] [flags]",
		Short:              "Help about any command",
		DisableFlagParsing: true, // they are those of the command, such as --learner of fit
		RunE: func(_ *cobra.Command, args []string) error {
			if args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--help" || arg == "-h" }); len(args) == 0 {
				return root.Help()
			}
			c, rest, err := root.Find(args)
			if err == nil && c != root {
				if err := c.ParseFlags(rest); err != nil {
					return flagError(c, err)
				}
				if rest = c.Flags().Args(); c.HasSubCommands() && len(rest) > 0 {
					return a.subcommand(c, rest)
				}
			}
			if len(args) > 0 && (err != nil || c == root) {
				return a.subcommand(root, args)
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

// subcommand rejects a first argument that is no subcommand.
func (a *app) subcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	return usagef("unknown command %q%s; %s --help lists the commands", args[0], didYouMean("", args[0], names), c.CommandPath())
}

// didYouMean is ", did you mean ...?" when a name is near.
func didYouMean(prefix, got string, names []string) string {
	if best := suggest.Nearest(got, names); best != "" {
		return fmt.Sprintf(", did you mean %s%s?", prefix, best)
	}
	return ""
}
