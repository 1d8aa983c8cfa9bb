package learners_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"gonum.org/v1/gonum/mat"
)

// svmTol is the tolerance Tol of the fits. The decision values then have errors of up to about 10·svmTol. svmCondition
// is this error divided by 1e-13, as described at learnertest.Suite.
const (
	svmTol       = 1e-9
	svmCondition = 1e5
)

func TestSVC(t *testing.T) {
	for name, l := range map[string]learners.SVC{
		"gaussian": {Kernel: kernels.Gaussian{Sigma: 2}, C: 10, Tol: svmTol},
		"linear":   {Kernel: kernels.Linear{}, Tol: svmTol},
	} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner: "svc", Task: learners.Classification, Fit: fitter(l.Fit), Condition: svmCondition,
				Unfitted: []learners.Model{&learners.SVCModel{}},
			})
		})
	}
}

func TestSVCProbabilities(t *testing.T) {
	learnertest.Run(t, learnertest.Suite{
		Learner: "svc", Task: learners.Classification, Condition: svmCondition,
		Fit:      fitter(learners.SVC{Kernel: kernels.Gaussian{Sigma: 2}, C: 10, Tol: svmTol, Probabilities: true}.Fit),
		Unfitted: []learners.Model{&learners.SVCModel{}},
	})
}

func TestSVR(t *testing.T) {
	learnertest.Run(t, learnertest.Suite{
		Learner: "svr", Single: true, Condition: svmCondition,
		Fit:      fitter(learners.SVR{Kernel: kernels.Gaussian{Sigma: 2}, C: 10, Tol: svmTol, NoStandardize: true}.Fit),
		Unfitted: []learners.Model{&learners.SupportModel{}},
	})
}

