package learners_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

// A degenerate table has a target that is constant, or orthogonal to every column of its features up to rounding.
type degenerate struct {
	name    string
	x       *mat.Dense
	y       []float64
	weights []float64
}

func (d degenerate) targets() *mat.Dense { return mat.NewDense(len(d.y), 1, d.y) }

// bound returns the largest difference, due to rounding errors, between f(x_i) and the mean of the targets. The
// residual of the normal equations, 20√(n+d)·2⁻⁵³‖W^½X‖‖W^½y‖, is divided by the square of the singular values of W^½X,
// which are all equal. Learners that solve (K + λW⁻¹)α = y add √(max w/min w)·tol‖y‖.
func (d degenerate) bound(tol float64) float64 {
	n, cols := d.x.Dims()
	var features, targets, farthest float64
	lightest, heaviest := math.Inf(1), 0.0
	for i := range n {
		w, square := 1.0, 0.0
		if d.weights != nil {
			w = d.weights[i]
		}
		for _, v := range d.x.RawRowView(i) {
			square += v * v
		}
		features += w * square
		targets += w * d.y[i] * d.y[i]
		farthest = max(farthest, math.Sqrt(square))
		lightest, heaviest = min(lightest, w), max(heaviest, w)
	}
	return 20*math.Sqrt(float64(n+cols))*0x1p-53*float64(cols)*math.Sqrt(targets/features)*farthest +
		math.Sqrt(heaviest/lightest)*tol*mat.Norm(d.targets(), 2)
}

// mean returns the weighted mean of the targets.
func (d degenerate) mean() float64 {
	sum, total := 0.0, 0.0
	for i, v := range d.y {
		w := 1.0
		if d.weights != nil {
			w = d.weights[i]
		}
		sum += w * v
		total += w
	}
	return sum / total
}

// orthogonalTables returns tables whose target is orthogonal to the columns: even functions, a checkerboard, and
// interactions of factors in two-level designs. Each table occurs without and with weights.
func orthogonalTables(r *rand.Rand) []degenerate {
	var list []degenerate
	add := func(name string, x *mat.Dense, y, weights []float64) {
		list = append(list, degenerate{name, x, y, nil}, degenerate{name + ", weighted", x, y, weights})
	}
	evenFunctions := map[string]func(float64) float64{"square": func(v float64) float64 { return v * v }, "absolute value": math.Abs, "cosine": math.Cos, "fourth power": func(v float64) float64 { return v * v * v * v }}
	for _, name := range slices.Sorted(maps.Keys(evenFunctions)) {
		n, step, offset := 2+r.IntN(40), r.ExpFloat64(), 100*r.NormFloat64()
		x, y, w := mat.NewDense(2*n+1, 1, nil), make([]float64, 2*n+1), make([]float64, 2*n+1)
		for i := range n + 1 {
			v, weight := float64(i)*step, r.ExpFloat64()
			x.Set(n+i, 0, v)
			x.Set(n-i, 0, -v)
			y[n+i], y[n-i] = evenFunctions[name](v)+offset, evenFunctions[name](v)+offset
			w[n+i], w[n-i] = weight, weight
		}
		add(name, x, y, w)
	}
	side, step := 2*(1+r.IntN(4)), r.ExpFloat64()
	x, y, w := mat.NewDense(side*side, 2, nil), make([]float64, side*side), make([]float64, side*side)
	for i := range y {
		a, b := float64(i%side)-float64(side-1)/2, float64(i/side)-float64(side-1)/2
		x.SetRow(i, []float64{a * step, b * step})
		y[i], w[i] = 0.3*math.Copysign(1, a*b), 1/(a*a+b*b)
	}
	add("checkerboard", x, y, w)
	factors := 2 + r.IntN(4)
	order, n, level := 2+r.IntN(factors-1), 1<<factors, r.ExpFloat64()
	x, y, w = mat.NewDense(n, factors, nil), make([]float64, n), make([]float64, n)
	for i := range n {
		y[i], w[i] = 0.1, 0.7
		for j := range factors {
			sign := float64(2*(i>>j&1) - 1)
			x.Set(i, j, sign*level)
			if j < order {
				y[i] *= sign
			}
		}
		y[i] += 3.3
	}
	add(fmt.Sprintf("factorial of %d factors", factors), x, y, w)
	return list
}

// linearLearners lists learners of linear functions, each with parameters and with the tolerance of the relative
// residual of (K + λI)α = y, or 0 for learners that solve the normal equations.
var linearLearners = []struct {
	name     string
	settings map[string]string
	tol      float64
}{
	{"least-squares", nil, 0},
	{"ridge", map[string]string{"lambda": "1"}, 0},
	{"ridge", map[string]string{"lambda": "1e-10", "solver": "primal"}, 0},
	{"ridge", map[string]string{"lambda": "1e10", "solver": "primal"}, 0},
	{"ridge", map[string]string{"lambda": "1", "solver": "dual"}, 1e-8},
	{"ridge", map[string]string{"lambda": "1e10", "solver": "dual"}, 1e-8},
	{"ridge-constrained", nil, 0},
	{"bayes-ridge", nil, 0},
	{"lasso", nil, 0},
	{"lasso", map[string]string{"lambda": "1e-6", "method": "fista"}, 0},
	{"lasso", map[string]string{"theta": "1"}, 0},
	{"l0", nil, 0},
	{"l0", map[string]string{"support": "1"}, 0},
	{"kernel-ridge", map[string]string{"kernel": "linear()"}, 1e-8},
	{"kernel-ridge", map[string]string{"kernel": "linear()", "lambda": "1e-3", "solver": "cg"}, 1e-8},
	{"kernel-ridge", map[string]string{"kernel": "linear()", "lambda": "1e3", "solver": "mixed"}, 1e-8},
	{"nystrom-ridge", map[string]string{"kernel": "linear()"}, 0},
	{"nystrom-ridge", map[string]string{"kernel": "linear()", "lambda": "1e-6", "tol": "1e-12"}, 0},
	{"nystrom-ridge", map[string]string{"kernel": "linear()", "lambda": "1e6", "solver": "normal"}, 0},
	{"nystrom-ridge", map[string]string{"kernel": "linear()", "solver": "falkon"}, 0},
	{"gaussian-process", map[string]string{"kernel": "linear()", "optimize": "false"}, 1e-8},
}

