// Command mercer-beam fits kernel ridge regression over Apache Beam: in this process
// by default (the Prism runner), or on a cluster with --runner.
//
//	mercer-beam --target price --model price.safetensors 'data/train-*.csv'
//	mercer predict --model price.safetensors data/new.csv
//
// It exits with 0 when the work is done, 1 when it failed, 2 when a flag is wrong, and 128 plus the number of the
// signal when it was interrupted.
package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"

	"github.com/mercer-go/mercer/beam/pipeline"
	_ "github.com/mercer-go/mercer/cpu"
	_ "github.com/mercer-go/mercer/cuda"
	"github.com/mercer-go/mercer/internal/process"
)

// list is a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(text string) error {
	*l = append(*l, text)
	return nil
}

// numbers is a flag that holds a comma-separated list of numbers.
type numbers []float64

func (n *numbers) String() string { return fmt.Sprint(*n) }

func (n *numbers) Set(text string) error {
	for field := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", field)
		}
		*n = append(*n, v)
	}
	return nil
}

// texts is a flag that holds a comma-separated list of texts; a text that contains a comma is quoted.
type texts []string

func (l *texts) String() string { return strings.Join(*l, ",") }

func (l *texts) Set(text string) error {
	if text == "" {
		return nil
	}
	fields, err := csv.NewReader(strings.NewReader(text)).Read()
	*l = append(*l, fields...)
	return err
}

// options are the flags that this command adds to Beam's flags.
type options struct {
	pipeline.Params
	task, missing string
	defaultNA     bool
	attempts      int
	json, verbose bool
	scale         bool
	intercept     string
}

// commandFlags is the set of flags defined by this command rather than by Beam.
var commandFlags = map[string]bool{}

// add registers the flags in the same flag set as Beam's.
func (o *options) add(flags *flag.FlagSet) {
	beamFlags := map[string]bool{}
	flags.VisitAll(func(f *flag.Flag) { beamFlags[f.Name] = true })
	flags.Var((*list)(&o.Targets), "target", "`COLUMN` to learn; repeat it for several")
	flags.Var((*texts)(&o.Drop), "drop", "`COLUMNS`, with commas, to leave out, such as identifiers and dates")
	flags.StringVar(&o.Model, "model", "", "`FILE` to write the model to (safetensors); the report goes to FILE.json")
	flags.StringVar(&o.Learner, "learner", "nystrom-ridge", "`NAME`: "+strings.Join(pipeline.Learners(), ", "))
	flags.StringVar(&o.task, "task", "regression", "regression, or classification of the cells of the target")
	flags.Var((*list)(&o.Kernels), "kernel", "`KERNEL`, such as 'gaussian(sigma=2)'; repeat it to choose among several (default: gaussian, sigma half the median distance)")
	flags.Var((*numbers)(&o.Lambdas), "lambda", "`λ`, not scaled by the number of rows; give a comma-separated list to choose among several (default 1)")
	flags.IntVar(&o.Folds, "folds", 0, "number of folds of the cross-validation (default 5)")
	flags.IntVar(&o.Functions, "functions", 0, "M, the number of centers or random features (default: about 10√n for n rows, at most 1000)")
	flags.StringVar(&o.intercept, "intercept", "", "true or false: an unpenalized intercept (default: true for ridge)")
	flags.BoolVar(&o.Std, "std", false, "keep the posterior in the model, for standard deviations and intervals")
	flags.BoolVar(&o.scale, "scale", true, "with --std: fit the scale s² of the process; =false: 1, so that lambda is the variance of the noise")
	flags.BoolVar(&o.NoStandardize, "no-standardize", false, "do not standardize the features")
	flags.StringVar(&o.missing, "missing", "impute", "empty cells: impute or refuse")
	flags.StringVar(&o.Dialect.Delimiter, "delimiter", "", "`CHARACTER` between the cells of a CSV file, or tab; a space stands for any number of spaces and tabs (default: the most frequent of , ; tab | in the header, and spaces where there is none)")
	flags.StringVar(&o.Dialect.Decimal, "decimal", "", "`MARK` of decimals in a CSV file, . or , (default: the comma in files cut at semicolons whose first numbers have one, otherwise the point)")
	flags.StringVar(&o.Dialect.Thousands, "thousands", "", "`MARK` between groups of digits in a CSV file: one of , . ' _ or a space (default: none but ' and the no-break space)")
	flags.StringVar(&o.Dialect.Comment, "comment", "", "`CHARACTER` that begins a comment in a CSV file, such as # (default: none)")
	flags.Var((*texts)(&o.Dialect.NAValues), "na-values", "`TEXTS`, separated by commas, that represent a missing cell in a CSV file, in addition to the empty cell and the defaults of pandas")
	flags.BoolVar(&o.defaultNA, "keep-default-na", true, "treat the defaults of pandas as missing; =false: only the empty cell and --na-values")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of every random choice")
	flags.Float64Var(&o.Tol, "tol", 1e-6, "relative residual to reach")
	flags.IntVar(&o.Passes, "passes", 1, "passes over the rows after the first solution: each measures the residual, and all but the last correct the solution")
	flags.StringVar(&o.Device, "device", "", "device of the workers, such as cpu or cuda/0 (default: the best)")
	flags.Int64Var(&o.PieceBytes, "piece-bytes", 0, "`BYTES` of a CSV file that are processed as one piece (default 32 MiB)")
	flags.BoolVar(&o.WholeFiles, "whole-files", false, "do not split files into pieces: for CSV with line breaks inside quotation marks")
	flags.IntVar(&o.Workers, "workers", 0, "number of workers among which the pieces are divided, on runners that start a worker for each environment, such as prism; prism then starts as many processes of this program (default: the runner chooses)")
	flags.IntVar(&o.attempts, "attempts", 3, "maximum number of attempts at a job that loses a worker, on runners that do not retry bundles")
	flags.BoolVar(&o.json, "json", false, "print the report as JSON")
	flags.BoolVar(&o.verbose, "verbose", false, "print the log of the runner")
	flags.VisitAll(func(f *flag.Flag) { commandFlags[f.Name] = !beamFlags[f.Name] })
}

