package main

import (
	"cmp"
	"context"
	"fmt"
	"image/color"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot/plotter"

	"github.com/mercer-go/mercer/internal/fitreport"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
)

func (a *app) plotPathCommand() *cobra.Command {
	f := resampleFlags{learnerFlags: learnerFlags{takes: hasPath}}
	points := 50
	c := &cobra.Command{
		Use:   "path --learner ridge|lasso --target NAME --out FILE [flags] TABLE",
		Short: "Coefficients of ridge or lasso over λ",
		Long: `Draw the weights of the standardized columns over λ, from a λ at which they hardly differ
from those at λ = 0 up to a λ at which they are 0 (lasso) or a hundredth (ridge).`,
	}
	refuseFlags(c, func() []refusal {
		return []refusal{
			{true, "lambda lambdas theta", "the path varies it; leave it out", ""},
			{true, "intervals", "has no effect on a path", ""},
		}
	})
	f.add(c)
	c.Flags().IntVar(&points, "points", points, "number of values of λ")
	return a.drawCommand(c, new([]string), func(ctx context.Context, file string) (picture, error) { return a.plotPath(ctx, &f, points, file) })
}

// hasPath returns an error for a learner other than ridge and lasso.
func hasPath(d learners.Description) error {
	if d.Name == "ridge" || d.Name == "lasso" {
		return nil
	}
	return fmt.Errorf("only ridge and lasso have paths over lambda, not %s", d.Name)
}

// maxPoints is the largest number of points that a picture can show.
const maxPoints = 10000

func (a *app) plotPath(ctx context.Context, f *resampleFlags, points int, file string) (pic picture, err error) {
	if points < 2 || points > maxPoints {
		return pic, usagef("--points: must be from 2 to %d, got %d", maxPoints, points)
	}
	s, err := a.samples(ctx, f, "plot path", file)
	if err != nil {
		return pic, err
	}
	defer s.closeDevices()
	if s.enc.Sparse() {
		return pic, usagef("plot path: a line is drawn for each feature, and the features of this table are sparse: mercer show lists the largest weights of a model")
	}
	weights := func(lambda float64) ([]float64, error) {
		f.paramTexts["lambda"] = exact(lambda)
		b, err := s.fit(ctx, learners.Options{})
		if err != nil {
			return nil, err
		}
		return mat.Col(nil, 0, learners.PartsOf(b.Model).Coef), nil
	}
	// The path ends at a λ where all weights are at most a hundredth of the largest weight for λ = 1e-6.
	first, err := weights(1e-6)
	if err != nil {
		return pic, err
	}
	high := 1e-3
	for range 60 {
		w, err := weights(high)
		if err != nil {
			return pic, err
		}
		if largest(w) <= 0.01*largest(first) {
			break
		}
		high *= 3
	}
	lambdas := make([]float64, points)
	for i := range lambdas {
		lambdas[i] = high * math.Pow(1e-5, 1-float64(i)/float64(points-1))
	}
	p := newPanel("", "λ", "weight, standardized columns")
	logarithmic(&p.X)
	p.grid()
	names := s.enc.FeatureNames()
	lines := make([]plotter.XYs, len(names))
	for _, lambda := range lambdas {
		w, err := weights(lambda)
		if err != nil {
			return pic, err
		}
		for j, v := range w {
			lines[j] = append(lines[j], plotter.XY{X: lambda, Y: v})
		}
	}
	order := make([]int, len(names))
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(math.Abs(lines[j][0].Y), math.Abs(lines[i][0].Y)) })
	for rank, j := range order {
		name, style := "", solid(color.Gray{0xa0}, 0.8)
		if rank < len(curveColors) {
			name, style = names[j], curveStyle(rank, 1.5)
		}
		p.line(name, lines[j], style)
	}
	return picture{title: "Path of " + f.learner + " over λ", rows: [][]*panel{{p}}}, nil
}

// spreadCurve is a curve of means over folds, with the standard deviation at each abscissa.
type spreadCurve struct {
	name      string
	x         []float64
	summaries []validate.Summary
}

func (c *spreadCurve) add(x float64, s validate.Summary) {
	c.x, c.summaries = append(c.x, x), append(c.summaries, s)
}

// spreads draws curves with bands of ± one standard deviation.
func (p *panel) spreads(curves ...spreadCurve) {
	for k, c := range curves {
		clr := curveColors[k%len(curveColors)]
		var low, line, high plotter.XYs
		for i, s := range c.summaries {
			if s.N == 0 {
				continue
			}
			line = append(line, plotter.XY{X: c.x[i], Y: s.Mean})
			low = append(low, plotter.XY{X: c.x[i], Y: s.Mean - s.SD})
			high = append(high, plotter.XY{X: c.x[i], Y: s.Mean + s.SD})
		}
		p.band(clr, low, high)
		p.marked(c.name, clr, line)
	}
}

