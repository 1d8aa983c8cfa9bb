package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
)

// score is what `mercer evaluate` prints.
type score struct {
	RMSE float64 `json:"rmse"`
	MAE  float64 `json:"mae"`
	R2   float64 `json:"r2"`
	N    int     `json:"n"`
}

func (a *app) evaluateCommand() *cobra.Command {
	var model string
	c := &cobra.Command{
		Use:   "evaluate --model FILE [flags] TABLE",
		Short: "Compare predictions with the truth",
		Long: `Compare predictions with the truth: the table has the columns that the model
was fitted with, its targets included. It may be in any format that mercer fit
reads.`,
		Args: oneFile,
		RunE: a.work(func(ctx context.Context, args []string) error { return a.evaluate(ctx, model, args[0]) }),
	}
	c.Flags().StringVar(&model, "model", "", "`FILE` of the model")
	a.input.add(c.Flags())
	return c
}

func (a *app) evaluate(ctx context.Context, model, file string) error {
	dev, b, t, err := a.openModel(model, file)
	if err != nil {
		return err
	}
	defer dev.Close()
	x, truth, err := encode(b.Encoder, t)
	if err != nil {
		return err
	}
	s, err := a.scoreOf(ctx, dev, b.Model, x, truth)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(ctx, s)
	}
	return a.print(ctx, table("lr", [][]string{
		{"rows", strconv.Itoa(s.N)},
		{"RMSE", short(s.RMSE)},
		{"MAE", short(s.MAE)},
		{"R²", short(s.R2)},
	}))
}

// scoreOf applies a model to encoded rows and compares with their targets.
func (a *app) scoreOf(ctx context.Context, dev backend.Device, m learners.Model, x, truth *mat.Dense) (*score, error) {
	predicted, err := a.predictions(ctx, dev, m, x)
	if err != nil {
		return nil, err
	}
	s, err := learners.ScoreRegression(truth, predicted)
	if err != nil {
		return nil, err
	}
	return &score{RMSE: s.RMSE, MAE: s.MAE, R2: s.R2, N: s.N}, nil
}
