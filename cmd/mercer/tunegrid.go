package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/texttable"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/tuning"
	"github.com/mercer-go/mercer/learners/validate"
	"github.com/mercer-go/mercer/solvers"
)

// gridLearners returns the learners for which tune tries a grid of settings.
func gridLearners() []string {
	var names []string
	for _, d := range learners.Catalogue() {
		kernel := slices.ContainsFunc(d.Parameters, func(p learners.Parameter) bool { return p.Name == "kernel" })
		if (d.Grid != "" || kernel) && !slices.Contains(tunedLearners, d.Name) && !slices.Equal(d.Tasks, []learners.Task{learners.Novelty}) {
			names = append(names, d.Name)
		}
	}
	return names
}

// gridPoint is a setting of the grid. kernel is its kernel on texts or trees, or nil for a table of numbers.
type gridPoint struct {
	tuning.Setting
	kernel objects.Kernel
}

// parseGrid returns the axes of the grid, which --grid or other flags such as --lambdas define.
func (f *tuneFlags) parseGrid() (axes []tuning.Axis, err error) {
	d, err := learners.Find(f.learner)
	if err != nil {
		return nil, err
	}
	var parameters []string
	for _, p := range d.Parameters {
		if p.Name != "kernel" && p.Name != "seed" {
			parameters = append(parameters, p.Name)
		}
	}
	texts := slices.Clone(f.grid)
	if len(f.lambdas) > 0 {
		var list []string
		for _, l := range f.lambdas {
			list = append(list, exact(l))
		}
		texts = append(texts, "lambda="+strings.Join(list, ","))
	}
	if f.noIntercept {
		texts = append(texts, "intercept=false")
	}
	if _, has := d.Parameter("std"); has && f.criterion == string(tuning.Evidence) && f.bayesian() {
		texts = append(texts, "std=true")
	}
	for _, text := range texts {
		name, list, ok := strings.Cut(text, "=")
		p, has := d.Parameter(name)
		switch {
		case !ok || list == "":
			return nil, usagef("--grid: want NAME=VALUE,VALUE,…, got %q", text)
		case name == "kernel" || name == "seed":
			return nil, usagef("--grid: %[1]s cannot be in a grid; use --%[1]s", name)
		case !has:
			return nil, usagef("--grid: %q is not a parameter of %s%s; the parameters are: %s", name, d.Name, didYouMean("", name, parameters), strings.Join(parameters, ", "))
		case slices.ContainsFunc(axes, func(a tuning.Axis) bool { return a.Parameter == name }):
			return nil, usagef("--grid: %s is given twice", name)
		}
		values := strings.Split(list, ",")
		for i, v := range values {
			values[i] = strings.TrimSpace(v)
			if _, err := p.Parse(values[i]); err != nil {
				return nil, usagef("--grid: %s: %s", name, oneLine(err))
			}
		}
		axes = append(axes, tuning.Axis{Parameter: name, Values: values})
	}
	return axes, nil
}

// describeGrid adapts --help to a learner of gridLearners.
func (f *tuneFlags) describeGrid(c *cobra.Command, d learners.Description) {
	flag := c.Flags().Lookup
	var scores []string
	for _, task := range d.Tasks {
		scores = append(scores, map[learners.Task]string{learners.Regression: "the root-mean-square error", learners.Classification: "the fraction of the rows whose class is wrong"}[task])
	}
	scoring := "Each setting is fitted without each of --folds folds and scored on it, by " + strings.Join(scores, " or ") + "."
	if f.bayesian() {
		scoring += " With --by evidence it is fitted once and scored by −log p per row."
		flag("by").Usage, flag("by").DefValue = "criterion: kfold, evidence", f.criterion
	}
	grid := "--grid NAME=VALUES sets or varies a parameter of the learner."
	if d.Grid != "" {
		grid = "The grid is " + d.Grid + "; --grid NAME=VALUES replaces it, or sets or varies another parameter."
	}
	if strings.Contains(d.Grid, "×") {
		grid += " A number before × is multiplied by " + map[string]string{"lasso": "the λ from which on all weights are 0", "ridge-constrained": "the variance of the target"}[d.Name] + "."
	}
	if flag("lambdas").Usage = "`NUMBERS` to try: --grid lambda=NUMBERS"; !flag("kernel").Hidden {
		flag("steps").Usage = "number of factors to try (default: 7)"
		grid += "\n\nThe length scales of the kernel are multiplied by common factors, --steps of them up to --reach, unless --vary '' is given; several --kernel are all tried. With --text or --tree one column is the whole input, and each --kernel is on texts or trees; its own parameters stay as they are."
	}
	if d.LinearByDefault() {
		grid += " Without --kernel it is linear()."
	}
	c.Long = strings.Join([]string{"Find the parameters of " + d.Name + " by a grid, and fit with them.", "Several devices, --device cuda/0,cuda/1, share the folds.", scoring, grid, tuneRowsHelp}, "\n\n")
}

