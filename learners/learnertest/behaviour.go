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
		// The target is a linear function plus noise of standard deviation 0.1. Any learner
		// explains at least half of its variance.
		if *score.R2 < 0.5 {
			c.Errorf("R² of the linear target is %v", *score.R2)
		}
	case learners.Classification:
		right := 0
		for i := range 30 {
			if f.At(i, 0) == y.At(i, 0) {
				right++
			}
		}
		// Each class is a range of values of a linear function. Any classifier predicts at least
		// half of its training samples correctly; random guesses are correct for a third.
		if right < 15 {
			c.Errorf("%d of 30 samples are classified correctly", right)
		}
	}
}

func testRowByRow(c *cell) {
	x, y := c.data()
	m := c.fit(x, y, learners.Options{})
	all := c.values(m, x)
	_, cols := all.Dims()
	rows := mat.NewDense(30, cols, nil)
	for i := range 30 {
		rows.SetRow(i, c.values(m, x.Slice(i, i+1, 0, 3)).RawRowView(0))
	}
	c.near("row by row", rows, all, c.rounding(m, x))
}

// plain hides the type of a matrix, so that only the methods of mat.Matrix are available.
type plain struct{ mat.Matrix }

// testMatrixKinds checks that each kind of mat.Matrix is accepted, and that results have the same
// bits for all kinds.
func testMatrixKinds(c *cell) {
	x, y := c.data()
	want := c.values(c.fit(x, y, learners.Options{}), x)
	wide := mat.NewDense(32, 9, nil)
	for i := range wide.RawMatrix().Data {
		wide.RawMatrix().Data[i] = math.NaN()
	}
	part := wide.Slice(1, 31, 2, 5).(*mat.Dense)
	part.Copy(x)
	for name, kind := range map[string]mat.Matrix{
		"part of a matrix": part,
		"transposed":       mat.DenseCopyOf(x.T()).T(),
		"of another type":  plain{x},
	} {
		m := c.fit(kind, y, learners.Options{})
		c.same("fitted to x "+name, c.values(m, x), want)
		c.same("predicted for x "+name, c.values(m, kind), want)
		c.same("fitted to y "+name, c.values(c.fit(x, plain{y}, learners.Options{}), x), want)
	}
	one := c.values(c.fit(x, mat.NewVecDense(30, mat.Col(nil, 0, y)), learners.Options{}), x)
	c.same("fitted to a column of y", c.values(c.fit(x, y.ColView(0), learners.Options{}), x), one)
}

// testInputsStay checks that Fit and Predict do not modify their arguments, including the gaps
// between rows.
func testInputsStay(c *cell) {
	x, y := c.data()
	end := 5 + c.targets()
	wide := mat.NewDense(30, end+1, nil)
	wide.Slice(0, 30, 1, 4).(*mat.Dense).Copy(x)
	wide.Slice(0, 30, 5, end).(*mat.Dense).Copy(y)
	var weights []float64
	if !c.Unweighted {
		weights = make([]float64, 30)
		for i := range weights {
			weights[i] = float64(i % 3)
		}
	}
	before, weightsBefore := slices.Clone(wide.RawMatrix().Data), slices.Clone(weights)
	m := c.fit(wide.Slice(0, 30, 1, 4), wide.Slice(0, 30, 5, end), learners.Options{Weights: weights})
	c.values(m, wide.Slice(0, 30, 1, 4))
	for i, v := range wide.RawMatrix().Data {
		if math.Float64bits(v) != math.Float64bits(before[i]) {
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
	ask := mat.DenseCopyOf(x)
	m := c.fit(x, y, learners.Options{})
	want := c.values(m, ask)
	x.Zero()
	y.Zero()
	c.same("after x and y were cleared", c.values(m, ask), want)
	want.Zero()
	if mat.Norm(c.values(m, ask), 1) == 0 {
		c.Error("predictions share memory")
	}
}

func testSameBits(c *cell) {
	x, y := c.data()
	a, b := c.fit(x, y, learners.Options{}), c.fit(x, y, learners.Options{})
	c.same("predictions", c.values(b, x), c.values(a, x))
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
	all := c.predict(m, x)
	bound := c.solved(m, x)
	for j := range 2 {
		one := c.predict(c.fit(x, y.ColView(j), learners.Options{}), x)
		c.near("one output", one, all.ColView(j), func(i, _ int) float64 { return bound(i, j) })
	}
}

// testSteps checks, for learners in which a weight multiplies a step, that a sample of weight 0 has no
// effect, that weights of 1 give the same results as nil weights, and that other weights have an effect.
func (c *cell) testSteps(x, y *mat.Dense) {
	present, ones, other := make([]float64, 30), make([]float64, 30), make([]float64, 30)
	var px, py []float64
	for i := range 30 {
		ones[i], other[i] = 1, 1+float64(i%3)
		if i%3 > 0 {
			present[i] = 1
			px, py = append(px, x.RawRowView(i)...), append(py, y.RawRowView(i)...)
		}
	}
	m := c.fit(x, y, learners.Options{Weights: present})
	some := c.fit(mat.NewDense(len(px)/3, 3, px), mat.NewDense(len(py), 1, py), learners.Options{})
	c.same("weight 0", c.values(m, x), c.values(some, x))
	plain := c.values(c.fit(x, y, learners.Options{}), x)
	c.same("weight 1", c.values(c.fit(x, y, learners.Options{Weights: ones}), x), plain)
	if mat.Equal(c.values(c.fit(x, y, learners.Options{Weights: other}), x), plain) {
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
		c.refused(err, "takes no weights")
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
	a, b := c.solved(m, x), c.solved(repeated, x)
	c.near("weights", c.values(m, x), c.values(repeated, x), func(i, j int) float64 { return a(i, j) + b(i, j) })
}
