package learnertest

import (
	"math"
	"slices"
	"sync"

	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

func testModel(c *cell) {
	x, y := c.data()
	m := c.fit(x, y, learners.Options{})
	if got, want := describe(m), c.Learner+" with 3 features, 2 outputs"; got != want {
		c.Errorf("the model is %s, want %s", got, want)
	}
	res := m.Solved()
	if res == nil || !(res.Residual >= 0) || res.Plan.Bytes <= 0 {
		c.Fatalf("Solved is %+v", res)
	}
	score, err := learners.ScoreRegression(y.ColView(0), c.predict(m, x).ColView(0))
	if err != nil {
		c.Fatal(err)
	}
	// A linear target with a tenth of noise: any learner explains half of it.
	if score.R2 < 0.5 {
		c.Errorf("R² of the linear target is %v", score.R2)
	}
}

func testRowByRow(c *cell) {
	x, y := c.data()
	m := c.fit(x, y, learners.Options{})
	all := c.predict(m, x)
	rows := mat.NewDense(30, 2, nil)
	for i := range 30 {
		rows.SetRow(i, c.predict(m, x.Slice(i, i+1, 0, 3)).RawRowView(0))
	}
	c.near("row by row", rows, all, c.rounding(m, x))
}

// plain hides what a matrix is.
type plain struct{ mat.Matrix }

// testMatrixKinds: any mat.Matrix is taken, with the same bits.
func testMatrixKinds(c *cell) {
	x, y := c.data()
	want := c.predict(c.fit(x, y, learners.Options{}), x)
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
		c.same("fitted to x "+name, c.predict(m, x), want)
		c.same("predicted for x "+name, c.predict(m, kind), want)
		c.same("fitted to y "+name, c.predict(c.fit(x, plain{y}, learners.Options{}), x), want)
	}
	one := c.predict(c.fit(x, mat.NewVecDense(30, mat.Col(nil, 0, y)), learners.Options{}), x)
	c.same("fitted to a column of y", c.predict(c.fit(x, y.ColView(0), learners.Options{}), x), one)
}

// testInputsStay: nothing that is passed in is changed, nor what lies between.
func testInputsStay(c *cell) {
	x, y := c.data()
	wide := mat.NewDense(30, 8, nil)
	wide.Slice(0, 30, 1, 4).(*mat.Dense).Copy(x)
	wide.Slice(0, 30, 5, 7).(*mat.Dense).Copy(y)
	weights := make([]float64, 30)
	for i := range weights {
		weights[i] = float64(i % 3)
	}
	before, weightsBefore := mat.DenseCopyOf(wide), slices.Clone(weights)
	m := c.fit(wide.Slice(0, 30, 1, 4), wide.Slice(0, 30, 5, 7), learners.Options{Weights: weights})
	c.predict(m, wide.Slice(0, 30, 1, 4))
	c.same("x and y afterwards", wide, before)
	if !slices.Equal(weights, weightsBefore) {
		c.Error("the weights were changed")
	}
}

// testModelStays: a model does not depend on what it was fitted to.
func testModelStays(c *cell) {
	x, y := c.data()
	ask := mat.DenseCopyOf(x)
	m := c.fit(x, y, learners.Options{})
	want := c.predict(m, ask)
	x.Zero()
	y.Zero()
	c.same("after x and y were cleared", c.predict(m, ask), want)
	want.Zero()
	if c.predict(m, ask).At(0, 0) == 0 {
		c.Error("predictions share memory")
	}
}

func testSameBits(c *cell) {
	x, y := c.data()
	a, b := c.fit(x, y, learners.Options{}), c.fit(x, y, learners.Options{})
	c.same("predictions", c.predict(b, x), c.predict(a, x))
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
				c.Errorf("several predictions at once differ: %v", err)
			}
		})
	}
	group.Wait()
}

// testOutputs: each output is fitted as if it were alone.
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

// testWeights: 0 is absence, and a weight is a number of repetitions.
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
	y.SetRow(0, []float64{1e6, 1e6}) // of weight 0: must not matter
	m := c.fit(x, y, learners.Options{Weights: weights})
	repeated := c.fit(mat.NewDense(len(rx)/3, 3, rx), mat.NewDense(len(ry)/2, 2, ry), learners.Options{})
	a, b := c.solved(m, x), c.solved(repeated, x)
	c.near("weights", c.predict(m, x), c.predict(repeated, x), func(i, j int) float64 { return a(i, j) + b(i, j) })
}