// params returns the pipeline.Params of the flags, or an error for an invalid flag.
func (o *options) params(inputs []string) (pipeline.Params, error) {
	p := o.Params
	p.Inputs = inputs
	p.Dialect.NoDefaultNA = !o.defaultNA
	switch o.task {
	case "classification":
		p.Classify = true
	case "regression":
	default:
		return p, fmt.Errorf("--task: want regression or classification, got %q", o.task)
	}
	switch o.missing {
	case "refuse":
		p.RefuseMissing = true
	case "impute":
	default:
		return p, fmt.Errorf("--missing: want impute or refuse, got %q", o.missing)
	}
	if slices.Contains(o.Drop, "") {
		return p, errors.New("--drop: the name of a column is empty")
	}
	p.Intercept = p.Learner == "ridge"
	if o.intercept != "" {
		value, err := strconv.ParseBool(o.intercept)
		if err != nil {
			return p, fmt.Errorf("--intercept: want true or false, got %q", o.intercept)
		}
		p.Intercept = value
	}
	if p.UnitScale = !o.scale; p.UnitScale && !p.Std {
		return p, errors.New("--scale: applies only with --std")
	}
	if o.attempts < 1 {
		return p, fmt.Errorf("--attempts: must be ≥ 1, got %d", o.attempts)
	}
	return p, p.Dialect.Check()
}

func usage() {
	out := flag.CommandLine.Output()
	fmt.Fprintf(out, `Fit kernel ridge regression over Apache Beam and save the model.

  mercer-beam --target COLUMN --model FILE [flags] GLOB...

The files may be anything that mercer fit reads: CSV, LIBSVM, NPY, NPZ, Parquet,
Arrow, IDX. These flags of Beam choose the runner:

  --runner prism (in this process), flink, spark, dataflow, universal
  --endpoint HOST:PORT of the job service of flink, spark or universal
  --environment_type LOOPBACK, DOCKER or PROCESS, and --environment_config: see
  https://beam.apache.org/documentation/runtime/sdk-harness-config/

Flags:
`)
	var names []string
	for name, listed := range commandFlags {
		if listed {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		f := flag.Lookup(name)
		kind, help := flag.UnquoteUsage(f)
		fmt.Fprintf(out, "  --%s %s\n    \t%s\n", name, kind, help)
	}
}

func main() {
	var o options
	o.add(flag.CommandLine)
	boot := addBoot(flag.CommandLine)
	flag.Usage = usage
	flag.Parse()
	boot.endWithParent()
	if boot.isWorker() {
		exit(boot.start())
	}
	beam.Init() // in a worker, Init does not return
	ctx, stop := process.Interrupts()
	defer stop()
	remove := scratch()
	err := run(ctx, &o, flag.Args(), os.Stdout)
	remove()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	exit(err)
}

// exit ends the process: with 0, with 1 after an error, or with 128 plus the number of the signal that interrupted it.
func exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "mercer-beam:", err)
	if interruption := (process.Interruption{}); errors.As(err, &interruption) {
		os.Exit(interruption.Code())
	}
	os.Exit(1)
}

