package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mercer-go/mercer/bench"
	"github.com/mercer-go/mercer/bench/peer"
	"github.com/mercer-go/mercer/bench/report"
	"github.com/mercer-go/mercer/solvers"
)

func (a *app) benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine: Mercer beside other libraries and the hardware's limit",
		Args:  a.subcommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.benchBLASCommand(), a.benchCrossoverCommand(), a.benchFitCommand(), a.benchScaleCommand(), a.benchDevicesCommand(), a.benchCompareCommand(), a.benchImportCommand(), a.benchReportCommand())
	return c
}

// benchOutput are the flags that every measurement has.
type benchOutput struct {
	quick   bool
	repeats int
	out     string
	given   *pflag.FlagSet // what the call says
}

func (o *benchOutput) flags(flags *pflag.FlagSet, quick string) {
	o.given = flags
	flags.IntVar(&o.repeats, "repeats", 0, "timings of each (default: 7; quick: 4)")
	flags.BoolVar(&o.quick, "quick", false, "less than a minute: "+quick)
	flags.StringVar(&o.out, "out", "", "write a page with pictures, one HTML `FILE`")
}

// check fails before the work does. reads are the files that the call reads.
func (a *app) checkBench(ctx context.Context, o benchOutput, reads ...string) error {
	if err := a.checkMemory(); err != nil {
		return err
	}
	if o.given.Changed("repeats") && o.repeats < 1 {
		return usagef("--repeats: must be ≥ 1, got %d", o.repeats)
	}
	if o.out == "" {
		return nil
	}
	return a.checkOutput(ctx, "--out", o.out, reads...)
}

// runner is how the flags want it to be measured. Progress is told by the title
// of the case without the parameter key.
func (o benchOutput) runner(p *progress, key string) bench.Runner {
	r := bench.Runner{Repeats: 7, Sample: 20 * time.Millisecond, Budget: 20 * time.Second, Pause: 50 * time.Millisecond}
	if o.quick {
		r = bench.Runner{Repeats: 4, Sample: 5 * time.Millisecond, Budget: 300 * time.Millisecond, Pause: 10 * time.Millisecond}
	}
	if o.repeats > 0 {
		r.Repeats = o.repeats
	}
	r.Progress = func(s bench.Progress) {
		p.report(solvers.Progress{Stage: s.Case.Without(key).Title(), Fraction: s.Fraction})
	}
	return r
}

// benchDone writes what was found: the page, and JSON or text.
func (a *app) benchDone(ctx context.Context, o benchOutput, r *bench.Result, text func() string) error {
	if o.out != "" {
		if err := a.writePage(ctx, o.out, r); err != nil {
			return err
		}
	}
	if !a.json {
		return a.print(ctx, text())
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return err
	}
	return a.print(ctx, b.String())
}

// benchFlags are the flags of `mercer bench blas`. --threads and --device take
// lists here, which hide the common flags of those names.
type benchFlags struct {
	routines, precisions []string
	threads, sizes       []int
	devices              []string
	peers, places        []string
	benchOutput
}

func (a *app) benchBLASCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "blas",
		Short: "Matrix products, triangular solves, Cholesky: GFLOP/s against n",
		Long: `Times Mercer's devices, gonum, and OpenBLAS and MKL where their shared libraries
are on this machine, in turn and in one run, beside the multiply-adds that the
processor can make in registers (the ceiling). Every library's result is compared
with Mercer's before it is timed.

Libraries are looked for in --peer-lib, in the folders of MERCER_PEER_LIBDIR, and
where the system's loader looks. An OpenBLAS that takes the processor for an older
one is told the right core type, and the output says which one is in use.`,
		Args: cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error { return a.benchBLAS(ctx, f) }),
	}
	flags := c.Flags()
	flags.IntSliceVar(&f.sizes, "n", nil, "orders of the matrices (default: 256,512,1024,2048,4096; quick: 128,256,512,1024)")
	flags.StringSliceVar(&f.routines, "routine", nil, "routines: "+strings.Join(bench.Routines(), ", ")+" (default: gemm,syrk,trsm,potrf)")
	flags.StringSliceVar(&f.precisions, "precision", nil, "float64, float32 (default: both)")
	flags.IntSliceVar(&f.threads, "threads", nil, "numbers of threads (default: 1 and all)")
	flags.StringSliceVar(&f.devices, "device", nil, "devices, such as cpu/avx512,cpu/avx2 (default: the best there is)")
	flags.StringSliceVar(&f.peers, "peers", peer.Names(), "libraries to compare with; none for no one")
	flags.StringSliceVar(&f.places, "peer-lib", nil, "`PATH` of a library, or of the folder it is in")
	f.flags(flags, "smaller matrices, fewer and shorter timings")
	return c
}

