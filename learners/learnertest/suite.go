// Package learnertest is the test suite of every learner. It tests the properties of Fit and Predict that do not
// depend on the kind of model. The test of a learner is
//
//	func TestRidge(t *testing.T) {
//		learnertest.Run(t, learnertest.Suite{Learner: "ridge", Fit: …})
//	}
//
// in a file that imports the backends. The suite runs on every registered device that the machine can use; with
// -short, only on the best device, and a quarter of the tests on ref.
package learnertest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers/solvertest"
	"gonum.org/v1/gonum/mat"
)

// Suite describes a learner.
type Suite struct {
	Learner string        // name of the learner, as returned by Model.Learner
	Task    learners.Task // zero means learners.Regression
	Fit     learners.Fitter
	// Unfitted holds the zero value of the type that Fit returns.
	Unfitted []learners.Model

	Single     bool // whether a learner of regression accepts only one target
	Unweighted bool // whether Fit returns an error for weights
	Steps      bool // whether a weight multiplies the step of its sample, so that weight 2 differs from two equal samples; a sample of weight 0 has no effect
	Binary     bool // whether a classifier accepts only two classes

	// Terms returns the sum of the absolute values of the terms of output j of a model at the point x, including
	// the intercept, and the number of terms: they bound the rounding errors. If Terms is nil, the bound assumes
	// 1000 terms, whose absolute values sum to the largest absolute value of an output.
	Terms func(m learners.Model, x []float64, j int) (sum float64, n int)
	// Condition is an upper bound on the condition number of the system that Fit solves for 30 samples of 3
	// standard normal features. For an iterative learner, it is the tolerance of the learner divided by 1e-13.
	Condition float64
	Seed      uint64 // seed of all random numbers; 0 means 1
}

const epsilon = 0x1p-52

// Run runs the suite on every device that the machine can use.
func Run(t *testing.T, s Suite) {
	if s.Seed == 0 {
		s.Seed = 1
	}
	if s.Task == "" {
		s.Task = learners.Regression
	}
	solvertest.EachDevice(t, func(t *testing.T, open solvertest.Open) {
		dev := open(t, backend.Config{})
		probable := slices.ContainsFunc(s.Unfitted, func(m learners.Model) bool { _, ok := m.(learners.Prober); return ok })
		for i, test := range []struct {
			name string
			run  func(*cell)
		}{
			{"Model", testModel},
			{"RowByRow", testRowByRow},
			{"MatrixKinds", testMatrixKinds},
			{"InputsStay", testInputsStay},
			{"ModelStays", testModelStays},
			{"SameBits", testSameBits},
			{"Goroutines", testGoroutines},
			{"Predictor", testPredictor},
			{"Outputs", testOutputs},
			{"Classes", testClasses},
			{"Probabilities", testProbabilities},
			{"Weights", testWeights},
			{"RefusedFit", testRefusedFit},
			{"RefusedPredict", testRefusedPredict},
			{"Unfitted", testUnfitted},
			{"Options", testOptions},
			{"Canceled", testCanceled},
			{"State", testState},
			{"RefusedState", testRefusedState},
		} {
			switch {
			case test.name == "Outputs" && s.targets() == 1,
				test.name == "Classes" && s.Task != learners.Classification,
				test.name == "Probabilities" && !probable,
				required.FewCases() && dev.Info().Device == "ref" && (i+len(s.Learner))%4 != 0:
				continue
			}
			t.Run(test.name, func(t *testing.T) {
				c := &cell{T: t, Suite: s, dev: dev}
				test.run(c)
				c.checkMemoryFreed()
			})
		}
	})
}

// cell is the run of one test on one device.
type cell struct {
	*testing.T
	Suite
	dev backend.Device
}

// data returns 30 samples of 3 standard normal features with 2 targets, or one target for Suite.Single. For
// classification the target is one of three labels, or of two for Suite.Binary; for novelty it is NaN.
func (c *cell) data() (x, y *mat.Dense) {
	c.Logf("seed %d", c.Seed)
	r := rand.New(rand.NewPCG(c.Seed, 0))
	x, y = mat.NewDense(30, 3, nil), mat.NewDense(30, 2, nil)
	for i := range 30 {
		sum := 0.0
		for j := range 3 {
			v := r.NormFloat64()
			x.Set(i, j, v)
			sum += float64(j+1) * v
		}
		y.Set(i, 0, sum+0.1*r.NormFloat64())
		y.Set(i, 1, 5+math.Sin(sum))
	}
	switch {
	case c.Task == learners.Novelty:
		for i := range 30 {
			y.Set(i, 0, math.NaN())
		}
	case c.Task == learners.Classification:
		label := func(i int) float64 {
			switch v := y.At(i, 0); {
			case c.Binary && v > 0, v > 1.5:
				return 7
			case c.Binary || v < -1.5:
				return -2
			}
			return 0.5
		}
		for i := range 30 {
			y.Set(i, 0, label(i))
		}
	case !c.Single:
		return x, y
	}
	return x, mat.DenseCopyOf(y.Slice(0, 30, 0, 1))
}

