package learners_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// effective holds a value with an effect for each parameter whose other candidates do not change the result of a fit.
var effective = map[string]string{"cache": "0.0001", "lambdas": "0.5,7", "kernel": "polynomial(degree=2)"}

// candidates returns a few values of a parameter. At least one of them differs from the default.
func candidates(p learners.Parameter) []string {
	switch value := effective[p.Name]; {
	case value != "":
		return []string{value}
	case p.Type == learners.BoolType:
		return []string{"true", "false"}
	case p.Type == learners.ChoiceType:
		return p.Choices
	case p.Type == kernels.Integer:
		return []string{"2", "1", "7", "0", "4"}
	default:
		return []string{"0.3", "3.7", "0.01", "1e-17"}
	}
}

// setting lists, for a learner and a parameter, values of other parameters that give the parameter an effect.
var setting = map[string]map[string]string{
	"logistic/seed":               {"solver": "sgd"},
	"lasso/tol":                   {"iterations": "1"}, // with more steps every fit ends at the exact minimum
	"svc/seed":                    {"probability": "true"},
	"kernel-ridge/operator":       {"solver": "cg"},
	"kernel-ridge/tol":            {"solver": "cg"},
	"kernel-ridge/rank":           {"solver": "cg", "preconditioner": "rpcholesky"},
	"kernel-ridge/iterations":     {"solver": "cg"},
	"nystrom-ridge/tol":           {"solver": "falkon"},
	"kernel-ridge/preconditioner": {"rank": "3"},
	"one-class-svm/cache":         {"tol": "1e-9", "kernel": "gaussian(sigma=0.3)", "nu": "0.7"},
	"nystrom-ridge/choice":        {"centers": "5"},
}

// samplesFor returns samples on which the parameter has an effect, for example more than 500 rows for the seed of
// the median distance, and more than 64 columns for the local method of l0.
func samplesFor(learner, parameter string, task learners.Task, outputs bool) (x, y *mat.Dense) {
	n, d, t := 24, 3, 1
	switch {
	case parameter == "seed" && learner != "logistic" && learner != "svc", parameter == "cache":
		n = 520
	case learner == "l0" && parameter == "iterations":
		d = 70
	}
	if outputs && task == learners.Regression {
		t = 2
	}
	r := rand.New(rand.NewPCG(11, uint64(n)))
	x, y = mat.NewDense(n, d, nil), mat.NewDense(n, t, nil)
	for i := range n {
		for j := range d {
			x.Set(i, j, 1+r.NormFloat64())
		}
		f := x.At(i, 0) + 2*math.Sin(x.At(i, 1)) - 0.5*x.At(i, 2)*x.At(i, 0) + 0.5*r.NormFloat64()
		switch {
		case task == learners.Regression:
			y.Set(i, 0, 3+f)
			y.Set(i, t-1, 3+f)
		case learner == "logistic":
			y.Set(i, 0, float64(i%3))
		case f > 2:
			y.Set(i, 0, 1)
		}
	}
	return x, y
}

// fingerprint returns the whole result of a fit as text, without the parameter `omitted`.
func fingerprint(t *testing.T, m learners.Model, omitted string) string {
	t.Helper()
	s := m.State()
	delete(s.Params, omitted)
	params, err := json.Marshal(s.Params)
	if err != nil {
		t.Fatal(err)
	}
	text := string(params)
	for _, name := range slices.Sorted(maps.Keys(s.Arrays)) {
		h := s.Arrays[name]
		text += fmt.Sprintf(" %s %d×%d", name, h.Rows, h.Cols)
		for i := range h.Rows {
			text += fmt.Sprint(h.Row(i))
		}
	}
	if d, ok := m.(learners.Describer); ok {
		text += fmt.Sprint(d.Facts())
	}
	if s, ok := m.(learners.Solved); ok && s.Solved() != nil {
		r := s.Solved()
		text += fmt.Sprint(r.Plan.Method, r.Iters, r.Residual)
	}
	return text
}

