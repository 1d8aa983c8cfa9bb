package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/bench"
)

func (a *app) benchDevicesCommand() *cobra.Command {
	var d bench.Devices
	var o benchOutput
	c := &cobra.Command{
		Use:   "devices",
		Short: "The processor's instruction sets and GPUs, over n",
		Long: `Times the devices of this machine over growing n: the Gram matrix, K·v, Cholesky,
and whole fits from arrays in memory to α in memory, transfers counted. The last
column of each table names the fastest, and so shows from which n on a GPU is faster
than the processor. Where Python has torch or cupy, they do the same in the same run.`,
		Args: cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error {
			if err := a.checkBench(ctx, o); err != nil {
				return err
			}
			if err := checkBenchLists(d.Sizes, d.Devices,
				benchList{"--operation", d.Operations, bench.Operations()},
				benchList{"--precision", d.Precisions, []string{"float64", "float32"}},
				benchList{"--peers", d.Peers, append(bench.DevicePeers(), "none")}); err != nil {
				return err
			}
			if a.threads < 0 || d.Features < 1 || d.Limit < 0 {
				return usagef("--threads and --limit must be ≥ 0, --d ≥ 1; got %d, %v and %d", a.threads, d.Limit, d.Features)
			}
			if len(d.Peers) == 1 && d.Peers[0] == "none" {
				d.Peers = []string{}
			}
			if o.quick {
				if d.Sizes == nil {
					d.Sizes = []int{256, 512, 1024, 2048}
				}
				if d.Limit == 0 {
					d.Limit = time.Second
				}
			}
			d.Memory, d.Threads = int64(a.memory), a.threads
			p := a.newProgress()
			d.Runner = o.runner(p, "n")
			r, err := d.Run(ctx)
			p.close()
			if err != nil {
				return err
			}
			return a.benchDone(ctx, o, r)
		}),
	}
	flags := c.Flags()
	flags.IntSliceVar(&d.Sizes, "n", nil, "numbers of samples (default: 256,512,1024,2048,4096,8192; quick: up to 2048)")
	flags.IntVar(&d.Features, "d", 50, "features")
	flags.StringSliceVar(&d.Operations, "operation", nil, "operations: "+strings.Join(bench.Operations(), ", ")+" (default: all)")
	flags.StringSliceVar(&d.Precisions, "precision", nil, "float64, float32 (default: both)")
	flags.StringSliceVar(&d.Devices, "device", nil, "devices, such as cpu/avx512,cuda/0 (default: all that can be used but ref)")
	flags.StringSliceVar(&d.Peers, "peers", bench.DevicePeers(), "libraries to compare with; none for no one")
	flags.StringSliceVar(&d.Pythons, "python", nil, "`PATH` of a Python interpreter to look for libraries in")
	flags.DurationVar(&d.Limit, "limit", 0, "longest run that is begun (default: 20s; quick: 1s)")
	o.flags(flags, "smaller n, fewer and shorter timings")
	return c
}