// printed is the output of --json: the report, and the other fields that `mercer bench import` reads.
type printed struct {
	Program string `json:"program"`
	pipeline.Report
	Seconds      float64 `json:"seconds"`
	process.Used         // time and memory of this process; workers in separate processes are not included
}

func run(ctx context.Context, o *options, inputs []string, out io.Writer) error {
	start := time.Now()
	if len(inputs) == 0 {
		return errors.New("no input files are given; see mercer-beam --help")
	}
	p, err := o.params(inputs)
	if err != nil {
		return err
	}
	if !o.verbose {
		// Discard the log: run returns the errors that the runner logs, or makes another attempt.
		slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError + 1})))
	}
	runner := *runners.Runner
	if runner == "" {
		runner = "prism"
	}
	executable, err := os.Executable()
	if runner == "prism" && p.Workers > 1 && *jobopts.EnvironmentType == "" && err == nil {
		config, err := json.Marshal(map[string]string{"command": executable})
		if err != nil {
			return err
		}
		*jobopts.EnvironmentType, *jobopts.EnvironmentConfig = "PROCESS", string(config)
	}
	// This program is the worker binary of local processes, and of containers of its own system and architecture.
	beside := strings.EqualFold(*jobopts.EnvironmentType, "process")
	if err == nil && *jobopts.WorkerBinary == "" && (beside || runtime.GOOS+"/"+runtime.GOARCH == "linux/amd64") {
		*jobopts.WorkerBinary = executable
	}
	result, err := pipeline.Run(ctx, runner, p, o.attempts)
	if err != nil {
		return err
	}
	if o.json {
		text, err := json.MarshalIndent(printed{"mercer-beam", result.Report, time.Since(start).Seconds(), process.Read()}, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, string(text))
		return err
	}
	_, err = io.WriteString(out, text(result))
	return err
}

// text formats the report for people.
func text(result *pipeline.Ran) string {
	var b strings.Builder
	add := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s"+format+"\n", append([]any{name}, args...)...)
	}
	r := result.Report
	for _, s := range r.Scores {
		label := fmt.Sprintf("lambda %v", s.Lambda)
		if s.Kernel != "" {
			label = s.Kernel + ", " + label
		}
		if s.Fault != "" {
			add("candidate", "%s: %s", label, s.Fault)
		} else {
			add("candidate", "%s: mse %.6g", label, s.MSE)
		}
	}
	add("learner", "%s", r.Learner)
	if r.Kernel != "" {
		add("kernel", "%s", r.Kernel)
	}
	add("lambda", "%v", r.Lambda)
	add("data", "%d rows, %d features, %d functions", r.Rows, r.Features, r.Functions)
	if len(r.Dropped) > 0 {
		add("dropped", "%s", strings.Join(r.Dropped, ", "))
	}
	if len(r.Classes) > 0 {
		add("classes", "%d", len(r.Classes))
	}
	source := "of the sums"
	if r.Measured {
		source = "over the rows"
	}
	add("residual", "%.1e %s", r.Residual, source)
	for j, v := range r.MSE {
		name := "training mse"
		if len(r.MSE) == len(r.Targets) && len(r.MSE) > 1 {
			name += " of " + r.Targets[j]
		}
		add("error", "%.6g (%s)", v, name)
	}
	if r.LogEvidence != nil {
		bound := ""
		if r.LogEvidenceBound != nil {
			bound = fmt.Sprintf(", lower bound %.6g", *r.LogEvidenceBound)
		}
		add("evidence", "%.6g (logarithm%s)", *r.LogEvidence, bound)
	}
	if result.Attempts > 1 {
		add("attempts", "%d: a worker was lost", result.Attempts)
	}
	add("model", "%s", r.Model)
	return b.String()
}
