package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/bench"
	"github.com/mercer-go/mercer/internal/bench/report"
	"github.com/mercer-go/mercer/solvers"
)

func (a *app) benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Compare Mercer's speed with other libraries and the hardware",
		Args:  a.subcommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, t := range benchTexts {
		c.AddCommand(a.benchRunCommand(t))
	}
	c.AddCommand(a.benchCompareCommand(), a.benchImportCommand(), a.benchReportCommand())
	return c
}

// benchOutput holds the flags that all measurement commands share.
type benchOutput struct {
	quick     bool
	repeats   int
	out       string
	callFlags *pflag.FlagSet // the flags of the call
}

func (o *benchOutput) flags(flags *pflag.FlagSet, quickHelp string) {
	o.callFlags = flags
	flags.IntVar(&o.repeats, "repeats", 0, "number of timings of each case (default: 7; quick: 4)")
	flags.BoolVar(&o.quick, "quick", false, "take less than a minute, with "+quickHelp)
	flags.StringVar(&o.out, "out", "", "write a page with charts: an HTML `FILE`, or Markdown if the name ends in .md")
}

// checkBench returns an error for an invalid flag before the work starts. inputs lists the input files.
func (a *app) checkBench(ctx context.Context, o benchOutput, inputs ...string) error {
	if err := a.checkMemory(); err != nil {
		return err
	}
	if o.callFlags.Changed("repeats") && o.repeats < 1 {
		return usagef("--repeats: must be ≥ 1, got %d", o.repeats)
	}
	if o.out == "" {
		return nil
	}
	return a.checkOutput(ctx, "--out", o.out, inputs...)
}

// runner returns a bench.Runner with the settings of the flags. The progress line omits the parameter named key.
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

// benchDone writes the result as a page, and as JSON or text.
func (a *app) benchDone(ctx context.Context, o benchOutput, r *bench.Result) error {
	if o.out != "" {
		if err := a.writePage(ctx, o.out, []*bench.Result{r}, nil); err != nil {
			return err
		}
	}
	if a.json {
		return a.printResult(ctx, r)
	}
	report, err := r.Report()
	if err != nil {
		return err
	}
	return a.print(ctx, report.Text())
}

func (a *app) printResult(ctx context.Context, r *bench.Result) error {
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return err
	}
	return a.print(ctx, b.String())
}

// benchRunCommand returns the command for a kind of measurement.
func (a *app) benchRunCommand(t benchText) *cobra.Command {
	k := bench.KindOf(t.kind)
	b := bench.Benchmark{Kind: k.Name}
	var o benchOutput
	c := &cobra.Command{Use: k.Name, Short: t.short, Long: t.long, Args: cobra.NoArgs}
	c.RunE = a.work(func(ctx context.Context, _ []string) error {
		if err := a.checkBench(ctx, o, append(slices.Clone(b.Places), b.Texts, b.Images)...); err != nil {
			return err
		}
		if b.Data == "sparse" { // sparse data has other defaults
			if !o.callFlags.Changed("d") {
				b.Features = 0
			}
			if !o.callFlags.Changed("peers") {
				b.Peers = nil
			}
		}
		if err := a.benchOptions(k, &b, o.quick); err != nil {
			return err
		}
		p := a.newProgress()
		b.Runner = o.runner(p, t.progress)
		r, err := b.Run(ctx)
		p.close()
		if err != nil {
			return optionError(err)
		}
		return a.benchDone(ctx, o, r)
	})
	flags, d := c.Flags(), k.Defaults
	flags.Var((*sizesFlag)(&b.Sizes), "n", t.n+", or a range LOW:HIGH:COUNT (default: "+joinNumbers(d.Sizes)+"; quick: "+joinNumbers(k.Quick.Sizes)+")")
	if t.m != "" {
		flags.Var((*sizesFlag)(&b.Widths), "m", t.m)
	}
	if d.Features > 0 {
		flags.IntVar(&b.Features, "d", d.Features, "number of features")
	}
	if k.Name == bench.FitKind {
		flags.IntVar(&b.Centers, "centers", 0, "number M of functions of nystrom (default: 10√n)")
		flags.StringVar(&b.Data, "data", "", "dense, or sparse: fits to tf-idf features of --texts (default: dense)")
		flags.StringVar(&b.Texts, "texts", "", "with --data sparse: `TABLE` with the columns text and target, of two classes")
	}
	if k.Name == bench.MNISTKind {
		flags.IntVar(&b.Centers, "centers", 0, fmt.Sprintf("number M of functions of nystrom (default: %d; quick: %d)", d.Centers, k.Quick.Centers))
		flags.StringVar(&b.Images, "images", "", "`FOLDER` of the four files of MNIST, such as train-images-idx3-ubyte.gz")
	}
	if k.Option != "" {
		flags.StringSliceVar(&b.Names, k.Option, nil, k.Option+"s: "+strings.Join(k.Names, ", ")+" (default: "+cmp.Or(strings.Join(d.Names, ","), "all")+")")
	}
	if len(d.Precisions) > 1 {
		flags.StringSliceVar(&b.Precisions, "precision", nil, strings.Join(d.Precisions, ", ")+" (default: both)")
	}
	if k.TakesMany {
		flags.IntSliceVar(&b.Threads, "threads", nil, "numbers of threads (default: 1 and all)")
	}
	if !k.OneDevice {
		flags.StringSliceVar(&b.Devices, "device", nil, "devices, such as "+t.devices)
	}
	if d.Peers != nil {
		flags.StringSliceVar(&b.Peers, "peers", d.Peers, "libraries to compare with; none turns the comparison off")
		flags.Lookup("peers").DefValue = strings.Join(d.Peers, ", ") // the spaces allow the help to break the list into lines
		if t.libraries {
			flags.StringSliceVar(&b.Places, "peer-lib", nil, "`PATH` of a library, or of its folder")
		} else {
			flags.StringSliceVar(&b.Pythons, "python", nil, "`PATH` of a Python interpreter whose libraries are used")
		}
	}
	if d.Limit > 0 {
		flags.DurationVar(&b.Limit, "limit", 0, fmt.Sprintf("skip runs expected to take longer (default: %v; quick: %v)", d.Limit, k.Quick.Limit))
	}
	o.flags(flags, t.quick)
	return c
}

