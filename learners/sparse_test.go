package learners_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// scattered returns n sparse rows of d features with about density·d stored elements each, the dense matrix with
// these rows, and targets −1 and 1.
func scattered(rng *rand.Rand, n, d int, density float64) (backend.CSR[float64], *mat.Dense, *mat.Dense) {
	x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		sum := 0.0
		for j := range d {
			if rng.Float64() < density && i%17 != 3 {
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

// TestSparseSamplesGiveTheModelOfDenseSamples fits each learner that takes sparse samples to a sparse matrix and
// to the equal dense matrix, and compares the predictions, also after saving and loading.
func TestSparseSamplesGiveTheModelOfDenseSamples(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dev := backendtest.Device(t, "")
	sparse, dense, y := scattered(rng, 90, 200, 0.05)
	queries, denseQueries, _ := scattered(rng, 40, 200, 0.05)
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
		if _, ok := d.Parameter("kernel"); !ok {
			kernels = kernels[:1]
		}
		if d.Name == "kernel-vote" { // the mean of kernel-vote needs positive kernel values
			kernels = []string{"", "gaussian(sigma=2)", "laplacian(sigma=4)"}
		}
		for i, k := range kernels {
			for j, w := range [][]float64{nil, weights} {
				if required.FewCases() && i > 0 && (i+j)%3 != 0 {
					continue
				}
				name := fmt.Sprintf("%s, kernel %q, weights %v", d.Name, k, w != nil)
				settings := map[string]string{}
				if k != "" {
					settings["kernel"] = k
				}
				if _, ok := d.Parameter("tol"); ok { // the tolerance at which an iteration ends
					settings["tol"] = "1e-9"
				}
				if d.Name == "nystrom-ridge" { // sparse and dense samples have the same centers only if all samples are centers
					settings["centers"] = "90"
				}
				if d.Name == "logistic" || d.Name == "lasso" { // tol is a fraction of the loss, which is flat near its minimum
					settings["tol"] = "1e-15"
				}
				if _, ok := d.Parameter("optimize"); ok { // searches for sparse and for dense samples may end at different parameters
					settings["optimize"] = "false"
				}
				fit, err := d.Make("", settings)
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
				f := predict(want, err, denseQueries)
				got, err := fit(t.Context(), dev, sparse, y, o)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				restored, err := learners.Restore(got.State())
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				path := t.TempDir() + "/m"
				if err := modelfile.Save(path, modelfile.Bundle{Model: got}); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				b, err := modelfile.Load(path)
				// Kernel values for sparse and dense samples differ by about 1e-14. Support vector machines end at
				// violations of 1e-9.
				const tol = 1e-6
				for form, g := range map[string]*mat.Dense{
					"sparse": predict(got, nil, queries), "dense": predict(got, nil, denseQueries), "pointer": predict(got, nil, &queries),
					"restored": predict(restored, nil, queries), "loaded": predict(b.Model, err, queries), "fitted to dense samples": predict(want, nil, queries),
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

// TestSparseFitsOfManyFeatures checks, by the plan and the measured allocations, that a fit to sparse samples with
// a million features takes no memory for a dense copy.
func TestSparseFitsOfManyFeatures(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	dev := backendtest.Device(t, "")
	const n, d, perRow = 300, 1_000_000, 8
	x := backend.CSR[float64]{Rows: n, Cols: d, Indptr: []int{0}}
	y := mat.NewDense(n, 1, nil)
	for i := range n {
		var columns []int32
		for range perRow {
			columns = append(columns, int32(rng.IntN(d)))
		}
		columns[0] = int32(i % 20) // several rows have an element in this column
		slices.Sort(columns)
		for _, c := range slices.Compact(columns) {
			x.Indices, x.Data = append(x.Indices, c), append(x.Data, 0.1+rng.Float64())
		}
		x.Indptr = append(x.Indptr, len(x.Data))
		y.Set(i, 0, float64(i%20/10))
	}
	if err := x.Check(); err != nil {
		t.Fatal(err)
	}
	for i, l := range learners.Catalogue() {
		if !l.Sparse || required.FewCases() && i%2 != 0 {
			continue
		}
		for _, task := range l.Tasks {
			settings := map[string]string{}
			if p, ok := l.Parameter("optimize"); ok && p.Default == "true" { // omits a search that would take many fits
				settings["optimize"] = "false"
			}
			fit, err := l.Make(task, settings)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			m, err := fit(t.Context(), dev, x, y, learners.Options{Memory: 96 << 20})
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Errorf("%s, %s: %v", l.Name, task, err)
				continue
			}
			if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 160 { // a dense copy takes 2400 MB, and a vector with a number for each feature 8 MB
				t.Errorf("%s, %s: %d MB were allocated", l.Name, task, allocated)
			}
			if f, err := m.Predict(t.Context(), dev, x); err != nil {
				t.Errorf("%s, %s: %v", l.Name, task, err)
			} else if rows, _ := f.Dims(); rows != n {
				t.Errorf("%s, %s: %d predictions", l.Name, task, rows)
			}
		}
	}
}

// TestSparseFaults checks that every learner that takes sparse samples names the element of malformed samples,
// stops when its context is canceled, and respects its memory limit.
func TestSparseFaults(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 0))
	dev := backendtest.Device(t, "")
	x, _, y := scattered(rng, 60, 90, 0.1)
	element, row := 0, 0
	for row = range x.Rows { // finds the first row after row 0 with at least two elements
		if row > 0 && x.Indptr[row+1]-x.Indptr[row] > 1 {
			element = x.Indptr[row]
			break
		}
	}
	withChange := func(change func(x *backend.CSR[float64])) backend.CSR[float64] {
		c := x
		c.Indptr, c.Indices, c.Data = slices.Clone(x.Indptr), slices.Clone(x.Indices), slices.Clone(x.Data)
		change(&c)
		return c
	}
	faults := []struct {
		x    backend.CSR[float64]
		want string
	}{
		{withChange(func(x *backend.CSR[float64]) { x.Data[element] = math.NaN() }), fmt.Sprintf("x: row %d, column %d is NaN", row+1, x.Indices[element]+1)},
		{withChange(func(x *backend.CSR[float64]) { x.Data[element+1] = math.Inf(-1) }), fmt.Sprintf("x: row %d, column %d is -Inf", row+1, x.Indices[element+1]+1)},
		{withChange(func(x *backend.CSR[float64]) { x.Indices[element+1] = x.Indices[element] }), fmt.Sprintf("row %d: column %d appears twice", row+1, x.Indices[element]+1)},
		{withChange(func(x *backend.CSR[float64]) { x.Indices[element] = 90 }), fmt.Sprintf("row %d: the column index of element 1 is not from 1 to 90", row+1)},
		{withChange(func(x *backend.CSR[float64]) { x.Indices[element] = -1 }), fmt.Sprintf("row %d: the column index of element 1 is not from 1 to 90", row+1)},
		{withChange(func(x *backend.CSR[float64]) { x.Data = x.Data[:len(x.Data)-1] }), "column indices for"},
		{backend.CSR[float64]{Indptr: []int{0}}, "x is empty: 0 rows, 0 columns"},
		{x.SliceRows(0, 59), "x has 59 rows, y has 60"},
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, l := range learners.Catalogue() {
		if !l.Sparse {
			continue
		}
		for _, task := range l.Tasks {
			fit, err := l.Make(task, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range faults {
				if task == learners.Novelty && c.x.Rows == 59 { // learners for novelty do not read y
					continue
				}
				if _, err := fit(t.Context(), dev, c.x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s, %s: got the error %v, want %q", l.Name, task, err, c.want)
				}
			}
			if _, err := fit(ctx, dev, x, y, learners.Options{}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, %s: canceled: %v", l.Name, task, err)
			}
			budget := new(solvers.BudgetError)
			if _, err := fit(t.Context(), dev, x, y, learners.Options{Memory: 1}); !errors.As(err, &budget) {
				t.Errorf("%s, %s: one byte of memory: %v", l.Name, task, err)
			}
		}
	}
	if inUse, _ := dev.InUse(); inUse != 0 {
		t.Errorf("%d bytes are left on the device", inUse)
	}
}

// TestForgedSparsePointsAreRefused checks that a model whose saved arrays of sparse points were
// changed is not restored.
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

// TestKernelRidgeOfSparseSamples checks that no solver makes a dense copy of sparse samples, and that a system
// whose K does not fit into the memory is solved by conjugate gradients. The oracle is a fit to dense samples.
func TestKernelRidgeOfSparseSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	dev := backendtest.Device(t, "")
	const n, d = 1200, 80
	x, dense, y := scattered(rng, n, d, 0.1)
	const limit = 2 << 20 // too little memory for half of K in float32, which takes 2.9 MB
	for _, c := range []struct {
		solver solvers.Method
		memory int64
		method solvers.Method // "" if the fit must be refused
	}{
		{solvers.Auto, 0, solvers.Dual},
		{solvers.Mixed, 0, solvers.Mixed},
		{solvers.CG, 0, solvers.CG},
		{solvers.Auto, limit, solvers.CG},
		{solvers.Dual, limit, ""},
	} {
		for _, k := range []kernels.Kernel{kernels.Linear{}, kernels.Gaussian{Sigma: 2}} {
			name := fmt.Sprintf("%s, %d bytes, %v", c.solver, c.memory, k)
			l := learners.KernelRidge{Kernel: k, Lambda: 1, Solver: c.solver}
			m, err := l.Fit(t.Context(), dev, x, y, learners.Options{Memory: c.memory})
			if c.method == "" {
				if budget := new(solvers.BudgetError); !errors.As(err, &budget) {
					t.Errorf("%s: %v, not a BudgetError", name, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, sparse := learners.PartsOf(m).Points.(backend.CSR[float64]); !sparse {
				t.Errorf("%s: the model is not sparse", name)
			}
			if got := m.Solved().Method; got != c.method {
				t.Errorf("%s: solved by %s, not %s", name, got, c.method)
			}
			l.Solver = solvers.Dual
			want, err := l.Fit(t.Context(), dev, dense, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			// Both fits have residuals of at most 1e-8‖y‖. They change α by at most this norm divided by λ; the
			// intercept doubles the bound.
			var difference mat.Dense
			difference.Sub(m.Alpha(), want.Alpha())
			if diff, bound := mat.Norm(&difference, 2), 4e-8*mat.Norm(y, 2); !(diff <= bound) {
				t.Errorf("%s: the coefficients differ by %.3g, allowed %.3g", name, diff, bound)
			}
		}
	}
}

// TestDenseCopyOfSparseSamples checks that a learner that does not support sparse samples is fitted to a dense
// copy and reports this, or returns an error if the copy does not fit into the memory.
func TestDenseCopyOfSparseSamples(t *testing.T) {
	dev := backendtest.Device(t, "")
	rng := rand.New(rand.NewPCG(3, 0))
	x, dense, y := scattered(rng, 60, 90, 0.1)
	wide := backend.CSR[float64]{Rows: 60, Cols: math.MaxInt32, Indptr: x.Indptr, Indices: x.Indices, Data: x.Data}
	for _, d := range learners.Catalogue() {
		if d.Sparse || !slices.Contains(d.Tasks, learners.Classification) {
			continue
		}
		task, settings := learners.Classification, map[string]string{}
		if d.Name == "fourier-ridge" { // fourier-ridge makes a dense copy only for optimize, a parameter for regression
			task, settings["optimize"] = learners.Regression, "true"
		}
		fit, err := d.Make(task, settings)
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
		if _, ok := backend.HostMemory(); !ok {
			continue
		}
		_, err = fit(t.Context(), dev, wide, y, learners.Options{}) // a dense copy takes 1 TB
		if budget := new(solvers.BudgetError); !errors.As(err, &budget) {
			t.Errorf("%s: %v, not a BudgetError", d.Name, err)
		}
	}
}

// TestUncertaintyOfSparseRows checks that predictions, their standard deviations, intervals and bounds at sparse
// rows equal those at the same rows in a dense matrix.
func TestUncertaintyOfSparseRows(t *testing.T) {
	dev := backendtest.Device(t, "")
	rng := rand.New(rand.NewPCG(5, 0))
	const rows, d = 4300, 1000 // a block has 2²²/(d + 1) rows
	_, x, y := scattered(rng, 40, d, 0.05)
	sparse, dense, _ := scattered(rng, rows, d, 0.01)
	k := kernels.Gaussian{Sigma: 3}
	for name, fit := range map[string]learners.Fitter{
		"bayes-ridge":      fitter(learners.BayesRidge{}.Fit),
		"fourier-ridge":    fitter(learners.FourierRidge{Kernel: k, Lambda: 1, Features: 50, Std: true}.Fit),
		"gaussian-process": fitter(learners.GaussianProcess{Kernel: k, Lambda: 1, Fixed: true}.Fit),
		"kernel-knn":       fitter(learners.KernelKNN{Kernel: kernels.Polynomial{Degree: 2, C: 1}, K: 3}.Fit),
		"kernel-ridge":     fitter(learners.KernelRidge{Kernel: k, Lambda: 1}.Fit),
		"nystrom-ridge":    fitter(learners.NystromRidge{Kernel: k, Lambda: 1, Centers: 20, Std: true}.Fit),
		"ridge std":        fitter(learners.Ridge{Lambda: 1, Std: true}.Fit),
		"ridge intervals":  fitter(learners.Ridge{Lambda: 1, Intervals: true}.Fit),
	} {
		if required.FewCases() && !slices.Contains([]string{"gaussian-process", "kernel-knn", "ridge intervals"}, name) {
			continue
		}
		m, err := fit(t.Context(), dev, x, y, learners.Options{Prove: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		outputs := func(x mat.Matrix) map[string]*mat.Dense {
			results := map[string]*mat.Dense{}
			store := func(output string, m *mat.Dense, err error) {
				if results[output] = m; err != nil {
					t.Fatalf("%s: %s: %v", name, output, err)
				}
			}
			f, err := m.Predict(t.Context(), dev, x)
			store("prediction", f, err)
			if m, ok := learners.As[learners.Uncertain](m); ok {
				f, err := m.Variance(t.Context(), dev, x)
				store("variance", f, err)
			}
			if m, ok := learners.As[learners.Jackknife](m); ok {
				lower, upper, err := m.Intervals(t.Context(), dev, x, 0.9)
				store("lower", lower, err)
				store("upper", upper, err)
			}
			if m, ok := m.(learners.Bounded); ok && m.HasBound() {
				f, bounds, err := m.PredictBound(t.Context(), dev, x)
				store("bounded prediction", f, err)
				store("bound", bounds, err)
			}
			return results
		}
		want := outputs(dense)
		t.Logf("%s: %v", name, slices.Sorted(maps.Keys(want)))
		// Two sums in different orders have errors of at most d·2⁻⁵³ Σ_j |x_j w_j| each.
		tol := 0.0
		if m, ok := m.(interface{ Coef() *mat.Dense }); ok {
			tol = 4 * d * 0x1p-53 * mat.Norm(m.Coef(), 1)
		}
		for output, got := range outputs(sparse) {
			tol := tol
			if name == "fourier-ridge" && output == "variance" {
				// The variance is ‖L⁻¹φ‖² for the Cholesky factor L of the 100×100 matrix ΦᵀΦ + λI. The square of the
				// condition number of L is at most 1 + ‖Φ‖²/λ ≤ 41.
				tol = 4 * 100 * 0x1p-53 * 10 * math.Sqrt(41)
			}
			if !mat.EqualApprox(got, want[output], tol) {
				t.Errorf("%s: the %s at sparse rows differs from that at dense rows", name, output)
			}
		}
		if name != "kernel-knn" {
			continue
		}
		invalid := sparse
		invalid.Data = slices.Clone(sparse.Data)
		for i := invalid.Indptr[rows-1]; i < invalid.Indptr[rows]; i++ {
			invalid.Data[i] = 1e200
		}
		if _, err := m.Predict(t.Context(), dev, invalid); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("x: row %d: the kernel", rows)) {
			t.Errorf("%s: infinite kernel values in row %d: %v", name, rows, err)
		}
	}
}

// formulaRows returns 1500 rows of 211 features with about six stored elements each, the targets f,
// from which formulaClasses makes two or three classes, and weights. In Python:
//
//	n, d = 1500, 211
//	X = np.zeros((n, d))
//	for i in range(n):
//	    for k in range(6):
//	        X[i, ((7919*i + 104729*k) % 997)**2 % d] = ((31*i + 17*k) % 13 + 1) / 13
//	f = X @ (np.arange(d) % 3 - 1) + ((37*np.arange(n)) % 11 - 5) / 10
//	w = 1 + np.arange(n) % 3
func formulaRows() (x backend.CSR[float64], f, weights []float64) {
	const n, d = 1500, 211
	dense := backend.NewHost[float64](n, d)
	for i := range n {
		for k := range 6 {
			c := (7919*i + 104729*k) % 997
			dense.Row(i)[c*c%d] = float64((31*i+17*k)%13+1) / 13
		}
		sum := float64((37*i)%11-5) / 10
		for c, v := range dense.Row(i) {
			sum += v * float64(c%3-1)
		}
		f, weights = append(f, sum), append(weights, float64(1+i%3))
	}
	return dense.CSR(), f, weights
}

// formulaClasses returns the classes for the targets f of formulaRows. Two classes are f > 0, and
// three are np.digitize(f, [-0.5123, 0.5123]).
func formulaClasses(f []float64, classes int) *mat.Dense {
	y := mat.NewDense(len(f), 1, nil)
	for i, v := range f {
		switch {
		case classes == 2 && v > 0:
			y.Set(i, 0, 1)
		case classes == 3 && v >= 0.5123:
			y.Set(i, 0, 2)
		case classes == 3 && v >= -0.5123:
			y.Set(i, 0, 1)
		}
	}
	return y
}

// TestLinearSVCOfSparseSamples fits linear support vector machines to the rows of formulaRows by
// coordinate descent and compares their objective with that of scikit-learn 1.2's SVC:
//
//	y = np.digitize(f, [-0.5123, 0.5123])
//	def objective(C, weights, classes):
//	    total = 0
//	    for a in range(classes):
//	        for b in range(a + 1, classes):
//	            s = (y == a) | (y == b) if classes == 3 else y >= 0
//	            m = SVC(kernel="linear", C=C, tol=1e-9).fit(X[s], (y if classes == 3 else f > 0)[s], weights[s])
//	            total += np.abs(m.dual_coef_).sum() - (m.coef_**2).sum() / 2
//	    return total
func TestLinearSVCOfSparseSamples(t *testing.T) {
	dev := backendtest.Device(t, "")
	x, f, weights := formulaRows()
	for _, c := range []struct {
		classes  int
		weighted bool
		c, want  float64
	}{
		{2, false, 0.001, 1.3736188230120066},
		{2, false, 0.1, 68.77187695562053},
		{2, false, 10, 3101.0547592061457},
		{2, true, 0.001, 2.683552389988095},
		{2, true, 0.1, 117.32889369364679},
		{2, true, 10, 5422.272861546298},
		{3, false, 0.001, 2.7605177351627783},
		{3, false, 0.1, 146.22487566161834},
		{3, false, 10, 5342.411745864086},
		{3, true, 0.001, 5.406502756655239},
		{3, true, 0.1, 246.8669770016967},
		{3, true, 10, 9539.903576810848},
	} {
		name := fmt.Sprintf("%d classes, weights %t, C %v", c.classes, c.weighted, c.c)
		y := formulaClasses(f, c.classes)
		o := learners.Options{}
		if c.weighted {
			o.Weights = weights
		}
		m, err := learners.SVC{Kernel: kernels.Linear{}, C: c.c}.Fit(t.Context(), dev, x, y, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// The duality gap bounds the difference between the objectives. For a very large C the solver is SMO.
		gap := fact(t, m, "duality gap").(float64)
		if rows := fact(t, m, "rows of K"); c.c < 10 && (rows != 0 || gap > 1e-6*c.want) {
			t.Errorf("%s: %v rows of K were computed, the duality gap is %g", name, rows, gap)
		}
		checkClose(t, name, fact(t, m, "objective").(float64), c.want, gap+1e-9*c.want)
		// A second seed gives the solver another order of steps.
		seeded, err := learners.SVC{Kernel: kernels.Linear{}, C: c.c, Seed: 1}.Fit(t.Context(), dev, x, y, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkClose(t, name+": another seed", fact(t, seeded, "objective").(float64), c.want, fact(t, seeded, "duality gap").(float64)+1e-9*c.want)
	}
}

// TestLinearSVCOfMessages compares the objective of a fit to real messages, encoded by tf-idf of
// all n-grams of three and four characters, with the objective of scikit-learn 1.2:
//
//	X = TfidfVectorizer(analyzer="char", ngram_range=(3, 4)).fit_transform(texts)
//	m = SVC(kernel="linear", C=C, tol=1e-9).fit(X, labels)
//	np.abs(m.dual_coef_).sum() - m.coef_.multiply(m.coef_).sum() / 2
func TestLinearSVCOfMessages(t *testing.T) {
	table, err := dataset.ReadCSV(required.Data(t, "sms_spam.csv"), nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := dataset.Learn(table, dataset.Rules{Targets: []string{"target"}, Labels: true, TFIDF: []string{"text"}, NGrams: dataset.NGrams{Analyzer: "char", MinN: 3, MaxN: 4}})
	if err != nil {
		t.Fatal(err)
	}
	x, err := e.SparseFeatures(table)
	if err != nil {
		t.Fatal(err)
	}
	y, err := e.Targets(table)
	if err != nil {
		t.Fatal(err)
	}
	dev := backendtest.Device(t, "")
	for c, want := range map[float64]float64{0.1: 95.99549728529205, 1: 232.05249976683288, 10: 261.6946938244995} {
		m, err := learners.SVC{Kernel: kernels.Linear{}, C: c}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if rows := fact(t, m, "rows of K"); rows != 0 {
			t.Errorf("C %v: %v rows of K were computed", c, rows)
		}
		checkClose(t, fmt.Sprintf("C %v", c), fact(t, m, "objective").(float64), want, 1e-6*want)
	}
}

// TestLogisticOfSparseSamples compares the final loss of each solver for the rows of formulaRows
// with the loss of scikit-learn 1.2:
//
//	def loss(lam, weights, classes):
//	    t = y if classes == 3 else (f > 0) * 1
//	    m = LogisticRegression(C=1/lam, tol=1e-5, solver="newton-cg", max_iter=1000, multi_class="multinomial" if classes == 3 else "auto").fit(X, t, weights)
//	    s = m.decision_function(X)
//	    if classes == 2:
//	        s = np.stack([0*s, s], 1)
//	    return weights @ (logsumexp(s, axis=1) - s[np.arange(n), t]) + lam/2*(m.coef_**2).sum()
//
// The fits by gradient-descent and sgd, which do not reach the minimum, are compared with fits to dense samples.
func TestLogisticOfSparseSamples(t *testing.T) {
	dev := backendtest.Device(t, "")
	x, f, weights := formulaRows()
	dense := backend.NewHost[float64](x.Rows, x.Cols)
	x.DenseTo(dense)
	for _, c := range required.Subset(3, []struct {
		classes      int
		weighted     bool
		lambda, want float64
	}{
		{2, false, 0.1, 335.1170925998406},
		{2, false, 10, 752.9064419508167},
		{2, true, 0.1, 592.0024617142175},
		{2, true, 10, 1338.10961249452},
		{3, false, 0.1, 561.6123248326352},
		{3, false, 10, 1177.496202366052},
		{3, true, 0.1, 1009.5829854249087},
		{3, true, 10, 2115.3579022914346},
	}) {
		o := learners.Options{}
		if c.weighted {
			o.Weights = weights
		}
		for _, solver := range []learners.LogisticSolver{"", learners.LogisticNewton, learners.LogisticLBFGS, learners.LogisticDescent, learners.LogisticSGD} {
			l := learners.Logistic{Lambda: c.lambda, Solver: solver}
			loss := func(x mat.Matrix) float64 {
				t.Helper()
				m, err := l.Fit(t.Context(), dev, x, formulaClasses(f, c.classes), o)
				if err != nil {
					t.Fatal(err)
				}
				return fact(t, m, "loss").(float64)
			}
			want, tol := c.want, 1e-8 // ten times the tolerance of the solvers
			if solver == learners.LogisticDescent || solver == learners.LogisticSGD {
				if c.lambda < 1 { // the solver needs many steps
					continue
				}
				want = loss(mat.NewDense(x.Rows, x.Cols, dense.Data))
			}
			if solver == learners.LogisticDescent { // gradient descent may end after another number of steps because of rounding
				tol = 1e-5
			}
			checkClose(t, fmt.Sprintf("%d classes, weights %t, lambda %v, %q", c.classes, c.weighted, c.lambda, solver), loss(x), want, tol*c.want)
		}
	}
}

// TestRidgeOfSparseSamples compares fits of ridge to the rows of formulaRows, by both methods for sparse samples
// and with a λ for each target, with the fit to dense samples.
func TestRidgeOfSparseSamples(t *testing.T) {
	dev := backendtest.Device(t, "")
	x, f, weights := formulaRows()
	h := backend.NewHost[float64](x.Rows, x.Cols)
	x.DenseTo(h)
	dense := mat.NewDense(x.Rows, x.Cols, h.Data)
	y := mat.NewDense(x.Rows, 2, nil)
	for i, v := range f {
		y.SetRow(i, []float64{v, 100 + math.Abs(v)})
	}
	weights[5] = 0
	for _, l := range required.Subset(3, []learners.Ridge{{Lambda: 1}, {Lambdas: []float64{0.1, 10}}, {Lambda: 100}, {Lambda: 1, Intervals: true}, {Lambda: 0.01, NoIntercept: true}}) {
		for _, w := range [][]float64{nil, weights} {
			want, err := l.Fit(t.Context(), dev, dense, y, learners.Options{Weights: w})
			if err != nil {
				t.Fatal(err)
			}
			for _, method := range []solvers.Method{solvers.Auto, solvers.Primal, solvers.Dual} {
				l.Method = method
				smallest := max(l.Lambda, 1e-2)
				m, err := l.Fit(t.Context(), dev, x, y, learners.Options{Weights: w})
				if err != nil {
					t.Fatalf("%v, %s: %v", l, method, err)
				}
				needsCopy := l.Intervals
				warned := strings.Contains(fmt.Sprint(m.Facts()), "dense copy of 1500 rows × 211 features")
				if needsCopy != warned {
					t.Errorf("%v: the facts are %v", l, m.Facts())
				}
				if got := m.Solved().Method; !needsCopy && got != cmp.Or(method, solvers.Primal) {
					t.Errorf("%v, %s: solved by %s", l, method, got)
				}
				// The limit is the residual, at most 1e-8‖Xᵀy‖ with ‖Xᵀy‖ about 1e5, divided by the smallest
				// eigenvalue, at least λ.
				var diff mat.Dense
				diff.Sub(m.Coef(), want.Coef())
				if e := mat.Norm(&diff, 2); e > 1e-8*1e5/smallest {
					t.Errorf("%v, %q, weights %t: the weights differ by %g", l, method, w != nil, e)
				}
				for j, b := range m.Intercept() {
					checkClose(t, fmt.Sprintf("%v, %q: intercept %d", l, method, j), b, want.Intercept()[j], 1e-8*1e5/smallest)
				}
			}
		}
	}
	// Without a penalty ridge makes a dense copy, which does not have full rank.
	if _, err := (learners.Ridge{}).Fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), "does not have full rank") {
		t.Errorf("lambda 0: %v", err)
	}
	x.Data[7] = math.NaN()
	if _, err := (learners.Ridge{Lambda: 1}).Fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("x: row 2, column %d is NaN", x.Indices[7]+1)) {
		t.Errorf("NaN: %v", err)
	}
}

// TestLassoOfSparseSamples compares the objective of a fit to sparse samples with that of the fit to dense
// samples, up to their duality gaps. One case has a constant and a repeated feature.
func TestLassoOfSparseSamples(t *testing.T) {
	dev := backendtest.Device(t, "")
	x, f, weights := formulaRows()
	weights[5] = 0
	h := backend.NewHost[float64](x.Rows, x.Cols+2)
	y := mat.NewDense(x.Rows, 2, nil)
	for i, v := range f {
		columns, values := x.Row(i)
		for k, c := range columns {
			h.Row(i)[c] = values[k]
		}
		h.Row(i)[x.Cols], h.Row(i)[x.Cols+1] = 1e6+0.1, h.Row(i)[3]
		y.SetRow(i, []float64{v, 1e3 + 3*math.Abs(v)})
	}
	sparse := h.CSR()
	dense := mat.NewDense(h.Rows, h.Cols, h.Data)
	for _, l := range []learners.Lasso{
		{Lambda: 20}, {Lambda: 1}, {Lambda: 200, Tol: 1e-10}, {Lambda: 5, NoIntercept: true}, {Theta: 3}, {Lambda: 10, Method: learners.FISTA}, {Lambda: 100, Method: learners.ISTA}, {Lambda: 1e6},
	} {
		for _, w := range [][]float64{nil, weights} {
			objective := func(x mat.Matrix) (value []float64, m *learners.LinearModel) {
				t.Helper()
				m, err := l.Fit(t.Context(), dev, x, y, learners.Options{Weights: w})
				if err != nil {
					t.Fatalf("%v: %v", l, err)
				}
				p, err := m.Predict(t.Context(), dev, dense)
				if err != nil {
					t.Fatal(err)
				}
				value = make([]float64, 2)
				for i := range h.Rows {
					for j := range value {
						r := y.At(i, j) - p.At(i, j)
						if w != nil {
							r *= math.Sqrt(w[i])
						}
						value[j] += r * r
					}
				}
				for c := range h.Cols {
					for j := range value {
						value[j] += l.Lambda * math.Abs(m.Coef().At(c, j))
					}
				}
				return value, m
			}
			want, _ := objective(dense)
			got, m := objective(sparse)
			for j := range got {
				column := mat.Col(nil, j, y)
				mean, variance := stat.PopMeanVariance(column, w)
				if l.NoIntercept {
					variance += mean * mean
				}
				total := variance * float64(len(column))
				if w != nil {
					total = variance * floats.Sum(w)
				}
				checkClose(t, fmt.Sprintf("%+v, weights %t: objective %d", l, w != nil, j), got[j], want[j], cmp.Or(l.Tol, 1e-7)*total)
			}
			if warning := fmt.Sprint(m.Facts()); strings.Contains(warning, "warning") {
				t.Errorf("%+v: %s", l, warning)
			}
		}
	}
	path, err := learners.Lasso{}.Path(t.Context(), dev, sparse, y, nil, learners.Options{})
	if err != nil || len(path) != 100 {
		t.Fatalf("%d models of the path, %v", len(path), err)
	}
	if len(path[0].Support(0))+len(path[0].Support(1)) > 0 || len(path[99].Support(0)) < 50 {
		t.Errorf("the path has %d weights at first and %d at the end", len(path[0].Support(0)), len(path[99].Support(0)))
	}
}

// TestLeastSquaresOfSparseSamples compares the weights that LSQR finds with the weights of minimum norm by the
// SVD. At the end of LSQR their error is at most 1e-13 ‖X‖(‖y‖ + ‖X‖‖w‖)/σ², where σ is the smallest nonzero
// singular value; the tolerance is twice this bound.
func TestLeastSquaresOfSparseSamples(t *testing.T) {
	dev := backendtest.Device(t, "")
	rng := rand.New(rand.NewPCG(11, 0))
	for _, c := range []struct {
		rows, features       int
		dependent, intercept bool
	}{{120, 30, false, true}, {120, 30, true, true}, {120, 30, true, false}, {40, 300, false, true}, {1, 5, false, false}} {
		_, x, y := scattered(rng, c.rows, c.features, 0.2)
		x.Set(0, 4, 2) // ensures that no matrix is 0
		for i := range c.rows {
			if c.dependent {
				x.Set(i, 1, x.At(i, 0))
				x.Set(i, 2, 3)
			}
		}
		sparse := backend.Host[float64]{Rows: c.rows, Cols: c.features, Stride: c.features, Data: x.RawMatrix().Data}.CSR()
		m, err := learners.LeastSquares{NoIntercept: !c.intercept}.Fit(t.Context(), dev, sparse, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c.intercept {
			for _, a := range []*mat.Dense{x, y} {
				_, cols := a.Dims()
				for j := range cols {
					mean := mat.Sum(a.ColView(j)) / float64(c.rows)
					for i := range c.rows {
						a.Set(i, j, a.At(i, j)-mean)
					}
				}
			}
		}
		var svd mat.SVD
		if !svd.Factorize(x, mat.SVDThin) {
			t.Fatal("the SVD has not converged")
		}
		values, rank := svd.Values(nil), 0
		for rank < len(values) && values[rank] > 1e-12*values[0] {
			rank++
		}
		var want, diff mat.Dense
		svd.SolveTo(&want, y, rank)
		diff.Sub(m.Coef(), &want)
		norm := mat.Norm(x, 2)
		if bound := 2e-13 * norm * (mat.Norm(y, 2) + norm*mat.Norm(&want, 2)) / (values[rank-1] * values[rank-1]); !(mat.Norm(&diff, 2) <= bound) {
			t.Errorf("%+v, rank %d: the error of w is %g, above %g", c, rank, mat.Norm(&diff, 2), bound)
		}
	}
}

// TestPerceptronsOfSparseSamples checks that each kind of perceptron has the same decision values for sparse and
// for dense samples, also after it is restored, and that the centers are sparse.
func TestPerceptronsOfSparseSamples(t *testing.T) {
	dev := backendtest.Device(t, "")
	rows, f, weights := formulaRows()
	rng := rand.New(rand.NewPCG(6, 0))
	for k := range rows.Data { // if the elements were multiples of 1/13, f could be 0 up to rounding, and the sign of f would be undefined
		rows.Data[k] *= 1 + rng.Float64()
	}
	x := rows.SliceRows(0, 400)
	h := backend.NewHost[float64](x.Rows, x.Cols)
	x.DenseTo(h)
	dense := mat.NewDense(h.Rows, h.Cols, h.Data)
	weights[5] = 0
	for _, kind := range required.Subset(2, []learners.PerceptronKind{learners.LastPerceptron, learners.AveragedPerceptron, learners.VotedPerceptron}) {
		for _, classes := range []int{2, 3} {
			for _, l := range []interface {
				Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (learners.Classifier, error)
			}{
				learners.KernelPerceptron{Kind: kind, Epochs: 3}, learners.KernelPerceptron{Kind: kind, Epochs: 3, Batch: 16, Kernel: kernels.Polynomial{Degree: 2, C: 1}}, learners.KernelPerceptron{Kind: kind, Epochs: 2, Budget: 50},
				learners.Perceptron{Kind: kind, Epochs: 3}, learners.Perceptron{Kind: kind, Epochs: 3, Batch: 16, NoIntercept: true}, learners.Perceptron{Kind: kind, Epochs: 3, Coef: mat.NewDense(x.Cols, classes-1+(classes-1)/2, nil)},
			} {
				if p, ok := l.(learners.KernelPerceptron); ok && p.Budget > 0 && kind != learners.LastPerceptron {
					continue
				}
				if p, ok := l.(learners.Perceptron); ok && p.Coef != nil && kind == learners.VotedPerceptron {
					continue
				}
				o, y := learners.Options{Weights: weights[:400]}, formulaClasses(f[:400], classes)
				decide := func(m learners.Model, err error) *mat.Dense {
					t.Helper()
					if err != nil {
						t.Fatalf("%+v: %v", l, err)
					}
					d, err := m.(learners.Classifier).Decision(t.Context(), dev, x)
					if err != nil {
						t.Fatalf("%+v: %v", l, err)
					}
					return d
				}
				fit := func(x mat.Matrix) (learners.Model, error) { return l.Fit(t.Context(), dev, x, y, o) }
				want := decide(fit(dense))
				m, err := fit(x)
				got := decide(m, err)
				// The values are sums of at most 1200 products of a factor up to 3 and a kernel value below 1000.
				if tol := 1e-9; !mat.EqualApprox(got, want, tol) {
					t.Errorf("%+v, %d classes: the decisions differ", l, classes)
				}
				if centers := learners.PartsOf(m).Points; centers != nil {
					if _, sparse := centers.(backend.CSR[float64]); !sparse {
						t.Errorf("%+v, %d classes: the centers are dense", l, classes)
					}
				}
				if restored := decide(learners.Restore(m.State())); !mat.Equal(restored, got) {
					t.Errorf("%+v, %d classes: the restored model decides otherwise", l, classes)
				}
			}
		}
	}
}

// TestLeastSquaresOfExtremeNumbers checks that least squares for sparse samples does not depend on the units of x
// and y, and that squares that overflow or underflow give an error.
func TestLeastSquaresOfExtremeNumbers(t *testing.T) {
	dev := backendtest.Device(t, "")
	_, x, y := scattered(rand.New(rand.NewPCG(12, 0)), 20, 3, 0.5)
	fit := func(a, b float64) (*learners.LinearModel, error) {
		s := backend.Host[float64]{Rows: 20, Cols: 3, Stride: 3, Data: x.RawMatrix().Data}.CSR()
		s.Data = slices.Clone(s.Data)
		for i := range s.Data {
			s.Data[i] *= a
		}
		var v mat.Dense
		v.Scale(b, y)
		return learners.LeastSquares{NoIntercept: true}.Fit(t.Context(), dev, s, &v, learners.Options{})
	}
	want, err := fit(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]float64{{0x1p400, 1}, {0x1p-400, 1}, {1, 0x1p400}, {1, 0x1p-400}, {0x1p-400, 0x1p400}} { // multiplication by powers of 2 does not change the rounding errors
		m, err := fit(c[0], c[1])
		if err != nil {
			t.Errorf("x·%g, y·%g: %v", c[0], c[1], err)
			continue
		}
		for j := range 3 {
			if got := m.Coef().At(j, 0) * c[0] / c[1]; got != want.Coef().At(j, 0) {
				t.Errorf("x·%g, y·%g: weight %d is %v after scaling, not %v", c[0], c[1], j+1, got, want.Coef().At(j, 0))
			}
		}
	}
	for _, c := range []struct {
		x, y float64
		name string
	}{{1e155, 1, "x"}, {1e200, 1, "x"}, {1e-160, 1, "x"}, {1, 1e155, "y"}, {1, 1e-200, "y"}} {
		if _, err := fit(c.x, c.y); err == nil || !strings.Contains(err.Error(), "too far from 1 for sparse samples: scale "+c.name) {
			t.Errorf("x·%g, y·%g: got %v", c.x, c.y, err)
		}
	}
}
