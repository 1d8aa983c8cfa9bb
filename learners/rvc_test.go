package learners_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"gonum.org/v1/gonum/mat"
)

func TestRVC(t *testing.T) {
	learnertest.Run(t, learnertest.Suite{
		Learner: "rvc", Task: learners.Classification,
		Fit:      fitter(learners.RVC{Kernel: kernels.Gaussian{Sigma: 2}, Tol: 1e-9}.Fit),
		Unfitted: []learners.Model{&learners.RVCModel{}},
		// Near the maximum, relative errors of √1e-9 in α change the evidence by only about 1e-9.
		Condition: 1e9,
	})
}

// TestRVCEvidence checks that the log evidence never decreases, that the model has at most 20
// relevance vectors, and that the probabilities are calibrated on new samples.
func TestRVCEvidence(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		n := 400
		if testing.Short() {
			n = 150
		}
		t.Log("seeds 31, 32")
		x, y := rings(n, 0.3, 31)
		m, err := learners.RVC{Kernel: kernels.Gaussian{Sigma: 1}}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, trace := range m.Traces() {
			for i, v := range trace[1:] {
				if !(v > trace[i]) {
					t.Errorf("step %d: the evidence falls from %v to %v", i+2, trace[i], v)
				}
			}
		}
		const tests = 4000
		newX, newY := rings(tests, 0.3, 32)
		p, err := m.Proba(t.Context(), dev, newX)
		if err != nil {
			t.Fatal(err)
		}
		loss, right := 0.0, 0
		for i := range tests {
			v := p.At(i, int(newY.At(i, 0)))
			loss -= math.Log(v) / tests
			if v > 0.5 {
				right++
			}
		}
		t.Logf("accuracy %.3f, log loss %.3f; %v", float64(right)/tests, loss, m.Facts())
		// The best separation, at the radius 1.5, has an accuracy of Φ(0.5/0.3) = 95.2 % and a log loss of 0.12.
		if float64(right)/tests < 0.93 || loss > 0.25 || m.Relevance().RawMatrix().Rows > 20 {
			t.Errorf("accuracy %.3f, log loss %.3f, %d vectors", float64(right)/tests, loss, m.Relevance().RawMatrix().Rows)
		}
	})
}

// TestRVCOne compares the mode and the evidence of a model that contains only the constant with their closed
// forms.
func TestRVCOne(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		// k(x, z) = xz is 0 at x = 0. Of the 10 samples 8 are of the second class.
		x, y := mat.NewDense(10, 1, nil), mat.NewDense(10, 1, nil)
		for i := range 8 {
			y.Set(i, 0, 1)
		}
		m, err := learners.RVC{Kernel: kernels.Linear{}, Tol: 1e-12}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// In Laplace's approximation, the log evidence for a given α is 8 log σ(μ) + 2 log σ(−μ) − αμ²/2, at its
		// maximum over μ, plus ½ log α − ½ log(10 σ(μ)σ(−μ) + α). A grid search finds the best α.
		sigma := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
		maximum := math.Inf(-1)
		const step = 1e-3
		for a := -6.0; a < 3; a += step {
			alpha, mu := math.Exp(a), 0.0
			for range 50 {
				mu += (8 - 10*sigma(mu) - alpha*mu) / (10*sigma(mu)*sigma(-mu) + alpha)
			}
			maximum = max(maximum, 8*math.Log(sigma(mu))+2*math.Log(sigma(-mu))-alpha*mu*mu/2+math.Log(alpha)/2-math.Log(10*sigma(mu)*sigma(-mu)+alpha)/2)
		}
		trace := m.Traces()[0]
		// The grid value is too low by at most step²/8, and Newton's steps end within Tol of the maximum.
		checkClose(t, "log evidence", trace[len(trace)-1], maximum, step*step/8+2e-12)
	})
}