// TestOrthogonalTarget checks that a target that is orthogonal to every column, up to rounding,
// gives weights of 0 and the mean as intercept, as in scikit-learn's Ridge.
func TestOrthogonalTarget(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed = 20261125
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range required.Subset(1, []int{1, 2, 3, 4}) {
		for _, table := range orthogonalTables(r) {
			n, _ := table.x.Dims()
			for _, l := range linearLearners {
				m := degenerateFit(t, l.name, l.settings, table.x, table.targets(), table.weights)
				if m == nil {
					continue
				}
				bound, f := table.bound(l.tol), labels(t, dev, m, table.x)
				for i := range n {
					if diff := math.Abs(f.At(i, 0) - table.mean()); !(diff <= bound) {
						t.Errorf("%s %v, %s of %d rows: row %d is %.3g from the mean, more than %.3g", l.name, l.settings, table.name, n, i+1, diff, bound)
						break
					}
				}
			}
		}
	}
}

// degenerateFit fits a learner. If the fit fails, it reports the error and returns nil.
func degenerateFit(t *testing.T, name string, settings map[string]string, x, y mat.Matrix, weights []float64) learners.Model {
	t.Helper()
	d, err := learners.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	fit, err := d.Make(learners.Regression, settings)
	if err != nil {
		t.Fatal(err)
	}
	m, err := fit(t.Context(), backendtest.Device(t, "cpu"), x, y, learners.Options{Weights: weights})
	if err != nil {
		n, _ := x.Dims()
		t.Errorf("%v, %d rows: %v", settings, n, err)
		return nil
	}
	return m
}

// TestOrthogonalTargetBesideGood checks that an orthogonal or constant target does not change the
// fit of a second target that is fitted with it.
func TestOrthogonalTargetBesideGood(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed = 20261126
	t.Logf("seed %d", seed)
	for _, table := range orthogonalTables(rand.New(rand.NewPCG(seed, 0))) {
		n, _ := table.x.Dims()
		for _, constant := range []bool{false, true} {
			y := mat.NewDense(n, 2, nil)
			for i, v := range table.y {
				y.SetRow(i, []float64{v, 2*table.x.At(i, 0) + 1})
				if constant {
					y.Set(i, 0, 0.1)
				}
			}
			for _, l := range linearLearners {
				if d, _ := learners.Find(l.name); !d.Outputs {
					continue
				}
				settings := maps.Clone(l.settings)
				if _, penalized := settings["lambda"]; penalized {
					settings["lambda"] = "1e-3"
				}
				m := degenerateFit(t, l.name, settings, table.x, y, table.weights)
				if m == nil || settings["lambda"] == "" || l.name == "l0" || l.name == "lasso" {
					continue
				}
				// On orthogonal columns, ridge regression multiplies the weight 2 of the target 2x + 1 by ‖x‖²/(‖x‖² +
				// λ).
				square, mean, total := 0.0, 0.0, 0.0
				for i := range n {
					w := 1.0
					if table.weights != nil {
						w = table.weights[i]
					}
					square += w * table.x.At(i, 0) * table.x.At(i, 0)
					mean += w * table.x.At(i, 0)
					total += w
				}
				want, f := 2*square/(square+1e-3), labels(t, dev, m, table.x)
				bound := (1e-6 + 100*float64(n)*0x1p-52) * mat.Norm(y, 2) // 1e-6 is the default tolerance of fits that read rows in passes
				for i := range n {
					if diff := f.At(i, 1) - (1 + 2*mean/total + want*(table.x.At(i, 0)-mean/total)); !(math.Abs(diff) <= bound) {
						t.Errorf("%s %v, %s: row %d of the other target is off by %.3g, more than %.3g", l.name, settings, table.name, i+1, diff, bound)
						break
					}
				}
			}
		}
	}
}

// TestOrthogonalTargetInPasses repeats TestOrthogonalTarget with samples that are read in passes.
func TestOrthogonalTargetInPasses(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed = 20261127
	t.Logf("seed %d", seed)
	for _, table := range orthogonalTables(rand.New(rand.NewPCG(seed, 0))) {
		n, _ := table.x.Dims()
		x, err := gonum.Host("x", table.x)
		if err != nil {
			t.Fatal(err)
		}
		y, err := gonum.Host("y", table.targets())
		if err != nil {
			t.Fatal(err)
		}
		data := solvers.InMemory(x, y, table.weights, nil)
		for _, method := range []solvers.Method{solvers.Normal, solvers.Falkon} {
			m, err := learners.NystromRidge{Kernel: kernels.Linear{}, Lambda: 0.1, Solver: method}.FitRows(t.Context(), dev, data, learners.Options{})
			if err != nil {
				t.Errorf("%s, %s: %v", table.name, method, err)
				continue
			}
			bound, f := table.bound(0), labels(t, dev, m, table.x)
			for i := range n {
				if diff := math.Abs(f.At(i, 0) - table.mean()); !(diff <= bound) {
					t.Errorf("%s, %s: row %d is %.3g from the mean, more than %.3g", table.name, method, i+1, diff, bound)
					break
				}
			}
		}
	}
}