// TestSVRStandardizeTarget checks that a standardized fit with C and ε equals the fit to y with s·C and s·ε, where s is
// the standard deviation of y, and that a change of the unit and the origin of y changes f in the same way.
func TestSVRStandardizeTarget(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n, seed = 60, 7
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	x, y := mat.NewDense(n, 2, nil), mat.NewDense(n, 1, nil)
	weights := make([]float64, n)
	var total, mean, square float64
	for i := range n {
		x.SetRow(i, []float64{r.NormFloat64(), r.NormFloat64()})
		y.Set(i, 0, 30+8*math.Sin(x.At(i, 0))+r.NormFloat64())
		weights[i] = float64(i % 3)
		total += weights[i]
		mean += weights[i] * y.At(i, 0)
		square += weights[i] * y.At(i, 0) * y.At(i, 0)
	}
	mean /= total
	s := math.Sqrt(square/total - mean*mean)
	k, o := kernels.Gaussian{Sigma: 1}, learners.Options{Weights: weights}
	predict := func(l learners.SVR, y mat.Matrix) *mat.Dense {
		t.Helper()
		l.Kernel = k
		m, err := l.Fit(t.Context(), dev, x, y, o)
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	standard := learners.SVR{C: 2, Epsilon: 0.1, Tol: svmTol}
	got := predict(standard, y)
	want := predict(learners.SVR{C: 2 * s, Epsilon: 0.1 * s, Tol: svmTol * s, NoStandardize: true}, y)
	for i := range n {
		checkClose(t, "s·C and s·ε", got.At(i, 0), want.At(i, 0), s*svmTol*svmCondition)
	}
	for _, unit := range []float64{1e-100, 1e3, 1e200} {
		shifted := mat.DenseCopyOf(y)
		shifted.Apply(func(_, _ int, v float64) float64 { return unit * (v - 1000) }, y)
		f := predict(standard, shifted)
		for i := range n {
			checkClose(t, "in another unit", f.At(i, 0)/unit+1000, got.At(i, 0), s*svmTol*svmCondition)
		}
	}
	// If all targets have the same value, the model predicts this value, also if it is large.
	y.Apply(func(_, _ int, _ float64) float64 { return 1e9 }, y)
	for i, f := range predict(standard, y).RawMatrix().Data {
		if f != 1e9 {
			t.Fatalf("row %d of equal targets: %v", i, f)
		}
	}
}

func TestOneClassSVM(t *testing.T) {
	learnertest.Run(t, learnertest.Suite{
		Learner: "one-class-svm", Task: learners.Novelty, Condition: svmCondition,
		Fit:      fitter(learners.OneClassSVM{Kernel: kernels.Gaussian{Sigma: 2}, Nu: 0.3, Tol: svmTol}.Fit),
		Unfitted: []learners.Model{&learners.SupportModel{}},
	})
}

// rings returns two classes on concentric rings. noise is the standard deviation of the radius.
func rings(n int, noise float64, seed uint64) (x, y *mat.Dense) {
	r := rand.New(rand.NewPCG(seed, 0))
	x, y = mat.NewDense(n, 2, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		class := float64(i % 2)
		radius, angle := 1+class+noise*r.NormFloat64(), 2*math.Pi*r.Float64()
		x.SetRow(i, []float64{radius * math.Cos(angle), radius * math.Sin(angle)})
		y.Set(i, 0, class)
	}
	return x, y
}

// TestSVCOptimality checks the conditions of Karush, Kuhn and Tucker, computed from the predictions, with
// shrinking, small caches and many steps at large C.
func TestSVCOptimality(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		for _, test := range []struct {
			n, cache int
			c, noise float64
			kernel   kernels.Kernel
		}{
			{200, 0, 1, 0.3, kernels.Gaussian{Sigma: 0.5}},
			{200, 1, 1000, 0.3, kernels.Gaussian{Sigma: 0.5}},
			{3000, 0, 10, 0.3, kernels.Gaussian{Sigma: 0.5}},
			{3000, 1, 10, 0.1, kernels.Gaussian{Sigma: 0.5}},
			{400, 0, 1, 0.2, kernels.Polynomial{Degree: 2, C: 1}},
		} {
			t.Logf("%+v, seed 11", test)
			x, y := rings(test.n, test.noise, 11)
			const tol = 1e-4
			m, err := learners.SVC{Kernel: test.kernel, C: test.c, Tol: tol, Cache: int64(test.cache)}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f, err := m.Decision(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			// α is computed from the coefficients of the support vectors in the state of the model.
			s := m.State()
			alpha := map[[2]float64]float64{}
			for i := range s.Arrays["points"].Rows {
				alpha[[2]float64(s.Arrays["points"].Row(i))] = math.Abs(s.Arrays["coef"].Row(i)[0])
			}
			sum, numBad := 0.0, 0
			for i := range test.n {
				sign := 2*y.At(i, 0) - 1
				margin, a := sign*f.At(i, 0), alpha[[2]float64(x.RawRowView(i))]
				sum += sign * a
				if a < test.c && margin < 1-2*tol || a > 0 && margin > 1+2*tol {
					numBad++
				}
			}
			if numBad > 0 {
				t.Errorf("%d of %d rows violate the conditions", numBad, test.n)
			}
			// Each step changes two α by the same amount, and keeps Σ yα = 0 up to rounding.
			checkClose(t, "Σ yα", sum, 0, 1e-10*test.c*float64(test.n))
			t.Logf("%v", m.Facts())
		}
	})
}

