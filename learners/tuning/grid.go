package tuning

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
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/fitreport"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/pool"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
	"github.com/mercer-go/mercer/solvers"
)

// gridSteps is the number of kernels that SearchGrid tries if GridParams.Steps is 0.
const gridSteps = 7

// GridParams are the parameters of SearchGrid.
type GridParams struct {
	Learner string        // the name of the learner
	Task    learners.Task // "" means the first task of the learner
	// Axes are parameters of the learner with the values to try; the last axis varies fastest.
	// SearchGrid adds the default axis of the learner, Description.Grid, unless Axes has the
	// parameter of that axis, or a parameter that cannot be combined with it.
	Axes []Axis
	// Kernel is the kernel whose parameters vary. If it is nil, the kernel is the Gaussian whose sigma is the median
	// distance, or none if the learner has no kernel or is linear by default. Vary, Reach and Steps are as in Params,
	// but Steps is 7 by default.
	Kernel kernels.Kernel
	Vary   []string
	Reach  float64
	Steps  int
	// Criterion is KFold, the default, or Evidence, for learners whose models report the log evidence.
	Criterion Criterion
	Folds     int    // number of folds for KFold; 0 means 5. The folds are stratified by class
	Seed      uint64 // seed of the folds, and of learners that draw random numbers
}

// Axis is a parameter of a learner with the values to try, as texts for Description.Make. A value
// "V×" means V times a scale of the data: for lasso the smallest λ at which all weights are 0, for
// other learners the variance of the target.
type Axis struct {
	Parameter string
	Values    []string
}

// Setting is a point of a grid.
type Setting struct {
	Parameters map[string]string // values for Description.Make
	// Score is the root-mean-square error on the folds, for classes the fraction of wrong predictions,
	// or for Evidence −1/n times the log evidence of n samples. It is +Inf if Err is set.
	Score   float64
	SD      float64 // standard deviation of the scores over the folds
	Seconds float64 // total time of the fits of the setting
	Err     error

	fit            learners.Fitter
	scores, totals []float64 // for each fold, the weighted sum of errors and the sum of weights
}

// Fit fits the learner with the Parameters of a setting that SearchGrid returned.
func (s Setting) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (learners.Model, error) {
	if s.fit == nil {
		return nil, errors.New("tuning: the setting was not returned by SearchGrid")
	}
	return s.fit(ctx, dev, x, y, o)
}

// SearchGrid scores each point of a grid by cross-validation. The settings are in the order of the points. The
// fits run concurrently on the devices of the Runner r, or on the threads of its only device. The weights of the
// samples also apply to the scores. If a point cannot be fitted, its Err is set.
func SearchGrid(ctx context.Context, r validate.Runner, par GridParams) ([]Setting, error) {
	d, err := learners.Find(par.Learner)
	if err != nil {
		return nil, fmt.Errorf("tuning: %w", err)
	}
	par.Task, par.Criterion = cmp.Or(par.Task, d.Tasks[0]), cmp.Or(par.Criterion, KFold)
	par.Folds, par.Steps, par.Reach = cmp.Or(par.Folds, 5), cmp.Or(par.Steps, gridSteps), cmp.Or(par.Reach, 30)
	if par.Criterion != KFold && par.Criterion != Evidence {
		return nil, fmt.Errorf("tuning: a grid is scored by %s or %s, not by %s", KFold, Evidence, par.Criterion)
	}
	allRows := make([]int, r.Data.Len())
	for i := range allRows {
		allRows[i] = i
	}
	data, err := r.Data.Split(allRows, nil)
	if err != nil {
		return nil, err
	}
	settings, err := par.settings(ctx, d, data, r.Options.Classes)
	if err != nil {
		return nil, err
	}
	splits, folds := validate.Splits(func(int) (train, test []int) { return allRows, allRows }), 1
	if par.Criterion == KFold {
		folds = par.Folds
		if splits, err = validate.KFold(len(allRows), folds, strata(par.Task, data.Train.Y), par.Seed); err != nil {
			return nil, err
		}
	}
	return settings, par.fit(ctx, r, settings, splits, folds)
}

// strata returns the class number of each sample, or nil for regression.
func strata(task learners.Task, y *mat.Dense) (list []int) {
	if task != learners.Classification {
		return nil
	}
	classOf := map[float64]int{}
	for _, v := range mat.Col(nil, 0, y) {
		if _, ok := classOf[v]; !ok {
			classOf[v] = len(classOf)
		}
		list = append(list, classOf[v])
	}
	return list
}