// benchOptions sets the fields of b that the common flags and the kind determine, and checks b.
func (a *app) benchOptions(k *bench.Kind, b *bench.Benchmark, quick bool) error {
	b.Quick, b.Memory = quick, int64(a.memory)
	if a.reproducible {
		return usagef("--reproducible: has no effect on mercer bench: set %s=1", backend.EnvReproducible)
	}
	if k.OneDevice && a.device != "" {
		b.Devices = []string{a.device}
	}
	if !k.TakesMany && a.threads != 0 {
		b.Threads = []int{a.threads}
	}
	if slices.Contains(b.Peers, "none") {
		b.Peers = slices.DeleteFunc(slices.Concat([]string{}, b.Peers), func(name string) bool { return name == "none" })
	}
	if k.Name == bench.CrossoverKind && b.Widths == nil {
		b.Widths = b.Sizes
	}
	if k.Defaults.Features > 0 && b.Features == 0 && b.Data != "sparse" {
		return usagef("--d: must be ≥ 1, got 0")
	}
	for _, name := range b.Devices {
		if !knownDevice(name) {
			return usagef("--device: no device is called %q; mercer devices lists them", name)
		}
	}
	return optionError(b.Fill())
}

// optionError converts a *bench.OptionError to a usage error that names the flag.
func optionError(err error) error {
	if optionErr, ok := errors.AsType[*bench.OptionError](err); ok {
		return usagef("--%s: %s", optionErr.Option, optionErr.Problem)
	}
	return err
}

// A sizesFlag is a list of sizes: numbers, and ranges LOW:HIGH:COUNT of COUNT numbers in geometric progression.
type sizesFlag []int

func (g *sizesFlag) Type() string { return "sizes" }

func (g *sizesFlag) String() string {
	return joinNumbers(*g)
}

// joinNumbers formats numbers for a flag: 1,2,3.
func joinNumbers(numbers []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ",")
}

func (g *sizesFlag) Set(text string) error {
	for element := range strings.SplitSeq(text, ",") {
		var numbers []int
		for word := range strings.SplitSeq(element, ":") {
			v, err := strconv.Atoi(word)
			if err != nil || v < 1 {
				return fmt.Errorf("want sizes ≥ 1 such as 100,1000 or a range LOW:HIGH:COUNT, got %q", element)
			}
			numbers = append(numbers, v)
		}
		switch {
		case len(numbers) == 1:
			*g = append(*g, numbers[0])
		case len(numbers) != 3 || numbers[0] >= numbers[1] || numbers[2] < 2:
			return fmt.Errorf("want a range LOW:HIGH:COUNT with LOW < HIGH and COUNT ≥ 2, got %q", element)
		default:
			low, high := math.Log(float64(numbers[0])), math.Log(float64(numbers[1]))
			for i := range numbers[2] {
				*g = append(*g, int(math.Round(math.Exp(low+(high-low)*float64(i)/float64(numbers[2]-1)))))
			}
		}
	}
	*g = slices.Compact(slices.Sorted(slices.Values(*g)))
	return nil
}

func (a *app) benchReportCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "report FILE...",
		Short: "Make the page of measurements that --json wrote",
		Long: `Writes the tables of one measurement as a page of HTML with charts, or those of any
number of measurements as Markdown if --out ends in .md. - is the standard input.`,
		Args: func(c *cobra.Command, args []string) error {
			if slices.Contains(args, "") {
				return requireOneFile(c, []string{""})
			}
			return requireOneFile(c, args[:min(len(args), 1)])
		},
		RunE: a.work(func(ctx context.Context, args []string) error {
			if out == "" {
				return usagef("--out FILE is needed: the page to write")
			}
			if len(args) > 1 && filepath.Ext(out) != ".md" {
				return usagef("--out: an HTML page is for one measurement, but %d files are given; a name that ends in .md makes one page of all files", len(args))
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

// readResult reads a measurement from a file or from standard input.
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

// writePage writes a page about measurements. files lists the files from which the measurements were read, if any.
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

// relative returns the path of a file relative to a folder, or the name itself if there is no relative path.
func relative(folder, name string) string {
	from, errFrom := filepath.Abs(folder)
	to, errTo := filepath.Abs(name)
	path, err := filepath.Rel(from, to)
	if errors.Join(errFrom, errTo, err) != nil {
		return name
	}
	return filepath.ToSlash(path)
}
