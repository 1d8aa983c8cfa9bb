package tuning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/attempt"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// Criterion names the score of a kernel and a λ. Lower scores are better.
type Criterion string

const (
	LeaveOneOut Criterion = "loo"      // mean squared leave-one-out error, in closed form
	GCV         Criterion = "gcv"      // generalized cross-validation, in closed form
	KFold       Criterion = "kfold"    // mean squared error on held-out folds
	Evidence    Criterion = "evidence" // −log marginal likelihood per sample, with a fitted scale
)

// Criteria lists the criteria, the default first.
var Criteria = []string{string(LeaveOneOut), string(GCV), string(KFold), string(Evidence)}

// Strategy is the method that chooses the kernels to try.
type Strategy string

const (
	Grid     Strategy = "grid"     // one common factor for all parameters, equally spaced
	Golden   Strategy = "golden"   // one common factor, by a golden section after a coarse grid
	Bayes    Strategy = "bayes"    // a factor for each parameter, by a Bayesian search
	Gradient Strategy = "gradient" // a factor for each parameter, by derivatives of the likelihood; for Evidence only
)

// Strategies lists the strategies, the default first.
var Strategies = []string{string(Grid), string(Golden), string(Bayes), string(Gradient)}

// Params are the parameters of a Search; the zero value suits most problems.
type Params struct {
	Criterion Criterion // "" means LeaveOneOut
	Strategy  Strategy  // "" means Grid
	// Vary names the parameters that vary, by their names in kernels.Params; nil means the length
	// scales, empty means none. Vary must be nil for Gradient, which varies all parameters.
	Vary []string
	// Reach is the largest factor by which a parameter may differ from its initial value; 0 means
	// 30. It must be 0 for Gradient, which has its own limit.
	Reach float64
	// Steps is the number of kernels to try; 0 means 15, or for Bayes 10 plus 10 for each
	// parameter. It must be 0 for Gradient.
	Steps int
	// Lambdas are the λ that are tried with each kernel. nil means two per decade from 1e-8 to 1e3 times the mean
	// of k(x, x) and, except for KFold, additional λ near the best λ. Lambdas must be nil for Gradient.
	Lambdas  []float64
	Folds    int    // number of folds for KFold; 0 means 5. It must be 0 for other criteria
	Seed     uint64 // seed of the folds and of the random starts
	Memory   int64  // maximum number of bytes on the device; 0 means all its free memory
	Progress func(solvers.Progress)
	// Devices compute scores concurrently with the device of Search: each fits some kernels of a grid, or some
	// folds. If all devices are of the same kind, the result does not depend on their number.
	Devices []backend.Device
}

// Point is a λ that was tried.
type Point struct {
	Lambda float64
	Score  float64 // +Inf if Err is set
	Err    error   // the reason why the point has no score, or why FirstFit could not fit it
}

// Trial is a kernel that was tried.
type Trial struct {
	Kernel kernels.Kernel
	// Factors holds one common factor of all parameters, or a factor for each parameter.
	Factors []float64
	Points  []Point // in the order of increasing λ
	Seconds float64

	bestPoint int // index of the best of Points, or −1
}

// Lambda returns the best λ, and Score its score. They return NaN and +Inf if no λ was tried.
func (t Trial) Lambda() float64 { return t.best().Lambda }
func (t Trial) Score() float64  { return t.best().Score }

func (t Trial) best() Point {
	if t.bestPoint < 0 || t.bestPoint >= len(t.Points) {
		return Point{Lambda: math.NaN(), Score: math.Inf(1)}
	}
	return t.Points[t.bestPoint]
}

// Result is the result of a Search.
type Result struct {
	Params Params  // with defaults filled in; Vary names the parameters that varied
	Trials []Trial // in the order of the search; for Gradient the best first
	Best   int     // index of the best of Trials
	// Warning says that Gradient ended before it converged, or that FirstFit could not fit the point with the best
	// score. In the second case, Warning names this point and the point that was fitted instead.
	Warning string
}

// Kernel, Lambda and Score return the values of the best trial, or nil, NaN and +Inf if there is no trial.
func (r *Result) Kernel() kernels.Kernel { return r.best().Kernel }
func (r *Result) Lambda() float64        { return r.best().Lambda() }
func (r *Result) Score() float64         { return r.best().Score() }