func (par GridParams) settings(ctx context.Context, d learners.Description, data *validate.Part, classes []string) ([]Setting, error) {
	first := map[string]string{}
	if _, ok := d.Parameter("seed"); ok {
		first["seed"] = strconv.FormatUint(par.Seed, 10)
	}
	points := []map[string]string{first}
	extend := func(name string, values []string) {
		var extended []map[string]string
		for _, p := range points {
			for _, v := range values {
				point := maps.Clone(p)
				point[name] = v
				extended = append(extended, point)
			}
		}
		points = extended
	}
	if _, ok := d.Parameter("kernel"); ok && par.Kernel == nil && !d.LinearByDefault() {
		sigma, err := learners.MedianDistance(ctx, data.Train.X, data.Train.Weights, par.Seed)
		if err != nil {
			return nil, err
		}
		par.Kernel = kernels.Gaussian{Sigma: sigma}
	}
	if par.Kernel != nil {
		list, err := kernelsOf(par.Kernel, par.Vary, par.Reach, par.Steps)
		if err != nil {
			return nil, err
		}
		var texts []string
		for _, k := range list {
			texts = append(texts, k.String())
		}
		extend("kernel", texts)
	}
	scale := 0.0
	for _, axis := range par.axes(d) {
		values := slices.Clone(axis.Values)
		for i, v := range values {
			number, relative := strings.CutSuffix(v, "×")
			if !relative {
				continue
			}
			if scale == 0 {
				var err error
				if scale, err = scaleOf(par, data, classes); err != nil {
					return nil, err
				}
			}
			multiplier, err := strconv.ParseFloat(number, 64)
			if err != nil {
				return nil, fmt.Errorf("tuning: %s: want a number before ×, got %q", axis.Parameter, v)
			}
			values[i] = strconv.FormatFloat(multiplier*scale, 'g', 4, 64)
		}
		extend(axis.Parameter, values)
	}
	settings := make([]Setting, len(points))
	for i, parameters := range points {
		fit, err := d.Make(par.Task, parameters)
		if err != nil {
			return nil, err
		}
		settings[i] = Setting{Parameters: parameters, fit: fit}
	}
	return settings, nil
}

// axes returns par.Axes, and the default axis of the learner unless par.Axes replaces it.
func (par GridParams) axes(d learners.Description) []Axis {
	name, list, ok := strings.Cut(d.Grid, "=")
	// λ and θ of lasso, C and λ of support vector machines, λ and the support of l0 exclude each other.
	excludes := map[string]string{"theta": "lambda", "lambda": "C", "support": "lambda"}
	replaced := slices.ContainsFunc(par.Axes, func(a Axis) bool {
		return a.Parameter == name || excludes[a.Parameter] == name || excludes[name] == a.Parameter
	})
	if !ok || replaced {
		return par.Axes
	}
	return append(slices.Clone(par.Axes), Axis{name, strings.Split(list, ",")})
}

// scaleOf returns the scale of the data by which V is multiplied in a value "V×"; see Axis.
func scaleOf(par GridParams, data *validate.Part, classes []string) (scale float64, err error) {
	y := data.Train.Y
	if par.Task == learners.Classification {
		if y, err = learners.Signs(y, classes); err != nil {
			return 0, err
		}
	}
	n, t := y.Dims()
	for j := range t {
		c := mat.Col(nil, j, y)
		mean, total := numeric.Mean(c, data.Train.Weights), 0.0
		scaled := make([]float64, n)
		for i := range n {
			w := 1.0
			if data.Train.Weights != nil {
				w = data.Train.Weights[i]
			}
			c[i] -= mean
			scaled[i] = w * c[i]
			total += w
		}
		if par.Learner == "lasso" {
			x, err := numeric.PointsOf(data.Train.X)
			if err != nil {
				return 0, fmt.Errorf("tuning: x: %w", err)
			}
			g := make([]float64, x.Cols) // Xᵀy
			for i, v := range scaled {
				x.AddTo(g, v, i)
			}
			for _, v := range g {
				scale = max(scale, 2*math.Abs(v))
			}
		} else {
			scale = max(scale, numeric.Dot(c, scaled)/total)
		}
	}
	return cmp.Or(scale, 1), nil
}

// gridFit is the fit of a setting to the samples outside one fold.
type gridFit struct {
	setting *Setting
	fold    int
	err     error
}

