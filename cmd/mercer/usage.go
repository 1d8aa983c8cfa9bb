package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mercer-go/mercer/internal/suggest"
)

// usageError is an error in the command line. The command then exits with code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// A refusal lists flags that have no effect in a call if condition is true, and says why.
type refusal struct {
	condition     bool
	flags         string // names of the flags, separated by spaces
	reason        string
	conditionFlag string // the flag on which the condition depends, or ""; if a flag is named, help hides the refused flags only if this flag is given
}

// refuseFlags makes a command return an error for flags that have no effect, and hides them from its help. Call it
// before learnerFlags.add: the help of the learner must be complete before flags are hidden.
func refuseFlags(c *cobra.Command, reasons func() []refusal) *cobra.Command {
	forEach := func(apply func(flag *pflag.Flag, r refusal)) {
		for _, r := range reasons() {
			for name := range strings.FieldsSeq(r.flags) {
				if flag := c.Flags().Lookup(name); r.condition && flag != nil {
					apply(flag, r)
				}
			}
		}
	}
	preRun := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) (err error) {
		if preRun != nil {
			err = preRun(c, args)
		}
		forEach(func(flag *pflag.Flag, r refusal) {
			value := flag.Value.String()
			isOff := value == flag.DefValue && slices.Contains([]string{"0", "false"}, value) // the value is the default and means "no", as in --stream=false
			if flag.Changed && !isOff && err == nil {
				err = usagef("--%s: %s", flag.Name, r.reason)
			}
		})
		return err
	}
	beforeHelp(c, func() {
		forEach(func(flag *pflag.Flag, r refusal) {
			flag.Hidden = flag.Hidden || r.conditionFlag == "" || c.Flags().Changed(r.conditionFlag)
		})
	})
	return c
}

// beforeHelp makes a command call prepare before its help is printed.
func beforeHelp(c *cobra.Command, prepare func()) {
	help := c.HelpFunc()
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		prepare()
		help(c, args)
	})
}

// withoutDevice makes a command refuse the flags about devices, because it does no work on data.
func withoutDevice(c *cobra.Command) *cobra.Command {
	return refuseFlags(c, func() []refusal {
		return []refusal{{true, "device threads memory reproducible quiet", "has no effect on mercer " + c.Name(), ""}}
	})
}

// badValue returns an error for a flag whose value is empty, as from an unset shell variable, except where an empty
// value has a meaning, and for a flag whose value is the next flag.
func badValue(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if p, ok := f.Value.(*parameterFlag); ok {
			value = p.paramTexts[p.name]
		}
		mayBeEmpty := slices.Contains([]string{"device", "comment", "compare-by"}, f.Name) // an empty value means auto, or none
		switch {
		case err != nil:
		case f.Value.Type() == "string" && value == "" && !mayBeEmpty:
			err = usagef("--%s: the value is empty", f.Name)
		case strings.HasPrefix(value, "--") && c.Flags().Lookup(strings.TrimPrefix(value, "--")) != nil:
			err = usagef("--%s: needs a value, but the next argument is %s", f.Name, value)
		}
	})
	return err
}

// flagError explains an unknown flag or a wrong value.
func flagError(c *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		noValue *pflag.ValueRequiredError
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
	case errors.As(err, &noValue):
		return usagef("--%s: needs a value", noValue.GetSpecifiedName())
	case errors.As(err, &invalid) && errors.As(err, &syntax):
		kind := map[string]string{"float64": "a number", "int": "an integer", "uint64": "an integer ≥ 0", "bool": "true or false",
			"intSlice": "integers such as 1,2,4", "float64Slice": "numbers such as 0.1,1,10"}
		return usagef("--%s: want %s, got %q", invalid.GetFlag().Name, cmp.Or(kind[invalid.GetFlag().Value.Type()], "another value"), invalid.GetValue())
	case errors.As(err, &invalid):
		return usagef("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	}
	return usageError{err}
}

// commandOrFlagError returns an error for an unknown command if the first word is no flag, and otherwise flagError.
func (a *app) commandOrFlagError(c *cobra.Command, err error) error {
	if depth := strings.Count(c.CommandPath(), " "); c.HasSubCommands() && len(a.args) > depth && !strings.HasPrefix(a.args[depth], "-") {
		return a.subcommand(c, a.args[depth:])
	}
	return flagError(c, err)
}

// helpCommand returns a help command that, unlike cobra's, returns an error for an unknown command.
func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:                "help [command] [flags]",
		Short:              "Help about any command",
		DisableFlagParsing: true, // flags after "help fit" are those of fit, such as --learner
		RunE: func(_ *cobra.Command, args []string) error {
			if args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--help" || arg == "-h" }); len(args) == 0 {
				return root.Help()
			}
			c, remaining, err := root.Find(args)
			if err == nil && c != root {
				if err := c.ParseFlags(remaining); err != nil {
					return flagError(c, err)
				}
				if remaining = c.Flags().Args(); c.HasSubCommands() && len(remaining) > 0 {
					return a.subcommand(c, remaining)
				}
			}
			if len(args) > 0 && (err != nil || c == root) {
				return a.subcommand(root, args)
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (list []string, _ cobra.ShellCompDirective) {
			if c, remaining, err := root.Find(args); err == nil && len(remaining) == 0 {
				for _, sub := range c.Commands() {
					if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
						list = append(list, sub.Name()+"\t"+sub.Short)
					}
				}
			}
			return list, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// subcommand rejects a first argument that is not a subcommand.
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

// didYouMean returns ", did you mean NAME?" if one of the names is similar, and otherwise "".
func didYouMean(prefix, got string, names []string) string {
	if nearest := suggest.Nearest(got, names); nearest != "" {
		return fmt.Sprintf(", did you mean %s%s?", prefix, nearest)
	}
	return ""
}
