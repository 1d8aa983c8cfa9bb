package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
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
		Short: "Measure Mercer beside other libraries and the hardware's limit",
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
	flags.StringVar(&o.out, "out", "", "write a page with charts: an HTML `FILE`, or Markdown where the name ends in .md")
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
func (a *app) benchDone(ctx context.Context, o benchOutput, r *bench.Result) error {
	if o.out != "" {
		if err := a.writePage(ctx, o.out, []*bench.Result{r}, nil); err != nil {
			return err
		}
	}
	if a.json {
		var b bytes.Buffer
		if err := r.Write(&b); err != nil {
			return err
		}
		return a.print(ctx, b.String())
	}
	report, err := r.Report()
	if err != nil {
		return err
	}
	return a.print(ctx, report.Text())
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
		Long: `Times Mercer's devices, gonum, and OpenBLAS, BLIS and MKL where their shared libraries
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
		Use:   "report FILE...",
		Short: "Make the page of measurements that --json wrote",
		Long: `Writes the tables of measurements: one as a page of HTML with charts, or any number
as one page of Markdown, where the name of --out ends in .md. - is the standard input.`,
		Args: func(c *cobra.Command, args []string) error {
			if slices.Contains(args, "") {
				return oneFile(c, []string{""})
			}
			return oneFile(c, args[:min(len(args), 1)])
		},
		RunE: a.work(func(ctx context.Context, args []string) error {
			if out == "" {
				return usagef("--out FILE is needed: the page to write")
			}
			if len(args) > 1 && filepath.Ext(out) != ".md" {
				return usagef("--out: a page of HTML is of one measurement, got %d files; a name that ends in .md makes one page of all", len(args))
			}
			if err := a.checkOutput(ctx, "--out", out, args...); err != nil {
				return err
			}
			var list []*bench.Result
			for _, name := range args {
				r, err := a.readResult(name)
				if err != nil {
					return err
				}
				list = append(list, r)
			}
			return a.writePage(ctx, out, list, args)
		}),
	}
	c.Flags().StringVar(&out, "out", "", "the HTML or Markdown `FILE` to write")
	return c
}

// readResult reads a measurement from a file, or from the standard input.
func (a *app) readResult(name string) (*bench.Result, error) {
	if name != "-" {
		return bench.ReadFile(name)
	}
	r, err := bench.Read(a.stdin)
	if err != nil {
		return nil, fmt.Errorf("-: %w", err)
	}
	return r, nil
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
	return a.benchDone(ctx, f.benchOutput, r)
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

// writePage writes a page of measurements from files, or of one that was just made.
func (a *app) writePage(ctx context.Context, out string, list []*bench.Result, files []string) error {
	if filepath.Ext(out) == ".md" {
		links := make([]string, len(list))
		for i, name := range files {
			links[i] = relative(filepath.Dir(out), name)
		}
		page, err := bench.Page(list, links)
		if err != nil {
			return err
		}
		return a.writeFile(ctx, "--out", out, []byte(page))
	}
	var page bytes.Buffer
	if err := report.Write(&page, list[0]); err != nil {
		return err
	}
	return a.writeFile(ctx, "--out", out, page.Bytes())
}

// relative is the path of a file as seen from a folder, or its own where there is none.
func relative(folder, name string) string {
	from, err := filepath.Abs(folder)
	if err != nil {
		return name
	}
	to, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	path, err := filepath.Rel(from, to)
	if err != nil {
		return name
	}
	return filepath.ToSlash(path)
}
