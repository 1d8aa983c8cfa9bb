package learnertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

func set(m *mat.Dense, i, j int, v float64) mat.Matrix {
	n := mat.DenseCopyOf(m)
	n.Set(i, j, v)
	return n
}

func weights(n int, last float64) []float64 {
	w := slices.Repeat([]float64{1}, n)
	w[n-1] = last
	return w
}

func testRefusedFit(c *cell) {
	x, y := c.data()
	nan, inf := math.NaN(), math.Inf(-1)
	var nilDense *mat.Dense
	var nilVec *mat.VecDense
	type badFit struct {
		x, y    mat.Matrix
		weights []float64
		want    string
	}
	badFits := []badFit{
		{nil, y, nil, "x is missing"},
		{nilDense, y, nil, "x is missing"},
		{&mat.Dense{}, y, nil, "x is empty: 0 rows, 0 columns"},
		{set(x, 2, 1, nan), y, nil, "x: row 3, column 2 is NaN"},
		{set(x, 29, 2, inf), y, nil, "x: row 30, column 3 is -Inf"},
	}
	if c.Task != learners.Novelty {
		last := c.targets()
		badFits = append(badFits,
			badFit{x, nil, nil, "y is missing"},
			badFit{x, nilVec, nil, "y is missing"},
			badFit{x, &mat.VecDense{}, nil, "y is empty: 0 rows, "},
			badFit{x.Slice(0, 29, 0, 3), y, nil, "x has 29 rows, y has 30"},
			badFit{x, set(y, 0, last-1, nan), nil, fmt.Sprintf("y: row 1, column %d is NaN", last)})
	}
	if !c.Unweighted {
		badFits = append(badFits,
			badFit{x, y, weights(29, 1), "29 weights for 30 rows"},
			badFit{x, y, weights(30, -1), "weights: row 30"},
			badFit{x, y, weights(30, nan), "weights: row 30"},
			badFit{x, y, make([]float64, 30), ""})
	}
	if c.Task == learners.Classification {
		twoColumns := mat.NewDense(30, 2, nil)
		manyClasses := mat.NewDense(learners.MaxClasses+1, 1, nil)
		for i := range learners.MaxClasses + 1 {
			manyClasses.Set(i, 0, float64(i))
		}
		labels := mat.NewDense(30, 1, nil)
		badFits = append(badFits,
			badFit{x, labels, nil, "one class only"},
			badFit{x, twoColumns, nil, "y has 2 columns"},
			badFit{mat.NewDense(learners.MaxClasses+1, 3, nil), manyClasses, nil, "classes"})
		if c.Binary {
			labels.Set(0, 0, 1)
			labels.Set(1, 0, 2)
			badFits = append(badFits, badFit{x, labels, nil, "two classes"})
		}
	}
	if c.Task == learners.Regression && c.Single {
		badFits = append(badFits, badFit{x, mat.NewDense(30, 2, nil), nil, "y has 2 columns"})
	}
	for _, test := range badFits {
		_, err := c.Fit(c.Context(), c.dev, test.x, test.y, learners.Options{Weights: test.weights})
		c.checkRefused(err, test.want)
	}
	_, err := c.Fit(c.Context(), nil, x, y, learners.Options{})
	c.checkRefused(err, "no device was given")
	if c.Task == learners.Classification {
		_, err := c.Fit(c.Context(), c.dev, x, y, learners.Options{Classes: []string{"a", "b", "c"}})
		c.checkRefused(err, "y: row ")
	}
}

func testRefusedPredict(c *cell) {
	x, y := c.data()
	m := c.fit(x, y, learners.Options{})
	for _, test := range []struct {
		x    mat.Matrix
		want string
	}{
		{nil, "x is missing"},
		{&mat.Dense{}, "x is empty: 0 rows, 0 columns"},
		{x.Slice(0, 30, 0, 2), "x has 2 columns, but the model was fitted to 3 columns"},
		{set(x, 4, 2, math.NaN()), "x: row 5, column 3 is NaN"},
		{set(x, 0, 0, math.Inf(1)), "x: row 1, column 1 is +Inf"},
	} {
		_, err := m.Predict(c.Context(), c.dev, test.x)
		c.checkRefused(err, test.want)
	}
	_, err := m.Predict(c.Context(), nil, x)
	c.checkRefused(err, "no device was given")
}

