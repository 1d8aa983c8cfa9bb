package modelfile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners"
)

// extremeModels returns the models of everyModel, classifiers of two classes, and models with additional arrays.
func extremeModels(t testing.TB, dev backend.Device) (names []string, states []learners.State) {
	names, states = everyModel(t, dev)
	const n = 24
	x, y, class := mat.NewDense(n, 2, nil), mat.NewDense(n, 2, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		x.SetRow(i, []float64{float64(i*7%17)/8 - 1, float64(i*5%13)/6 - 1})
		y.SetRow(i, []float64{x.At(i, 0) * x.At(i, 1), x.At(i, 1)})
		class.Set(i, 0, float64(i%2))
	}
	add := func(name string, task learners.Task, parameters map[string]string, y mat.Matrix) {
		d, err := learners.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		fit, err := d.Make(task, parameters)
		if err != nil {
			t.Fatal(err)
		}
		m, err := fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%s, %s %v", name, task, parameters))
		states = append(states, m.State())
	}
	for _, d := range learners.Catalogue() {
		if d.Supports(learners.Classification) {
			add(d.Name, learners.Classification, nil, class)
		}
	}
	threeClasses := mat.NewDense(n, 1, nil)
	threeClasses.Apply(func(i, _ int, _ float64) float64 { return float64(i % 3) }, threeClasses)
	for _, y := range []mat.Matrix{class, threeClasses} {
		add("svc", learners.Classification, map[string]string{"probability": "true", "kernel": "linear()"}, y)
		add("kernel-knn", learners.Classification, map[string]string{"k": "3", "kernel": "gaussian(sigma=1)"}, y)
		add("kernel-vote", learners.Classification, map[string]string{"kernel": "polynomial(degree=3,c=1)"}, y)
	}
	add("ridge", learners.Regression, map[string]string{"intervals": "true", "lambda": "1"}, y)
	add("kernel-ridge", learners.Regression, map[string]string{"lambdas": "0.1,1", "kernel": "polynomial(degree=2,c=1)"}, y)
	add("rvm", learners.Regression, map[string]string{"basis": "features"}, y.Slice(0, n, 0, 1))
	return names, states
}

// withValues returns a copy of s in which the numbers in replacements, repeated as needed, fill the named arrays.
func withValues(s learners.State, replacements map[string][]float64) learners.State {
	s.Arrays = maps.Clone(s.Arrays)
	for name, values := range replacements {
		a := s.Arrays[name]
		c := backend.NewHost[float64](a.Rows, a.Cols)
		for i := range c.Data {
			c.Data[i] = values[i%len(values)]
		}
		s.Arrays[name] = c
	}
	return s
}

// outputs calls visit with the name and the result of every method of m for the rows of x.
func outputs(t testing.TB, dev backend.Device, m learners.Model, x *mat.Dense, visit func(method string, f mat.Matrix, err error)) {
	call := func(method string, f *mat.Dense, err error) {
		if f == nil {
			visit(method, nil, err)
			return
		}
		visit(method, f, err)
	}
	f, err := m.Predict(t.Context(), dev, x)
	call("Predict", f, err)
	if p, err := learners.NewPredictor(dev, m); err != nil {
		call("NewPredictor", nil, err)
	} else {
		f, err := p.Predict(t.Context(), x)
		call("Predictor.Predict", f, err)
		_, width := p.Dims()
		dst := mat.NewDense(1, width, nil)
		err = p.PredictRow(t.Context(), dst.RawRowView(0), x.RawRowView(0))
		call("Predictor.PredictRow", dst, err)
		p.Close()
	}
	if c, ok := m.(learners.Classifier); ok {
		f, err := c.Decision(t.Context(), dev, x)
		call("Decision", f, err)
	}
	if c, ok := learners.As[learners.Prober](m); ok {
		f, err := c.Proba(t.Context(), dev, x)
		call("Proba", f, err)
	}
	if c, ok := m.(learners.Uncertain); ok {
		f, err := c.Variance(t.Context(), dev, x)
		call("Variance", f, err)
	}
	if c, ok := m.(learners.Jackknife); ok {
		lower, upper, err := c.Intervals(t.Context(), dev, x, 0.8)
		call("Intervals, lower", lower, err)
		call("Intervals, upper", upper, err)
	}
	if c, ok := m.(interface {
		PairwiseDecision(context.Context, backend.Device, mat.Matrix) (*mat.Dense, error)
	}); ok {
		f, err := c.PairwiseDecision(t.Context(), dev, x)
		call("PairwiseDecision", f, err)
	}
	if c, ok := m.(interface {
		Neighbors(context.Context, backend.Device, mat.Matrix) ([][]int, [][]float64, error)
	}); ok {
		_, squares, err := c.Neighbors(t.Context(), dev, x)
		f := mat.NewDense(1, 1, nil)
		for _, row := range squares {
			for _, v := range row {
				f.Set(0, 0, f.At(0, 0)+v-v)
			}
		}
		call("Neighbors", f, err)
	}
}

