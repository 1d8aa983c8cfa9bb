package main

import (
	"context"
	"fmt"
	"image/color"
	"math"
	"path/filepath"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
)

// samples is a table for pictures of models that are fitted to it.
type samples struct {
	*resampling
	enc *dataset.Encoder
	x   mat.Matrix
	y   *mat.Dense
}

// samples reads the table; the caller closes the device.
func (a *app) samples(ctx context.Context, f *resampleFlags, command, file string) (*samples, error) {
	if err := a.oneDevice(); err != nil {
		return nil, err
	}
	r, err := a.newResampling(ctx, f, command, file)
	if err != nil {
		return nil, err
	}
	s := &samples{resampling: r, enc: a.input.apply(r.fullEncoder)}
	if s.x, s.y, err = encodeTraining(s.enc, s.table); err != nil {
		s.closeDevices()
	}
	return s, err
}

// fit fits the learner with the parameters of the flags.
func (s *samples) fit(ctx context.Context, o learners.Options) (b modelfile.Bundle, err error) {
	fit, err := s.f.fitter(s.task)
	if err != nil {
		return b, err
	}
	o.Classes = s.enc.Classes()
	if o.Weights, err = s.f.reweight(s.weights, o.Classes, s.y); err != nil {
		return b, err
	}
	if o.Keys, err = s.f.keys(s.enc, s.table); err != nil {
		return b, err
	}
	b.Encoder = s.enc
	b.Model, err = fit(s.memory.fitting(ctx, &o), s.devices[0], s.x, s.y, o)
	return b, err
}

// modelFlags name the models of a picture: files, or a learner that is fitted once for each number of --values.
type modelFlags struct {
	resampleFlags
	values string
}

func (f *modelFlags) add(c *cobra.Command, help string) {
	refuseFlags(c, func() []refusal {
		return []refusal{{len(f.models) > 0, "learner target values task textbook seed no-standardize missing categorical drop weight class-weight", "the model of --model is fitted already; leave one of them out", ""}}
	})
	c.Flags().SortFlags = false
	c.Flags().StringArrayVar(&f.models, "model", nil, help)
	f.resampleFlags.add(c)
}

// drawnModel is a model in a picture, and the table of the picture.
type drawnModel struct {
	dev  backend.Device
	b    modelfile.Bundle
	t    *dataset.Table
	name string
}

// drawnModels opens or fits the models. The caller must call closeAll.
func (a *app) drawnModels(ctx context.Context, c *cobra.Command, f *modelFlags, file string) (list []drawnModel, closeAll func(), err error) {
	var devices []backend.Device
	closeAll = func() {
		for _, dev := range devices {
			dev.Close()
		}
	}
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	if len(f.models) > 0 {
		if len(f.paramTexts) > 0 {
			return nil, closeAll, usagef("--model: the model is fitted already; leave out --model, or the parameters of a learner")
		}
		for _, model := range f.models {
			dev, b, t, _, err := a.openModel(model, file, false)
			if err != nil {
				return nil, closeAll, err
			}
			devices = append(devices, dev)
			list = append(list, drawnModel{dev, b, t, fmt.Sprintf("%s (%s)", b.Model.Learner(), filepath.Base(model))})
		}
		return list, closeAll, nil
	}
	if len(f.targets) == 0 {
		return nil, closeAll, usagef("--model FILE is needed: a model that mercer fit wrote; or --target COLUMN, to fit one to the table")
	}
	settings, names := []map[string]string{f.paramTexts}, []string{f.learner}
	if f.values != "" {
		v, err := newVaried(f.paramTexts, f.values)
		if err != nil {
			return nil, closeAll, err
		}
		settings, names = nil, nil
		for i := range v.texts {
			settings = append(settings, v.setting(i))
			names = append(names, fmt.Sprintf("%s, %s %s", f.learner, v.parameter, settings[i][v.parameter]))
		}
	}
	var s *samples
	for i, paramTexts := range settings {
		f.paramTexts = paramTexts
		if s == nil {
			if s, err = a.samples(ctx, &f.resampleFlags, c.CommandPath()[len("mercer "):], file); err != nil {
				return nil, closeAll, err
			}
			devices = append(devices, s.devices...)
		}
		p := a.newProgress()
		b, err := s.fit(ctx, learners.Options{Progress: p.report})
		p.close()
		if err != nil {
			return nil, closeAll, err
		}
		b.Model = validate.Scorable(b.Model)
		list = append(list, drawnModel{s.devices[0], b, s.table, names[i]})
	}
	return list, closeAll, nil
}

