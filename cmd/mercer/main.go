// Command mercer fits kernel machines to tables of data, predicts with them and evaluates them.
//
//	mercer fit --kernel 'gaussian(sigma=2)' --lambda 0.1 --target y --model m.safetensors train.csv
//	mercer predict --model m.safetensors test.csv > predictions.csv
//	mercer evaluate --model m.safetensors --plot p.png test.csv
//	mercer explain --model m.safetensors test.csv
//	mercer serve m.safetensors
//	mercer cv --learner logistic --target class train.csv
//	mercer bootstrap --learner svc --target class train.csv
//	mercer gram --kernel 'gaussian(sigma=2)' --out k.csv train.csv
//	mercer learners
//	mercer kernels
//	mercer tune --target y --model m.safetensors train.csv
//	mercer devices
//	mercer demo
//
// The exit status is 0 on success, 1 after a failure because of the data or the machine, 2 after wrong use, and 128
// plus the number of the signal after an interrupt: 130 after SIGINT (Ctrl-C) and 143 after SIGTERM.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/backend"
	_ "github.com/mercer-go/mercer/backend/ref" // registers the device "ref"
	_ "github.com/mercer-go/mercer/cpu"         // registers the devices "cpu/..."
	_ "github.com/mercer-go/mercer/cuda"        // registers the devices "cuda/..."
	"github.com/mercer-go/mercer/internal/process"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// app is one call of the command. Its lock lets an interrupt wait for the end of a write.
type app struct {
	stdin  io.Reader
	stdout standardOutput
	stderr io.Writer

	device       string
	threads      int
	reproducible bool
	memory       size
	json         bool
	quiet        bool
	input        inputFlags

	args    []string
	command *cobra.Command // the command that is running or has failed
	started bool           // the flags were valid and the work has started
	writing sync.Mutex
	lasting atomic.Bool // the command, such as serve, may take longer than gracePeriod to end after an interrupt
	notices []string    // the notices printed so far
}

// gracePeriod is the time that an interrupted subcommand has to stop by itself.
const gracePeriod = 80 * time.Millisecond

// run runs the whole command and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	limitGarbage()
	ctx, stop := process.Interrupts()
	defer stop()

	a := &app{stdin: stdin, stdout: standardOutput{Writer: stdout}, stderr: stderr, args: args}
	err := a.interruptible(ctx, func() error {
		root := a.root()
		if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
			a.offerNames(root) // only in calls for completions, because cobra never frees the registered functions
		}
		root.InitDefaultCompletionCmd()
		completion := root.Commands()[slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == "completion" })]
		completion.Args, completion.RunE = a.subcommand, func(c *cobra.Command, _ []string) error { return c.Help() }
		root.SetArgs(args)
		command, err := root.ExecuteContextC(ctx)
		if err != nil {
			a.command = command
			return err
		}
		a.started = true // the only error now is a failed write, which is not a usage error
		return a.stdout.close()
	})
	if err == nil {
		return 0
	}
	text, code := a.explain(ctx, err)
	fmt.Fprintln(stderr, "mercer: "+text)
	return code
}

// interruptible runs f. After ctx is done, it waits for the end of f for at most gracePeriod, or without a limit if
// a.lasting is set. It always waits for the end of a write that has started, and prevents later writes.
func (a *app) interruptible(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if a.lasting.Load() {
		return <-done
	}
	select {
	case err := <-done:
		return err
	case <-time.After(gracePeriod):
	}
	a.writing.Lock() // the lock is never released, because the process ends
	select {
	case err := <-done:
		return err
	default:
		return ctx.Err()
	}
}