// curveFlags are the flags of plot learning and plot validation.
type curveFlags struct {
	resampleFlags
	folds int
}

func (f *curveFlags) addTo(c *cobra.Command) {
	f.add(c)
	f.objects.add(c)
	intFlag(c.Flags(), &f.folds, "folds", 5, 2, "number of folds; each is predicted by models that are fitted to the others")
}

func errorName(task learners.Task) string {
	if task == learners.Classification {
		return "rows of a wrong class"
	}
	return "RMSE"
}

// learningCurve scores models fitted to fractions of the training rows of each fold.
func (r *resampling) learningCurve(ctx context.Context, folds int, fractions []float64, onFit func(learners.Model, time.Duration)) ([]validate.CurvePoint, error) {
	if err := checkFolds(r.table, folds); err != nil {
		return nil, err
	}
	fitCtx, runner := r.runner(ctx)
	points, err := runner.LearningCurve(fitCtx, r.fit, folds, fractions, r.f.seed, onFit)
	return points, explainFit(err, func(i int, err error) error {
		return fmt.Errorf("%w; in the fit to %.0f %% of the rows without fold %d of %d", err, 100*fractions[i/folds], i%folds+1, folds)
	})
}

func (a *app) plotLearningCommand() *cobra.Command {
	var f curveFlags
	var sizes int
	c := &cobra.Command{
		Use:   "learning --target COLUMN --out FILE [flags] TABLE",
		Short: "Error against the number of rows, with its spread over folds",
		Long: `Draw the error on held-out rows and on the training rows against the number of training
rows: means over the folds ± one standard deviation. If the curves meet at a high error,
the model is too simple; if they stay apart, more rows help.`,
	}
	f.addTo(c)
	intFlag(c.Flags(), &sizes, "sizes", 8, 2, "number of sizes of the training set, up to all rows")
	return a.drawCommand(c, new([]string), func(ctx context.Context, file string) (picture, error) { return a.plotLearning(ctx, &f, sizes, file) })
}

func (a *app) plotLearning(ctx context.Context, f *curveFlags, sizes int, file string) (pic picture, err error) {
	r, err := a.newResampling(ctx, &f.resampleFlags, "plot learning", file)
	if err != nil {
		return pic, err
	}
	defer r.closeDevices()
	var fractions []float64
	for i := range sizes { // fractions in geometric progression from 1/20 to 1
		fractions = append(fractions, math.Pow(0.05, 1-float64(i)/float64(sizes-1)))
	}
	points, err := r.learningCurve(ctx, f.folds, fractions, nil)
	if err != nil {
		return pic, err
	}
	heldOut, training := spreadCurve{name: "held out"}, spreadCurve{name: "training"}
	for _, point := range points {
		heldOut.add(float64(point.N), point.TestError)
		training.add(float64(point.N), point.TrainError)
	}
	p := newPanel("", "training rows", errorName(r.task))
	p.grid()
	p.spreads(heldOut, training)
	return picture{title: "Learning curve of " + f.learner, rows: [][]*panel{{p}}}, nil
}

func (a *app) plotValidationCommand() *cobra.Command {
	var f curveFlags
	var values string
	rounds := 0
	c := &cobra.Command{
		Use:   "validation --target COLUMN --values LIST --out FILE [flags] TABLE",
		Short: "Error against a parameter, with its spread over folds",
		Long: `Draw the error on held-out rows and on the training rows for each value of a parameter:
means over the folds ± one standard deviation. The parameter is the flag that contains
{}, which is replaced by each value:

  mercer plot validation --target y --lambda {} --values 0.1,1 --out v.png t.csv
  mercer plot validation --learner rvm --kernel 'gaussian(sigma={})' \
    --target y --values 0.5,1,2,4 --out v.png t.csv

If the errors are far apart, the variance is high; if both are high, the bias is.
--bootstrap ROUNDS draws them: bias² plus noise, the variance, and the squared error on
out-of-bag rows. For learners with an evidence a second panel shows the log evidence per
training row. --epochs {} --values 1..30 draws the error after each epoch, from one fit
per value; mercer plot epochs draws the loss of a single fit.`,
	}
	f.addTo(c)
	c.Flags().StringVar(&values, "values", "", valuesHelp)
	c.Flags().IntVar(&rounds, "bootstrap", 0, "draw bias and variance, from this number of `ROUNDS` of the bootstrap")
	return a.drawCommand(c, new([]string), func(ctx context.Context, file string) (picture, error) {
		return a.plotValidation(ctx, &f, values, rounds, file)
	})
}

const valuesHelp = "`LIST` of numbers, with commas between them, or integers as FROM..TO"

// varied holds the parameters of a learner. One of them takes each number of --values in turn.
type varied struct {
	parameter, label string
	texts            []string
	numbers          []float64
	paramTexts       map[string]string
}

