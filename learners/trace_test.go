package learners

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend/backendtest"
)

// TestTrace compares the mistakes and the loss that a trace states for an epoch with those of a fit that ends
// after this epoch, and with the formula of the loss.
func TestTrace(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n, seed = 40, 5
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	x, y := mat.NewDense(n, 3, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		for j := range 3 {
			x.Set(i, j, rng.NormFloat64())
		}
		if x.At(i, 0)+0.5*x.At(i, 1)+0.8*rng.NormFloat64() > 0 { // the classes are not separable
			y.Set(i, 0, 1)
		}
	}
	ctx := context.Background()
	fit := func(name string, trace func(Epoch), settings map[string]string) Model {
		t.Helper()
		d, err := Find(name)
		if err != nil || !d.Traces() {
			t.Fatalf("%s: traces %v, %v", name, d.Traces(), err)
		}
		task := d.Tasks[0]
		f, err := d.Make(task, settings)
		if err != nil {
			t.Fatal(err)
		}
		m, err := f(ctx, dev, x, y, Options{Trace: trace})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	square := func(w []float64) (sum float64) {
		for _, v := range w {
			sum += v * v
		}
		return sum
	}
	loss := func(m Model) float64 { // computed from the decision values of the model for the samples
		sum := 0.0
		if c, ok := m.(Classifier); ok {
			f, err := c.Decision(ctx, dev, x)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				margin := (2*y.At(i, 0) - 1) * f.At(i, 0)
				switch m.Learner() {
				case "logistic":
					sum += math.Log1p(math.Exp(-margin))
				case "kernel-logistic":
					// The penalty is ½ Σ α_i (f(x_i) − b).
					sum += math.Log1p(math.Exp(-margin)) + 0.5*PartsOf(m).Coef.At(i, 0)*(f.At(i, 0)-PartsOf(m).Intercept[0])
				default:
					sum += max(0, -margin)
				}
			}
			if m.Learner() == "logistic" {
				sum += 0.5 * square(PartsOf(m).Coef.RawMatrix().Data)
			}
			return sum
		}
		f, err := m.Predict(ctx, dev, x)
		if err != nil {
			t.Fatal(err)
		}
		f.Sub(f, y)
		return square(f.RawMatrix().Data)
	}
	mistakes := func(m Model) int {
		for _, f := range m.(Describer).Facts() {
			if f.Name == "mistakes" {
				return f.Value.(int)
			}
		}
		t.Fatal("no mistakes in the facts")
		return 0
	}
	// The bound covers the rounding errors of sums of n losses of about 1.
	isClose := func(got, want float64) bool { return math.Abs(got-want) <= 1e-11*n*max(1, want) }
	for _, name := range []string{"perceptron", "kernel-perceptron", "least-squares"} {
		settings := map[string]string{"epochs": "6", "shuffle": "true"}
		if name == "least-squares" {
			settings = map[string]string{"epochs": "6", "method": "lms"}
		}
		if name == "kernel-perceptron" {
			settings["kernel"] = "gaussian(sigma=3)"
		}
		var trace []Epoch
		fit(name, func(e Epoch) { trace = append(trace, e) }, settings)
		if len(trace) != 6 {
			t.Fatalf("%s: %d epochs, want 6", name, len(trace))
		}
		total := 0
		for k, e := range trace {
			settings["epochs"] = fmt.Sprint(k + 1)
			m := fit(name, nil, settings)
			if e.Number != k+1 || !isClose(e.Loss, loss(m)) {
				t.Errorf("%s: epoch %d has number %d, loss %v, want %v", name, k+1, e.Number, e.Loss, loss(m))
			}
			if name == "least-squares" {
				continue
			}
			if total += *e.Mistakes; total != mistakes(m) {
				t.Errorf("%s: %d mistakes up to epoch %d, want %d", name, total, k+1, mistakes(m))
			}
		}
	}
	for _, settings := range []map[string]string{
		{"solver": "newton"}, {"solver": "lbfgs"}, {"solver": "gradient-descent"}, {"solver": "sgd", "iterations": "7"}, {"kernel": "gaussian(sigma=3)"},
	} {
		name := "logistic"
		if settings["kernel"] != "" {
			name = "kernel-logistic"
		}
		settings["lambda"] = "1"
		var trace []Epoch
		m := fit(name, func(e Epoch) { trace = append(trace, e) }, settings)
		if len(trace) < 3 {
			t.Fatalf("%v: %d epochs", settings, len(trace))
		}
		if last := trace[len(trace)-1].Loss; !isClose(last, loss(m)) {
			t.Errorf("%v: the last loss is %v, want %v", settings, last, loss(m))
		}
		if settings["solver"] == "sgd" {
			if len(trace) != 7 || trace[0].Number != 1 {
				t.Errorf("%v: %d epochs from %d, want 7 from 1", settings, len(trace), trace[0].Number)
			}
			continue
		}
		// The loss at the start, where w = 0, is at most n ln 2. Each step decreases the loss.
		if trace[0].Number != 0 || trace[0].Loss > n*math.Ln2*(1+1e-14) {
			t.Errorf("%v: it begins with %v, want epoch 0 and at most %v", settings, trace[0], n*math.Ln2)
		}
		for k := 1; k < len(trace); k++ {
			if trace[k].Number <= trace[k-1].Number || trace[k].Loss > trace[k-1].Loss*(1+1e-14*n) {
				t.Errorf("%v: step %v after %v", settings, trace[k], trace[k-1])
			}
		}
	}
}
