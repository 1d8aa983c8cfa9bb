package learners_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// plainPerceptron is the textbook loop with the initial weights w and a constant b; zero is sgn(0). It returns the
// last w, and the average of w over the steps after step number `from`.
func plainPerceptron(x *mat.Dense, y, w []float64, b, zero float64, epochs, from int) (last, average []float64) {
	n, d := x.Dims()
	average = make([]float64, d)
	step := 0
	for range epochs {
		for i := range n {
			f := b
			for p, v := range x.RawRowView(i) {
				f += w[p] * v
			}
			sign := math.Copysign(1, f)
			if f == 0 {
				sign = zero
			}
			if sign != y[i] {
				for p, v := range x.RawRowView(i) {
					w[p] += y[i] * v
				}
			}
			if step++; step > from {
				for p := range w {
					average[p] += w[p]
				}
			}
		}
	}
	for p := range average {
		average[p] /= float64(step - from)
	}
	return w, average
}

// TestPerceptronStart compares perceptrons with the textbook loop: with an initial w and b, with a constant b, with a
// given sgn(0), and with an average that begins after a given epoch.
func TestPerceptronStart(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n, d, epochs = 30, 2, 3
	x, y := gaussians(t, n, d, 5)
	x.Apply(func(_, _ int, v float64) float64 { return math.Round(2 * v) }, x) // small integers, so that f = 0 occurs
	signs := make([]float64, n)
	for i := range signs {
		signs[i] = math.Copysign(1, y.At(i, 0))
	}
	y = mat.NewDense(n, 1, slices.Clone(signs))
	for _, zero := range []float64{-1, 1} {
		last, average := plainPerceptron(x, signs, []float64{2, -1}, 1, zero, epochs, n)
		for kind, want := range map[learners.PerceptronKind][]float64{learners.LastPerceptron: last, learners.AveragedPerceptron: average} {
			l := learners.Perceptron{Kind: kind, NoIntercept: true, Start: 1, Coef: mat.NewDense(d, 1, []float64{2, -1}), Epochs: epochs, ZeroIsPositive: zero > 0, NoShuffle: true}
			if kind == learners.AveragedPerceptron {
				l.AverageFrom = 1
			}
			fitted, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			m := fitted.(*learners.PerceptronModel)
			criterion := 0.0
			for p, w := range want {
				checkClose(t, "w", m.Coef().At(p, 0), w, 1e-13*(1+math.Abs(w)))
			}
			for i := range n {
				criterion += max(0, -signs[i]*(1+want[0]*x.At(i, 0)+want[1]*x.At(i, 1)))
			}
			checkClose(t, "b", m.Intercept()[0], 1, 0)
			checkClose(t, "criterion", fact(t, m, "criterion").(float64), criterion, 1e-13*(1+criterion))
			if criterion == 0 {
				t.Error("the criterion of samples that no plane separates is 0")
			}
		}
		// The next fits are of the kernel perceptron with k(x, z) = xᵀz, which starts from w = 0.
		last, average = plainPerceptron(x, signs, []float64{0, 0}, 1, zero, epochs, n)
		for kind, want := range map[learners.PerceptronKind][]float64{learners.LastPerceptron: last, learners.AveragedPerceptron: average} {
			l := learners.KernelPerceptron{Kernel: kernels.Linear{}, Kind: kind, Start: 1, Epochs: epochs, ZeroIsPositive: zero > 0, NoIntercept: true, NoShuffle: true}
			if kind == learners.AveragedPerceptron {
				l.AverageFrom = 1
			}
			m, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f, err := m.Decision(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				value := 1 + want[0]*x.At(i, 0) + want[1]*x.At(i, 1)
				checkClose(t, "f", f.At(i, 0), value, 1e-12*(1+math.Abs(value)))
			}
		}
	}
}

// TestZeroIsPositive checks which class a model, also a restored one, predicts where f = 0.
func TestZeroIsPositive(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := mat.NewDense(2, 1, []float64{1, -1}), mat.NewDense(2, 1, []float64{1, -1})
	for _, kind := range []learners.PerceptronKind{learners.LastPerceptron, learners.AveragedPerceptron, learners.VotedPerceptron} {
		for zero, want := range map[bool]float64{false: -1, true: 1} {
			fitted, err := learners.Perceptron{Kind: kind, NoIntercept: true, ZeroIsPositive: zero, NoShuffle: true}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			restored, err := learners.Restore(fitted.State())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range []learners.Model{fitted, restored} {
				if got := labels(t, dev, m, mat.NewDense(1, 1, nil)).At(0, 0); got != want {
					t.Errorf("%s: sgn(0) = %v, want %v", m.Learner(), got, want)
				}
			}
		}
	}
}

// TestUntilClean checks that with epochs = 0 the perceptron runs until an epoch has no mistake. If every epoch has
// a mistake, the model has a warning.
func TestUntilClean(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := gaussians(t, 60, 2, 6)
	y.Apply(func(i, _ int, _ float64) float64 { return math.Copysign(1, x.At(i, 0)-2*x.At(i, 1)) }, y)
	fit := func(settings map[string]string, y mat.Matrix) learners.Model {
		t.Helper()
		d, err := learners.Find("perceptron")
		if err != nil {
			t.Fatal(err)
		}
		f, err := d.Make(learners.Classification, settings)
		if err != nil {
			t.Fatal(err)
		}
		m, err := f(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, replacement := range []string{"false", "true"} {
		m := fit(map[string]string{"epochs": "0", "replacement": replacement}, y)
		if !mat.Equal(labels(t, dev, m, x), y) || fact(t, m, "criterion") != 0.0 {
			t.Errorf("replacement %s: the samples are separable, and not separated: %v", replacement, m.(learners.Describer).Facts())
		}
	}
	x, y = mat.NewDense(2, 1, []float64{1, 1}), mat.NewDense(2, 1, []float64{-1, 1})
	if text := fact(t, fit(map[string]string{"epochs": "0"}, y), "warning").(string); !strings.Contains(text, "may not be separable") {
		t.Error(text)
	}
}

// TestPerceptronStartRefused checks that an initial w or b that is invalid, or has no use in the
// fit, gives an error.
func TestPerceptronStartRefused(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := mat.NewDense(3, 1, []float64{1, 2, 3}), mat.NewDense(3, 1, []float64{0, 1, 2})
	labels := mat.NewDense(3, 1, []float64{0, 1, 1})
	for want, c := range map[string]struct {
		l learners.Perceptron
		y mat.Matrix
	}{
		"more than two classes":  {learners.Perceptron{Start: 1, NoShuffle: true}, y},
		"more than two":          {learners.Perceptron{Start: 1, Coef: mat.NewDense(1, 3, nil), NoShuffle: true}, y},
		"bias must be":           {learners.Perceptron{Start: math.NaN(), NoShuffle: true}, labels},
		"coef must be 1×1":       {learners.Perceptron{Coef: mat.NewDense(2, 1, nil), NoShuffle: true}, labels},
		"coef: row 1, column 1":  {learners.Perceptron{Coef: mat.NewDense(1, 1, []float64{math.Inf(1)}), NoShuffle: true}, labels},
		"starts with w = 0":      {learners.Perceptron{Kind: learners.VotedPerceptron, Start: 1, NoShuffle: true}, labels},
		"average-from must be":   {learners.Perceptron{AverageFrom: 1, NoShuffle: true}, labels},
		"an integer ≥ 0, got -1": {learners.Perceptron{Kind: learners.AveragedPerceptron, AverageFrom: -1, NoShuffle: true}, labels},
	} {
		if _, err := c.l.Fit(t.Context(), dev, x, c.y, learners.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
