package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// offerNames registers shell completions for the flags of a command and of its subcommands.
func (a *app) offerNames(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		f.Usage = strings.ReplaceAll(f.Usage, "`", "") // shells would print the backquotes
		_ = c.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if list := a.values(c, f, args); list != nil {
				return list, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		})
	})
	for _, sub := range c.Commands() {
		a.offerNames(sub)
	}
}

// values returns the values that a shell offers for a flag: names of learners, examples of kernels, choices of
// parameters, or names of the columns in the table on the command line. For other flags it returns nil.
func (a *app) values(c *cobra.Command, f *pflag.Flag, args []string) (list []string) {
	learner, isLearner := f.Value.(learnerName)
	switch p, isParameter := f.Value.(*parameterFlag); {
	case isLearner:
		return learner.names()
	case f.Name == "learner":
		return append(slices.Clone(tunedLearners), gridLearners()...)
	case f.Name == "kernel":
		for _, d := range kernels.Catalogue() {
			list = append(list, d.Example)
		}
	case f.Name == "tfidf":
		return analyzers()
	case slices.Contains([]string{"target", "drop", "weight", "categorical", "text", "tree"}, f.Name) && len(args) == 1 && args[0] != "-":
		if s, err := a.file(args[0]).Open(); err == nil {
			return s.Names()
		}
	case isParameter && p.kind == learners.ChoiceType:
		learner = c.Flag("learner").Value.(learnerName)
		for _, d := range append([]learners.Description{learner.description()}, learners.Catalogue()...) {
			if p, has := d.Parameter(f.Name); has {
				return p.Choices
			}
		}
	}
	return list
}
