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
	var none *mat.Dense
	var noVec *mat.VecDense
	type fault struct {
		x, y    mat.Matrix
		weights []float64
		want    string
	}
	faults := []fault{
		{nil, y, nil, "x is missing"},
		{none, y, nil, "x is missing"},
		{&mat.Dense{}, y, nil, "x is empty: 0 rows, 0 columns"},
		{set(x, 2, 1, nan), y, nil, "x: row 3, column 2 is NaN"},
		{set(x, 29, 2, inf), y, nil, "x: row 30, column 3 is -Inf"},
	}
	if c.Task != learners.Novelty {
		last := c.targets()
		faults = append(faults,
			fault{x, nil, nil, "y is missing"},
			fault{x, noVec, nil, "y is missing"},
			fault{x, &mat.VecDense{}, nil, "y is empty: 0 rows, "},
			fault{x.Slice(0, 29, 0, 3), y, nil, "x has 29 rows, y has 30"},
			fault{x, set(y, 0, last-1, nan), nil, fmt.Sprintf("y: row 1, column %d is NaN", last)})
	}
	if !c.Unweighted {
		faults = append(faults,
			fault{x, y, weights(29, 1), "29 weights for 30 rows"},
			fault{x, y, weights(30, -1), "weights: row 30"},
			fault{x, y, weights(30, nan), "weights: row 30"},
			fault{x, y, make([]float64, 30), ""})
	}
	if c.Task == learners.Classification {
		two := mat.NewDense(30, 2, nil)
		many := mat.NewDense(learners.MaxClasses+1, 1, nil)
		for i := range learners.MaxClasses + 1 {
			many.Set(i, 0, float64(i))
		}
		same := mat.NewDense(30, 1, nil)
		faults = append(faults,
			fault{x, same, nil, "one class only"},
			fault{x, two, nil, "y has 2 columns"},
			fault{mat.NewDense(learners.MaxClasses+1, 3, nil), many, nil, "classes"})
		if c.Binary {
			same.Set(0, 0, 1)
			same.Set(1, 0, 2)
			faults = append(faults, fault{x, same, nil, "two classes"})
		}
	}
	if c.Task == learners.Regression && c.Single {
		faults = append(faults, fault{x, mat.NewDense(30, 2, nil), nil, "y has 2 columns"})
	}
	for _, test := range faults {
		_, err := c.Fit(c.Context(), c.dev, test.x, test.y, learners.Options{Weights: test.weights})
		c.refused(err, test.want)
	}
	_, err := c.Fit(c.Context(), nil, x, y, learners.Options{})
	c.refused(err, "no device was given")
	if c.Task == learners.Classification {
		_, err := c.Fit(c.Context(), c.dev, x, y, learners.Options{Classes: []string{"a", "b", "c"}})
		c.refused(err, "y: row ")
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
		{x.Slice(0, 30, 0, 2), "x has 2 columns, the model was fitted to 3"},
		{set(x, 4, 2, math.NaN()), "x: row 5, column 3 is NaN"},
		{set(x, 0, 0, math.Inf(1)), "x: row 1, column 1 is +Inf"},
	} {
		_, err := m.Predict(c.Context(), c.dev, test.x)
		c.refused(err, test.want)
	}
	_, err := m.Predict(c.Context(), nil, x)
	c.refused(err, "no device was given")
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
		// If several learners share the type of the model, an unfitted model has no learner's name.
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
	c.refused(err, "1 B may be used")
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
		c.refused(err, "checkpoint: the learner writes none")
	}
}

func testCanceled(c *cell) {
	x, y := c.data()
	m := c.fit(x, y, learners.Options{})
	ctx, cancel := context.WithCancel(c.Context())
	if _, err := c.Fit(ctx, c.dev, x, y, learners.Options{Progress: func(p solvers.Progress) { cancel() }}); !errors.Is(err, context.Canceled) {
		c.Errorf("canceled during Fit: %v", err)
	}
	c.nothingLeft()
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
		c.same("predictions of the restored model", c.values(restored, x), c.values(m, x))
		if k, ok := m.(learners.Classifier); ok {
			again := restored.(learners.Classifier).Classes()
			if !slices.Equal(again.Names, k.Classes().Names) || !slices.Equal(again.Labels, k.Classes().Labels) {
				c.Errorf("the classes were %v before saving, and are %v afterwards", k.Classes(), again)
			}
		}
		if again, err := json.Marshal(restored.State().Params); err != nil || string(again) != string(text) {
			c.Errorf("the parameters were %s before saving, and are %s afterwards: %v", text, again, err)
		}
	}
}

// testRefusedState checks that a model is not restored if a part of its state is missing or
// invalid.
func testRefusedState(c *cell) {
	x, y := c.data()
	whole := c.fit(x, y, learners.Options{}).State()
	refused := func(what string, change func(s *learners.State)) {
		c.Helper()
		s := learners.State{Learner: whole.Learner, Params: maps.Clone(whole.Params), Arrays: maps.Clone(whole.Arrays)}
		change(&s)
		m, err := learners.Restore(s)
		if err == nil || m != nil {
			c.Errorf("%s: not refused", what)
		}
	}
	refused("another learner", func(s *learners.State) { s.Learner = "none" })
	refused("nothing", func(s *learners.State) { s.Params, s.Arrays = nil, nil })
	for name := range whole.Params {
		refused("parameter "+name+" missing", func(s *learners.State) { delete(s.Params, name) })
		for _, v := range []any{nil, []any{1.0}, map[string]any{}, "no such thing", -1.0, math.NaN(), math.Inf(1)} {
			refused(fmt.Sprintf("parameter %s is %v", name, v), func(s *learners.State) { s.Params[name] = v })
		}
	}
	for name, h := range whole.Arrays {
		refused("array "+name+" missing", func(s *learners.State) { delete(s.Arrays, name) })
		for what, bad := range map[string]backend.Host[float64]{
			"is empty":             {},
			"has no columns":       {Rows: h.Rows, Stride: h.Stride, Data: h.Data},
			"has a negative size":  {Rows: -h.Rows, Cols: -h.Cols, Stride: h.Stride, Data: h.Data},
			"has too few elements": {Rows: h.Rows, Cols: h.Cols, Stride: h.Stride, Data: h.Data[:len(h.Data)-1]},
			"has a bad stride":     {Rows: h.Rows, Cols: h.Cols, Stride: h.Cols - 1, Data: h.Data},
			"overflows":            {Rows: math.MaxInt, Cols: h.Cols, Stride: math.MaxInt, Data: h.Data},
			"holds NaN":            filled(h.Rows, h.Cols, math.NaN()),
			"holds Inf":            filled(h.Rows, h.Cols, math.Inf(1)),
		} {
			refused("array "+name+" "+what, func(s *learners.State) { s.Arrays[name] = bad })
		}
		refused("array "+name+" has another shape", func(s *learners.State) { s.Arrays[name] = filled(h.Rows+1, h.Cols+1, 1) })
	}
}

func filled(rows, cols int, v float64) backend.Host[float64] {
	h := backend.NewHost[float64](rows, cols)
	for i := range h.Data {
		h.Data[i] = v
	}
	return h
}
