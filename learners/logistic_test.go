package learners_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"gonum.org/v1/gonum/mat"
)

func TestLogistic(t *testing.T) {
	for name, test := range map[string]struct {
		l         learners.Logistic
		condition float64
	}{
		// The tolerance of the loss allows an error of w below 3e-7.
		"newton":    {learners.Logistic{Lambda: 1, Tol: 1e-15}, 1e7},
		"reference": {learners.Logistic{Lambda: 1, Tol: 1e-15, Reference: true, NoIntercept: true}, 1e7},
		"lbfgs":     {learners.Logistic{Lambda: 1, Tol: 1e-14, Solver: learners.LogisticLBFGS}, 1e8},
		"descent":   {learners.Logistic{Lambda: 5, Tol: 1e-13, Solver: learners.LogisticDescent}, 1e8},
		"sgd":       {learners.Logistic{Lambda: 1, Solver: learners.LogisticSGD, Batch: 8}, 1e13},
	} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner:   "logistic",
				Task:      learners.Classification,
				Fit:       fitter(test.l.Fit),
				Unfitted:  []learners.Model{&learners.LogisticModel{}},
				Condition: test.condition,
			})
		})
	}
}

// classTable returns one of the larger data sets, with standardized features x, the index y of the
// class of each row, and the names of the classes.
func classTable(t *testing.T, name, target string) (x, y *mat.Dense, classes []string) {
	t.Helper()
	data, err := dataset.ReadCSV(required.Data(t, name), nil)
	if err != nil {
		t.Fatal(err)
	}
	x, y, e := learnertest.Encode(t, data, dataset.Rules{Targets: []string{target}, Labels: true, Standardize: true})
	return x, y, e.Classes()
}

// TestLogisticAgainstScikitLearn checks that every solver finds the same minimum as scikit-learn,
// for two classes and for three, with and without weights.
func TestLogisticAgainstScikitLearn(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	for _, data := range []string{"breast_cancer.csv", "wine.csv"} {
		x, y, classes := classTable(t, data, "target")
		n, d := x.Dims()
		weights := make([]float64, n)
		for i := range weights {
			weights[i] = float64(1 + i%3)
		}
		var peer []struct {
			Coef      [][]float64
			Intercept []float64
			Proba     [][]float64
			Loss      float64
		}
		var peers struct{ Models any }
		peers.Models = &peer
		scikit(t, map[string]any{"x": rowsOf(x), "y": mat.Col(nil, 0, y), "w": weights}, `
from sklearn.linear_model import LogisticRegression
two = len(set(a["y"])) == 2
out["Models"] = []
for w in [np.ones(len(a["w"])), a["w"]]:
    m = LogisticRegression(C=0.5, tol=1e-10, max_iter=10000, solver="newton-cg", multi_class="ovr" if two else "multinomial").fit(a["x"], a["y"], sample_weight=w)
    p = m.predict_proba(a["x"])
    loss = float(-(w * np.log(p[np.arange(len(p)), a["y"].astype(int)])).sum() + (m.coef_**2).sum())
    out["Models"].append({"Coef": m.coef_.tolist(), "Intercept": m.intercept_.tolist(), "Proba": p.tolist(), "Loss": loss})
`, &peers)
		for k, weighted := range []bool{false, true} {
			want, o := peer[k], learners.Options{Classes: classes}
			if weighted {
				o.Weights = weights
			}
			for _, solver := range []learners.LogisticSolver{learners.LogisticNewton, learners.LogisticLBFGS, learners.LogisticDescent} {
				l := learners.Logistic{Lambda: 2, Solver: solver, Tol: 1e-13, MaxIter: 100000}
				m, err := l.Fit(t.Context(), dev, x, y, o)
				if err != nil {
					t.Fatal(err)
				}
				loss := fact(t, m, "loss").(float64)
				// Let D be the difference of the loss F from its minimum at w*. Because F is strongly convex, λ/2·‖w −
				// w*‖² ≤ D; by Pinsker's inequality, each probability has an error of at most √(D/2). D is at most
				// Tol·F plus a rounding error. For scikit-learn, D is larger by the difference of the two losses.
				excess := (1e-13 + float64(n)*0x1p-52) * loss
				peerExcess := excess + math.Abs(want.Loss-loss)
				checkClose(t, data+" loss", loss, want.Loss, 1e-10*want.Loss) // the error of a loss is about the square of the gradient, which scikit-learn reduces below 1e-10
				coefBound := math.Sqrt(2*excess/l.Lambda) + math.Sqrt(2*peerExcess/l.Lambda)
				probable := math.Sqrt(excess/2) + math.Sqrt(peerExcess/2)
				// If the probabilities p have the error |p − p*|, f has an error of at most |p − p*|/min(p). The bound
				// on b = f − wᵀx uses the sample with the largest min(p).
				minProba, length := 0.0, 0.0
				for i, p := range want.Proba {
					if q := slices.Min(p) - probable; q > minProba {
						minProba, length = q, mat.Norm(x.RowView(i), 2)
					}
				}
				shift := 2*probable/minProba + 2*coefBound*length
				proba, err := m.Proba(t.Context(), dev, x)
				if err != nil {
					t.Fatal(err)
				}
				maxError := 0.0
				for c := range want.Coef {
					for p := range d {
						maxError = max(maxError, checkClose(t, data+" coef", m.Coef().At(p, c), want.Coef[c][p], coefBound))
					}
					checkClose(t, data+" intercept", m.Intercept()[c], want.Intercept[c], shift)
				}
				for i := range n {
					for c := range classes {
						checkClose(t, data+" proba", proba.At(i, c), want.Proba[i][c], probable)
					}
				}
				t.Logf("%s, weights %t, %s: loss %.10g, scikit-learn's %.10g; weights differ by at most %.2g of %.2g; %v evaluations", data, weighted, solver, loss, want.Loss, maxError, coefBound, fact(t, m, "evaluations"))
			}
		}
	}
}