// targets returns the number of columns of the y that cell.data returns.
func (s Suite) targets() int {
	if s.Task == learners.Regression && !s.Single {
		return 2
	}
	return 1
}

func (c *cell) fit(x, y mat.Matrix, o learners.Options) learners.Model {
	c.Helper()
	m, err := c.Fit(c.Context(), c.dev, x, y, o)
	if err != nil {
		c.Fatal(err)
	}
	return m
}

func (c *cell) predict(m learners.Model, x mat.Matrix) *mat.Dense {
	c.Helper()
	f, err := m.Predict(c.Context(), c.dev, x)
	if err != nil {
		c.Fatal(err)
	}
	return f
}

// values returns the predictions of a regression and the decision values of a classifier. It checks that the
// predicted labels agree with the decision values, or with the probabilities of an SVC.
func (c *cell) values(m learners.Model, x mat.Matrix) *mat.Dense {
	c.Helper()
	f := c.predict(m, x)
	k, ok := m.(learners.Classifier)
	if !ok {
		return f
	}
	d, err := k.Decision(c.Context(), c.dev, x)
	if err != nil {
		c.Fatal(err)
	}
	n, cols := d.Dims()
	classes := k.Classes()
	if cols != classes.Columns() {
		c.Fatalf("%d columns of decision values for %d classes", cols, classes.Len())
	}
	_, svc := m.(*learners.SVCModel)
	if p, ok := learners.As[learners.Prober](m); ok && svc {
		proba, err := p.Proba(c.Context(), c.dev, x)
		if err != nil {
			c.Fatal(err)
		}
		for i := range n {
			if row := proba.RawRowView(i); row[classes.Index(f.At(i, 0))] != slices.Max(row) {
				c.Errorf("row %d: the prediction is %v, with the probabilities %v", i, f.At(i, 0), row)
			}
		}
		return d
	}
	for i := range n {
		class := 0
		for j, v := range d.RawRowView(i) {
			if cols == 1 && v > 0 {
				class = 1
			} else if v > d.At(i, class) {
				class = j
			}
		}
		if f.At(i, 0) != classes.Labels[class] {
			c.Errorf("row %d: the decision values %v mean class %d, the prediction is %v", i, d.RawRowView(i), class, f.At(i, 0))
		}
	}
	return d
}

func (c *cell) checkMemoryFreed() {
	c.Helper()
	if inUse, _ := c.dev.InUse(); inUse != 0 {
		c.Errorf("%d bytes on the device were not freed", inUse)
	}
}

// checkRefused checks that err is one line that begins with the learner's name and contains want.
func (c *cell) checkRefused(err error, want string) {
	c.Helper()
	if err == nil {
		c.Errorf("not refused: want an error with %q", want)
		return
	}
	text := err.Error()
	if !strings.HasPrefix(text, "learners: "+c.Learner+": ") || !strings.Contains(text, want) || strings.Contains(text, "\n") {
		c.Errorf("got the error %q, want %q in it", text, want)
	}
	c.checkMemoryFreed()
}

// checkEqual checks that the elements of got and want have equal bits.
func (c *cell) checkEqual(name string, got, want mat.Matrix) {
	c.Helper()
	c.checkClose(name, got, want, func(int, int) float64 { return 0 })
}

// checkClose checks that |got − want| ≤ bound(i, j).
func (c *cell) checkClose(name string, got, want mat.Matrix, bound func(i, j int) float64) {
	c.Helper()
	r, t := want.Dims()
	if gr, gt := got.Dims(); gr != r || gt != t {
		c.Fatalf("%s: is %d×%d, want %d×%d", name, gr, gt, r, t)
	}
	numErrors := 0
	for i := range r {
		for j := range t {
			if d, b := math.Abs(got.At(i, j)-want.At(i, j)), bound(i, j); !(d <= b) {
				if numErrors++; numErrors <= 3 {
					c.Errorf("%s: row %d, output %d: got %v, want %v: difference %.3g, allowed %.3g", name, i, j, got.At(i, j), want.At(i, j), d, b)
				}
			}
		}
	}
}

// rounding returns a bound on the difference of two predictions of m that add their n terms in different orders. Each
// order causes at most n rounding errors in the sum, and d + 16 in a kernel value of points with d features.
func (c *cell) rounding(m learners.Model, x *mat.Dense) func(i, j int) float64 {
	_, d := x.Dims()
	if c.Terms == nil {
		f := c.values(m, x)
		maxAbs := max(math.Abs(mat.Max(f)), math.Abs(mat.Min(f)))
		return func(i, j int) float64 { return 2 * epsilon * float64(1000+d+16) * maxAbs }
	}
	return func(i, j int) float64 {
		sum, n := c.Terms(m, x.RawRowView(i), j)
		return 2 * epsilon * float64(n+d+16) * sum
	}
}

// solveBound returns the bound on rounding errors times the condition number.
func (c *cell) solveBound(m learners.Model, x *mat.Dense) func(i, j int) float64 {
	bound := c.rounding(m, x)
	return func(i, j int) float64 { return c.Condition * bound(i, j) }
}

func describe(m learners.Model) string {
	d, t := m.Dims()
	return fmt.Sprintf("%s with %d features, %d outputs", m.Learner(), d, t)
}
