package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/learners"
)

func (a *app) updateCommand() *cobra.Command {
	var model, out string
	var remove, merge bool
	c := &cobra.Command{
		Use:   "update --model FILE --out FILE [flags] TABLE",
		Short: "Append or remove rows, or merge two models, without a refit",
		Long: `Append the rows of a table to a model of ridge, nystrom-ridge or fourier-ridge that
was fitted with --std, or remove rows of its fit, and save the new model. Its
predictions are those of a fit to all rows with the same kernel, lambda and centers or
frequencies, up to rounding, but the time depends only on the number of rows in TABLE. The
encoding of the columns stays that of the first fit.

With --merge, TABLE is the file of another model, which was fitted to other rows with
the same parameters, centers and encoding (--no-standardize); the new model is that
of the rows of both.`,
		Args: requireOneFile,
		RunE: a.work(func(ctx context.Context, args []string) error {
			switch {
			case out == "":
				return usagef("update needs --out FILE: where to write the new model; it may be the file of --model")
			case merge && remove:
				return usagef("update: --merge and --remove cannot be used together")
			case merge:
				return a.merge(ctx, model, out, args[0])
			}
			return a.update(ctx, model, out, remove, args[0])
		}),
	}
	a.addModel(c, &model)
	c.Flags().StringVar(&out, "out", "", "`FILE` to write the new model to, which may be that of --model")
	c.Flags().BoolVar(&remove, "remove", false, "remove the rows instead of appending them")
	c.Flags().BoolVar(&merge, "merge", false, "merge the model with another model, whose file is named instead of TABLE")
	return c
}

func (a *app) update(ctx context.Context, model, out string, remove bool, file string) error {
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
		return errCalibrated
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
	updateModel := learners.Append[learners.Model]
	action := "appended"
	if remove {
		updateModel, action = learners.Remove[learners.Model], "removed"
	}
	if b.Model, err = updateModel(ctx, dev, b.Model, x, y, o); err != nil {
		return err
	}
	return a.saveUpdated(ctx, b, out, count(t.Rows(), "row")+" "+action)
}

// merge saves the model of the training rows of two models.
func (a *app) merge(ctx context.Context, model, out, otherModel string) error {
	if err := a.checkOutput(ctx, "--out", out, otherModel, ""); err != nil {
		return err
	}
	dev, b, _, _, err := a.openModel(model, "", true)
	if err != nil {
		return err
	}
	defer dev.Close()
	other, err := modelfile.Load(otherModel)
	if err != nil {
		return err
	}
	if b.Calibration != nil || other.Calibration != nil {
		return errCalibrated
	}
	if other.Encoder == nil || !slices.EqualFunc(b.Encoder.Inputs, other.Encoder.Inputs, sameFeatures) || !slices.Equal(b.Encoder.Outputs, other.Encoder.Outputs) {
		return usagef("update: %s and %s encode the columns of a table differently; fit both by mercer fit --no-standardize, to the same columns", model, otherModel)
	}
	if b.Model, err = learners.Merge(ctx, dev, b.Model, other.Model); err != nil {
		return err
	}
	return a.saveUpdated(ctx, b, out, otherModel+" merged")
}

// sameFeatures reports whether two inputs have the same encoding, apart from the encoding of missing cells.
func sameFeatures(a, b dataset.Input) bool {
	for _, i := range []*dataset.Input{&a, &b} {
		if i.Number != nil {
			i.Number = &dataset.Number{Mean: i.Number.Mean, Scale: i.Number.Scale, Rounding: i.Number.Rounding}
		}
		if i.Text != nil {
			i.Text = &dataset.Text{Categories: i.Text.Categories}
		}
	}
	return reflect.DeepEqual(a, b)
}

var errCalibrated = usagef("update: the calibrated intervals would be wrong for the new model; fit the model without --calibrate")

// saveUpdated saves the new model, and prints what was done.
func (a *app) saveUpdated(ctx context.Context, b modelfile.Bundle, out, summary string) error {
	b.Fit = nil // the old report describes a fit to other rows
	if err := a.commit(ctx, func() error { return modelfile.Save(out, b) }); err != nil {
		return err
	}
	return a.print(ctx, fmt.Sprintf("model in %s: %s\n", out, summary))
}