func (r *Result) best() Trial {
	if r == nil || r.Best < 0 || r.Best >= len(r.Trials) {
		return Trial{}
	}
	return r.Trials[r.Best]
}

// FirstFit calls fit with the kernels and λ that have a score, best score first, until fit returns nil. The point
// of the last call becomes the best point of r. If rounding errors or the range of float64 prevent a fit, FirstFit
// stores the error in the point's Err and tries the next point. Any other error is returned at once. If no point
// can be fitted, the error for the best point is returned.
func (r *Result) FirstFit(fit func(k kernels.Kernel, lambda float64) error) error {
	if r == nil || len(r.Trials) == 0 {
		return errors.New("tuning: the result has no trials: it was not made by Search")
	}
	type candidate struct{ trial, point int }
	var list []candidate
	for i, t := range r.Trials {
		for k, p := range t.Points {
			if p.Err == nil && !math.IsInf(p.Score, 0) && !math.IsNaN(p.Score) {
				list = append(list, candidate{i, k})
			}
		}
	}
	point := func(i int) *Point { return &r.Trials[list[i].trial].Points[list[i].point] }
	score := func(p candidate) float64 { return r.Trials[p.trial].Points[p.point].Score }
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(score(a), score(b)) })
	index, warning, err := attempt.Candidates{
		Len: len(list),
		Name: func(i int) string {
			return fmt.Sprintf("kernel %v, lambda %.4g", r.Trials[list[i].trial].Kernel, point(i).Lambda)
		},
		Refused: attempt.Numeric,
		Fit: func(i int) error {
			err := fit(r.Trials[list[i].trial].Kernel, point(i).Lambda)
			if attempt.Numeric(err) {
				point(i).Err, point(i).Score = err, math.Inf(1)
			}
			return err
		},
	}.First()
	if err == nil {
		r.Warning, r.Best = cmp.Or(warning, r.Warning), list[index].trial
		r.Trials[r.Best].bestPoint = list[index].point
	}
	return err
}

// Search finds the kernel and the λ with the best score for p, starting at p.Kernel. The strategy Gradient also starts
// at p.Lambda; the others ignore it. Weights also apply to the scores. Search skips a λ that is too small for a kernel,
// and a kernel if all λ are too small. If it skips all kernels, it returns the error of the last kernel. Use FirstFit
// to fit the best point, because a fit at this point may not reach its tolerance.
func Search(ctx context.Context, dev backend.Device, p solvers.Problem, par Params) (*Result, error) {
	par, err := par.complete()
	if err != nil {
		return nil, err
	}
	if p.Kernel == nil {
		return nil, errors.New("tuning: the kernel is missing")
	}
	if p.Intercept && par.Criterion == Evidence {
		return nil, errors.New("tuning: evidence: an intercept has no prior: subtract the mean of y instead")
	}
	space, err := newSpace(p.Kernel, par.Vary, par.Reach)
	if err != nil {
		return nil, err
	}
	refine := par.Lambdas == nil && par.Criterion != KFold
	if par.Lambdas == nil {
		if par.Lambdas, err = defaultLambdas(p); err != nil {
			return nil, err
		}
	}
	s := &search{ctx: ctx, dev: dev, p: p, par: par, refine: refine, space: space, res: &Result{Params: par}}
	s.progress = run.NewProgress(func(stage string, fraction float64) {
		if par.Progress != nil {
			par.Progress(solvers.Progress{Stage: stage, Fraction: fraction})
		}
	}, nil, 1)
	s.res.Params.Vary = []string{}
	for _, i := range space.vary {
		s.res.Params.Vary = append(s.res.Params.Vary, space.params[i].Name)
	}
	switch {
	case par.Strategy == Gradient:
		err = s.gradient()
	case len(space.vary) == 0:
		s.planned = 1
		_, err = s.try([]float64{0})
	case par.Strategy == Golden:
		err = s.golden()
	case par.Strategy == Bayes:
		err = s.bayes()
	default:
		err = s.grid()
	}
	if err != nil {
		return nil, err
	}
	if len(s.res.Trials) == 0 {
		return nil, s.lastErr
	}
	for i, t := range s.res.Trials {
		if t.Score() < s.res.Score() {
			s.res.Best = i
		}
	}
	s.progress.Report("tune", 1)
	return s.res, nil
}

