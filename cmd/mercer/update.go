package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/learners"
)

func (a *app) updateCommand() *cobra.Command {
	var model, out string
	var remove bool
	c := &cobra.Command{
		Use:   "update --model FILE --out FILE [flags] TABLE",
		Short: "Append rows to a model, or remove them, without a refit",
		Long: `Append the rows of a table to a model of nystrom-ridge or fourier-ridge that was fitted
with --std, or remove rows of its fit, and save the new model. It predicts as a fit to
all rows with the same kernel, lambda and centers or frequencies would, up to rounding,
but the time depends only on the number of rows in TABLE. The encoding of the columns
stays that of the first fit.`,
		Args: oneFile,
		RunE: a.work(func(ctx context.Context, args []string) error { return a.update(ctx, model, out, remove, args[0]) }),
	}
	a.addModel(c, &model)
	c.Flags().StringVar(&out, "out", "", "`FILE` to write the new model to, which may be that of --model")
	c.Flags().BoolVar(&remove, "remove", false, "remove the rows instead of appending them")
	return c
}

func (a *app) update(ctx context.Context, model, out string, remove bool, file string) error {
	if out == "" {
		return usagef("update needs --out FILE: where to write the new model; it may be the file of --model")
	}
	if err := a.checkOutput(ctx, "--out", out, file, a.input.labels); err != nil {
		return err
	}
	dev, b, t, memory, err := a.openModel(model, file, false)
	if err != nil {
		return err
	}
	defer dev.Close()
	if err := memory.planEncoding(t, b.Encoder, ""); err != nil {
		return err
	}
	if b.Calibration != nil {
		return usagef("update: the calibrated intervals would not be those of the new model; fit a model without --calibrate")
	}
	t, weights, _, err := a.scoreWeights(b.Encoder, t)
	if err != nil {
		return err
	}
	x, y, _, err := a.encodeScored(ctx, b, t)
	if err != nil {
		return err
	}
	o := learners.Options{Weights: weights}
	ctx = memory.fitting(ctx, &o)
	switch m := b.Model.(type) {
	case *learners.NystromRidgeModel:
		change := m.Append
		if remove {
			change = m.Remove
		}
		b.Model, err = change(ctx, dev, x, y, o)
	case *learners.FourierRidgeModel:
		change := m.Append
		if remove {
			change = m.Remove
		}
		b.Model, err = change(ctx, dev, x, y, o)
	default:
		return usagef("update: a model of %s is not updated; nystrom-ridge and fourier-ridge with --std for numbers are", m.Learner())
	}
	if err != nil {
		return err
	}
	b.Fit = nil // the report of a fit to other rows
	if err := a.commit(ctx, func() error { return modelfile.Save(out, b) }); err != nil {
		return err
	}
	what := "appended"
	if remove {
		what = "removed"
	}
	return a.print(ctx, fmt.Sprintf("model in %s: %s %s\n", out, count(t.Rows(), "row"), what))
}