// newVaried finds the flag whose value contains {} and parses the numbers of --values.
func newVaried(paramTexts map[string]string, values string) (*varied, error) {
	v := &varied{paramTexts: maps.Clone(paramTexts)}
	for name, text := range paramTexts {
		if strings.Contains(text, "{}") {
			v.parameter = name
		}
	}
	switch {
	case v.parameter == "":
		return nil, usagef("no flag of the learner contains {}, which stands for the values: give one, such as --lambda {}")
	case values == "":
		return nil, usagef("--values LIST is needed: numbers with commas between them")
	}
	for i, text := range strings.Split(listOf(values), ",") {
		text = strings.TrimSpace(text)
		number, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
			return nil, usagef("--values: number %d: want a number, got %q", i+1, text)
		}
		v.texts, v.numbers = append(v.texts, text), append(v.numbers, number)
	}
	if v.label = strings.ReplaceAll(paramTexts[v.parameter], "{}", "…"); v.label == "…" {
		v.label = v.parameter
	}
	return v, nil
}

// setting returns the parameters of the learner, where value i of --values replaces {}.
func (v *varied) setting(i int) map[string]string {
	paramTexts := map[string]string{}
	for name, text := range v.paramTexts {
		paramTexts[name] = strings.ReplaceAll(text, "{}", v.texts[i])
	}
	return paramTexts
}

// listOf replaces FROM..TO by a list of numbers with commas.
func listOf(values string) string {
	from, to, ok := strings.Cut(values, "..")
	low, err1 := strconv.Atoi(from)
	high, err2 := strconv.Atoi(to)
	if !ok || err1 != nil || err2 != nil || high < low || high-low >= maxPoints {
		return values
	}
	var list []string
	for v := low; v <= high; v++ {
		list = append(list, strconv.Itoa(v))
	}
	return strings.Join(list, ",")
}

func (a *app) plotValidation(ctx context.Context, f *curveFlags, values string, rounds int, file string) (pic picture, err error) {
	if rounds < 0 || rounds == 1 {
		return pic, usagef("--bootstrap: must be ≥ 2, got %d", rounds)
	}
	v, err := newVaried(f.paramTexts, values)
	if err != nil {
		return pic, err
	}
	heldOut, training, evidence := spreadCurve{name: "held out"}, spreadCurve{name: "training"}, spreadCurve{name: "evidence"}
	squaredError, bias, variance := spreadCurve{name: "squared error"}, spreadCurve{name: "bias² and noise"}, spreadCurve{name: "variance"}
	task := learners.Task("")
	for i, x := range v.numbers {
		f.paramTexts = v.setting(i)
		r, err := a.newResampling(ctx, &f.resampleFlags, "plot validation", file)
		if err != nil {
			return pic, err
		}
		task = r.task
		if rounds > 0 && task == learners.Classification {
			r.closeDevices()
			return pic, usagef("--bootstrap: bias and variance are computed for targets of numbers, not for classes; leave --bootstrap out")
		}
		if rounds > 0 {
			var b *validate.OutOfBag
			if b, err = r.outOfBag(ctx, rounds); err == nil {
				addValue := func(c *spreadCurve, v float64) { c.add(x, validate.NewSummary([]float64{v})) }
				addValue(&squaredError, b.Error*b.Error)
				addValue(&bias, b.Bias2)
				addValue(&variance, b.Variance)
			}
		} else {
			var evidences []float64
			var points []validate.CurvePoint
			rows := float64(r.table.Rows()*(f.folds-1)) / float64(f.folds)
			if points, err = r.learningCurve(ctx, f.folds, []float64{1}, func(m learners.Model, _ time.Duration) {
				if v, ok := fitreport.Evidence(m); ok {
					evidences = append(evidences, v/rows)
				}
			}); err == nil {
				heldOut.add(x, points[0].TestError)
				training.add(x, points[0].TrainError)
				if len(evidences) > 0 {
					evidence.add(x, validate.NewSummary(evidences))
				}
			}
		}
		r.closeDevices()
		if err != nil {
			return pic, fmt.Errorf("%w; with --%s %s", err, v.parameter, f.paramTexts[v.parameter])
		}
	}
	add := func(name string, curves ...spreadCurve) {
		p := newPanel("", v.label, name)
		if low, high := slices.Min(v.numbers), slices.Max(v.numbers); low > 0 && high >= 10*low {
			logarithmic(&p.X)
		}
		p.grid()
		p.spreads(curves...)
		pic.rows = append(pic.rows, []*panel{p})
	}
	if rounds > 0 {
		pic.title = "Bias and variance of " + f.learner
		add("squared error out of the bag", squaredError, bias, variance)
		return pic, nil
	}
	pic.title = "Validation curve of " + f.learner
	if len(evidence.x) == len(v.numbers) {
		add("log evidence of a training row", evidence)
	}
	add(errorName(task), heldOut, training)
	return pic, nil
}
