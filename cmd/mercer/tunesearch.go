package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/attempt"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/process"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/tuning"
	"github.com/mercer-go/mercer/solvers"
)

// tuneData is the encoded table, for the search and for the final fit.
type tuneData struct {
	source string
	enc    *dataset.Encoder
	x      mat.Matrix // features, or points of a Gram matrix; nil if the input is a column of objects
	texts  []string   // texts or trees, if they are the input
	y      *mat.Dense // the encoded targets
	signs  *mat.Dense // targets in the search: y, or ±1 for classes

	weights []float64 // weights of the rows; nil means all 1
	product []float64 // weights multiplied by the class weights, for fits
}

func (a *app) tune(ctx context.Context, f tuneFlags, file string) error {
	start := time.Now()
	if err := f.check(); err != nil {
		return err
	}
	if f.model != "" && f.model == f.plot {
		return usagef("--plot: %s is the file of the model; give another name", f.plot)
	}
	for _, out := range []struct{ flag, path string }{{"--model", f.model}, {"--plot", f.plot}} {
		if out.path != "" {
			if err := a.checkOutput(ctx, out.flag, out.path, file, a.input.labels); err != nil {
				return err
			}
		}
	}
	devices, closeAll, err := a.openDevices()
	if err != nil {
		return err
	}
	defer closeAll()
	dev := devices[0]
	f.otherDevices = devices[1:]
	memory := a.newBudget(dev)
	table, err := a.table(file, memory)
	if err != nil {
		return err
	}
	task := f.taskFor(table)
	if err := f.checkLearner(task); err != nil {
		return err
	}
	rules := f.objects.rules(f.rules(task))
	if table, _, err = rules.Weighted(table); err != nil {
		return err
	}
	train, test, err := holdOut("--test-fraction", "test", table, f.testFraction, f.seed, rules)
	if err != nil {
		return err
	}
	d, err := f.learnData(file, train, task, rules, &a.input, memory)
	if err != nil {
		return err
	}
	if test != nil { // find errors in the held-out rows before the search
		_, err := d.enc.Targets(test)
		if err == nil && d.x != nil {
			_, err = d.enc.Encode(test)
		} else if err == nil {
			_, err = d.enc.Texts(test)
		}
		if err != nil {
			return fmt.Errorf("%w; the row was held out by --test-fraction", err)
		}
	}
	r, settings, draw, err := a.search(ctx, devices, &f, task, d, train, memory)
	if err != nil {
		return err
	}
	if f.task == "" && f.learner != "gaussian-process" {
		r.Assumed = assumed(table, f.targets, task)
	}
	r.N, r.D = train.Rows(), d.enc.Width()
	if r.Rows = r.N; f.rows > 0 {
		r.Rows = min(r.N, f.rows)
	}
	var image []byte
	if f.plot != "" { // find errors in drawing before the fit
		pic, err := draw()
		if err == nil {
			image, err = pic.render(f.plot, pixels{})
		}
		if err != nil {
			return err
		}
	}
	var fitErr error // error of the final fit, returned after the scores are printed
	if f.model != "" || test != nil {
		b, index, warning, err := a.fitBest(ctx, dev, f, task, settings, d, memory)
		if err == nil && index > 0 {
			settings[index].show(&r)
			r.PassedOver, r.Warnings = index, append(r.Warnings, warning)
		}
		if err == nil {
			for _, fact := range learners.FactsOf(b.Model, flagOf(a.command)) {
				if fact.Name == "warning" {
					r.Warnings = append(r.Warnings, fmt.Sprint(fact.Value))
				}
			}
		}
		if err != nil && ctx.Err() == nil {
			r.Refused, fitErr = a.oneLine(err), err
		} else if err != nil {
			return err
		}
		if test != nil && fitErr == nil {
			x, y, err := a.encodeWith(ctx, b, test)
			if err != nil {
				return fmt.Errorf("%w; the row was held out by --test-fraction", err)
			}
			_, weights, err := rules.Weighted(test)
			if err != nil {
				return err
			}
			if r.Test, err = a.scoreOf(ctx, dev, b.Model, d.enc.Classes(), x, y, weights); err != nil {
				return err
			}
		}
		if f.model != "" && fitErr == nil {
			if err := a.commit(ctx, func() error { return modelfile.Save(f.model, b) }); err != nil {
				return err
			}
			r.Learner, r.Model = b.Model.Learner(), f.model
		}
	}
	// The picture is written only if the model has been written.
	if f.plot != "" && (f.model == "" || fitErr == nil) {
		if err := a.writeFile(ctx, "--plot", f.plot, image); err != nil {
			return err
		}
		r.Plot = f.plot
	}
	r.Seconds = time.Since(start).Seconds()
	r.Planned, r.Used = memory.total(), process.Read()
	err = a.printJSONOrText(ctx, r, r.text)
	if err == nil && fitErr != nil {
		err = fmt.Errorf("the search has finished, but the fit to all rows failed: %w", fitErr)
	}
	return err
}