// TestSupportOptimality checks the optimality conditions of ε-regression and of the one-class machine.
func TestSupportOptimality(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of rows: not under -short")
	}
	dev := backendtest.Device(t, "cpu")
	t.Log("seed 13")
	const n, c, epsilon, nu, tol = 5000, 10, 0.2, 0.05, 1e-4
	x, y := sinc(n, 0.1, 13)
	coefficients := func(m *learners.SupportModel) map[float64]float64 {
		beta := map[float64]float64{}
		for i, v := range m.Beta() {
			beta[m.Support().At(i, 0)] = v
		}
		return beta
	}
	r, err := learners.SVR{Kernel: kernels.Gaussian{Sigma: 1}, C: c, Epsilon: epsilon, Tol: tol, NoStandardize: true}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.Predict(t.Context(), dev, x)
	if err != nil {
		t.Fatal(err)
	}
	beta, sum := coefficients(r), 0.0
	for i := range n {
		b, residual := beta[x.At(i, 0)], y.At(i, 0)-f.At(i, 0)
		sum += b
		// The Karush–Kuhn–Tucker conditions are: β = C if y − f > ε; y − f ≥ ε if β > 0; and the same for f − y and −β.
		if b < c && residual > epsilon+2*tol || b > 0 && residual < epsilon-2*tol || b > -c && residual < -epsilon-2*tol || b < 0 && residual > -epsilon+2*tol {
			t.Fatalf("svr: row %d: β %v, residual %v", i, b, residual)
		}
	}
	checkClose(t, "Σβ", sum, 0, 1e-10*c*n)
	t.Logf("%v", r.Facts())

	o, err := learners.OneClassSVM{Kernel: kernels.Gaussian{Sigma: 1}, Nu: nu, Tol: tol}.Fit(t.Context(), dev, x, nil, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f, err = o.Predict(t.Context(), dev, x); err != nil {
		t.Fatal(err)
	}
	beta, sum = coefficients(o), 0
	numOutside := 0
	for i := range n {
		b := beta[x.At(i, 0)]
		sum += b
		if b < 1 && f.At(i, 0) < -2*tol || b > 0 && f.At(i, 0) > 2*tol {
			t.Fatalf("one-class-svm: row %d: β %v, f %v", i, b, f.At(i, 0))
		}
		if f.At(i, 0) < -2*tol {
			numOutside++
		}
	}
	checkClose(t, "Σβ", sum, nu*n, 1e-10*n)
	if numOutside > nu*n {
		t.Errorf("%d rows are outside, more than %v", numOutside, nu*n)
	}
	t.Logf("%v", o.Facts())
}

// TestSVMByHand checks f and the objectives of support vector machines for two points at ±1 with k(x, z) = xz.
func TestSVMByHand(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		x, y := mat.NewDense(2, 1, []float64{-1, 1}), mat.NewDense(2, 1, []float64{3, 8})
		m, err := learners.SVC{Kernel: kernels.Linear{}, C: 10}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.Decision(t.Context(), dev, mat.NewDense(1, 1, []float64{0.25}))
		if err != nil {
			t.Fatal(err)
		}
		checkClose(t, "f", f.At(0, 0), 0.25, 1e-12)
		checkClose(t, "objective of svc", fact(t, m, "objective").(float64), 0.5, 1e-12)
		// With C = 1/8 both α are at the bound C, so w = Σ C y x = 1/4.
		if m, err = (learners.SVC{Kernel: kernels.Linear{}, C: 0.125}).Fit(t.Context(), dev, x, y, learners.Options{}); err != nil {
			t.Fatal(err)
		}
		if f, err = m.Decision(t.Context(), dev, mat.NewDense(1, 1, []float64{2})); err != nil {
			t.Fatal(err)
		}
		checkClose(t, "f", f.At(0, 0), 0.5, 1e-12)
		// The objective is (1/4)²/2 plus C times two losses of 3/4.
		checkClose(t, "objective of svc at the bound", fact(t, m, "objective").(float64), 1./32+2*0.125*0.75, 1e-12)
		// The flattest line within ε = 1/4 of y = x at ±1 has the slope 3/4.
		r, err := learners.SVR{Kernel: kernels.Linear{}, C: 10, Epsilon: 0.25, NoStandardize: true}.Fit(t.Context(), dev, x, x, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if f, err = r.Predict(t.Context(), dev, mat.NewDense(1, 1, []float64{2})); err != nil {
			t.Fatal(err)
		}
		checkClose(t, "slope", f.At(0, 0), 1.5, 1e-12)
		checkClose(t, "objective of svr", fact(t, r, "objective").(float64), 0.75*0.75/2, 1e-12)
		// On the points 1 and 1, w = 1 and b = −1, so that ½w² + ν n b = −½.
		o, err := learners.OneClassSVM{Kernel: kernels.Linear{}, Nu: 0.5}.Fit(t.Context(), dev, mat.NewDense(2, 1, []float64{1, 1}), nil, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkClose(t, "objective of one-class-svm", fact(t, o, "objective").(float64), -0.5, 1e-12)
	})
}