// TestExtremeNumbers fills one array, two arrays or all arrays of a saved model of each learner with numbers near
// both limits of float64 and mixtures of these. Loading must refuse such a model, or each result must be finite or
// an error of one line.
func TestExtremeNumbers(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const large, tiny = 1e308, 5e-324
	fillings := [][]float64{{large}, {-large}, {tiny}, {0}, {large, -large}, {large, tiny}, {0, -large, tiny}, {1, large}, {large, -large, tiny, 0, 1}}
	names, states := extremeModels(t, dev)
	x := mat.NewDense(3, 2, []float64{0, 0, 0.5, -1, 3, 2})
	extremePoints := mat.NewDense(2, 2, []float64{large, -large, tiny, large})
	for i, s := range states {
		arrays := slices.Sorted(maps.Keys(s.Arrays))
		var cases []map[string][]float64
		for _, values := range fillings {
			replacements := map[string][]float64{}
			for j, name := range arrays {
				replacements[name] = values
				cases = append(cases, map[string][]float64{name: values})
				for _, other := range arrays[:j] {
					for k := range fillings {
						if !testing.Short() || k < 4 && !required.FewCases() || k < 2 {
							cases = append(cases, map[string][]float64{name: values, other: fillings[k]})
						}
					}
				}
			}
			cases = append(cases, replacements)
		}
		cases = append(cases, nil) // the unchanged model
		failures, restored := 0, 0
		for _, replacements := range cases {
			text := fmt.Sprintf("%s with %v", names[i], replacements)
			fail := func(format string, args ...any) {
				if failures++; failures <= 3 {
					t.Errorf("%s: %s", text, fmt.Sprintf(format, args...))
				}
			}
			func() {
				defer func() {
					if r := recover(); r != nil {
						fail("panic: %v", r)
					}
				}()
				m, err := learners.Restore(withValues(s, replacements))
				if err != nil {
					if strings.Contains(err.Error(), "\n") {
						fail("the error has several lines: %q", err)
					}
					return
				}
				restored++
				for _, points := range []*mat.Dense{x, extremePoints} {
					outputs(t, dev, m, points, func(method string, f mat.Matrix, err error) {
						switch {
						case err != nil && strings.Contains(err.Error(), "\n"):
							fail("%s: the error has several lines: %q", method, err)
						case err != nil:
							return
						}
						rows, cols := f.Dims()
						for r := range rows {
							for c := range cols {
								if v := f.At(r, c); math.IsNaN(v) || math.IsInf(v, 0) || v < 0 && method == "Variance" {
									fail("%s of row %d: %v without an error", method, r+1, v)
									return
								}
							}
						}
					})
				}
			}()
		}
		t.Logf("%s: %d models, %d could be used", names[i], len(cases), restored)
	}
}

// TestExtremeNumbersInFiles checks the predictions of each model if all numbers in the file are 1e308.
func TestExtremeNumbersInFiles(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	names, states := extremeModels(t, dev)
	for i, s := range states {
		replacements := map[string][]float64{}
		for name := range s.Arrays {
			if name != "labels" { // labels must be in ascending order
				replacements[name] = []float64{1e308}
			}
		}
		s = withValues(s, replacements)
		model, err := json.Marshal(s.Params)
		if err != nil {
			t.Fatal(err)
		}
		b, err := loadBytes(file(map[string]string{"format": "mercer", "version": "1", "learner": s.Learner, "model": string(model)}, s.Arrays))
		if err != nil {
			continue
		}
		f, err := b.Model.Predict(t.Context(), dev, mat.NewDense(1, 2, []float64{1, 2}))
		if err == nil && (math.IsNaN(f.At(0, 0)) || math.IsInf(f.At(0, 0), 0)) {
			t.Errorf("%s: predicts %v", names[i], f.At(0, 0))
		}
	}
}