func (par Params) complete() (Params, error) {
	if par.Criterion == "" {
		par.Criterion = LeaveOneOut
	}
	if par.Strategy == "" {
		par.Strategy = Grid
	}
	if !slices.Contains(Criteria, string(par.Criterion)) {
		return par, fmt.Errorf("tuning: no criterion is called %q; the criteria are %v", par.Criterion, Criteria)
	}
	if !slices.Contains(Strategies, string(par.Strategy)) {
		return par, fmt.Errorf("tuning: no strategy is called %q; the strategies are %v", par.Strategy, Strategies)
	}
	if par.Strategy == Gradient {
		switch {
		case par.Criterion != Evidence:
			return par, fmt.Errorf("tuning: the strategy \"gradient\" needs the criterion \"evidence\", got %q", par.Criterion)
		case par.Vary != nil || par.Reach != 0 || par.Steps != 0 || par.Lambdas != nil:
			return par, errors.New("tuning: the strategy \"gradient\" varies all parameters and lambda by derivatives: leave out Vary, Reach, Steps and Lambdas")
		}
	}
	if par.Folds != 0 && par.Criterion != KFold {
		return par, fmt.Errorf("tuning: Folds needs the criterion \"kfold\", got %q", par.Criterion)
	}
	if par.Reach == 0 {
		par.Reach = 30
	}
	if par.Folds == 0 {
		par.Folds = 5
	}
	if !(par.Reach > 1) || math.IsInf(par.Reach, 1) {
		return par, fmt.Errorf("tuning: the reach must be a finite number > 1, got %v", par.Reach)
	}
	if par.Steps < 0 || par.Folds < 2 {
		return par, fmt.Errorf("tuning: steps must be ≥ 0 and folds ≥ 2, got %d and %d", par.Steps, par.Folds)
	}
	for i, l := range par.Lambdas {
		if !(l >= 0) || math.IsInf(l, 1) {
			return par, fmt.Errorf("tuning: lambda %d must be a finite number ≥ 0, got %v", i+1, l)
		}
	}
	if par.Lambdas != nil {
		par.Lambdas = slices.Compact(slices.Sorted(slices.Values(par.Lambdas)))
		if len(par.Lambdas) == 0 {
			return par, errors.New("tuning: the list of lambdas is empty")
		}
	}
	return par, nil
}

// defaultLambdas returns two λ per decade, from 1e-8 to 1e3 times the mean of k(x, x) over 1000 or more samples,
// or over all samples if there are fewer.
func defaultLambdas(p solvers.Problem) ([]float64, error) {
	x := pointsOf(p)
	if x.Rows == 0 {
		return nil, errors.New("tuning: x has no rows")
	}
	if err := p.Kernel.Check(x.Cols); err != nil {
		return nil, fmt.Errorf("tuning: %w", err)
	}
	stride := max(1, x.Rows/1000)
	mean, n := 0.0, 0.0
	for i := 0; i < x.Rows; i += stride {
		mean += x.Diag(p.Kernel, i)
		n++
	}
	mean /= n
	if !(mean > 0) || math.IsInf(mean, 1) {
		return nil, message.Errorf("tuning: the default values of lambda are multiples of the mean of k(x, x), which is %v for the kernel %v: {use a positive definite $kernel}", mean, p.Kernel)
	}
	return solvers.Lambdas(1e-8*mean, 1e3*mean, 23), nil
}

type search struct {
	ctx     context.Context
	dev     backend.Device
	p       solvers.Problem
	par     Params
	space   *space
	res     *Result
	refine  bool  // whether more λ near the best λ are tried
	lastErr error // the error of the last kernel that was skipped

	planned, finished int // number of planned trials, and of finished trials
	progress          *run.Progress
}

// steps returns par.Steps, or the argument defaultSteps if par.Steps is 0.
func (s *search) steps(defaultSteps int) int {
	if s.par.Steps > 0 {
		return s.par.Steps
	}
	return defaultSteps
}

// try returns the score of one kernel, computed by tryAll.
func (s *search) try(x []float64) (float64, error) {
	scores, err := s.tryAll([][]float64{x})
	if err != nil {
		return 0, err
	}
	return scores[0], nil
}

// reportTrial reports q, the progress of one of the planned trials, as progress of the search.
func (s *search) reportTrial(q solvers.Progress) {
	s.progress.Report("tune", (float64(s.finished)+q.Fraction)/float64(max(s.planned, s.finished+1)))
}
