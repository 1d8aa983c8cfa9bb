package learnertest

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
	"gonum.org/v1/gonum/mat"
)

func testModel(c *cell) {
	x, y := c.data()
	m := c.fit(x, y, learners.Options{})
	if got, want := describe(m), fmt.Sprintf("%s with 3 features, %d outputs", c.Learner, c.targets()); got != want {
		c.Errorf("the model is %s, want %s", got, want)
	}
	if s, ok := m.(learners.Solved); ok {
		if res := s.Solved(); res == nil || !(res.Residual >= 0) || res.Plan.Bytes <= 0 {
			c.Fatalf("Solved is %+v", res)
		}
	}
	if t, ok := m.(learners.Describer); ok {
		for _, f := range t.Facts() {
			switch f.Value.(type) {
			case int, float64, string, bool:
			default:
				c.Errorf("the fact %q is a %T", f.Name, f.Value)
			}
		}
	}
	f := c.predict(m, x)
	switch c.Task {
	case learners.Regression:
		score, err := validate.ScoreRegression(y.ColView(0), f.ColView(0), nil)
		if err != nil {
			c.Fatal(err)
		}
		// The noise of the target has standard deviation 0.1; any learner explains at least half of the variance.
		if *score.R2 < 0.5 {
			c.Errorf("R² of the linear target is %v", *score.R2)
		}
	case learners.Classification:
		correct := 0
		for i := range 30 {
			if f.At(i, 0) == y.At(i, 0) {
				correct++
			}
		}
		// Random guesses are correct for a third of the samples.
		if correct < 15 {
			c.Errorf("%d of 30 samples are classified correctly", correct)
		}
	}
}

func testRowByRow(c *cell) {
	x, y := c.data()
	m := c.fit(x, y, learners.Options{})
	batch := c.values(m, x)
	_, cols := batch.Dims()
	rows := mat.NewDense(30, cols, nil)
	for i := range 30 {
		rows.SetRow(i, c.values(m, x.Slice(i, i+1, 0, 3)).RawRowView(0))
	}
	c.checkClose("row by row", rows, batch, c.rounding(m, x))
}

// opaque hides the type of a matrix, so that only the methods of mat.Matrix are available.
type opaque struct{ mat.Matrix }

// testMatrixKinds checks that each kind of mat.Matrix is accepted, and that results have the same bits for all kinds.
func testMatrixKinds(c *cell) {
	x, y := c.data()
	want := c.values(c.fit(x, y, learners.Options{}), x)
	padded := mat.NewDense(32, 9, nil)
	for i := range padded.RawMatrix().Data {
		padded.RawMatrix().Data[i] = math.NaN()
	}
	view := padded.Slice(1, 31, 2, 5).(*mat.Dense)
	view.Copy(x)
	for name, kind := range map[string]mat.Matrix{
		"part of a matrix": view,
		"transposed":       mat.DenseCopyOf(x.T()).T(),
		"of another type":  opaque{x},
	} {
		m := c.fit(kind, y, learners.Options{})
		c.checkEqual("fitted to x "+name, c.values(m, x), want)
		c.checkEqual("predicted for x "+name, c.values(m, kind), want)
		c.checkEqual("fitted to y "+name, c.values(c.fit(x, opaque{y}, learners.Options{}), x), want)
	}
	single := c.values(c.fit(x, mat.NewVecDense(30, mat.Col(nil, 0, y)), learners.Options{}), x)
	c.checkEqual("fitted to a column of y", c.values(c.fit(x, y.ColView(0), learners.Options{}), x), single)
}

// testInputsStay checks that Fit and Predict do not modify their arguments, including the gaps between rows.
func testInputsStay(c *cell) {
	x, y := c.data()
	end := 5 + c.targets()
	padded := mat.NewDense(30, end+1, nil)
	padded.Slice(0, 30, 1, 4).(*mat.Dense).Copy(x)
	padded.Slice(0, 30, 5, end).(*mat.Dense).Copy(y)
	var weights []float64
	if !c.Unweighted {
		weights = make([]float64, 30)
		for i := range weights {
			weights[i] = float64(i % 3)
		}
	}
	dataBefore, weightsBefore := slices.Clone(padded.RawMatrix().Data), slices.Clone(weights)
	m := c.fit(padded.Slice(0, 30, 1, 4), padded.Slice(0, 30, 5, end), learners.Options{Weights: weights})
	c.values(m, padded.Slice(0, 30, 1, 4))
	for i, v := range padded.RawMatrix().Data {
		if math.Float64bits(v) != math.Float64bits(dataBefore[i]) {
			c.Fatal("x or y was changed")
		}
	}
	if !slices.Equal(weights, weightsBefore) {
		c.Error("the weights were changed")
	}
}