// sixClasses returns the centers of six normal distributions with unit covariance, and a function
// that draws samples from them.
func sixClasses() (centers *mat.Dense, draw func(n int, seed uint64) (x, y *mat.Dense)) {
	const classes, features = 6, 20
	r := rand.New(rand.NewPCG(34, 0))
	centers = mat.NewDense(classes, features, nil)
	for c := range classes {
		for j := range features {
			centers.Set(c, j, 0.6*r.NormFloat64())
		}
	}
	return centers, func(n int, seed uint64) (x, y *mat.Dense) {
		r := rand.New(rand.NewPCG(seed, 0))
		x, y = mat.NewDense(n, features, nil), mat.NewDense(n, 1, nil)
		for i := range n {
			c := r.IntN(classes)
			y.Set(i, 0, float64(c))
			for j := range features {
				x.Set(i, j, centers.At(c, j)+r.NormFloat64())
			}
		}
		return x, y
	}
}

// weightsOf returns the total number of nonzero weights of the binary models.
func weightsOf(m *learners.RVCModel) (count int) {
	for _, w := range m.State().Arrays["weights"].Data {
		if w != 0 {
			count++
		}
	}
	return count
}

// TestRVCNarrowKernel fits with a kernel so narrow that most kernel values are nearly 0. The mode of the weights must
// be computed at most twice for each basis function. The log evidence must exceed −259.19, the result of an algorithm
// that computes 422 modes.
func TestRVCNarrowKernel(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	t.Log("seeds 34, 35")
	_, draw := sixClasses()
	x, y := draw(400, 35)
	m, err := learners.RVC{Kernel: kernels.Gaussian{Sigma: 2}}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	modes, value := 0, 0.0
	for _, f := range m.Facts() {
		switch f.Name {
		case "modes":
			modes = f.Value.(int)
		case "log evidence":
			value = f.Value.(float64)
		case "warning":
			t.Error(f.Value)
		}
	}
	if modes == 0 || modes > 2*weightsOf(m) {
		t.Errorf("%d modes for %d weights", modes, weightsOf(m))
	}
	t.Logf("log evidence %v", value)
	if !(value > -259.19) {
		t.Errorf("log evidence %v", value)
	}
}

// TestRVCBatches checks that the number of computed modes is smaller than the number of basis
// functions, and that the predictions are nearly as accurate as Bayes' rule.
func TestRVCBatches(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	t.Log("seeds 34, 35, 36")
	centers, draw := sixClasses()
	x, y := draw(500, 35)
	m, err := learners.RVC{}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	modes, functions := 0, weightsOf(m)
	for _, trace := range m.Traces() {
		modes += len(trace)
	}
	const tests = 4000
	newX, newY := draw(tests, 36)
	p, err := m.Predict(t.Context(), dev, newX)
	if err != nil {
		t.Fatal(err)
	}
	correct, bayesCorrect := 0.0, 0.0
	for i := range tests {
		// Bayes' rule chooses the class of the nearest center.
		nearest, minDistance := 0, math.Inf(1)
		for c := range 6 {
			var d mat.VecDense
			d.SubVec(newX.RowView(i), centers.RowView(c))
			if v := mat.Norm(&d, 2); v < minDistance {
				nearest, minDistance = c, v
			}
		}
		if newY.At(i, 0) == float64(nearest) {
			bayesCorrect += 1.0 / tests
		}
		if newY.At(i, 0) == p.At(i, 0) {
			correct += 1.0 / tests
		}
	}
	t.Logf("%d modes, %d weights, accuracy %.3f, %.3f by Bayes' rule; %v", modes, functions, correct, bayesCorrect, m.Facts())
	if modes >= functions {
		t.Errorf("%d modes for %d functions: functions are added one by one", modes, functions)
	}
	// The measured difference was 0.026, with a standard error of √(0.05/4000) = 0.0035.
	if correct < bayesCorrect-0.06 {
		t.Errorf("accuracy %.3f, that of Bayes' rule is %.3f", correct, bayesCorrect)
	}
}

// TestRVCLarge fits 2000 samples and logs the time.
func TestRVCLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("2000 samples: not under -short")
	}
	dev := backendtest.Device(t, "cpu")
	x, y := rings(2000, 0.3, 33)
	start := time.Now()
	m, err := learners.RVC{Kernel: kernels.Gaussian{Sigma: 0.7}}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.2f s; %v", time.Since(start).Seconds(), m.Facts())
}
