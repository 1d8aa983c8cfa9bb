package tuning_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners/tuning"
	"github.com/mercer-go/mercer/solvers"
)

// wave returns y = sin(2 x₁) plus noise of standard deviation 0.2; only the first of the features has an effect.
func wave(t *testing.T, n, d int) solvers.Problem {
	t.Helper()
	const seed = 20261127
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 3}, X: backend.NewHost[float64](n, d), Y: backend.NewHost[float64](n, 1)}
	for i := range n {
		row := p.X.Row(i)
		for j := range row {
			row[j] = 4*rng.Float64() - 2
		}
		p.Y.Data[i] = math.Sin(2*row[0]) + 0.2*rng.NormFloat64()
	}
	return p
}

func device(t *testing.T, name string) backend.Device {
	t.Helper()
	dev, err := backend.Open(name, backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if inUse, _ := dev.InUse(); inUse != 0 {
			t.Errorf("%d bytes on the device were not freed", inUse)
		}
		dev.Close()
	})
	return dev
}

// TestSearchFinds checks for every criterion, strategy and device that the error of the kernel is close to the
// noise, and that its score agrees with a separate computation.
func TestSearchFinds(t *testing.T) {
	for name, backendName := range map[string]string{"best": "cpu", "ref": "ref"} {
		for _, criterion := range []tuning.Criterion{tuning.LeaveOneOut, tuning.GCV, tuning.KFold, tuning.Evidence} {
			for _, strategy := range []tuning.Strategy{tuning.Grid, tuning.Golden, tuning.Bayes, tuning.Gradient} {
				if strategy == tuning.Gradient && criterion != tuning.Evidence {
					continue
				}
				if name == "ref" && (testing.Short() || strategy != tuning.Grid) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", name, criterion, strategy), func(t *testing.T) {
					p := wave(t, 80, 1)
					reported := 0.0
					dev := device(t, backendName)
					steps := 9
					if strategy == tuning.Gradient {
						steps = 0
					}
					res, err := tuning.Search(context.Background(), dev, p, tuning.Params{
						Criterion: criterion, Strategy: strategy, Steps: steps, Seed: 1,
						Progress: func(q solvers.Progress) {
							if q.Fraction < reported || q.Fraction > 1 {
								t.Errorf("progress from %v to %v", reported, q.Fraction)
							}
							reported = q.Fraction
						},
					})
					if err != nil {
						t.Fatal(err)
					}
					if reported != 1 {
						t.Errorf("progress ends with %v", reported)
					}
					if strategy != tuning.Gradient && len(res.Trials) != 9 || !slices.Equal(res.Params.Vary, []string{"sigma"}) {
						t.Errorf("%d trials of %v", len(res.Trials), res.Params.Vary)
					}
					for _, trial := range res.Trials {
						if trial.Score() < res.Score() {
							t.Errorf("trial %v has the score %v, the best %v", trial.Kernel, trial.Score(), res.Score())
						}
						for i, point := range trial.Points {
							if point.Score < trial.Score() || i > 0 && point.Lambda <= trial.Points[i-1].Lambda {
								t.Errorf("the points of %v are not in order, or not worse than the best", trial.Kernel)
							}
						}
					}
					// With 80 samples, the fitted function differs from sin(2x) by much less than the noise.
					q := p
					q.Kernel = res.Kernel()
					points, err := solvers.SolvePath(context.Background(), dev, q, []float64{res.Lambda()}, solvers.PathParams{Method: solvers.Dual, LeaveOneOut: true})
					if err != nil || points[0].Err != nil {
						t.Fatal(err, points)
					}
					if e := math.Sqrt(points[0].LOO[0]); e > 0.33 {
						t.Errorf("%v with λ = %v leaves an error of %v", res.Kernel(), res.Lambda(), e)
					}
					want := map[tuning.Criterion]float64{
						tuning.LeaveOneOut: points[0].LOO[0], tuning.GCV: points[0].GCV[0], tuning.Evidence: -points[0].Evidence / 80,
					}[criterion]
					// The tolerance is the rounding error times a condition number of at most 80/1e-8.
					if criterion != tuning.KFold && math.Abs(want-res.Score()) > 1e-5*math.Abs(want) {
						t.Errorf("score %v, computed by itself %v", res.Score(), want)
					}
				})
			}
		}
	}
}