// testModelStays checks that a model does not depend on its training data after the fit.
func testModelStays(c *cell) {
	x, y := c.data()
	queries := mat.DenseCopyOf(x)
	m := c.fit(x, y, learners.Options{})
	want := c.values(m, queries)
	x.Zero()
	y.Zero()
	c.checkEqual("after x and y were cleared", c.values(m, queries), want)
	want.Zero()
	if mat.Norm(c.values(m, queries), 1) == 0 {
		c.Error("predictions share memory")
	}
}

func testSameBits(c *cell) {
	x, y := c.data()
	a, b := c.fit(x, y, learners.Options{}), c.fit(x, y, learners.Options{})
	c.checkEqual("predictions", c.values(b, x), c.values(a, x))
	sa, sb := a.State(), b.State()
	for name, h := range sa.Arrays {
		for i := range h.Rows {
			if !slices.Equal(h.Row(i), sb.Arrays[name].Row(i)) {
				c.Errorf("row %d of the array %q differs", i, name)
			}
		}
	}
}

func testGoroutines(c *cell) {
	x, y := c.data()
	m := c.fit(x, y, learners.Options{})
	want := c.predict(m, x)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			f, err := m.Predict(c.Context(), c.dev, x)
			if err != nil || !mat.Equal(f, want) {
				c.Errorf("concurrent predictions differ from a single one: %v", err)
			}
		})
	}
	group.Wait()
}

// testOutputs checks that each output is fitted separately.
func testOutputs(c *cell) {
	x, y := c.data()
	m := c.fit(x, y, learners.Options{})
	joint := c.predict(m, x)
	bound := c.solveBound(m, x)
	for j := range 2 {
		single := c.predict(c.fit(x, y.ColView(j), learners.Options{}), x)
		c.checkClose("one output", single, joint.ColView(j), func(i, _ int) float64 { return bound(i, j) })
	}
}

// testSteps checks the weights of learners whose Suite sets Steps: 0 must have no effect, weights of 1 must equal
// nil weights, and other weights must have an effect.
func (c *cell) testSteps(x, y *mat.Dense) {
	present, ones, varied := make([]float64, 30), make([]float64, 30), make([]float64, 30)
	var px, py []float64
	for i := range 30 {
		ones[i], varied[i] = 1, 1+float64(i%3)
		if i%3 > 0 {
			present[i] = 1
			px, py = append(px, x.RawRowView(i)...), append(py, y.RawRowView(i)...)
		}
	}
	m := c.fit(x, y, learners.Options{Weights: present})
	reduced := c.fit(mat.NewDense(len(px)/3, 3, px), mat.NewDense(len(py), 1, py), learners.Options{})
	c.checkEqual("weight 0", c.values(m, x), c.values(reduced, x))
	unweighted := c.values(c.fit(x, y, learners.Options{}), x)
	c.checkEqual("weight 1", c.values(c.fit(x, y, learners.Options{Weights: ones}), x), unweighted)
	if mat.Equal(c.values(c.fit(x, y, learners.Options{Weights: varied}), x), unweighted) {
		c.Error("weights change nothing")
	}
}

// testWeights checks that a sample of weight 0 has no effect, and that a sample of weight 2 has the
// effect of two samples.
func testWeights(c *cell) {
	x, y := c.data()
	weights := make([]float64, 30)
	var rx, ry []float64
	for i := range weights {
		weights[i] = float64(i % 3)
		for range i % 3 {
			rx, ry = append(rx, x.RawRowView(i)...), append(ry, y.RawRowView(i)...)
		}
	}
	if c.Unweighted {
		_, err := c.Fit(c.Context(), c.dev, x, y, learners.Options{Weights: weights})
		c.checkRefused(err, "takes no weights")
		return
	}
	if c.Steps {
		c.testSteps(x, y)
		return
	}
	if c.Task == learners.Regression { // the target of a sample of weight 0 must have no effect either
		for j := range c.targets() {
			y.Set(0, j, 1e6)
		}
	}
	m := c.fit(x, y, learners.Options{Weights: weights})
	repeated := c.fit(mat.NewDense(len(rx)/3, 3, rx), mat.NewDense(len(ry)/c.targets(), c.targets(), ry), learners.Options{})
	a, b := c.solveBound(m, x), c.solveBound(repeated, x)
	c.checkClose("weights", c.values(m, x), c.values(repeated, x), func(i, j int) float64 { return a(i, j) + b(i, j) })
}