func testUnfitted(c *cell) {
	x, y := c.data()
	fitted := reflect.TypeOf(c.fit(x, y, learners.Options{}))
	if len(c.Unfitted) == 0 {
		c.Error("the suite names no models that are not fitted")
	}
	for _, m := range c.Unfitted {
		if got := reflect.TypeOf(m); got != fitted {
			c.Errorf("the model is a %v, Fit returns a %v", got, fitted)
		}
		_, err := m.Predict(c.Context(), c.dev, x)
		// If several learners share the type of the model, an unfitted model does not have the name of a learner.
		if err == nil || !strings.HasPrefix(err.Error(), "learners: ") || !strings.HasSuffix(err.Error(), "the model is not fitted") {
			c.Errorf("got the error %v", err)
		}
		if d, t := m.Dims(); d != 0 || t != 0 {
			c.Errorf("the model is %s", describe(m))
		}
		if k, ok := m.(learners.Classifier); ok {
			if _, err := k.Decision(c.Context(), c.dev, x); err == nil || !strings.HasSuffix(err.Error(), "the model is not fitted") {
				c.Errorf("decision values: got the error %v", err)
			}
		}
		if s, ok := m.(learners.Solved); ok && s.Solved() != nil {
			c.Error("Solved is not nil")
		}
		if _, err := learners.Restore(m.State()); err == nil {
			c.Error("the state of a model that is not fitted was restored")
		}
	}
}

// testOptions checks that the options Memory and Progress reach the solver.
func testOptions(c *cell) {
	x, y := c.data()
	_, err := c.Fit(c.Context(), c.dev, x, y, learners.Options{Memory: 1})
	var budget *solvers.BudgetError
	if !errors.As(err, &budget) {
		c.Errorf("with one byte of memory Fit returns the error %v: the learner must give its memory to fitting.task", err)
	}
	c.checkRefused(err, "1 B may be used")
	last := -1.0
	c.fit(x, y, learners.Options{Progress: func(p solvers.Progress) {
		if p.Fraction < last {
			c.Errorf("progress fell from %v to %v", last, p.Fraction)
		}
		last = p.Fraction
	}})
	if last != 1 {
		c.Errorf("progress ended at %v, not at 1 (−1: none was reported): Fit must call the method Step of its task", last)
	}
	if d, err := learners.Find(c.Learner); err == nil && !d.Checkpoints() {
		_, err := c.Fit(c.Context(), c.dev, x, y, learners.Options{Checkpoint: solvers.Checkpoint{Dir: c.TempDir()}})
		c.checkRefused(err, "checkpoint: the learner writes no checkpoints")
	}
}

func testCanceled(c *cell) {
	x, y := c.data()
	m := c.fit(x, y, learners.Options{})
	ctx, cancel := context.WithCancel(c.Context())
	if _, err := c.Fit(ctx, c.dev, x, y, learners.Options{Progress: func(p solvers.Progress) { cancel() }}); !errors.Is(err, context.Canceled) {
		c.Errorf("canceled during Fit: %v", err)
	}
	c.checkMemoryFreed()
	if _, err := c.Fit(ctx, c.dev, x, y, learners.Options{}); !errors.Is(err, context.Canceled) {
		c.Errorf("canceled before Fit: %v", err)
	}
	if _, err := m.Predict(ctx, c.dev, x); !errors.Is(err, context.Canceled) {
		c.Errorf("canceled before Predict: %v", err)
	}
}

