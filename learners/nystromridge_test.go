package learners_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

func nystromTerms(model learners.Model, x []float64, j int) (float64, int) {
	m := model.(*learners.NystromRidgeModel)
	centers, beta := m.Centers(), m.Beta()
	n, _ := centers.Dims()
	sum := math.Abs(m.Intercept()[j])
	for i := range n {
		sum += math.Abs(beta.At(i, j) * kernels.Eval(m.Kernel(), centers.RawRowView(i), x))
	}
	return sum, n
}

func TestNystromRidge(t *testing.T) {
	k := kernels.Gaussian{Sigma: 2}
	for name, l := range map[string]learners.NystromRidge{
		// Every sample is a center, also in a fit to repeated samples.
		"all":       {Kernel: k, Lambda: 0.5, Centers: 60, NoIntercept: true},
		"intercept": {Kernel: kernels.Matern{Nu: 1.5, Sigma: 3}, Lambda: 0.5, Centers: 60},
		"falkon":    {Kernel: k, Lambda: 0.5, Centers: 60, Solver: solvers.Falkon, Tol: 1e-11, NoIntercept: true},
	} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner:  "nystrom-ridge",
				Fit:      fitter(l.Fit),
				Unfitted: []learners.Model{&learners.NystromRidgeModel{}},
				Terms:    nystromTerms,
				// The condition number of the normal equations is at most ‖K‖²/λ with ‖K‖ ≤ 60.
				Condition: 60 * 60 / 0.5,
			})
		})
	}
	t.Run("classes", func(t *testing.T) {
		d, err := learners.Find("nystrom-ridge")
		if err != nil {
			t.Fatal(err)
		}
		fit, err := d.Make(learners.Classification, map[string]string{"kernel": "gaussian(sigma=2)", "lambda": "0.5", "centers": "60"})
		if err != nil {
			t.Fatal(err)
		}
		learnertest.Run(t, learnertest.Suite{
			Learner: "nystrom-ridge", Task: learners.Classification, Fit: fit,
			Unfitted:  []learners.Model{&learners.ClassifyModel{}},
			Condition: 60 * 60 / 0.5,
		})
	})
}

// wave returns n samples of d features, and targets that are a smooth function of them.
func wave(seed uint64, n, d int) (x, y *mat.Dense) {
	r := rand.New(rand.NewPCG(seed, 0))
	x, y = mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		s := 0.0
		for j := range d {
			v := r.NormFloat64()
			x.Set(i, j, v)
			s += v / float64(j+1)
		}
		y.Set(i, 0, 3+math.Sin(2*s)+0.05*r.NormFloat64())
	}
	return x, y
}

// TestNystromRidgeAgainstScikitLearn compares NystromRidge with scikit-learn's Ridge on the features of Nystroem
// with Mercer's centers.
func TestNystromRidgeAgainstScikitLearn(t *testing.T) {
	const seed = 3
	t.Log("seed", seed)
	x, y := wave(seed, 400, 3)
	var want struct{ F []float64 }
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		m, err := learners.NystromRidge{
			Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 0.1, Centers: 50, Tol: 1e-11, Seed: 4,
		}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want.F == nil {
			scikit(t, map[string]any{"x": rowsOf(x), "y": mat.Col(nil, 0, y), "c": rowsOf(m.Centers())}, `
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
n = Nystroem(kernel="rbf", gamma=0.5, n_components=len(a["c"]), random_state=0).fit(a["c"])
z = n.transform(a["x"])
out["f"] = Ridge(alpha=0.1, solver="svd").fit(z, a["y"]).predict(z)
`, &want)
		}
		f, err := m.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		// Both programs have errors of about m·2⁻⁵³ times the condition number of k(c, c) for m centers,
		// multiplied by ‖y‖/λ. Mercer's residual adds 1e-11 ‖y‖.
		const n, lambda = 400, 0.1
		centers := m.Centers()
		count, _ := centers.Dims()
		gram := mat.NewSymDense(count, nil)
		for i := range count {
			for j := range i + 1 {
				gram.SetSym(i, j, kernels.Eval(kernels.Gaussian{Sigma: 1}, centers.RawRowView(i), centers.RawRowView(j)))
			}
		}
		var eigen mat.EigenSym
		eigen.Factorize(gram, false)
		values := eigen.Values(nil)
		condition := values[count-1] / values[0]
		y0 := mat.NewVecDense(n, nil)
		for i := range n {
			y0.SetVec(i, y.At(i, 0)-mat.Sum(y)/n)
		}
		tol := (float64(count)*0x1p-53*condition/lambda + 1e-11) * mat.Norm(y0, 2)
		maxError := 0.0
		for i, v := range want.F {
			maxError = max(maxError, checkClose(t, "prediction", f.At(i, 0), v, tol))
		}
		t.Logf("condition %.2g, tolerance %.2g", condition, tol)
		t.Logf("differences up to %.2g", maxError)
	})
}