// TestLogisticAutoReachesNewtonsLoss checks that the solver "auto" reaches the loss of Newton's method, also for
// features that are linearly dependent, differ in scale or almost separate the classes.
func TestLogisticAutoReachesNewtonsLoss(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed = 11
	for name, test := range map[string]struct {
		n, d, classes int
		lambda        float64
		method        string
		feature       func(row []float64, p int) float64 // nil means that the features are normal
	}{
		"few features":  {n: 5000, d: 10, classes: 2, lambda: 1, method: "newton"},
		"many features": {n: 3000, d: 200, classes: 2, lambda: 1, method: "lbfgs"},
		"classes":       {n: 2000, d: 60, classes: 5, lambda: 1, method: "lbfgs"},
		"no penalty":    {n: 3000, d: 60, classes: 2, lambda: 0, method: "newton"},
		"scales":        {n: 3000, d: 200, classes: 2, lambda: 1e-3, method: "lbfgs", feature: func(row []float64, p int) float64 { return row[p] * math.Pow(10, float64(p%7-3)) }},
		"sums":          {n: 3000, d: 200, classes: 2, lambda: 1, method: "lbfgs", feature: func(row []float64, p int) float64 { return row[p%20] + row[(p/20+p)%20] + 0.01*row[p] }},
		"separated":     {n: 400, d: 300, classes: 2, lambda: 1e-4, method: "newton"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, uint64(test.d)))
			x, y := mat.NewDense(test.n, test.d, nil), mat.NewDense(test.n, 1, nil)
			row := make([]float64, test.d)
			for i := range test.n {
				for p := range row {
					row[p] = r.NormFloat64()
				}
				class, score := 0, math.Inf(-1)
				for c := range test.classes {
					if s := 2*row[c] - row[c+5] + r.NormFloat64(); s > score {
						class, score = c, s
					}
				}
				y.Set(i, 0, float64(class))
				for p := range row {
					v := row[p]
					if test.feature != nil {
						v = test.feature(row, p)
					}
					x.Set(i, p, v)
				}
			}
			l := learners.Logistic{Lambda: test.lambda}
			m, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			l.Solver, l.Tol = learners.LogisticNewton, 1e-14
			want, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, minimum := fact(t, m, "loss").(float64), fact(t, want, "loss").(float64)
			t.Logf("seed %d: loss above Newton's by %.2g of it; %v", seed, got/minimum-1, m.Facts())
			if method := fact(t, m, "method"); method != test.method {
				t.Errorf("%s was taken, not %s", method, test.method)
			}
			// The solver ends at an estimated remaining decrease of 1e-9.
			if !(got <= minimum*(1+1e-8)) {
				t.Errorf("loss %.12g, and %.12g of newton", got, minimum)
			}
		})
	}
}

