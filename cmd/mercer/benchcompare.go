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
		Short: "Show what got slower between two measurements that --json wrote",
		Long: `Compares the timings of two measurements of the same kind, case by case. A case counts
as slower or faster if the test of Mann and Whitney rejects equality at 5 %, and the
medians differ by more than --threshold per cent. Both measurements need four timings of
the case.

The code of ceilings and other libraries is the same in both measurements, so their
differences show the effect of the machine.`,
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
	c.Flags().BoolVar(&all, "all", false, "also list the cases that have not changed")
	c.Flags().Float64Var(&threshold, "threshold", 2, "smallest change of a median that counts, in per cent")
	return c
}