// checkGrid returns an error for the first wrong flag of a search by a grid.
func (f *tuneFlags) checkGrid() error {
	d, err := learners.Find(f.learner)
	if err != nil {
		return err
	}
	switch {
	case f.task != "" && !d.Supports(learners.Task(f.task)):
		return usagef("--task: %s does not support %s", f.learner, f.task)
	case f.criterion != string(tuning.KFold) && !(f.bayesian() && f.criterion == string(tuning.Evidence)):
		return usagef("--by: %s is scored by kfold%s; the other criteria are for %s", f.learner, map[bool]string{true: " or evidence"}[f.bayesian()], strings.Join(tunedLearners, ", "))
	case len(f.targets) > 1 && !d.Outputs:
		return usagef("--target: %s learns one target, but %d are named", f.learner, len(f.targets))
	}
	_, err = f.parseGrid()
	return err
}

// searchGrid scores each setting of the grid on --rows rows of train, chosen at random.
func (a *app) searchGrid(ctx context.Context, devices []backend.Device, f *tuneFlags, task learners.Task, d *tuneData, train *dataset.Table, memory *budget) ([]gridPoint, error) {
	axes, err := f.parseGrid()
	if err != nil {
		return nil, err
	}
	list, err := f.parseKernels()
	if err != nil {
		return nil, err
	}
	rows := f.sample(d.y)
	rules := f.objects.rules(f.rules(task))
	rules.AnyLabels = true // the classes have been checked in train, and need no check in some of its rows
	searchTable := train
	if len(rows) < train.Rows() {
		if searchTable, err = rules.Select(train, rows); err != nil {
			return nil, err
		}
	}
	if f.criterion == string(tuning.KFold) {
		if err := checkFolds(searchTable, f.folds); err != nil {
			return nil, err
		}
	}
	samples := func(x mat.Matrix) validate.Data {
		return validate.Samples{X: x, Y: rowsAt(d.y, rows), Weights: weightsAt(d.weights, rows)}
	}
	var table validate.Data
	switch {
	case f.gram: // a Gram matrix of the chosen rows has only their columns, and thus needs an encoder of its own
		enc, err := dataset.Learn(searchTable, rules)
		if err != nil {
			return nil, err
		}
		x, _, err := encodeTraining(enc, searchTable)
		if err != nil {
			return nil, err
		}
		table = samples(x)
	case f.objects.flag() == "":
		t, err := validate.NewTable(searchTable, rules, d.enc)
		if err != nil {
			return nil, err
		}
		table = t
		defer a.reportEmpty(t)
	}
	defer memory.manyFits()()
	var gridPoints []gridPoint
	var settings []tuning.Setting
	for i, c := range list {
		data := table
		if c.object != nil {
			x, err := a.prepareCandidate(ctx, f, d, rows, &c)
			if err != nil {
				return nil, err
			}
			data = samples(x)
		} else if err := f.checkVary(c.kernel); err != nil {
			return nil, err
		}
		p := a.newProgress()
		o := learners.Options{Classes: d.enc.Classes(), Progress: func(q solvers.Progress) {
			p.report(solvers.Progress{Stage: "tune", Fraction: (float64(i) + q.Fraction) / float64(len(list))})
		}}
		fitCtx := memory.fitting(ctx, &o)
		r := validate.Runner{Data: classWeighted{data, &f.weightFlags, o.Classes}, Devices: devices, Options: o}
		kernelSettings, err := tuning.SearchGrid(fitCtx, r, tuning.GridParams{
			Learner: f.learner, Task: task, Axes: axes, Kernel: c.kernel, Vary: f.vary, Reach: f.reach, Steps: f.steps,
			Criterion: tuning.Criterion(f.criterion), Folds: f.folds, Seed: f.seed,
		})
		p.close()
		if paramErr := (*learners.ParameterError)(nil); errors.As(err, &paramErr) {
			return nil, usagef("--grid: %s: %s", paramErr.Parameter, paramErr.Rule)
		} else if err != nil {
			return nil, err
		}
		settings = append(settings, kernelSettings...)
		for _, s := range kernelSettings {
			gridPoints = append(gridPoints, gridPoint{s, c.object})
		}
	}
	_, err = tuning.BestSetting(settings)
	return gridPoints, err
}

// gridTrial is a scored setting in the report.
type gridTrial struct {
	Parameters map[string]string `json:"parameters"`
	Score      *float64          `json:"score"` // null if Error is set
	SD         float64           `json:"sd"`    // standard deviation over the folds
	Seconds    float64           `json:"seconds"`
	Error      string            `json:"error,omitempty"`
}