// TestLogisticClosedForms checks fits whose solution is known: to one sample of each class at ±1,
// and to a single constant feature.
func TestLogisticClosedForms(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		// By symmetry b = 0. The derivative is 0 where 2/(1+e^w) = λw. For w = 1 this is λ = 2/(1+e).
		lambda := 2 / (1 + math.E)
		for _, solver := range []learners.LogisticSolver{learners.LogisticNewton, learners.LogisticLBFGS, learners.LogisticDescent} {
			m, err := learners.Logistic{Lambda: lambda, Solver: solver, Tol: 1e-15}.Fit(t.Context(), dev,
				mat.NewDense(2, 1, []float64{-1, 1}), mat.NewDense(2, 1, []float64{-1, 1}), learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			checkClose(t, string(solver)+" w", m.Coef().At(0, 0), 1, 1e-6) // the tolerance of w is the square root of the tolerance of the loss
			checkClose(t, string(solver)+" b", m.Intercept()[0], 0, 1e-6)
		}
		// For constant x the probabilities are the relative weights of the classes.
		for _, reference := range []bool{false, true} {
			m, err := learners.Logistic{Lambda: 1, Reference: reference, Tol: 1e-15}.Fit(t.Context(), dev,
				mat.NewDense(6, 1, nil), mat.NewDense(6, 1, []float64{0, 0, 1, 1, 2, 2}), learners.Options{Weights: []float64{1, 1, 1, 0, 3, 2}})
			if err != nil {
				t.Fatal(err)
			}
			p, err := m.Proba(t.Context(), dev, mat.NewDense(1, 1, []float64{0}))
			if err != nil {
				t.Fatal(err)
			}
			for c, want := range []float64{0.25, 0.125, 0.625} {
				checkClose(t, "p", p.At(0, c), want, 1e-6)
			}
			if b := m.Intercept(); reference && b[2] != 0 {
				t.Errorf("the reference has the intercept %v", b[2])
			} else if !reference {
				checkClose(t, "Σ b", b[0]+b[1]+b[2], 0, 1e-6)
			}
		}
	})
}

// TestLogisticSeparable checks that for separable classes a fit without a penalty returns an error
// that says that there is no minimum, and that a fit with a small penalty has a minimum.
func TestLogisticSeparable(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x := mat.NewDense(6, 2, []float64{0, 0, 1, 0, 0, 1, 3, 3, 4, 3, 3, 4})
	two, three := mat.NewDense(6, 1, []float64{0, 0, 0, 1, 1, 1}), mat.NewDense(6, 1, []float64{0, 1, 2, 3, 3, 3})
	for _, solver := range []learners.LogisticSolver{learners.LogisticNewton, learners.LogisticLBFGS, learners.LogisticDescent} {
		for _, y := range []*mat.Dense{two, three} {
			_, err := learners.Logistic{Solver: solver}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err == nil || !strings.Contains(err.Error(), "the classes can be separated") {
				t.Errorf("%s: got %v", solver, err)
			}
			m, err := learners.Logistic{Solver: solver, Lambda: 1e-3, MaxIter: 1000000}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Errorf("%s: %v", solver, err)
			} else if !mat.Equal(labels(t, dev, m, x), y) {
				t.Errorf("%s: not separated", solver)
			}
		}
	}
	// The features are linearly dependent: one is the sum of others, and one is constant.
	for _, third := range []func(a, b float64) float64{func(a, b float64) float64 { return 3*a - b/3 }, func(a, b float64) float64 { return 0.1 }} {
		overlap, labels := mat.NewDense(12, 3, nil), mat.NewDense(12, 1, nil)
		for i := range 12 {
			a, b := float64(i%4), float64(i*i%7)
			overlap.SetRow(i, []float64{a, b, third(a, b)})
			labels.Set(i, 0, float64(i*5%11%2))
		}
		_, err := learners.Logistic{}.Fit(t.Context(), dev, overlap, labels, learners.Options{})
		if err == nil || !strings.Contains(err.Error(), "depend on each other") && !strings.Contains(err.Error(), "is a linear combination of other features") {
			t.Errorf("got %v", err)
		}
	}
	// For overlapping classes there is a minimum without a penalty.
	x = mat.NewDense(8, 1, []float64{0, 1, 2, 3, 1, 2, 3, 4})
	y := mat.NewDense(8, 1, []float64{0, 0, 0, 0, 1, 1, 1, 1})
	var losses []float64
	for _, solver := range []learners.LogisticSolver{learners.LogisticNewton, learners.LogisticLBFGS, learners.LogisticDescent} {
		m, err := learners.Logistic{Solver: solver, Tol: 1e-14}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, m.Coef().At(0, 0))
		checkClose(t, string(solver), losses[len(losses)-1], losses[0], 1e-5*losses[0])
	}
	m, err := learners.Logistic{Solver: learners.LogisticLBFGS, Lambda: 1e-3, MaxIter: 1, Tol: 1e-15}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w := fact(t, m, "warning").(string); !strings.Contains(w, "did not converge within 1 iteration") || !(fact(t, m, "remaining decrease").(float64) > 1e-15) {
		t.Errorf("got %q, %v", w, m.Facts())
	}
}

