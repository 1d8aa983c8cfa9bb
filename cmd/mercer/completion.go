package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/kernels"
)

// offerNames registers shell completions for the flags of a command and of its subcommands: names
// of learners, examples of kernels, and names of the columns in the table on the command line.
func (a *app) offerNames(c *cobra.Command) {
	offer := func(flag string, names func(args []string) []string) {
		if c.Flag(flag) == nil {
			return
		}
		_ = c.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return names(args), cobra.ShellCompDirectiveNoFileComp
		})
	}
	offer("learner", func([]string) []string {
		if of, is := c.Flag("learner").Value.(learnerName); is {
			return of.names()
		}
		return append(slices.Clone(tunedLearners), gridLearners()...)
	})
	offer("kernel", func([]string) (list []string) {
		for _, d := range kernels.Catalogue() {
			list = append(list, d.Example)
		}
		return list
	})
	offer("tfidf", func([]string) []string { return analyzers() })
	for _, flag := range []string{"target", "drop", "weight", "categorical", "text", "tree"} {
		offer(flag, a.columns)
	}
	for _, below := range c.Commands() {
		a.offerNames(below)
	}
}

// columns returns the column names of the table args[0], or nil if the table cannot be read.
func (a *app) columns(args []string) []string {
	if len(args) != 1 || args[0] == "-" {
		return nil
	}
	s, err := a.file(args[0]).Open()
	if err != nil {
		return nil
	}
	return s.Names()
}
