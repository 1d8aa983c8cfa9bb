package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/learners"
)

func (a *app) learnersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "learners [NAME]",
		Short: "List the learners, or one with its parameters",
		Args:  cobra.MaximumNArgs(1),
		RunE:  a.work(a.learners),
	}
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
		rows = append(rows, []string{d.Name, tasks(d), strings.Join(names, ", ")})
	}
	return a.print(ctx, table("lll", rows)+"\nmercer learners NAME tells more of one.\n")
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
	text := table("ll", [][]string{{"learner", d.Name}, {"for", tasks(d)}, {"formula", d.Formula}, {"source", d.Source}})
	if len(d.Parameters) == 0 {
		return text
	}
	rows := [][]string{{"parameter", "type", "default", "rule", ""}}
	for _, p := range d.Parameters {
		rule := p.Rule
		if p.When != nil {
			rule += "; " + p.When.String()
		}
		rows = append(rows, []string{"--" + p.Name, p.Type, cmp.Or(p.Default, "none"), rule, p.Help})
	}
	return text + "\n" + table("lllll", rows)
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
	return &cobra.Command{
		Use:   "kernels",
		Short: "List the kernels with their parameters and formulas",
		Args:  cobra.NoArgs,
		RunE:  a.work(func(ctx context.Context, _ []string) error { return a.kernels(ctx) }),
	}
}

func (a *app) kernels(ctx context.Context) error {
	type listed struct {
		kernels.Description
		Samples string `json:"samples"`
	}
	var list []listed
	rows := [][]string{{"kernel", "on", "formula", "parameters", "example"}}
	for _, family := range kernelLists() {
		for _, d := range family.Kernels {
			list = append(list, listed{d, family.Samples})
			var parameters []string
			for _, p := range d.Parameters {
				text := p.Name + " " + p.Rule
				if p.Default != "" {
					text += fmt.Sprintf(" (default %s)", p.Default)
				}
				parameters = append(parameters, text)
			}
			rows = append(rows, []string{d.Name, family.Samples, d.Formula, strings.Join(parameters, "; "), d.Example})
		}
	}
	if a.json {
		return a.printJSON(ctx, map[string]any{"kernels": list})
	}
	return a.print(ctx, table("lllll", rows)+"\nKernels on numbers are joined with + and * and scaled: '0.5*linear() + gaussian(sigma=3)';\nthose on texts, and those on trees, with + and scaled.\n")
}
