package learners_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/modelfile"
)

// scattered returns n rows of d features of which each has about share·d stored, and the same rows
// as a dense matrix, with targets of either sign. Some rows are equal, some are empty.
func scattered(rng *rand.Rand, n, d int, share float64) (backend.CSR[float64], *mat.Dense, *mat.Dense) {
	x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		sum := 0.0
		for j := range d {
			if rng.Float64() < share && i%17 != 3 {
				v := rng.Float64()
				x.Set(i, j, v)
				sum += v * float64(j%3-1)
			}
		}
		y.Set(i, 0, math.Copysign(1, sum+0.05*rng.NormFloat64()))
	}
	h := backend.Host[float64]{Rows: n, Cols: d, Stride: d, Data: x.RawMatrix().Data}
	return h.CSR(), x, y
}

// TestSparseSamplesGiveTheModelOfDenseSamples fits each learner that takes sparse samples to both
// forms of the same samples, saves and loads the model, and compares the predictions for both forms
// of other rows.
func TestSparseSamplesGiveTheModelOfDenseSamples(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dev := backendtest.Device(t, "")
	sparse, dense, y := scattered(rng, 90, 200, 0.05)
	other, otherDense, _ := scattered(rng, 40, 200, 0.05)
	weights := make([]float64, 90)
	for i := range weights {
		weights[i] = float64(rng.IntN(3))
	}
	weights[0], weights[1] = 1, 1
	for _, d := range learners.Catalogue() {
		if !d.Sparse {
			continue
		}
		kernels := []string{"", "linear()", "polynomial(degree=2, c=1)", "gaussian(sigma=2)", "laplacian(sigma=4)", "cosinesimilarity()", "chi2(gamma=0.5)"}
		for _, k := range kernels {
			for _, w := range [][]float64{nil, weights} {
				name := fmt.Sprintf("%s, kernel %q, weights %v", d.Name, k, w != nil)
				given := map[string]string{}
				if k != "" {
					given["kernel"] = k
				}
				if _, has := d.Parameter("tol"); has { // of a loop that ends there
					given["tol"] = "1e-9"
				}
				if _, has := d.Parameter("optimize"); has { // searches may end apart
					given["optimize"] = "false"
				}
				fit, err := d.Make("", given)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				predict := func(m learners.Model, err error, x mat.Matrix) *mat.Dense {
					t.Helper()
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					f, err := m.Predict(t.Context(), dev, x)
					if c, ok := m.(learners.Classifier); ok {
						f, err = c.Decision(t.Context(), dev, x)
					}
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					return f
				}
				o := learners.Options{Weights: w}
				want, err := fit(t.Context(), dev, dense, y, o)
				f := predict(want, err, otherDense)
				got, err := fit(t.Context(), dev, sparse, y, o)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				loaded, err := learners.Restore(got.State())
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				path := t.TempDir() + "/m"
				if err := modelfile.Save(path, modelfile.Bundle{Model: got}); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				b, err := modelfile.Load(path)
				// The systems have eigenvalues ≥ λ = 1, or solutions to within tol = 1e-9 of the
				// conditions: beside f of about 1 the rounding of sums of 90 terms is far smaller.
				const tol = 1e-6
				for form, g := range map[string]*mat.Dense{
					"sparse": predict(got, nil, other), "dense": predict(got, nil, otherDense), "pointer": predict(got, nil, &other),
					"restored": predict(loaded, nil, other), "loaded": predict(b.Model, err, other), "fitted to dense samples": predict(want, nil, other),
				} {
					if !mat.EqualApprox(g, f, tol) {
						var diff mat.Dense
						diff.Sub(g, f)
						t.Errorf("%s: %s rows: the predictions differ by up to %g", name, form, mat.Max(&diff)-mat.Min(&diff))
					}
				}
			}
		}
	}
}

// TestForgedSparsePointsAreRefused changes the arrays of sparse points of a saved model.
func TestForgedSparsePointsAreRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	dev := backendtest.Device(t, "")
	x, _, y := scattered(rng, 30, 80, 0.05)
	m, err := learners.SVC{}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, forge := range map[string]func(s learners.State){
		"no features":        func(s learners.State) { delete(s.Params, "points.features") },
		"too few features":   func(s learners.State) { s.Params["points.features"] = 3. },
		"half a feature":     func(s learners.State) { s.Params["points.features"] = 80.5 },
		"no columns":         func(s learners.State) { delete(s.Arrays, "points.columns") },
		"no values":          func(s learners.State) { delete(s.Arrays, "points.values") },
		"a column of -1":     func(s learners.State) { s.Arrays["points.columns"].Data[0] = -1 },
		"a column of 2³¹":    func(s learners.State) { s.Arrays["points.columns"].Data[0] = 1 << 31 },
		"a column of 0.5":    func(s learners.State) { s.Arrays["points.columns"].Data[0] = 0.5 },
		"columns that fall":  func(s learners.State) { s.Arrays["points.columns"].Data[1] = s.Arrays["points.columns"].Data[0] },
		"a start of NaN":     func(s learners.State) { s.Arrays["points.starts"].Data[1] = math.NaN() },
		"a start beyond":     func(s learners.State) { s.Arrays["points.starts"].Data[1] = 1e9 },
		"a first start of 1": func(s learners.State) { s.Arrays["points.starts"].Data[0] = 1 },
		"an infinite value":  func(s learners.State) { s.Arrays["points.values"].Data[0] = math.Inf(1) },
		"a single value":     func(s learners.State) { s.Arrays["points.values"] = backend.NewHost[float64](1, 1) },
	} {
		s := m.State()
		for array, h := range s.Arrays { // State shares its memory with the model
			c := backend.NewHost[float64](h.Rows, h.Cols)
			for i := range h.Rows {
				copy(c.Row(i), h.Row(i))
			}
			s.Arrays[array] = c
		}
		if _, err := learners.Restore(s); err != nil {
			t.Fatal(err)
		}
		forge(s)
		if _, err := learners.Restore(s); err == nil {
			t.Errorf("%s: the model was restored", name)
		}
	}
}