func (par GridParams) fit(ctx context.Context, r validate.Runner, settings []Setting, splits validate.Splits, folds int) error {
	devices := r.Devices
	if len(devices) == 1 {
		shares, err := pool.Share(devices[0], folds*len(settings))
		if err != nil {
			return err
		}
		for _, dev := range shares {
			defer dev.Close()
		}
		if len(shares) > 0 {
			devices = shares
		}
	}
	// The folds are processed in groups, with one fold for each device, so that each device encodes a fold only once.
	var fits []*gridFit
	for first := 0; first < folds; first += len(devices) {
		for i := range settings {
			for k := first; k < min(first+len(devices), folds); k++ {
				settings[i].scores, settings[i].totals = append(settings[i].scores, 0), append(settings[i].totals, 0)
				fits = append(fits, &gridFit{setting: &settings[i], fold: k})
			}
		}
	}
	shared := r
	shared.Devices = devices
	if err := par.fitAll(ctx, shared, fits, splits); err != nil {
		return err
	}
	if len(devices) > len(r.Devices) { // repeat the fits that exceeded their share of the memory, one at a time on each device
		retries := slices.DeleteFunc(slices.Clone(fits), func(f *gridFit) bool {
			return !errors.Is(f.err, backend.ErrMemory) && !errors.As(f.err, new(*solvers.BudgetError))
		})
		if err := par.fitAll(ctx, r, retries, splits); err != nil {
			return err
		}
	}
	for _, f := range fits {
		f.setting.Err = cmp.Or(f.setting.Err, f.err)
	}
	for i := range settings {
		settings[i].setScore(par)
	}
	return nil
}

// fitAll runs the fits, one at a time on each device.
func (par GridParams) fitAll(ctx context.Context, r validate.Runner, fits []*gridFit, splits validate.Splits) error {
	if len(fits) == 0 {
		return nil
	}
	var folds []int
	for _, f := range fits {
		folds = append(folds, f.fold)
	}
	seconds := make([]float64, len(fits))
	err := r.Each(ctx, splits, folds, func(ctx context.Context, v validate.Fit) error {
		f, start := fits[v.Number], time.Now()
		s := f.setting
		s.scores[f.fold], s.totals[f.fold], f.err = par.evaluate(ctx, s, v)
		seconds[v.Number] = time.Since(start).Seconds()
		return nil
	})
	for k, f := range fits {
		f.setting.Seconds += seconds[k]
	}
	if fitErr := (*validate.FitError)(nil); errors.As(err, &fitErr) && ctx.Err() == nil {
		if par.Criterion == Evidence { // for Evidence the model is fitted to all samples
			return fitErr.Err
		}
		return fmt.Errorf("%w; in the fit without fold %d of %d", fitErr.Err, folds[fitErr.Fit]+1, par.Folds)
	}
	return err
}

// evaluate fits the setting to the training samples. The result sum is the weighted sum of the squared errors of the
// held-out samples, for classes the sum of the weights of wrongly predicted samples, and for the criterion Evidence
// minus the log evidence. The result total is the sum of all weights of held-out samples.
func (par GridParams) evaluate(ctx context.Context, s *Setting, v validate.Fit) (sum, total float64, err error) {
	dev, p, o := v.Device, v.Part, v.Options
	m, err := s.Fit(ctx, dev, p.Train.X, p.Train.Y, o)
	if err != nil {
		return 0, 0, err
	}
	weight := func(i int) float64 {
		if p.Test.Weights == nil {
			return 1
		}
		return p.Test.Weights[i]
	}
	n, t := p.Test.Y.Dims()
	for i := range n {
		total += weight(i)
	}
	if par.Criterion == Evidence {
		if v, ok := fitreport.Evidence(m); ok {
			return -v, total, nil
		}
		return 0, 0, fmt.Errorf("a model of %s has no log evidence: use the criterion %s", m.Learner(), KFold)
	}
	values, err := m.Predict(ctx, dev, p.Test.X)
	if err == nil {
		err = numeric.CheckFinite("the prediction", values)
	}
	if err != nil {
		return 0, 0, err
	}
	_, classes := m.(learners.Classifier)
	for i := range n {
		for j := range t {
			e := values.At(i, j) - p.Test.Y.At(i, j)
			if classes && e != 0 {
				e = 1
			}
			sum += weight(i) * e * e / float64(t)
		}
	}
	return sum, total, nil
}

func (s *Setting) setScore(par GridParams) {
	score := func(sum, total float64) float64 {
		if v := sum / total; par.Task == learners.Classification || par.Criterion == Evidence {
			return v
		}
		return math.Sqrt(sum / total)
	}
	sum, total := 0.0, 0.0
	var scores []float64
	for k, v := range s.scores {
		sum, total = sum+v, total+s.totals[k]
		scores = append(scores, score(v, s.totals[k]))
	}
	s.Score, s.SD = score(sum, total), validate.NewSummary(scores).SD
	if s.Err != nil || math.IsNaN(s.Score) {
		s.Score, s.SD = math.Inf(1), 0
	}
}

// BestSetting returns the index of the first setting with the best score. If no setting has a
// score, BestSetting returns the error of the last setting that has an error.
func BestSetting(settings []Setting) (best int, err error) {
	for i, s := range settings {
		if s.Score < settings[best].Score {
			best = i
		}
		err = cmp.Or(s.Err, err)
	}
	if len(settings) > 0 && !math.IsInf(settings[best].Score, 1) {
		return best, nil
	}
	return 0, fmt.Errorf("no setting of the grid can be fitted: %w", cmp.Or(err, errors.New("no setting has a score")))
}
