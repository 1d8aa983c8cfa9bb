package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/bench"
)

func (a *app) benchScaleCommand() *cobra.Command {
	var s bench.Scale
	var o benchOutput
	c := &cobra.Command{
		Use:   "scale",
		Short: "Time, memory, residual and error of each solver against n and M",
		Long: `Times each solver over growing n, and those with M functions over growing M, up to
the memory budget: time, the most memory on the device beside what the plan said,
how much the process grew, residual, error on rows held out, and the exponents with
which all of it grows beside those of the operations.`,
		Args: cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error {
			if err := a.checkBench(ctx, o); err != nil {
				return err
			}
			if err := checkBenchLists(s.Sizes, nil, benchList{"--solver", s.Solvers, bench.ScaleSolvers()}); err != nil {
				return err
			}
			for _, m := range s.Centers {
				if m < 1 {
					return usagef("--m: must be ≥ 1, got %d", m)
				}
			}
			if a.threads < 0 || s.Features < 1 || s.Limit < 0 {
				return usagef("--threads and --limit must be ≥ 0, --d ≥ 1; got %d, %v and %d", a.threads, s.Limit, s.Features)
			}
			if o.quick {
				if s.Sizes == nil {
					s.Sizes = []int{500, 1000, 2000, 4000}
				}
				if s.Centers == nil {
					s.Centers = []int{50, 100, 200, 400}
				}
				if s.Limit == 0 {
					s.Limit = 3 * time.Second
				}
			}
			if a.device != "" && !knownDevice(a.device) {
				return usagef("--device: no device is called %q; mercer devices lists them", a.device)
			}
			s.Device, s.Memory, s.Threads = a.device, int64(a.memory), a.threads
			p := a.newProgress()
			s.Runner = o.runner(p, "n")
			r, err := s.Run(ctx)
			p.close()
			if err != nil {
				return err
			}
			return a.benchDone(ctx, o, r)
		}),
	}
	flags := c.Flags()
	flags.IntSliceVar(&s.Sizes, "n", nil, "numbers of samples (default: 1000,2000,4000,8000,16000; quick: 500,1000,2000,4000)")
	flags.IntSliceVar(&s.Centers, "m", nil, "numbers of functions, at the largest n; the middle one is that of the other n (default: 100,200,400,800,1600; quick: 50,100,200,400)")
	flags.IntVar(&s.Features, "d", 50, "features")
	flags.StringSliceVar(&s.Solvers, "solver", nil, "solvers: "+strings.Join(bench.ScaleSolvers(), ", ")+" (default: all)")
	flags.DurationVar(&s.Limit, "limit", 0, "longest fit that is begun (default: 1m; quick: 3s)")
	o.flags(flags, "fewer rows, fewer and shorter timings")
	return c
}