// TestKFoldScore compares the scores with those of separate fits, by another solver, to the samples
// outside each fold.
func TestKFoldScore(t *testing.T) {
	for _, k := range []kernels.Kernel{kernels.Gaussian{Sigma: 1}, kernels.Linear{}} {
		p := wave(t, 43, 2)
		p.Kernel, p.Intercept = k, true
		p.Weights = make([]float64, 43)
		for i := range p.Weights {
			p.Weights[i] = float64(i%3) + 0.5
		}
		p.Weights[7] = 0
		dev := device(t, "cpu")
		lambdas := []float64{0.01, 0.1, 1}
		res, err := tuning.Search(context.Background(), dev, p, tuning.Params{Criterion: tuning.KFold, Folds: 42, Steps: 1, Lambdas: lambdas})
		if err != nil {
			t.Fatal(err)
		}
		for i, point := range res.Trials[0].Points { // there are as many folds as samples, so each fold has one sample
			sum, total := 0.0, 0.0
			for r := range p.X.Rows {
				if p.Weights[r] == 0 {
					continue
				}
				q := p
				q.Lambda, q.Weights = lambdas[i], slices.Clone(p.Weights)
				q.Weights[r] = 0
				s, err := solvers.Solve(context.Background(), dev, q, solvers.Params{Method: solvers.Dual})
				if err != nil {
					t.Fatal(err)
				}
				e := p.Y.Row(r)[0] - s.Intercept[0]
				for j := range p.X.Rows {
					e -= s.Alpha.Row(j)[0] * kernels.Eval(k, p.X.Row(j), p.X.Row(r))
				}
				sum, total = sum+p.Weights[r]*e*e, total+p.Weights[r]
			}
			// The tolerance is the rounding error times a condition number of about 10,000.
			if want := sum / total; math.Abs(point.Score-want) > 1e-9*want {
				t.Errorf("%v λ=%g: score %v, want %v", k, point.Lambda, point.Score, want)
			}
		}
	}
}

// TestSearchTriesOnlyTheGivenLambdas checks for each criterion that if a list of λ is given, no
// other λ is tried, as in scikit-learn's GridSearchCV.
func TestSearchTriesOnlyTheGivenLambdas(t *testing.T) {
	lambdas := []float64{10, 0.001, 0.1, 0.1}
	for _, par := range []tuning.Params{
		{Criterion: tuning.LeaveOneOut}, {Criterion: tuning.GCV}, {Criterion: tuning.KFold},
		{Criterion: tuning.Evidence}, {Strategy: tuning.Golden}, {Strategy: tuning.Bayes},
	} {
		par.Steps, par.Lambdas = 3, lambdas
		res, err := tuning.Search(context.Background(), device(t, "cpu"), wave(t, 40, 1), par)
		if err != nil {
			t.Fatal(err)
		}
		for _, trial := range res.Trials {
			var got []float64
			for _, point := range trial.Points {
				got = append(got, point.Lambda)
			}
			if want := []float64{0.001, 0.1, 10}; !slices.Equal(got, want) {
				t.Errorf("%s by %s tried %v, want %v", res.Params.Strategy, res.Params.Criterion, got, want)
			}
		}
		if !slices.Contains(lambdas, res.Lambda()) {
			t.Errorf("%s by %s chose %v of %v", res.Params.Strategy, res.Params.Criterion, res.Lambda(), lambdas)
		}
	}
}

