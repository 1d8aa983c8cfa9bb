package tuning_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/tuning"
	"github.com/mercer-go/mercer/learners/validate"
	"gonum.org/v1/gonum/mat"
)

// gridData returns points on a line with the given weights, and as targets two separated classes or noisy numbers.
func gridData(classes bool, weights []float64) validate.Samples {
	const n = 24
	rng := rand.New(rand.NewPCG(9, 9))
	x := backend.NewHost[float64](n, 2)
	s := validate.Samples{X: x, Y: mat.NewDense(n, 1, nil), Weights: weights}
	for i := range n {
		x.Row(i)[0], x.Row(i)[1] = rng.NormFloat64(), rng.NormFloat64()
		s.Y.RawMatrix().Data[i] = 3*x.Row(i)[0] + rng.NormFloat64()
		if classes {
			s.Y.RawMatrix().Data[i] = float64(int(min(max(s.Y.RawMatrix().Data[i]+1, 0), 1)))
		}
	}
	return s
}

// TestGridScoresAreThoseOfTheFolds checks that the score of a setting is the error over all samples, each
// predicted by the model of the other folds, and that the settings are in the order of the axes.
func TestGridScoresAreThoseOfTheFolds(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	weights := make([]float64, 24)
	for i := range weights {
		weights[i] = float64(1 + i%3)
	}
	for _, c := range []struct {
		learner string
		classes bool
		weights []float64
		axes    []tuning.Axis
		want    []string // parameters of the expected points
	}{
		{"ridge", false, nil, []tuning.Axis{{Parameter: "lambda", Values: []string{"0.1", "10"}}}, []string{"0.1", "10"}},
		{"ridge", false, weights, []tuning.Axis{{Parameter: "lambda", Values: []string{"0.1", "10"}}, {Parameter: "intercept", Values: []string{"true", "false"}}}, []string{"0.1 true", "0.1 false", "10 true", "10 false"}},
		{"logistic", true, nil, []tuning.Axis{{Parameter: "lambda", Values: []string{"0.01", "100"}}}, []string{"0.01", "100"}},
	} {
		data := gridData(c.classes, c.weights)
		r := validate.Runner{Data: data, Devices: []backend.Device{dev}}
		task := learners.Regression
		var strata []int
		if c.classes {
			task = learners.Classification
			r.Options.Classes = []string{"below", "above"}
			for _, v := range data.Y.RawMatrix().Data {
				strata = append(strata, int(v))
			}
		}
		settings, err := tuning.SearchGrid(t.Context(), r, tuning.GridParams{Learner: c.learner, Task: task, Axes: c.axes, Folds: 4, Seed: 2})
		if err != nil {
			t.Fatal(err)
		}
		splits, err := validate.KFold(data.Len(), 4, strata, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(settings) != len(c.want) {
			t.Fatalf("%s: %d settings, want %d", c.learner, len(settings), len(c.want))
		}
		for i, s := range settings {
			var names []string
			for _, a := range c.axes {
				names = append(names, s.Parameters[a.Parameter])
			}
			if got := strings.Join(names, " "); got != c.want[i] {
				t.Errorf("%s: setting %d is %s, want %s", c.learner, i+1, got, c.want[i])
			}
			sum, total := 0.0, 0.0
			for k := range 4 {
				train, test := splits(k)
				p, err := data.Split(train, test)
				if err != nil {
					t.Fatal(err)
				}
				m, err := s.Fit(t.Context(), dev, p.Train.X, p.Train.Y, learners.Options{Weights: p.Train.Weights, Classes: r.Options.Classes})
				if err != nil {
					t.Fatal(err)
				}
				f, err := m.Predict(t.Context(), dev, p.Test.X)
				if err != nil {
					t.Fatal(err)
				}
				for q, row := range test {
					w := 1.0
					if c.weights != nil {
						w = c.weights[row]
					}
					e := f.At(q, 0) - p.Test.Y.At(q, 0)
					if c.classes && e != 0 {
						e = 1
					}
					sum, total = sum+w*e*e, total+w
				}
			}
			want := sum / total
			if !c.classes {
				want = math.Sqrt(want)
			}
			// This loop adds the 24 errors in a different order than the grid search.
			if math.Abs(s.Score-want) > 24*0x1p-52*want {
				t.Errorf("%s: setting %d: %v, want %v", c.learner, i+1, s.Score, want)
			}
		}
	}
}

// TestGridOfALearner checks the default grid of svr, and that 1× for lasso is the smallest λ at which all weights are
// 0.
func TestGridOfALearner(t *testing.T) {
	r := validate.Runner{Data: gridData(false, nil), Devices: []backend.Device{backendtest.Device(t, "ref")}}
	settings, err := tuning.SearchGrid(t.Context(), r, tuning.GridParams{Learner: "svr", Steps: 3, Folds: 3})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, s := range settings {
		kinds[s.Parameters["kernel"]] = true
	}
	if best, err := tuning.BestSetting(settings); err != nil || len(kinds) != 3 || settings[best].Parameters["C"] == "" {
		t.Errorf("%d kernels, %v", len(kinds), err)
	}
	data := gridData(false, nil)
	r.Data = data
	settings, err = tuning.SearchGrid(t.Context(), r, tuning.GridParams{Learner: "lasso", Axes: []tuning.Axis{{Parameter: "lambda", Values: []string{"1.001×", "0.9×"}}}, Folds: 3})
	if err != nil {
		t.Fatal(err)
	}
	allRows := make([]int, data.Len())
	for i := range allRows {
		allRows[i] = i
	}
	p, err := data.Split(allRows, allRows)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range settings { // λ is written with four digits
		m, err := s.Fit(t.Context(), r.Devices[0], p.Train.X, p.Train.Y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := learners.PartsOf(m).Coef
		if allZero := w.At(0, 0) == 0 && w.At(1, 0) == 0; allZero != (i == 0) {
			t.Errorf("λ = %s: weights %v, %v", s.Parameters["lambda"], w.At(0, 0), w.At(1, 0))
		}
	}
}

func TestGridRefuses(t *testing.T) {
	r := validate.Runner{Data: gridData(false, nil), Devices: []backend.Device{backendtest.Device(t, "ref")}}
	for want, par := range map[string]tuning.GridParams{
		"nobody":            {Learner: "nobody"},
		"not by loo":        {Learner: "ridge", Criterion: tuning.LeaveOneOut},
		"not into 30":       {Learner: "lasso", Folds: 30},
		"a number before ×": {Learner: "lasso", Axes: []tuning.Axis{{Parameter: "lambda", Values: []string{"a×"}}}},
		`"tau" is no`:       {Learner: "svr", Vary: []string{"tau"}},
	} {
		if _, err := tuning.SearchGrid(t.Context(), r, par); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	var paramErr *learners.ParameterError
	if _, err := tuning.SearchGrid(t.Context(), r, tuning.GridParams{Learner: "lasso", Axes: []tuning.Axis{{Parameter: "lambda", Values: []string{"-1"}}}}); !errors.As(err, &paramErr) {
		t.Errorf("λ = -1: %v", err)
	}
	settings, err := tuning.SearchGrid(t.Context(), r, tuning.GridParams{Learner: "l0", Axes: []tuning.Axis{{Parameter: "support", Values: []string{"9"}}}})
	if err != nil || settings[0].Err == nil {
		t.Fatalf("nine weights of two columns: %+v, %v", settings, err)
	}
	if _, err := tuning.BestSetting(settings); err == nil {
		t.Error("a grid without a score has a best setting")
	}
}