// TestSVMSettings checks that invalid settings give errors.
func TestSVMSettings(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := rings(100, 0.5, 1)
	for want, fit := range map[string]learners.Fitter{
		"svc: C must be a finite number > 0": fitter(learners.SVC{C: -1}.Fit),
		"tol must be":                        fitter(learners.SVC{Tol: -1}.Fit),
		"iterations must be":                 fitter(learners.SVC{MaxIter: -1}.Fit),
		"cache must be":                      fitter(learners.SVC{Cache: -1}.Fit),
		"epsilon must be":                    fitter(learners.SVR{Epsilon: -1, NoStandardize: true}.Fit),
		"nu must be":                         fitter(learners.OneClassSVM{Nu: 1.5}.Fit),
		"sigma must be":                      fitter(learners.SVC{Kernel: kernels.Gaussian{}}.Fit),
	} {
		if _, err := fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "learners: ") {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestSVCCalibration checks, for two classes and for three, that the log loss of the probabilities
// of new samples is close to the smallest possible log loss.
func TestSVCCalibration(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	t.Log("seeds 61, 62")
	const n, tests = 600, 2000
	x, y := rings(n, 0.3, 61)
	newX, newY := rings(tests, 0.3, 62)
	for _, classes := range []int{2, 3} {
		if classes == 3 { // the upper half of the outer ring becomes a third class
			for _, s := range [][2]*mat.Dense{{x, y}, {newX, newY}} {
				r, _ := s[1].Dims()
				for i := range r {
					if s[1].At(i, 0) == 1 && s[0].At(i, 1) > 0 {
						s[1].Set(i, 0, 2)
					}
				}
			}
		}
		m, err := learners.SVC{Kernel: kernels.Gaussian{Sigma: 1}, Probabilities: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := m.Proba(t.Context(), dev, newX)
		if err != nil {
			t.Fatal(err)
		}
		loss := 0.0
		for i := range tests {
			loss -= math.Log(p.At(i, int(newY.At(i, 0)))) / tests
		}
		t.Logf("%d classes: log loss %.3f", classes, loss)
		// The overlap of the rings alone gives a log loss of 0.12.
		if loss > 0.12+0.06*float64(classes-1) {
			t.Errorf("%d classes: log loss %.3f", classes, loss)
		}
	}
}

// TestLambdaOfSVM checks that with lambda the model minimizes (1/n)Σ w_i loss + λ‖f‖², where n = Σw_i, by values of
// this function near the w and b of a linear model. The value at the model exceeds the minimum by at most tol.
func TestLambdaOfSVM(t *testing.T) {
	const n, d, lambda, tol = 60, 3, 0.02, 1e-9
	t.Log("seed 51")
	r := rand.New(rand.NewPCG(51, 0))
	x, class, y, weights := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil), make([]float64, n)
	total := 0.0
	for i := range n {
		sum := 0.7 * r.NormFloat64()
		for j := range d {
			x.Set(i, j, r.NormFloat64())
			sum += float64(j+1) * x.At(i, j)
		}
		y.Set(i, 0, sum+1)
		class.Set(i, 0, math.Copysign(1, sum+0.3))
		weights[i] = 0.5 + r.Float64()
		total += weights[i]
	}
	o := learners.Options{Weights: weights}
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		for name, test := range map[string]struct {
			y    *mat.Dense
			loss func(y, f float64) float64
		}{
			"svc": {class, func(y, f float64) float64 { return max(1-y*f, 0) }},
			"svr": {y, func(y, f float64) float64 { return max(math.Abs(y-f)-0.1, 0) }},
		} {
			settings := map[string]string{"kernel": "linear()", "lambda": fmt.Sprint(lambda), "tol": fmt.Sprint(tol)}
			l, err := learners.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			if name == "svr" {
				settings["standardize-target"] = "false"
			}
			fit, err := l.Make("", settings)
			if err != nil {
				t.Fatal(err)
			}
			m, err := fit(t.Context(), dev, x, test.y, o)
			if err != nil {
				t.Fatal(err)
			}
			// The decision values at 0 and at the unit vectors are b and b + w_j.
			units := mat.NewDense(d+1, d, nil)
			for j := range d {
				units.Set(j+1, j, 1)
			}
			var f *mat.Dense
			if c, ok := m.(learners.Classifier); ok {
				f, err = c.Decision(t.Context(), dev, units)
			} else {
				f, err = m.Predict(t.Context(), dev, units)
			}
			if err != nil {
				t.Fatal(err)
			}
			w := make([]float64, d+1)
			for j := range w {
				w[j] = f.At(j, 0)
				if j > 0 {
					w[j] -= w[0]
				}
			}
			objective := func(w []float64) (sum float64) {
				for i := range n {
					f := w[0]
					for j := range d {
						f += w[j+1] * x.At(i, j)
					}
					sum += weights[i] * test.loss(test.y.At(i, 0), f) / total
				}
				for _, v := range w[1:] {
					sum += lambda * v * v
				}
				return sum
			}
			minimum := objective(w)
			for range 2000 {
				neighbor := slices.Clone(w)
				for j := range neighbor {
					neighbor[j] += math.Pow(10, -5*r.Float64()) * r.NormFloat64()
				}
				if v := objective(neighbor); v < minimum-tol {
					t.Fatalf("%s: the objective is %v at the model and %v nearby", name, minimum, v)
				}
			}
			settings["C"] = "1"
			if _, err := l.Make("", settings); err == nil || !strings.Contains(err.Error(), "C: works only without lambda") {
				t.Errorf("%s: C and lambda: %v", name, err)
			}
		}
		_, err := learners.SVC{C: 1, Lambda: 1}.Fit(t.Context(), dev, x, class, o)
		if err == nil || !strings.Contains(err.Error(), "C works only without lambda") {
			t.Errorf("C and lambda: %v", err)
		}
		if _, err = (learners.SVR{Lambda: -1, NoStandardize: true}).Fit(t.Context(), dev, x, y, o); err == nil || !strings.Contains(err.Error(), "lambda") {
			t.Errorf("lambda −1: %v", err)
		}
	})
}