func (a *app) plotEpochsCommand() *cobra.Command {
	f := resampleFlags{learnerFlags: learnerFlags{takes: hasEpochs}}
	c := &cobra.Command{
		Use:   "epochs --learner NAME --target COLUMN --out FILE [flags] TABLE",
		Short: "Mistakes and loss after each epoch of one fit",
		Long: `Draw the loss of one fit after each pass over the rows or each step of the solver, and for
perceptrons the number of mistakes in each pass. --textbook gives the perceptron's trace
on unscaled numbers and on rows in their order. --json prints the numbers.`,
	}
	f.add(c)
	return a.drawCommand(c, new([]string), func(ctx context.Context, file string) (picture, error) { return a.plotEpochs(ctx, &f, file) })
}

func (a *app) plotEpochs(ctx context.Context, f *resampleFlags, file string) (pic picture, err error) {
	s, err := a.samples(ctx, f, "plot epochs", file)
	if err != nil {
		return pic, err
	}
	defer s.closeDevices()
	trace := &epochTrace{learner: f.learner}
	if _, err := s.fit(ctx, learners.Options{Trace: trace.add}); err != nil {
		return pic, err
	}
	if err := trace.check(); err != nil {
		return pic, err
	}
	return picture{title: "Epochs of " + f.learner, rows: epochPanels(trace.epochs), data: map[string]any{"learner": f.learner, "epochs": trace.epochs}}, nil
}

// epochPanels draws the mistakes and the loss after each epoch.
func epochPanels(epochs []learners.Epoch) (rows [][]*panel) {
	var loss, mistakes plotter.XYs
	for _, e := range epochs {
		loss = append(loss, plotter.XY{X: float64(e.Number), Y: e.Loss})
		if e.Mistakes != nil {
			mistakes = append(mistakes, plotter.XY{X: float64(e.Number), Y: float64(*e.Mistakes)})
		}
	}
	for i, line := range []plotter.XYs{mistakes, loss} {
		if line == nil {
			continue
		}
		p := newPanel("", "epoch", []string{"mistakes in the epoch", "loss after the epoch"}[i])
		p.grid()
		p.marked("", curveColors[0], line)
		p.Y.Min = min(p.Y.Min, 0)
		rows = append(rows, []*panel{p})
	}
	return rows
}

func (a *app) plotBallCommand() *cobra.Command {
	var f resampleFlags
	theta := 0.0
	c := &cobra.Command{
		Use:   "ball --target COLUMN --out FILE [flags] TABLE",
		Short: "The bounds of lasso and ridge, and the squared error",
		Long: `For a table with two columns and a target, draw the squared error over the two weights,
the bounds ‖w‖₁ ≤ θ and ‖w‖₂ ≤ θ, and the weights with the lowest error within each
bound. One of the weights of lasso is often 0; no weight of ridge is.`,
	}
	f.add(c)
	c.Flags().Lookup("learner").Hidden = true
	c.Flags().Float64Var(&theta, "radius", 0, "`NUMBER` θ (default: half of ‖w‖₂ of least squares)")
	return a.drawCommand(c, new([]string), func(ctx context.Context, file string) (picture, error) { return a.plotBall(ctx, &f, theta, file) })
}