// TestGivenCenters checks that a fit with given centers solves the normal equations, and that a fit with the centers
// of an earlier fit gives the same coefficients. Other learners must refuse given centers.
func TestGivenCenters(t *testing.T) {
	x, y := wave(3, 50, 2)
	c, _ := wave(4, 8, 2)
	k := kernels.Matern{Nu: 0.5, Sigma: 1}
	phi, _ := features(k, x, c)
	s, _ := features(k, c, c)
	var h, z, want mat.Dense
	h.Mul(phi.T(), phi)
	s.Scale(0.3, s)
	h.Add(&h, s)
	z.Mul(phi.T(), y)
	if err := want.Solve(&h, &z); err != nil {
		t.Fatal(err)
	}
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		o := learners.Options{Centers: c}
		for _, method := range []solvers.Method{solvers.Normal, solvers.Falkon} {
			m, err := learners.NystromRidge{Kernel: k, Lambda: 0.3, NoIntercept: true, Solver: method, Tol: 1e-12}.Fit(t.Context(), dev, x, y, o)
			if err != nil {
				t.Fatal(err)
			}
			if !mat.Equal(m.Centers(), c) {
				t.Errorf("%s: other centers", method)
			}
			// The relative error of gonum is at most 8M·2⁻⁵²·cond(H) for M = 8 centers, and that of Mercer Tol·cond(H).
			bound := (8*8*0x1p-52 + 1e-12) * mat.Cond(&h, 2) * mat.Norm(&want, 2)
			for i := range 8 {
				checkClose(t, string(method), m.Beta().At(i, 0), want.At(i, 0), bound)
			}
		}
		l := learners.NystromRidge{Kernel: k, Lambda: 1, Centers: 10}
		m, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l.Centers = 0
		refitted, err := l.Fit(t.Context(), dev, x, y, learners.Options{Centers: m.Centers()})
		if err != nil {
			t.Fatal(err)
		}
		if !mat.Equal(m.Beta(), refitted.Beta()) {
			t.Error("the same centers give another model")
		}
		l.Centers = 3
		if _, err := l.Fit(t.Context(), dev, x, y, o); err == nil {
			t.Error("a number of centers and given centers: no error")
		}
		l.Centers = 0
		if _, err := l.Fit(t.Context(), dev, x, y, learners.Options{Centers: mat.NewDense(2, 3, nil)}); err == nil {
			t.Error("centers of three features: no error")
		}
	})
	dev := backendtest.Device(t, "cpu")
	labels := mat.NewDense(50, 1, nil)
	for i := range 50 {
		labels.Set(i, 0, float64(i%2))
	}
	for _, d := range learners.Catalogue() {
		fit, err := d.Make("", nil)
		if err != nil {
			t.Fatal(err)
		}
		targets := y
		if d.Supports(learners.Classification) && !d.Supports(learners.Regression) {
			targets = labels
		}
		_, err = fit(t.Context(), dev, x, targets, learners.Options{Centers: c})
		if refuses := err != nil && strings.Contains(err.Error(), "centers: the learner has no centers"); refuses != (d.Name != "nystrom-ridge") {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
}

// file is a solvers.Rows that returns a few samples per call.
type file struct {
	x, y *mat.Dense
}

func (f file) Dims() (n, d, t int) {
	n, d = f.x.Dims()
	_, t = f.y.Dims()
	return n, d, t
}

func (f file) Pass(ctx context.Context, _ bool, use func(solvers.Block) error) error {
	n, d, t := f.Dims()
	for i := 0; i < n; i += 7 {
		r := min(7, n-i)
		err := use(solvers.Block{
			X: backend.Host[float64]{Rows: r, Cols: d, Stride: d, Data: f.x.RawMatrix().Data[i*d:]},
			Y: backend.Host[float64]{Rows: r, Cols: t, Stride: t, Data: f.y.RawMatrix().Data[i*t:]},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// TestFitRows checks that samples read in passes from a file give the same model as samples in
// memory, also with the default kernel.
func TestFitRows(t *testing.T) {
	x, y := wave(1, 200, 3)
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		o := learners.Options{}
		l := learners.NystromRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 1, Centers: 20, NoIntercept: true}
		a, err := l.Fit(t.Context(), dev, x, y, o)
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.FitRows(t.Context(), dev, file{x, y}, o)
		if err != nil {
			t.Fatal(err)
		}
		if !mat.Equal(a.Beta(), b.Beta()) || !mat.Equal(a.Centers(), b.Centers()) {
			t.Error("nystrom-ridge: the file gives another model")
		}
		f := learners.FourierRidge{Kernel: kernels.Laplacian{Sigma: 2}, Lambda: 1, Features: 30}
		c, err := f.Fit(t.Context(), dev, x, y, o)
		if err != nil {
			t.Fatal(err)
		}
		d, err := f.FitRows(t.Context(), dev, file{x, y}, o)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.State().Arrays["cosines"].Data, d.State().Arrays["cosines"].Data) {
			t.Error("fourier-ridge: the file gives another model")
		}
		l.Kernel, f.Kernel = nil, nil
		if a, err = l.Fit(t.Context(), dev, x, y, o); err != nil {
			t.Fatal(err)
		}
		if b, err = l.FitRows(t.Context(), dev, file{x, y}, o); err != nil {
			t.Fatal(err)
		}
		if d, err = f.FitRows(t.Context(), dev, file{x, y}, o); err != nil {
			t.Fatal(err)
		}
		if !kernels.Equal(a.Kernel(), b.Kernel()) || !kernels.Equal(a.Kernel(), d.Kernel()) {
			t.Errorf("the kernels are %v, %v and %v", a.Kernel(), b.Kernel(), d.Kernel())
		}
	})
}
