package learners_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/modelfile"
	"github.com/mercer-go/mercer/solvers"
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
				// The elements of K differ by the rounding of sums of at most 200 terms, about 1e-14.
				// Linear systems, of eigenvalues ≥ λ = 1, do not enlarge it. The loops of the support
				// vector machines take the same steps on both forms and end at tol = 1e-9.
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

// TestKernelRidgeChoosesTheFormOfSparseSamples: more features than samples stay sparse; fewer are made
// dense, so that kernel-ridge solves a system whose K does not fit the memory by conjugate gradients;
// the solver dual keeps them sparse.
func TestKernelRidgeChoosesTheFormOfSparseSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	dev := backendtest.Device(t, "")
	const n, d = 1200, 80
	x, _, y := scattered(rng, n, d, 0.1)
	wide := backend.CSR[float64]{Rows: x.Rows, Cols: n + 1, Indptr: x.Indptr, Indices: x.Indices, Data: x.Data}
	const limit = 2 << 20 // half of K in float32 takes 2.9 MB
	l := learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 2}, Lambda: 1}
	dual := l
	dual.Solver = solvers.Dual
	for _, c := range []struct {
		name   string
		l      learners.KernelRidge
		x      mat.Matrix
		memory int64
		method solvers.Method // "": the fit is refused
		sparse bool
	}{
		{"80 features", l, x, 0, "", false},
		{"80 features, little memory", l, x, limit, solvers.CG, false},
		{"80 features, dual", dual, x, 0, solvers.Dual, true},
		{"80 features, dual, little memory", dual, x, limit, "", true},
		{"1201 features", l, wide, 0, solvers.Dual, true},
	} {
		m, err := c.l.Fit(t.Context(), dev, c.x, y, learners.Options{Memory: c.memory})
		if c.memory > 0 && c.method == "" {
			if budget := new(solvers.BudgetError); !errors.As(err, &budget) {
				t.Errorf("%s: %v, not a BudgetError", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if _, sparse := learners.PartsOf(m).Points.(backend.CSR[float64]); sparse != c.sparse {
			t.Errorf("%s: sparse is %t", c.name, sparse)
		}
		if got := m.Solved().Method; c.method != "" && got != c.method {
			t.Errorf("%s: solved by %s, not %s", c.name, got, c.method)
		}
	}
}

// TestDenseCopyOfSparseSamples: a learner that takes no sparse samples is fitted to a dense copy, which
// its report says, and is refused where there is no memory for the copy.
func TestDenseCopyOfSparseSamples(t *testing.T) {
	dev := backendtest.Device(t, "")
	rng := rand.New(rand.NewPCG(3, 0))
	x, dense, y := scattered(rng, 60, 90, 0.1)
	huge := backend.CSR[float64]{Rows: 60, Cols: math.MaxInt32, Indptr: x.Indptr, Indices: x.Indices, Data: x.Data}
	for _, d := range learners.Catalogue() {
		if d.Sparse || !slices.Contains(d.Tasks, learners.Classification) {
			continue
		}
		fit, err := d.Make(learners.Classification, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, err := fit(t.Context(), dev, dense, y, learners.Options{})
		if err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		got, err := fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		if !reflect.DeepEqual(got.State(), want.State()) {
			t.Errorf("%s: the model of the sparse samples is not that of the dense ones", d.Name)
		}
		facts := func(m learners.Model) []learners.Fact { return m.(learners.Describer).Facts() }
		warned := func(m learners.Model) bool {
			return slices.ContainsFunc(facts(m), func(f learners.Fact) bool {
				return f.Name == "warning" && strings.Contains(fmt.Sprint(f.Value), "dense copy of 60 rows × 90 features")
			})
		}
		if !warned(got) || warned(want) {
			t.Errorf("%s: the facts are %v for sparse and %v for dense samples", d.Name, facts(got), facts(want))
		}
		if _, known := backend.HostMemory(); !known {
			continue
		}
		_, err = fit(t.Context(), dev, huge, y, learners.Options{}) // 1 TB
		if budget := new(solvers.BudgetError); !errors.As(err, &budget) {
			t.Errorf("%s: %v, not a BudgetError", d.Name, err)
		}
	}
}