func (a *app) benchReportCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Make the page of a measurement that --json wrote",
		Args:  oneFile,
		RunE: a.work(func(ctx context.Context, args []string) error {
			if out == "" {
				return usagef("--out FILE is needed: the page to write")
			}
			if err := a.checkOutput(ctx, "--out", out, args[0]); err != nil {
				return err
			}
			in := a.stdin
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			r, err := bench.Read(in)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return a.writePage(ctx, out, r)
		}),
	}
	c.Flags().StringVar(&out, "out", "", "the HTML `FILE` to write")
	return c
}

func (a *app) benchBLAS(ctx context.Context, f benchFlags) error {
	b, err := f.blas(a.memory)
	if err != nil {
		return err
	}
	if err := a.checkBench(ctx, f.benchOutput, f.places...); err != nil {
		return err
	}
	var wants []string
	if b.Peers, wants = bench.OpenPeers(f.wanted(), f.places); len(wants) > 0 {
		return restart(wants)
	}
	p := a.newProgress()
	b.Runner = f.runner(p, "n")
	r, err := b.Run(ctx)
	p.close()
	if err != nil {
		return err
	}
	return a.benchDone(ctx, f.benchOutput, r, func() string { return r.Text("n") })
}

// blas checks the flags.
func (f benchFlags) blas(memory size) (b bench.BLAS, err error) {
	for _, list := range []struct {
		flag         string
		given, known []string
	}{
		{"--routine", f.routines, bench.Routines()},
		{"--precision", f.precisions, []string{"float64", "float32"}},
		{"--peers", f.peers, append(peer.Names(), "none")},
	} {
		for _, name := range list.given {
			if !slices.Contains(list.known, name) {
				return b, usagef("%s: %q is not known%s; there are: %s", list.flag, name, didYouMean("", name, list.known), strings.Join(list.known, ", "))
			}
		}
	}
	for _, n := range f.sizes {
		if n < 1 {
			return b, usagef("--n: must be ≥ 1, got %d", n)
		}
	}
	for _, n := range f.threads {
		if n < 1 {
			return b, usagef("--threads: must be ≥ 1, got %d", n)
		}
	}
	for _, name := range f.devices {
		if !knownDevice(name) {
			return b, usagef("--device: no device is called %q; mercer devices lists them", name)
		}
	}
	b = bench.BLAS{
		Routines: f.routines, Precisions: f.precisions, Threads: f.threads, Sizes: f.sizes, Devices: f.devices,
		Memory: int64(memory),
	}
	if f.quick && b.Sizes == nil {
		b.Sizes = []int{128, 256, 512, 1024}
	}
	return b, nil
}

// wanted lists the libraries to open, in the order in which that is safe.
func (f benchFlags) wanted() []string {
	return slices.DeleteFunc(peer.Names(), func(name string) bool { return !slices.Contains(f.peers, name) })
}

// restart runs the same command again with more in its environment, for a
// library that reads it when it is loaded. It returns only when it fails.
func restart(wants []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", self, syscall.Exec(self, os.Args, append(os.Environ(), wants...)))
}

func (a *app) writePage(ctx context.Context, out string, r *bench.Result) error {
	var page bytes.Buffer
	if err := report.Write(&page, r); err != nil {
		return err
	}
	return a.writeFile(ctx, "--out", out, page.Bytes())
}
