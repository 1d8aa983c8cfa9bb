package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/bench"
)

func (a *app) benchImportCommand() *cobra.Command {
	var by string
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Turn the output of go test -bench into a measurement, as JSON",
		Long: `Reads what go test -bench wrote for benchmarks whose names are of key=value, such
as BenchmarkMat/operation=Mul/n=100/library=mercer-2, and prints a measurement that
mercer bench compare reads. --by says which key names who competes.`,
		Args: oneFile,
		RunE: a.work(func(ctx context.Context, args []string) error {
			in, measured := a.stdin, time.Now()
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				info, err := f.Stat()
				if err != nil {
					return err
				}
				in, measured = f, info.ModTime()
			}
			r, err := bench.ReadGoBench(in, by, measured.UTC().Truncate(time.Second))
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			var text bytes.Buffer
			if err := r.Write(&text); err != nil {
				return err
			}
			return a.print(ctx, text.String())
		}),
	}
	c.Flags().StringVar(&by, "by", "solver", "the `KEY` whose value is who competes")
	return c
}
