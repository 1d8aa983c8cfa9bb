package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/internal/bench"
)

func (a *app) benchImportCommand() *cobra.Command {
	var key string
	c := &cobra.Command{
		Use:   "import FILE...",
		Short: "Turn runs of programs or go test -bench into a measurement",
		Long: `Prints a measurement that mercer bench compare and mercer bench report read. FILE has
one of

  the output of mercer fit, tune and evaluate, and of mercer-beam, with --json:
  each object is a timing, and equal objects are repeats. Any other program can
  print such objects, {"program": "NAME", "n": 1000, "seconds": 1.5}, with
  "entrant", "residual", "rmse", "peak_bytes" and other members as well.
  Import them on the machine on which the program ran;

  the output of go test -bench for benchmarks whose names consist of key=value,
  such as BenchmarkMat/operation=Mul/n=100/library=mercer-2. --compare-by says
  which key names the implementation; if it is empty, Mercer is the only one.

Several files become one measurement. - is the standard input.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("import needs a file (or - for standard input), got no argument")
			}
			return nil
		},
		RunE: a.work(func(ctx context.Context, args []string) error {
			text, lastWritten, err := a.readImports(args)
			if err != nil {
				return err
			}
			var r *bench.Result
			if isObjects(text.Bytes()) {
				r, err = bench.ReadRuns(text, lastWritten)
			} else {
				r, err = bench.ReadGoBench(text, key, lastWritten)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", strings.Join(args, ", "), err)
			}
			return a.printResult(ctx, r)
		}),
	}
	c.Flags().StringVar(&key, "compare-by", "solver", "the `KEY` whose value names the implementation")
	return c
}

// isObjects reports whether a text consists of JSON objects, and not of the output of go test -bench.
func isObjects(text []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) }

// readImports concatenates files of one format. lastWritten is the time at which the last file was written.
func (a *app) readImports(names []string) (buf *bytes.Buffer, lastWritten time.Time, err error) {
	buf = new(bytes.Buffer)
	for i, name := range names {
		text, written, err := a.readImport(name)
		if err != nil {
			return nil, lastWritten, err
		}
		if i > 0 && isObjects(text) != isObjects(buf.Bytes()) {
			return nil, lastWritten, usagef("%s and %s have different forms, JSON and the output of go test -bench: import them separately", names[0], name)
		}
		buf.Write(text)
		if written = written.UTC().Truncate(time.Second); written.After(lastWritten) {
			lastWritten = written
		}
	}
	return buf, lastWritten, nil
}

// readImport reads a file or standard input. written is the time at which the file was written.
func (a *app) readImport(name string) (text []byte, written time.Time, err error) {
	if name == "-" {
		if text, err = io.ReadAll(a.stdin); err != nil {
			return nil, written, fmt.Errorf("%s: %w", name, err)
		}
		return text, time.Now(), nil
	}
	if text, err = os.ReadFile(name); err != nil {
		return nil, written, err
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, written, err
	}
	return text, info.ModTime(), nil
}
