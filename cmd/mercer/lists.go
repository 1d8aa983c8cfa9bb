package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/internal/texttable"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/learners"
)

func (a *app) learnersCommand() *cobra.Command {
	return a.withoutDevice(&cobra.Command{
		Use:   "learners [NAME]",
		Short: "List the learners, or one with its parameters",
		Args:  cobra.MaximumNArgs(1),
		RunE:  a.work(a.learners),
	})
}

func (a *app) learners(ctx context.Context, args []string) error {
	list := learners.Catalogue()
	if len(args) == 1 {
		d, err := learners.Find(args[0])
		if err != nil {
			return usagef("there is no learner %q%s; there are: %s", args[0], didYouMean("", args[0], learners.Names()), strings.Join(learners.Names(), ", "))
		}
		list = []learners.Description{d}
	}
	if a.json {
		return a.printJSON(ctx, map[string]any{"learners": list})
	}
	if len(args) == 1 {
		return a.print(ctx, describeLearner(list[0]))
	}
	rows := [][]string{{"learner", "for", "parameters"}}
	for _, d := range list {
		var names []string
		for _, p := range d.Parameters {
			names = append(names, p.Name)
		}
		for i, line := range strings.Split(wrapped(strings.Join(names, ", "), 50), "\n") {
			row := []string{"", "", line}
			if i == 0 {
				row = []string{d.Name, tasks(d), line}
			}
			rows = append(rows, row)
		}
	}
	return a.print(ctx, texttable.Format("lll", rows)+"\nmercer learners NAME describes one.\n")
}

func tasks(d learners.Description) string {
	var names []string
	for _, t := range d.Tasks {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// describeLearner is all about one learner.
func describeLearner(d learners.Description) string {
	text := entry("learner  ", d.Name) + entry("for      ", tasks(d)) + entry("formula  ", d.Formula) + entry("source   ", d.Source)
	for _, p := range d.Parameters {
		rule := p.Rule
		if p.When != nil {
			rule += "; " + p.When.Of("--")
		}
		text += fmt.Sprintf("\n--%s %s (default: %s)\n", p.Name, p.Type, cmp.Or(p.Default, "none")) + entry("    ", p.Help+": "+rule)
	}
	return text
}

// listWidth is the number of columns that the lists fit.
const listWidth = 100

// entry is a text that is wrapped to listWidth beside a name.
func entry(name, text string) string {
	width := utf8.RuneCountInString(name)
	return name + strings.ReplaceAll(wrapped(text, listWidth-width), "\n", "\n"+strings.Repeat(" ", width)) + "\n"
}

// A kernelList is a family of kernels and the samples that they are for.
type kernelList struct {
	Samples string
	Kernels []kernels.Description
}

// kernelLists are all that --kernel takes.
func kernelLists() []kernelList {
	return []kernelList{
		{"numbers", kernels.Catalogue()},
		{"texts", objectDescriptions(objects.Text)},
		{"trees", objectDescriptions(objects.Tree)},
	}
}

func (a *app) kernelsCommand() *cobra.Command {
	return a.withoutDevice(&cobra.Command{
		Use:   "kernels",
		Short: "List the kernels with their parameters and formulas",
		Args:  cobra.NoArgs,
		RunE:  a.work(func(ctx context.Context, _ []string) error { return a.kernels(ctx) }),
	})
}

func (a *app) kernels(ctx context.Context) error {
	type listed struct {
		kernels.Description
		Samples string `json:"samples"`
	}
	var list []listed
	text := "Kernels, each as an example, with the formula and the rules of the parameters.\n"
	for _, family := range kernelLists() {
		text += "\non " + family.Samples + "\n"
		for _, d := range family.Kernels {
			list = append(list, listed{d, family.Samples})
			var parameters []string
			for _, p := range d.Parameters {
				rule := p.Name + " " + p.Rule
				if p.Default != "" {
					rule += fmt.Sprintf(" (default %s)", p.Default)
				}
				parameters = append(parameters, rule)
			}
			text += entry(fmt.Sprintf("  %-35s  ", d.Example), d.Formula)
			if len(parameters) > 0 {
				text += entry(strings.Repeat(" ", 39), strings.Join(parameters, "; "))
			}
		}
	}
	if a.json {
		return a.printJSON(ctx, map[string]any{"kernels": list})
	}
	return a.print(ctx, text+"\nKernels on numbers are joined with + and * and scaled: '0.5*linear() + gaussian(sigma=3)';\nthose on texts, and those on trees, with + and scaled.\n\n"+gramHelp+"\n")
}
