package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot"
)

// plotOut is where a picture goes.
type plotOut struct{ path string }

func (o *plotOut) add(c *cobra.Command) {
	c.Flags().StringVar(&o.path, "out", "", "`FILE` to draw into: .png, .svg or .html (one page that needs nothing else, light and dark)")
}

func (o *plotOut) check() error {
	switch strings.ToLower(filepath.Ext(o.path)) {
	case ".png", ".svg", ".html":
		return nil
	case "":
		if o.path == "" {
			return usagef("--out FILE is needed: a name that ends in .png, .svg or .html")
		}
	}
	return usagef("--out: %s must end in .png, .svg or .html", o.path)
}

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
  learning     error against the number of rows, with its spread over folds
  validation   error against a parameter, with its spread over folds
  calibration  predicted probabilities against observed frequencies`,
	}
	c.AddCommand(a.plotBoundaryCommand(), a.plotCurveCommand(), a.plotPathCommand(), a.plotLearningCommand(), a.plotValidationCommand(), a.plotCalibrationCommand())
	return c
}

// draw writes panels to the file of --out, which inputs must not be.
func (a *app) draw(ctx context.Context, o plotOut, title string, rows [][]*plot.Plot) error {
	if p := rows[0][0]; p.Title.Text == "" {
		p.Title.Text = title
	}
	var picture []byte
	var err error
	switch strings.ToLower(filepath.Ext(o.path)) {
	case ".svg":
		picture, err = svgPage(rows)
	case ".html":
		picture, err = htmlPage(title, rows)
	default:
		picture, err = drawPage(rows)
	}
	if err != nil {
		return err
	}
	if err := a.writeFile(ctx, "--out", o.path, picture); err != nil {
		return err
	}
	a.stdout.besides = true
	if a.json {
		return a.printJSON(ctx, map[string]any{"program": "plot", "plot": o.path})
	}
	return a.print(ctx, fmt.Sprintf("%s is drawn in %s\n", title, o.path))
}