// newGridReport makes the report of a grid. It marks the first setting with the best score.
func newGridReport(f *tuneFlags, task learners.Task, points []gridPoint, dev backend.Device, errorText func(error) string) tuneReport {
	r := tuneReport{Program: "tune", By: f.criterion, Search: f.search, Learner: f.learner, Device: dev.Info().Device, Vary: []string{}, task: task}
	for i, p := range points {
		if p.Score < points[r.bestIndex].Score {
			r.bestIndex = i
		}
		t := gridTrial{Parameters: maps.Clone(p.Parameters), SD: p.SD, Seconds: p.Seconds}
		delete(t.Parameters, "seed")
		if p.kernel != nil {
			t.Parameters["kernel"] = p.kernel.String()
		}
		if !math.IsInf(p.Score, 1) {
			t.Score = &p.Score
		} else if p.Err != nil {
			t.Error = errorText(p.Err)
		}
		r.Grid = append(r.Grid, t)
		for name, v := range t.Parameters {
			if !slices.Contains(r.Vary, name) && v != r.Grid[0].Parameters[name] {
				r.Vary = append(r.Vary, name)
			}
		}
	}
	slices.Sort(r.Vary)
	r.showGrid(r.bestIndex)
	return r
}

// showGrid makes r.Grid[index] the fitted setting of the report.
func (r *tuneReport) showGrid(index int) {
	bestTrial := r.Grid[index]
	r.bestIndex, r.Parameters, r.Score, r.Kernel = index, bestTrial.Parameters, *bestTrial.Score, bestTrial.Parameters["kernel"]
}

// gridText returns the table of the settings.
func (r tuneReport) gridText() string {
	lines := [][]string{append(append([]string{""}, r.Vary...), r.heading(), "± sd", "time")}
	for i, t := range r.Grid {
		line := []string{map[bool]string{true: "*"}[i == r.bestIndex]}
		for _, name := range r.Vary {
			line = append(line, t.Parameters[name])
		}
		if t.Score == nil {
			line = append(line, "none", "")
		} else {
			line = append(line, fourDigits(*t.Score), fourDigits(t.SD))
		}
		lines = append(lines, append(line, seconds(t.Seconds)))
	}
	return texttable.Format("l"+strings.Repeat("l", len(r.Vary))+"rrr", lines)
}

// gridPicture draws the scores over the numeric parameter that has the most values. Each line is for one setting of the
// other parameters. At most the eight best lines are drawn.
func (r tuneReport) gridPicture() (pic picture, err error) {
	number := func(t gridTrial, name string) (float64, bool) {
		text := t.Parameters[name]
		if k, err := kernels.Parse(text); name == "kernel" && err == nil && len(kernels.Params(k)) > 0 {
			return kernels.Params(k)[0].Value, true
		}
		v, err := strconv.ParseFloat(text, 64)
		return v, err == nil
	}
	axis, maxValues := "", 1
	for _, name := range r.Vary {
		distinct := map[float64]bool{}
		for _, t := range r.Grid {
			if v, ok := number(t, name); ok {
				distinct[v] = true
			}
		}
		if len(distinct) > maxValues {
			axis, maxValues = name, len(distinct)
		}
	}
	if axis == "" {
		return pic, usagef("--plot: at least one parameter with numeric values must vary")
	}
	lines, minScores := map[string]*spreadCurve{}, map[string]float64{}
	positive := true
	for _, t := range r.Grid {
		x, ok := number(t, axis)
		if !ok || t.Score == nil {
			continue
		}
		var otherValues []string
		for _, name := range r.Vary {
			if name != axis {
				otherValues = append(otherValues, name+" "+t.Parameters[name])
			}
		}
		name := strings.Join(otherValues, ", ")
		if lines[name] == nil {
			lines[name], minScores[name] = &spreadCurve{name: cmp.Or(name, r.Learner)}, *t.Score
		}
		lines[name].add(x, validate.Summary{Mean: *t.Score, SD: t.SD, N: 1})
		minScores[name], positive = min(minScores[name], *t.Score), positive && x > 0
	}
	names := slices.SortedFunc(maps.Keys(lines), func(a, b string) int { return cmp.Or(cmp.Compare(minScores[a], minScores[b]), cmp.Compare(a, b)) })
	var curves []spreadCurve
	for _, name := range names[:min(len(names), len(curveColors))] {
		curves = append(curves, *lines[name])
	}
	label := axis
	if k, err := kernels.Parse(r.Kernel); axis == "kernel" && err == nil {
		label = kernels.Params(k)[0].Name
	}
	p := newPanel(fmt.Sprintf("%s: %s %s at best", r.Learner, r.heading(), fourDigits(r.Score)), label, r.heading())
	if positive {
		logarithmic(&p.X)
	}
	p.grid()
	p.spreads(curves...)
	return picture{title: "Scores of " + r.Learner, rows: [][]*panel{{p}}}, nil
}