// TestParametersHaveAnEffect checks that some value of each parameter changes the result of the fit, or is
// refused, and that the text of its default does not change it.
func TestParametersHaveAnEffect(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	for i, d := range learners.Catalogue() {
		for j, p := range d.Parameters {
			if required.FewCases() && (i+j)%4 != 0 {
				continue
			}
			task := cmp.Or(p.Task, d.Tasks[0])
			settings := maps.Clone(setting[d.Name+"/"+p.Name])
			if settings == nil {
				settings = map[string]string{}
			}
			if p.When != nil && len(p.When.Values) > 0 {
				if _, set := settings[p.When.Parameter]; !set {
					settings[p.When.Parameter] = p.When.Values[0]
				}
			}
			x, y := samplesFor(d.Name, p.Name, task, d.Outputs)
			fit := func(text string) string {
				withValue := maps.Clone(settings)
				if text != "" {
					withValue[p.Name] = text
				}
				f, err := d.Make(task, withValue)
				if err != nil {
					t.Fatalf("%s: %v: %v", d.Name, withValue, err)
				}
				m, err := f(t.Context(), dev, x, y, learners.Options{})
				if err != nil {
					return "refused: " + err.Error()
				}
				predicted, err := m.Predict(t.Context(), dev, x)
				if err != nil {
					t.Fatalf("%s: %v: %v", d.Name, withValue, err)
				}
				return fingerprint(t, m, p.Name) + fmt.Sprint(predicted.RawMatrix().Data)
			}
			unset := fit("")
			if !slices.ContainsFunc(candidates(p), func(value string) bool {
				_, err := p.Parse(value)
				return err == nil && fit(value) != unset
			}) {
				t.Errorf("%s: %s: any of %v is the same as the default", d.Name, p.Name, candidates(p))
			}
			if _, err := p.Parse(p.Default); err == nil && unset != fit(p.Default) {
				t.Errorf("%s: %s: the text of its default is not its default", d.Name, p.Name)
			}
		}
	}
}

// defaultsInGo lists the parameters whose default is not the zero value of their field, for one learner or for
// all.
var defaultsInGo = []string{
	"lambda", "seed", "gaussian-process/restarts", "svr/epsilon",
}

// TestZeroValues checks that a struct of parameters with zero values equals the struct that the
// catalogue makes from its defaults, except for the fields in defaultsInGo.
func TestZeroValues(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	for _, d := range learners.Catalogue() {
		standard, err := d.Make("", nil)
		if err != nil {
			t.Fatal(err)
		}
		settings, err := d.Parse(nil)
		if err != nil {
			t.Fatal(err)
		}
		listed := map[string]bool{}
		for _, p := range d.Parameters {
			if slices.Contains(defaultsInGo, p.Name) || slices.Contains(defaultsInGo, d.Name+"/"+p.Name) {
				listed[p.Name] = true
				if p.When != nil { // the parameter has an effect only for some value of another parameter
					listed[p.When.Parameter] = true
				}
			}
		}
		x, y := samplesFor(d.Name, "", d.Tasks[0], d.Outputs)
		fitted := func(fit learners.Fitter) string {
			m, err := fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatalf("%s: %v", d.Name, err)
			}
			return fingerprint(t, m, "")
		}
		if got, want := fitted(settings.FitterOf(listed)), fitted(standard); got != want {
			t.Errorf("%s: the zero values give\n%.300s\nthe defaults of the catalogue\n%.300s\na field of 0 must mean the default (see zeroAs), or the parameter must be listed in defaultsInGo", d.Name, got, want)
		}
	}
}

// TestIntercept checks that b is 0 in fits without an intercept, and is not 0 by default.
func TestIntercept(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	for _, d := range learners.Catalogue() {
		if _, ok := d.Parameter("intercept"); !ok || d.Name == "voted-perceptron" { // the intercept of the voted perceptron is part of its kernel
			continue
		}
		x, y := samplesFor(d.Name, "intercept", d.Tasks[0], d.Outputs)
		for _, want := range []bool{false, true} {
			settings := map[string]string{"intercept": fmt.Sprint(want)}
			if _, ok := d.Parameter("batch"); ok && d.Name != "logistic" {
				settings["epochs"], settings["batch"] = "1", "0" // the initial f = 0 misclassifies only one class
			}
			f, err := d.Make("", settings)
			if err != nil {
				t.Fatal(err)
			}
			m, err := f(context.Background(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatalf("%s: %v", d.Name, err)
			}
			b := learners.PartsOf(m).Intercept
			if got := slices.ContainsFunc(b, func(v float64) bool { return v != 0 }); got != want {
				t.Errorf("%s: intercept=%v: b = %v", d.Name, want, b)
			}
		}
	}
}