// setting is a scored setting: the parameters of the learner, and the kernel on texts or trees if there is one.
type setting struct {
	learner    string // "" means the learner that --learner names
	paramTexts map[string]string
	object     objects.Kernel
	score      float64
	show       func(*tuneReport) // makes the setting the fitted setting of the report
}

// name returns the values of the parameters that the search chose.
func (s setting) name() string {
	var list []string
	for _, parameter := range slices.Sorted(maps.Keys(s.paramTexts)) {
		value := s.paramTexts[parameter]
		switch {
		case parameter == "kernel" && s.object != nil:
			value = s.object.String()
		case parameter == "seed" || parameter == "intercept" || parameter == "optimize":
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			value = fourDigits(v)
		}
		list = append(list, parameter+" "+value)
	}
	return strings.Join(list, ", ")
}

// sortSettings sorts settings by their scores, the best first.
func sortSettings(settings []setting) {
	slices.SortStableFunc(settings, func(a, b setting) int { return cmp.Compare(a.score, b.score) })
}

// search scores settings. It returns the report, the settings that have a score (the best first), and a function
// that draws the scores.
func (a *app) search(ctx context.Context, devices []backend.Device, f *tuneFlags, task learners.Task, d *tuneData, train *dataset.Table, memory *budget) (r tuneReport, settings []setting, draw func() (picture, error), err error) {
	if f.byGrid() {
		points, err := a.searchGrid(ctx, devices, f, task, d, train, memory)
		if err != nil {
			return r, nil, nil, err
		}
		r := newGridReport(f, task, points, devices[0], a.oneLine)
		for i, p := range points {
			if !math.IsInf(p.Score, 1) {
				settings = append(settings, setting{"", p.Parameters, p.kernel, p.Score, func(r *tuneReport) { r.showGrid(i) }})
			}
		}
		sortSettings(settings)
		return r, settings, r.gridPicture, nil
	}
	results, err := a.searchAll(ctx, devices[0], *f, d, memory)
	if err != nil {
		return r, nil, nil, err
	}
	best := bestIndex(results)
	r = newTuneReport(*f, results, best, devices[0])
	if text := results[best].Warning; text != "" {
		r.Warnings = []string{text}
	}
	trial := 0 // index of a trial in the report
	for _, result := range results {
		learner := f.learnerFor(result, task)
		for _, t := range result.Trials {
			for _, p := range t.Points {
				if math.IsInf(p.Score, 0) || math.IsNaN(p.Score) {
					continue
				}
				paramTexts := map[string]string{"lambda": exact(p.Lambda), "intercept": strconv.FormatBool(!f.noIntercept)}
				if learner != "ridge" {
					paramTexts["kernel"] = t.Kernel.String()
				}
				if learner == "gaussian-process" {
					paramTexts["optimize"] = "false"
				}
				index := trial
				settings = append(settings, setting{learner, paramTexts, result.object, p.Score, func(r *tuneReport) { r.showTrial(index, p.Lambda, displayedScore(result.Params.Criterion, p.Score)) }})
			}
			trial++
		}
	}
	sortSettings(settings)
	return r, settings, func() (picture, error) { return surfacePicture(results[best].Result), nil }, nil
}

// fitBest fits the best setting that can be fitted to all rows, and returns its index in settings and a warning if
// it is not the first. If memory or time ran out, fitBest returns the error.
func (a *app) fitBest(ctx context.Context, dev backend.Device, f tuneFlags, task learners.Task, settings []setting, d *tuneData, memory *budget) (b modelfile.Bundle, index int, warning string, err error) {
	index, warning, err = attempt.Candidates{
		Len:  len(settings),
		Name: func(i int) string { return settings[i].name() },
		Refused: func(err error) bool {
			return ctx.Err() == nil && !errors.Is(err, backend.ErrMemory) && !errors.As(err, new(*solvers.BudgetError))
		},
		Fit: func(i int) (err error) {
			s := settings[i]
			f.learner = cmp.Or(s.learner, f.learner)
			b, err = a.fitTuned(ctx, dev, f, task, s.paramTexts, s.object, d, memory)
			return err
		},
	}.First()
	return b, index, warning, err
}

