package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
)

// plotOut holds the flags about the file of a picture.
type plotOut struct {
	path, size string
	pixels     pixels // the size of the picture
}

func (o *plotOut) add(c *cobra.Command) {
	c.Flags().StringVar(&o.path, "out", "", "`FILE` to draw into: .png, .svg or .html")
	c.Flags().StringVar(&o.size, "size", "", "`WIDTHxHEIGHT` in pixels; text and lines scale with the picture")
}

func (o *plotOut) check() error {
	var err error
	if o.pixels, err = parsePixels(o.size); err != nil {
		return err
	}
	if o.path == "" {
		return usagef("--out FILE is needed: a name that ends in .png, .svg or .html")
	}
	ext, err := extensionOf("--out", o.path, pictures...)
	if err == nil && ext == ".html" && o.size != "" {
		return usagef("--size: applies to .png and .svg, but not to a page")
	}
	return err
}

// pictures are the file name endings that render supports.
var pictures = []string{".png", ".svg", ".html"}

func (a *app) plotCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "plot KIND",
		Args:  a.subcommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
		Short: "Draw models: boundaries, curves, paths, learning, calibration",
		Long: `Draw models. Each kind is a command of its own:

  boundary     decision regions or the surface over two columns, with margins
               and support vectors
  curve        fitted functions over one column, with an error band
  path         coefficients of ridge or lasso over λ
  ball         the bounds |w| ≤ θ of lasso and ridge with the contours of the
               squared error
  epochs       mistakes and loss after each epoch of one fit
  learning     error against the number of rows, with its spread over folds
  validation   error against a parameter, with its spread over folds
  calibration  predicted probabilities against observed frequencies`,
	}
	c.AddCommand(a.plotBoundaryCommand(), a.plotCurveCommand(), a.plotPathCommand(), a.plotBallCommand(), a.plotEpochsCommand(), a.plotLearningCommand(), a.plotValidationCommand(), a.plotCalibrationCommand())
	return c
}

// drawCommand completes a command that reads a table and draws a picture. inputs lists its other input files.
func (a *app) drawCommand(c *cobra.Command, inputs *[]string, f func(ctx context.Context, file string) (picture, error)) *cobra.Command {
	var out plotOut
	c.Args = requireOneFile
	c.RunE = a.work(func(ctx context.Context, args []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if err := a.checkOutput(ctx, "--out", out.path, append(slices.Clone(*inputs), args[0], a.input.labels)...); err != nil {
			return err
		}
		p, err := f(ctx, args[0])
		if err != nil {
			return err
		}
		return a.draw(ctx, out, p)
	})
	out.add(c)
	a.input.add(c.Flags())
	return c
}

// draw writes a picture to the file of --out.
func (a *app) draw(ctx context.Context, o plotOut, pic picture) error {
	data, err := pic.render(o.path, o.pixels)
	if err != nil {
		return err
	}
	if err := a.writeFile(ctx, "--out", o.path, data); err != nil {
		return err
	}
	report := map[string]any{"program": "plot", "plot": o.path}
	maps.Copy(report, pic.data)
	return a.printJSONOrText(ctx, report, func() string { return fmt.Sprintf("plot in %s: %s\n", o.path, pic.title) })
}
