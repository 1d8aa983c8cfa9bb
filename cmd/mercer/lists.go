package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/learners"
)

func (a *app) learnersCommand() *cobra.Command {
	return withoutDevice(&cobra.Command{
		Use:   "learners [NAME]",
		Short: "List the learners, or one with its parameters",
		Args:  maxArgs(1),
		RunE:  a.work(a.learners),
	})
}

func (a *app) learners(ctx context.Context, args []string) error {
	list := learners.Catalogue()
	if len(args) == 1 {
		d, err := learners.Find(args[0])
		if err != nil {
			var names []string
			for _, d := range list {
				names = append(names, d.Name)
			}
			return usagef("no learner is called %q%s; \"mercer learners\" lists all learners", args[0], didYouMean("", args[0], names))
		}
		list = []learners.Description{d}
	}
	return a.printJSONOrText(ctx, map[string]any{"learners": list}, func() string {
		if len(args) == 1 {
			return describeLearner(list[0])
		}
		return learnersText(list)
	})
}

// learnersText returns the list of learners as text.
func learnersText(list []learners.Description) string {
	text := "Learners with their tasks and parameters.\n"
	for _, d := range list {
		var names []string
		for _, p := range d.Parameters {
			names = append(names, p.Name)
		}
		text += fmt.Sprintf("\n%-20s %s\n", d.Name, tasks(d)) + entry("    ", strings.Join(names, ", "))
	}
	return text + "\nmercer learners NAME describes one.\n"
}

func tasks(d learners.Description) string {
	var names []string
	for _, t := range d.Tasks {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// describeLearner returns the full description of one learner.
func describeLearner(d learners.Description) string {
	text := entry("learner  ", d.Name) + entry("for      ", tasks(d)) + entry("formula  ", d.Formula) + entry("source   ", d.Source)
	for _, p := range d.Parameters {
		rule := p.Rule
		if p.When != nil {
			rule += "; " + p.When.Of("--")
		}
		text += "\n" + entry("", fmt.Sprintf("--%s %s (default: %s)", p.Name, p.Type, cmp.Or(p.Default, "none"))) + entry("    ", p.Help+": "+rule)
	}
	return text
}

// terminalWidth is the maximum number of characters in a line of lists and help.
const terminalWidth = 80

// entry returns a name and, in a column beside it, a text wrapped to terminalWidth.
func entry(name, text string) string {
	width := utf8.RuneCountInString(name)
	return name + strings.ReplaceAll(wrapped(text, terminalWidth-width), "\n", "\n"+strings.Repeat(" ", width)) + "\n"
}

// A kernelList is a family of kernels with the kind of samples that they take.
type kernelList struct {
	Samples string
	Kernels []kernels.Description
}

// kernelLists returns all kernels that --kernel accepts.
func kernelLists() []kernelList {
	return []kernelList{
		{"numbers", kernels.Catalogue()},
		{"texts", objectDescriptions(objects.Text)},
		{"trees", objectDescriptions(objects.Tree)},
	}
}

func (a *app) kernelsCommand() *cobra.Command {
	return withoutDevice(&cobra.Command{
		Use:   "kernels [NAME]",
		Short: "List the kernels, or one, with their parameters and formulas",
		Args:  maxArgs(1),
		RunE:  a.work(a.kernels),
	})
}

func (a *app) kernels(ctx context.Context, args []string) error {
	type kernelEntry struct {
		kernels.Description
		Samples string `json:"samples"`
	}
	var list []kernelEntry
	text := "Examples of all kernels, with the formula and the rules of the parameters.\n"
	var allNames []string
	for _, family := range kernelLists() {
		heading := "\non " + family.Samples + "\n"
		for _, d := range family.Kernels {
			names := append([]string{d.Name}, d.Aliases...)
			allNames = append(allNames, names...)
			if len(args) == 1 && !slices.Contains(names, args[0]) {
				continue
			}
			text, heading = text+heading, ""
			list = append(list, kernelEntry{d, family.Samples})
			var parameters []string
			for _, p := range d.Parameters {
				rule := p.Name + " " + p.Rule
				if p.Default != "" {
					rule += fmt.Sprintf(" (default %s)", p.Default)
				}
				parameters = append(parameters, rule)
			}
			text += "  " + d.Example + "\n" + entry("      ", d.Formula)
			if len(parameters) > 0 {
				text += entry("      ", strings.Join(parameters, "; "))
			}
		}
	}
	if len(list) == 0 {
		return usagef("no kernel is called %q%s; the kernels are: %s", args[0], didYouMean("", args[0], allNames), strings.Join(allNames, ", "))
	}
	if len(args) == 0 {
		text += "\nKernels on numbers are joined with + and * and scaled:\n'0.5*linear() + gaussian(sigma=3)'; those on texts, and those on trees, with +\nand scaled.\n\n" + gramHelp + "\n"
	}
	return a.printJSONOrText(ctx, map[string]any{"kernels": list}, func() string { return text })
}