// learnData learns the encoding of a table and encodes it.
func (f *tuneFlags) learnData(source string, train *dataset.Table, task learners.Task, rules dataset.Rules, input *inputFlags, memory *budget) (*tuneData, error) {
	enc, err := dataset.Learn(train, rules)
	if err != nil {
		return nil, err
	}
	if err := memory.planEncoding(train, enc, ""); err != nil {
		return nil, err
	}
	d := &tuneData{source: source, enc: input.apply(enc)}
	if f.objects.flag() == "" {
		d.x, d.y, err = encodeTraining(enc, train)
	} else if d.texts, err = enc.Texts(train); err == nil {
		d.y, err = enc.Targets(train)
	}
	if err != nil {
		return nil, err
	}
	if _, d.weights, err = rules.Weighted(train); err != nil {
		return nil, err
	}
	if d.product, err = f.reweight(d.weights, enc.Classes(), d.y); err != nil {
		return nil, err
	}
	d.signs = d.y
	if task == learners.Classification {
		d.signs, err = learners.Signs(d.y, enc.Classes())
	}
	return d, err
}

// searchAll searches from each kernel, on --rows rows chosen at random.
func (a *app) searchAll(ctx context.Context, dev backend.Device, f tuneFlags, d *tuneData, memory *budget) ([]tuned, error) {
	list, err := f.parseKernels()
	if err != nil {
		return nil, err
	}
	rows := f.sample(d.y)
	y, weights := rowsAt(d.signs, rows), weightsAt(d.product, rows)
	var results []tuned
	for i, c := range list {
		x, err := a.prepareCandidate(ctx, &f, d, rows, &c)
		if err != nil {
			return nil, err
		}
		p := a.newProgress()
		par := f.params(func(q solvers.Progress) {
			q.Fraction = (float64(i) + q.Fraction) / float64(len(list))
			p.report(q)
		})
		problem, err := f.problem(c.kernel, x, y, weights)
		if err != nil {
			return nil, err
		}
		limits := learners.Options{}
		fitCtx := memory.fitting(ctx, &limits)
		par.Memory = limits.Memory
		res, err := tuning.Search(fitCtx, dev, problem, par)
		p.close()
		if err != nil {
			return nil, err
		}
		results = append(results, tuned{c, res})
	}
	return results, nil
}

// prepareCandidate returns the given rows as the matrix that the candidate's kernel takes. It sets a missing kernel.
func (a *app) prepareCandidate(ctx context.Context, f *tuneFlags, d *tuneData, rows []int, c *candidate) (x mat.Matrix, err error) {
	if c.object != nil {
		texts := make([]string, len(rows))
		for q, row := range rows {
			texts[q] = d.texts[row]
		}
		return a.trainingPoints(ctx, d.source, c.object, &modelfile.Objects{Training: texts})
	}
	points, err := numeric.PointsOf(d.x)
	if err != nil {
		return nil, err
	}
	if x = points.Matrix(); len(rows) < points.Rows {
		x = points.Take(rows).Matrix()
	}
	if c.kernel == nil {
		if c.kernel, err = f.startKernel(ctx, x, weightsAt(d.product, rows)); err != nil {
			return nil, err
		}
	}
	return x, f.checkVary(c.kernel)
}

// sample chooses --rows rows of y at random, and returns their indices in ascending order.
func (f *tuneFlags) sample(y *mat.Dense) []int {
	n, _ := y.Dims()
	if f.rows == 0 || f.rows >= n {
		rows := make([]int, n)
		for i := range rows {
			rows[i] = i
		}
		return rows
	}
	rows := rand.New(rand.NewPCG(f.seed, tuneStream)).Perm(n)[:f.rows]
	slices.Sort(rows)
	return rows
}

// tuneStream selects a separate random stream for the choice of rows.
const tuneStream = 0x74756e65 // "tune"

func (f *tuneFlags) params(report func(solvers.Progress)) tuning.Params {
	par := tuning.Params{
		Criterion: tuning.Criterion(f.criterion), Strategy: tuning.Strategy(f.search), Vary: f.vary,
		Steps: f.steps, Lambdas: f.lambdas, Seed: f.seed, Progress: report, Devices: f.otherDevices,
	}
	if par.Strategy != tuning.Gradient {
		par.Reach = f.reach
	}
	if par.Criterion == tuning.KFold {
		par.Folds = f.folds
	}
	return par
}

