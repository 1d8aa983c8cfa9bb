package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/onnx"
)

func (a *app) exportCommand() *cobra.Command {
	var out, precision string
	c := &cobra.Command{
		Use:   "export --onnx FILE [flags] MODEL",
		Short: "Write a model as an ONNX file for other programs",
		Long: `Write a model as an ONNX file, which onnxruntime and other programs evaluate without
Mercer. The graph has only standard operators of opset 13. Its input is x, with a row for
each sample and a column for each feature, in the order in which --json lists them:
numbers as they are in the table, because the graph standardizes them and replaces NaN as
mercer predict replaces a missing cell; and 0 or 1 for a category, such as color=red.
For a model of a Gram matrix, x has the kernel values with the training rows.

The output is prediction (rows × targets), or for classes label (texts), decision and,
if the learner has them, probabilities. A model of texts or trees is refused, because
ONNX has no operators for their kernels. For kernels of distances an
evaluation takes the memory of about rows × 16,000 numbers: give many rows in parts.`,
		Args: maxArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("export needs MODEL: a file that mercer fit wrote")
			case out == "":
				return usagef("export needs --onnx FILE: where to write the model")
			case precision != "float64" && precision != "float32":
				return usagef("--precision: must be float64 or float32, got %q", precision)
			}
			return a.export(ctx, args[0], out, precision)
		}),
	}
	c.Flags().StringVar(&out, "onnx", "", "`FILE` to write the model to")
	c.Flags().StringVar(&precision, "precision", "float64", "`TYPE` of all numbers: float64, or float32 for programs without float64")
	return c
}

// exported is the output of `mercer export --json`.
type exported struct {
	Program   string   `json:"program"` // "export"
	Learner   string   `json:"learner"`
	Precision string   `json:"precision"`
	Columns   []string `json:"columns"` // names of the columns of the input x
	Outputs   []string `json:"outputs"`
	Bytes     int      `json:"bytes"`
}

func (a *app) export(ctx context.Context, model, out, precision string) error {
	if err := a.checkOutput(ctx, "--onnx", out, model); err != nil {
		return err
	}
	b, err := modelfile.Load(model)
	if err != nil {
		return err
	}
	var file bytes.Buffer
	signature, err := onnx.Write(&file, b, precision == "float32")
	if err != nil {
		return fmt.Errorf("%s: %w", model, err)
	}
	if err := a.writeFile(ctx, "--onnx", out, file.Bytes()); err != nil {
		return err
	}
	v := exported{"export", b.Model.Learner(), precision, signature.Columns, signature.Outputs, file.Len()}
	return a.printJSONOrText(ctx, v, func() string {
		return fmt.Sprintf("%s in %s: input x with %s, %s: %s\n", v.Learner, out, count(len(v.Columns), "column"), map[bool]string{false: "outputs", true: "output"}[len(v.Outputs) == 1], strings.Join(v.Outputs, ", "))
	})
}