// commit runs write, which an interrupt must not cut short, unless ctx is done.
func (a *app) commit(ctx context.Context, write func() error) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return write()
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "mercer",
		Short: "Kernel machines: fit, predict, evaluate",
		Long: `Mercer fits kernel machines to tables of data.

The basic model solves (K + λI)α + b = y with K = k(X, X) and an intercept b, which
--no-intercept leaves out; λ is not scaled by the number of rows (scikit-learn calls it
alpha). Files are CSV with a header line, Parquet, Arrow, NPY, NPZ, IDX or LIBSVM, also
compressed, with numbers, categories, texts and trees; - is standard input. See mercer
help tables.`,
		Args:          a.subcommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		Version:       strings.TrimPrefix(strings.TrimSpace(readVersion().text()), "mercer "),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.stdin)
	root.SetOut(&a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(a.commandOrFlagError)
	root.SetVersionTemplate("mercer {{.Version}}\n")
	root.Flags().Bool("version", false, "print the version")
	flags := root.PersistentFlags()
	flags.StringVar(&a.device, "device", "", "`NAME` of the device, such as cpu or cpu/avx2 (default: the best available; mercer devices lists them)")
	intFlag(flags, &a.threads, "threads", 0, 0, "number of threads (default: all)")
	flags.Var(&a.memory, "memory", "maximum memory for the data and all that is computed from them, a `SIZE` such as 8GB or 512MiB (default: 80 % of what the process may use)")
	flags.BoolVar(&a.reproducible, "reproducible", false, "compute results that have the same bits on every processor, as MERCER_REPRODUCIBLE=1 does (docs/trust.md says what it costs)")
	flags.BoolVar(&a.json, "json", false, "print one JSON object")
	flags.BoolVar(&a.quiet, "quiet", false, "no progress and no notices")
	root.AddCommand(a.fitCommand(), a.predictCommand(), a.evaluateCommand(), a.explainCommand(), a.serveCommand(), a.updateCommand(), a.exportCommand(), a.importCommand(), a.showCommand(), a.plotCommand(), a.gramCommand(), a.tuneCommand(), a.cvCommand(), a.compareCommand(), a.bootstrapCommand(), a.learnersCommand(), a.kernelsCommand(), a.devicesCommand(), a.demoCommand(), a.benchCommand(), a.versionCommand(), tablesCommand())
	root.SetHelpCommand(a.helpCommand(root))
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprint(".FlagUsagesWrapped ", terminalWidth)))
	fitTerminal(root)
	return root
}

// fitTerminal wraps the descriptions of a command and of its subcommands to the width of a terminal.
func fitTerminal(c *cobra.Command) {
	paragraphs := strings.Split(c.Long, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") {
			paragraphs[i] = wrapped(p, terminalWidth)
		}
	}
	c.Long = strings.Join(paragraphs, "\n\n")
	for _, sub := range c.Commands() {
		fitTerminal(sub)
	}
}

// work returns the RunE of a subcommand. An error that occurs before RunE is a usage error.
func (a *app) work(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if err := badValue(c); err != nil {
			return err
		}
		a.started, a.command = true, c
		return f(c.Context(), args)
	}
}

// maxArgs limits to n the number of arguments of subcommands that read no table.
func maxArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("%s takes %s; %q is one argument too many", c.Name(), []string{"no argument", "one argument"}[n], args[n])
		}
		return nil
	}
}

// requireOneFile requires the one file argument of subcommands that read a table.
func requireOneFile(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		if err := badValue(c); err != nil {
			return err
		}
		return usagef("%s needs one file (or - for standard input), got %s", c.Name(), count(len(args), "argument"))
	}
	if args[0] == "" {
		return usagef("%s needs one file (or - for standard input): the name is empty", c.Name())
	}
	return nil
}

// open opens the device that the flags name.
func (a *app) open() (backend.Device, error) {
	if err := a.oneDevice(); err != nil {
		return nil, err
	}
	return a.openNamed(a.device)
}

// oneDevice returns an error if --device names several devices.
func (a *app) oneDevice() error {
	if strings.Contains(a.device, ",") {
		return usagef("--device: this command uses one device, but %q names several", a.device)
	}
	return nil
}

func (a *app) openNamed(name string) (backend.Device, error) {
	if err := a.checkMemory(); err != nil {
		return nil, err
	}
	return openDevice(name, backend.Config{
		Threads: a.threads, Memory: int64(a.memory), Reproducible: a.reproducible,
		Fallback: func(device string, err error) {
			a.notice("%s cannot be used, and the next best device is used instead: %s", device, oneLine(err))
		},
	})
}

// openDevices opens the list of devices in --device. closeAll closes all of them.
func (a *app) openDevices() (list []backend.Device, closeAll func(), err error) {
	closeAll = func() {
		for _, dev := range list {
			dev.Close()
		}
	}
	for _, name := range strings.Split(a.device, ",") {
		dev, err := a.openNamed(strings.TrimSpace(name))
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		list = append(list, dev)
	}
	return list, closeAll, nil
}