// problem returns the problem to solve in the search. For --by evidence it centers the targets.
func (f *tuneFlags) problem(k kernels.Kernel, x mat.Matrix, y *mat.Dense, weights []float64) (solvers.Problem, error) {
	evidence := f.criterion == string(tuning.Evidence)
	if evidence && !f.noIntercept {
		y = mat.DenseCopyOf(y)
		n, t := y.Dims()
		for j := range t {
			mean := numeric.Mean(mat.Col(nil, j, y), weights)
			for i := range n {
				y.Set(i, j, y.At(i, j)-mean)
			}
		}
	}
	points, err := numeric.PointsOf(x)
	return solvers.Problem{Kernel: k, X: points.Dense, Sparse: points.Sparse, Y: hostOf(y), Weights: weights, Intercept: !evidence && !f.noIntercept}, err
}

func hostOf(m *mat.Dense) backend.Host[float64] {
	r := m.RawMatrix()
	return backend.Host[float64]{Rows: r.Rows, Cols: r.Cols, Stride: r.Stride, Data: r.Data}
}

// taskFor returns --task if given, the only task of a learner, or a task that suits the target.
func (f *tuneFlags) taskFor(t *dataset.Table) learners.Task {
	d, _ := learners.Find(f.learner)
	switch {
	case f.task != "":
		return learners.Task(f.task)
	case f.byGrid() && len(d.Tasks) == 1:
		return d.Tasks[0]
	case len(f.targets) == 1 && t.OnlyTexts(f.targets[0]):
		return learners.Classification
	}
	return learners.Regression
}

// checkLearner returns an error for a learner that does not support the task.
func (f *tuneFlags) checkLearner(task learners.Task) error {
	switch {
	case f.learner == "gaussian-process" && task == learners.Classification:
		return usagef("--learner: gaussian-process is for numbers, not for classes; use kernel-ridge")
	case task == learners.Classification && len(f.targets) > 1:
		return usagef("--target: classes must be in one column, but %d columns are named", len(f.targets))
	}
	return nil
}

// learnerFor returns --learner if given, and otherwise a learner that suits the result of the search.
func (f *tuneFlags) learnerFor(t tuned, task learners.Task) string {
	switch {
	case f.learner != "":
		return f.learner
	case f.criterion == string(tuning.Evidence) && task == learners.Regression:
		return "gaussian-process"
	case t.linear(): // ridge fits the same model in less time
		return "ridge"
	default:
		return "kernel-ridge"
	}
}

// fitTuned fits the learner to all rows, with the parameters in paramTexts and, if not nil, the kernel object.
func (a *app) fitTuned(ctx context.Context, dev backend.Device, f tuneFlags, task learners.Task, paramTexts map[string]string, object objects.Kernel, data *tuneData, memory *budget) (modelfile.Bundle, error) {
	b := modelfile.Bundle{Encoder: data.enc}
	d, err := learners.Find(f.learner)
	if err != nil {
		return b, err
	}
	if f.learner == "gaussian-process" && paramTexts["lambda"] == "0" {
		return b, usagef("--learner: gaussian-process needs a lambda > 0, but the search found 0; use kernel-ridge")
	}
	fit, err := d.Make(task, paramTexts)
	if err != nil {
		return b, err
	}
	x := data.x
	if object != nil {
		b.Objects = &modelfile.Objects{Kernel: object.String(), Training: data.texts}
		if x, err = a.trainingPoints(ctx, data.source, object, b.Objects); err != nil {
			return b, err
		}
		n, d := x.Dims()
		memory.addData(8 * int64(n) * int64(d))
	}
	p := a.newProgress()
	defer p.close()
	options := learners.Options{Classes: data.enc.Classes(), Weights: data.product, Progress: p.report}
	if b.Model, err = fit(memory.fitting(ctx, &options), dev, x, data.y, options); err != nil {
		return b, err
	}
	r := newFitReport(a.command, b.Model, dev)
	r.Task, r.Parameters, r.order = task, paramTexts, slices.Sorted(maps.Keys(paramTexts))
	r.N, r.D = x.Dims()
	if b.Objects != nil {
		r.D, r.Kernel = 1, b.Objects.Kernel
	}
	b.Fit = r.savedJSON()
	return b, nil
}