// TestLogisticSGD checks that stochastic gradient descent ends at a loss near the minimum.
func TestLogisticSGD(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := wholeNumbers(500, 4, 3, 2)
	t.Log("seed 2")
	exact, err := learners.Logistic{Lambda: 1}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for batch, epochs := range map[int]int{1: 20, 10: 200} {
		m, err := learners.Logistic{Lambda: 1, Solver: learners.LogisticSGD, Batch: batch, MaxIter: epochs}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, want := fact(t, m, "loss").(float64), fact(t, exact, "loss").(float64)
		t.Logf("batches of %d: loss %v, at the minimum %v", batch, got, want)
		if got < want*(1-1e-9) || got > 1.1*want { // the loss at W = 0 is 500 ln 3, which is six times as large
			t.Errorf("batches of %d: loss %v, at the minimum %v", batch, got, want)
		}
	}
}

// TestDivergence checks that for sgd, gradient descent and the perceptron a learning rate that is
// too high gives an error and no model, and that infinite predictions give an error too.
func TestDivergence(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := wholeNumbers(200, 4, 3, 2)
	t.Log("seed 2")
	scaled := mat.DenseCopyOf(x)
	scaled.Scale(1e100, x)
	for name, c := range map[string]struct {
		fit  learners.Fitter
		x    *mat.Dense
		text string
	}{
		"sgd":              {fitter(learners.Logistic{Lambda: 1, Solver: learners.LogisticSGD, Rate: 100}.Fit), x, "lower the rate"},
		"sgd, mild":        {fitter(learners.Logistic{Lambda: 1e-3, Solver: learners.LogisticSGD, Rate: 1e4, MaxIter: 1}.Fit), x, "lower the rate"},
		"gradient-descent": {fitter(learners.Logistic{Lambda: 1e3, Solver: learners.LogisticDescent, Rate: 100, MaxIter: 50}.Fit), x, "lower the rate"},
		"perceptron":       {fitter(learners.Perceptron{Rate: 1e300, NoIntercept: true, NoShuffle: true}.Fit), scaled, "scale the features down"},
		"averaged":         {fitter(learners.Perceptron{Rate: 1e300, Kind: learners.AveragedPerceptron, Epochs: 1, NoShuffle: true}.Fit), scaled, "scale the features down"},
	} {
		if m, err := c.fit(t.Context(), dev, c.x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, model %v", name, err, m)
		}
	}
	m, err := learners.Ridge{Lambda: 1}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := m.State() // a forged file may hold numbers that are finite but give infinite predictions
	s.Arrays["coef"].Data[0] = -1e308
	forged, err := learners.Restore(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := forged.Predict(t.Context(), dev, mat.NewDense(1, 4, []float64{100, 0, 0, 0})); err == nil || !strings.Contains(err.Error(), "row 1: the prediction is -Inf") {
		t.Errorf("got %v", err)
	}
}