// TestSearchOfAnEmptyListVariesNothing checks that no parameter varies if Vary is empty, and that
// the length scales vary if Vary is nil.
func TestSearchOfAnEmptyListVariesNothing(t *testing.T) {
	p := wave(t, 40, 1)
	for _, strategy := range []tuning.Strategy{tuning.Grid, tuning.Golden, tuning.Bayes} {
		res, err := tuning.Search(context.Background(), device(t, "cpu"), p, tuning.Params{Strategy: strategy, Vary: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Trials) != 1 || len(res.Params.Vary) != 0 || res.Kernel().String() != p.Kernel.String() {
			t.Errorf("%s: %d trials, %v vary, the best is %v", strategy, len(res.Trials), res.Params.Vary, res.Kernel())
		}
	}
}

// TestBayesTellsFeaturesApart checks that features without effect get long length scales.
func TestBayesTellsFeaturesApart(t *testing.T) {
	p := wave(t, 120, 3)
	p.Kernel = kernels.Gaussian{Sigmas: []float64{2, 2, 2}}
	res, err := tuning.Search(context.Background(), device(t, "cpu"), p, tuning.Params{Strategy: tuning.Bayes, Steps: 30, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := res.Kernel().(kernels.Gaussian).Sigmas
	if len(res.Params.Vary) != 3 || min(s[1], s[2]) < 2*s[0] || math.Sqrt(res.Score()) > 0.35 {
		t.Errorf("found %v with an error of %v, varying %v", s, math.Sqrt(res.Score()), res.Params.Vary)
	}
	common, err := tuning.Search(context.Background(), device(t, "cpu"), p, tuning.Params{Steps: 15})
	if err != nil {
		t.Fatal(err)
	}
	if common.Score() < res.Score() {
		t.Errorf("one factor for all: %v; one each: %v", common.Score(), res.Score())
	}
}

// TestSearchRepeats checks that repeated searches give the same bits, for any number of workers.
func TestSearchRepeats(t *testing.T) {
	p := wave(t, 60, 2)
	for _, par := range []tuning.Params{{Strategy: tuning.Bayes, Steps: 8}, {Criterion: tuning.KFold, Steps: 3}} {
		var first *tuning.Result
		for _, threads := range []int{1, 2} {
			dev := backendtest.Device(t, "cpu", backend.Config{Threads: threads})
			res, err := tuning.Search(context.Background(), dev, p, par)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = res
			}
			if res.Kernel().String() != first.Kernel().String() || res.Lambda() != first.Lambda() || res.Score() != first.Score() {
				t.Errorf("%v: %v, λ %v and %v, λ %v", par, first.Kernel(), first.Lambda(), res.Kernel(), res.Lambda())
			}
		}
	}
}

// TestSearchOtherKernels checks that if a kernel has no length scales, its other positive parameters vary.
func TestSearchOtherKernels(t *testing.T) {
	p := wave(t, 50, 2)
	for _, c := range []struct {
		text string
		vary []string
		want string
	}{
		{"linear()", nil, "[]"},
		{"polynomial(degree=3,c=1)", nil, "[c]"},
		{"2*gaussian(sigma=1) + 0.5", nil, "[1.sigma]"},
		{"2*gaussian(sigma=1) + 0.5", []string{"2.value", "1.sigma"}, "[1.sigma 2.value]"},
		{"matern52(sigma=2)", nil, "[sigma]"},
	} {
		k, err := kernels.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		p.Kernel = k
		res, err := tuning.Search(context.Background(), device(t, "cpu"), p, tuning.Params{Steps: 3, Vary: c.vary})
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if got := fmt.Sprint(res.Params.Vary); got != c.want {
			t.Errorf("%s: %s vary, want %s", c.text, got, c.want)
		}
	}
}

func TestSearchRefuses(t *testing.T) {
	p := wave(t, 30, 1)
	noKernel, withIntercept, hopeless, zero := p, p, p, p
	zero.Kernel = kernels.Constant{}
	noKernel.Kernel = nil
	withIntercept.Intercept = true
	hopeless.Kernel = kernels.Gaussian{Sigma: 1e6}
	dev := device(t, "cpu")
	for _, c := range []struct {
		p    solvers.Problem
		par  tuning.Params
		want string
	}{
		{noKernel, tuning.Params{}, "the kernel is missing"},
		{withIntercept, tuning.Params{Criterion: tuning.Evidence}, "an intercept has no prior"},
		{p, tuning.Params{Criterion: "aic"}, `no criterion is called "aic"`},
		{p, tuning.Params{Strategy: "luck"}, `no strategy is called "luck"`},
		{p, tuning.Params{Strategy: tuning.Gradient}, `the strategy "gradient" needs the criterion "evidence", got "loo"`},
		{p, tuning.Params{Criterion: tuning.Evidence, Strategy: tuning.Gradient, Lambdas: []float64{1}}, "leave out Vary, Reach, Steps and Lambdas"},
		{p, tuning.Params{Criterion: tuning.Evidence, Strategy: tuning.Gradient, Vary: []string{"sigma"}}, "leave out Vary, Reach, Steps and Lambdas"},
		{p, tuning.Params{Folds: 3}, `Folds needs the criterion "kfold", got "loo"`},
		{p, tuning.Params{Reach: 0.5}, "the reach must be a finite number > 1, got 0.5"},
		{p, tuning.Params{Steps: -1}, "steps must be ≥ 0"},
		{p, tuning.Params{Lambdas: []float64{1, math.NaN()}}, "lambda 2 must be a finite number ≥ 0"},
		{p, tuning.Params{Lambdas: []float64{}}, "the list of lambdas is empty"},
		{p, tuning.Params{Vary: []string{"gamma"}}, `"gamma" is not a parameter of gaussian(sigma=3) that can vary; the parameters are: sigma`},
		{p, tuning.Params{Criterion: tuning.KFold, Folds: 31}, "30 samples cannot be divided into 31 folds"},
		{p, tuning.Params{Memory: 100}, "100 B may be used"},
		{zero, tuning.Params{}, "the default values of lambda are multiples of the mean of k(x, x), which is 0 for the kernel 0: use a positive definite kernel"},
		{hopeless, tuning.Params{Lambdas: []float64{1e-30}, Steps: 2}, "raise lambda"},
	} {
		if _, err := tuning.Search(context.Background(), dev, c.p, c.par); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	stop := errors.New("enough")
	for _, par := range []tuning.Params{{}, {Criterion: tuning.KFold}, {Strategy: tuning.Bayes}, {Criterion: tuning.Evidence, Strategy: tuning.Gradient}} {
		ctx, cancel := context.WithCancelCause(context.Background())
		par.Progress = func(q solvers.Progress) { cancel(stop) }
		if _, err := tuning.Search(ctx, dev, p, par); !errors.Is(err, stop) {
			t.Errorf("%v: canceled: %v", par.Strategy, err)
		}
	}
}

// TestSearchObeysTheRulesOfParameters checks that a search respects the bounds of a parameter whose initial value is
// close to a bound.
func TestSearchObeysTheRulesOfParameters(t *testing.T) {
	for _, k := range []kernels.Kernel{kernels.RationalQuadratic{A: 2e-6, Sigma: 1}, kernels.Gaussian{Sigma: 9e152}} {
		p := wave(t, 30, 1)
		p.Kernel = k
		first := kernels.Params(k)[0]
		for _, strategy := range []tuning.Strategy{tuning.Grid, tuning.Golden, tuning.Bayes} {
			res, err := tuning.Search(context.Background(), device(t, "cpu"), p, tuning.Params{Strategy: strategy, Vary: []string{first.Name}, Steps: 8})
			if err != nil {
				t.Errorf("%v, %v: %v", k, strategy, err)
				continue
			}
			for _, trial := range res.Trials {
				if v := kernels.Params(trial.Kernel)[0].Value; v < first.Min || v > first.Max {
					t.Errorf("%v, %v: tried %s = %v, which may be from %v to %v", k, strategy, first.Name, v, first.Min, first.Max)
				}
			}
		}
	}
}

// noiseless returns points on a line without noise, for which scores improve until rounding dominates the matrix.
func noiseless(n int) solvers.Problem {
	p := solvers.Problem{Kernel: kernels.Polynomial{Degree: 6, C: 1}, X: backend.NewHost[float64](n, 1), Y: backend.NewHost[float64](n, 1)}
	for i := range n {
		p.X.Data[i] = 3.4*float64(i)/float64(n) - 1.7
		p.Y.Data[i] = 1000*p.X.Data[i] + 5
	}
	return p
}

// TestFirstFitTakesThePointThatIsFitted checks for every criterion and strategy that FirstFit takes the point with
// the best score among the points that can be fitted, and that the warning names it.
func TestFirstFitTakesThePointThatIsFitted(t *testing.T) {
	dev := device(t, "cpu")
	searched, fitted, total := noiseless(150), noiseless(1000), 0
	if required.FewCases() {
		fitted = noiseless(500)
	}
	for _, par := range []tuning.Params{
		{Criterion: tuning.LeaveOneOut}, {Criterion: tuning.GCV, Strategy: tuning.Golden}, {Criterion: tuning.KFold}, {Criterion: tuning.Evidence, Strategy: tuning.Gradient},
	} {
		p := searched
		p.Intercept = par.Criterion != tuning.Evidence
		res, err := tuning.Search(t.Context(), dev, p, par)
		if err != nil {
			t.Fatal(err)
		}
		searchScore, kernel, lambda := res.Score(), res.Kernel(), res.Lambda()
		numRefused := 0
		err = res.FirstFit(func(k kernels.Kernel, l float64) error {
			q := fitted
			q.Kernel, q.Lambda, q.Intercept = k, l, p.Intercept
			_, err := solvers.Solve(t.Context(), dev, q, solvers.Params{Method: solvers.Dual})
			if err != nil {
				numRefused++
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", par.Criterion, err)
			continue
		}
		numFailed, numBetter := 0, 0
		for _, trial := range res.Trials {
			for _, point := range trial.Points {
				if errors.Is(point.Err, backend.ErrNotPosDef) || errors.As(point.Err, new(*solvers.ConvergenceError)) {
					numFailed++
				}
				if point.Score < res.Score() {
					numBetter++
				}
			}
		}
		if numFailed < numRefused || numBetter > 0 || numRefused > 0 && res.Score() < searchScore {
			t.Errorf("%s: %d points were refused, of which %d have the reason; %d points are better than the one that was fitted", par.Criterion, numRefused, numFailed, numBetter)
		}
		warned := strings.Contains(res.Warning, fmt.Sprintf("kernel %v, lambda %.4g, was refused", kernel, lambda)) &&
			strings.Contains(res.Warning, fmt.Sprintf("kernel %v, lambda %.4g", res.Kernel(), res.Lambda()))
		if (numRefused > 0) != warned {
			t.Errorf("%s: %d points were refused, and the warning is %q", par.Criterion, numRefused, res.Warning)
		}
		total += numRefused
	}
	if total == 0 {
		t.Error("no point was refused: the test shows nothing")
	}
}

// TestFirstFitEnds checks that an error that does not concern a single point is returned at once, and that
// otherwise the error of the best point is returned.
func TestFirstFitEnds(t *testing.T) {
	dev := device(t, "cpu")
	for _, c := range []struct {
		err   error
		calls int
		text  string
	}{
		{context.Canceled, 1, "context canceled"},
		{errors.New("tol must be a number"), 1, "tol must be a number"},
		{&backend.PivotError{}, 12, "no fit succeeds at any of the 12 points of the search; the error at the first of them: "},
	} {
		res, err := tuning.Search(t.Context(), dev, wave(t, 30, 1), tuning.Params{Steps: 3, Lambdas: []float64{0.1, 1, 10, 100}})
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		err = res.FirstFit(func(kernels.Kernel, float64) error { calls++; return c.err })
		if calls != c.calls || !errors.Is(err, c.err) || !strings.HasPrefix(err.Error(), c.text) {
			t.Errorf("%v: %d calls, %v", c.err, calls, err)
		}
	}
}

// TestKernelsThatOverflowAreNoCandidates checks that a search skips a kernel whose values overflow,
// and that it returns an error for invalid samples.
func TestKernelsThatOverflowAreNoCandidates(t *testing.T) {
	dev := device(t, "cpu")
	p := noiseless(20)
	for i := range p.Y.Data {
		p.Y.Data[i] += math.Cos(40 * p.X.Data[i])
	}
	p.Kernel = kernels.Polynomial{Degree: 60, C: 1}
	for _, par := range []tuning.Params{
		{Reach: 1e8, Steps: 9}, {Reach: 1e8, Strategy: tuning.Golden}, {Reach: 1e8, Strategy: tuning.Bayes, Steps: 9, Seed: 2},
		{Reach: 1e8, Criterion: tuning.KFold, Steps: 9}, {Criterion: tuning.Evidence, Strategy: tuning.Gradient},
	} {
		res, err := tuning.Search(t.Context(), dev, p, par)
		if err != nil {
			t.Errorf("%s, %s: %v", par.Criterion, par.Strategy, err)
		} else if par.Strategy != tuning.Gradient && len(res.Trials) == 0 || math.IsInf(res.Score(), 0) {
			t.Errorf("%s, %s: %d kernels have a score, the best %v", par.Criterion, par.Strategy, len(res.Trials), res.Score())
		}
		withNaN := p
		withNaN.Y = backend.NewHost[float64](20, 1)
		copy(withNaN.Y.Data, p.Y.Data)
		withNaN.Y.Data[6] = math.NaN()
		if _, err := tuning.Search(t.Context(), dev, withNaN, par); err == nil || !strings.Contains(err.Error(), "column 1 is NaN") {
			t.Errorf("%s, %s: a target that is NaN: %v", par.Criterion, par.Strategy, err)
		}
	}
}

// TestGradientThatEndsEarlyWarns checks that only a search that ends at the limit of evaluations gives a warning.
func TestGradientThatEndsEarlyWarns(t *testing.T) {
	dev := device(t, "cpu")
	for _, d := range []int{1, 40} {
		p := wave(t, 60, d)
		p.Kernel = kernels.Gaussian{Sigmas: slices.Repeat([]float64{float64(d)}, d)}
		for i := range p.Y.Data {
			sum := 0.0
			for j, v := range p.X.Row(i) {
				sum += v / float64(j+1)
			}
			p.Y.Data[i] += math.Sin(2 * sum)
		}
		res, err := tuning.Search(t.Context(), dev, p, tuning.Params{Criterion: tuning.Evidence, Strategy: tuning.Gradient})
		if err != nil {
			t.Fatal(err)
		}
		if unconverged := strings.HasPrefix(res.Warning, "a local search has not converged within 150 evaluations"); unconverged != (d == 40) {
			t.Errorf("%d features: the warning is %q", d, res.Warning)
		}
	}
}

// TestSearchPlans checks that a search with too little memory states the memory that it needs, and that a search
// with this memory uses at least nine tenths of it and not more.
func TestSearchPlans(t *testing.T) {
	for _, shape := range [][2]int{{60, 3}, {24, 300}} {
		p := wave(t, shape[0], shape[1])
		for _, par := range []tuning.Params{
			{Steps: 3}, {Criterion: tuning.GCV, Steps: 3}, {Criterion: tuning.KFold, Steps: 3}, {Criterion: tuning.Evidence, Steps: 3},
			{Strategy: tuning.Golden, Steps: 3}, {Strategy: tuning.Bayes, Steps: 3}, {Criterion: tuning.Evidence, Strategy: tuning.Gradient},
		} {
			name := fmt.Sprintf("%s by %s, %d×%d", par.Criterion, par.Strategy, shape[0], shape[1])
			dev := device(t, "cpu")
			par.Memory = 1
			_, err := tuning.Search(t.Context(), dev, p, par)
			var budget *solvers.BudgetError
			if !errors.As(err, &budget) {
				t.Fatalf("%s: %v", name, err)
			}
			par.Memory = budget.Needed
			if _, err := tuning.Search(t.Context(), dev, p, par); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, peak := dev.InUse(); peak > budget.Needed || 10*peak < 9*budget.Needed {
				t.Errorf("%s: took %d bytes, planned %d", name, peak, budget.Needed)
			}
		}
	}
}

// TestSearchOfOneFeature compares a search with a Markov kernel of one feature, which takes O(n) operations, with
// a search that stores the matrices because of a second feature of zeros.
func TestSearchOfOneFeature(t *testing.T) {
	const n = 2400
	p := wave(t, n, 1)
	p.Kernel, p.Intercept = kernels.Matern{Nu: 1.5, Sigma: 1}, true
	padded := p
	padded.X = backend.NewHost[float64](n, 2)
	for i := range n {
		padded.X.Row(i)[0] = p.X.Row(i)[0]
	}
	dev := device(t, "cpu")
	for criterion, folds := range map[tuning.Criterion]int{tuning.LeaveOneOut: 0, tuning.KFold: 2} {
		var trials [2]tuning.Trial
		for k, q := range []solvers.Problem{p, padded} {
			res, err := tuning.Search(t.Context(), dev, q, tuning.Params{Criterion: criterion, Folds: folds, Steps: 1, Lambdas: []float64{0.1, 1}})
			if err != nil {
				t.Fatal(err)
			}
			trials[k] = res.Trials[0]
		}
		for i, point := range trials[0].Points {
			// The tolerance is for sums of n terms and a condition number of at most n/0.1 + 1.
			if want := trials[1].Points[i].Score; !(math.Abs(point.Score-want) <= 1e5*n*0x1p-52*want) || want == 0 {
				t.Errorf("%s, λ = %g: score %v, want %v", criterion, point.Lambda, point.Score, want)
			}
		}
	}
}
