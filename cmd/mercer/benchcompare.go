package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/internal/bench"
)

func (a *app) benchCompareCommand() *cobra.Command {
	var all bool
	var threshold float64
	c := &cobra.Command{
		Use:   "compare OLD NEW",
		Short: "Tell what got slower between two measurements that --json wrote",
		Long: `Compares the timings of two measurements of the same kind, case by case: what is
slower or faster beyond noise, by the test of Mann and Whitney at 5 % and by
more than --threshold per cent in the medians. It takes four timings in both.

Ceilings and other libraries, whose code is the same in both, tell how much of a
difference is the machine's.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("compare needs two files, the older first, got %s", count(len(args), "argument"))
			}
			return nil
		},
		RunE: a.work(func(ctx context.Context, args []string) error {
			if !(threshold >= 0) {
				return usagef("--threshold: must be ≥ 0, got %v", threshold)
			}
			var results [2]*bench.Result
			for i, name := range args {
				r, err := a.readResult(name)
				if err != nil {
					return err
				}
				results[i] = r
			}
			d, err := bench.DiffOf(results[0], results[1], threshold/100)
			if err != nil {
				return err
			}
			return a.printJSONOrText(ctx, d, func() string { return d.Text(all) })
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "list what has not changed too")
	c.Flags().Float64Var(&threshold, "threshold", 2, "smallest change of a median that counts, in per cent")
	return c
}
