package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/internal/process"
	"github.com/mercer-go/mercer/learners/validate"
)

// evaluateReport is the output of `mercer evaluate --json`.
type evaluateReport struct {
	Program string `json:"program"` // always "evaluate"; mercer bench import reads it
	Learner string `json:"learner"`
	Device  string `json:"device"`
	*score
	Seconds float64 `json:"seconds"`
	Planned int64   `json:"planned_bytes,omitempty"` // planned peak memory of the whole process; peak_bytes is the measured value
	process.Used
}

func (a *app) evaluateCommand() *cobra.Command {
	var model, plot string
	stream, interval := false, 0.0
	c := &cobra.Command{
		Use:   "evaluate --model FILE [flags] TABLE",
		Short: "Compare predictions with the truth",
		Long: `Compare predictions with the truth. The table has the columns that the model was fitted
with, including its targets, in any format that mercer fit reads.

Numbers: root-mean-square error (RMSE), mean absolute error, R². Classes:
accuracy, mean log loss if the model has probabilities, area under the ROC curve (for
several classes the mean of each against the rest), and the confusion matrix. --plot
draws predictions against true values and residuals, or the confusion matrix and the
ROC curve.

--interval LEVEL adds the fraction of rows that the prediction intervals of that level
(see mercer predict) cover, and their mean width; for classes the fraction of rows whose
class is in the prediction set, and the mean number of classes in a set.`,
		Args: requireOneFile,
		RunE: a.work(func(ctx context.Context, args []string) error {
			return a.evaluate(ctx, model, plot, stream, interval, args[0])
		}),
	}
	a.addModel(c, &model)
	c.Flags().StringVar(&plot, "plot", "", "`FILE` to draw a picture into: .png, .svg or .html")
	addInterval(c.Flags(), &interval)
	c.Flags().BoolVar(&stream, "stream", false, streamHelp)
	return c
}

func (a *app) evaluate(ctx context.Context, model, plot string, stream bool, interval float64, file string) error {
	start := time.Now()
	if plot != "" {
		if err := a.checkOutput(ctx, "--plot", plot, file, a.input.labels, model); err != nil {
			return err
		}
	}
	dev, b, t, memory, err := a.openModel(model, file, stream)
	if err != nil {
		return err
	}
	defer dev.Close()
	if len(b.Encoder.Outputs) == 0 {
		return usagef("%s: the model was fitted without a target, so that there is no truth to compare with", model)
	}
	if err := checkInterval(interval, b); err != nil {
		return err
	}
	if b, err = a.complete(ctx, b, interval > 0 && b.Calibration == nil); err != nil {
		return err
	}
	rows, err := a.apply(ctx, dev, b, t, file, extraResults{proba: true, truth: true, interval: interval}, memory)
	if err != nil {
		return err
	}
	base, err := validate.NewScore(b.Model, rows.classes, rows.truth, rows.Outcome, rows.weights)
	if err != nil {
		return err
	}
	s := &score{Score: base, Weight: rows.weight}
	s.setCoverage(rows.cover, interval)
	if plot != "" {
		pic, err := scorePicture(s, b.Model.Learner(), b.Encoder.TargetNames())
		if err != nil {
			return err
		}
		pic.facts = []string{"model " + model + " of " + b.Model.Learner(), "table " + file}
		pic.tables = s.cards()
		image, err := pic.render(plot, pixels{})
		if err != nil {
			return err
		}
		if err := a.writeFile(ctx, "--plot", plot, image); err != nil {
			return err
		}
	}
	return a.printJSONOrText(ctx, evaluateReport{"evaluate", b.Model.Learner(), dev.Info().Device, s, time.Since(start).Seconds(), memory.total(), process.Read()}, s.text)
}