// TestTraceNamesTheSamples checks that Trace returns the row of x that each support vector copies, also after rows
// of weight 0, and the number of steps of each binary machine.
func TestTraceNamesTheSamples(t *testing.T) {
	const n, d, seed = 60, 3, 5
	dev := backendtest.Device(t, "cpu")
	r := rand.New(rand.NewPCG(seed, 0))
	x, y, classes := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	weights := make([]float64, n)
	for i := range n {
		for j := range d {
			x.Set(i, j, r.NormFloat64())
		}
		y.Set(i, 0, x.At(i, 0)+r.NormFloat64())
		classes.Set(i, 0, float64(r.IntN(3)))
		weights[i] = float64(i % 3)
	}
	check := func(name string, points *mat.Dense, support, steps []int, machines int, facts []learners.Fact) {
		t.Helper()
		rows, _ := points.Dims()
		if len(support) != rows || rows == 0 {
			t.Fatalf("seed %d: %s: %d indices of %d support vectors", seed, name, len(support), rows)
		}
		for j, i := range support {
			if weights[i] == 0 || !slices.Equal(points.RawRowView(j), x.RawRowView(i)) {
				t.Errorf("seed %d: %s: support vector %d is not row %d of x, or has weight 0", seed, name, j, i)
			}
		}
		total := 0
		for _, s := range steps {
			total += s
		}
		if len(steps) != machines || !slices.Contains(facts, learners.Fact{Name: "steps", Value: total}) {
			t.Errorf("seed %d: %s: steps %v of %d machines; facts %v", seed, name, steps, machines, facts)
		}
	}
	o := learners.Options{Weights: weights}
	regression, err := learners.SVR{}.Fit(t.Context(), dev, x, y, o)
	if err != nil {
		t.Fatal(err)
	}
	support, steps := regression.Trace()
	check("svr", regression.Support(), support, steps, 1, regression.Facts())
	classifier, err := learners.SVC{}.Fit(t.Context(), dev, x, classes, o)
	if err != nil {
		t.Fatal(err)
	}
	points, _ := classifier.Support()
	support, steps = classifier.Trace()
	check("svc", points, support, steps, 3, classifier.Facts())
}
