package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/modelfile"
	"github.com/mercer-go/mercer/solvers"
)

func (a *app) predictCommand() *cobra.Command {
	var model, out string
	c := &cobra.Command{
		Use:   "predict --model FILE [flags] TABLE > predictions.csv",
		Short: "Predict a row for each row of a table",
		Long: `Predict a row for each row of a table: CSV with the header "prediction", or
"prediction_NAME" for each of several targets. The table has the columns that
the model was fitted with, in any order; other columns are not looked at. It may
be in any format that mercer fit reads.`,
		Args: oneFile,
		RunE: a.work(func(ctx context.Context, args []string) error { return a.predict(ctx, model, out, args[0]) }),
	}
	c.Flags().StringVar(&model, "model", "", "`FILE` of the model")
	a.input.add(c.Flags())
	c.Flags().StringVar(&out, "out", "", "`FILE` to write, whole or not at all (default: standard output)")
	return c
}

func (a *app) predict(ctx context.Context, model, out, file string) error {
	if out != "" {
		if err := a.checkOutput(ctx, "--out", out, file, a.input.labels, model); err != nil {
			return err
		}
	}
	dev, b, t, err := a.openModel(model, file)
	if err != nil {
		return err
	}
	defer dev.Close()
	x, err := b.Encoder.Features(t)
	if err != nil {
		return err
	}
	y, err := a.predictions(ctx, dev, b.Model, x)
	if err != nil {
		return err
	}
	text, err := a.format(b.Encoder.TargetNames(), y)
	if err != nil {
		return err
	}
	if out != "" {
		return a.writeFile(ctx, "--out", out, text)
	}
	return a.print(ctx, string(text))
}

// openModel opens the device, the model and the table of predict and evaluate.
func (a *app) openModel(model, file string) (dev backend.Device, b modelfile.Bundle, t *dataset.Table, err error) {
	if model == "" {
		return nil, b, nil, usagef("--model FILE is needed: a model that mercer fit wrote")
	}
	if b, err = modelfile.Load(model); err != nil {
		return nil, b, nil, err
	}
	if b.Encoder == nil {
		return nil, b, nil, usagef("%s: the model was saved without the rules for its columns, so that only a Go program can use it", model)
	}
	if t, err = a.table(file); err != nil {
		return nil, b, nil, err
	}
	dev, err = a.open()
	return dev, b, t, err
}

// predictions applies a model to encoded rows, a part of them at a time so that
// progress can be told.
func (a *app) predictions(ctx context.Context, dev backend.Device, m learners.Model, x *mat.Dense) (*mat.Dense, error) {
	const parts, least = 50, 4096
	n, d := x.Dims()
	_, outputs := m.Dims()
	y := mat.NewDense(n, outputs, nil)
	p := a.newProgress()
	defer p.close()
	step := max(least, (n+parts-1)/parts)
	for i := 0; i < n; i += step {
		end := min(i+step, n)
		part, err := m.Predict(ctx, dev, x.Slice(i, end, 0, d))
		if err != nil {
			return nil, err
		}
		y.Slice(i, end, 0, outputs).(*mat.Dense).Copy(part)
		p.report(solvers.Progress{Stage: "predict", Fraction: float64(end) / float64(n)})
	}
	return y, nil
}

// format writes predictions as CSV or JSON.
func (a *app) format(targets []string, y *mat.Dense) ([]byte, error) {
	rows, cols := y.Dims()
	var buf bytes.Buffer
	if a.json {
		list := make([][]float64, rows)
		for i := range list {
			list[i] = y.RawRowView(i)
		}
		e := json.NewEncoder(&buf)
		err := e.Encode(map[string]any{"n": rows, "targets": targets, "predictions": list})
		return buf.Bytes(), err
	}
	record := make([]string, cols)
	for j := range record {
		record[j] = "prediction"
		if cols > 1 {
			record[j] += "_" + targets[j]
		}
	}
	w := csv.NewWriter(&buf)
	_ = w.Write(record) // Flush's error is kept, and a Buffer has none
	for i := range rows {
		for j, v := range y.RawRowView(i) {
			record[j] = exact(v)
		}
		_ = w.Write(record)
	}
	w.Flush()
	return buf.Bytes(), w.Error()
}
