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
	"sync"
	"time"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"

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

// gridSteps is how many kernels are tried where --steps says nothing else.
const gridSteps = 7

// gridLearners are those that are tuned by a grid, of a parameter or of kernels.
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

// gridPoint is a setting of the parameters that is tried.
type gridPoint struct {
	given  map[string]string
	kernel objects.Kernel // over texts or trees; nil: none
	fit    learners.Fitter

	scores  []float64 // of the folds: mean squared errors, or parts of the rows whose class is wrong
	sum     float64   // of them, each times its rows
	rows    float64   // of the folds, by their weights
	seconds float64
	err     error
}

// score is what the points are compared by, the smaller the better: the root of the mean
// squared error, the part of wrong rows, or −log p a row.
func (p gridPoint) score(task learners.Task, by string) float64 {
	switch v := p.sum / p.rows; {
	case p.err != nil || math.IsNaN(v):
		return math.Inf(1)
	case task == learners.Classification || by == string(tuning.Evidence):
		return v
	default:
		return math.Sqrt(v)
	}
}

// gridAxis is a parameter of the learner and the texts that are tried.
type gridAxis struct {
	name   string
	values []string
}

// parseGrid are the axes of --grid, of the flags that mean one, and of the learner.
func (f *tuneFlags) parseGrid() (axes []gridAxis, err error) {
	d, err := learners.Find(f.learner)
	if err != nil {
		return nil, err
	}
	var known []string
	for _, p := range d.Parameters {
		if p.Name != "kernel" && p.Name != "seed" {
			known = append(known, p.Name)
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
	for _, text := range texts {
		name, list, ok := strings.Cut(text, "=")
		p, has := d.Parameter(name)
		switch {
		case !ok || list == "":
			return nil, usagef("--grid: want NAME=VALUE,VALUE,…, got %q", text)
		case name == "kernel" || name == "seed":
			return nil, usagef("--grid: there is a flag --%s", name)
		case !has:
			return nil, usagef("--grid: %q is no parameter of %s%s; there are: %s", name, d.Name, didYouMean("", name, known), strings.Join(known, ", "))
		case slices.ContainsFunc(axes, func(a gridAxis) bool { return a.name == name }):
			return nil, usagef("--grid: %s is given twice", name)
		}
		values := strings.Split(list, ",")
		for i, v := range values {
			values[i] = strings.TrimSpace(v)
			if _, err := p.Parse(values[i]); err != nil {
				return nil, usagef("--grid: %s: %s", name, oneLine(err))
			}
		}
		axes = append(axes, gridAxis{name, values})
	}
	// A default gives way to parameters that exclude it, as theta does lambda of lasso.
	name, list, ok := strings.Cut(d.Grid, "=")
	instead := map[string]string{"theta": "lambda", "lambda": "C", "support": "lambda"}
	replaced := slices.ContainsFunc(axes, func(a gridAxis) bool {
		return a.name == name || instead[a.name] == name || instead[name] == a.name
	})
	if ok && !replaced {
		axes = append(axes, gridAxis{name, strings.Split(list, ",")})
	}
	return axes, nil
}

// describeGrid makes --help one of a learner that is tuned by a grid.
func (f *tuneFlags) describeGrid(c *cobra.Command, d learners.Description) {
	flag := c.Flags().Lookup
	var scores []string
	for _, task := range d.Tasks {
		scores = append(scores, map[learners.Task]string{learners.Regression: "the root of the mean squared error", learners.Classification: "the part of the rows whose class is wrong"}[task])
	}
	how := "Each setting is fitted without each of --folds parts of the rows and scored there, by " + strings.Join(scores, " or ") + "."
	if f.bayesian() {
		how += " With --by evidence it is fitted once, and scored by −log p per row."
		flag("by").Usage, flag("by").DefValue = "what to judge by: kfold, evidence", f.by
	}
	grid := "--grid NAME=VALUES sets or varies a parameter of the learner."
	if d.Grid != "" {
		grid = "The grid is " + d.Grid + "; --grid NAME=VALUES replaces it, or sets or varies another parameter."
	}
	if strings.Contains(d.Grid, "×") {
		grid += " What is before × is multiplied by " + map[string]string{"lasso": "the λ from which on all weights are 0", "ridge-constrained": "the variance of the target"}[d.Name] + "."
	}
	if flag("lambdas").Usage = "`NUMBERS` to try: --grid lambda=NUMBERS"; !flag("kernel").Hidden {
		flag("steps").Usage = fmt.Sprintf("factors to try (default: %d)", gridSteps)
		grid += "\n\nThe length scales of the kernel are multiplied by common factors, --steps of them up to --reach, unless --vary '' is given; several --kernel are all tried. With --text or --tree one column is the whole input, and each --kernel is on texts or trees; its own parameters stay as they are."
	}
	if d.LinearByDefault() {
		grid += " Without --kernel it is linear()."
	}
	c.Long = strings.Join([]string{"Find the parameters of " + d.Name + " by a grid, and fit with them.", "Several devices, --device cuda/0,cuda/1, share the folds.", how, grid, tuneRowsHelp}, "\n\n")
}

// checkGrid is check for learners that are tuned by a grid.
func (f *tuneFlags) checkGrid() error {
	d, err := learners.Find(f.learner)
	if err != nil {
		return err
	}
	switch {
	case f.task != "" && !d.Does(learners.Task(f.task)):
		return usagef("--task: %s is not made for %s", f.learner, f.task)
	case f.by != string(tuning.KFold) && !(f.bayesian() && f.by == string(tuning.Evidence)):
		return usagef("--by: %s is judged by kfold%s; the others are for %s", f.learner, map[bool]string{true: " or evidence"}[f.bayesian()], strings.Join(tunedLearners, ", "))
	case len(f.targets) > 1 && !d.Outputs:
		return usagef("--target: %s learns one target, %d are named", f.learner, len(f.targets))
	}
	_, err = f.parseGrid()
	return err
}

// gridScale is what the numbers before × are multiplied by: of lasso the λ from which on
// all weights are 0, of ridge-constrained the variance of the target.
func gridScale(learner string, x, y *mat.Dense, weights []float64) float64 {
	n, t := y.Dims()
	scale := 0.0
	for j := range t {
		c := mat.NewVecDense(n, mat.Col(nil, j, y))
		mean, total := stat.Mean(c.RawVector().Data, weights), 0.0
		scaled := mat.NewVecDense(n, nil)
		for i := range n {
			w := weightAt(weights, i)
			c.SetVec(i, c.AtVec(i)-mean)
			scaled.SetVec(i, w*c.AtVec(i))
			total += w
		}
		if learner == "lasso" {
			var g mat.VecDense
			g.MulVec(x.T(), scaled)
			scale = max(scale, 2*mat.Norm(&g, math.Inf(1)))
		} else {
			scale = max(scale, mat.Dot(c, scaled)/total)
		}
	}
	return cmp.Or(scale, 1)
}

// gridPoints are all settings of a kernel and the axes, the last axis the fastest.
func (f *tuneFlags) gridPoints(c candidate, axes []gridAxis, task learners.Task, scale float64) ([]*gridPoint, error) {
	d, err := learners.Find(f.learner)
	if err != nil {
		return nil, err
	}
	first := map[string]string{}
	if _, has := d.Parameter("seed"); has {
		first["seed"] = strconv.FormatUint(f.seed, 10)
	}
	settings := []map[string]string{first}
	extend := func(name string, values []string) {
		var longer []map[string]string
		for _, s := range settings {
			for _, v := range values {
				if number, relative := strings.CutSuffix(v, "×"); relative {
					part, _ := strconv.ParseFloat(number, 64)
					v = short(part * scale)
				}
				one := maps.Clone(s)
				one[name] = v
				longer = append(longer, one)
			}
		}
		settings = longer
	}
	if c.kernel != nil {
		list := []kernels.Kernel{c.kernel}
		if c.object == nil {
			steps := cmp.Or(f.steps, gridSteps)
			if list, err = tuning.Kernels(c.kernel, f.vary, f.reach, steps); err != nil {
				return nil, err
			}
		}
		var texts []string
		for _, k := range list {
			texts = append(texts, k.String())
		}
		extend("kernel", texts)
	}
	for _, axis := range axes {
		extend(axis.name, axis.values)
	}
	var points []*gridPoint
	for _, given := range settings {
		fit, err := d.Make(task, given)
		if wrong := (*learners.ParameterError)(nil); errors.As(err, &wrong) {
			return nil, usagef("--grid: %s: %s", wrong.Parameter, wrong.Rule)
		} else if err != nil {
			return nil, err
		}
		points = append(points, &gridPoint{given: given, kernel: c.object, fit: fit})
	}
	return points, nil
}

// searchGrid scores every setting with --rows of the rows of train.
func (a *app) searchGrid(ctx context.Context, devices []backend.Device, f *tuneFlags, task learners.Task, d *tuneData, train *dataset.Table, memory *budget) ([]*gridPoint, error) {
	axes, err := f.parseGrid()
	if err != nil {
		return nil, err
	}
	list, err := f.parseKernels()
	if err != nil {
		return nil, err
	}
	rows := f.sample(d.y)
	some := train
	if len(rows) < train.Rows() {
		if some, err = f.rules(task).Select(train, rows); err != nil {
			return nil, err
		}
	}
	t, err := validate.NewTable(some, f.rules(task))
	if err != nil {
		return nil, err
	}
	t.Encoder = d.enc
	flags := &learnerFlags{tableFlags: f.tableFlags, learner: f.learner}
	r := &resampling{a: a, f: &resampleFlags{learnerFlags: *flags}, all: t.Table, full: d.enc, task: task, memory: memory, devices: devices, weights: weightsAt(d.weights, rows)}
	data := validate.Data(t)
	signs := rowsAt(d.signs, rows)
	samples := func(x *mat.Dense) validate.Data {
		return validate.Samples{X: hostOf(x), Y: hostOf(rowsAt(d.y, rows)), Weights: r.weights}
	}
	if f.gram { // the points of the rows among themselves
		enc, err := dataset.Learn(some, f.rules(task))
		if err != nil {
			return nil, err
		}
		x, _, err := encodeTraining(enc, some)
		if err != nil {
			return nil, err
		}
		data = samples(x)
	}
	var all []*gridPoint
	for _, c := range list {
		x, err := a.begin(ctx, f, d, rows, &c)
		if err != nil {
			return nil, err
		}
		scale := 1.0
		if c.object != nil {
			data = samples(x)
		} else {
			scale = gridScale(f.learner, x, signs, weightsAt(d.product, rows))
		}
		points, err := f.gridPoints(c, axes, task, scale)
		if err != nil {
			return nil, err
		}
		r.data = classWeighted{data, &r.f.weightFlags, r.full.Classes()}
		if err := r.scoreGrid(ctx, f, points); err != nil {
			return nil, err
		}
		all = append(all, points...)
	}
	var last error
	for _, p := range all {
		if p.err == nil {
			return all, nil
		}
		last = p.err
	}
	return nil, fmt.Errorf("no setting of the grid can be fitted: %w", last)
}

// scoreGrid fits every point without each fold and scores it there, or by its evidence.
func (r *resampling) scoreGrid(ctx context.Context, f *tuneFlags, points []*gridPoint) error {
	folds := f.folds
	every := func(int) (train, test []int) {
		for i := range r.all.Rows() {
			train = append(train, i)
		}
		return train, train
	}
	splits := validate.Splits(every)
	if f.by == string(tuning.Evidence) {
		folds = 1
	} else {
		var err error
		if splits, err = r.kFold(folds, true); err != nil {
			return err
		}
	}
	defer r.memory.manyFits()()
	p := r.a.newProgress()
	defer p.close()
	done, count := 0, folds*len(points)
	report := func() { // by one goroutine at a time
		done++
		p.report(solvers.Progress{Stage: "tune", Fraction: min(float64(done)/float64(count), 1)})
	}
	var shares []backend.Device
	if len(r.devices) == 1 {
		var err error
		if shares, err = backend.Share(r.devices[0], count); err != nil {
			return err
		}
		defer func() {
			for _, dev := range shares {
				dev.Close()
			}
		}()
	}
	// As many folds at a time as there are devices, so that each device encodes one.
	var fits []*gridFit
	for first := 0; first < folds; first += max(len(shares), len(r.devices)) {
		for _, at := range points {
			for k := first; k < min(first+max(len(shares), len(r.devices)), folds); k++ {
				fits = append(fits, &gridFit{point: at, fold: k})
			}
		}
	}
	left := fits
	if len(shares) > 0 {
		if err := r.fitGrid(ctx, f, shares, left, splits, report); err != nil {
			return err
		}
		// What has no room in a share of the memory is fitted alone.
		left = slices.DeleteFunc(slices.Clone(left), func(fit *gridFit) bool {
			return !errors.Is(fit.err, backend.ErrMemory) && !errors.As(fit.err, new(*solvers.BudgetError))
		})
	}
	if err := r.fitGrid(ctx, f, r.devices, left, splits, report); err != nil {
		return err
	}
	for _, fit := range fits {
		at := fit.point
		at.seconds += fit.seconds
		at.err = cmp.Or(at.err, fit.err)
		at.scores, at.sum, at.rows = append(at.scores, fit.sum/fit.rows), at.sum+fit.sum, at.rows+fit.rows
	}
	return nil
}

// gridFit is the fit of a point without a fold, and what it scores there.
type gridFit struct {
	point   *gridPoint
	fold    int
	sum     float64 // of evaluate
	rows    float64 // of the fold, by their weights
	seconds float64
	err     error
}

// fitGrid makes fits, on all devices at once.
func (r *resampling) fitGrid(ctx context.Context, f *tuneFlags, devices []backend.Device, fits []*gridFit, splits validate.Splits, report func()) error {
	if len(fits) == 0 {
		return nil
	}
	o := learners.Options{Classes: r.full.Classes()}
	within := r.memory.fittingSeveral(ctx, &o, min(len(devices), len(fits)), r.bytes())
	var of []int
	for _, fit := range fits {
		of = append(of, fit.fold)
	}
	var mu sync.Mutex
	runner := validate.Runner{Data: r.data, Devices: devices, Options: o}
	err := runner.Each(within, splits, of, func(dev backend.Device, k int, p *validate.Part, o learners.Options) error {
		fit, start := fits[k], time.Now()
		fit.sum, fit.err = fit.point.evaluate(within, dev, f.by, o, p)
		rows, _ := p.YTest.Dims()
		fit.rows, fit.seconds = totalWeight(p.TestWeights, rows), fit.seconds+time.Since(start).Seconds()
		mu.Lock()
		defer mu.Unlock()
		report()
		return nil
	})
	return explained(err, func(k int, err error) error {
		if ctx.Err() != nil {
			return err
		}
		return ofFolds(f.folds)(of[k], err)
	})
}

// evaluate fits to the training rows and returns the sum over the test rows, by their
// weights, of their squared errors, of 1 where the class is wrong, or of −log p.
func (p *gridPoint) evaluate(ctx context.Context, dev backend.Device, by string, o learners.Options, d *validate.Part) (sum float64, err error) {
	m, err := p.fit(ctx, dev, d.X, d.Y, o)
	if err != nil {
		return 0, err
	}
	if by == string(tuning.Evidence) {
		if v, ok := evidenceOf(m); ok {
			return -v, nil
		}
		return 0, fmt.Errorf("%s has no evidence", m.Learner())
	}
	values, err := m.Predict(ctx, dev, d.XTest)
	if err != nil {
		return 0, err
	}
	if err := validate.CheckFinite("the prediction", values); err != nil {
		return 0, err
	}
	n, t := d.YTest.Dims()
	_, classes := m.(learners.Classifier)
	for i := range n {
		for j := range t {
			e := values.At(i, j) - d.YTest.At(i, j)
			if classes && e != 0 {
				e = 1
			}
			sum += weightAt(d.TestWeights, i) * e * e / float64(t)
		}
	}
	return sum, nil
}

// gridTrial is a setting in the report.
type gridTrial struct {
	Parameters map[string]string `json:"parameters"`
	Score      *float64          `json:"score"` // null: Error says why
	SD         float64           `json:"sd"`    // of the scores of the folds
	Seconds    float64           `json:"seconds"`
	Error      string            `json:"error,omitempty"`
}

// newGridReport reports the settings; the first of the best score is the best.
func newGridReport(f *tuneFlags, task learners.Task, points []*gridPoint, dev backend.Device, say func(error) string) tuneReport {
	r := tuneReport{Program: "tune", By: f.by, Search: f.search, Learner: f.learner, Device: dev.Info().Device, Vary: []string{}, task: task}
	score := func(p *gridPoint) float64 { return p.score(task, f.by) }
	for i, p := range points {
		if score(p) < score(points[r.best]) {
			r.best = i
		}
		t := gridTrial{Parameters: maps.Clone(p.given), Seconds: p.seconds}
		delete(t.Parameters, "seed")
		if p.kernel != nil {
			t.Parameters["kernel"] = p.kernel.String()
		}
		if v := score(p); !math.IsInf(v, 1) {
			t.Score = &v
			var scores []float64
			for _, s := range p.scores {
				one := gridPoint{sum: s, rows: 1}
				scores = append(scores, one.score(task, f.by))
			}
			t.SD = validate.NewSummary(scores).SD
		} else if p.err != nil {
			t.Error = say(p.err)
		}
		r.Grid = append(r.Grid, t)
		for name, v := range t.Parameters {
			if !slices.Contains(r.Vary, name) && v != r.Grid[0].Parameters[name] {
				r.Vary = append(r.Vary, name)
			}
		}
	}
	slices.Sort(r.Vary)
	r.showGrid(r.best)
	return r
}

// showGrid makes a setting what is fitted.
func (r *tuneReport) showGrid(at int) {
	best := r.Grid[at]
	r.best, r.Parameters, r.Score, r.Kernel = at, best.Parameters, *best.Score, best.Parameters["kernel"]
}

// gridText is the table of the settings.
func (r tuneReport) gridText() string {
	lines := [][]string{append(append([]string{""}, r.Vary...), r.heading(), "± sd", "time")}
	for i, t := range r.Grid {
		line := []string{map[bool]string{true: "*"}[i == r.best]}
		for _, name := range r.Vary {
			line = append(line, t.Parameters[name])
		}
		if t.Score == nil {
			line = append(line, "none", "")
		} else {
			line = append(line, short(*t.Score), short(t.SD))
		}
		lines = append(lines, append(line, seconds(t.Seconds)))
	}
	return texttable.Format("l"+strings.Repeat("l", len(r.Vary))+"rrr", lines)
}

// drawGrid draws the scores over the number that varies most, a line for each setting of
// the other parameters: the eight best of them.
func (r tuneReport) drawGrid() ([]byte, error) {
	number := func(t gridTrial, name string) (float64, bool) {
		text := t.Parameters[name]
		if k, err := kernels.Parse(text); name == "kernel" && err == nil && len(kernels.Params(k)) > 0 {
			return kernels.Params(k)[0].Value, true
		}
		v, err := strconv.ParseFloat(text, 64)
		return v, err == nil
	}
	axis, most := "", 1
	for _, name := range r.Vary {
		seen := map[float64]bool{}
		for _, t := range r.Grid {
			if v, ok := number(t, name); ok {
				seen[v] = true
			}
		}
		if len(seen) > most {
			axis, most = name, len(seen)
		}
	}
	if axis == "" {
		return nil, usagef("--plot: no number varies that could be drawn over")
	}
	lines, lowest := map[string]*spreadCurve{}, map[string]float64{}
	positive := true
	for _, t := range r.Grid {
		x, ok := number(t, axis)
		if !ok || t.Score == nil {
			continue
		}
		var rest []string
		for _, name := range r.Vary {
			if name != axis {
				rest = append(rest, name+" "+t.Parameters[name])
			}
		}
		name := strings.Join(rest, ", ")
		if lines[name] == nil {
			lines[name], lowest[name] = &spreadCurve{name: cmp.Or(name, r.Learner)}, *t.Score
		}
		c := lines[name]
		c.x, c.at = append(c.x, x), append(c.at, validate.Summary{Mean: *t.Score, SD: t.SD, N: 1})
		lowest[name], positive = min(lowest[name], *t.Score), positive && x > 0
	}
	names := slices.SortedFunc(maps.Keys(lines), func(a, b string) int { return cmp.Or(cmp.Compare(lowest[a], lowest[b]), cmp.Compare(a, b)) })
	var curves []spreadCurve
	for _, name := range names[:min(len(names), len(curveColors))] {
		curves = append(curves, *lines[name])
	}
	label := axis
	if k, err := kernels.Parse(r.Kernel); axis == "kernel" && err == nil {
		label = kernels.Params(k)[0].Name
	}
	p := newPanel(fmt.Sprintf("%s: %s %s at best", r.Learner, r.heading(), short(r.Score)), label, r.heading())
	if positive {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, logTicks{}
	}
	addGrid(p)
	if err := drawSpreads(p, curves); err != nil {
		return nil, err
	}
	return drawPage([][]*panel{{p}})
}