// testState checks that a model can be restored from its state, also after its parameters were
// written to JSON and read again.
func testState(c *cell) {
	x, y := c.data()
	var o learners.Options
	if !c.Unweighted {
		o.Weights = weights(30, 0)
	}
	m := c.fit(x, y, o)
	s := m.State()
	text, err := json.Marshal(s.Params)
	if err != nil {
		c.Fatal(err)
	}
	viaJSON := learners.State{Learner: s.Learner, Arrays: s.Arrays}
	if err := json.Unmarshal(text, &viaJSON.Params); err != nil {
		c.Fatal(err)
	}
	for _, s := range []learners.State{s, viaJSON} {
		restored, err := learners.Restore(s)
		if err != nil {
			c.Fatal(err)
		}
		if describe(restored) != describe(m) {
			c.Errorf("the restored model is %s", describe(restored))
		}
		if s, ok := restored.(learners.Solved); ok && s.Solved() != nil {
			c.Error("a restored model was solved")
		}
		c.checkEqual("predictions of the restored model", c.values(restored, x), c.values(m, x))
		if k, ok := m.(learners.Classifier); ok {
			classes := restored.(learners.Classifier).Classes()
			if !slices.Equal(classes.Names, k.Classes().Names) || !slices.Equal(classes.Labels, k.Classes().Labels) {
				c.Errorf("the classes were %v before saving, and are %v afterwards", k.Classes(), classes)
			}
		}
		if restoredText, err := json.Marshal(restored.State().Params); err != nil || string(restoredText) != string(text) {
			c.Errorf("the parameters were %s before saving, and are %s afterwards: %v", text, restoredText, err)
		}
	}
}

// testRefusedState checks that a model is not restored if a part of its state is missing or invalid.
func testRefusedState(c *cell) {
	x, y := c.data()
	state := c.fit(x, y, learners.Options{}).State()
	checkRefused := func(name string, change func(s *learners.State)) {
		c.Helper()
		s := learners.State{Learner: state.Learner, Params: maps.Clone(state.Params), Arrays: maps.Clone(state.Arrays)}
		change(&s)
		m, err := learners.Restore(s)
		if err == nil || m != nil {
			c.Errorf("%s: not refused", name)
		}
	}
	checkRefused("another learner", func(s *learners.State) { s.Learner = "none" })
	checkRefused("nothing", func(s *learners.State) { s.Params, s.Arrays = nil, nil })
	for name := range state.Params {
		checkRefused("parameter "+name+" missing", func(s *learners.State) { delete(s.Params, name) })
		for _, v := range []any{nil, []any{1.0}, map[string]any{}, "no such thing", -1.0, math.NaN(), math.Inf(1)} {
			checkRefused(fmt.Sprintf("parameter %s is %v", name, v), func(s *learners.State) { s.Params[name] = v })
		}
	}
	for name, h := range state.Arrays {
		checkRefused("array "+name+" missing", func(s *learners.State) { delete(s.Arrays, name) })
		for defect, bad := range map[string]backend.Host[float64]{
			"is empty":             {},
			"has no columns":       {Rows: h.Rows, Stride: h.Stride, Data: h.Data},
			"has a negative size":  {Rows: -h.Rows, Cols: -h.Cols, Stride: h.Stride, Data: h.Data},
			"has too few elements": {Rows: h.Rows, Cols: h.Cols, Stride: h.Stride, Data: h.Data[:len(h.Data)-1]},
			"has a bad stride":     {Rows: h.Rows, Cols: h.Cols, Stride: h.Cols - 1, Data: h.Data},
			"overflows":            {Rows: math.MaxInt, Cols: h.Cols, Stride: math.MaxInt, Data: h.Data},
			"holds NaN":            filled(h.Rows, h.Cols, math.NaN()),
			"holds Inf":            filled(h.Rows, h.Cols, math.Inf(1)),
		} {
			checkRefused("array "+name+" "+defect, func(s *learners.State) { s.Arrays[name] = bad })
		}
		checkRefused("array "+name+" has another shape", func(s *learners.State) { s.Arrays[name] = filled(h.Rows+1, h.Cols+1, 1) })
	}
}

func filled(rows, cols int, v float64) backend.Host[float64] {
	h := backend.NewHost[float64](rows, cols)
	for i := range h.Data {
		h.Data[i] = v
	}
	return h
}