func (a *app) plotBall(ctx context.Context, f *resampleFlags, theta float64, file string) (pic picture, err error) {
	if !(theta >= 0) || math.IsInf(theta, 1) {
		return pic, usagef("--radius: must be a finite number > 0, got %v", theta)
	}
	if f.learner != defaultLearner || len(f.paramTexts) > 0 {
		return pic, usagef("--learner: the picture shows least-squares, lasso and ridge-constrained with their defaults; leave --learner and the parameters of learners out")
	}
	f.learner = "least-squares"
	s, err := a.samples(ctx, f, "plot ball", file)
	if err != nil {
		return pic, err
	}
	defer s.closeDevices()
	names := s.enc.FeatureNames()
	if len(names) != 2 || s.task != learners.Regression || len(f.targets) != 1 {
		return pic, usagef("plot ball: the table needs two feature columns of numbers and one target of numbers, got %s", count(len(names), "feature"))
	}
	weights := func(learner string, paramTexts map[string]string) (plotter.XY, error) {
		f.learner, f.paramTexts = learner, paramTexts
		b, err := s.fit(ctx, learners.Options{})
		if err != nil {
			return plotter.XY{}, err
		}
		w := learners.PartsOf(b.Model).Coef
		return plotter.XY{X: w.At(0, 0), Y: w.At(1, 0)}, nil
	}
	ols, err := weights("least-squares", map[string]string{})
	if err != nil {
		return pic, err
	}
	if theta == 0 {
		if theta = math.Hypot(ols.X, ols.Y) / 2; theta == 0 {
			return pic, usagef("plot ball: the weights of least squares are 0: there is nothing to bound")
		}
	}
	lasso, err := weights("lasso", map[string]string{"theta": exact(theta)})
	if err != nil {
		return pic, err
	}
	ridge, err := weights("ridge-constrained", map[string]string{"theta": exact(theta * theta)})
	if err != nil {
		return pic, err
	}
	loss := squaredError(s.x, s.y, s.weights)
	r := raster{}
	low, high := min(-theta, ols.X, ols.Y)-0.4*theta, max(theta, ols.X, ols.Y)+0.4*theta
	const grid = 240
	r.x = floats.Span(make([]float64, grid), low, high)
	r.y = r.x
	r.z = mat.NewDense(grid, grid, nil)
	for i, v := range r.y {
		for j, u := range r.x {
			r.z.Set(i, j, loss(u, v))
		}
	}
	p := newPanel("", "weight of "+names[0], "weight of "+names[1])
	p.ratio = 1
	p.grid()
	// One contour passes through the ridge solution and one through the lasso solution. The others are at multiples
	// of the distance between the optimum and the lasso solution.
	minLoss := loss(ols.X, ols.Y)
	increase := loss(lasso.X, lasso.Y) - minLoss
	levels := []float64{loss(ridge.X, ridge.Y), minLoss + increase}
	for _, k := range []float64{0.35, 0.65, 1.4, 1.8} {
		levels = append(levels, minLoss+k*k*increase)
	}
	for i, level := range levels {
		style := solid(color.Gray{0xb0}, 0.8)
		if i < 2 {
			style = solid(color.Gray{0x50}, 1.2)
		}
		p.contour(r, level, style)
	}
	circle := make(plotter.XYs, 361)
	for i := range circle {
		sin, cos := math.Sincos(float64(i) * math.Pi / 180)
		circle[i] = plotter.XY{X: theta * cos, Y: theta * sin}
	}
	for i, shape := range []struct {
		name     string
		border   plotter.XYs
		solution plotter.XY
	}{
		{"ridge, ‖w‖₂ ≤ " + fourDigits(theta), circle, ridge},
		{"lasso, ‖w‖₁ ≤ " + fourDigits(theta), plotter.XYs{{X: theta}, {Y: theta}, {X: -theta}, {Y: -theta}}, lasso},
		{"least squares", nil, ols},
	} {
		clr := curveColors[i]
		if shape.border != nil {
			p.polygon(shape.border, faint(clr), solid(clr, 1.4))
		}
		marker := rowMarker(clr)
		marker.Radius = 1.2 * vg.Millimeter
		p.dots(fmt.Sprintf("%s: (%s, %s)", shape.name, fourDigits(shape.solution.X+0), fourDigits(shape.solution.Y+0)), marker, plotter.XYs{shape.solution})
	}
	p.setRange(low, high, low, high)
	return picture{title: "Bounds of lasso and ridge", rows: [][]*panel{{p}}}, nil
}

// squaredError returns the function Σ s_i (y_i − wᵀx_i − b)² of the two coefficients w, where b is
// optimal for w. The s_i are the sample weights; nil weights are all 1.
func squaredError(x, y mat.Matrix, weights []float64) func(u, v float64) float64 {
	center := func(m mat.Matrix, j int) []float64 {
		c := mat.Col(nil, j, m)
		floats.AddConst(-stat.Mean(c, weights), c)
		return c
	}
	p, q, t := center(x, 0), center(x, 1), center(y, 0)
	return func(u, v float64) (sum float64) {
		for i := range t {
			e := t[i] - u*p[i] - v*q[i]
			sum += weightAt(weights, i) * e * e
		}
		return sum
	}
}
